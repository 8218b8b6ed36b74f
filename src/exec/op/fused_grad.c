/* Losses and gradients that torch_npu has as operators of their own. */
#include "exec/op/fold.h"
#include "exec/op/fused.h"
#include "exec/op/loss.h"
#include "exec/op/norm.h"
#include "exec/op/pullback.h"

/* ---- Cross entropy --------------------------------------------------------------------------- */

static bool no_zloss(struct op *o)
{
    const bool wanted = arg_number(o, "lse_square_scale_for_zloss") != 0 ||
                        (arg_raw(o, "return_zloss") && arg_bool(o, "return_zloss")) ||
                        (arg_raw(o, "grad_zloss") && arg_given(o, "grad_zloss"));
    if (wanted)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the z-loss is not known", o->call->name);
    return !o->failed;
}

static bool is_matrix(struct op *o, const struct val *x)
{
    if (takes_floats(o, x) && x->rank != 2)
        op_fail(o, PLUMB_E_ARG, "%s: the input is [samples, classes], not of %u dimensions",
                o->call->name, x->rank);
    return x && !o->failed;
}

/* The loss, log softmax(input), and the two results of the z-loss, which are empty without it. */
static void run_cross_entropy(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!no_zloss(o) || !is_matrix(o, x))
        return;
    struct val *logp = v_log_softmax(o, x, 1);
    op_return(o, loss_cross_entropy(o, logp));
    op_return(o, logp);
    for (int k = 0; k < 2; k++)
        op_return(o, val_new(o, PLUMB_F32, 1, (const int64_t[]){0}));
}

/* With l the gradient of log softmax: l - softmax * (sum of l over the classes). */
static void run_cross_entropy_backward(struct op *o)
{
    struct val *logp = arg_tensor(o, "log_prob"), *grad = arg_tensor(o, "grad_loss"), *l = NULL;
    struct pullback p;
    if (!no_zloss(o) || !is_matrix(o, logp) || !pull_begin(o, &p, 1, &logp))
        return;
    struct val *loss = loss_cross_entropy(o, logp);
    if (!loss || !pull_end(o, &p, 1, &loss, &grad, &l))
        return;
    struct val *total = v_sum(o, l, 1 << 1, true);
    op_return(o, v_sub(o, l, v_mul(o, v_exp(o, v_detach(o, logp)), total)));
}

/* ---- Root mean square ------------------------------------------------------------------------ */

/* By the 1 / sqrt(mean(x^2) + epsilon) that the forward operator returned. */
static void run_rms_norm_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "dy"), *x = arg_tensor(o, "input"),
               *gamma = arg_tensor(o, "gamma"), *rstd = arg_tensor(o, "rstd");
    if (!takes_floats(o, x) || !takes_floats(o, gamma) || !takes_floats(o, g) ||
        !takes_floats(o, rstd))
        return;
    bool fits = gamma->rank >= 1 && gamma->rank <= x->rank && same_shape(g, x);
    int64_t rows = 1;
    for (unsigned d = 0; fits && d < x->rank; d++) {
        const bool in_row = d + gamma->rank >= x->rank;
        if (in_row)
            fits = gamma->shape[d + gamma->rank - x->rank] == x->shape[d];
        else
            rows = size_times(rows, x->shape[d]);
    }
    if (!fits || rstd->count != rows) {
        op_fail(o, PLUMB_E_ARG,
                "%s: gradient, input, gamma and rstd do not have the shapes of one call",
                o->call->name);
        return;
    }
    const struct norm norm = {.layout = {1, rows, gamma->count, 1, gamma->count}, .rstd = rstd->f};
    struct val *dx = val_like(o, x, x->dtype), *dgamma = val_like(o, gamma, PLUMB_F32);
    if (dx && dgamma &&
        norm_gradient(o, &norm, x, gamma->f, g->f,
                      (struct norm_grads){.x = dx->f, .weight = dgamma->f})) {
        op_return(o, dx);
        op_return(o, dgamma);
    }
}

/* ---- Attention ------------------------------------------------------------------------------- */

/* Gradients of query, key, value and pse; the last is empty where there is no pse. */
static void run_attention_backward(struct op *o)
{
    struct val *in[4] = {arg_tensor(o, "query"), arg_tensor(o, "key"), arg_tensor(o, "value"),
                         arg_tensor(o, "pse")};
    struct val *grad = arg_tensor(o, "dy"), *to[4] = {0};
    struct pullback p;
    if (!grad || !pull_begin(o, &p, 4, in))
        return;
    fused_attention(o);
    if (o->failed)
        return;
    o->result->n_outputs = 0;
    if (!pull_end(o, &p, 1, &o->outputs[0], &grad, to))
        return;
    for (int k = 0; k < 3; k++)
        op_return(o, to[k]);
    op_return(o, to[3] ? to[3] : val_new(o, in[0]->dtype, 1, (const int64_t[]){0}));
}

#define SMOOTHED                                                                                   \
    "any reduction='mean', int ignore_index=-100, number label_smoothing=0.0, number "             \
    "lse_square_scale_for_zloss=0.0"

const struct op_def op_fused_grad[] = {
    {"npu_cross_entropy_loss",
     "npu_cross_entropy_loss(Tensor input|self, Tensor target, Tensor? weight=None, " SMOOTHED
     ", bool return_zloss=False)",
     run_cross_entropy, 0, "-w[y] log softmax(x)[y], and log softmax(x)"},
    {"npu_cross_entropy_loss_backward",
     "npu_cross_entropy_loss_backward(Tensor grad_loss, Tensor log_prob, Tensor target, Tensor? "
     "weight=None, Tensor? grad_zloss=None, Tensor? lse_for_zloss=None, " SMOOTHED ")",
     run_cross_entropy_backward, OP_NO_GRAD, "the gradient of the input, by log softmax(x)"},
    {"npu_rms_norm_backward",
     "npu_rms_norm_backward(Tensor dy|grad, Tensor input|self|x, Tensor gamma, Tensor rstd)",
     run_rms_norm_backward, OP_NO_GRAD, "gradients of input and gamma, by rstd"},
    {"npu_fusion_attention_grad npu_fusion_attention_grad_v2",
     "npu_fusion_attention_grad(Tensor query, Tensor key, Tensor value, Tensor dy, int head_num, "
     "str input_layout, *, Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, "
     "Tensor? softmax_max=None, Tensor? softmax_sum=None, Tensor? softmax_in=None, Tensor? "
     "attention_in=None, float? scale|scale_value=None, float keep_prob=1.0, int "
     "pre_tockens|pre_tokens=2147483647, int next_tockens|next_tokens=2147483647, int "
     "inner_precise=0, int seed=0, int offset=0, int numels=0, int[]? prefix=None, float[]? "
     "actual_seq_qlen=None, float[]? actual_seq_kvlen=None, int sparse_mode=0, bool "
     "gen_mask_parallel=True, bool sync=False, int pse_type=1, any q_start_idx=None, any "
     "kv_start_idx=None)",
     run_attention_backward, OP_NO_GRAD, "gradients of query, key, value and pse"},
    {0},
};
