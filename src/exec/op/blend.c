/* Weights of linear, cubic, area and smoothed resampling, and the sums made with them. */
#include "exec/op/blend.h"

#include <string.h>

/* Element j of the result is the sum of weight[k] * x[index[k]] for k in [begin[j], begin[j +
 * 1]). */
struct blend {
    struct span3 from;
    int64_t length;
    int64_t *begin, *index;
    real *weight;
};

static void blend_backward(struct op *o, struct val *out)
{
    const struct blend *b = out->saved;
    real *g = val_grad(o, out->in[0]);
    const int64_t inner = b->from.inner;
    if (b->from.length)
        op_terms_again((b->begin[b->length] + b->from.length - 1) / b->from.length);
    for (int64_t p = 0; g && p < b->from.outer; p++)
        for (int64_t j = 0; j < b->length; j++)
            for (int64_t k = b->begin[j]; k < b->begin[j + 1]; k++) {
                real *to = g + (p * b->from.length + b->index[k]) * inner;
                const real *grad = out->grad + (p * b->length + j) * inner;
                const real w = b->weight[k];
                for (int64_t i = 0; i < inner; i++)
                    to[i] += w * grad[i];
            }
}

struct val *v_blend(struct op *o, struct val *x, unsigned dim, struct blend *b)
{
    if (!x || !b)
        return NULL;
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[dim] = b->length;
    struct val *out = val_new(o, x->dtype, x->rank, shape);
    if (!out)
        return NULL;
    b->from = val_span(x, dim);
    const int64_t inner = b->from.inner;
    if (b->length)
        op_terms_again((b->begin[b->length] + b->length - 1) / b->length);
    for (int64_t p = 0; p < b->from.outer; p++)
        for (int64_t j = 0; j < b->length; j++)
            for (int64_t k = b->begin[j]; k < b->begin[j + 1]; k++) {
                const real *from = x->f + (p * b->from.length + b->index[k]) * inner;
                real *to = out->f + (p * b->length + j) * inner;
                const real w = b->weight[k];
                for (int64_t i = 0; i < inner; i++)
                    to[i] += w * from[i];
            }
    return val_node(o, out, blend_backward, x, NULL, NULL, b);
}

static struct blend *blend_new(struct op *o, int64_t length, int64_t taps)
{
    struct blend *b = op_alloc(o, 1, sizeof *b);
    int64_t total;
    if (!b || __builtin_mul_overflow(length, taps, &total))
        return b ? op_fail(o, PLUMB_E_ARG, "%s: a size of %lld", o->call->name, (long long)length)
                 : NULL;
    b->length = length;
    b->begin = op_alloc(o, length + 1, sizeof *b->begin);
    b->index = op_alloc(o, total + 1, sizeof *b->index);
    b->weight = op_alloc(o, total + 1, sizeof *b->weight);
    return b->begin && b->index && b->weight ? b : NULL;
}

/* ---- Weights ---- */

/* Input steps for one step of the output. */
static real step_of(const struct axis *a)
{
    if (a->align_corners)
        return a->to > 1 ? (real)(a->from - 1) / (real)(a->to - 1) : 0;
    return a->scale > 0 ? (real)(1 / a->scale) : (real)a->from / (real)a->to;
}

static real position_of(const struct axis *a, int64_t j, bool cubic)
{
    const real step = step_of(a);
    if (a->align_corners)
        return step * (real)j;
    const real at = step * ((real)j + R(0.5)) - R(0.5);
    return at < 0 && !cubic ? 0 : at;
}

struct blend *blend_linear(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, 2);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        const real at = position_of(a, j, false);
        int64_t low = at >= (real)(a->from - 1) ? a->from - 1 : (int64_t)at;
        const real part = low == a->from - 1 ? 0 : at - (real)low;
        b->index[k] = low;
        b->weight[k++] = 1 - part;
        b->index[k] = low + (low < a->from - 1);
        b->weight[k++] = part;
        b->begin[j + 1] = k;
    }
    return b;
}

/* Keys' cubic convolution; t: distance from the tap, 0 to 2. */
static real cubic_weight(real t, real a)
{
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

struct blend *blend_cubic(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, 4);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        const real at = position_of(a, j, true), low = floor(at), part = at - low;
        for (int tap = -1; tap <= 2; tap++, k++) {
            real place = low + (real)tap;
            place = place < 0 ? 0 : place > (real)(a->from - 1) ? (real)(a->from - 1) : place;
            b->index[k] = (int64_t)place;
            b->weight[k] = cubic_weight(fabs((real)tap - part), R(-0.75));
        }
        b->begin[j + 1] = k;
    }
    return b;
}

struct blend *blend_area(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, a->from / a->to + 2);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        /* j * from / to without overflow */
        const int64_t whole = a->from / a->to, rest = a->from % a->to;
        const int64_t first = j * whole + j * rest / a->to;
        const int64_t last = (j + 1) * whole + ((j + 1) * rest + a->to - 1) / a->to;
        for (int64_t i = first; i < last; i++, k++) {
            b->index[k] = i;
            b->weight[k] = 1 / (real)(last - first);
        }
        b->begin[j + 1] = k;
    }
    return b;
}

static real smooth_weight(real t, bool cubic)
{
    t = fabs(t);
    if (!cubic)
        return t < 1 ? 1 - t : 0;
    return t < 2 ? cubic_weight(t, R(-0.5)) : 0;
}

struct blend *blend_smooth(struct op *o, const struct axis *a, bool cubic)
{
    const real step = step_of(a), wide = step > 1 ? step : 1;
    const real reach = wide * (cubic ? 2 : 1);
    if (!(reach < 0x1p40F))
        return op_fail(o, PLUMB_E_ARG, "%s: a scale of %g", o->call->name, a->scale);
    const int64_t most = (int64_t)reach * 2 + 3;
    struct blend *b = blend_new(o, a->to, most < a->from ? most : a->from);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        const real centre = step * ((real)j + R(0.5));
        const real low = trunc(centre - reach + R(0.5)), high = trunc(centre + reach + R(0.5));
        const int64_t first = low > 0 ? (int64_t)fmin(low, (real)a->from) : 0;
        const int64_t last = high < (real)a->from ? (int64_t)high : a->from;
        const int64_t start = k;
        real sum = 0;
        for (int64_t i = first; i < last; i++, k++) {
            b->index[k] = i;
            b->weight[k] = smooth_weight(((real)i - centre + R(0.5)) / wide, cubic);
            sum += b->weight[k];
        }
        for (int64_t i = start; sum != 0 && i < k; i++)
            b->weight[i] /= sum;
        b->begin[j + 1] = k;
    }
    return b;
}
