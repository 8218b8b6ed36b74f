/* Windows of pooling, from the arguments of the call: sliding, or shared out evenly. */
#include "exec/op/pool.h"

#include <string.h>

static bool axis_alloc(struct op *o, struct axis *a)
{
    a->start = op_alloc(o, a->out + 1, sizeof *a->start);
    a->end = op_alloc(o, a->out + 1, sizeof *a->end);
    a->size = op_alloc(o, a->out + 1, sizeof *a->size);
    return a->start && a->end && a->size;
}

/* ---- Windows from arguments ------------------------------------------------------------------ */

bool pool_read(struct op *o, unsigned nd, struct sliding *s)
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
                       o->call->name, (long long)reach, (long long)room + (long long)reach) != NULL;
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

/* ---- Setting up ------------------------------------------------------------------------------ */

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
struct val *pool_result(struct op *o, struct pool *p, const struct val *x, unsigned nd,
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

struct pool *pool_sliding(struct op *o, const struct val *x, unsigned nd, bool mean)
{
    struct pool *p = pool_begin(o, x, nd);
    struct sliding s = {0};
    if (!p || !pool_read(o, nd, &s) || !plain_axes(o, p, nd))
        return NULL;
    s.count_padding = mean && arg_bool(o, "count_include_pad");
    for (unsigned d = WINDOW_DIMS - nd; d < WINDOW_DIMS; d++)
        if (!slide(o, &s, d, &p->axis[d]))
            return NULL;
    if (mean && arg_given(o, "divisor_override")) {
        p->divisor = arg_int(o, "divisor_override");
        if (p->divisor == 0)
            return op_fail(o, PLUMB_E_ARG, "%s: divisor_override is 0", o->call->name);
    }
    return p;
}

/* What output_size says of dimension d, -1 where it is wrong. */
static int64_t wanted_size(const struct plumb_arg *size, unsigned nd, unsigned d, int64_t in)
{
    if (size->kind == PLUMB_ARG_LIST) {
        if (size->n_items != nd && size->n_items != 1)
            return -1;
        size = &size->items[size->n_items == 1 ? 0 : d];
    }
    return size->kind == PLUMB_ARG_NONE ? in : size->kind == PLUMB_ARG_INT ? size->integer : -1;
}

struct pool *pool_adaptive(struct op *o, const struct val *x, unsigned nd, const struct val *like)
{
    struct pool *p = pool_begin(o, x, nd);
    const struct plumb_arg *size = arg_raw(o, "output_size");
    if (!p || !plain_axes(o, p, nd))
        return NULL;
    for (unsigned d = 0; d < nd; d++) {
        struct axis *a = &p->axis[WINDOW_DIMS - nd + d];
        a->out = !like                   ? wanted_size(size, nd, d, a->in)
                 : like->rank == x->rank ? like->shape[like->rank - nd + d]
                                         : -1;
        if (a->out < 0 || a->out > INT32_MAX || (a->in == 0 && a->out > 0))
            return op_fail(o, PLUMB_E_ARG, "%s: a dimension of %lld cannot get the size asked for",
                           o->call->name, (long long)a->in);
        if (!share(o, a))
            return NULL;
    }
    return p;
}

void pool_next(const struct pool *p, struct spot *s)
{
    for (unsigned d = WINDOW_DIMS; d-- > 0;) {
        if (++s->at[d] < p->axis[d].out)
            return;
        s->at[d] = 0;
    }
}

int64_t pool_overlap(const struct pool *p)
{
    int64_t n = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++) {
        const struct axis *a = &p->axis[d];
        int64_t elements = 0, most = 0;
        for (int64_t i = 0; i < a->out; i++) {
            const int64_t taps = (a->end[i] - a->start[i] + a->step - 1) / a->step;
            elements += taps;
            most = taps > most ? taps : most;
        }
        if (a->step > 1) /* some lie in many windows, others in none */
            n *= most < a->out ? most : a->out;
        else
            n *= a->in > 0 && elements > a->in ? (elements + a->in - 1) / a->in : 1;
    }
    return n;
}
