/* The cross entropy of a linear layer's output, without keeping that. */
#include "exec/op/loss.h"
#include "exec/op/matmul.h"

static void run_linear_cross_entropy(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *w = arg_tensor(o, "linear_weight"),
               *bias = arg_tensor(o, "linear_bias");
    if (!x || !w)
        return;
    if (w->rank != 2 || x->rank > 2) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: more than one dimension of classes or samples",
                o->call->name);
        return;
    }
    struct val *y = v_matmul_t(o, x, w);
    if (y && bias)
        y = v_add(o, y, matmul_operand(o, bias, y->dtype));
    if (y)
        op_return(o, loss_cross_entropy(o, v_log_softmax(o, y, y->rank == 1 ? 0 : 1)));
}

const struct op_def op_linear_loss[] = {
    {"linear_cross_entropy",
     "linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, Tensor? "
     "linear_bias=None, Tensor? weight=None, str reduction='mean', int ignore_index=-100, number "
     "label_smoothing=0.0, any options=None)",
     run_linear_cross_entropy, 0, "cross_entropy(input @ linear_weight^T + linear_bias, target)"},
    {0},
};
