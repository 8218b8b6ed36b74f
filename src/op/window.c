#include "op/window.h"

bool window_arg(struct op *o, const char *name, unsigned nd, int64_t least, int64_t missing,
                int64_t out[WINDOW_DIMS])
{
    size_t n;
    const int64_t *given = arg_ints(o, name, &n);
    if (o->failed)
        return false;
    for (unsigned d = 0; d < WINDOW_DIMS - nd; d++)
        out[d] = missing;
    if (n == 0)
        return true;
    if (n != 1 && n != nd) {
        op_fail(o, PLUMB_E_ARG, "%s: '%s' lists %zu numbers for %u dimensions", o->call->name, name,
                n, nd);
        return false;
    }
    for (unsigned d = 0; d < nd; d++) {
        const int64_t value = given[n == 1 ? 0 : d];
        if (value < least || value > INT32_MAX) {
            op_fail(o, PLUMB_E_ARG, "%s: '%s' is %lld (at least %lld)", o->call->name, name,
                    (long long)value, (long long)least);
            return false;
        }
        out[WINDOW_DIMS - nd + d] = value;
    }
    return true;
}

bool window_finish(struct op *o, struct window *w)
{
    w->in_count = w->out_count = w->kernel_count = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        if (__builtin_mul_overflow(w->in_count, w->in[d], &w->in_count) ||
            __builtin_mul_overflow(w->out_count, w->out[d], &w->out_count) ||
            __builtin_mul_overflow(w->kernel_count, w->kernel[d], &w->kernel_count)) {
            op_fail(o, PLUMB_E_ARG, "%s: the windows are absurdly large", o->call->name);
            return false;
        }
    return true;
}

/* A run of windows in one row of the output, and one element of the kernel: which input row lies
 * under it (-1: none, padding), and in which column the first window has its element. */
struct run {
    int64_t t, length; /* windows first + t to first + t + length */
    int64_t row, column;
};

/* The run that starts at window first + t, cut at the end of its row and at count. */
static struct run find_run(const struct window *w, int64_t k, int64_t first, int64_t t,
                           int64_t count)
{
    const int64_t at = first + t, across = at % w->out[2], row = at / w->out[2];
    const int64_t place[2] = {row / w->out[1], row % w->out[1]};
    const int64_t tap[2] = {k / w->kernel[2] / w->kernel[1], k / w->kernel[2] % w->kernel[1]};
    struct run r = {.t = t, .length = w->out[2] - across};
    if (r.length > count - t)
        r.length = count - t;
    for (unsigned d = 0; d < 2 && r.row >= 0; d++) {
        const int64_t in = place[d] * w->stride[d] - w->pad[d] + tap[d] * w->dilation[d];
        r.row = in < 0 || in >= w->in[d] ? -1 : r.row * w->in[d] + in;
    }
    r.column = across * w->stride[2] - w->pad[2] + k % w->kernel[2] * w->dilation[2];
    return r;
}

void window_gather(const struct window *w, const real *x, int64_t channels, int64_t first,
                   int64_t count, real *columns)
{
    for (int64_t line = 0; line < channels * w->kernel_count; line++) {
        const real *plane = x + line / w->kernel_count * w->in_count;
        struct run r = {0};
        for (int64_t t = 0; t < count; t += r.length) {
            r = find_run(w, line % w->kernel_count, first, t, count);
            real *to = columns + line * count + t;
            for (int64_t j = 0; j < r.length; j++) {
                const int64_t column = r.column + j * w->stride[2];
                const bool inside = r.row >= 0 && column >= 0 && column < w->in[2];
                to[j] = inside ? plane[r.row * w->in[2] + column] : 0;
            }
        }
    }
}

void window_scatter(const struct window *w, const real *columns, int64_t channels, int64_t first,
                    int64_t count, real *x)
{
    for (int64_t line = 0; line < channels * w->kernel_count; line++) {
        real *plane = x + line / w->kernel_count * w->in_count;
        struct run r = {0};
        for (int64_t t = 0; t < count; t += r.length) {
            r = find_run(w, line % w->kernel_count, first, t, count);
            const real *from = columns + line * count + t;
            for (int64_t j = 0; j < r.length && r.row >= 0; j++) {
                const int64_t column = r.column + j * w->stride[2];
                if (column >= 0 && column < w->in[2])
                    plane[r.row * w->in[2] + column] += from[j];
            }
        }
    }
}
