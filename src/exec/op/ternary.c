/* Operators of three operands, and those that choose between values. */
#include "exec/op/elem.h"

#include <string.h>

/* ---- where ----------------------------------------------------------------------------------- */

static void where_backward(struct op *o, struct val *out)
{
    const struct elem_plan *plan = out->saved;
    const struct val *cond = out->in[0];
    const unsigned last = plan->rank - 1;
    for (unsigned v = 1; v < 3; v++) {
        struct val *x = out->in[v];
        if (!val_grad(o, x) || !out->count)
            continue;
        real *full = op_alloc(o, out->count, sizeof *full);
        if (!full)
            return;
        struct elem_place place = {0};
        do {
            const int64_t *c = cond->i + place.offset[0];
            const int64_t sc = plan->stride[0][last];
            for (int64_t k = 0; k < plan->shape[last]; k++)
                full[place.at + k] = (c[k * sc] != 0) == (v == 1) ? out->grad[place.at + k] : R(0);
        } while (elem_next(plan, &place));
        elem_gather(o, plan, v, full, x);
    }
}

/* One run of a choice; the strides are constants where it matters. */
#define CHOOSE(type)                                                                               \
    static void choose_##type(const int64_t *c, int64_t sc, const type a[], int64_t sa,            \
                              const type b[], int64_t sb, type y[], int64_t n)                     \
    {                                                                                              \
        if (sc == 1 && sa == 1 && sb == 1)                                                         \
            for (int64_t k = 0; k < n; k++)                                                        \
                y[k] = c[k] ? a[k] : b[k];                                                         \
        else                                                                                       \
            for (int64_t k = 0; k < n; k++)                                                        \
                y[k] = c[k * sc] ? a[k * sa] : b[k * sb];                                          \
    }

CHOOSE(real)
CHOOSE(int64_t)

struct val *v_where(struct op *o, struct val *cond, struct val *a, struct val *b)
{
    if (!cond || !a || !b)
        return NULL;
    if (!cond->i)
        return op_fail(o, PLUMB_E_ARG, "%s: the condition must be bool", o->call->name);
    const enum plumb_dtype dtype = promote(a, b);
    a = elem_operand(o, a, dtype);
    b = elem_operand(o, b, dtype);
    struct elem_plan *plan = op_alloc(o, 1, sizeof *plan);
    if (!plan || !elem_plan(o, 3, (struct val *const[]){cond, a, b}, plan))
        return NULL;
    struct val *out = val_new(o, dtype, plan->out_rank, plan->out_shape);
    if (!out)
        return NULL;
    const unsigned last = plan->rank - 1;
    const int64_t *s[3] = {plan->stride[0], plan->stride[1], plan->stride[2]};
    struct elem_place place = {0};
    for (bool more = out->count > 0; more; more = elem_next(plan, &place)) {
        const int64_t *at = place.offset;
        if (out->f)
            choose_real(cond->i + at[0], s[0][last], a->f + at[1], s[1][last], b->f + at[2],
                        s[2][last], out->f + place.at, plan->shape[last]);
        else
            choose_int64_t(cond->i + at[0], s[0][last], a->i + at[1], s[1][last], b->i + at[2],
                           s[2][last], out->i + place.at, plan->shape[last]);
    }
    return val_node(o, out, where_backward, cond, a, b, plan);
}

/* ---- clamp ----------------------------------------------------------------------------------- */

/* p: lowest, highest. NaN stays; the limits themselves let the gradient through. */
static void clamp_value(const real *restrict xs, real *restrict ys, int64_t n, const real *p)
{
    const real lo = p[0], hi = p[1];
    for (int64_t k = 0; k < n; k++) {
        const real x = xs[k], raised = x < lo ? lo : x;
        ys[k] = raised > hi ? hi : raised;
    }
}

static void clamp_slope(const real *restrict xs, const real *restrict ys, const real *restrict gs,
                        real *restrict out, int64_t n, const real *p)
{
    (void)ys;
    for (int64_t k = 0; k < n; k++)
        out[k] += xs[k] >= p[0] && xs[k] <= p[1] ? gs[k] : R(0);
}

static const struct elem_unary clamp_fn = {clamp_value, clamp_slope, NULL, USUAL_ONE};

/* The limit as an integer of the range of int64. */
static int64_t whole(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

struct val *v_clamp(struct op *o, struct val *x, double lo, double hi)
{
    if (!x)
        return NULL;
    const bool integers = x->i && !isnan(lo) && !isnan(hi) && (isinf(lo) || trunc(lo) == lo) &&
                          (isinf(hi) || trunc(hi) == hi);
    if (!integers)
        return elem_unary(o, x, &clamp_fn, (real[]){R(lo), R(hi)}, 2);
    struct val *out = val_like(o, x, x->dtype);
    const int64_t low = whole(lo), high = whole(hi);
    for (int64_t k = 0; out && k < out->count; k++) {
        const int64_t raised = x->i[k] < low ? low : x->i[k];
        out->i[k] = int_wrap(out->dtype, raised > high ? high : raised);
    }
    return out;
}

/* Limits that are operands themselves: a raised to at least b, a lowered to at most b. */
ELEM_INTEGERS(raise, a < b ? b : a)
ELEM_INTEGERS(lower, a > b ? b : a)
ELEM_BINARY_INT(raise,
                isnan(a) ? a
                : a >= b ? a
                         : b,
                a >= b ? g : R(0), a < b ? g : R(0), raise_integers);
ELEM_BINARY_INT(lower,
                isnan(a) ? a
                : a <= b ? a
                         : b,
                a <= b ? g : R(0), a > b ? g : R(0), lower_integers);

static void run_clamp(struct op *o)
{
    struct val *x = arg_operand(o, "input"), *out = x;
    if (!x)
        return;
    const bool low = arg_given(o, "min"), high = arg_given(o, "max");
    if (!low && !high) {
        op_fail(o, PLUMB_E_ARG, "%s: neither min nor max is given", o->call->name);
        return;
    }
    /* The type comes from all three at once. */
    struct val *lo = low ? arg_operand(o, "min") : NULL, *hi = high ? arg_operand(o, "max") : NULL;
    enum plumb_dtype dtype = x->dtype;
    if (lo)
        dtype = promote(x, lo);
    if (hi)
        dtype = promote_dtypes(dtype, promote(x, hi));
    if (lo)
        out = elem_binary(o, out, lo, dtype, &raise_fn, NULL, 0);
    if (hi)
        out = elem_binary(o, out, hi, dtype, &lower_fn, NULL, 0);
    elem_return(o, x, out);
}

/* ---- NaN to numbers -------------------------------------------------------------------------- */

/* p: instead of NaN, of infinity, of minus infinity. */
ELEM_UNARY(nan_to_num,
           isnan(x)    ? p[0]
           : !isinf(x) ? x
           : x > 0     ? p[1]
                       : p[2],
           isfinite(x) ? g : R(0));

static void run_nan_to_num(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!x || x->i) {
        op_return(o, x);
        return;
    }
    const double most = plumb_dtype_info(x->dtype)->max_finite;
    const real p[] = {R(arg_number(o, "nan")),
                      R(arg_given(o, "posinf") ? arg_number(o, "posinf") : most),
                      R(arg_given(o, "neginf") ? arg_number(o, "neginf") : -most)};
    op_return(o, elem_unary(o, x, &nan_to_num_fn, p, 3));
}

/* ---- Sums with products ---------------------------------------------------------------------- */

static struct val *times_value(struct op *o, struct val *x)
{
    struct val *by = arg_operand(o, "value");
    return v_mul(o, x, x && x->i ? v_cast(o, by, x->dtype) : by); /* of integers what is whole */
}

static void run_addcmul(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *product = v_mul(o, arg_tensor(o, "tensor1"), arg_tensor(o, "tensor2"));
    elem_return(o, x, v_add(o, x, times_value(o, product)));
}

static void run_addcdiv(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *quotient = v_div(o, arg_tensor(o, "tensor1"), arg_tensor(o, "tensor2"));
    elem_return(o, x, v_add(o, x, times_value(o, quotient)));
}

/* From the nearer end, so that weights 0 and 1 give the ends themselves. */
static struct val *from_start(struct op *o, struct val *start, struct val *end, struct val *weight)
{
    return v_add(o, start, v_mul(o, weight, v_sub(o, end, start)));
}

static struct val *from_end(struct op *o, struct val *start, struct val *end, struct val *weight)
{
    struct val *rest = v_sub(o, v_number(o, 1), weight);
    return v_sub(o, end, v_mul(o, rest, v_sub(o, end, start)));
}

static void run_lerp(struct op *o)
{
    struct val *start = arg_tensor(o, "input"), *end = arg_tensor(o, "end");
    struct val *weight = arg_operand(o, "weight");
    if (!weight)
        return;
    if (weight->weak) {
        op_return(o, fabs(val_at(weight, 0)) < R(0.5) ? from_start(o, start, end, weight)
                                                      : from_end(o, start, end, weight));
        return;
    }
    struct val *near = v_compare(o, CMP_LT, v_abs(o, v_detach(o, weight)), v_number(o, 0.5));
    op_return(o,
              v_where(o, near, from_start(o, start, end, weight), from_end(o, start, end, weight)));
}

/* ---- where ----------------------------------------------------------------------------------- */

/* The places where the condition holds: an int64 tensor for each dimension. */
static void return_places(struct op *o, const struct val *cond)
{
    int64_t n = 0;
    for (int64_t k = 0; k < cond->count; k++)
        n += val_at(cond, k) != 0;
    const unsigned rank = cond->rank ? cond->rank : 1;
    int64_t inner = cond->count;
    for (unsigned d = 0; d < rank; d++) {
        const int64_t size = cond->rank ? cond->shape[d] : 1;
        struct val *at = val_new(o, PLUMB_I64, 1, &n);
        inner = size ? inner / size : 0;
        for (int64_t k = 0, to = 0; at && k < cond->count; k++)
            if (val_at(cond, k) != 0)
                at->i[to++] = k / inner % size;
        op_return(o, at);
    }
    op_return_tuple(o);
}

static void run_where(struct op *o)
{
    struct val *cond = arg_tensor(o, "condition");
    if (!cond)
        return;
    if (arg_given(o, "input"))
        op_return(o, v_where(o, cond, arg_operand(o, "input"), arg_operand(o, "other")));
    else
        return_places(o, cond);
}

const struct op_def op_ternary[] = {
    {"clamp clamp_ clip clip_", "clamp(Operand input|self, Operand? min=None, Operand? max=None)",
     run_clamp, OP_EXACT, "input limited to [min, max]"},
    {"clamp_min clamp_min_", "clamp_min(Operand input|self, Operand min)", run_clamp, OP_EXACT,
     NULL},
    {"clamp_max clamp_max_", "clamp_max(Operand input|self, Operand max)", run_clamp, OP_EXACT,
     NULL},
    {"nan_to_num nan_to_num_",
     "nan_to_num(Tensor input|self, number nan=0, number? posinf=None, number? neginf=None)",
     run_nan_to_num, OP_EXACT, "infinities become the largest numbers of the type unless given"},
    {"addcmul addcmul_",
     "addcmul(Tensor input|self, Tensor tensor1, Tensor tensor2, *, number value=1)\n"
     "addcmul(Tensor input|self, number value, Tensor tensor1, Tensor tensor2)",
     run_addcmul, 0, "input + value * tensor1 * tensor2"},
    {"addcdiv addcdiv_",
     "addcdiv(Tensor input|self, Tensor tensor1, Tensor tensor2, *, number value=1)\n"
     "addcdiv(Tensor input|self, number value, Tensor tensor1, Tensor tensor2)",
     run_addcdiv, 0, "input + value * tensor1 / tensor2"},
    {"lerp lerp_", "lerp(Tensor input|self, Tensor end, Operand weight)", run_lerp, 0,
     "input + weight * (end - input)"},
    {"where",
     "Tensor.where(Operand input|self, Tensor condition, Operand other)\n"
     "where(Tensor condition, Operand input|self, Operand other)\n"
     "where(Tensor condition)",
     run_where, OP_EXACT, "input where condition holds, else other"},
    {0},
};
