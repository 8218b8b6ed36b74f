/* Tables of single ranks, put side by side. */
#ifndef PLUMB_MERGE_H
#define PLUMB_MERGE_H

#include "plumb/progress.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_merge {
    struct plumb_sheet *sheets; /* a table an index ("Max diff"): NPU Name, rank0, rank1, ... */
    size_t count;
    size_t ranks;      /* that are in the tables */
    size_t unreadable; /* files that are not, for the reasons in notes */
    char *notes;       /* lines for people, each ended by a newline; NULL when there is none */
};

struct plumb_merge_options {
    const char *config; /* a YAML file with the lists api and compare_index; NULL: all of both */
    plumb_progress_fn *progress; /* of files, then of rows of the sheets; NULL: none */
    void *progress_context;
};

/* Reads compare_result_rank{N}_{14 digits}.xlsx and .csv of a folder, the newest of each rank.
 * options NULL: all zero. A name that a rank does not have is an empty cell there. Cells N/A,
 * unsupported and Nan become the largest values of both sides. Refuses a folder with fewer than
 * two ranks, and results that are checksums. Free with plumb_merge_free. */
enum plumb_code plumb_merge_results(struct plumb_merge *out, const char *folder,
                                    const struct plumb_merge_options *options,
                                    struct plumb_error *err);
void plumb_merge_free(struct plumb_merge *merge);

#ifdef __cplusplus
}
#endif
#endif
