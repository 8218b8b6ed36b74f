/* Discrete Fourier transforms: by the prime factors of the length while they are small, and as a
 * convolution of a power of two when one is not (Bluestein). */
#include "exec/op/fourier.h"

#include "exec/op/complex_math.h"
#include "exec/op/place.h"

#include <string.h>

#define PI REAL_C(3.14159265358979323846264338327950288420)

enum { LARGEST_RADIX = 31, MOST_FACTORS = 64 };

struct fourier_plan {
    int64_t n;
    const struct cx *roots; /* exp(-2 pi i k / n), k from 0 to n - 1 */
    unsigned n_factors;
    int64_t factors[MOST_FACTORS];
    struct cx *scratch;
    /* Where a factor is too large: */
    const struct fourier_plan *power; /* of the convolution */
    const struct cx *chirp;           /* exp(-pi i k^2 / n) */
    const struct cx *kernel;          /* the transform of its conjugate */
    struct cx *work[2];
};

/* exp(-2 pi i k / n) with k / n brought into the first eighth of the circle, where sine and cosine
 * are exact to the last bit or nearly so. */
static struct cx root_of_unity(int64_t k, int64_t n)
{
    int64_t eighths = 8 * k / n, rest = 8 * k % n; /* the angle is (eighths + rest / n) pi / 4 */
    const bool mirrored = eighths % 2 != 0;
    if (mirrored)
        rest = n - rest; /* below the next multiple of pi / 2 */
#if OP_REAL == 32
    const double angle = 3.14159265358979323846 / 4 * (double)rest / (double)n;
#else
    const real angle = PI / 4 * (real)rest / (real)n;
#endif
    const real c = (real)cos(angle), s = (real)sin(angle);
    const real x = mirrored ? s : c, y = mirrored ? c : s;
    switch (eighths / 2) { /* quarter turns, clockwise */
    case 0:
        return cx(x, -y);
    case 1:
        return cx(-y, -x);
    case 2:
        return cx(-x, y);
    default:
        return cx(y, x);
    }
}

static bool find_factors(struct fourier_plan *plan)
{
    int64_t rest = plan->n;
    for (int64_t f = 4; rest > 1 && f <= LARGEST_RADIX; f = f == 4 ? 2 : f == 2 ? 3 : f + 2)
        for (; rest % f == 0; rest /= f)
            plan->factors[plan->n_factors++] = f;
    return rest == 1;
}

static const struct cx *all_roots(struct op *o, int64_t n)
{
    struct cx *roots = op_alloc(o, n, sizeof *roots);
    for (int64_t k = 0; roots && k < n; k++)
        roots[k] = root_of_unity(k, n);
    return roots;
}

/* k^2 modulo 2 n, without a square that overflows. */
static bool prepare_chirp(struct op *o, struct fourier_plan *plan)
{
    const int64_t n = plan->n;
    int64_t length = 1;
    while (length < 2 * n - 1)
        length *= 2;
    struct cx *chirp = op_alloc(o, n, sizeof *chirp), *kernel = op_alloc(o, length, sizeof *kernel);
    struct cx *spread = op_alloc(o, length, sizeof *spread);
    plan->work[0] = op_alloc(o, length, sizeof *plan->work[0]);
    plan->work[1] = op_alloc(o, length, sizeof *plan->work[1]);
    plan->power = fourier_plan(o, length);
    if (o->failed)
        return false;
    int64_t square = 0; /* (k + 1)^2 = k^2 + 2 k + 1 */
    for (int64_t k = 0; k < n; k++) {
        chirp[k] = root_of_unity(square, 2 * n);
        square = (square + 2 * k + 1) % (2 * n);
        spread[k] = spread[k ? length - k : 0] = cx_conj(chirp[k]);
    }
    fourier_run(plan->power, &spread->re, &kernel->re, true);
    plan->chirp = chirp;
    plan->kernel = kernel;
    return true;
}

const struct fourier_plan *fourier_plan(struct op *o, int64_t n)
{
    struct fourier_plan *plan = op_alloc(o, 1, sizeof *plan);
    if (!plan)
        return NULL;
    if (n > INT64_MAX / 64)
        return op_fail(o, PLUMB_E_NOMEM, "%s: a transform of %lld numbers", o->call->name,
                       (long long)n);
    plan->n = n;
    if (!find_factors(plan))
        return prepare_chirp(o, plan) ? plan : NULL;
    plan->roots = all_roots(o, n);
    plan->scratch = op_alloc(o, LARGEST_RADIX, sizeof *plan->scratch);
    return plan->roots && plan->scratch ? plan : NULL;
}

/* One factor: m numbers each of f shorter transforms, which lie behind one another, become one of
 * f m. step: from one root of that length to the next, among those of n. */
static void butterflies(const struct fourier_plan *plan, struct cx *out, int64_t f, int64_t m,
                        int64_t step)
{
    const struct cx *roots = plan->roots;
    struct cx *part = plan->scratch;
    for (int64_t k = 0; k < m; k++) {
        for (int64_t q = 0; q < f; q++)
            part[q] = cx_mul(out[k + q * m], roots[q * k * step]);
        for (int64_t q = 0; q < f; q++) {
            struct cx sum = part[0];
            for (int64_t p = 1; p < f; p++)
                sum = cx_add(sum, cx_mul(part[p], roots[p * q % f * m * step]));
            out[k + q * m] = sum;
        }
    }
}

static void butterflies_2(const struct fourier_plan *plan, struct cx *out, int64_t m, int64_t step)
{
    for (int64_t k = 0; k < m; k++) {
        const struct cx a = out[k], b = cx_mul(out[k + m], plan->roots[k * step]);
        out[k] = cx_add(a, b);
        out[k + m] = cx_sub(a, b);
    }
}

static void butterflies_4(const struct fourier_plan *plan, struct cx *out, int64_t m, int64_t step)
{
    for (int64_t k = 0; k < m; k++) {
        const struct cx a = out[k], b = cx_mul(out[k + m], plan->roots[k * step]);
        const struct cx c = cx_mul(out[k + 2 * m], plan->roots[2 * k * step]);
        const struct cx d = cx_mul(out[k + 3 * m], plan->roots[3 * k * step]);
        const struct cx even = cx_add(a, c), odd = cx_sub(a, c);
        const struct cx sum = cx_add(b, d), turned = cx_turn(cx_sub(b, d));
        out[k] = cx_add(even, sum);
        out[k + m] = cx_sub(odd, turned);
        out[k + 2 * m] = cx_sub(even, sum);
        out[k + 3 * m] = cx_add(odd, turned);
    }
}

/* The transform of in[0], in[step], in[2 step], ... */
static void by_factors(const struct fourier_plan *plan, unsigned level, const struct cx *in,
                       int64_t step, struct cx *out)
{
    if (level == plan->n_factors) {
        *out = *in;
        return;
    }
    const int64_t f = plan->factors[level], m = plan->n / step / f;
    for (int64_t q = 0; q < f; q++)
        by_factors(plan, level + 1, in + q * step, step * f, out + q * m);
    if (f == 2)
        butterflies_2(plan, out, m, step);
    else if (f == 4)
        butterflies_4(plan, out, m, step);
    else
        butterflies(plan, out, f, m, step);
}

static void by_chirp(const struct fourier_plan *plan, const struct cx *in, struct cx *out)
{
    const int64_t n = plan->n, length = plan->power->n;
    struct cx *a = plan->work[0], *b = plan->work[1];
    memset(a, 0, (size_t)length * sizeof *a);
    for (int64_t k = 0; k < n; k++)
        a[k] = cx_mul(in[k], plan->chirp[k]);
    fourier_run(plan->power, &a->re, &b->re, true);
    for (int64_t k = 0; k < length; k++)
        b[k] = cx_mul(b[k], plan->kernel[k]);
    fourier_run(plan->power, &b->re, &a->re, false);
    for (int64_t k = 0; k < n; k++)
        out[k] = cx_scale(cx_mul(a[k], plan->chirp[k]), 1 / (real)length);
}

void fourier_run(const struct fourier_plan *plan, const real *in, real *out, bool forward)
{
    const struct cx *from = (const struct cx *)(const void *)in;
    struct cx *to = (struct cx *)(void *)out;
    if (plan->power)
        by_chirp(plan, from, to);
    else
        by_factors(plan, 0, from, 1, to);
    /* Backward, number k is number n - k forward. */
    for (int64_t k = 1; !forward && 2 * k < plan->n; k++) {
        const struct cx kept = to[k];
        to[k] = to[plan->n - k];
        to[plan->n - k] = kept;
    }
}

/* ---- Along a dimension ----------------------------------------------------------------------- */

struct fourier_saved {
    const struct fourier_plan *plan;
    unsigned dim;
    bool forward;
    real scale;
};

/* to += the transforms of from. */
static void add_transforms(struct op *o, const struct val *shape, const struct fourier_saved *s,
                           bool forward, const real *from, real *to)
{
    const struct span3 span = val_span(shape, s->dim);
    const int64_t n = span.length, inner = span.inner / 2;
    struct cx *in = op_alloc(o, n, sizeof *in), *out = op_alloc(o, n, sizeof *out);
    if (!in || !out)
        return;
    for (int64_t row = 0; row < span.outer * inner; row++) {
        const int64_t first = row / inner * n * inner + row % inner;
        for (int64_t k = 0; k < n; k++)
            memcpy(&in[k], from + 2 * (first + k * inner), sizeof *in);
        fourier_run(s->plan, &in->re, &out->re, forward);
        for (int64_t k = 0; k < n; k++) {
            to[2 * (first + k * inner)] += s->scale * out[k].re;
            to[2 * (first + k * inner) + 1] += s->scale * out[k].im;
        }
    }
}

int64_t fourier_steps(int64_t n)
{
    struct fourier_plan plan = {.n = n};
    int64_t steps = 1;
    for (int64_t rest = n; rest > 1; rest -= rest / 2)
        steps++;
    return find_factors(&plan) ? steps : 3 * (steps + 2); /* three of four times the length */
}

static void fourier_backward(struct op *o, struct val *out)
{
    const struct fourier_saved *s = out->saved;
    real *to = val_grad(o, out->in[0]);
    if (!to)
        return;
    add_transforms(o, out, s, !s->forward, out->grad, to);
    op_terms(fourier_steps(out->shape[s->dim]));
}

struct val *v_fourier(struct op *o, struct val *z, unsigned dim, bool forward, real scale)
{
    struct val *out = z ? val_like(o, z, z->dtype) : NULL;
    struct fourier_saved *s = out ? op_alloc(o, 1, sizeof *s) : NULL;
    if (!s)
        return NULL;
    *s = (struct fourier_saved){NULL, dim, forward, scale};
    if (z->shape[dim] < 1)
        return op_fail(o, PLUMB_E_ARG, "%s: a transform of %lld numbers", o->call->name,
                       (long long)z->shape[dim]);
    s->plan = fourier_plan(o, z->shape[dim]);
    if (!s->plan)
        return NULL;
    add_transforms(o, z, s, forward, z->f, out->f);
    op_terms(fourier_steps(z->shape[dim]));
    return val_node(o, out, fourier_backward, z, NULL, NULL, s);
}

struct val *v_fourier_half(struct op *o, struct val *x, unsigned dim, real scale)
{
    struct val *z = v_fourier(o, v_complex(o, x), dim, true, scale);
    return z ? v_narrow(o, z, dim, 0, z->shape[dim] / 2 + 1) : NULL;
}

/* Number n - k is the conjugate of number k. */
struct val *v_fourier_real(struct op *o, struct val *z, unsigned dim, int64_t n, real scale)
{
    int64_t *place = op_alloc(o, n, 3 * sizeof *place);
    if (!z || !place)
        return NULL;
    int64_t *above = place + n, *below = above + n;
    for (int64_t k = 0; k < n; k++) {
        const bool mirrored = k > n / 2, real_only = k == 0 || 2 * k == n;
        place[k] = mirrored ? n - k : k;
        above[k] = mirrored || real_only ? -1 : place[k];
        below[k] = mirrored ? place[k] : -1;
    }
    struct val *im = v_part(o, z, 1);
    struct val *mirror =
        v_sub(o, v_pick_dim(o, im, dim, n, above), v_pick_dim(o, im, dim, n, below));
    struct val *whole = v_join(o, v_pick_dim(o, v_part(o, z, 0), dim, n, place), mirror);
    return v_part(o, v_fourier(o, whole, dim, false, scale), 0);
}
