/* Dumps of graphs as runs: a record for each tensor that an operator of GE, or a node of FX, read
 * or wrote. */
#ifndef BLAME_GRAPHS_H
#define BLAME_GRAPHS_H

#include "task/blame/parts.h"

struct ge_file;
struct ge_tensor;

/* Where the values of a record are: of a GE file; of an FX file, which is the record's path, there
 * is none. */
struct graph_detail {
    const struct ge_file *ge;
    const struct ge_tensor *tensor;
};

bool graphs_are(const char *path);

/* Opens a dump as a run; calls are "MatMulV2.MatMul", or "mm-aten.mm.default", steps are tokens.
 * With golden, *other gets a run of the partners of its records, by the same names. Free both,
 * *other first. */
enum plumb_code graphs_open(const char *target, const char *golden, struct plumb_run **out,
                            struct plumb_run **other, struct plumb_error *err);

/* Whether a run is one of these. */
bool graphs_is(const struct plumb_run *run);

#endif
