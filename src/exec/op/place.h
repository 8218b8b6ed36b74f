/* What the families that move elements share: checked shapes, maps of places, and writing into
 * them. */
#ifndef OP_PLACE_H
#define OP_PLACE_H

#include "exec/op/op.h"

/* The number of elements of a shape; -1 (and failed) when a size is negative or there are absurdly
 * many. */
int64_t shape_count(struct op *o, unsigned rank, const int64_t *shape);

/* C-order strides. The shape has been checked. */
void shape_strides(unsigned rank, const int64_t *shape, int64_t *stride);

/* start counted from the end when negative and clamped as Python's slices do; how many elements
 * start:stop:step takes of a dimension. step > 0. */
int64_t slice_length(int64_t size, int64_t *start, int64_t stop, int64_t step);

/* index, counted from the end when negative; -1 (and failed) outside [-size, size). */
int64_t index_wrap(struct op *o, int64_t index, int64_t size);

/* The integer index tensor of the argument: int64, or int32, which devices take too. */
struct val *arg_index(struct op *o, const char *name);

/* A list of integers of any length, a lone integer, or a tensor of integers. n is 0 for None. */
const int64_t *arg_many_ints(struct op *o, const char *name, size_t *n);

/* out[j0, j1, ...] = x[index[0][j0], index[1][j1], ...]; index[d] NULL: all of dimension d; a
 * negative place gives 0. shape[d] is the length of index[d] and is set here where that is NULL. */
const int64_t *pick_map(struct op *o, const struct val *x, int64_t *shape,
                        const int64_t *const *index);
struct val *v_pick(struct op *o, struct val *x, int64_t *shape, const int64_t *const *index);
struct val *v_pick_dim(struct op *o, struct val *x, unsigned dim, int64_t length,
                       const int64_t *index);

/* x, but with out[map[k]] = source[k] for all k in order (negative places are left out). source has
 * x's dtype. The gradient of every source[k] is that of its place, as torch takes it. */
struct val *v_place(struct op *o, struct val *x, struct val *source, const int64_t *map);
/* x with source[k] added at map[k]. */
struct val *v_place_add(struct op *o, struct val *x, struct val *source, const int64_t *map);

#endif
