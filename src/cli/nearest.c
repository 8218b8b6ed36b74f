#include "cli/args.h"

#include <string.h>

#define LONGEST 64

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1], na = strlen(a), nb = strlen(b);
    if (na > LONGEST || nb > LONGEST)
        return SIZE_MAX;
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

const char *args_nearest(const char *text, const char *const *candidates)
{
    const char *nearest = NULL;
    size_t letters = strlen(text + strspn(text, "-"));
    size_t best = letters / 3 + 1; /* farther than this is a guess */
    for (; *candidates; candidates++) {
        size_t distance = edit_distance(text, *candidates);
        if (distance < best || (distance == best && !nearest && distance < letters)) {
            best = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}
