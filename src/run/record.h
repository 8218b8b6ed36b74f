/* From the rows of a dump.json to records. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "run/run.h"

struct place {
    int64_t step, rank; /* -1: unknown */
};

struct record_maker {
    struct plumb_run *run;
    struct place place;
    size_t first; /* of the run's records: as many as there were before */

    /* The maker's own. */
    const struct dump_tree *tree;
    struct map calls;       /* APIs without their number, to backward calls so far */
    size_t api;             /* that prefix belongs to, + 1 */
    const char *prefix;     /* of that API with its number replaced, or NULL when it stays */
    const char *dtype_text; /* of the row before, and what it is */
    enum plumb_dtype dtype;
    bool named;          /* some row has the name of a data file */
    bool payloads;       /* some data file of the tree is there */
    bool condensed;      /* or the condensed form of one */
    struct listing kept; /* what the capture kept of tensors in place of their files */
    struct map names;    /* of these, to their numbers */
};

/* A record a row: a dump_take with the maker as its context. */
enum plumb_code record_take(void *context, const struct dump_tree *tree,
                            const struct dump_row *rows, size_t count);

/* After the last row: who called, and which data files are there. PLUMB_E_NOMEM at worst. */
enum plumb_code record_end(struct record_maker *maker);

void record_maker_free(struct record_maker *maker);

#endif
