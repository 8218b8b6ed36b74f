/* Whether a tensor is another one again. */
#include "verdict/stale.h"

#include "verdict/expected_parts.h"

#include <math.h>

static const double CERTAIN = -20; /* log of a chance of 2e-9 */

double chance_log(uint64_t n, uint64_t hits, uint64_t tries)
{
    return (double)n * log(((double)hits + 0.5) / ((double)tries + 1));
}

/* The real type of a number; false where there is none to round to. */
static bool real_type(enum plumb_dtype dtype, enum plumb_dtype *real)
{
    *real = dtype == PLUMB_C64 ? PLUMB_F32 : dtype == PLUMB_C128 ? PLUMB_F64 : dtype;
    return plumb_dtype_info(*real)->kind == PLUMB_KIND_FLOAT;
}

/* How near two numbers must be. */
struct near {
    bool whole;               /* whole numbers: equal */
    enum plumb_dtype coarser; /* of the two types, the one with fewer bits */
    double error;             /* beside one unit in its last place */
};

/* The mean magnitude of its first numbers. */
static double mean_size(const struct plumb_tensor *t)
{
    const uint64_t most = 4096, n = t->count < most ? t->count : most;
    double sum = 0;
    for (uint64_t k = 0; k < n; k++) {
        double x[2];
        plumb_tensor_to_f64(t, k, 1, x);
        sum += isfinite(x[0]) ? fabs(x[0]) : 0;
    }
    return sum / (double)n;
}

static struct near near_of(const struct plumb_tensor *a, const struct plumb_tensor *b,
                           double relative)
{
    enum plumb_dtype x, y;
    if (!real_type(a->dtype, &x) || !real_type(b->dtype, &y))
        return (struct near){.whole = true};
    const bool first = plumb_dtype_info(x)->precision < plumb_dtype_info(y)->precision;
    return (struct near){.coarser = first ? x : y, .error = relative * mean_size(b)};
}

static bool is_alike(const struct near *near, double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b ||
           (!near->whole &&
            fabs(a - b) <= near->error + sample_ulp(near->coarser, fmax(fabs(a), fabs(b))));
}

static bool all_alike(const struct plumb_tensor *a, const struct plumb_tensor *b,
                      const struct near *near)
{
    enum { PIECE = 256 };
    double x[2 * PIECE], y[2 * PIECE];
    const unsigned parts = plumb_dtype_parts(a->dtype);
    for (uint64_t first = 0; first < a->count; first += PIECE) {
        const size_t n = a->count - first < PIECE ? (size_t)(a->count - first) : PIECE;
        plumb_tensor_to_f64(a, first, n, x);
        plumb_tensor_to_f64(b, first, n, y);
        for (size_t k = 0; k < n * parts; k++)
            if (!is_alike(near, x[k], y[k]))
                return false;
    }
    return true;
}

/* Whether equality says something: numbers of other places are not equal too. */
static bool is_telling(const struct plumb_tensor *a, const struct plumb_tensor *b,
                       const struct near *near)
{
    enum { TRIES = 1024 };
    uint64_t hits = 0, tries = 0;
    const uint64_t pairs = a->count < TRIES ? a->count * (a->count - 1) : TRIES;
    for (uint64_t k = 0; k < pairs && k < TRIES; k++) {
        const uint64_t i = k % a->count;
        const uint64_t j = (i + 1 + k * UINT64_C(0x9E3779B97F4A7C15) % (a->count - 1)) % a->count;
        double x[2], y[2];
        plumb_tensor_to_f64(a, i, 1, x);
        plumb_tensor_to_f64(b, j, 1, y);
        hits += is_alike(near, x[0], y[0]);
        tries++;
    }
    return tries && chance_log(a->count, hits, tries) < CERTAIN;
}

bool stale_within(const struct plumb_tensor *got, const struct plumb_tensor *other, double relative)
{
    if (got->count != other->count || !got->count ||
        plumb_dtype_parts(got->dtype) != plumb_dtype_parts(other->dtype) ||
        plumb_dtype_info(got->dtype)->bits < 8 || plumb_dtype_info(other->dtype)->bits < 8)
        return false;
    const struct near near = near_of(got, other, relative);
    return all_alike(got, other, &near) && is_telling(got, other, &near);
}

bool pattern_is_stale(const struct plumb_tensor *got, const struct plumb_tensor *other)
{
    return stale_within(got, other, 0);
}
