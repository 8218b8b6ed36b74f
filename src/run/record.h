/* From the rows of a dump.json to records. */
#ifndef RUN_RECORD_H
#define RUN_RECORD_H

#include "run/run.h"

struct place {
    int64_t step, rank; /* -1: unknown */
};

struct record_maker {
    struct plumb_run *run;
    const struct dump_tree *tree;
    struct place place;

    /* The maker's own. */
    struct map calls;    /* APIs without their number, to backward calls so far */
    size_t api;          /* that prefix belongs to, + 1 */
    const char *prefix;  /* of that API with its number replaced, or NULL when it stays */
    bool payloads;       /* some data file of the tree is there */
    bool condensed;      /* or the condensed form of one */
    struct listing kept; /* what the capture kept of tensors in place of their files */
    struct map names;    /* of these, to their numbers */
};

enum plumb_code record_begin(struct record_maker *maker);
enum plumb_code record_add(struct record_maker *maker, const struct dump_row *row);
void record_end(struct record_maker *maker);

#endif
