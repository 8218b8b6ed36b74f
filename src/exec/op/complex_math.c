/* Functions of complex numbers: those with a complex derivative, and division and powers. */
#include "exec/op/complex_math.h"

#include "exec/op/elem.h"

#include <string.h>

#define LN2 REAL_C(0.693147180559945309417232121458176568)
#define LN10 REAL_C(2.30258509299404568401799145468436421)

/* ---- Formulas -------------------------------------------------------------------------------- */

static const struct cx one = {1, 0};

static struct cx at(const real *z, int64_t k)
{
    return cx(z[2 * k], z[2 * k + 1]);
}

static struct cx inverse(struct cx z)
{
    return cx_div(one, z);
}

static struct cx f_exp(struct cx z)
{
    const real size = exp(z.re);
    return z.im == 0 ? cx(size, z.im) : cx(size * cos(z.im), size * sin(z.im));
}

static struct cx f_log(struct cx z)
{
    return cx(log(cx_size(z)), atan2(z.im, z.re));
}

static struct cx f_sqrt(struct cx z)
{
    const real size = cx_size(z), root = sqrt(fabs(z.re) / 2 + size / 2);
    if (size == 0 || !isfinite(size))
        return cx(size, z.im);
    return z.re >= 0 ? cx(root, z.im / (2 * root))
                     : cx(fabs(z.im) / (2 * root), copysign(root, z.im));
}

static struct cx d_exp(struct cx z, struct cx w)
{
    (void)z;
    return w;
}

static struct cx d_log(struct cx z, struct cx w)
{
    (void)w;
    return inverse(z);
}

static struct cx d_sqrt(struct cx z, struct cx w)
{
    (void)z;
    return inverse(cx_scale(w, 2));
}

static struct cx f_exp2(struct cx z)
{
    return f_exp(cx_scale(z, LN2));
}

static struct cx d_exp2(struct cx z, struct cx w)
{
    (void)z;
    return cx_scale(w, LN2);
}

static struct cx f_expm1(struct cx z)
{
    const real half = sin(z.im / 2), size = exp(z.re);
    return cx(expm1(z.re) * cos(z.im) - 2 * half * half, size * sin(z.im));
}

static struct cx d_expm1(struct cx z, struct cx w)
{
    (void)w;
    return f_exp(z);
}

static struct cx f_log2(struct cx z)
{
    return cx_scale(f_log(z), 1 / LN2);
}

static struct cx d_log2(struct cx z, struct cx w)
{
    (void)w;
    return cx_scale(inverse(z), 1 / LN2);
}

static struct cx f_log10(struct cx z)
{
    return cx_scale(f_log(z), 1 / LN10);
}

static struct cx d_log10(struct cx z, struct cx w)
{
    (void)w;
    return cx_scale(inverse(z), 1 / LN10);
}

static struct cx f_log1p(struct cx z)
{
    return cx(log1p(z.re * (2 + z.re) + z.im * z.im) / 2, atan2(z.im, 1 + z.re));
}

static struct cx d_log1p(struct cx z, struct cx w)
{
    (void)w;
    return inverse(cx_add(one, z));
}

static struct cx f_rsqrt(struct cx z)
{
    return inverse(f_sqrt(z));
}

static struct cx d_rsqrt(struct cx z, struct cx w)
{
    return cx_div(cx_scale(w, R(-0.5)), z);
}

static struct cx d_reciprocal(struct cx z, struct cx w)
{
    (void)z;
    return cx_scale(cx_mul(w, w), -1);
}

static struct cx f_square(struct cx z)
{
    return cx_mul(z, z);
}

static struct cx d_square(struct cx z, struct cx w)
{
    (void)w;
    return cx_scale(z, 2);
}

static struct cx f_sinh(struct cx z)
{
    return cx(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
}

static struct cx f_cosh(struct cx z)
{
    return cx(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
}

static struct cx f_sin(struct cx z)
{
    return cx(sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im));
}

static struct cx f_cos(struct cx z)
{
    return cx(cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im));
}

static struct cx d_sinh(struct cx z, struct cx w)
{
    (void)w;
    return f_cosh(z);
}

static struct cx d_cosh(struct cx z, struct cx w)
{
    (void)w;
    return f_sinh(z);
}

static struct cx d_sin(struct cx z, struct cx w)
{
    (void)w;
    return f_cos(z);
}

static struct cx d_cos(struct cx z, struct cx w)
{
    (void)w;
    return cx_scale(f_sin(z), -1);
}

static struct cx f_tanh(struct cx z)
{
    if (fabs(z.re) > 45) /* 1 for every type, and what is left of the imaginary part */
        return cx(copysign(R(1), z.re), 4 * sin(z.im) * cos(z.im) * exp(-2 * fabs(z.re)));
    const real s = sinh(z.re), c = cos(z.im), whole = s * s + c * c;
    return cx(s * cosh(z.re) / whole, sin(z.im) * c / whole);
}

static struct cx d_tanh(struct cx z, struct cx w)
{
    (void)z;
    return cx_sub(one, cx_mul(w, w));
}

static struct cx f_tan(struct cx z)
{
    const struct cx t = f_tanh(cx_turn(z));
    return cx(t.im, -t.re);
}

static struct cx d_tan(struct cx z, struct cx w)
{
    (void)z;
    return cx_add(one, cx_mul(w, w));
}

static struct cx f_sigmoid(struct cx z)
{
    return inverse(cx_add(one, f_exp(cx_scale(z, -1))));
}

static struct cx d_sigmoid(struct cx z, struct cx w)
{
    (void)z;
    return cx_mul(w, cx_sub(one, w));
}

static struct cx f_silu(struct cx z)
{
    return cx_mul(z, f_sigmoid(z));
}

static struct cx d_silu(struct cx z, struct cx w)
{
    const struct cx s = f_sigmoid(z);
    return cx_add(s, cx_mul(w, cx_sub(one, s)));
}

/* Kahan's formulas, which keep their accuracy near the branch points. */
static struct cx f_asin(struct cx z)
{
    const struct cx a = f_sqrt(cx_sub(one, z)), b = f_sqrt(cx_add(one, z));
    return cx(atan2(z.re, cx_mul(a, b).re), asinh(cx_mul(cx_conj(a), b).im));
}

static struct cx f_acos(struct cx z)
{
    const struct cx a = f_sqrt(cx_sub(one, z)), b = f_sqrt(cx_add(one, z));
    return cx(2 * atan2(a.re, b.re), asinh(cx_mul(cx_conj(b), a).im));
}

static struct cx f_acosh(struct cx z)
{
    const struct cx a = f_sqrt(cx_sub(z, one)), b = f_sqrt(cx_add(z, one));
    return cx(asinh(cx_mul(cx_conj(a), b).re), 2 * atan2(a.im, b.re));
}

static struct cx f_atanh(struct cx z)
{
    const real below = 1 - z.re;
    return cx(log1p(4 * z.re / (below * below + z.im * z.im)) / 4,
              atan2(2 * z.im, below * (1 + z.re) - z.im * z.im) / 2);
}

static struct cx f_asinh(struct cx z)
{
    const struct cx t = f_asin(cx_turn(z));
    return cx(t.im, -t.re);
}

static struct cx f_atan(struct cx z)
{
    const struct cx t = f_atanh(cx_turn(z));
    return cx(t.im, -t.re);
}

static struct cx d_asin(struct cx z, struct cx w)
{
    (void)w;
    return f_rsqrt(cx_sub(one, cx_mul(z, z)));
}

static struct cx d_acos(struct cx z, struct cx w)
{
    return cx_scale(d_asin(z, w), -1);
}

static struct cx d_acosh(struct cx z, struct cx w)
{
    (void)w;
    return inverse(cx_mul(f_sqrt(cx_sub(z, one)), f_sqrt(cx_add(z, one))));
}

static struct cx d_asinh(struct cx z, struct cx w)
{
    (void)w;
    return f_rsqrt(cx_add(one, cx_mul(z, z)));
}

static struct cx d_atan(struct cx z, struct cx w)
{
    (void)w;
    return inverse(cx_add(one, cx_mul(z, z)));
}

static struct cx d_atanh(struct cx z, struct cx w)
{
    (void)w;
    return inverse(cx_sub(one, cx_mul(z, z)));
}

/* ---- One operand ----------------------------------------------------------------------------- */

void op_between_sizes(struct op *o, real *w, int64_t n, const real *sizes)
{
    if (!o->call->noise)
        return;
    if (o->call->noise->relative == 0) {
        op_between_function(o, w, 2 * n);
        return;
    }
    real *size = op_alloc(o, n, sizeof *size);
    if (!size)
        return;
    for (int64_t k = 0; k < n; k++) {
        const real own = cx_size(at(w, k)) * (sizes ? sizes[k] : 1);
        size[k] = isfinite(own) ? own : 0;
        w[2 * k] += size[k];
        w[2 * k + 1] += size[k];
    }
    op_between_function(o, w, 2 * n);
    for (int64_t k = 0; k < n; k++) {
        w[2 * k] -= size[k];
        w[2 * k + 1] -= size[k];
    }
}

/* What a gradient g of the result is worth to the argument: g times the conjugate slope. */
static void add_slope(real *to, int64_t k, struct cx slope, const real *g)
{
    const struct cx worth = cx_mul(at(g, k), cx_conj(slope));
    to[2 * k] += worth.re;
    to[2 * k + 1] += worth.im;
}

static void holomorphic_backward(struct op *o, struct val *out)
{
    const struct holomorphic *fn = out->saved;
    const struct val *z = out->in[0];
    const int64_t n = z->count / 2;
    real *to = val_grad(o, out->in[0]), *slopes = op_alloc(o, 2 * n, sizeof *slopes);
    if (!to || !slopes)
        return;
    for (int64_t k = 0; k < n; k++) {
        const struct cx slope = fn->slope(at(z->f, k), at(out->f, k));
        slopes[2 * k] = slope.re + fn->apart;
        slopes[2 * k + 1] = slope.im + fn->apart;
    }
    op_between_sizes(o, slopes, n, NULL);
    for (int64_t k = 0; k < n; k++)
        add_slope(to, k, cx_sub(at(slopes, k), cx(fn->apart, fn->apart)), out->grad);
}

struct val *v_holomorphic(struct op *o, struct val *z, const struct holomorphic *fn)
{
    struct val *w = val_like(o, z, z ? z->dtype : PLUMB_F32);
    if (!w)
        return NULL;
    for (int64_t k = 0; k < z->count / 2; k++) {
        const struct cx value = fn->value(at(z->f, k));
        w->f[2 * k] = value.re;
        w->f[2 * k + 1] = value.im;
    }
    op_between_sizes(o, w->f, w->count / 2, NULL);
    return val_node(o, w, holomorphic_backward, z, NULL, NULL, fn);
}

#define HOLOMORPHIC(name, apart)                                                                   \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        static const struct holomorphic fn = {f_##name, d_##name, apart};                          \
        op_return_complex(o, v_holomorphic(o, v_complex(o, arg_tensor(o, "input")), &fn));         \
    }

static struct cx f_reciprocal(struct cx z)
{
    return inverse(z);
}

HOLOMORPHIC(exp, 0)
HOLOMORPHIC(exp2, 0)
HOLOMORPHIC(expm1, 1)
HOLOMORPHIC(log, 0)
HOLOMORPHIC(log2, 0)
HOLOMORPHIC(log10, 0)
HOLOMORPHIC(log1p, 0)
HOLOMORPHIC(sqrt, 0)
HOLOMORPHIC(rsqrt, 0)
HOLOMORPHIC(reciprocal, 0)
HOLOMORPHIC(square, 0)
HOLOMORPHIC(sin, 0)
HOLOMORPHIC(cos, 0)
HOLOMORPHIC(tan, 1)
HOLOMORPHIC(sinh, 0)
HOLOMORPHIC(cosh, 0)
HOLOMORPHIC(tanh, 1)
HOLOMORPHIC(sigmoid, 1)
HOLOMORPHIC(silu, 1)
HOLOMORPHIC(asin, 0)
HOLOMORPHIC(acos, 0)
HOLOMORPHIC(atan, 0)
HOLOMORPHIC(asinh, 0)
HOLOMORPHIC(acosh, 0)
HOLOMORPHIC(atanh, 0)

/* ---- Two operands ---------------------------------------------------------------------------- */

static void pair_backward(struct op *o, struct val *out)
{
    const struct complex_pair *fn = out->saved;
    const int64_t n = out->count / 2;
    const struct val *a = out->in[0], *b = out->in[1];
    real *slopes[2] = {op_alloc(o, out->count, sizeof(real)),
                       op_alloc(o, out->count, sizeof(real))};
    if (!slopes[0] || !slopes[1])
        return;
    for (int64_t k = 0; k < n; k++) {
        struct cx by_a, by_b;
        fn->slopes(at(a->f, k), at(b->f, k), at(out->f, k), &by_a, &by_b);
        memcpy(&slopes[0][2 * k], &by_a, sizeof by_a);
        memcpy(&slopes[1][2 * k], &by_b, sizeof by_b);
    }
    for (unsigned v = 0; v < 2; v++) {
        real *to = val_grad(o, out->in[v]);
        if (!to)
            continue;
        op_between_sizes(o, slopes[v], n, NULL);
        for (int64_t k = 0; k < n; k++)
            add_slope(to, k, at(slopes[v], k), out->grad);
    }
}

struct val *v_complex_pair(struct op *o, struct val *a, struct val *b,
                           const struct complex_pair *fn)
{
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!a || !b || !broadcast_shape(o, a, b, &rank, shape))
        return NULL;
    const enum plumb_dtype dtype = promote_dtypes(a->dtype, b->dtype);
    a = v_broadcast(o, v_cast(o, a, dtype), rank, shape);
    b = v_broadcast(o, v_cast(o, b, dtype), rank, shape);
    struct val *y = a && b ? val_new(o, dtype, rank, shape) : NULL;
    real *sizes = y ? op_alloc(o, y->count, sizeof *sizes) : NULL;
    if (!sizes)
        return NULL;
    for (int64_t k = 0; k < y->count / 2; k++) {
        const struct cx value = fn->value(at(a->f, k), at(b->f, k));
        memcpy(&y->f[2 * k], &value, sizeof value);
        sizes[k] = fn->growth ? fn->growth(at(a->f, k), at(b->f, k)) : 1;
    }
    op_between_sizes(o, y->f, y->count / 2, sizes);
    return val_node(o, y, pair_backward, a, b, NULL, fn);
}

struct val *v_complex_mul(struct op *o, struct val *a, struct val *b)
{
    struct val *ar = v_part(o, a, 0), *ai = v_part(o, a, 1);
    struct val *br = v_part(o, b, 0), *bi = v_part(o, b, 1);
    return v_join(o, v_sub(o, v_mul(o, ar, br), v_mul(o, ai, bi)),
                  v_add(o, v_mul(o, ar, bi), v_mul(o, ai, br)));
}

static void div_slopes(struct cx a, struct cx b, struct cx y, struct cx *by_a, struct cx *by_b)
{
    (void)a;
    *by_a = inverse(b);
    *by_b = cx_scale(cx_div(y, b), -1);
}

static const struct complex_pair quotient = {cx_div, div_slopes, NULL};

static bool is_zero(struct cx z)
{
    return z.re == 0 && z.im == 0;
}

/* Small whole powers by multiplication, as everybody does. */
static struct cx whole_power(struct cx z, int n)
{
    struct cx y = one;
    for (int k = 0; k < (n < 0 ? -n : n); k++)
        y = cx_mul(y, z);
    return n < 0 ? inverse(y) : y;
}

static bool is_small_whole(struct cx b)
{
    return b.im == 0 && fabs(b.re) <= 4 && b.re == floor(b.re);
}

static struct cx power(struct cx a, struct cx b)
{
    if (is_small_whole(b))
        return whole_power(a, (int)b.re);
    return is_zero(a) ? cx(0, 0) : f_exp(cx_mul(b, f_log(a)));
}

static void power_slopes(struct cx a, struct cx b, struct cx y, struct cx *by_a, struct cx *by_b)
{
    *by_a = is_zero(b) ? cx(0, 0) : cx_mul(b, power(a, cx_sub(b, one)));
    *by_b = is_zero(a) ? cx(0, 0) : cx_mul(y, f_log(a));
}

static real power_growth(struct cx a, struct cx b)
{
    return is_zero(a) ? 1 : 1 + cx_size(cx_mul(b, f_log(a)));
}

static const struct complex_pair powers = {power, power_slopes, power_growth};

/* An operand, tensor or number, with parts. */
static struct val *complex_operand(struct op *o, const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_TENSOR)
        return v_complex(o, arg_value(o, arg));
    const bool whole = arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_BOOL;
    return v_join(o, v_number(o, whole ? (double)arg->integer : arg->number),
                  v_number(o, arg->kind == PLUMB_ARG_COMPLEX ? arg->imaginary : 0));
}

/* 2: a tensor with dimensions, 1: one without, 0: a number. The higher decides the type. */
static int weight_of(const struct plumb_arg *arg)
{
    return arg->kind != PLUMB_ARG_TENSOR ? 0 : arg->tensor->rank ? 2 : 1;
}

static struct val *pair_of(struct op *o, const char *first, const char *second,
                           const struct complex_pair *fn)
{
    const struct plumb_arg *x = arg_raw(o, first), *y = arg_raw(o, second);
    if (!x || !y)
        return NULL;
    struct val *a = complex_operand(o, x), *b = complex_operand(o, y);
    if (strcmp(first, "other") == 0) /* a number that became a tensor */
        a = v_detach(o, a);
    const int wx = weight_of(x), wy = weight_of(y);
    if (a && b && wx < wy)
        a = v_cast(o, a, b->dtype);
    if (a && b && wy < wx)
        b = v_cast(o, b, a->dtype);
    return v_complex_pair(o, a, b, fn);
}

static void run_div(struct op *o)
{
    if (arg_given(o, "rounding_mode"))
        op_fail(o, PLUMB_E_ARG, "%s: complex quotients are not rounded", o->call->name);
    op_return_complex(o, pair_of(o, "input", "other", &quotient));
}

static void run_rdiv(struct op *o)
{
    op_return_complex(o, pair_of(o, "other", "input", &quotient));
}

static void run_pow(struct op *o)
{
    op_return_complex(o, pair_of(o, "input", "exponent", &powers));
}

static void run_rpow(struct op *o)
{
    op_return_complex(o, pair_of(o, "other", "input", &powers));
}

#define ONE "(Tensor input|self)"
#define OF_ONE(name, names, about)                                                                 \
    {                                                                                              \
        names, #name ONE, run_##name, OP_COMPLEX, about                                            \
    }

const struct op_def op_complex_math[] = {
    OF_ONE(exp, "Complex.exp Complex.exp_", "exp(x) (cos y + i sin y)"),
    OF_ONE(exp2, "Complex.exp2 Complex.exp2_ Complex.special.exp2 Complex.special_exp2", NULL),
    OF_ONE(expm1, "Complex.expm1 Complex.expm1_ Complex.special.expm1 Complex.special_expm1", NULL),
    OF_ONE(log, "Complex.log Complex.log_", "log |z| + i arg z"),
    OF_ONE(log2, "Complex.log2 Complex.log2_", NULL),
    OF_ONE(log10, "Complex.log10 Complex.log10_", NULL),
    OF_ONE(log1p, "Complex.log1p Complex.log1p_ Complex.special.log1p Complex.special_log1p", NULL),
    OF_ONE(sqrt, "Complex.sqrt Complex.sqrt_", "the root with a real part that is not negative"),
    OF_ONE(rsqrt, "Complex.rsqrt Complex.rsqrt_", NULL),
    OF_ONE(reciprocal, "Complex.reciprocal Complex.reciprocal_", NULL),
    OF_ONE(square, "Complex.square Complex.square_", NULL),
    OF_ONE(sin, "Complex.sin Complex.sin_", NULL),
    OF_ONE(cos, "Complex.cos Complex.cos_", NULL),
    OF_ONE(tan, "Complex.tan Complex.tan_", NULL),
    OF_ONE(sinh, "Complex.sinh Complex.sinh_", NULL),
    OF_ONE(cosh, "Complex.cosh Complex.cosh_", NULL),
    OF_ONE(tanh, "Complex.tanh Complex.tanh_", NULL),
    OF_ONE(sigmoid, "Complex.sigmoid Complex.sigmoid_ Complex.special.expit Complex.special_expit",
           NULL),
    {"Complex.silu Complex.silu_", "silu(Tensor input|self, bool inplace=False)", run_silu,
     OP_COMPLEX, "z / (1 + exp(-z))"},
    OF_ONE(asin, "Complex.asin Complex.asin_ Complex.arcsin Complex.arcsin_", NULL),
    OF_ONE(acos, "Complex.acos Complex.acos_ Complex.arccos Complex.arccos_", NULL),
    OF_ONE(atan, "Complex.atan Complex.atan_ Complex.arctan Complex.arctan_", NULL),
    OF_ONE(asinh, "Complex.asinh Complex.asinh_ Complex.arcsinh Complex.arcsinh_", NULL),
    OF_ONE(acosh, "Complex.acosh Complex.acosh_ Complex.arccosh Complex.arccosh_", NULL),
    OF_ONE(atanh, "Complex.atanh Complex.atanh_ Complex.arctanh Complex.arctanh_", NULL),
    {"Complex.div Complex.div_ Complex.divide Complex.divide_ Complex.true_divide "
     "Complex.true_divide_ Complex.__div__ Complex.__truediv__ Complex.__idiv__ "
     "Complex.__itruediv__",
     "div(Operand input|self, Operand other, *, str? rounding_mode=None)", run_div, OP_COMPLEX,
     NULL},
    {"Complex.__rdiv__ Complex.__rtruediv__", "__rdiv__(Tensor input|self, Operand other)",
     run_rdiv, OP_COMPLEX, "other / input"},
    {"Complex.pow Complex.pow_ Complex.__pow__ Complex.__ipow__",
     "pow(Operand input|self, Operand exponent|other)", run_pow, OP_COMPLEX,
     "exp(exponent log input); whole powers up to 4 by multiplication"},
    {"Complex.__rpow__", "__rpow__(Tensor input|self, Operand other)", run_rpow, OP_COMPLEX,
     "other to the power of input"},
    {0},
};
