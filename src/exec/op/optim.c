/* Steps of optimisers over lists of parameters. Operators that change their arguments return what
 * these have become. */
#include "exec/op/op.h"

struct adam {
    real lr, beta1, beta2, weight_decay, eps;
    bool amsgrad, maximize;
    bool decoupled;     /* AdamW: the decay goes to the parameter, not into the gradient */
    real inverse_scale; /* of the gradients */
};

/* One parameter with its state; the results. */
struct adam_part {
    const struct val *param, *grad, *avg, *square, *most; /* most: amsgrad only */
    struct val *new_param, *new_avg, *new_square, *new_most;
    real step;
};

static struct val *floats_like(struct op *o, const char *what, const struct val *x,
                               const struct val *like)
{
    if (o->failed || !like)
        return NULL;
    if (!x || !x->f || !like->f || !same_shape(x, like))
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' must be floats in the shape of the parameter",
                       o->call->name, what);
    return val_like(o, x, x->dtype);
}

/* m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
 * p -= lr m / (1 - b1^t) / (sqrt(v) / sqrt(1 - b2^t) + eps) */
static void adam_step(const struct adam *a, const struct adam_part *x)
{
    const real correction1 = 1 - pow(a->beta1, x->step), correction2 = 1 - pow(a->beta2, x->step);
    const real size = a->lr / correction1, root = sqrt(correction2);
    for (int64_t k = 0; k < x->param->count; k++) {
        real p = x->param->f[k], g = x->grad->f[k] * a->inverse_scale;
        if (a->maximize)
            g = -g;
        if (a->decoupled)
            p *= 1 - a->lr * a->weight_decay;
        else
            g += a->weight_decay * p;
        const real m = a->beta1 * x->avg->f[k] + (1 - a->beta1) * g;
        const real v = a->beta2 * x->square->f[k] + (1 - a->beta2) * g * g;
        real top = v;
        if (a->amsgrad) {
            const real before = x->most->f[k];
            top = before > v || isnan(before) ? before : v;
            x->new_most->f[k] = top;
        }
        x->new_avg->f[k] = m;
        x->new_square->f[k] = v;
        x->new_param->f[k] = p - size * m / (sqrt(top) / root + a->eps);
    }
}

/* The lists of a step, by the names that their arguments have. */
struct adam_lists {
    size_t n;
    struct val **params, **grads, **avgs, **squares, **most, **steps;
};

static struct val **list_of(struct op *o, const char *name, size_t n)
{
    size_t found;
    struct val **list = arg_tensors(o, name, &found);
    if (o->failed)
        return NULL;
    if (found != n)
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' lists %zu tensors for %zu parameters",
                       o->call->name, name, found, n);
    return list;
}

static bool read_lists(struct op *o, struct adam_lists *l, bool amsgrad)
{
    *l = (struct adam_lists){0};
    l->params = arg_tensors(o, "input", &l->n);
    l->grads = list_of(o, "grads", l->n);
    l->avgs = list_of(o, "exp_avgs", l->n);
    l->squares = list_of(o, "exp_avg_sqs", l->n);
    l->steps = list_of(o, "state_steps", l->n);
    if (amsgrad)
        l->most = list_of(o, "max_exp_avg_sqs", l->n);
    for (size_t k = 0; !o->failed && k < l->n; k++)
        if (!l->params[k] || !l->steps[k] || l->steps[k]->count != 1)
            op_fail(o, PLUMB_E_ARG, "%s: parameter %zu needs a step of one number", o->call->name,
                    k);
    return !o->failed;
}

static bool found_inf(struct op *o)
{
    return arg_given(o, "found_inf") && arg_number(o, "found_inf") != 0;
}

static void return_all(struct op *o, struct val *const *list, size_t n)
{
    for (size_t k = 0; list && k < n; k++)
        op_return(o, list[k]);
}

/* Replaces the lists by their new values. later: the step counts from before this one. */
static bool adam_lists_step(struct op *o, struct adam_lists *l, const struct adam *a, bool later)
{
    for (size_t k = 0; k < l->n && !o->failed; k++) {
        struct adam_part x = {.param = l->params[k],
                              .grad = l->grads[k],
                              .avg = l->avgs[k],
                              .square = l->squares[k],
                              .most = a->amsgrad ? l->most[k] : NULL,
                              .step = val_at(l->steps[k], 0) + (later ? 1 : 0)};
        x.new_param = floats_like(o, "params", x.param, x.param);
        struct val *new_grad = floats_like(o, "grads", x.grad, x.param);
        x.new_avg = floats_like(o, "exp_avgs", x.avg, x.param);
        x.new_square = floats_like(o, "exp_avg_sqs", x.square, x.param);
        if (a->amsgrad)
            x.new_most = floats_like(o, "max_exp_avg_sqs", x.most, x.param);
        if (o->failed)
            return false;
        adam_step(a, &x);
        for (int64_t e = 0; e < x.grad->count; e++)
            new_grad->f[e] = x.grad->f[e] * a->inverse_scale;
        l->params[k] = x.new_param;
        l->grads[k] = new_grad;
        l->avgs[k] = x.new_avg;
        l->squares[k] = x.new_square;
        if (a->amsgrad)
            l->most[k] = x.new_most;
    }
    return !o->failed;
}

static struct adam read_adam(struct op *o, bool decoupled)
{
    return (struct adam){.lr = (real)arg_number(o, "lr"),
                         .beta1 = (real)arg_number(o, "beta1"),
                         .beta2 = (real)arg_number(o, "beta2"),
                         .weight_decay = (real)arg_number(o, "weight_decay"),
                         .eps = (real)arg_number(o, "eps"),
                         .amsgrad = arg_bool(o, "amsgrad"),
                         .maximize = arg_bool(o, "maximize"),
                         .decoupled = decoupled,
                         .inverse_scale = 1};
}

static real inverse_scale(struct op *o)
{
    return arg_given(o, "grad_scale") ? 1 / (real)arg_number(o, "grad_scale") : 1;
}

/* The steps count this one already. Nothing happens where gradients are not finite. */
static void fused_adam(struct op *o, bool decoupled)
{
    struct adam a = read_adam(o, decoupled);
    struct adam_lists l;
    a.inverse_scale = inverse_scale(o);
    if (!read_lists(o, &l, a.amsgrad) || (!found_inf(o) && !adam_lists_step(o, &l, &a, false)))
        return;
    return_all(o, l.params, l.n);
    return_all(o, l.grads, l.n);
    return_all(o, l.avgs, l.n);
    return_all(o, l.squares, l.n);
    return_all(o, l.most, l.n);
    op_return_tuple(o);
}

static void run_fused_adam(struct op *o)
{
    fused_adam(o, false);
}

static void run_fused_adamw(struct op *o)
{
    fused_adam(o, true);
}

static void plain_adam(struct op *o, bool decoupled)
{
    const struct adam a = read_adam(o, decoupled);
    struct adam_lists l;
    if (!read_lists(o, &l, a.amsgrad) || !adam_lists_step(o, &l, &a, true))
        return;
    for (size_t k = 0; k < l.n; k++)
        l.steps[k] = v_offset(o, v_detach(o, l.steps[k]), 1);
    return_all(o, l.params, l.n);
    return_all(o, l.avgs, l.n);
    return_all(o, l.squares, l.n);
    return_all(o, l.most, l.n);
    return_all(o, l.steps, l.n);
    op_return_tuple(o);
}

static void run_adam(struct op *o)
{
    plain_adam(o, false);
}

static void run_adamw(struct op *o)
{
    plain_adam(o, true);
}

/* ---- Stochastic gradient descent ------------------------------------------------------------- */

struct sgd {
    real lr, momentum, dampening, weight_decay, inverse_scale;
    bool nesterov, maximize, first;
};

/* b = momentum b + (1 - dampening) g, at first g; p -= lr b, or lr (g + momentum b) of Nesterov */
static void sgd_step(const struct sgd *s, const struct val *param, const struct val *grad,
                     const struct val *buffer, struct val *new_param, struct val *new_buffer)
{
    for (int64_t k = 0; k < param->count; k++) {
        const real p = param->f[k];
        real g = grad->f[k] * s->inverse_scale;
        if (s->maximize)
            g = -g;
        g += s->weight_decay * p;
        if (s->momentum != 0) {
            const real b =
                s->first || !buffer ? g : s->momentum * buffer->f[k] + (1 - s->dampening) * g;
            new_buffer->f[k] = b;
            g = s->nesterov ? g + s->momentum * b : b;
        }
        new_param->f[k] = p - s->lr * g;
    }
}

static void run_sgd(struct op *o)
{
    size_t n;
    const bool fused = arg_given(o, "is_first_step");
    const struct sgd s = {.lr = (real)arg_number(o, "lr"),
                          .momentum = (real)arg_number(o, "momentum"),
                          .dampening = (real)arg_number(o, "dampening"),
                          .weight_decay = (real)arg_number(o, "weight_decay"),
                          .inverse_scale = inverse_scale(o),
                          .nesterov = arg_bool(o, "nesterov"),
                          .maximize = arg_bool(o, "maximize"),
                          .first = fused && arg_bool(o, "is_first_step")};
    struct val **params = arg_tensors(o, "input", &n), **grads = list_of(o, "grads", n);
    struct val **buffers = s.momentum != 0 ? list_of(o, "momentum_buffer_list", n) : NULL;
    for (size_t k = 0; k < n && !o->failed && !found_inf(o); k++) {
        struct val *param = floats_like(o, "params", params[k], params[k]);
        struct val *grad = floats_like(o, "grads", grads[k], params[k]);
        struct val *buffer = NULL;
        if (buffers)
            buffer = buffers[k] ? floats_like(o, "momentum_buffer_list", buffers[k], params[k])
                                : val_like(o, params[k], params[k] ? params[k]->dtype : PLUMB_F32);
        if (o->failed)
            return;
        sgd_step(&s, params[k], grads[k], buffers ? buffers[k] : NULL, param, buffer);
        for (int64_t e = 0; e < grad->count; e++)
            grad->f[e] = grads[k]->f[e] * s.inverse_scale;
        params[k] = param;
        grads[k] = grad;
        if (buffers)
            buffers[k] = buffer;
    }
    return_all(o, params, n);
    if (fused)
        return_all(o, grads, n);
    return_all(o, buffers, n);
    op_return_tuple(o);
}

/* ---- The steps of torch_npu ------------------------------------------------------------------ */

/* var, m and v, as a list `out` or one by one. */
static bool read_state(struct op *o, struct val **state)
{
    static const char *const names[3] = {"var", "m", "v"};
    const struct val *grad = arg_tensor(o, "grad");
    size_t n = 3;
    struct val **list = arg_given(o, "out") ? arg_tensors(o, "out", &n) : NULL;
    for (size_t k = 0; k < 3 && n == 3; k++) {
        state[k] = list ? list[k] : arg_tensor(o, names[k]);
        if (!floats_like(o, names[k], state[k], grad))
            return false;
        state[k] = v_detach(o, state[k]);
    }
    if (n != 3)
        op_fail(o, PLUMB_E_ARG, "%s: out lists %zu tensors instead of var, m and v", o->call->name,
                n);
    return !o->failed;
}

/* lr' = lr sqrt(1 - b2p) / (1 - b1p), m += (1 - b1)(g - m), v += (1 - b2)(g^2 - v),
 * var -= lr' m / (eps + sqrt v); Nesterov has b1 m + (1 - b1) g for m */
static void run_npu_adam(struct op *o)
{
    struct val *state[3], *g = arg_tensor(o, "grad");
    const double b1 = arg_number(o, "beta1"), b2 = arg_number(o, "beta2");
    const double lr = arg_number(o, "lr") * sqrt(1 - arg_number(o, "beta2_power")) /
                      (1 - arg_number(o, "beta1_power"));
    if (!read_state(o, state))
        return;
    g = v_detach(o, g);
    struct val *m = v_add(o, state[1], v_scale(o, v_sub(o, g, state[1]), 1 - b1));
    struct val *v = v_add(o, state[2], v_scale(o, v_sub(o, v_square(o, g), state[2]), 1 - b2));
    struct val *way = m;
    if (arg_given(o, "use_nesterov") && arg_bool(o, "use_nesterov"))
        way = v_add(o, v_scale(o, m, b1), v_scale(o, g, 1 - b1));
    struct val *bottom = v_offset(o, v_sqrt(o, v), arg_number(o, "epsilon"));
    op_return(o, v_sub(o, state[0], v_div(o, v_scale(o, way, lr), bottom)));
    op_return(o, m);
    op_return(o, v);
}

/* 1 - power; a step that has not moved yet would divide by zero. */
static double correction(double power, double eps)
{
    return power == 1 ? eps : 1 - power;
}

/* var (1 - lr wd) - lr m / (1 - b1p b1) / (sqrt(v / (1 - b2p b2)) + eps); with amsgrad the largest
 * of max_grad_norm and v stands for v */
static void run_npu_adamw(struct op *o)
{
    struct val *state[3], *g = arg_tensor(o, "grad"), *most = arg_tensor(o, "max_grad_norm");
    const double b1 = arg_number(o, "beta1"), b2 = arg_number(o, "beta2"), lr = arg_number(o, "lr"),
                 eps = arg_number(o, "epsilon");
    const double first = correction(arg_number(o, "beta1_power") * b1, eps),
                 second = correction(arg_number(o, "beta2_power") * b2, eps);
    if (!read_state(o, state))
        return;
    g = v_detach(o, g);
    if (arg_given(o, "maximize") && arg_bool(o, "maximize"))
        g = v_neg(o, g);
    struct val *m = v_add(o, v_scale(o, state[1], b1), v_scale(o, g, 1 - b1));
    struct val *v = v_add(o, v_scale(o, state[2], b2), v_scale(o, v_square(o, g), 1 - b2));
    struct val *top = v;
    if (arg_given(o, "amsgrad") && arg_bool(o, "amsgrad")) {
        if (!most) {
            op_fail(o, PLUMB_E_ARG, "%s: amsgrad needs max_grad_norm", o->call->name);
            return;
        }
        top = v_maximum(o, v_detach(o, most), v);
    }
    struct val *bottom = v_offset(o, v_sqrt(o, v_scale(o, top, 1 / second)), eps);
    struct val *decayed = v_scale(o, state[0], 1 - lr * arg_number(o, "weight_decay"));
    op_return(o, v_sub(o, decayed, v_div(o, v_scale(o, m, lr / first), bottom)));
    op_return(o, m);
    op_return(o, v);
}

/* ---- Lists of gradients ---------------------------------------------------------------------- */

/* Each times inv_scale; found_inf becomes 1 where any of them is not finite. */
static void run_unscale(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "input", &n);
    const real factor = (real)arg_number(o, "inv_scale");
    const struct val *before = arg_tensor(o, "found_inf");
    struct val *found = before ? val_like(o, before, before->dtype) : NULL;
    if (!found || !found->f || found->count != 1) {
        op_fail(o, PLUMB_E_ARG, "%s: found_inf must be one number", o->call->name);
        return;
    }
    found->f[0] = before->f[0];
    for (size_t k = 0; xs && k < n; k++) {
        struct val *y = floats_like(o, "self", xs[k], xs[k]);
        for (int64_t e = 0; y && e < y->count; e++) {
            if (!isfinite(xs[k]->f[e]))
                found->f[0] = 1;
            y->f[e] = factor == 1 ? xs[k]->f[e] : xs[k]->f[e] * factor;
        }
        op_return(o, y);
    }
    op_return(o, found);
    op_return_tuple(o);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define LISTS                                                                                      \
    "(Tensor[] input|self|params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "       \
    "Tensor[] max_exp_avg_sqs, Tensor[] state_steps, "
#define FUSED                                                                                      \
    LISTS "*, number lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, "  \
          "bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None)"
#define PLAIN                                                                                      \
    LISTS "bool? foreach=None, bool capturable=False, bool differentiable=False, bool? "           \
          "fused=None, Tensor? grad_scale=None, Tensor? found_inf=None, bool "                     \
          "has_complex=False, *, bool amsgrad, float beta1, float beta2, number lr, float "        \
          "weight_decay, float eps, bool maximize=False)"

const struct op_def op_optim[] = {
    {"_fused_adam _fused_adam_", "_fused_adam" FUSED, run_fused_adam, OP_NO_GRAD,
     "parameters, gradients, first and second moments and, with amsgrad, the largest second ones"},
    {"_fused_adamw _fused_adamw_", "_fused_adamw" FUSED, run_fused_adamw, OP_NO_GRAD,
     "parameters, gradients, first and second moments and, with amsgrad, the largest second ones"},
    {"adam", "adam" PLAIN, run_adam, OP_NO_GRAD,
     "parameters, first and second moments, with amsgrad the largest second ones, and steps"},
    {"adamw", "adamw" PLAIN, run_adamw, OP_NO_GRAD,
     "parameters, first and second moments, with amsgrad the largest second ones, and steps"},
    {"_fused_sgd _fused_sgd_",
     "_fused_sgd(Tensor[] input|self, Tensor[] grads, Tensor?[] momentum_buffer_list, *, float "
     "weight_decay, float momentum, number lr, float dampening, bool nesterov, bool maximize, bool "
     "is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None)",
     run_sgd, OP_NO_GRAD, "parameters, gradients and, with momentum, its buffers"},
    {"sgd",
     "sgd(Tensor[] input|self|params, Tensor[] grads|d_p_list, Tensor?[] momentum_buffer_list, "
     "bool? has_sparse_grad=None, bool? foreach=None, bool? fused=None, Tensor? grad_scale=None, "
     "Tensor? found_inf=None, *, float weight_decay, float momentum, number lr, float dampening, "
     "bool nesterov, bool maximize)",
     run_sgd, OP_NO_GRAD, "parameters and, with momentum, its buffers"},
    {"npu_apply_adam",
     "npu_apply_adam(number beta1_power, number beta2_power, number lr, number beta1, number "
     "beta2, number epsilon, Tensor grad, bool? use_locking, bool? use_nesterov, Tensor[] out)\n"
     "npu_apply_adam(number beta1_power, number beta2_power, number lr, number beta1, number "
     "beta2, number epsilon, Tensor grad, bool? use_locking, bool? use_nesterov, *, Tensor var, "
     "Tensor m, Tensor v)",
     run_npu_adam, OP_NO_GRAD, "var, m and v after the step"},
    {"npu_apply_adam_w",
     "npu_apply_adam_w(number beta1_power, number beta2_power, number lr, number weight_decay, "
     "number beta1, number beta2, number epsilon, Tensor grad, Tensor? max_grad_norm, bool? "
     "amsgrad, bool? maximize, Tensor[] out)\n"
     "npu_apply_adam_w(number beta1_power, number beta2_power, number lr, number weight_decay, "
     "number beta1, number beta2, number epsilon, Tensor grad, Tensor? max_grad_norm, bool? "
     "amsgrad, bool? maximize, *, Tensor var, Tensor m, Tensor v)",
     run_npu_adamw, OP_NO_GRAD, "var, m and v after the step"},
    {"_amp_foreach_non_finite_check_and_unscale _amp_foreach_non_finite_check_and_unscale_",
     "_amp_foreach_non_finite_check_and_unscale(Tensor[] input|self, Tensor found_inf, Tensor "
     "inv_scale)",
     run_unscale, OP_NO_GRAD, "each times inv_scale, and 1 if any was not finite"},
    {0},
};
