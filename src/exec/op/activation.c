/* Activation functions. */
#include "exec/op/curve.h"
#include "exec/op/elem.h"
#include "exec/op/pullback.h"

#include <string.h>

/* p: alpha, scale, input scale. */
static inline real real_elu(real x, const real *p)
{
    return p[1] * (x > 0 ? x : p[0] * expm1(x * p[2]));
}

static inline real real_elu_slope(real x, const real *p)
{
    return p[1] * (x > 0 ? R(1) : p[0] * p[2] * exp(x * p[2]));
}

/* x * tanh(log(1 + e^x)) = x * n / (n + 2) with n = e^x (e^x + 2), which does not cancel. */
static inline real real_mish(real x)
{
    const real e = exp(fmin(x, R(40))), n = e * (e + R(2));
    return isnan(x) || x > R(40) ? x : x * (n / (n + R(2)));
}

static inline real real_mish_slope(real x)
{
    const real e = exp(fmin(x, R(40))), n = e * (e + R(2));
    const real t = n / (n + R(2));                                    /* tanh(softplus(x)) */
    const real s = R(4) * (e + R(1)) / (n + R(2)) * (e / (n + R(2))); /* its slope */
    return isnan(x) || x > R(40) ? (isnan(x) ? x : R(1)) : t + x * s;
}

/* x - tanh(x). Near 0 as (x cosh x - sinh x) / cosh x, whose numerator has only terms of one sign:
 * the sum of 2k x^(2k+1) / (2k+1)!. */
static inline real real_tanhshrink(real x)
{
    if (!(fabs(x) < R(1)))
        return x - tanh(x);
    const real square = x * x;
    real term = x * square / R(6), sum = 0;
    for (int k = 1; k < 18; k++) {
        sum += R(2 * k) * term;
        term *= square / R((2 * k + 2) * (2 * k + 3));
    }
    return sum / cosh(x);
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). */
#define GELU_2U                                                                                    \
    (REAL_C(1.595769121605730711759784239737527474) * (x + REAL_C(0.044715) * x * x * x))
#define GELU_2DU                                                                                   \
    (REAL_C(1.595769121605730711759784239737527474) * (R(1) + REAL_C(0.134145) * x * x))

/* The parts of a line of slope 1 beyond +-lambda. */
#define OUTSIDE (x > p[0] || x < -p[0])

/* Formulas in columns. p is what the operator's run function passes. */
/* clang-format off */

ELEM_UNARY(leaky_relu,  x > 0 ? x : x * p[0],             x > 0 ? g : g * p[0]);
ELEM_UNARY(threshold,   x <= p[0] ? p[1] : x,             x <= p[0] ? R(0) : g);
ELEM_UNARY(hardtanh,    x > p[1] ? p[1] : x < p[0] ? (p[0] < p[1] ? p[0] : p[1]) : x,
           x <= p[0] || x >= p[1] ? R(0) : g);
ELEM_UNARY_AS(USUAL_MINUS_ONE, elu, real_elu(x, p), g * real_elu_slope(x, p));
ELEM_UNARY_AS(USUAL_TIMES_X, hardswish,   x < -3 ? R(0) * x : x > 3 ? x : x * (x + R(3)) / R(6),
           x < -3 ? R(0) : x < 3 ? g * (x / R(3) + R(0.5)) : g);
ELEM_UNARY(hardsigmoid, x < -3 ? R(0) : x > 3 ? R(1) : (x + R(3)) / R(6),
           x > -3 && x < 3 ? g / R(6) : R(0));
ELEM_UNARY(hardshrink,  OUTSIDE || isnan(x) ? x : R(0),   OUTSIDE || isnan(x) ? g : R(0));
ELEM_UNARY(softshrink,  x > p[0] ? x - p[0] : x < -p[0] ? x + p[0] : R(0) * x,
           OUTSIDE || isnan(x) ? g : R(0));
ELEM_UNARY_AS(USUAL_FROM_X, tanhshrink,  real_tanhshrink(x),               g * tanh(x) * tanh(x));
ELEM_UNARY(softsign,    x / (R(1) + fabs(x)),
           g / ((R(1) + fabs(x)) * (R(1) + fabs(x))));
/* p: beta, threshold. */
ELEM_UNARY(softplus,    x * p[0] > p[1] ? x : real_softplus(x * p[0]) / p[0],
           x * p[0] > p[1] ? g : g * fast_sigmoid(x * p[0]));
ELEM_UNARY_AS(USUAL_HALF_X, gelu_tanh,   x * fast_sigmoid(GELU_2U),
           g * (fast_sigmoid(GELU_2U) + x * GELU_2DU * real_sigmoid_slope(GELU_2U)));
ELEM_UNARY_AS(USUAL_TIMES_X, mish,        real_mish(x),                     g * real_mish_slope(x));

ELEM_BINARY(prelu, a > 0 ? a : a * b, a > 0 ? g : g * b, a > 0 ? R(0) : g * a);

/* clang-format on */

/* ---- Operators ------------------------------------------------------------------------------- */

static void apply(struct op *o, const struct elem_unary *fn, const real *p, size_t n)
{
    op_return(o, elem_unary(o, arg_tensor(o, "input"), fn, p, n));
}

#define RUN_PLAIN(name)                                                                            \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        apply(o, &name##_fn, NULL, 0);                                                             \
    }

RUN_PLAIN(hardswish)
RUN_PLAIN(hardsigmoid)
RUN_PLAIN(tanhshrink)
RUN_PLAIN(softsign)
RUN_PLAIN(mish)

static void run_silu(struct op *o)
{
    op_return(o, v_silu(o, arg_tensor(o, "input")));
}

static void run_logsigmoid(struct op *o)
{
    op_return(o, v_logsigmoid(o, arg_tensor(o, "input")));
}

/* Its second result is a buffer for the backward, empty where there is none. */
static void run_logsigmoid_forward(struct op *o)
{
    run_logsigmoid(o);
    op_return(o, val_new(o, PLUMB_F32, 1, (const int64_t[]){0}));
}

static void run_leaky_relu(struct op *o)
{
    apply(o, &leaky_relu_fn, (const real[]){R(arg_number(o, "negative_slope"))}, 1);
}

static void run_rrelu(struct op *o)
{
    if (arg_bool(o, "training")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: training=True draws random slopes", o->call->name);
        return;
    }
    const real slope = (R(arg_number(o, "lower")) + R(arg_number(o, "upper"))) / R(2);
    apply(o, &leaky_relu_fn, &slope, 1);
}

static void run_threshold(struct op *o)
{
    const real p[] = {R(arg_number(o, "threshold")), R(arg_number(o, "value"))};
    struct val *x = arg_tensor(o, "input");
    if (x && x->i) /* through the integers' own arithmetic, which is exact */
        op_return(o, v_where(o, v_compare(o, CMP_LE, x, arg_operand(o, "threshold")),
                             v_cast(o, arg_operand(o, "value"), x->dtype), x));
    else
        apply(o, &threshold_fn, p, 2);
}

static void run_hardtanh(struct op *o)
{
    const real p[] = {R(arg_number(o, "min_val")), R(arg_number(o, "max_val"))};
    struct val *x = arg_tensor(o, "input");
    if (x && x->i)
        op_return(o, v_clamp(o, x, trunc((double)p[0]), trunc((double)p[1])));
    else
        apply(o, &hardtanh_fn, p, 2);
}

static void run_relu6(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->i)
        op_return(o, v_clamp(o, x, 0, 6));
    else
        apply(o, &hardtanh_fn, (const real[]){0, 6}, 2);
}

static void run_elu(struct op *o)
{
    real p[] = {R(arg_number(o, "alpha")), 1, 1};
    if (arg_given(o, "scale")) {
        p[1] = R(arg_number(o, "scale"));
        p[2] = R(arg_number(o, "input_scale"));
    }
    apply(o, &elu_fn, p, 3);
}

static void run_celu(struct op *o)
{
    const real alpha = R(arg_number(o, "alpha"));
    if (alpha == 0)
        op_fail(o, PLUMB_E_ARG, "%s: alpha must not be 0", o->call->name);
    else
        apply(o, &elu_fn, (const real[]){alpha, 1, R(1) / alpha}, 3);
}

static void run_selu(struct op *o)
{
    apply(o, &elu_fn,
          (const real[]){REAL_C(1.6732632423543772848170429916717),
                         REAL_C(1.0507009873554804934193349852946), 1},
          3);
}

static void run_hardshrink(struct op *o)
{
    apply(o, &hardshrink_fn, (const real[]){R(arg_number(o, "lambd"))}, 1);
}

static void run_softshrink(struct op *o)
{
    const real lambda = R(arg_number(o, "lambd"));
    if (!(lambda >= 0))
        op_fail(o, PLUMB_E_ARG, "%s: lambd is %g; it must be 0 or more", o->call->name,
                (double)lambda);
    else
        apply(o, &softshrink_fn, &lambda, 1);
}

static void run_softplus(struct op *o)
{
    apply(o, &softplus_fn, (const real[]){R(arg_number(o, "beta")), R(arg_number(o, "threshold"))},
          2);
}

static void run_gelu(struct op *o)
{
    const char *how = arg_text(o, "approximate");
    if (!how || strcmp(how, "none") == 0)
        op_return(o, v_gelu(o, arg_tensor(o, "input")));
    else if (strcmp(how, "tanh") == 0)
        apply(o, &gelu_tanh_fn, NULL, 0);
    else
        op_fail(o, PLUMB_E_ARG, "%s: approximate is '%s', not 'none' or 'tanh'", o->call->name,
                how);
}

static void run_glu(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || o->failed)
        return;
    if (!x->rank || x->shape[dim] % 2) {
        op_fail(o, PLUMB_E_ARG, "%s: dimension %u must have an even size to be halved",
                o->call->name, dim);
        return;
    }
    const int64_t half = x->shape[dim] / 2;
    struct val *gate = v_sigmoid(o, v_narrow(o, x, dim, half, half));
    op_return(o, v_mul(o, v_narrow(o, x, dim, 0, half), gate));
}

/* One weight for all, or one for each channel (dimension 1). */
static void run_prelu(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight");
    if (!x || !weight)
        return;
    if (strncmp(o->call->name, "_prelu_kernel", 13) != 0) {
        const int64_t channels = x->rank > 1 ? x->shape[1] : 1;
        if (weight->count != 1 && weight->count != channels) {
            op_fail(o, PLUMB_E_ARG, "%s: %lld weights for %lld channels", o->call->name,
                    (long long)weight->count, (long long)channels);
            return;
        }
        int64_t shape[OP_RANK];
        for (unsigned d = 0; d < x->rank; d++)
            shape[d] = 1;
        if (x->rank > 1)
            shape[1] = weight->count;
        weight = v_reshape(o, weight, x->rank, shape);
    }
    op_return(o, elem_binary(o, x, weight, x->dtype, &prelu_fn, NULL, 0));
}

static void run_add_relu(struct op *o)
{
    struct val *scaled = v_mul(o, arg_operand(o, "other"), arg_operand(o, "alpha"));
    op_return(o, v_relu(o, v_add(o, arg_tensor(o, "input"), scaled)));
}

/* ---- Backward operators ---------------------------------------------------------------------- */

static const char *const only_input[] = {"input", NULL};
static const char *const input_and_weight[] = {"input", "weight", NULL};

#define PULL(name, inputs)                                                                         \
    static void run_##name##_backward(struct op *o)                                                \
    {                                                                                              \
        elem_pullback(o, run_##name, inputs);                                                      \
    }

PULL(leaky_relu, only_input)
PULL(rrelu, only_input)
PULL(threshold, only_input)
PULL(hardtanh, only_input)
PULL(hardswish, only_input)
PULL(hardsigmoid, only_input)
PULL(hardshrink, only_input)
PULL(softshrink, only_input)
PULL(softplus, only_input)
PULL(gelu, only_input)
PULL(silu, only_input)
PULL(mish, only_input)
PULL(glu, only_input)
PULL(logsigmoid, only_input)
PULL(prelu, input_and_weight)

/* The gradient of each element's weight; autograd adds them up where elements share one. */
static void run_prelu_kernel_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight");
    struct val *grad = arg_tensor(o, "grad_output"), *to[2];
    if (!x || !weight || !grad)
        return;
    struct val *in[] = {x, v_broadcast(o, weight, x->rank, x->shape)};
    struct pullback p;
    if (!in[1] || !pull_begin(o, &p, 2, in))
        return;
    struct val *y = elem_binary(o, x, in[1], x->dtype, &prelu_fn, NULL, 0);
    if (y && pull_end(o, &p, 1, &y, &grad, to)) {
        op_return(o, to[0]);
        op_return(o, to[1]);
    }
}

/* g * slope, where r is the result for is_result: the slope below 0 is then
 * input_scale * (r + alpha * scale). */
static void run_elu_backward(struct op *o)
{
    if (!arg_bool(o, "is_result")) {
        elem_pullback(o, run_elu, only_input);
        return;
    }
    struct val *r = arg_tensor(o, "input");
    const double alpha = arg_number(o, "alpha"), scale = arg_number(o, "scale");
    struct val *below = v_scale(o, v_offset(o, r, alpha * scale), arg_number(o, "input_scale"));
    struct val *slope = v_where(o, v_compare(o, CMP_LE, r, v_int(o, 0)), below, v_number(o, scale));
    op_return(o, v_mul(o, arg_tensor(o, "grad_output"), slope));
}

#define PLAIN "(Tensor input|self, bool inplace=False)"

#define GRAD_PLAIN "(Tensor grad_output, Tensor input|self)"

const struct op_def op_activation[] = {
    {"leaky_relu leaky_relu_",
     "leaky_relu(Tensor input|self, number negative_slope=0.01, bool inplace=False)",
     run_leaky_relu, 0, "x above 0, else negative_slope * x"},
    {"rrelu rrelu_",
     "rrelu(Tensor input|self, number lower=0.125, number upper=0.3333333333333333, bool "
     "training=False, bool inplace=False)",
     run_rrelu, 0, "leaky_relu with the mean of lower and upper (not in training)"},
    {"threshold threshold_",
     "threshold(Tensor input|self, number threshold, number value, bool inplace=False)",
     run_threshold, OP_EXACT, "x above threshold, else value"},
    {"hardtanh hardtanh_",
     "hardtanh(Tensor input|self, number min_val=-1.0, number max_val=1.0, bool inplace=False)",
     run_hardtanh, OP_EXACT, "x limited to [min_val, max_val]"},
    {"relu6 relu6_", "relu6" PLAIN, run_relu6, OP_EXACT, "x limited to [0, 6]"},
    {"elu elu_",
     "Functional.elu(Tensor input|self, number alpha=1.0, bool inplace=False)\n"
     "elu(Tensor input|self, number alpha=1, number scale=1, number input_scale=1)",
     run_elu, 0, "x above 0, else alpha * (exp(x) - 1)"},
    {"celu celu_", "celu(Tensor input|self, number alpha=1.0, bool inplace=False)", run_celu, 0,
     "x above 0, else alpha * (exp(x / alpha) - 1)"},
    {"selu selu_", "selu" PLAIN, run_selu, 0, "elu with fixed alpha and scale"},
    {"hardswish hardswish_", "hardswish" PLAIN, run_hardswish, 0, "x * relu6(x + 3) / 6"},
    {"hardsigmoid hardsigmoid_", "hardsigmoid" PLAIN, run_hardsigmoid, 0, "relu6(x + 3) / 6"},
    {"hardshrink", "hardshrink(Tensor input|self, number lambd=0.5)", run_hardshrink, OP_EXACT,
     "x where |x| > lambd, else 0"},
    {"softshrink", "softshrink(Tensor input|self, number lambd=0.5)", run_softshrink, 0,
     "x brought lambd nearer to 0, but not across"},
    {"tanhshrink", "tanhshrink(Tensor input|self)", run_tanhshrink, 0, "x - tanh(x)"},
    {"softsign", "softsign(Tensor input|self)", run_softsign, 0, "x / (1 + |x|)"},
    {"softplus", "softplus(Tensor input|self, number beta=1, number threshold=20)", run_softplus, 0,
     "log(1 + exp(beta * x)) / beta, x itself above threshold / beta"},
    {"gelu gelu_",
     "gelu(Tensor input|self, *, str approximate='none')\n"
     "gelu(Tensor input|self, str approximate='none')",
     run_gelu, 0, "x times the share of the normal distribution below x"},
    {"silu silu_", "silu" PLAIN, run_silu, 0, "x * sigmoid(x)"},
    {"mish mish_", "mish" PLAIN, run_mish, 0, "x * tanh(softplus(x))"},
    {"glu", "glu(Tensor input|self, int dim=-1)", run_glu, 0,
     "the first half times sigmoid of the second"},
    {"logsigmoid log_sigmoid", "logsigmoid(Tensor input|self)", run_logsigmoid, 0,
     "log(sigmoid(x))"},
    {"log_sigmoid_forward", "log_sigmoid_forward(Tensor input|self)", run_logsigmoid_forward, 0,
     NULL},
    {"prelu _prelu_kernel", "prelu(Tensor input|self, Tensor weight)", run_prelu, 0,
     "x above 0, else weight * x"},
    {"_add_relu _add_relu_", "_add_relu(Tensor input|self, Operand other, *, number alpha=1)",
     run_add_relu, 0, "relu(input + alpha * other)"},
    {"leaky_relu_backward",
     "leaky_relu_backward(Tensor grad_output, Tensor input|self, number negative_slope, bool "
     "self_is_result=False)",
     run_leaky_relu_backward, OP_NO_GRAD, NULL},
    {"rrelu_with_noise rrelu_with_noise_",
     "rrelu_with_noise(Tensor input|self, Tensor noise, number lower=0.125, number "
     "upper=0.3333333333333333, bool training=False, any generator=None)",
     run_rrelu, 0, "not in training"},
    {"rrelu_with_noise_backward",
     "rrelu_with_noise_backward(Tensor grad_output, Tensor input|self, Tensor noise, number lower, "
     "number upper, bool training, bool self_is_result=False)",
     run_rrelu_backward, OP_NO_GRAD, "not in training"},
    {"threshold_backward",
     "threshold_backward(Tensor grad_output, Tensor input|self, number threshold, *, number "
     "value=0)",
     run_threshold_backward, OP_NO_GRAD, NULL},
    {"hardtanh_backward",
     "hardtanh_backward(Tensor grad_output, Tensor input|self, number min_val, number max_val)",
     run_hardtanh_backward, OP_NO_GRAD, NULL},
    {"hardswish_backward", "hardswish_backward" GRAD_PLAIN, run_hardswish_backward, OP_NO_GRAD,
     NULL},
    {"hardsigmoid_backward", "hardsigmoid_backward" GRAD_PLAIN, run_hardsigmoid_backward,
     OP_NO_GRAD, NULL},
    {"hardshrink_backward",
     "hardshrink_backward(Tensor grad_output|grad_out, Tensor input|self, number lambd)",
     run_hardshrink_backward, OP_NO_GRAD, NULL},
    {"softshrink_backward",
     "softshrink_backward(Tensor grad_output, Tensor input|self, number lambd)",
     run_softshrink_backward, OP_NO_GRAD, NULL},
    {"softplus_backward",
     "softplus_backward(Tensor grad_output, Tensor input|self, number beta, number threshold)",
     run_softplus_backward, OP_NO_GRAD, NULL},
    {"gelu_backward",
     "gelu_backward(Tensor grad_output|grad, Tensor input|self, *, str approximate='none')",
     run_gelu_backward, OP_NO_GRAD, NULL},
    {"silu_backward", "silu_backward" GRAD_PLAIN, run_silu_backward, OP_NO_GRAD, NULL},
    {"mish_backward", "mish_backward" GRAD_PLAIN, run_mish_backward, OP_NO_GRAD, NULL},
    {"glu_backward", "glu_backward(Tensor grad_output, Tensor input|self, int dim)",
     run_glu_backward, OP_NO_GRAD, NULL},
    {"log_sigmoid_backward",
     "log_sigmoid_backward(Tensor grad_output, Tensor input|self, Tensor? buffer=None)",
     run_logsigmoid_backward, OP_NO_GRAD, NULL},
    {"prelu_backward", "prelu_backward(Tensor grad_output, Tensor input|self, Tensor weight)",
     run_prelu_backward, OP_NO_GRAD, "gradients of input and weight"},
    {"_prelu_kernel_backward",
     "_prelu_kernel_backward(Tensor grad_output, Tensor input|self, Tensor weight)",
     run_prelu_kernel_backward, OP_NO_GRAD, "gradients of input and of each element's weight"},
    {"elu_backward",
     "elu_backward(Tensor grad_output, number alpha, number scale, number input_scale, bool "
     "is_result, Tensor input|self_or_result)",
     run_elu_backward, OP_NO_GRAD, NULL},
    {0},
};
