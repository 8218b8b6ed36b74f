/* Losses that are composed of elementwise formulas; those over classes are in loss_class.c. */
#include "exec/op/loss.h"
#include "exec/op/elem.h"

#include <string.h>

/* ---- Reduction ------------------------------------------------------------------------------- */

enum reduction loss_reduction(struct op *o)
{
    /* The old pair of flags counts when either is given. */
    if (arg_given(o, "size_average") || arg_given(o, "reduce")) {
        const bool average = !arg_given(o, "size_average") || arg_bool(o, "size_average");
        const bool reduce = !arg_given(o, "reduce") || arg_bool(o, "reduce");
        return !reduce ? REDUCE_NONE : average ? REDUCE_MEAN : REDUCE_SUM;
    }
    const struct plumb_arg *arg = arg_raw(o, "reduction");
    if (!arg || arg->kind == PLUMB_ARG_NONE)
        return REDUCE_MEAN;
    if (arg->kind == PLUMB_ARG_INT && arg->integer >= 0 && arg->integer <= 2)
        return (enum reduction)arg->integer;
    if (arg->kind == PLUMB_ARG_TEXT) {
        static const char *const names[] = {"none", "mean", "sum"};
        for (int k = 0; k < 3; k++)
            if (strcmp(arg->text, names[k]) == 0)
                return (enum reduction)k;
        if (strcmp(arg->text, "elementwise_mean") == 0)
            return REDUCE_MEAN;
    }
    op_fail(o, PLUMB_E_ARG, "%s: reduction is one of none, mean, sum", o->call->name);
    return REDUCE_NONE;
}

struct val *loss_reduce(struct op *o, struct val *loss, enum reduction how)
{
    switch (how) {
    case REDUCE_MEAN:
        return v_mean(o, loss, 0, false);
    case REDUCE_SUM:
        return v_sum(o, loss, 0, false);
    default:
        return loss;
    }
}

static void finish(struct op *o, struct val *loss)
{
    op_return(o, loss_reduce(o, loss, loss_reduction(o)));
}

/* ---- Distances ------------------------------------------------------------------------------- */

static struct val *difference(struct op *o)
{
    return v_sub(o, arg_tensor(o, "input"), arg_tensor(o, "target"));
}

static void run_l1(struct op *o)
{
    finish(o, v_abs(o, difference(o)));
}

static void run_mse(struct op *o)
{
    finish(o, v_square(o, difference(o)));
}

/* d^2 / 2 below delta, and the line that goes on from there; scaled by 1/beta for smooth L1. */
static struct val *huber(struct op *o, struct val *d, double delta)
{
    struct val *size = v_abs(o, d);
    struct val *inside = v_compare(o, CMP_LT, size, v_number(o, delta));
    struct val *parabola = v_scale(o, v_square(o, d), 0.5);
    struct val *line = v_scale(o, v_offset(o, size, -0.5 * delta), delta);
    return v_where(o, inside, parabola, line);
}

static void run_huber(struct op *o)
{
    const double delta = arg_number(o, "delta");
    if (!(delta > 0)) {
        op_fail(o, PLUMB_E_ARG, "huber_loss: delta is %g, but must be positive", delta);
        return;
    }
    finish(o, huber(o, difference(o), delta));
}

static void run_smooth_l1(struct op *o)
{
    const double beta = arg_number(o, "beta");
    if (beta < 0)
        op_fail(o, PLUMB_E_ARG, "smooth_l1_loss: beta is %g, but must not be negative", beta);
    else if (beta == 0)
        run_l1(o);
    else
        finish(o, v_scale(o, huber(o, difference(o), beta), 1 / beta));
}

/* ---- Likelihoods ----------------------------------------------------------------------------- */

static void bce_backward(struct op *o, struct val *out)
{
    const struct val *x = out->in[0], *t = out->in[1];
    real *dx = val_grad(o, out->in[0]), *dt = val_grad(o, out->in[1]);
    for (int64_t k = 0; dx && k < x->count; k++) {
        const real bottom = fmax((1 - x->f[k]) * x->f[k], R(1e-12F)); /* as PyTorch has it */
        dx[k] += out->grad[k] * (x->f[k] - t->f[k]) / bottom;
    }
    for (int64_t k = 0; dt && k < x->count; k++) {
        const real p = fmax(log(x->f[k]), -R(100)), q = fmax(log1p(-x->f[k]), -R(100));
        dt[k] += out->grad[k] * (q - p);
    }
}

/* -(t log x + (1-t) log(1-x)); logarithms are cut at -100, as PyTorch does. */
static void run_bce(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target");
    if (!x || !t)
        return;
    if (!same_shape(x, t) || !x->f || !t->f) {
        op_fail(o, PLUMB_E_ARG, "binary_cross_entropy: input and target differ in shape");
        return;
    }
    struct val *y = val_like(o, x, x->dtype);
    for (int64_t k = 0; y && k < x->count; k++) {
        if (!(x->f[k] >= 0 && x->f[k] <= 1)) {
            op_fail(o, PLUMB_E_ARG, "binary_cross_entropy: input %lld is %g, not within 0 and 1",
                    (long long)k, (double)x->f[k]);
            return;
        }
        const real p = fmax(log(x->f[k]), -R(100)), q = fmax(log1p(-x->f[k]), -R(100));
        y->f[k] = (t->f[k] - 1) * q - t->f[k] * p;
    }
    struct val *loss = val_node(o, y, bce_backward, x, t, NULL, NULL);
    if (arg_given(o, "weight"))
        loss = v_mul(o, loss, arg_tensor(o, "weight"));
    finish(o, loss);
}

/* (1-t) x + (1 + (p-1) t) log(1 + exp(-x)), with log(1 + exp(-x)) = -logsigmoid(x) */
static void run_bce_logits(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target");
    struct val *rest = v_neg(o, v_logsigmoid(o, x));
    if (arg_given(o, "pos_weight")) {
        struct val *more = v_offset(o, arg_tensor(o, "pos_weight"), -1);
        rest = v_mul(o, v_offset(o, v_mul(o, more, t), 1), rest);
    }
    struct val *loss = v_add(o, v_mul(o, v_offset(o, v_neg(o, t), 1), x), rest);
    if (arg_given(o, "weight"))
        loss = v_mul(o, loss, arg_tensor(o, "weight"));
    finish(o, loss);
}

static void kl_backward(struct op *o, struct val *out)
{
    const struct val *x = out->in[0], *t = out->in[1];
    real *dx = val_grad(o, out->in[0]), *dt = val_grad(o, out->in[1]);
    for (int64_t k = 0; dx && k < x->count; k++)
        dx[k] -= out->grad[k] * t->f[k];
    /* At 0 the slope is not finite; PyTorch says NaN. */
    for (int64_t k = 0; dt && k < x->count; k++)
        dt[k] += out->grad[k] * (t->f[k] == 0 ? R(NAN) : log(t->f[k]) + 1 - x->f[k]);
}

/* t (log t - x), 0 where t is 0 */
static struct val *kl_plain(struct op *o, struct val *x, struct val *t)
{
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!broadcast_shape(o, x, t, &rank, shape))
        return NULL;
    const enum plumb_dtype dtype = promote(x, t);
    x = v_cast(o, v_broadcast(o, x, rank, shape), dtype);
    t = v_cast(o, v_broadcast(o, t, rank, shape), dtype);
    struct val *y = val_like(o, x, dtype);
    if (!y || !t)
        return NULL;
    for (int64_t k = 0; k < y->count; k++) {
        const real v = t->f[k];
        y->f[k] = (v == 0 ? 0 : v * log(v)) - v * x->f[k];
    }
    return val_node(o, y, kl_backward, x, t, NULL, NULL);
}

static void run_kl_div(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target"), *loss;
    if (arg_bool(o, "log_target"))
        loss = v_mul(o, v_exp(o, t), v_sub(o, t, x));
    else
        loss = kl_plain(o, v_float(o, x), v_float(o, t));
    const char *how = arg_text(o, "reduction");
    if (how && strcmp(how, "batchmean") == 0 && x && x->rank && x->shape[0])
        op_return(o, v_scale(o, v_sum(o, loss, 0, false), 1.0 / (double)x->shape[0]));
    else
        finish(o, loss);
}

#define HALF_LOG_2PI REAL_C(0.918938533204672741780329736405617640)

/* exp(x) - t x, or x - t log(x + eps); full adds Stirling's approximation of log t! where t > 1. */
static void run_poisson_nll(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target"), *loss;
    if (arg_bool(o, "log_input"))
        loss = v_sub(o, v_exp(o, x), v_mul(o, t, x));
    else
        loss = v_sub(o, x, v_mul(o, t, v_log(o, v_offset(o, x, arg_number(o, "eps")))));
    if (arg_bool(o, "full")) {
        struct val *stirling =
            v_add(o, v_sub(o, v_mul(o, t, v_log(o, t)), t), v_scale(o, v_log(o, t), 0.5));
        stirling = v_add(o, stirling, v_constant(o, HALF_LOG_2PI));
        struct val *large = v_compare(o, CMP_GT, t, v_number(o, 1));
        loss = v_add(o, loss, v_where(o, large, stirling, v_number(o, 0)));
    }
    finish(o, loss);
}

/* (log v + (x-t)^2 / v) / 2 with v at least eps, through which no gradient is lost */
static void run_gaussian_nll(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target"), *v = arg_tensor(o, "var");
    if (!x || !t || !v)
        return;
    const unsigned rank = x->rank;
    if (!same_shape(v, x) && v->rank + 1 == rank)
        v = v_unsqueeze(o, v, v->rank);
    struct val *raised = v_maximum(o, v_detach(o, v), v_number(o, arg_number(o, "eps")));
    struct val *shift = v_sub(o, raised, v_detach(o, v));
    v = v_add(o, v, shift);
    struct val *loss =
        v_scale(o, v_add(o, v_log(o, v), v_div(o, v_square(o, v_sub(o, x, t)), v)), 0.5);
    if (arg_bool(o, "full"))
        loss = v_add(o, loss, v_constant(o, HALF_LOG_2PI));
    finish(o, loss);
}

/* ---- Margins --------------------------------------------------------------------------------- */

/* max(0, -t (x1 - x2) + margin) */
static void run_margin_ranking(struct op *o)
{
    struct val *d = v_sub(o, arg_tensor(o, "input1"), arg_tensor(o, "input2"));
    struct val *z =
        v_offset(o, v_neg(o, v_mul(o, arg_tensor(o, "target"), d)), arg_number(o, "margin"));
    finish(o, v_relu(o, z));
}

/* x where t = 1, max(0, margin - x) where t = -1, and their sum elsewhere: each part drops out only
 * where the target names the other. */
static void run_hinge_embedding(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target");
    struct val *zero = v_number(o, 0), *hinge = v_offset(o, v_neg(o, x), arg_number(o, "margin"));
    struct val *apart = v_where(o, v_compare(o, CMP_NE, t, v_number(o, 1)), v_relu(o, hinge), zero);
    struct val *near = v_where(o, v_compare(o, CMP_NE, t, v_number(o, -1)), x, zero);
    finish(o, v_add(o, apart, near));
}

/* log(1 + exp(-t x)) */
static void run_soft_margin(struct op *o)
{
    struct val *z = v_neg(o, v_mul(o, arg_tensor(o, "target"), arg_tensor(o, "input")));
    finish(o, v_softplus(o, z));
}

/* 1 - cos where t = 1, max(0, cos - margin) where t = -1; cos with an epsilon under the root */
static void run_cosine_embedding(struct op *o)
{
    struct val *a = arg_tensor(o, "input1"), *b = arg_tensor(o, "input2"),
               *t = arg_tensor(o, "target");
    if (!a || !b || !t)
        return;
    if (a->rank == 0 || a->rank != b->rank) {
        op_fail(o, PLUMB_E_ARG, "cosine_embedding_loss: vectors or batches of them are needed");
        return;
    }
    const uint64_t last = UINT64_C(1) << (a->rank - 1);
    const double eps = 1e-12;
    struct val *ab = v_sum(o, v_mul(o, a, b), last, false);
    struct val *aa = v_offset(o, v_sum(o, v_square(o, a), last, false), eps);
    struct val *bb = v_offset(o, v_sum(o, v_square(o, b), last, false), eps);
    struct val *cosine = v_div(o, ab, v_sqrt(o, v_mul(o, aa, bb)));
    struct val *zero = v_number(o, 0);
    struct val *near =
        v_where(o, v_compare(o, CMP_EQ, t, v_number(o, 1)), v_offset(o, v_neg(o, cosine), 1), zero);
    struct val *apart = v_where(o, v_compare(o, CMP_EQ, t, v_number(o, -1)),
                                v_relu(o, v_offset(o, cosine, -arg_number(o, "margin"))), zero);
    finish(o, v_add(o, near, apart));
}

/* (sum |a - b + eps|^p)^(1/p) over the last dimension */
static struct val *distance(struct op *o, struct val *a, struct val *b, double p, double eps)
{
    struct val *d = v_abs(o, v_offset(o, v_sub(o, a, b), eps));
    if (!d || d->rank == 0)
        return op_fail(o, PLUMB_E_ARG, "%s: vectors are needed", o->call->name);
    const uint64_t last = UINT64_C(1) << (d->rank - 1);
    if (p == 2)
        return v_sqrt(o, v_sum(o, v_square(o, d), last, false));
    struct val *sum = v_sum(o, v_pow(o, d, v_number(o, p)), last, false);
    return v_pow(o, sum, v_number(o, 1 / p));
}

/* max(0, |a-p| - |a-n| + margin); with swap the nearer of a and p is what n is measured from */
static void triplet_margin(struct op *o, double power, double eps)
{
    struct val *a = arg_tensor(o, "anchor"), *p = arg_tensor(o, "positive"),
               *n = arg_tensor(o, "negative");
    struct val *near = distance(o, a, p, power, eps), *apart = distance(o, a, n, power, eps);
    if (arg_bool(o, "swap"))
        apart = v_minimum(o, apart, distance(o, p, n, power, eps));
    finish(o, v_relu(o, v_offset(o, v_sub(o, near, apart), arg_number(o, "margin"))));
}

static void run_triplet_margin(struct op *o)
{
    triplet_margin(o, arg_number(o, "p"), arg_number(o, "eps"));
}

static void run_triplet_distance(struct op *o)
{
    if (arg_given(o, "distance_function"))
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: a function of the caller's is not in the record",
                o->call->name);
    else
        triplet_margin(o, 2, 1e-6);
}

/* ---- Gradients as operators ------------------------------------------------------------------ */

#define PULL(name)                                                                                 \
    static void run_##name##_backward(struct op *o)                                                \
    {                                                                                              \
        elem_pullback(o, run_##name, (const char *const[]){"input", NULL});                        \
    }

PULL(mse)
PULL(smooth_l1)
PULL(huber)
PULL(bce)
PULL(soft_margin)

#define BACK "(Tensor grad_output, Tensor input|self, Tensor target, "

/* ---- The table ------------------------------------------------------------------------------- */

#define OLD "bool? size_average=None, bool? reduce=None, any reduction='mean'"

const struct op_def op_loss[] = {
    {"l1_loss",
     "Functional.l1_loss(Tensor input, Tensor target, " OLD ")\n"
     "l1_loss(Tensor input|self, Tensor target, any reduction='mean')",
     run_l1, 0, "|x - t|"},
    {"mse_loss",
     "Functional.mse_loss(Tensor input, Tensor target, " OLD ")\n"
     "mse_loss(Tensor input|self, Tensor target, any reduction='mean')",
     run_mse, 0, "(x - t)^2"},
    {"smooth_l1_loss",
     "Functional.smooth_l1_loss(Tensor input, Tensor target, " OLD ", number beta=1.0)\n"
     "smooth_l1_loss(Tensor input|self, Tensor target, any reduction='mean', number beta=1.0)",
     run_smooth_l1, 0, "d^2 / (2 beta) where |d| < beta, else |d| - beta/2"},
    {"huber_loss",
     "huber_loss(Tensor input|self, Tensor target, any reduction='mean', number delta=1.0)",
     run_huber, 0, "d^2 / 2 where |d| < delta, else delta (|d| - delta/2)"},
    {"binary_cross_entropy",
     "Functional.binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, " OLD ")\n"
     "binary_cross_entropy(Tensor input|self, Tensor target, Tensor? weight=None, any "
     "reduction='mean')",
     run_bce, 0, "-(t log x + (1-t) log(1-x)), logarithms cut at -100"},
    {"binary_cross_entropy_with_logits",
     "Functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? "
     "weight=None, " OLD ", Tensor? pos_weight=None)\n"
     "binary_cross_entropy_with_logits(Tensor input|self, Tensor target, Tensor? weight=None, "
     "Tensor? pos_weight=None, any reduction='mean')",
     run_bce_logits, 0, "(1-t) x + (1 + (p-1) t) log(1 + exp(-x))"},
    {"kl_div",
     "Functional.kl_div(Tensor input, Tensor target, " OLD ", bool log_target=False)\n"
     "kl_div(Tensor input|self, Tensor target, any reduction='mean', bool log_target=False)",
     run_kl_div, 0, "t (log t - x)"},
    {"poisson_nll_loss",
     "Functional.poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool "
     "full=False, bool? size_average=None, number eps=1e-8, bool? reduce=None, any "
     "reduction='mean')\n"
     "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, number eps, any "
     "reduction)",
     run_poisson_nll, 0, "exp(x) - t x, or x - t log(x + eps)"},
    {"gaussian_nll_loss",
     "gaussian_nll_loss(Tensor input, Tensor target, Tensor var, bool full=False, number "
     "eps=1e-6, any reduction='mean')",
     run_gaussian_nll, 0, "(log v + (x-t)^2 / v) / 2"},
    {"margin_ranking_loss",
     "Functional.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, number "
     "margin=0, " OLD ")\n"
     "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, number margin=0, any "
     "reduction='mean')",
     run_margin_ranking, 0, "max(0, -t (x1 - x2) + margin)"},
    {"hinge_embedding_loss",
     "Functional.hinge_embedding_loss(Tensor input, Tensor target, number margin=1.0, " OLD ")\n"
     "hinge_embedding_loss(Tensor input|self, Tensor target, number margin=1.0, any "
     "reduction='mean')",
     run_hinge_embedding, 0, "x where t = 1, max(0, margin - x) where t = -1"},
    {"soft_margin_loss",
     "Functional.soft_margin_loss(Tensor input, Tensor target, " OLD ")\n"
     "soft_margin_loss(Tensor input|self, Tensor target, any reduction='mean')",
     run_soft_margin, 0, "log(1 + exp(-t x))"},
    {"cosine_embedding_loss",
     "Functional.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, number "
     "margin=0, " OLD ")\n"
     "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, number margin=0, any "
     "reduction='mean')",
     run_cosine_embedding, 0, "1 - cos where t = 1, max(0, cos - margin) where t = -1"},
    {"triplet_margin_loss",
     "Functional.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, number "
     "margin=1.0, number p=2, number eps=1e-6, bool swap=False, " OLD ")\n"
     "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, number margin=1.0, "
     "number p=2, number eps=1e-6, bool swap=False, any reduction='mean')",
     run_triplet_margin, 0, "max(0, |a-p| - |a-n| + margin)"},
    {"triplet_margin_with_distance_loss",
     "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, any "
     "distance_function=None, number margin=1.0, bool swap=False, any reduction='mean')",
     run_triplet_distance, 0, "max(0, |a-p| - |a-n| + margin)"},
    {"mse_loss_backward", "mse_loss_backward" BACK "int reduction)", run_mse_backward, OP_NO_GRAD,
     NULL},
    {"smooth_l1_loss_backward", "smooth_l1_loss_backward" BACK "int reduction, number beta)",
     run_smooth_l1_backward, OP_NO_GRAD, NULL},
    {"huber_loss_backward", "huber_loss_backward" BACK "int reduction, number delta)",
     run_huber_backward, OP_NO_GRAD, NULL},
    {"binary_cross_entropy_backward",
     "binary_cross_entropy_backward" BACK "Tensor? weight=None, int reduction=1)", run_bce_backward,
     OP_NO_GRAD, NULL},
    {"soft_margin_loss_backward", "soft_margin_loss_backward" BACK "int reduction)",
     run_soft_margin_backward, OP_NO_GRAD, NULL},
    {0},
};
