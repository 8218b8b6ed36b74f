/* Writing JSON. */
#include "base/json_put.h"
#include "base/utf8.h"

static void put_escaped(struct buf *out, uint32_t c)
{
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
                                   ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\'};
    if (c < sizeof letters && letters[c])
        buf_append(out, (char[]){'\\', letters[c]}, 2);
    else if (c < 0x10000)
        buf_printf(out, "\\u%04x", (unsigned)c);
    else
        buf_printf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                   (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void json_put_string(struct buf *out, const char *text)
{
    buf_text(out, "\"");
    while (*text) {
        size_t plain = 0;
        while (is_plain(text[plain]))
            plain++;
        buf_append(out, text, plain);
        text += plain;
        if (!*text)
            break;
        const struct utf8_char c = utf8_next(text);
        if (!c.valid)
            buf_text(out, UTF8_REPLACEMENT);
        else if (utf8_width(c) < 0 || c.code < 0x80)
            put_escaped(out, c.code);
        else
            buf_append(out, text, c.size);
        text += c.size;
    }
    buf_text(out, "\"");
}
