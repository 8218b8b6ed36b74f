/* The windows of pooling: which elements each has, by dimension. */
#ifndef OP_POOL_H
#define OP_POOL_H

#include "exec/op/window.h"

/* The windows along one dimension: elements start, start + step, ... before end. `size` is what a
 * mean divides by (before windows were cut at the padding, if that counts). */
struct axis {
    int64_t in, out, step;
    int64_t *start, *end, *size;
};

struct pool {
    struct axis axis[WINDOW_DIMS];
    int64_t planes, in_count, out_count;
    int64_t divisor; /* 0: the size of the window */
};

/* A window, by its number in each dimension. */
struct spot {
    int64_t at[WINDOW_DIMS];
};

/* kernel_size, stride, padding, dilation and ceil_mode of the running call. */
struct sliding {
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], pad[WINDOW_DIMS], dilation[WINDOW_DIMS];
    bool ceil, count_padding;
};

bool pool_read(struct op *o, unsigned nd, struct sliding *s);

/* Windows that slide over the last nd dimensions of x, by the arguments of the call; for means with
 * count_include_pad and divisor_override. */
struct pool *pool_sliding(struct op *o, const struct val *x, unsigned nd, bool mean);

/* Windows that share the dimensions out evenly: to output_size, or to the last nd sizes of `like`
 * when that is given. */
struct pool *pool_adaptive(struct op *o, const struct val *x, unsigned nd, const struct val *like);

/* A value of the pool's shape; sets the counts, too. */
struct val *pool_result(struct op *o, struct pool *p, const struct val *x, unsigned nd,
                        enum plumb_dtype dtype);

/* Windows that one element may lie in. */
int64_t pool_overlap(const struct pool *p);

/* To the next window of a plane, in the order of the output. */
void pool_next(const struct pool *p, struct spot *s);

#endif
