/* unfold and fold: the elements under sliding windows as columns, and columns added up again. */
#include "exec/op/window.h"

#include <string.h>

struct spread {
    struct window w;
    int64_t images, channels;
};

static void gather_all(const struct spread *s, const real *x, real *columns)
{
    for (int64_t b = 0; b < s->images; b++)
        window_gather(&s->w, x + b * s->channels * s->w.in_count, s->channels, 0, s->w.out_count,
                      columns + b * s->channels * s->w.kernel_count * s->w.out_count);
}

static void scatter_all(const struct spread *s, const real *columns, real *x)
{
    for (int64_t b = 0; b < s->images; b++)
        window_scatter(&s->w, columns + b * s->channels * s->w.kernel_count * s->w.out_count,
                       s->channels, 0, s->w.out_count, x + b * s->channels * s->w.in_count);
}

static void unfold_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    if (g)
        scatter_all(out->saved, out->grad, g);
}

/* The gradient is added to what is there already, so the columns are taken apart first. */
static void fold_backward(struct op *o, struct val *out)
{
    const struct val *x = out->in[0];
    real *g = val_grad(o, out->in[0]), *columns = op_alloc(o, x->count + 1, sizeof *columns);
    if (!g || !columns)
        return;
    gather_all(out->saved, out->grad, columns);
    for (int64_t k = 0; k < x->count; k++)
        g[k] += columns[k];
}

/* The windows over an image of h x w. */
static struct spread *read_windows(struct op *o, int64_t h, int64_t w)
{
    struct spread *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    struct window *v = &s->w;
    v->in[0] = v->out[0] = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        v->stride[d] = v->dilation[d] = 1;
    v->in[1] = h;
    v->in[2] = w;
    if (!window_arg(o, "kernel_size", 2, 1, 1, v->kernel) ||
        !window_arg(o, "dilation", 2, 1, 1, v->dilation) ||
        !window_arg(o, "padding", 2, 0, 0, v->pad) || !window_arg(o, "stride", 2, 1, 1, v->stride))
        return NULL;
    for (unsigned d = 1; d < WINDOW_DIMS; d++) {
        const int64_t room = v->in[d] + 2 * v->pad[d] - v->dilation[d] * (v->kernel[d] - 1) - 1;
        if (v->in[d] > INT64_MAX / 4 || room < 0)
            return op_fail(o, PLUMB_E_ARG, "%s: no window fits into %lld elements", o->call->name,
                           (long long)v->in[d]);
        v->out[d] = room / v->stride[d] + 1;
    }
    return window_finish(o, v) ? s : NULL;
}

/* [N, C, H, W] to [N, C * kernel, windows] */
static void run_unfold(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!x)
        return;
    if ((x->rank != 3 && x->rank != 4) || !x->f) {
        op_fail(o, PLUMB_E_ARG, "%s: images [N, C, H, W] or [C, H, W] of floats are needed",
                o->call->name);
        return;
    }
    struct spread *s = read_windows(o, x->shape[x->rank - 2], x->shape[x->rank - 1]);
    if (!s)
        return;
    s->images = x->rank == 4 ? x->shape[0] : 1;
    s->channels = x->shape[x->rank - 3];
    int64_t rows;
    if (__builtin_mul_overflow(s->channels, s->w.kernel_count, &rows)) {
        op_fail(o, PLUMB_E_ARG, "%s: the kernel is absurdly large", o->call->name);
        return;
    }
    const int64_t shape[3] = {s->images, rows, s->w.out_count};
    const unsigned skip = x->rank == 4 ? 0 : 1;
    struct val *y = val_new(o, x->dtype, 3 - skip, shape + skip);
    if (!y)
        return;
    gather_all(s, x->f, y->f);
    op_return(o, val_moved(o, y, unfold_backward, x, NULL, NULL, s));
}

/* [N, C * kernel, windows] to [N, C, H, W] */
static void run_fold(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t size[WINDOW_DIMS] = {0};
    if (!x || !window_arg(o, "output_size", 2, 1, 1, size))
        return;
    struct spread *s = read_windows(o, size[1], size[2]);
    if (!s)
        return;
    if ((x->rank != 2 && x->rank != 3) || !x->f || x->shape[x->rank - 2] % s->w.kernel_count != 0 ||
        x->shape[x->rank - 1] != s->w.out_count) {
        op_fail(o, PLUMB_E_ARG, "%s: columns [N, C * %lld, %lld] are needed for these windows",
                o->call->name, (long long)s->w.kernel_count, (long long)s->w.out_count);
        return;
    }
    s->images = x->rank == 3 ? x->shape[0] : 1;
    s->channels = x->shape[x->rank - 2] / s->w.kernel_count;
    const int64_t shape[4] = {s->images, s->channels, size[1], size[2]};
    const unsigned skip = x->rank == 3 ? 0 : 1;
    struct val *y = val_new(o, x->dtype, 4 - skip, shape + skip);
    if (!y)
        return;
    scatter_all(s, x->f, y->f);
    op_return(o, val_node(o, y, fold_backward, x, NULL, NULL, s));
}

const struct op_def op_spread[] = {
    {"Functional.unfold im2col",
     "unfold(Tensor input|self, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] "
     "stride=1)",
     run_unfold, OP_EXACT, "the elements under each window as a column"},
    {"fold col2im",
     "fold(Tensor input|self, int[] output_size, int[] kernel_size, int[] dilation=1, int[] "
     "padding=0, int[] stride=1)",
     run_fold, 0, "columns added up to an image"},
    {0},
};
