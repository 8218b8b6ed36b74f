/* UTF-8 from strangers: decoding, widths, and what a terminal may get of it. */
#include "base/utf8.h"

#include <string.h>

struct utf8_char utf8_next(const char *text)
{
    const unsigned char *b = (const unsigned char *)text;
    const struct utf8_char invalid = {.code = b[0], .size = 1, .valid = false};

    if (b[0] < 0x80)
        return (struct utf8_char){b[0], 1, true};
    unsigned size = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4)
        return invalid;
    uint32_t code = b[0] & (0xffu >> (size + 1));
    for (unsigned i = 1; i < size; i++) {
        if ((b[i] & 0xc0) != 0x80) /* a NUL stops here too */
            return invalid;
        code = code << 6 | (b[i] & 0x3f);
    }
    if ((size == 3 && code < 0x800) || (size == 4 && code < 0x10000) || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff))
        return invalid;
    return (struct utf8_char){code, size, true};
}

struct range {
    uint32_t first, last;
};

static bool within(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/* Controls, then what hides or reorders the text around it. */
static const struct range forbidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x061c, 0x061c},
    {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},   {0xfeff, 0xfeff},
    {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe007f},
};

static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xa960, 0xa97f},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff},
    {0x20000, 0x3fffd},
};

#define WITHIN(ranges, code) within(ranges, sizeof(ranges) / sizeof *(ranges), code)

int utf8_width(struct utf8_char c)
{
    if (!c.valid)
        return -1;
    if (c.code >= 0x20 && c.code < 0x7f)
        return 1;
    if (WITHIN(forbidden, c.code))
        return -1;
    if (WITHIN(combining, c.code))
        return 0;
    return WITHIN(wide, c.code) ? 2 : 1;
}

struct utf8_shown utf8_show(const char *text)
{
    const struct utf8_char c = utf8_next(text);
    const int width = utf8_width(c);
    if (width < 0)
        return (struct utf8_shown){"?", 1, 1, c.size};
    return (struct utf8_shown){text, c.size, (size_t)width, c.size};
}

void utf8_clean(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        const struct utf8_shown c = utf8_show(from);
        memmove(to, c.bytes, c.size);
        to += c.size;
        from += c.taken;
    }
    *to = '\0';
}

void utf8_put_clean(struct buf *out, const char *text)
{
    for (struct utf8_shown c; *text; text += c.taken) {
        c = utf8_show(text);
        buf_append(out, c.bytes, c.size);
    }
}

size_t utf8_text_width(const char *text)
{
    size_t total = 0;
    while (*text) {
        if (*text >= 0x20 && *text < 0x7f) {
            total++;
            text++;
            continue;
        }
        const struct utf8_shown c = utf8_show(text);
        total += c.columns;
        text += c.taken;
    }
    return total;
}

bool utf8_is_valid(const char *text)
{
    while (*text) {
        struct utf8_char c = utf8_next(text);
        if (!c.valid)
            return false;
        text += c.size;
    }
    return true;
}
