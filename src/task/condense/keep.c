/* The words for what is to be kept. */
#include "plumb/condense.h"

#include <string.h>

enum plumb_code plumb_keep_parse(unsigned *keep, const char *text, struct plumb_error *err)
{
    static const struct {
        const char *name;
        unsigned bit;
    } names[] = {
        {"minmax", PLUMB_KEEP_MINMAX}, {"mean", PLUMB_KEEP_MEAN}, {"norm", PLUMB_KEEP_NORM},
        {"crc32", PLUMB_KEEP_CRC32},   {"hash", PLUMB_KEEP_HASH}, {"sketch", PLUMB_KEEP_SKETCH},
    };
    enum { COUNT = sizeof names / sizeof *names };
    *keep = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ","), i = 0;
        while (i < COUNT &&
               (strlen(names[i].name) != length || memcmp(names[i].name, at, length) != 0))
            i++;
        if (i == COUNT)
            return plumb_fail(err, PLUMB_E_ARG,
                              "'%.*s' is nothing to keep; there are minmax, mean, norm, crc32,"
                              " hash and sketch, separated by commas",
                              (int)length, at);
        *keep |= names[i].bit;
        at += length;
        if (!*at)
            return PLUMB_OK;
    }
}
