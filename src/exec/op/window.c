/* Elements under sliding windows as columns, and columns added back, line by line. */
#include "exec/op/window.h"

#include <string.h>

unsigned window_rank(const struct op *o)
{
    for (const char *s = o->call->name; *s; s++)
        if (*s >= '1' && *s <= '3' && s[1] == 'd')
            return (unsigned)(*s - '0');
    return 1;
}

bool window_arg(struct op *o, const char *name, unsigned nd, int64_t least, int64_t missing,
                int64_t out[WINDOW_DIMS])
{
    size_t n;
    const int64_t *given = arg_ints(o, name, &n);
    for (unsigned d = 0; d < WINDOW_DIMS - nd; d++)
        out[d] = missing;
    if (n != 0 && n != 1 && n != nd)
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' has %zu numbers for %u dimensions", o->call->name,
                       name, n, nd) != NULL;
    for (unsigned d = WINDOW_DIMS - nd; d < WINDOW_DIMS; d++) {
        if (n != 0)
            out[d] = given[n == 1 ? 0 : d + nd - WINDOW_DIMS];
        if (out[d] < least || out[d] > INT32_MAX)
            return op_fail(o, PLUMB_E_ARG, "%s: '%s' is %lld (at least %lld)", o->call->name, name,
                           (long long)out[d], (long long)least) != NULL;
    }
    return !o->failed;
}

bool window_finish(struct op *o, struct window *w)
{
    w->in_count = w->out_count = w->kernel_count = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        if (__builtin_mul_overflow(w->in_count, w->in[d], &w->in_count) ||
            __builtin_mul_overflow(w->out_count, w->out[d], &w->out_count) ||
            __builtin_mul_overflow(w->kernel_count, w->kernel[d], &w->kernel_count))
            return op_fail(o, PLUMB_E_ARG, "%s: the windows are absurdly large", o->call->name) !=
                   NULL;
    return true;
}

/* A walk along the windows, line by line of the output. */
struct walk {
    int64_t z, y, x, left;
};

static struct walk walk_begin(const struct window *w, int64_t first, int64_t count)
{
    const int64_t line = first / w->out[2];
    return (struct walk){line / w->out[1], line % w->out[1], first % w->out[2], count};
}

/* `length` windows of a line; with one element of the kernel, those numbered [begin, end) see the
 * input's elements from, from + step, ..., the others see padding. */
struct stretch {
    int64_t length, begin, end, from, step;
};

/* What kernel element k sees from the windows up to the end of their line. */
static struct stretch walk_line(const struct window *w, struct walk *at,
                                const int64_t k[WINDOW_DIMS])
{
    struct stretch s = {.length = w->out[2] - at->x, .step = w->stride[2]};
    if (s.length > at->left)
        s.length = at->left;
    const int64_t in_z = at->z * w->stride[0] - w->pad[0] + k[0] * w->dilation[0];
    const int64_t in_y = at->y * w->stride[1] - w->pad[1] + k[1] * w->dilation[1];
    const int64_t in_x = at->x * w->stride[2] - w->pad[2] + k[2] * w->dilation[2];
    at->left -= s.length;
    at->x = 0;
    if (++at->y == w->out[1]) {
        at->y = 0;
        at->z++;
    }
    if (in_z < 0 || in_z >= w->in[0] || in_y < 0 || in_y >= w->in[1])
        return s;
    const int64_t ahead = w->in[2] - in_x;
    s.begin = in_x < 0 ? (-in_x + s.step - 1) / s.step : 0;
    s.end = ahead > 0 ? (ahead + s.step - 1) / s.step : 0;
    if (s.begin > s.length)
        s.begin = s.length;
    if (s.end > s.length)
        s.end = s.length;
    if (s.end < s.begin)
        s.end = s.begin;
    s.from = (in_z * w->in[1] + in_y) * w->in[2] + in_x + s.begin * s.step;
    return s;
}

static void next_element(const struct window *w, int64_t k[WINDOW_DIMS])
{
    for (unsigned d = WINDOW_DIMS; d-- > 0;) {
        if (++k[d] < w->kernel[d])
            return;
        k[d] = 0;
    }
}

void window_gather(const struct window *w, const real *x, int64_t channels, int64_t first,
                   int64_t count, real *columns)
{
    for (int64_t c = 0; c < channels; c++, x += w->in_count) {
        int64_t k[WINDOW_DIMS] = {0};
        for (int64_t i = 0; i < w->kernel_count; i++, next_element(w, k))
            for (struct walk at = walk_begin(w, first, count); at.left > 0;) {
                const struct stretch s = walk_line(w, &at, k);
                for (int64_t j = 0; j < s.begin; j++)
                    columns[j] = 0;
                if (s.step == 1 && s.end > s.begin)
                    memcpy(columns + s.begin, x + s.from, (size_t)(s.end - s.begin) * sizeof *x);
                else
                    for (int64_t j = s.begin; j < s.end; j++)
                        columns[j] = x[s.from + (j - s.begin) * s.step];
                for (int64_t j = s.end; j < s.length; j++)
                    columns[j] = 0;
                columns += s.length;
            }
    }
}

int64_t window_overlap(const struct window *w)
{
    int64_t n = 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++) {
        const int64_t over = (w->kernel[d] + w->stride[d] - 1) / w->stride[d];
        n *= over < w->out[d] ? over : w->out[d];
    }
    return n;
}

void window_scatter(const struct window *w, const real *columns, int64_t channels, int64_t first,
                    int64_t count, real *x)
{
    op_terms(window_overlap(w));
    for (int64_t c = 0; c < channels; c++, x += w->in_count) {
        int64_t k[WINDOW_DIMS] = {0};
        for (int64_t i = 0; i < w->kernel_count; i++, next_element(w, k))
            for (struct walk at = walk_begin(w, first, count); at.left > 0;) {
                const struct stretch s = walk_line(w, &at, k);
                for (int64_t j = s.begin; j < s.end; j++)
                    x[s.from + (j - s.begin) * s.step] += columns[j];
                columns += s.length;
            }
    }
}
