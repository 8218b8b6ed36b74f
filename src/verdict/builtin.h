/* The standards that are compiled in: one .std file each, embedded by scripts/embed.sh. Those of
 * comparisons can be chosen, those of single jobs belong to these. */
#ifndef VERDICT_BUILTIN_H
#define VERDICT_BUILTIN_H

#include <stddef.h>

struct builtin {
    const char *name, *text;
};

/* Each ends with a row of NULLs. */
extern const struct builtin standard_builtins[];
extern const struct builtin standard_task_builtins[];

#endif
