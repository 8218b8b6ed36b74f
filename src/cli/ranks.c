/* Which ranks two runs have between them. */
#include "cli/ranks.h"

#include <stdlib.h>
#include <string.h>

static bool add(int64_t **ranks, size_t *count, int64_t rank)
{
    size_t at = 0;
    while (at < *count && (*ranks)[at] < rank)
        at++;
    if (at < *count && (*ranks)[at] == rank)
        return true;
    int64_t *grown = realloc(*ranks, (*count + 1) * sizeof *grown);
    if (!grown)
        return false;
    *ranks = grown;
    memmove(grown + at + 1, grown + at, (*count - at) * sizeof *grown);
    grown[at] = rank;
    ++*count;
    return true;
}

enum plumb_code ranks_list(int64_t **ranks, size_t *count, struct plumb_run *const runs[2],
                           struct plumb_error *err)
{
    *ranks = NULL;
    *count = 0;
    for (int side = 0; side < 2; side++)
        if (strcmp(plumb_run_kind(runs[side]), "dump") != 0)
            return PLUMB_OK;
    for (int side = 0; side < 2; side++) {
        int64_t last = INT64_MIN; /* most records have the rank of the one before */
        for (size_t i = 0; i < plumb_run_count(runs[side]); i++) {
            int64_t rank = plumb_run_record(runs[side], i)->rank;
            if (rank != last && !add(ranks, count, rank)) {
                free(*ranks);
                *ranks = NULL;
                *count = 0;
                return plumb_no_memory(err);
            }
            last = rank;
        }
    }
    return PLUMB_OK;
}
