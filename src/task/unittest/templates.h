/* Text files that are compiled in, embedded by scripts/embed.sh. */
#ifndef UNITTEST_TEMPLATES_H
#define UNITTEST_TEMPLATES_H

#include <stddef.h>

/* Longer than the 4095 bytes that every compiler of C17 must take; those that plumb knows do. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

struct builtin {
    const char *name, *text;
};

extern const struct builtin unittest_templates[]; /* ends with a row of NULLs */

#endif
