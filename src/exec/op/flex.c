/* Flex attention. Its functions of a score cannot be in a call; what they come to can: a mask, a
 * bias, a softcap. */
#include "exec/op/attention.h"

static void run_flex(struct op *o)
{
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key"), *v = arg_tensor(o, "value");
    struct val *mask = arg_tensor(o, "mask"), *bias = arg_tensor(o, "bias"), *lse = NULL;
    if (!q || !k || !v)
        return;
    if (arg_given(o, "score_mod")) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: score_mod is a function; plumb.flex_arguments turns it into a bias or a "
                "softcap",
                o->call->name);
        return;
    }
    const struct attention how = {.scale = attention_scale(o, q->rank ? q->shape[q->rank - 1] : 1),
                                  .softcap = arg_number(o, "softcap"),
                                  .unseen_lse = -INFINITY};
    if (how.softcap < 0 || (bias && !bias->f) || (mask && mask->f)) {
        op_fail(o, PLUMB_E_ARG, "%s: a softcap is above 0, a bias of floats, a mask of bool",
                o->call->name);
        return;
    }
    if (mask && bias)
        bias = v_where(o, mask, bias, v_number(o, -INFINITY));
    op_return(o, v_attention(o, q, k, v, bias ? bias : mask, &how, &lse));
    if (arg_bool(o, "return_lse"))
        op_return(o, lse);
}

const struct op_def op_flex[] = {
    {"flex_attention",
     "flex_attention(Tensor query, Tensor key, Tensor value, any score_mod=None, Tensor? "
     "mask|block_mask=None, float? scale=None, bool enable_gqa=False, bool return_lse=False, any "
     "kernel_options=None, *, Tensor? bias=None, number softcap=0)",
     run_flex, 0, "softmax(softcap(scale * query key^T) + bias, where mask) value"},
    {0},
};
