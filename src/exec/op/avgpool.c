/* The mean of each window, and norms made of it. */
#include "exec/op/pool.h"

static real divisor(const struct pool *p, const struct spot *s)
{
    if (p->divisor)
        return (real)p->divisor;
    return (real)p->axis[0].size[s->at[0]] * (real)p->axis[1].size[s->at[1]] *
           (real)p->axis[2].size[s->at[2]];
}

static real window_sum(const struct pool *p, const struct spot *s, const real *x)
{
    const struct axis *z = &p->axis[0], *y = &p->axis[1], *w = &p->axis[2];
    const int64_t first = w->start[s->at[2]], count = w->end[s->at[2]] - first;
    real sum = 0;
    op_terms((z->end[s->at[0]] - z->start[s->at[0]]) * (y->end[s->at[1]] - y->start[s->at[1]]) *
             count);
    for (int64_t i = z->start[s->at[0]]; i < z->end[s->at[0]]; i++)
        for (int64_t j = y->start[s->at[1]]; j < y->end[s->at[1]]; j++) {
            const real *line = x + (i * y->in + j) * w->in + first;
            if (count > 64) {
                sum += real_sum(line, count, 1);
            } else {
                for (int64_t k = 0; k < count; k++)
                    sum += line[k];
            }
        }
    return sum;
}

static void spread_gradient(const struct pool *p, const struct spot *s, real g, real *x)
{
    const struct axis *z = &p->axis[0], *y = &p->axis[1], *w = &p->axis[2];
    for (int64_t i = z->start[s->at[0]]; i < z->end[s->at[0]]; i++)
        for (int64_t j = y->start[s->at[1]]; j < y->end[s->at[1]]; j++)
            for (int64_t k = w->start[s->at[2]]; k < w->end[s->at[2]]; k++)
                x[(i * y->in + j) * w->in + k] += g;
}

static void mean_backward(struct op *o, struct val *out)
{
    const struct pool *p = out->saved;
    real *g = val_grad(o, out->in[0]);
    op_terms(pool_overlap(p));
    for (int64_t b = 0; g && p->out_count && b < p->planes; b++) {
        struct spot s = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, pool_next(p, &s))
            spread_gradient(p, &s, out->grad[k] / divisor(p, &s), g + b * p->in_count);
    }
}

static struct val *v_mean_pool(struct op *o, struct pool *p, struct val *x, unsigned nd)
{
    struct val *y = p ? pool_result(o, p, x, nd, x->dtype) : NULL;
    if (!y)
        return NULL;
    for (int64_t b = 0; p->out_count && b < p->planes; b++) {
        struct spot s = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, pool_next(p, &s))
            y->f[k] = window_sum(p, &s, x->f + b * p->in_count) / divisor(p, &s);
    }
    return val_node(o, y, mean_backward, x, NULL, NULL, p);
}

static void run_avg_pool(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    op_return(o, v_mean_pool(o, pool_sliding(o, x, nd, true), x, nd));
}

static void run_adaptive(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    op_return(o, v_mean_pool(o, pool_adaptive(o, x, nd, NULL), x, nd));
}

/* -1, 0 or 1, without gradient. */
static struct val *sign_of(struct op *o, struct val *x)
{
    struct val *y = x ? val_like(o, x, x->dtype) : NULL;
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = x->f[k] > 0 ? 1 : x->f[k] < 0 ? -1 : x->f[k];
    return y;
}

/* (sum of x^p)^(1/p), spelled as PyTorch does, so that gradients at 0 are the same. */
static void run_lp_pool(struct op *o)
{
    const unsigned nd = window_rank(o);
    struct val *x = arg_tensor(o, "input");
    const double norm = arg_number(o, "norm_type");
    int64_t kernel[WINDOW_DIMS] = {0};
    if (!window_arg(o, "kernel_size", nd, 1, 1, kernel))
        return;
    struct val *power = v_pow(o, x, v_number(o, norm));
    struct val *mean = v_mean_pool(o, pool_sliding(o, power, nd, true), power, nd);
    struct val *positive = v_mul(o, sign_of(o, mean), v_relu(o, v_abs(o, mean)));
    double size = (double)kernel[0] * (double)kernel[1] * (double)kernel[2];
    op_return(o, v_pow(o, v_scale(o, positive, size), v_number(o, 1 / norm)));
}

/* ---- The backward operators by name ---------------------------------------------------------- */

static void spread_backward(struct op *o, struct val *out)
{
    const struct pool *p = out->saved;
    real *g = val_grad(o, out->in[0]);
    for (int64_t b = 0; g && p->out_count && b < p->planes; b++) {
        struct spot s = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, pool_next(p, &s))
            g[k] += window_sum(p, &s, out->grad + b * p->in_count) / divisor(p, &s);
    }
}

/* The gradient of a mean over the windows of p, shared out again. */
static void return_spread(struct op *o, struct pool *p, const struct val *x, unsigned nd)
{
    struct val *g = arg_tensor(o, "grad_output");
    struct val *pooled = p ? pool_result(o, p, x, nd, x->dtype) : NULL;
    if (!pooled || !g)
        return;
    if (!g->f || !same_shape(pooled, g)) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient has not the shape of the pool", o->call->name);
        return;
    }
    struct val *y = val_like(o, x, g->dtype);
    op_terms(pool_overlap(p));
    for (int64_t b = 0; y && p->out_count && b < p->planes; b++) {
        struct spot s = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, pool_next(p, &s))
            spread_gradient(p, &s, g->f[k] / divisor(p, &s), y->f + b * p->in_count);
    }
    op_return(o, val_node(o, y, spread_backward, g, NULL, NULL, p));
}

static void run_avg_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    return_spread(o, pool_sliding(o, x, nd, true), x, nd);
}

/* The windows follow from the shapes. */
static void run_adaptive_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *g = arg_tensor(o, "grad_output");
    const unsigned nd = window_rank(o);
    if (x && g)
        return_spread(o, pool_adaptive(o, x, nd, g), x, nd);
}

#define AVG                                                                                        \
    "int[] kernel_size, int[]? stride=None, int[] padding=0, bool ceil_mode=False, bool "          \
    "count_include_pad=True, int? divisor_override=None)"

const struct op_def op_avgpool[] = {
    {"avg_pool1d avg_pool2d avg_pool3d", "avg_pool(Tensor input|self, " AVG, run_avg_pool, 0, NULL},
    {"adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
     "_adaptive_avg_pool3d",
     "adaptive_avg_pool(Tensor input|self, any output_size)", run_adaptive, 0, NULL},
    {"lp_pool1d lp_pool2d lp_pool3d",
     "lp_pool(Tensor input, number norm_type, int[] kernel_size, int[]? stride=None, bool "
     "ceil_mode=False, *, bool count_include_pad=True)",
     run_lp_pool, OP_COMPOSITE, "(sum of x^p)^(1/p)"},
    {"avg_pool2d_backward avg_pool3d_backward",
     "avg_pool_backward(Tensor grad_output, Tensor input|self, " AVG, run_avg_backward, 0, NULL},
    {"_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward",
     "adaptive_avg_backward(Tensor grad_output, Tensor input|self)", run_adaptive_backward, 0,
     NULL},
    {0},
};
