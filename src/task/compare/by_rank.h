/* Two dumps of several ranks in one table, compared one rank after the other: memory is that of a
 * rank, whatever their number. */
#ifndef COMPARE_BY_RANK_H
#define COMPARE_BY_RANK_H

#include "plumb/compare.h"

struct by_rank {
    const char *target, *golden;
    const struct plumb_compare_options *options;
    /* Takes rows of the table in their order; the columns are the same every time. */
    enum plumb_code (*rows)(void *context, struct plumb_table *rows, struct plumb_error *err);
    /* Of an open run: what it warns of. */
    void (*opened)(void *context, const struct plumb_run *run, int side);
    plumb_progress_fn *progress; /* of ranks; NULL: none */
    void *context;
};

/* Fills `out` as plumb_compare of both dumps as a whole does, but for the table, the outcomes and
 * the rows that it names by number. *done stays false, without an error, when that cannot be known
 * from ranks alone: a record has no partner, ranks or steps are not the same on both sides, ranks
 * are not of one kind, or options ask for more. Rows that were taken until then are void. */
enum plumb_code compare_by_rank(struct plumb_comparison *out, const struct by_rank *what,
                                bool *done, struct plumb_error *err);

#endif
