/* Walking tensors row by row along a dimension, whichever one it is: the rows handed out lie
 * contiguously in memory. */
#ifndef OP_ROWS_H
#define OP_ROWS_H

#include "exec/op/op.h"

/* The arrays of a walk, all of one shape, and, within it, one row of each. Those that are not used
 * are NULL. Outputs keep what they hold, so that a row can be added to, unless they are `fresh`. */
struct row {
    const real *in[3];
    real *out[2];
    struct val *x; /* in place of in[0], perhaps unread; rows have in[0] */
    const int64_t *int_in;
    int64_t *int_out;
    bool fresh; /* every element of the outputs is written, none is read */
    int64_t n;  /* its length */
    int64_t at; /* its number */
};

typedef void row_fn(const struct row *row, void *context);

/* Calls fn for every row along the middle of [outer][length][inner]; row number outer * inner +
 * column. False when the op has failed. */
bool each_row(struct op *o, struct span3 span, const struct row *arrays, row_fn *fn, void *context);

/* Calls fn for every channel of [batch][channels][place]: rows of batch * place elements. */
bool each_channel(struct op *o, int64_t batch, int64_t channels, int64_t place,
                  const struct row *arrays, row_fn *fn, void *context);

#endif
