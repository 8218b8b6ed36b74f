/* Orthogonal polynomials of degree n at x, by their recurrences; none of them has a gradient. */
#include "exec/op/op.h"

enum { MOST = 1 << 20 };

/* p[k + 1] = (a x + b) p[k] - c p[k - 1], from p[0] = 1 and p[1] = first x + offset. */
struct family {
    real first, offset;
    bool shifted; /* 2 x - 1 stands for x */
    void (*step)(int64_t k, real x, real *factor, real *back);
    int64_t limit, limit64; /* degrees from which on PyTorch gives NaN, in float32 and float64 */
};

static void chebyshev(int64_t k, real x, real *factor, real *back)
{
    (void)k;
    *factor = 2 * x;
    *back = 1;
}

static void hermite_h(int64_t k, real x, real *factor, real *back)
{
    *factor = 2 * x;
    *back = 2 * (real)k;
}

static void hermite_he(int64_t k, real x, real *factor, real *back)
{
    *factor = x;
    *back = (real)k;
}

static void laguerre(int64_t k, real x, real *factor, real *back)
{
    *factor = (2 * (real)k + 1 - x) / (real)(k + 1);
    *back = (real)k / (real)(k + 1);
}

static void legendre(int64_t k, real x, real *factor, real *back)
{
    *factor = (2 * (real)k + 1) * x / (real)(k + 1);
    *back = (real)k / (real)(k + 1);
}

static real value(const struct family *f, real x, int64_t n, int64_t limit)
{
    if (n < 0)
        return 0;
    if (isnan(x) || (limit && n > limit))
        return R(NAN);
    x = f->shifted ? x + x - 1 : x;
    real before = 1, now = f->first * x + f->offset;
    if (n == 0)
        return before;
    for (int64_t k = 1; k < n; k++) {
        real factor, back;
        f->step(k, x, &factor, &back);
        const real next = factor * now - back * before;
        before = now;
        now = next;
    }
    return now;
}

static void run(struct op *o, const struct family *f)
{
    struct val *x = arg_operand(o, "x"), *n = arg_operand(o, "n");
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!x || !n || !broadcast_shape(o, x, n, &rank, shape))
        return;
    const enum plumb_dtype dtype = float_dtype(promote(x, n));
    x = v_broadcast(o, v_cast(o, v_detach(o, x), dtype), rank, shape);
    n = v_broadcast(o, v_cast(o, v_detach(o, n), dtype), rank, shape);
    struct val *y = x && n ? val_new(o, dtype, rank, shape) : NULL;
    const int64_t limit = dtype == PLUMB_F64 ? f->limit64 : f->limit;
    for (int64_t k = 0; y && k < y->count; k++) {
        if (!(fabs(n->f[k]) < MOST)) {
            op_fail(o, PLUMB_E_UNSUPPORTED, "%s: a degree of %g", o->call->name, (double)n->f[k]);
            return;
        }
        y->f[k] = value(f, x->f[k], (int64_t)n->f[k], limit);
    }
    op_return(o, y);
}

#define FAMILY(name, ...)                                                                          \
    static void run_##name(struct op *o)                                                           \
    {                                                                                              \
        static const struct family f = {__VA_ARGS__};                                              \
        run(o, &f);                                                                                \
    }

FAMILY(t, .first = 1, .step = chebyshev)
FAMILY(u, .first = 2, .step = chebyshev)
FAMILY(v, .first = 2, .offset = -1, .step = chebyshev)
FAMILY(w, .first = 2, .offset = 1, .step = chebyshev)
FAMILY(shifted_t, .first = 1, .shifted = true, .step = chebyshev)
FAMILY(shifted_u, .first = 2, .shifted = true, .step = chebyshev)
FAMILY(shifted_v, .first = 2, .offset = -1, .shifted = true, .step = chebyshev)
FAMILY(shifted_w, .first = 2, .offset = 1, .shifted = true, .step = chebyshev)
FAMILY(h, .first = 2, .step = hermite_h, .limit = 128, .limit64 = 512)
FAMILY(he, .first = 1, .step = hermite_he, .limit = 128, .limit64 = 512)
FAMILY(l, .first = -1, .offset = 1, .step = laguerre)
FAMILY(p, .first = 1, .step = legendre)

#define POLYNOMIAL(name, run)                                                                      \
    {                                                                                              \
        "special." name " special_" name, name "(Operand x|input|self, Operand n)", run,           \
            OP_NO_GRAD, NULL                                                                       \
    }

const struct op_def op_polynomial[] = {
    POLYNOMIAL("chebyshev_polynomial_t", run_t),
    POLYNOMIAL("chebyshev_polynomial_u", run_u),
    POLYNOMIAL("chebyshev_polynomial_v", run_v),
    POLYNOMIAL("chebyshev_polynomial_w", run_w),
    POLYNOMIAL("shifted_chebyshev_polynomial_t", run_shifted_t),
    POLYNOMIAL("shifted_chebyshev_polynomial_u", run_shifted_u),
    POLYNOMIAL("shifted_chebyshev_polynomial_v", run_shifted_v),
    POLYNOMIAL("shifted_chebyshev_polynomial_w", run_shifted_w),
    POLYNOMIAL("hermite_polynomial_h", run_h),
    POLYNOMIAL("hermite_polynomial_he", run_he),
    POLYNOMIAL("laguerre_polynomial_l", run_l),
    POLYNOMIAL("legendre_polynomial_p", run_p),
    {0},
};
