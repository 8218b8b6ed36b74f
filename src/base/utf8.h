/* UTF-8 from people we do not trust: names out of dumps end up on terminals. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct utf8_char {
    uint32_t code;
    unsigned size; /* bytes; 1 when not valid */
    bool valid;    /* a shortest-form code point that is not a surrogate */
};

/* The character at text, which is not at its NUL. */
struct utf8_char utf8_next(const char *text);

/* Columns that a terminal gives the character: 0, 1 or 2; -1 when it must not get there: invalid,
 * control characters (escape sequences begin with one), and those that reorder or hide text. */
int utf8_width(struct utf8_char c);

/* The next character as a terminal may get it: itself, or a '?' for what must not get there. */
struct utf8_shown {
    const char *bytes;
    size_t size;
    size_t columns;
    size_t taken; /* bytes of the text that it stands for */
};
struct utf8_shown utf8_show(const char *text);

/* How many of the first bytes, at most `most`, are plain ASCII: shown as they are, a column
 * each. */
static inline size_t utf8_plain(const char *text, size_t most)
{
    size_t n = 0;
    while (n < most && text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    return n;
}

/* Whole texts by the same rule: names come from files that strangers wrote, and none may end a line
 * or begin an escape sequence. The first cleans in place. */
void utf8_clean(char *text);
void utf8_put_clean(struct buf *out, const char *text);

/* Columns of a whole text, with what must not be shown counted as one. */
size_t utf8_text_width(const char *text);

/* True when the bytes of text are all valid. */
bool utf8_is_valid(const char *text);

#endif
