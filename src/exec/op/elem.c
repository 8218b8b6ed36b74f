/* Elementwise operators at work: broadcasting, rounding, and gradients summed back. */
#include "exec/op/elem.h"

#include "exec/op/sum.h"

#include <string.h>

/* ---- One operand ----------------------------------------------------------------------------- */

/* Gradients are added to zeros, which are written just before: a piece at a time stays in the
 * cache. */
enum { PIECE = 4096 };

static void clear_fresh(bool fresh, real *x, int64_t n)
{
    if (fresh)
        memset(x, 0, (size_t)n * sizeof *x);
}

struct unary_saved {
    const struct elem_unary *fn;
    real p[ELEM_PARAMS];
};

/* ys as they become in steps, each of which may be disturbed. */
static void usual_steps(struct op *o, enum elem_usual usual, const real *xs, real *ys, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const real x = xs[k], y = ys[k], factor = x != 0 && isfinite(x) ? y / x : 1;
        ys[k] = usual == USUAL_TIMES_X  ? factor
                : usual == USUAL_HALF_X ? R(2) * factor - R(1)
                : usual == USUAL_FROM_X ? x - y
                                        : y + R(1);
    }
    (usual == USUAL_HALF_X ? op_between_function : op_between)(o, ys, n);
    for (int64_t k = 0; usual == USUAL_HALF_X && k < n; k++)
        ys[k] += R(1);
    if (usual == USUAL_HALF_X)
        op_between(o, ys, n);
    for (int64_t k = 0; k < n; k++) {
        const real x = xs[k], y = ys[k];
        ys[k] = usual == USUAL_TIMES_X  ? x * y
                : usual == USUAL_HALF_X ? R(0.5) * x * y
                : usual == USUAL_FROM_X ? x - y
                                        : y - R(1);
    }
}

/* How large the terms are that a slope is the difference of: 1 + x (1 - y), or with 1 - tanh^2
 * times a polynomial. */
static real slope_size(enum elem_usual usual, real x)
{
    const real size = fabs(x) < 8 ? fabs(x) : R(8);
    return usual == USUAL_TIMES_X  ? R(1) + (fabs(x) < 64 ? fabs(x) : R(64))
           : usual == USUAL_HALF_X ? R(1) + size * size
           : usual == USUAL_ONE    ? R(0)
                                   : R(1);
}

/* The gradient with slopes that are made of the results, as these were stored. */
static void slopes_of_results(struct op *o, enum elem_usual usual, const struct val *out, real *gx)
{
    real *part = op_alloc(o, out->count, sizeof *part);
    if (!part)
        return;
    for (int64_t k = 0; k < out->count; k++) {
        const real y = out->f[k];
        part[k] = usual == USUAL_Y_1 ? y + R(1) : usual == USUAL_1_YY ? y * y : R(1) - y;
    }
    op_between(o, part, out->count);
    for (int64_t k = 0; k < out->count; k++)
        part[k] = usual == USUAL_1_YY ? R(1) - part[k] : out->grad[k] * part[k];
    op_between(o, part, out->count);
    for (int64_t k = 0; k < out->count; k++)
        gx[k] += usual == USUAL_1_YY    ? out->grad[k] * part[k]
                 : usual == USUAL_1_Y_Y ? part[k] * out->f[k]
                                        : part[k];
}

/* The gradient with slopes that are rounded before they are multiplied, and that may be
 * differences. */
static void usual_slopes(struct op *o, const struct unary_saved *s, const struct val *x,
                         const struct val *out, real *gx)
{
    real *ones = op_alloc(o, x->count, sizeof *ones), *slope = op_alloc(o, x->count, sizeof *slope);
    for (int64_t k = 0; ones && k < x->count; k++)
        ones[k] = 1;
    if (!ones || !slope)
        return;
    s->fn->slope(x->f, out->f, ones, slope, x->count, s->p);
    for (int64_t k = 0; k < x->count; k++)
        slope[k] += slope_size(s->fn->usual, x->f[k]);
    (s->fn->usual == USUAL_ONE ? op_between_nodes : op_between)(o, slope, x->count);
    for (int64_t k = 0; k < x->count; k++)
        gx[k] += out->grad[k] * (slope[k] - slope_size(s->fn->usual, x->f[k]));
}

static void unary_backward(struct op *o, struct val *out)
{
    struct val *x = out->in[0];
    const struct unary_saved *s = out->saved;
    bool fresh = false;
    real *gx = o->call->noise ? val_grad(o, x) : val_grad_room(o, x, &fresh);
    if (gx && o->call->noise && s->fn->usual > USUAL_ONE && s->fn->usual <= USUAL_1_YY)
        slopes_of_results(o, s->fn->usual, out, gx);
    else if (gx && o->call->noise)
        usual_slopes(o, s, x, out, gx);
    for (int64_t at = 0; gx && !o->call->noise && at < x->count; at += PIECE) {
        const int64_t n = x->count - at < PIECE ? x->count - at : PIECE;
        clear_fresh(fresh, gx + at, n);
        s->fn->slope(x->f + at, out->f + at, out->grad + at, gx + at, n, s->p);
    }
}

struct val *elem_unary(struct op *o, struct val *x, const struct elem_unary *fn, const real *p,
                       size_t n_params)
{
    if (!x || o->failed)
        return NULL;
    if (x->i && fn->integers) {
        struct val *out = val_like(o, x, x->dtype);
        if (!out)
            return NULL;
        out->weak = x->weak;
        fn->integers(x->i, out->i, x->count);
        for (int64_t k = 0; k < out->count; k++)
            out->i[k] = int_wrap(out->dtype, out->i[k]);
        return out;
    }
    bool weak = x->weak;
    x = v_float(o, x);
    struct val *out = x ? val_room_like(o, x, x->dtype) : NULL;
    struct unary_saved *s = op_alloc(o, 1, sizeof *s);
    if (!out || !s)
        return NULL;
    out->weak = weak;
    s->fn = fn;
    if (n_params)
        memcpy(s->p, p, n_params * sizeof *p);
    fn->value(x->f, out->f, x->count, s->p);
    if (o->call->noise && fn->usual > USUAL_1_YY)
        usual_steps(o, fn->usual, x->f, out->f, x->count);
    return val_node(o, out, unary_backward, x, NULL, NULL, s);
}

/* ---- Broadcasting ---------------------------------------------------------------------------- */

/* The size and stride of x along dimension d of a result of `rank` dimensions. */
static int64_t size_along(const struct val *x, unsigned rank, unsigned d)
{
    return d + x->rank < rank ? 1 : x->shape[d + x->rank - rank];
}

static bool common_shape(struct op *o, unsigned operands, struct val *const *in,
                         struct elem_plan *plan)
{
    for (unsigned v = 0; v < operands; v++)
        plan->out_rank = in[v]->rank > plan->out_rank ? in[v]->rank : plan->out_rank;
    for (unsigned d = 0; d < plan->out_rank; d++) {
        int64_t size = 1;
        for (unsigned v = 0; v < operands; v++) {
            int64_t own = size_along(in[v], plan->out_rank, d);
            if (own == 1 || own == size)
                continue;
            if (size != 1) {
                op_fail(o, PLUMB_E_ARG,
                        "%s: sizes %lld and %lld at dimension %u do not broadcast; they must be "
                        "equal or 1",
                        o->call->name, (long long)size, (long long)own, d);
                return false;
            }
            size = own;
        }
        plan->out_shape[d] = size;
    }
    return true;
}

bool elem_plan(struct op *o, unsigned operands, struct val *const *in, struct elem_plan *plan)
{
    for (unsigned v = 0; v < operands; v++)
        if (!in[v] || o->failed)
            return false;
    memset(plan, 0, sizeof *plan);
    plan->operands = operands;
    if (!common_shape(o, operands, in, plan))
        return false;

    /* From the innermost dimension out, into the end of the arrays; joined where every operand
     * goes on as if it were one dimension. */
    int64_t dense[3] = {1, 1, 1};
    int64_t shape[OP_RANK + 1], stride[3][OP_RANK + 1];
    unsigned rank = 0;
    for (unsigned d = plan->out_rank; d-- > 0;) {
        int64_t size = plan->out_shape[d], step[3] = {0, 0, 0};
        bool join = rank > 0;
        for (unsigned v = 0; v < operands; v++) {
            int64_t own = size_along(in[v], plan->out_rank, d);
            step[v] = own == 1 ? 0 : dense[v];
            dense[v] *= own;
            join = join && step[v] == stride[v][rank - 1] * shape[rank - 1];
        }
        if (size == 1)
            continue;
        if (join) {
            shape[rank - 1] *= size;
            continue;
        }
        shape[rank] = size;
        for (unsigned v = 0; v < operands; v++)
            stride[v][rank] = step[v];
        rank++;
    }
    if (!rank) {
        shape[0] = 1;
        for (unsigned v = 0; v < operands; v++)
            stride[v][0] = 1;
        rank = 1;
    }
    plan->rank = rank;
    for (unsigned d = 0; d < rank; d++) {
        plan->shape[d] = shape[rank - 1 - d];
        for (unsigned v = 0; v < operands; v++)
            plan->stride[v][d] = stride[v][rank - 1 - d];
    }
    return true;
}

bool elem_next(const struct elem_plan *plan, struct elem_place *place)
{
    place->at += plan->shape[plan->rank - 1];
    for (unsigned d = plan->rank - 1; d-- > 0;) {
        for (unsigned v = 0; v < plan->operands; v++)
            place->offset[v] += plan->stride[v][d];
        if (++place->index[d] < plan->shape[d])
            return true;
        for (unsigned v = 0; v < plan->operands; v++)
            place->offset[v] -= plan->stride[v][d] * plan->shape[d];
        place->index[d] = 0;
    }
    return false;
}

static bool repeated(const struct elem_plan *plan, unsigned operand)
{
    for (unsigned d = 0; d < plan->rank; d++)
        if (!plan->stride[operand][d])
            return true;
    return false;
}

/* Adds x to the running sums, keeping what rounding loses. */
static void add_row(real *restrict sum, real *restrict lost, const real *restrict x, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        sum_add(&sum[k], &lost[k], x[k]);
}

void elem_gather(struct op *o, const struct elem_plan *plan, unsigned operand, const real *full,
                 struct val *x)
{
    real *gx = val_grad(o, x);
    real *sum = op_alloc(o, x->count, sizeof *sum), *lost = op_alloc(o, x->count, sizeof *lost);
    if (!gx || !full || !sum || !lost)
        return;
    const int64_t n = plan->shape[plan->rank - 1];
    const bool along = plan->stride[operand][plan->rank - 1] != 0;
    struct elem_place place = {0};
    int64_t all = 1;
    for (unsigned d = 0; d < plan->rank; d++)
        all *= plan->stride[operand][d] ? 1 : plan->shape[d];
    op_terms(all);
    do {
        const int64_t to = place.offset[operand];
        if (along) {
            add_row(sum + to, lost + to, full + place.at, n);
        } else {
            const real row = real_sum(full + place.at, n, 1);
            add_row(sum + to, lost + to, &row, 1);
        }
    } while (elem_next(plan, &place));
    for (int64_t k = 0; k < x->count; k++)
        gx[k] += tally_value(sum[k], lost[k]);
}

real elem_rounded(enum plumb_dtype dtype, real v)
{
    return dtype == PLUMB_F64   ? v
           : dtype == PLUMB_F32 ? (real)(float)v
                                : (real)plumb_round_to(dtype, (double)v);
}

struct val *elem_operand(struct op *o, struct val *x, enum plumb_dtype dtype)
{
    if (!x)
        return NULL;
    if (x->dtype == dtype || (x->weak && x->f && dtype_is_float(dtype)))
        return x;
    return v_cast(o, x, x->weak && dtype_is_float(dtype) ? PLUMB_F64 : dtype);
}

static bool in_place(const char *name)
{
    const size_t n = strlen(name);
    if (n > 4 && strncmp(name, "__i", 3) == 0)
        return strcmp(name, "__invert__") != 0;
    return n > 1 && name[n - 1] == '_' && name[n - 2] != '_';
}

void elem_return(struct op *o, const struct val *self, struct val *out)
{
    op_return(o, self && in_place(o->call->name) ? v_cast(o, out, self->dtype) : out);
}

/* ---- Two operands ---------------------------------------------------------------------------- */

struct binary_saved {
    const struct elem_binary *fn;
    struct elem_plan plan;
    real p[ELEM_PARAMS];
};

/* One row of out, in pieces. full: where gradients go, or NULL; fresh: see val_grad_room(). */
static void binary_slopes(const struct binary_saved *s, const struct val *out,
                          const struct elem_place *place, real *const *full, const bool *fresh)
{
    const unsigned last = s->plan.rank - 1;
    const int64_t sa = s->plan.stride[0][last], sb = s->plan.stride[1][last];
    const real *a = out->in[0]->f + place->offset[0], *b = out->in[1]->f + place->offset[1];
    const int64_t length = s->plan.shape[last];
    for (int64_t k = 0; k < length; k += PIECE) {
        const int64_t n = length - k < PIECE ? length - k : PIECE, at = place->at + k;
        real *to[2];
        for (unsigned v = 0; v < 2; v++) {
            to[v] = full[v] ? full[v] + at : NULL;
            clear_fresh(fresh[v], to[v], n);
        }
        s->fn->slope(a + k * sa, sa, b + k * sb, sb, out->f + at, out->grad + at, to[0], to[1], n,
                     s->p);
    }
}

static void binary_backward(struct op *o, struct val *out)
{
    const struct binary_saved *s = out->saved;
    const struct elem_plan *plan = &s->plan;
    struct val *in[2] = {out->in[0], out->in[1]};
    real *full[2] = {NULL, NULL};
    bool fresh[2] = {false, false};
    for (unsigned v = 0; v < 2; v++) {
        if (!in[v] || !in[v]->needs_grad)
            continue;
        if (repeated(plan, v)) {
            full[v] = op_room(o, out->count, sizeof **full);
            fresh[v] = true;
        } else {
            full[v] = val_grad_room(o, in[v], &fresh[v]);
        }
        if (!full[v])
            return;
    }
    if (!out->count)
        return;
    struct elem_place place = {0};
    do {
        binary_slopes(s, out, &place, full, fresh);
    } while (elem_next(plan, &place));
    for (unsigned v = 0; v < 2; v++)
        if (full[v] && repeated(plan, v))
            elem_gather(o, plan, v, full[v], in[v]);
}

struct val *elem_binary(struct op *o, struct val *a, struct val *b, enum plumb_dtype dtype,
                        const struct elem_binary *fn, const real *p, size_t n_params)
{
    struct binary_saved *s = op_alloc(o, 1, sizeof *s);
    if (!s || !a || !b)
        return NULL;
    const bool weak = a->weak && b->weak;
    a = elem_operand(o, a, dtype);
    b = elem_operand(o, b, dtype);
    if (!elem_plan(o, 2, (struct val *const[]){a, b}, &s->plan))
        return NULL;
    struct val *out = val_room(o, dtype, s->plan.out_rank, s->plan.out_shape);
    if (!out)
        return NULL;
    if (out->i && !fn->integers)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: not for integers", o->call->name);
    out->weak = weak;
    s->fn = fn;
    if (n_params)
        memcpy(s->p, p, n_params * sizeof *p);
    const unsigned last = s->plan.rank - 1;
    const int64_t sa = s->plan.stride[0][last], sb = s->plan.stride[1][last];
    struct elem_place place = {0};
    for (bool more = out->count > 0; more; more = elem_next(&s->plan, &place)) {
        if (out->f)
            fn->value(a->f + place.offset[0], sa, b->f + place.offset[1], sb, out->f + place.at,
                      s->plan.shape[last], s->p);
        else
            fn->integers(a->i + place.offset[0], sa, b->i + place.offset[1], sb, out->i + place.at,
                         s->plan.shape[last]);
    }
    while (elem_next(&s->plan, &place))
        ;
    for (int64_t k = 0; out->i && dtype != PLUMB_I64 && k < out->count; k++)
        out->i[k] = int_wrap(dtype, out->i[k]);
    return fn->slope ? val_node(o, out, binary_backward, a, b, NULL, s) : out;
}
