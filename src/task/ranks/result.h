/* The result of one rank: what of its table is merged. */
#ifndef RANKS_RESULT_H
#define RANKS_RESULT_H

#include "base/map.h"
#include "task/ranks/config.h"
#include "task/ranks/ranks.h"

enum { RESULT_INDICES = 64 }; /* columns that can be merged at once */

struct result_value {
    const char *text; /* NULL: an empty cell */
    bool number;
};

struct result_row {
    const char *name;
    struct result_value *values; /* of the indices that were known when it was read */
    size_t value_count;
    size_t api;   /* the first of the wanted ones that the name belongs to */
    size_t order; /* in the file */
};

struct result {
    int64_t rank;
    const char *indices[RESULT_INDICES]; /* titles, in the table's order */
    size_t index_count;
    struct result_row *rows; /* those that are wanted, in the order of the wanted APIs */
    size_t count, capacity;
    struct map names;
    bool *found; /* one a wanted API: whether it has a row */
};

/* Reads one file into result, which other parts may already have filled. PLUMB_E_UNSUPPORTED for a
 * table of checksums. */
enum plumb_code result_read(struct result *result, const char *folder, const struct rank_file *file,
                            const struct config *config, struct arena *arena,
                            struct plumb_error *err);

/* Puts the rows into the order of the wanted APIs. */
void result_order(struct result *result);

void result_free(struct result *result);

#endif
