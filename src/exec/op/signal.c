/* Window functions of signal processing. */
#include "exec/op/op.h"

#define PI REAL_C(3.14159265358979323846264338327950288420)

/* The modified Bessel function of order 0; all terms of the series are positive, so none cancel. */
static real bessel_i0(real x)
{
    real term = 1, sum = 1, quarter = x * x / 4;
    for (int k = 1; k < 10000 && term > sum * REAL_EPS / 4; k++) {
        term *= quarter / ((real)k * (real)k);
        sum += term;
    }
    return sum;
}

/* A window at x, which runs from 0 at the ends to 1/2 in the middle; p: the operator's
 * parameters. */
typedef real window_fn(real x, const real *p);

static real hamming(real x, const real *p)
{
    return p[0] - p[1] * cos(2 * PI * x);
}

/* With sines, nothing cancels at the ends. */
static real hann(real x, const real *p)
{
    (void)p;
    const real s = sin(PI * x);
    return s * s;
}

static real blackman(real x, const real *p)
{
    const real s = hann(x, p);
    return s * (REAL_C(0.36) + REAL_C(0.64) * s);
}

static real bartlett(real x, const real *p)
{
    (void)p;
    return 2 * x;
}

static real kaiser(real x, const real *p)
{
    return bessel_i0(p[0] * sqrt(4 * x * (1 - x))) / p[1];
}

/* Periodic windows are those of one more point, without the last. */
static void window(struct op *o, window_fn *fn, const real *p)
{
    int64_t n = arg_int(o, "window_length");
    enum plumb_dtype dtype = arg_dtype(o, "dtype");
    dtype = dtype == PLUMB_DTYPE_COUNT ? PLUMB_F32 : dtype;
    if (n < 0 || !dtype_is_float(dtype)) {
        op_fail(o, PLUMB_E_ARG, "%s of length %lld and type %s", o->call->name, (long long)n,
                plumb_dtype_info(dtype)->name);
        return;
    }
    struct val *out = val_new(o, dtype, 1, &n);
    const int64_t last = arg_bool(o, "periodic") ? n : n - 1;
    for (int64_t k = 0; out && k < n; k++) {
        const int64_t from_end = k < last - k ? k : last - k;
        out->f[k] = n == 1 ? 1 : real_round(o, dtype, fn((real)from_end / (real)last, p));
    }
    op_return(o, out);
}

static void run_hann(struct op *o)
{
    window(o, hann, NULL);
}

static void run_hamming(struct op *o)
{
    const real p[2] = {(real)arg_number(o, "alpha"), (real)arg_number(o, "beta")};
    window(o, hamming, p);
}

static void run_blackman(struct op *o)
{
    window(o, blackman, NULL);
}

static void run_bartlett(struct op *o)
{
    window(o, bartlett, NULL);
}

static void run_kaiser(struct op *o)
{
    const real beta = (real)arg_number(o, "beta"), p[2] = {beta, bessel_i0(beta)};
    window(o, kaiser, p);
}

const struct op_def op_signal[] = {
    {"hann_window", "hann_window(int window_length, bool periodic=True, *, dtype? dtype=None)",
     run_hann, OP_NO_GRAD, "sin(pi x)^2 for x from 0 to 1"},
    {"hamming_window",
     "hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, "
     "dtype? dtype=None)",
     run_hamming, OP_NO_GRAD, "alpha - beta cos(2 pi x) for x from 0 to 1"},
    {"blackman_window",
     "blackman_window(int window_length, bool periodic=True, *, dtype? dtype=None)", run_blackman,
     OP_NO_GRAD, "0.42 - 0.5 cos(2 pi x) + 0.08 cos(4 pi x) for x from 0 to 1"},
    {"bartlett_window",
     "bartlett_window(int window_length, bool periodic=True, *, dtype? dtype=None)", run_bartlett,
     OP_NO_GRAD, "1 - |2 x - 1| for x from 0 to 1"},
    {"kaiser_window",
     "kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, dtype? dtype=None)",
     run_kaiser, OP_NO_GRAD, "I0(beta sqrt(1 - (2 x - 1)^2)) / I0(beta) for x from 0 to 1"},
    {0},
};
