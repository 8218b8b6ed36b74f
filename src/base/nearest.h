/* "Did you mean ...?": the nearest of several names. Pure. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

enum { NEAREST_LONGEST = 64 }; /* longer names are not looked at, longer texts cut */

struct nearest {
    const char *text;               /* what was written; borrowed */
    char name[NEAREST_LONGEST + 1]; /* the nearest so far, the first of equals; "" when none */
    size_t distance;                /* insertions, deletions, replacements, swaps of neighbours */
};

void nearest_init(struct nearest *nearest, const char *text);
void nearest_try(struct nearest *nearest, const char *name, size_t length);

/* True when the nearest is near enough to be what was meant. */
bool nearest_is_close(const struct nearest *nearest);

#endif
