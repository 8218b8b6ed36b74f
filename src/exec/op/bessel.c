/* Bessel functions of order 0 and 1. */
#define _DEFAULT_SOURCE /* j0, j1, y0, y1 */
#include "exec/op/curve.h"
#include "exec/op/elem.h"
#include "exec/op/quad.h"

/* ---- Modified, first kind -------------------------------------------------------------------- */

/* exp(-|x|) I_n(x). For small x the power series, which has only terms of one sign; above, the
 * asymptotic one, whose smallest term is about exp(-2 |x|). */
#if OP_REAL == 128
#define I_SERIES R(42)
#else
#define I_SERIES R(25)
#endif

static real scaled_i(int n, real x)
{
    const real size = fabs(x);
    real sum = 1, term = 1;
    if (size < I_SERIES) {
        const real quarter = x * x / R(4);
        for (int k = 1; k < 200 && term > sum * REAL_EPS / R(8); k++) {
            term *= quarter / R(k * (k + n));
            sum += term;
        }
        return exp(-size) * sum * (n ? x / R(2) : R(1));
    }
    for (int k = 1; k < 100 && fabs(term) > REAL_EPS / R(8); k++) {
        const int odd = 2 * k - 1;
        term *= R(odd * odd - 4 * n * n) / (R(8 * k) * size);
        sum += term;
    }
    return (n && x < 0 ? R(-1) : R(1)) * sum / sqrt(R(2) * REAL_PI * size);
}

/* exp(|x|) in two factors, so that only the result overflows. */
static real plain_i(int n, real x)
{
    const real half = exp(fabs(x) / R(2));
    return scaled_i(n, x) * half * half;
}

/* ---- Modified, second kind ------------------------------------------------------------------- */

/* exp(x) K_n(x): the integral of exp(-x (cosh t - 1)) cosh(n t) over t > 0, by the trapezoidal
 * rule, which for such an integrand is off by about exp(-pi^2 / step): less than binary128 has
 * digits for. */
static real scaled_k(int n, real x)
{
    if (!(x > 0))
        return x == 0 ? R(INFINITY) : R(NAN);
    const quad step = 0.109375, factor = quad_exp(step / 2);
    quad sum = 0.5, half = 1; /* exp(t / 2) */
    for (int k = 1; k < 100000; k++) {
        half *= factor;
        const quad other = 1 / half, sinh_half = (half - other) / 2;
        const quad decay = quad_exp(-2 * (quad)x * sinh_half * sinh_half);
        const quad term = n ? decay * (half * half + other * other) / 2 : decay;
        sum += term;
        if (!(term > sum * QUAD_EPS / 64))
            break;
    }
    return (real)(sum * step);
}

/* ---- Plain ----------------------------------------------------------------------------------- */

/* From libm in the type of the call. */
#if OP_REAL == 32
#define J0 j0f
#define J1 j1f
#define Y0 y0f
#define Y1 y1f
#elif OP_REAL == 64
#define J0 j0
#define J1 j1
#define Y0 y0
#define Y1 y1
#else
#define J0 quad_j0
#define J1 quad_j1
#define Y0 quad_y0
#define Y1 quad_y1
#endif

static inline real over_x(real value, real x)
{
    return x == 0 ? R(0.5) : value / x;
}

/* Formulas in columns. */
/* clang-format off */

ELEM_UNARY(i0,  plain_i(0, x),  g * plain_i(1, x));
ELEM_UNARY(i0e, scaled_i(0, x), g * (scaled_i(1, x) - real_sign(x) * y));
ELEM_UNARY(i1,  plain_i(1, x),  g * (plain_i(0, x) - over_x(y, x)));
ELEM_UNARY(i1e, scaled_i(1, x), g * (scaled_i(0, x) - y * real_sign(x) - over_x(y, x)));
/* torch has no gradient for these. */
ELEM_UNARY(j0,  J0(x), -g * J1(x));
ELEM_UNARY(j1,  J1(x), g * (J0(x) - over_x(y, x)));
ELEM_UNARY(y0,  x < 0 ? R(NAN) : Y0(x), -g * Y1(x));
ELEM_UNARY(y1,  x < 0 ? R(NAN) : Y1(x), g * (Y0(x) - over_x(y, x)));
ELEM_UNARY(k0,  scaled_k(0, x) * exp(-x), -g * scaled_k(1, x) * exp(-x));
ELEM_UNARY(k1,  scaled_k(1, x) * exp(-x), -g * (scaled_k(0, x) * exp(-x) + y / x));
ELEM_UNARY(k0e, scaled_k(0, x), g * (y - scaled_k(1, x)));
ELEM_UNARY(k1e, scaled_k(1, x), g * (y - scaled_k(0, x) - y / x));
ELEM_UNARY(spherical_j0, isinf(x) ? R(0) : x == 0 ? R(1) : sin(x) / x,
                                x == 0 ? R(0) : g * (cos(x) - y) / x);

/* clang-format on */

#define RUN(name)                                                                                  \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        op_return(o, elem_unary(o, arg_tensor(o, "input"), &name##_fn, NULL, 0));                  \
    }

RUN(i0)
RUN(i0e)
RUN(i1)
RUN(i1e)
RUN(j0)
RUN(j1)
RUN(y0)
RUN(y1)
RUN(k0)
RUN(k1)
RUN(k0e)
RUN(k1e)
RUN(spherical_j0)

#define ONE "(Tensor input|self)"

const struct op_def op_bessel[] = {
    {"i0 i0_ special_i0 special.i0 special_modified_bessel_i0 special.modified_bessel_i0", "i0" ONE,
     run_i0, 0, "modified Bessel function of order 0"},
    {"special_i0e special.i0e", "special_i0e" ONE, run_i0e, 0, "exp(-|x|) i0(x)"},
    {"special_i1 special.i1 special_modified_bessel_i1 special.modified_bessel_i1",
     "special_i1" ONE, run_i1, 0, "modified Bessel function of order 1"},
    {"special_i1e special.i1e", "special_i1e" ONE, run_i1e, 0, "exp(-|x|) i1(x)"},
    {"special_bessel_j0 special.bessel_j0", "special_bessel_j0" ONE, run_j0, 0, NULL},
    {"special_bessel_j1 special.bessel_j1", "special_bessel_j1" ONE, run_j1, 0, NULL},
    {"special_bessel_y0 special.bessel_y0", "special_bessel_y0" ONE, run_y0, 0, NULL},
    {"special_bessel_y1 special.bessel_y1", "special_bessel_y1" ONE, run_y1, 0, NULL},
    {"special_modified_bessel_k0 special.modified_bessel_k0", "special_modified_bessel_k0" ONE,
     run_k0, 0, NULL},
    {"special_modified_bessel_k1 special.modified_bessel_k1", "special_modified_bessel_k1" ONE,
     run_k1, 0, NULL},
    {"special_scaled_modified_bessel_k0 special.scaled_modified_bessel_k0",
     "special_scaled_modified_bessel_k0" ONE, run_k0e, 0, "exp(x) k0(x)"},
    {"special_scaled_modified_bessel_k1 special.scaled_modified_bessel_k1",
     "special_scaled_modified_bessel_k1" ONE, run_k1e, 0, "exp(x) k1(x)"},
    {"special_spherical_bessel_j0 special.spherical_bessel_j0", "special_spherical_bessel_j0" ONE,
     run_spherical_j0, 0, "sin(x) / x"},
    {0},
};
