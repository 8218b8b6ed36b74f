/* What the fused operators of torch_npu share. */
#ifndef OP_FUSED_H
#define OP_FUSED_H

#include "exec/op/op.h"

#define fused_attention OP_SYM(fused_attention)

/* npu_fusion_attention: the running call's arguments in, its three results out. */
void fused_attention(struct op *o);

static inline bool takes_floats(struct op *o, const struct val *x)
{
    if (x && !x->f)
        op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                plumb_dtype_info(x->dtype)->name);
    return x && x->f && !o->failed;
}

#endif
