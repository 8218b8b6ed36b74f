/* Questions about elements: is it NaN, are they close, do both hold. */
#include "exec/op/elem.h"

/* ---- One operand ----------------------------------------------------------------------------- */

#define PREDICATE(name, of_float, of_integer)                                                      \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        const struct val *in = arg_tensor(o, "input");                                             \
        struct val *out = val_like(o, in, PLUMB_BOOL);                                             \
        for (int64_t k = 0; out && in->f && k < out->count; k++) {                                 \
            const real x = in->f[k];                                                               \
            out->i[k] = (of_float);                                                                \
        }                                                                                          \
        for (int64_t k = 0; out && in->i && k < out->count; k++) {                                 \
            const int64_t x = in->i[k];                                                            \
            (void)x;                                                                               \
            out->i[k] = (of_integer);                                                              \
        }                                                                                          \
        op_return(o, out);                                                                         \
    }

PREDICATE(isnan, isnan(x) != 0, 0)
PREDICATE(isinf, isinf(x) != 0, 0)
PREDICATE(isfinite, isfinite(x) != 0, 1)
PREDICATE(isposinf, isinf(x) && x > 0, 0)
PREDICATE(isneginf, isinf(x) && x < 0, 0)
PREDICATE(isreal, ((void)x, 1), 1)
PREDICATE(signbit, signbit(x) != 0, x < 0)

/* ---- Logic ----------------------------------------------------------------------------------- */

static struct val *truth(struct op *o, struct val *x)
{
    return v_cast(o, x, PLUMB_BOOL);
}

static void run_logical_not(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *out = v_compare(o, CMP_EQ, truth(o, x), v_int(o, 0));
    elem_return(o, x, out);
}

static void run_logical_and(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_mul(o, truth(o, x), truth(o, arg_operand(o, "other"))));
}

static void run_logical_or(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_maximum(o, truth(o, x), truth(o, arg_operand(o, "other"))));
}

static void run_logical_xor(struct op *o)
{
    struct val *x = arg_operand(o, "input");
    elem_return(o, x, v_compare(o, CMP_NE, truth(o, x), truth(o, arg_operand(o, "other"))));
}

/* ---- Closeness ------------------------------------------------------------------------------- */

/* p: rtol, atol, whether NaN equals NaN. Infinities are close to themselves only. */
static inline real is_close(real a, real b, const real *p)
{
    const real apart = fabs(a - b);
    return (real)(a == b || (p[2] != 0 && isnan(a) && isnan(b)) ||
                  (isfinite(apart) && apart <= p[1] + fabs(p[0] * b)));
}

ELEM_FLAT(close, is_close(a, b, p), NULL);

static struct val *close_elements(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    const real p[] = {R(arg_number(o, "rtol")), R(arg_number(o, "atol")),
                      (real)arg_bool(o, "equal_nan")};
    if (!a || !b)
        return NULL;
    if (!(p[0] >= 0) || !(p[1] >= 0))
        return op_fail(o, PLUMB_E_ARG, "%s: rtol and atol must be 0 or more", o->call->name);
    return v_cast(o, elem_binary(o, a, b, float_dtype(promote(a, b)), &close_fn, p, 3), PLUMB_BOOL);
}

static bool all_hold(const struct val *x)
{
    for (int64_t k = 0; k < x->count; k++)
        if (!x->i[k])
            return false;
    return true;
}

static void run_isclose(struct op *o)
{
    op_return(o, close_elements(o));
}

static void run_allclose(struct op *o)
{
    const struct val *close = close_elements(o);
    if (close)
        op_return_bool(o, all_hold(close));
}

static void run_equal(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    if (!a || !b)
        return;
    const struct val *same = same_shape(a, b) ? v_compare(o, CMP_EQ, a, b) : NULL;
    if (!o->failed)
        op_return_bool(o, same && all_hold(same));
}

#define ONE "(Tensor input|self)"
#define PAIR "(Operand input|self, Operand other)"
#define CLOSE                                                                                      \
    "(Tensor input|self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)"

const struct op_def op_predicate[] = {
    {"isnan", "isnan" ONE, run_isnan, OP_NO_GRAD, NULL},
    {"isinf", "isinf" ONE, run_isinf, OP_NO_GRAD, NULL},
    {"isfinite", "isfinite" ONE, run_isfinite, OP_NO_GRAD, NULL},
    {"isposinf", "isposinf" ONE, run_isposinf, OP_NO_GRAD, NULL},
    {"isneginf", "isneginf" ONE, run_isneginf, OP_NO_GRAD, NULL},
    {"isreal", "isreal" ONE, run_isreal, OP_NO_GRAD, NULL},
    {"signbit", "signbit" ONE, run_signbit, OP_NO_GRAD, "true for -0.0 too"},
    {"logical_not logical_not_", "logical_not" ONE, run_logical_not, OP_NO_GRAD, NULL},
    {"logical_and logical_and_", "logical_and" PAIR, run_logical_and, OP_NO_GRAD, NULL},
    {"logical_or logical_or_", "logical_or" PAIR, run_logical_or, OP_NO_GRAD, NULL},
    {"logical_xor logical_xor_", "logical_xor" PAIR, run_logical_xor, OP_NO_GRAD, NULL},
    {"isclose", "isclose" CLOSE, run_isclose, OP_NO_GRAD | OP_DECISION | OP_COMPUTED,
     "|input - other| <= atol + rtol |other|"},
    {"allclose", "allclose" CLOSE, run_allclose, OP_NO_GRAD | OP_DECISION | OP_COMPUTED,
     "a Python bool"},
    {"equal", "equal(Tensor input|self, Tensor other)", run_equal, OP_NO_GRAD,
     "same shape and elements; a Python bool"},
    {0},
};
