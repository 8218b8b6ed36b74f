/* What reductions share: which dimensions, and the shape that is left. */
#ifndef OP_FOLD_H
#define OP_FOLD_H

#include "exec/op/op.h"

/* x with the dimensions of a reduction brought together: [outer][length][inner]. */
struct fold {
    struct val *x; /* the input, permuted if its reduced dimensions were apart */
    struct span3 span;
    unsigned rank; /* of the result */
    int64_t shape[OP_RANK];
};

/* a * b, or the largest number if that is too much: a shape with such a product is refused when
 * a value of it is made, but it may be computed before, next to a dimension of 0. */
static inline int64_t size_times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* The mask with 0 replaced by all dimensions of x. */
uint64_t fold_mask(const struct val *x, uint64_t dims);

/* The shape that a reduction leaves. Returns its rank. */
unsigned fold_shape(const struct val *x, uint64_t dims, bool keepdim, int64_t *shape);

/* Prepares a reduction over dims (0: all). False when the op has failed. */
bool fold_begin(struct op *o, struct val *x, uint64_t dims, bool keepdim, struct fold *fold);

/* A result of the fold, elements zeroed. */
struct val *fold_new(struct op *o, const struct fold *fold, enum plumb_dtype dtype);

/* A copy of the span in the call's memory, for a backward. */
const struct span3 *span_keep(struct op *o, struct span3 span);

/* The dims of an int[]? argument; None and [] mean all (0). */
uint64_t arg_mask(struct op *o, const char *name, const struct val *x);

/* The largest (most) or smallest values over dims (0: all); equal ones share the gradient
 * evenly. */
struct val *v_extreme(struct op *o, struct val *x, uint64_t dims, bool keepdim, bool most);

/* out, a value of each row of the span that occurs in that row of x, with a backward: the elements
 * that equal it share the gradient evenly; NaN does so among NaN when nan_too, otherwise nobody has
 * anything to share and all get NaN. */
struct val *v_share(struct op *o, struct val *out, struct val *x, struct span3 span, bool nan_too);

#endif
