/* Functions of one element. */
#include "exec/op/curve.h"
#include "exec/op/elem.h"

/* A device takes these slopes from the result it has; the reference takes them from x, where
 * nothing cancels. */
#if OP_REAL == 32
#define TANH_SLOPE (R(1) - y * y)
#define SIGMOID_SLOPE ((R(1) - y) * y)
#else
#define TANH_SLOPE real_sech2(x)
#define SIGMOID_SLOPE real_sigmoid_slope(x)
#endif

#define DEGREE REAL_C(0.01745329251994329576923690768488612713)
#define RADIAN REAL_C(57.29577951308232087679815481410517033)

/* Formulas in columns. */
/* clang-format off */

/* ---- Exponentials, logarithms, roots --------------------------------------------------------- */

ELEM_UNARY(exp,        fast_exp(x),            g * y);
ELEM_UNARY(exp2,       exp2(x),           g * y * REAL_LN2);
ELEM_UNARY_AS(USUAL_Y_1, expm1, expm1(x), g * exp(x));
ELEM_UNARY(log,        log(x),            g / x);
ELEM_UNARY(log2,       log2(x),           g / (x * REAL_LN2));
ELEM_UNARY(log10,      log10(x),          g / (x * REAL_C(2.302585092994045684017991454684364208)));
ELEM_UNARY(log1p,      log1p(x),          g / (x + R(1)));
ELEM_UNARY(sqrt,       sqrt(x),           g / (R(2) * y));
ELEM_UNARY(rsqrt,      R(1) / sqrt(x),    R(-0.5) * g * y * y * y);
ELEM_UNARY(reciprocal, R(1) / x,          -g * y * y);

/* ---- Trigonometric and hyperbolic ------------------------------------------------------------ */

ELEM_UNARY(sin,   sin(x),   g * cos(x));
ELEM_UNARY(cos,   cos(x),   -g * sin(x));
ELEM_UNARY(tan,   tan(x),   g * (R(1) + y * y));
ELEM_UNARY(asin,  asin(x),  g / sqrt((R(1) - x) * (R(1) + x)));
ELEM_UNARY(acos,  acos(x),  -g / sqrt((R(1) - x) * (R(1) + x)));
ELEM_UNARY(atan,  atan(x),  g / (R(1) + x * x));
ELEM_UNARY(sinh,  sinh(x),  g * cosh(x));
ELEM_UNARY(cosh,  cosh(x),  g * sinh(x));
ELEM_UNARY_AS(USUAL_1_YY, tanh, fast_tanh(x),  g * TANH_SLOPE);
ELEM_UNARY(asinh, asinh(x), g / hypot(R(1), x));
ELEM_UNARY(acosh, acosh(x), g / (sqrt(x - R(1)) * sqrt(x + R(1))));
ELEM_UNARY(atanh, atanh(x), g / ((R(1) - x) * (R(1) + x)));
ELEM_UNARY(deg2rad, x * DEGREE, g * DEGREE);
ELEM_UNARY(rad2deg, x * RADIAN, g * RADIAN);

/* ---- Around the logistic function; activations with parameters are in activation.c ----------- */

ELEM_UNARY_AS(USUAL_1_Y_Y, sigmoid,    fast_sigmoid(x),       g * SIGMOID_SLOPE);
ELEM_UNARY(logsigmoid, -real_softplus(-x),    g * fast_sigmoid(-x));
ELEM_UNARY(softplus,   real_softplus(x),      g * fast_sigmoid(x));
ELEM_UNARY_AS(USUAL_TIMES_X, silu, x * fast_sigmoid(x),
              g * (fast_sigmoid(x) + x * real_sigmoid_slope(x)));
ELEM_UNARY_AS(USUAL_HALF_X, gelu,       x * real_normal_below(x),
           g * (real_normal_below(x) + x * real_normal_density(x)));

/* ---- Signs and integers ---------------------------------------------------------------------- */

#define INTEGERS(name, formula)                                                                    \
    static void name##_integers(const int64_t *restrict xs, int64_t *restrict ys, int64_t n)       \
    {                                                                                              \
        for (int64_t k = 0; k < n; k++) {                                                          \
            const int64_t x = xs[k];                                                               \
            ys[k] = (formula);                                                                     \
        }                                                                                          \
    }

/* Unsigned, so that the smallest integer wraps around. */
INTEGERS(abs,    x < 0 ? (int64_t)(0 - (uint64_t)x) : x)
INTEGERS(neg,    (int64_t)(0 - (uint64_t)x))
INTEGERS(square, (int64_t)((uint64_t)x * (uint64_t)x))
INTEGERS(sign,   (x > 0) - (x < 0))
INTEGERS(same,   x)
INTEGERS(relu,   x > 0 ? x : 0)

ELEM_UNARY_INT(abs,      fabs(x),           g * real_sign(x),    abs_integers);
ELEM_UNARY_INT(neg,      -x,                -g,                  neg_integers);
ELEM_UNARY_INT(square,   x * x,             R(2) * g * x,        square_integers);
ELEM_UNARY_INT(sign,     real_sign(x),      R(0),                sign_integers);
ELEM_UNARY_INT(relu,     x < 0 ? R(0) : x,  y <= 0 ? R(0) : g,   relu_integers);
ELEM_UNARY_INT(positive, x,                 g,                   same_integers);
ELEM_UNARY_INT(ceil,     ceil(x),           R(0),                same_integers);
ELEM_UNARY_INT(floor,    floor(x),          R(0),                same_integers);
ELEM_UNARY_INT(trunc,    trunc(x),          R(0),                same_integers);
ELEM_UNARY_INT(round,    rint(x),           R(0),                same_integers);
ELEM_UNARY(frac,         x - trunc(x),      g);
ELEM_UNARY(angle, isnan(x) ? x : x < 0 ? REAL_PI : R(0), R(0));
/* p: 10 to the number of decimals, which may be negative; rounded first, as torch does. */
ELEM_UNARY(round_up,     rint(x * p[0]) / p[0], R(0));
ELEM_UNARY(round_down,   rint(x / p[0]) * p[0], R(0));

/* clang-format on */

/* ---- Building blocks and operators ----------------------------------------------------------- */

/* v_name, for everybody, and run_name, for the table. */
#define RUN(name)                                                                                  \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        op_return(o, elem_unary(o, arg_tensor(o, "input"), &name##_fn, NULL, 0));                  \
    }
#define BLOCK(name)                                                                                \
    struct val *v_##name(struct op *o, struct val *x)                                              \
    {                                                                                              \
        return elem_unary(o, x, &name##_fn, NULL, 0);                                              \
    }

BLOCK(exp)
BLOCK(log)
BLOCK(log1p)
BLOCK(expm1)
BLOCK(sqrt)
BLOCK(rsqrt)
BLOCK(sigmoid)
BLOCK(logsigmoid)
BLOCK(tanh)
BLOCK(softplus)
BLOCK(relu)
BLOCK(silu)
BLOCK(gelu)
BLOCK(abs)
BLOCK(neg)
BLOCK(square)
BLOCK(reciprocal)
BLOCK(sin)
BLOCK(cos)

RUN(exp)
RUN(exp2)
RUN(expm1)
RUN(log)
RUN(log2)
RUN(log10)
RUN(log1p)
RUN(sqrt)
RUN(rsqrt)
RUN(reciprocal)
RUN(sin)
RUN(cos)
RUN(tan)
RUN(asin)
RUN(acos)
RUN(atan)
RUN(sinh)
RUN(cosh)
RUN(tanh)
RUN(asinh)
RUN(acosh)
RUN(atanh)
RUN(deg2rad)
RUN(rad2deg)
RUN(sigmoid)
RUN(abs)
RUN(neg)
RUN(sign)
RUN(relu)
RUN(positive)
RUN(ceil)
RUN(floor)
RUN(trunc)
RUN(frac)
RUN(angle)

/* bool counts as a number here, as in pow. */
static void run_square(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->dtype == PLUMB_BOOL)
        x = v_cast(o, x, PLUMB_I64);
    op_return(o, v_square(o, x));
}

static void run_round(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t decimals = arg_int(o, "decimals");
    if (decimals == 0 || (x && x->i)) {
        op_return(o, elem_unary(o, x, &round_fn, NULL, 0));
        return;
    }
    const real power = pow(R(10), decimals < 0 ? -(real)decimals : (real)decimals);
    op_return(o, elem_unary(o, x, decimals > 0 ? &round_up_fn : &round_down_fn, &power, 1));
}

/* x = mantissa * 2^exponent, with 0.5 <= |mantissa| < 1. */
static void frexp_backward(struct op *o, struct val *out)
{
    const int64_t *exponent = out->saved;
    real *gx = val_grad(o, out->in[0]);
    for (int64_t k = 0; gx && k < out->count; k++)
        gx[k] += ldexp(out->grad[k], (int)-exponent[k]);
}

static void run_frexp(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->i) {
        op_fail(o, PLUMB_E_ARG, "frexp: needs floating-point numbers");
        return;
    }
    struct val *mantissa = x ? val_like(o, x, x->dtype) : NULL;
    struct val *exponent = val_like(o, x, PLUMB_I32);
    for (int64_t k = 0; mantissa && exponent && k < x->count; k++) {
        int e = 0;
        mantissa->f[k] = frexp(x->f[k], &e);
        exponent->i[k] = isfinite(x->f[k]) ? e : 0;
    }
    op_return(o,
              val_node(o, mantissa, frexp_backward, x, NULL, NULL, exponent ? exponent->i : NULL));
    op_return(o, exponent);
    op_return_tuple(o);
}

/* From the result y: y (1 - y), and 1 - y^2. */
static void run_sigmoid_backward(struct op *o)
{
    struct val *y = arg_tensor(o, "output");
    struct val *slope = v_mul(o, y, v_sub(o, v_int(o, 1), y));
    op_return(o, v_mul(o, arg_tensor(o, "grad_output"), slope));
}

static void run_tanh_backward(struct op *o)
{
    struct val *y = arg_tensor(o, "output");
    struct val *slope = v_mul(o, v_sub(o, v_int(o, 1), y), v_offset(o, y, 1));
    op_return(o, v_mul(o, arg_tensor(o, "grad_output"), slope));
}

#define ONE "(Tensor input|self)"

const struct op_def op_unary[] = {
    {"exp exp_", "exp" ONE, run_exp, 0, NULL},
    {"exp2 exp2_ special_exp2 special.exp2", "exp2" ONE, run_exp2, 0, "2^x"},
    {"expm1 expm1_ special_expm1 special.expm1", "expm1" ONE, run_expm1, 0, "exp(x) - 1"},
    {"log log_", "log" ONE, run_log, 0, NULL},
    {"log2 log2_", "log2" ONE, run_log2, 0, NULL},
    {"log10 log10_", "log10" ONE, run_log10, 0, NULL},
    {"log1p log1p_ special_log1p special.log1p", "log1p" ONE, run_log1p, 0, "log(1 + x)"},
    {"sqrt sqrt_", "sqrt" ONE, run_sqrt, 0, NULL},
    {"rsqrt rsqrt_", "rsqrt" ONE, run_rsqrt, 0, "1 / sqrt(x)"},
    {"reciprocal reciprocal_", "reciprocal" ONE, run_reciprocal, 0, "1 / x"},
    {"sin sin_", "sin" ONE, run_sin, 0, NULL},
    {"cos cos_", "cos" ONE, run_cos, 0, NULL},
    {"tan tan_", "tan" ONE, run_tan, 0, NULL},
    {"sinh sinh_", "sinh" ONE, run_sinh, 0, NULL},
    {"cosh cosh_", "cosh" ONE, run_cosh, 0, NULL},
    {"tanh tanh_", "tanh" ONE, run_tanh, 0, NULL},
    {"deg2rad deg2rad_", "deg2rad" ONE, run_deg2rad, 0, NULL},
    {"rad2deg rad2deg_", "rad2deg" ONE, run_rad2deg, 0, NULL},
    {"sigmoid sigmoid_ special_expit special.expit", "sigmoid" ONE, run_sigmoid, 0,
     "1 / (1 + exp(-x))"},
    {"relu relu_", "relu(Tensor input|self, bool inplace=False)", run_relu, OP_EXACT, "max(x, 0)"},
    {"ceil ceil_", "ceil" ONE, run_ceil, OP_EXACT, NULL},
    {"floor floor_", "floor" ONE, run_floor, OP_EXACT, NULL},
    {"frac frac_", "frac" ONE, run_frac, OP_EXACT, "x - trunc(x)"},
    {"asin asin_ arcsin arcsin_", "asin" ONE, run_asin, 0, NULL},
    {"acos acos_ arccos arccos_", "acos" ONE, run_acos, 0, NULL},
    {"atan atan_ arctan arctan_", "atan" ONE, run_atan, 0, NULL},
    {"asinh asinh_ arcsinh arcsinh_", "asinh" ONE, run_asinh, 0, NULL},
    {"acosh acosh_ arccosh arccosh_", "acosh" ONE, run_acosh, 0, NULL},
    {"atanh atanh_ arctanh arctanh_", "atanh" ONE, run_atanh, 0, NULL},
    {"abs abs_ absolute absolute_ __abs__", "abs" ONE, run_abs, OP_EXACT, NULL},
    {"neg neg_ negative negative_ __neg__", "neg" ONE, run_neg, OP_EXACT, NULL},
    {"square square_", "square" ONE, run_square, 0, NULL},
    {"sign sign_ sgn sgn_", "sign" ONE, run_sign, OP_EXACT, "-1, 0 or 1"},
    {"positive __pos__ conj_physical conj_physical_ conj _conj _conj_physical resolve_conj "
     "resolve_neg real",
     "positive" ONE, run_positive, OP_EXACT, "x itself: real numbers only"},
    {"trunc trunc_ fix fix_", "trunc" ONE, run_trunc, OP_EXACT, "towards 0"},
    {"round round_ special_round special.round", "round(Tensor input|self, *, int decimals=0)",
     run_round, 0, "to the nearest, ties to even"},
    {"angle", "angle" ONE, run_angle, 0, "pi for negative numbers, else 0"},
    {"frexp", "frexp" ONE, run_frexp, 0, "mantissa and exponent of 2"},
    {"sigmoid_backward", "sigmoid_backward(Tensor grad_output, Tensor output)",
     run_sigmoid_backward, 0, NULL},
    {"tanh_backward", "tanh_backward(Tensor grad_output, Tensor output)", run_tanh_backward, 0,
     NULL},
    {0},
};
