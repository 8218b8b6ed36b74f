/* The largest element of each window, and its place; values put back to such places. */
#include "exec/op/pool.h"

#include <string.h>

/* NaN counts as larger than anything, the last one of several; of equal elements the first. */
static int64_t largest(const struct pool *p, const struct spot *s, const real *x)
{
    const struct axis *z = &p->axis[0], *y = &p->axis[1], *w = &p->axis[2];
    int64_t best = (z->start[s->at[0]] * y->in + y->start[s->at[1]]) * w->in + w->start[s->at[2]];
    real value = -R(INFINITY);
    for (int64_t i = z->start[s->at[0]]; i < z->end[s->at[0]]; i += z->step)
        for (int64_t j = y->start[s->at[1]]; j < y->end[s->at[1]]; j += y->step)
            for (int64_t k = w->start[s->at[2]]; k < w->end[s->at[2]]; k += w->step) {
                const int64_t at = (i * y->in + j) * w->in + k;
                if (x[at] > value || isnan(x[at])) {
                    value = x[at];
                    best = at;
                }
            }
    return best;
}

struct places {
    int64_t planes, in_count, out_count;
    const int64_t *index;
    int64_t overlap; /* windows that one element may be the largest of */
};

static void max_backward(struct op *o, struct val *out)
{
    const struct places *s = out->saved;
    real *g = val_grad(o, out->in[0]);
    op_terms(s->overlap);
    for (int64_t b = 0; g && b < s->planes; b++)
        for (int64_t k = 0; k < s->out_count; k++) {
            real *to = &g[b * s->in_count + s->index[b * s->out_count + k]];
            *to += out->grad[b * s->out_count + k];
            op_accumulated(o, to, 1);
        }
}

static struct val *v_max_pool(struct op *o, struct pool *p, struct val *x, unsigned nd,
                              struct val **index)
{
    struct places *s = op_alloc(o, 1, sizeof *s);
    struct val *y = p && s ? pool_result(o, p, x, nd, x->dtype) : NULL;
    *index = y ? val_like(o, y, PLUMB_I64) : NULL;
    if (!*index)
        return NULL;
    *s = (struct places){p->planes, p->in_count, p->out_count, (*index)->i, pool_overlap(p)};
    for (int64_t b = 0; p->out_count && b < p->planes; b++) {
        struct spot spot = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, pool_next(p, &spot)) {
            const int64_t at = largest(p, &spot, x->f + b * p->in_count);
            (*index)->i[k] = at;
            y->f[k] = x->f[b * p->in_count + at];
        }
    }
    return val_moved(o, y, max_backward, x, NULL, NULL, s);
}

static void return_max(struct op *o, struct pool *p, struct val *x, unsigned nd, bool indices)
{
    struct val *index, *y = v_max_pool(o, p, x, nd, &index);
    op_return(o, y);
    if (indices)
        op_return(o, index);
}

static void run_max_pool(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    return_max(o, pool_sliding(o, x, nd, false), x, nd, arg_bool(o, "return_indices"));
}

static void run_max_pool_indices(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    return_max(o, pool_sliding(o, x, nd, false), x, nd, true);
}

static void run_adaptive(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    return_max(o, pool_adaptive(o, x, nd, NULL), x, nd, arg_bool(o, "return_indices"));
}

static void run_adaptive_indices(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned nd = window_rank(o);
    return_max(o, pool_adaptive(o, x, nd, NULL), x, nd, true);
}

/* ---- Undoing max pooling --------------------------------------------------------------------- */

static void unpool_backward(struct op *o, struct val *out)
{
    const struct places *s = out->saved;
    real *g = val_grad(o, out->in[0]);
    for (int64_t b = 0; g && b < s->planes; b++)
        for (int64_t k = 0; k < s->in_count; k++)
            g[b * s->in_count + k] += out->grad[b * s->out_count + s->index[b * s->in_count + k]];
}

/* The sizes that the windows came from, unless output_size names others. */
static bool unpooled_size(struct op *o, const struct val *x, unsigned nd, int64_t *shape)
{
    size_t n;
    const int64_t *given = arg_ints(o, "output_size", &n);
    struct sliding s = {0};
    if (n && n != nd && n != nd + 2 && n != x->rank)
        return op_fail(o, PLUMB_E_ARG, "%s: output_size has %zu numbers for %u dimensions",
                       o->call->name, n, nd) != NULL;
    if (!n && !pool_read(o, nd, &s))
        return false;
    for (unsigned d = 0; d < nd; d++) {
        const unsigned at = x->rank - nd + d, w = WINDOW_DIMS - nd + d;
        if (n)
            shape[at] = given[n - nd + d];
        else if (x->shape[at] > INT32_MAX)
            return op_fail(o, PLUMB_E_ARG, "%s: absurdly large sizes", o->call->name) != NULL;
        else
            shape[at] = (x->shape[at] - 1) * s.stride[w] - 2 * s.pad[w] + s.kernel[w];
    }
    return !o->failed;
}

static void run_unpool(struct op *o)
{
    const unsigned nd = window_rank(o);
    struct val *x = arg_tensor(o, "input"), *index = arg_tensor(o, "indices");
    struct places *s = op_alloc(o, 1, sizeof *s);
    if (!x || !index || !s)
        return;
    if (!x->f || !index->i || !same_shape(x, index) || x->rank < nd + 1 || x->rank > nd + 2) {
        op_fail(o, PLUMB_E_ARG, "%s: input and indices do not fit each other", o->call->name);
        return;
    }
    int64_t shape[WINDOW_DIMS + 2];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    if (!unpooled_size(o, x, nd, shape))
        return;
    struct val *y = val_new(o, x->dtype, x->rank, shape);
    if (!y)
        return;
    *s = (struct places){1, 1, 1, index->i, 1};
    for (unsigned d = 0; d < x->rank; d++)
        if (d + nd < x->rank) {
            s->planes *= x->shape[d];
        } else {
            s->in_count *= x->shape[d];
            s->out_count *= shape[d];
        }
    for (int64_t b = 0; b < s->planes; b++)
        for (int64_t k = b * s->in_count; k < (b + 1) * s->in_count; k++) {
            if (index->i[k] < 0 || index->i[k] >= s->out_count) {
                op_fail(o, PLUMB_E_ARG, "%s: index %lld of a plane of %lld elements", o->call->name,
                        (long long)index->i[k], (long long)s->out_count);
                return;
            }
            y->f[b * s->out_count + index->i[k]] = x->f[k];
        }
    op_return(o, val_moved(o, y, unpool_backward, x, NULL, NULL, s));
}

/* ---- The backward operators by name ---------------------------------------------------------- */

static void placed_backward(struct op *o, struct val *out)
{
    const struct places *s = out->saved;
    real *g = val_grad(o, out->in[0]);
    for (int64_t b = 0; g && b < s->planes; b++)
        for (int64_t k = 0; k < s->out_count; k++)
            g[b * s->out_count + k] += out->grad[b * s->in_count + s->index[b * s->out_count + k]];
}

/* Adds each gradient to the place in x that its maximum came from. */
static void run_backward(struct op *o)
{
    const unsigned nd = window_rank(o);
    struct val *g = arg_tensor(o, "grad_output"), *x = arg_tensor(o, "input"),
               *index = arg_tensor(o, "indices");
    struct places *s = op_alloc(o, 1, sizeof *s);
    if (!g || !x || !index || !s)
        return;
    bool fits = g->f && x->f && index->i && same_shape(g, index) && g->rank == x->rank &&
                (x->rank == nd + 1 || x->rank == nd + 2);
    *s = (struct places){1, 1, 1, index->i, 1};
    for (unsigned d = 0; fits && d < x->rank; d++)
        if (d + nd < x->rank) {
            s->planes *= x->shape[d];
            fits = x->shape[d] == g->shape[d];
        } else {
            s->in_count *= x->shape[d];
            s->out_count *= g->shape[d];
        }
    for (int64_t k = 0; fits && k < index->count; k++)
        fits = index->i[k] >= 0 && index->i[k] < s->in_count;
    if (!fits) {
        op_fail(o, PLUMB_E_ARG, "%s: gradient, input and indices do not fit each other",
                o->call->name);
        return;
    }
    struct val *y = val_like(o, x, g->dtype);
    if (!y)
        return;
    for (int64_t b = 0; b < s->planes; b++)
        op_terms_map(o, index->i + b * s->out_count, s->out_count, s->in_count);
    for (int64_t b = 0; b < s->planes; b++)
        for (int64_t k = b * s->out_count; k < (b + 1) * s->out_count; k++)
            y->f[b * s->in_count + index->i[k]] += g->f[k];
    op_return(o, val_moved(o, y, placed_backward, g, NULL, NULL, s));
}

#define MAX                                                                                        \
    "(Tensor input|self, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "           \
    "dilation=1, bool ceil_mode=False, bool return_indices=False)"
#define ADAPTIVE "adaptive_max_pool(Tensor input|self, any output_size, bool return_indices=False)"
#define UNPOOL                                                                                     \
    "max_unpool(Tensor input|self, Tensor indices, int[] kernel_size, int[]? stride=None, int[] "  \
    "padding=0, int[]? output_size=None)"

const struct op_def op_maxpool[] = {
    {"max_pool1d max_pool2d max_pool3d", "max_pool" MAX, run_max_pool, 0, NULL},
    {"max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices",
     "max_pool_with_indices" MAX, run_max_pool_indices, 0, NULL},
    {"Functional.adaptive_max_pool1d Functional.adaptive_max_pool2d Functional.adaptive_max_pool3d",
     ADAPTIVE, run_adaptive, 0, NULL},
    {"adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
     "adaptive_max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
     ADAPTIVE, run_adaptive_indices, 0, NULL},
    {"max_unpool1d max_unpool2d max_unpool3d",
     "Aten.max_unpool2d(Tensor input|self, Tensor indices, int[] output_size)\n"
     "Aten.max_unpool3d(Tensor input|self, Tensor indices, int[] output_size, int[] stride, int[] "
     "padding)\n" UNPOOL,
     run_unpool, OP_EXACT, NULL},
    {"max_pool2d_with_indices_backward max_pool3d_with_indices_backward",
     "max_pool_backward(Tensor grad_output, Tensor input|self, int[] kernel_size, int[] stride, "
     "int[] padding, int[] dilation, bool ceil_mode, Tensor indices)",
     run_backward, OP_LINEAR, NULL},
    {"adaptive_max_pool2d_backward adaptive_max_pool3d_backward",
     "adaptive_max_backward(Tensor grad_output, Tensor input|self, Tensor indices)", run_backward,
     OP_LINEAR, NULL},
    {"fractional_max_pool2d_backward fractional_max_pool3d_backward",
     "fractional_max_backward(Tensor grad_output, Tensor input|self, int[] kernel_size, int[] "
     "output_size, Tensor indices)",
     run_backward, OP_LINEAR, NULL},
    {0},
};
