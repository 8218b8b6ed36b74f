/* One number for each segment of a dimension: sum, mean, product, smallest, largest. */
#include "exec/op/place.h"

#include <string.h>

enum how { SEGMENT_SUM, SEGMENT_MEAN, SEGMENT_PROD, SEGMENT_MAX, SEGMENT_MIN };

struct segments {
    enum how how;
    int64_t outer, segments, length, inner;
    const int64_t *edge; /* of each row of `outer`: segments + 1 places in 0..length */
    real initial;
    bool has_initial;
};

static enum how how_of(struct op *o)
{
    static const char *const names[] = {"sum", "mean", "prod", "max", "min"};
    const char *text = arg_text(o, "reduce");
    for (size_t k = 0; text && k < sizeof names / sizeof *names; k++)
        if (strcmp(text, names[k]) == 0)
            return (enum how)k;
    op_fail(o, PLUMB_E_ARG, "%s: reduce is sum, mean, prod, max or min", o->call->name);
    return SEGMENT_SUM;
}

/* The edges from lengths, or from offsets, which are edges already; NULL (and failed) where they
 * leave the dimension. */
static const int64_t *edges_of(struct op *o, const struct val *given, bool offsets,
                               const struct segments *s)
{
    const int64_t stride = s->segments + 1;
    int64_t *edge = op_alloc(o, s->outer * stride + 1, sizeof *edge);
    for (int64_t b = 0; edge && b < s->outer; b++) {
        int64_t *to = edge + b * stride;
        for (int64_t k = 0; k < stride; k++) {
            const int64_t before = k ? to[k - 1] : 0;
            if (offsets)
                to[k] = given->i[b * stride + k];
            else if (k && given->i[b * s->segments + k - 1] <= s->length - before)
                to[k] = before + given->i[b * s->segments + k - 1];
            else
                to[k] = k ? -1 : 0;
            if (to[k] < before || to[k] > s->length)
                return op_fail(o, PLUMB_E_ARG, "%s: segment %lld does not lie within %lld elements",
                               o->call->name, (long long)k, (long long)s->length);
        }
    }
    return edge;
}

/* What the arguments say about the segments of x; NULL after a failure. */
static struct segments *read_segments(struct op *o, const struct val *x)
{
    const bool offsets = !arg_given(o, "lengths");
    struct val *given = arg_given(o, offsets ? "offsets" : "lengths")
                            ? arg_index(o, offsets ? "offsets" : "lengths")
                            : NULL;
    struct segments *s = op_alloc(o, 1, sizeof *s);
    const enum how how = how_of(o);
    if (!x || !s || o->failed)
        return NULL;
    const unsigned axis = val_dim(o, x, arg_int(o, "axis"));
    bool fits = x->f && x->rank && given && given->rank == axis + 1;
    for (unsigned d = 0; fits && d < axis; d++)
        fits = given->shape[d] == x->shape[d];
    if (o->failed || !fits || (offsets && given->shape[axis] < 1))
        return op_fail(o, PLUMB_E_ARG,
                       "%s: takes floating-point numbers, and lengths or offsets for all "
                       "dimensions up to the axis",
                       o->call->name);
    const struct span3 span = val_span(x, axis);
    *s = (struct segments){.how = how,
                           .outer = span.outer,
                           .segments = given->shape[axis] - offsets,
                           .length = span.length,
                           .inner = span.inner,
                           .has_initial = arg_given(o, "initial")};
    s->initial = s->has_initial ? (real)arg_number(o, "initial") : 0;
    s->edge = edges_of(o, given, offsets, s);
    return s->edge ? s : NULL;
}

/* ---- Forward --------------------------------------------------------------------------------- */

static real start_of(const struct segments *s)
{
    if (s->has_initial)
        return s->initial;
    return s->how == SEGMENT_PROD  ? R(1)
           : s->how == SEGMENT_MAX ? -R(INFINITY)
           : s->how == SEGMENT_MIN ? R(INFINITY)
                                   : R(0);
}

static real joined(enum how how, real so_far, real x)
{
    switch (how) {
    case SEGMENT_PROD:
        return so_far * x;
    case SEGMENT_MAX:
        return isnan(so_far) || x < so_far ? so_far : x;
    case SEGMENT_MIN:
        return isnan(so_far) || x > so_far ? so_far : x;
    default:
        return so_far + x;
    }
}

/* The n elements of one segment, `inner` apart. */
static real reduced(const struct segments *s, const real *x, int64_t n)
{
    if (s->how == SEGMENT_MEAN && n == 0 && !s->has_initial)
        return R(NAN);
    real value = start_of(s);
    if (s->how == SEGMENT_SUM || s->how == SEGMENT_MEAN)
        value += real_sum(x, n, s->inner);
    else
        for (int64_t k = 0; k < n; k++)
            value = joined(s->how, value, x[k * s->inner]);
    return s->how == SEGMENT_MEAN && n ? value / (real)n : value;
}

/* ---- Backward -------------------------------------------------------------------------------- */

static bool is_chosen(real x, real y)
{
    return x == y || isnan(x);
}

/* Adds to g what the gradient of one segment is worth to its n elements. The extremes that are
 * equal share it. */
static void spread(const struct segments *s, real grad, real y, const real *x, int64_t n, real *g)
{
    const bool extreme = s->how == SEGMENT_MAX || s->how == SEGMENT_MIN;
    int64_t equal = 0;
    for (int64_t k = 0; extreme && k < n; k++)
        equal += is_chosen(x[k * s->inner], y);
    for (int64_t k = 0; k < n; k++) {
        real share = grad;
        if (extreme) {
            share = is_chosen(x[k * s->inner], y) ? grad / (real)equal : 0;
        } else if (s->how == SEGMENT_MEAN) {
            share = grad / (real)n;
        } else if (s->how == SEGMENT_PROD) {
            for (int64_t j = 0; j < n; j++) /* not y / x, which is nothing at zero */
                share *= j == k ? 1 : x[j * s->inner];
            share *= s->has_initial ? s->initial : 1;
        }
        g[k * s->inner] += share;
    }
}

static void spread_all(const struct segments *s, const real *grad, const real *y, const real *x,
                       real *g)
{
    for (int64_t b = 0; b < s->outer; b++)
        for (int64_t k = 0; k < s->segments; k++) {
            const int64_t *edge = s->edge + b * (s->segments + 1) + k;
            for (int64_t j = 0; j < s->inner; j++) {
                const int64_t at = (b * s->length + edge[0]) * s->inner + j,
                              from = (b * s->segments + k) * s->inner + j;
                if (edge[1] > edge[0])
                    spread(s, grad[from], y[from], x + at, edge[1] - edge[0], g + at);
            }
        }
}

static void segments_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    if (g)
        spread_all(out->saved, out->grad, out->f, out->in[0]->f, g);
}

/* ---- The operators --------------------------------------------------------------------------- */

static void run_segment_reduce(struct op *o)
{
    struct val *x = arg_tensor(o, "data");
    struct segments *s = read_segments(o, x);
    if (!s)
        return;
    const unsigned axis = val_dim(o, x, arg_int(o, "axis"));
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[axis] = s->segments;
    struct val *out = val_new(o, x->dtype, x->rank, shape);
    for (int64_t k = 0; out && k < out->count; k++) {
        const int64_t b = k / s->inner / s->segments, which = k / s->inner % s->segments;
        const int64_t *edge = s->edge + b * (s->segments + 1) + which;
        op_terms(edge[1] - edge[0]);
        out->f[k] = reduced(s, x->f + (b * s->length + edge[0]) * s->inner + k % s->inner,
                            edge[1] - edge[0]);
    }
    op_return(o, val_node(o, out, segments_backward, x, NULL, NULL, s));
}

static void run_segment_backward(struct op *o)
{
    struct val *grad = arg_tensor(o, "grad"), *y = arg_tensor(o, "output"),
               *x = arg_tensor(o, "data");
    struct segments *s = read_segments(o, x);
    if (!s || !grad || !y)
        return;
    if (!grad->f || !y->f || !same_shape(grad, y) ||
        grad->count != s->outer * s->segments * s->inner) {
        op_fail(o, PLUMB_E_ARG, "%s: gradient, output and segments do not fit each other",
                o->call->name);
        return;
    }
    struct val *out = val_like(o, x, x->dtype);
    if (out)
        spread_all(s, grad->f, y->f, x->f, out->f);
    op_return(o, out);
}

#define SEGMENTS "Tensor? offsets=None, int axis=0, bool unsafe=False, number? initial=None)"

const struct op_def op_segment[] = {
    {"segment_reduce",
     "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? "
     "indices=None, " SEGMENTS,
     run_segment_reduce, 0, "one number for each segment of the axis"},
    {"_segment_reduce_backward",
     "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? "
     "lengths=None, " SEGMENTS,
     run_segment_backward, OP_NO_GRAD, NULL},
    {0},
};
