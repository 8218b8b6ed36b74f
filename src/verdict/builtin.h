/* The standards that are compiled in: one .std file each, embedded by scripts/embed.sh. */
#ifndef VERDICT_BUILTIN_H
#define VERDICT_BUILTIN_H

#include <stddef.h>

struct builtin {
    const char *name, *text;
};

extern const struct builtin standard_builtins[]; /* ends with a row of NULLs */

#endif
