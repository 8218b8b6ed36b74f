/* Weighted sums along a dimension: what changes of resolution are made of. */
#ifndef OP_BLEND_H
#define OP_BLEND_H

#include "exec/op/op.h"

#define v_blend OP_SYM(v_blend)
#define blend_linear OP_SYM(blend_linear)
#define blend_cubic OP_SYM(blend_cubic)
#define blend_area OP_SYM(blend_area)
#define blend_smooth OP_SYM(blend_smooth)

/* How one dimension changes. scale: given by the caller, 0 if the sizes decide. */
struct axis {
    int64_t from, to;
    double scale;
    bool align_corners;
};

struct blend;

struct blend *blend_linear(struct op *o, const struct axis *a);
struct blend *blend_cubic(struct op *o, const struct axis *a);
/* Element j is the mean of the inputs that it covers, at least in part. */
struct blend *blend_area(struct op *o, const struct axis *a);
/* Linear or cubic weights as wide as the output's step, so that a smaller picture has no jags. */
struct blend *blend_smooth(struct op *o, const struct axis *a, bool cubic);

/* x with its dimension dim blended. */
struct val *v_blend(struct op *o, struct val *x, unsigned dim, struct blend *b);

#endif
