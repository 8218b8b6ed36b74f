/* Pooling: the largest element or the mean of each window, and the places of the largest undone. */
#include "op/window.h"

#include <string.h>

/* The windows along one dimension: elements start, start + step, ... before end. `size` is what a
 * mean divides by (before windows were cut at the padding, if that counts). */
struct axis {
    int64_t in, out, step;
    int64_t *start, *end, *size;
};

struct pool {
    struct axis axis[WINDOW_DIMS];
    int64_t planes, in_count, out_count;
    int64_t divisor; /* 0: the size of the window */
};

struct spot {
    int64_t at[WINDOW_DIMS];
};

static bool axis_alloc(struct op *o, struct axis *a)
{
    a->start = op_alloc(o, a->out + 1, sizeof *a->start);
    a->end = op_alloc(o, a->out + 1, sizeof *a->end);
    a->size = op_alloc(o, a->out + 1, sizeof *a->size);
    return a->start && a->end && a->size;
}

/* ---- Windows from arguments -------------------------------------------------------------------- */

struct sliding {
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], pad[WINDOW_DIMS], dilation[WINDOW_DIMS];
    bool ceil, count_padding;
};

static bool read_sliding(struct op *o, unsigned nd, struct sliding *s)
{
    if (!window_arg(o, "kernel_size", nd, 1, 1, s->kernel))
        return false;
    memcpy(s->stride, s->kernel, sizeof s->stride);
    for (unsigned d = 0; d < WINDOW_DIMS; d++) {
        s->pad[d] = 0;
        s->dilation[d] = 1;
    }
    s->ceil = arg_bool(o, "ceil_mode");
    return window_arg(o, "stride", nd, 1, 1, s->stride) &&
           window_arg(o, "padding", nd, 0, 0, s->pad) &&
           window_arg(o, "dilation", nd, 1, 1, s->dilation);
}

static bool slide(struct op *o, const struct sliding *s, unsigned d, struct axis *a)
{
    const int64_t reach = s->dilation[d] * (s->kernel[d] - 1) + 1;
    const int64_t room = a->in + 2 * s->pad[d] - reach;
    if (s->pad[d] > reach / 2)
        return op_fail(o, PLUMB_E_ARG, "%s: padding %lld is more than half the kernel",
                       o->call->name, (long long)s->pad[d]) != NULL;
    if (a->in > INT64_MAX / 4 || room < 0)
        return op_fail(o, PLUMB_E_ARG, "%s: no window of %lld fits into %lld elements (padded)",
                       o->call->name, (long long)reach, (long long)(room + reach)) != NULL;
    a->out = (room + (s->ceil ? s->stride[d] - 1 : 0)) / s->stride[d] + 1;
    if (s->ceil && (a->out - 1) * s->stride[d] >= a->in + s->pad[d])
        a->out--; /* the last window would begin in the padding behind */
    a->step = s->dilation[d];
    if (!axis_alloc(o, a))
        return false;
    for (int64_t i = 0; i < a->out; i++) {
        int64_t start = i * s->stride[d] - s->pad[d], end = start + reach;
        const int64_t padded_end = end < a->in + s->pad[d] ? end : a->in + s->pad[d];
        a->size[i] = padded_end - start;
        if (start < 0)
            start += (-start + a->step - 1) / a->step * a->step;
        if (end > a->in)
            end = a->in;
        a->start[i] = start;
        a->end[i] = end;
        if (end <= start)
            return op_fail(o, PLUMB_E_ARG, "%s: a window with nothing but padding",
                           o->call->name) != NULL;
        if (!s->count_padding)
            a->size[i] = a->end[i] - a->start[i];
    }
    return true;
}

/* Windows that share a dimension out evenly. */
static bool share(struct op *o, struct axis *a)
{
    a->step = 1;
    if (!axis_alloc(o, a))
        return false;
    const int64_t whole = a->out ? a->in / a->out : 0, rest = a->out ? a->in % a->out : 0;
    for (int64_t i = 0; i < a->out; i++) {
        a->start[i] = whole * i + rest * i / a->out;
        a->end[i] = whole * (i + 1) + (rest * (i + 1) + a->out - 1) / a->out;
        a->size[i] = a->end[i] - a->start[i];
    }
    return true;
}

/* ---- Setting up -------------------------------------------------------------------------------- */

/* The pool over the last nd dimensions of x, sizes of the input only. */
static struct pool *pool_begin(struct op *o, const struct val *x, unsigned nd)
{
    struct pool *p = op_alloc(o, 1, sizeof *p);
    if (!p || !x)
        return NULL;
    if (!x->f)
        return op_fail(o, PLUMB_E_ARG, "%s: not defined for %s", o->call->name,
                       plumb_dtype_info(x->dtype)->name);
    if (x->rank != nd + 1 && x->rank != nd + 2)
        return op_fail(o, PLUMB_E_ARG, "%s: an input of %u dimensions (%u or %u are possible)",
                       o->call->name, x->rank, nd + 1, nd + 2);
    p->planes = p->in_count = p->out_count = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        p->axis[d].in = p->axis[d].out = 1;
    for (unsigned d = 0; d < x->rank; d++)
        if (d + nd < x->rank)
            p->planes *= x->shape[d];
        else
            p->axis[WINDOW_DIMS - x->rank + d].in = x->shape[d];
    return p;
}

/* The result, once the windows are known; also sets the counts. */
static struct val *pool_result(struct op *o, struct pool *p, const struct val *x, unsigned nd,
                               enum plumb_dtype dtype)
{
    int64_t shape[WINDOW_DIMS + 2];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    p->in_count = p->out_count = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++) {
        p->in_count *= p->axis[d].in;
        if (d >= WINDOW_DIMS - nd)
            shape[x->rank - WINDOW_DIMS + d] = p->axis[d].out;
        if (__builtin_mul_overflow(p->out_count, p->axis[d].out, &p->out_count))
            return op_fail(o, PLUMB_E_ARG, "%s: absurdly large sizes", o->call->name);
    }
    return val_new(o, dtype, x->rank, shape);
}

static bool plain_axes(struct op *o, struct pool *p, unsigned nd)
{
    for (unsigned d = 0; d < WINDOW_DIMS - nd; d++)
        if (!share(o, &p->axis[d]))
            return false;
    return true;
}

static struct pool *sliding_pool(struct op *o, const struct val *x, unsigned nd, bool mean)
{
    struct pool *p = pool_begin(o, x, nd);
    struct sliding s = {0};
    if (!p || !read_sliding(o, nd, &s) || !plain_axes(o, p, nd))
        return NULL;
    s.count_padding = mean && arg_bool(o, "count_include_pad");
    for (unsigned d = WINDOW_DIMS - nd; d < WINDOW_DIMS; d++)
        if (!slide(o, &s, d, &p->axis[d]))
            return NULL;
    return p;
}

static struct pool *adaptive_pool(struct op *o, const struct val *x, unsigned nd)
{
    struct pool *p = pool_begin(o, x, nd);
    const struct plumb_arg *size = arg_raw(o, "output_size");
    if (!p || !size || !plain_axes(o, p, nd))
        return NULL;
    const bool list = size->kind == PLUMB_ARG_LIST;
    if (list && size->n_items != nd && size->n_items != 1)
        return op_fail(o, PLUMB_E_ARG, "%s: output_size has %zu numbers for %u dimensions",
                       o->call->name, size->n_items, nd);
    for (unsigned d = 0; d < nd; d++) {
        struct axis *a = &p->axis[WINDOW_DIMS - nd + d];
        const struct plumb_arg *wanted = !list ? size : &size->items[size->n_items == 1 ? 0 : d];
        a->out = wanted->kind == PLUMB_ARG_NONE ? a->in : wanted->integer;
        if (a->out < 0 || a->out > INT32_MAX || (a->in == 0 && a->out > 0))
            return op_fail(o, PLUMB_E_ARG, "%s: output_size %lld of an input of %lld",
                           o->call->name, (long long)a->out, (long long)a->in);
        if (!share(o, a))
            return NULL;
    }
    return p;
}

/* Goes through the windows of a plane in the order of the output. */
static bool spot_next(const struct pool *p, struct spot *s)
{
    for (unsigned d = WINDOW_DIMS; d-- > 0;) {
        if (++s->at[d] < p->axis[d].out)
            return true;
        s->at[d] = 0;
    }
    return false;
}

/* ---- Largest element --------------------------------------------------------------------------- */

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
};

static void max_backward(struct op *o, struct val *out)
{
    const struct places *s = out->saved;
    real *g = val_grad(o, out->in[0]);
    for (int64_t b = 0; g && b < s->planes; b++)
        for (int64_t k = 0; k < s->out_count; k++)
            g[b * s->in_count + s->index[b * s->out_count + k]] += out->grad[b * s->out_count + k];
}

static struct val *v_max_pool(struct op *o, struct pool *p, struct val *x, unsigned nd,
                              struct val **index)
{
    struct places *s = op_alloc(o, 1, sizeof *s);
    struct val *y = p && s ? pool_result(o, p, x, nd, x->dtype) : NULL;
    *index = y ? val_like(o, y, PLUMB_I64) : NULL;
    if (!*index)
        return NULL;
    *s = (struct places){p->planes, p->in_count, p->out_count, (*index)->i};
    for (int64_t b = 0; p->out_count && b < p->planes; b++) {
        struct spot spot = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, spot_next(p, &spot)) {
            const int64_t at = largest(p, &spot, x->f + b * p->in_count);
            (*index)->i[k] = at;
            y->f[k] = x->f[b * p->in_count + at];
        }
    }
    return val_node(o, y, max_backward, x, NULL, NULL, s);
}

static void return_max(struct op *o, struct pool *p, struct val *x, unsigned nd, bool indices)
{
    struct val *index, *y = v_max_pool(o, p, x, nd, &index);
    op_return(o, y);
    if (indices)
        op_return(o, index);
}

static void max_pool(struct op *o, unsigned nd, bool indices)
{
    struct val *x = arg_tensor(o, "input");
    return_max(o, sliding_pool(o, x, nd, false), x, nd, indices || arg_bool(o, "return_indices"));
}

static void adaptive_max_pool(struct op *o, unsigned nd, bool indices)
{
    struct val *x = arg_tensor(o, "input");
    return_max(o, adaptive_pool(o, x, nd), x, nd, indices || arg_bool(o, "return_indices"));
}

/* ---- Mean -------------------------------------------------------------------------------------- */

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
    for (int64_t b = 0; g && p->out_count && b < p->planes; b++) {
        struct spot s = {0};
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, spot_next(p, &s))
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
        for (int64_t k = b * p->out_count; k < (b + 1) * p->out_count; k++, spot_next(p, &s))
            y->f[k] = window_sum(p, &s, x->f + b * p->in_count) / divisor(p, &s);
    }
    return val_node(o, y, mean_backward, x, NULL, NULL, p);
}

static void avg_pool(struct op *o, unsigned nd)
{
    struct val *x = arg_tensor(o, "input");
    struct pool *p = sliding_pool(o, x, nd, true);
    if (p && arg_given(o, "divisor_override")) {
        p->divisor = arg_int(o, "divisor_override");
        if (p->divisor == 0)
            op_fail(o, PLUMB_E_ARG, "%s: divisor_override is 0", o->call->name);
    }
    op_return(o, v_mean_pool(o, p, x, nd));
}

static void adaptive_avg_pool(struct op *o, unsigned nd)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, v_mean_pool(o, adaptive_pool(o, x, nd), x, nd));
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
static void lp_pool(struct op *o, unsigned nd)
{
    struct val *x = arg_tensor(o, "input");
    const double norm = arg_number(o, "norm_type");
    int64_t kernel[WINDOW_DIMS];
    if (!window_arg(o, "kernel_size", nd, 1, 1, kernel))
        return;
    struct val *power = v_pow(o, x, v_number(o, norm));
    struct val *mean = v_mean_pool(o, sliding_pool(o, power, nd, true), power, nd);
    struct val *positive = v_mul(o, sign_of(o, mean), v_relu(o, v_abs(o, mean)));
    double size = (double)kernel[0] * (double)kernel[1] * (double)kernel[2];
    op_return(o, v_pow(o, v_scale(o, positive, size), v_number(o, 1 / norm)));
}

/* ---- Undoing max pooling ----------------------------------------------------------------------- */

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
    if (!n && !read_sliding(o, nd, &s))
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

static void max_unpool(struct op *o, unsigned nd)
{
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
    *s = (struct places){1, 1, 1, index->i};
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
    op_return(o, val_node(o, y, unpool_backward, x, NULL, NULL, s));
}

/* ---- Operators --------------------------------------------------------------------------------- */

static void run_max_pool1d(struct op *o)
{
    max_pool(o, 1, false);
}
static void run_max_pool2d(struct op *o)
{
    max_pool(o, 2, false);
}
static void run_max_pool3d(struct op *o)
{
    max_pool(o, 3, false);
}
static void run_max_pool1d_indices(struct op *o)
{
    max_pool(o, 1, true);
}
static void run_max_pool2d_indices(struct op *o)
{
    max_pool(o, 2, true);
}
static void run_max_pool3d_indices(struct op *o)
{
    max_pool(o, 3, true);
}
static void run_avg_pool1d(struct op *o)
{
    avg_pool(o, 1);
}
static void run_avg_pool2d(struct op *o)
{
    avg_pool(o, 2);
}
static void run_avg_pool3d(struct op *o)
{
    avg_pool(o, 3);
}
static void run_adaptive_max1d(struct op *o)
{
    adaptive_max_pool(o, 1, false);
}
static void run_adaptive_max2d(struct op *o)
{
    adaptive_max_pool(o, 2, false);
}
static void run_adaptive_max3d(struct op *o)
{
    adaptive_max_pool(o, 3, false);
}
static void run_adaptive_max1d_indices(struct op *o)
{
    adaptive_max_pool(o, 1, true);
}
static void run_adaptive_max2d_indices(struct op *o)
{
    adaptive_max_pool(o, 2, true);
}
static void run_adaptive_max3d_indices(struct op *o)
{
    adaptive_max_pool(o, 3, true);
}
static void run_adaptive_avg1d(struct op *o)
{
    adaptive_avg_pool(o, 1);
}
static void run_adaptive_avg2d(struct op *o)
{
    adaptive_avg_pool(o, 2);
}
static void run_adaptive_avg3d(struct op *o)
{
    adaptive_avg_pool(o, 3);
}
static void run_lp_pool1d(struct op *o)
{
    lp_pool(o, 1);
}
static void run_lp_pool2d(struct op *o)
{
    lp_pool(o, 2);
}
static void run_lp_pool3d(struct op *o)
{
    lp_pool(o, 3);
}
static void run_max_unpool1d(struct op *o)
{
    max_unpool(o, 1);
}
static void run_max_unpool2d(struct op *o)
{
    max_unpool(o, 2);
}
static void run_max_unpool3d(struct op *o)
{
    max_unpool(o, 3);
}

#define MAX                                                                                        \
    "(Tensor input|self, int[] kernel_size, int[]? stride=None, int[] padding=0, int[] "           \
    "dilation=1, bool ceil_mode=False, bool return_indices=False)"
#define AVG                                                                                        \
    "(Tensor input|self, int[] kernel_size, int[]? stride=None, int[] padding=0, bool "            \
    "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)"
#define ADAPTIVE "(Tensor input|self, any output_size, bool return_indices=False)"
#define LP                                                                                         \
    "(Tensor input, number norm_type, int[] kernel_size, int[]? stride=None, bool "                \
    "ceil_mode=False, *, bool count_include_pad=True)"
#define UNPOOL                                                                                     \
    "(Tensor input|self, Tensor indices, int[] kernel_size, int[]? stride=None, int[] "            \
    "padding=0, int[]? output_size=None)"

const struct op_def op_pool[] = {
    {"max_pool1d", "max_pool1d" MAX, run_max_pool1d, 0, NULL},
    {"max_pool2d", "max_pool2d" MAX, run_max_pool2d, 0, NULL},
    {"max_pool3d", "max_pool3d" MAX, run_max_pool3d, 0, NULL},
    {"max_pool1d_with_indices", "max_pool1d_with_indices" MAX, run_max_pool1d_indices, 0, NULL},
    {"max_pool2d_with_indices", "max_pool2d_with_indices" MAX, run_max_pool2d_indices, 0, NULL},
    {"max_pool3d_with_indices", "max_pool3d_with_indices" MAX, run_max_pool3d_indices, 0, NULL},
    {"avg_pool1d", "avg_pool1d" AVG, run_avg_pool1d, 0, NULL},
    {"avg_pool2d", "avg_pool2d" AVG, run_avg_pool2d, 0, NULL},
    {"avg_pool3d", "avg_pool3d" AVG, run_avg_pool3d, 0, NULL},
    {"Functional.adaptive_max_pool1d", "adaptive_max_pool1d" ADAPTIVE, run_adaptive_max1d, 0, NULL},
    {"Functional.adaptive_max_pool2d", "adaptive_max_pool2d" ADAPTIVE, run_adaptive_max2d, 0, NULL},
    {"Functional.adaptive_max_pool3d", "adaptive_max_pool3d" ADAPTIVE, run_adaptive_max3d, 0, NULL},
    {"adaptive_max_pool1d_with_indices adaptive_max_pool1d",
     "adaptive_max_pool1d_with_indices" ADAPTIVE, run_adaptive_max1d_indices, 0, NULL},
    {"adaptive_max_pool2d_with_indices adaptive_max_pool2d",
     "adaptive_max_pool2d_with_indices" ADAPTIVE, run_adaptive_max2d_indices, 0, NULL},
    {"adaptive_max_pool3d_with_indices adaptive_max_pool3d",
     "adaptive_max_pool3d_with_indices" ADAPTIVE, run_adaptive_max3d_indices, 0, NULL},
    {"adaptive_avg_pool1d", "adaptive_avg_pool1d" ADAPTIVE, run_adaptive_avg1d, 0, NULL},
    {"adaptive_avg_pool2d _adaptive_avg_pool2d", "adaptive_avg_pool2d" ADAPTIVE, run_adaptive_avg2d,
     0, NULL},
    {"adaptive_avg_pool3d _adaptive_avg_pool3d", "adaptive_avg_pool3d" ADAPTIVE, run_adaptive_avg3d,
     0, NULL},
    {"lp_pool1d", "lp_pool1d" LP, run_lp_pool1d, 0, "(sum of x^p)^(1/p)"},
    {"lp_pool2d", "lp_pool2d" LP, run_lp_pool2d, 0, "(sum of x^p)^(1/p)"},
    {"lp_pool3d", "lp_pool3d" LP, run_lp_pool3d, 0, "(sum of x^p)^(1/p)"},
    {"max_unpool1d", "max_unpool1d" UNPOOL, run_max_unpool1d, 0, NULL},
    {"max_unpool2d",
     "Aten.max_unpool2d(Tensor input|self, Tensor indices, int[] output_size)\n"
     "max_unpool2d" UNPOOL,
     run_max_unpool2d, 0, NULL},
    {"max_unpool3d",
     "Aten.max_unpool3d(Tensor input|self, Tensor indices, int[] output_size, int[] stride, int[] "
     "padding)\nmax_unpool3d" UNPOOL,
     run_max_unpool3d, 0, NULL},
    {0},
};
