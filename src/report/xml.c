/* Text that strangers wrote, in XML. */
#include "report/xml.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* What XML 1.0 has no place for, not even as a reference. */
static bool is_foreign(struct utf8_char c)
{
    return !c.valid || (c.code < 0x20 && c.code != '\t' && c.code != '\n' && c.code != '\r') ||
           c.code == 0x7f || (c.code >= 0x80 && c.code < 0xa0) || (c.code & 0xfffe) == 0xfffe;
}

void xml_put(struct buf *out, const char *text)
{
    for (struct utf8_char c; *text; text += c.size) {
        c = utf8_next(text);
        if (is_foreign(c))
            buf_text(out, UTF8_REPLACEMENT);
        else if (c.code < 0x20 || strchr("&<>\"'", (int)(c.code < 0x80 ? c.code : 'x')))
            buf_printf(out, "&#%" PRIu32 ";", c.code);
        else
            buf_append(out, text, c.size);
    }
}
