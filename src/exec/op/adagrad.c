/* The step of Adagrad over lists of parameters: sums of squared gradients. */
#include "exec/op/op.h"

struct adagrad {
    real lr, decay, weight_decay, eps, inverse_scale;
    bool maximize, skip;
};

/* The lists of a step; each is replaced by what it becomes. */
struct lists {
    size_t n;
    struct val **params, **grads, **sums, **steps;
};

static struct val **list_of(struct op *o, const char *name, size_t n)
{
    size_t found;
    struct val **list = arg_tensors(o, name, &found);
    if (!o->failed && found != n)
        op_fail(o, PLUMB_E_ARG, "%s: '%s' lists %zu tensors for %zu parameters", o->call->name,
                name, found, n);
    return o->failed ? NULL : list;
}

static bool fits(struct op *o, const struct lists *l, size_t k)
{
    const struct val *p = l->params[k], *g = l->grads[k], *s = l->sums[k], *t = l->steps[k];
    if (!p || !g || !s || !t || !p->f || !g->f || !s->f || !same_shape(p, g) || !same_shape(p, s) ||
        t->count != 1)
        op_fail(o, PLUMB_E_ARG,
                "%s: gradient and sum of parameter %zu must be floats in its shape, its step one "
                "number",
                o->call->name, k);
    return !o->failed;
}

/* s += g^2, p -= lr / (1 + (t - 1) decay) g / (sqrt(s) + eps), for step t from 1 */
static void one_step(struct op *o, const struct adagrad *a, struct lists *l, size_t k, real t)
{
    const struct val *p = l->params[k], *g = l->grads[k], *s = l->sums[k];
    struct val *param = val_like(o, p, p->dtype), *grad = val_like(o, g, g->dtype),
               *sum = val_like(o, s, s->dtype);
    const real size = a->lr / (1 + (t - 1) * a->decay);
    for (int64_t e = 0; !o->failed && e < p->count; e++) {
        grad->f[e] = g->f[e] * a->inverse_scale;
        const real way = (a->maximize ? -grad->f[e] : grad->f[e]) + a->weight_decay * p->f[e];
        sum->f[e] = s->f[e] + way * way;
        param->f[e] = p->f[e] - size * way / (sqrt(sum->f[e]) + a->eps);
    }
    l->params[k] = param;
    l->grads[k] = grad;
    l->sums[k] = sum;
}

static void return_all(struct op *o, struct val *const *list, size_t n)
{
    for (size_t k = 0; k < n; k++)
        op_return(o, list[k]);
}

/* fused: the step counts this one already, gradients are returned unscaled; otherwise it is counted
 * here, and returned. */
static void adagrad(struct op *o, bool fused)
{
    struct lists l = {0};
    l.params = arg_tensors(o, "input", &l.n);
    l.grads = list_of(o, "grads", l.n);
    l.sums = list_of(o, "state_sums", l.n);
    l.steps = list_of(o, "state_steps", l.n);
    const struct adagrad a = {
        .lr = (real)arg_number(o, "lr"),
        .decay = (real)arg_number(o, "lr_decay"),
        .weight_decay = (real)arg_number(o, "weight_decay"),
        .eps = (real)arg_number(o, "eps"),
        .inverse_scale = arg_given(o, "grad_scale") ? 1 / (real)arg_number(o, "grad_scale") : 1,
        .maximize = arg_bool(o, "maximize"),
        .skip = arg_given(o, "found_inf") && arg_number(o, "found_inf") != 0};
    for (size_t k = 0; !o->failed && k < l.n; k++)
        if (fits(o, &l, k) && !a.skip)
            one_step(o, &a, &l, k, val_at(l.steps[k], 0) + (fused ? 0 : 1));
    if (o->failed)
        return;
    return_all(o, l.params, l.n);
    if (fused)
        return_all(o, l.grads, l.n);
    return_all(o, l.sums, l.n);
    for (size_t k = 0; !fused && k < l.n; k++)
        op_return(o, v_offset(o, v_detach(o, l.steps[k]), 1));
    op_return_tuple(o);
}

static void run_fused(struct op *o)
{
    adagrad(o, true);
}

static void run_plain(struct op *o)
{
    adagrad(o, false);
}

#define LISTS                                                                                      \
    "(Tensor[] input|self|params, Tensor[] grads, Tensor[] state_sums, Tensor[] state_steps, "
#define RATES "number lr, float weight_decay, float lr_decay, float eps, bool maximize"

const struct op_def op_adagrad[] = {
    {"_fused_adagrad _fused_adagrad_",
     "_fused_adagrad" LISTS "*, " RATES ", Tensor? grad_scale=None, Tensor? found_inf=None)",
     run_fused, OP_NO_GRAD, "parameters, gradients and sums of squared gradients"},
    {"adagrad",
     "adagrad" LISTS "bool? fused=None, Tensor? grad_scale=None, Tensor? found_inf=None, bool "
     "has_sparse_grad=False, bool? foreach=None, bool differentiable=False, bool "
     "has_complex=False, *, " RATES ")",
     run_plain, OP_NO_GRAD, "parameters, sums of squared gradients, and steps"},
    {0},
};
