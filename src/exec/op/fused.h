/* What the fused operators of torch_npu share. */
#ifndef OP_FUSED_H
#define OP_FUSED_H

#include "exec/op/op.h"

#define fused_attention OP_SYM(fused_attention)
#define fused_gelu OP_SYM(fused_gelu)
#define fused_halves OP_SYM(fused_halves)
#define fused_rotate OP_SYM(fused_rotate)

/* npu_fusion_attention: the running call's arguments in, its three results out. */
void fused_attention(struct op *o);

/* The first and the second half of x along a dimension; false (and failed) when there are none. */
bool fused_halves(struct op *o, struct val *x, int64_t dim, struct val **a, struct val **b);

/* gelu by erf, or by tanh. */
struct val *fused_gelu(struct op *o, struct val *x, bool tanh_form);

/* Rotary embedding: cosine x + sine (-x2, x1) of the halves x1 and x2 of the last dimension, or,
 * interleaved, of neighbours. */
struct val *fused_rotate(struct op *o, struct val *x, struct val *cosine, struct val *sine,
                         bool interleave);

static inline bool takes_floats(struct op *o, const struct val *x)
{
    if (x && !x->f)
        op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                plumb_dtype_info(x->dtype)->name);
    return x && x->f && !o->failed;
}

#endif
