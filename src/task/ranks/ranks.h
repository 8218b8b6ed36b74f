/* The result files of ranks in a folder. */
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

/* compare_result[_graph2]_rank3_20260101000000_part_1.csv, and what its name says. */
struct rank_file {
    const char *name;
    int64_t rank;
    int64_t graph; /* -1: the rank has only one */
    char stamp[15];
    unsigned version; /* of several results of one second */
    unsigned part;    /* of a result in several files */
    bool xlsx;
};

struct rank_files {
    struct rank_file *list; /* by rank and graph; of each its newest result, parts in order */
    size_t count, capacity;
    size_t ranks; /* different ones */
    size_t older; /* files that were left out for newer ones */
};

/* False when the name is not that of a rank's result. */
bool rank_parse(const char *name, struct rank_file *file);

enum plumb_code rank_find(struct rank_files *files, const char *folder, struct arena *arena,
                          struct plumb_error *err);

#endif
