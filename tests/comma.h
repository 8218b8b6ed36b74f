/* A locale whose point is a comma, on machines that have none: glibc reads it from a file that is
 * written here. Include after cmocka.h; needs _GNU_SOURCE. */
#ifndef COMMA_H
#define COMMA_H

#include "scratch.h"

#include <locale.h>
#include <stdint.h>

/* Makes the program one that writes 1,5; the file lies in the scratch folder. */
static inline void comma_begin(struct scratch *scratch)
{
    /* A magic number, how many items there are, where they are; the items: point, separator of
     * thousands, grouping, the first two once more as wide characters, the character set. */
    struct {
        uint32_t head[8];
        char point[2], separator[1], grouping[1];
        char wide_point[4], wide_separator[4];
        char set[6];
    } file = {.head = {UINT32_C(0x20031115) ^ LC_NUMERIC, 6, 32, 34, 35, 36, 40, 44},
              .point = ",",
              .set = "UTF-8"};
    const uint32_t comma = ',';
    char text[8];
    memcpy(file.wide_point, &comma, sizeof comma);
    scratch_write(scratch, "comma/LC_NUMERIC", &file, 50);
    assert_int_equal(setenv("LOCPATH", scratch->folder, 1), 0);
    assert_non_null(setlocale(LC_NUMERIC, "comma"));
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5");
}

static inline void comma_end(void)
{
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
}

#endif
