/* Complex numbers are pairs of real ones: a complex tensor is a value with one more dimension, the
 * last, of real and imaginary parts. What is made of the blocks of op.h therefore has the gradients
 * that PyTorch gives: that of the real part, plus i times that of the imaginary part.
 *
 * Most operators need not know. What only moves, adds or averages elements does so with each part
 * by itself; sums of products (op_form) are sums of products of parts. parts_run() runs an operator
 * of real numbers so, as often as it takes, and puts the results together. Others have a row of
 * their own under the name Complex.NAME. */
#ifndef OP_PARTS_H
#define OP_PARTS_H

#include "exec/op/op.h"

/* The type of the parts; what is not complex is its own part. */
static inline enum plumb_dtype part_dtype(enum plumb_dtype dtype)
{
    return dtype == PLUMB_C64 ? PLUMB_F32 : dtype == PLUMB_C128 ? PLUMB_F64 : dtype;
}

static inline enum plumb_dtype complex_dtype(enum plumb_dtype part)
{
    return part == PLUMB_F64 ? PLUMB_C128 : PLUMB_C64;
}

op_in_parts_fn op_in_parts;

/* Whether an operator that knows real numbers only is called with complex ones. */
bool parts_wanted(const struct op *o, const struct op_def *def);
void parts_run(struct op *o, const struct op_def *def);

/* What leaf->part says of a tensor, the same value each time it is asked for. */
struct val *leaf_part(struct op *o, struct op_leaf *leaf);

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* The real (0) or imaginary (1) parts of z, whose last dimension they are. */
struct val *v_part(struct op *o, struct val *z, unsigned part);
/* The other way round. Types are promoted, shapes must be the same. */
struct val *v_join(struct op *o, struct val *re, struct val *im);
/* |z|; its gradient at 0 is 0. */
struct val *v_size(struct op *o, struct val *z);
/* x itself when it is complex, otherwise with imaginary parts of 0. */
struct val *v_complex(struct op *o, struct val *x);
/* A value whose last dimension is that of parts, as complex numbers. */
void op_return_complex(struct op *o, struct val *z);

#endif
