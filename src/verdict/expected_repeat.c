/* What differs between repeats of the same program is noise of its own: atomics that add up in any
 * order, kernels that are chosen by the clock. Each run's error is taken against the reference of
 * its own inputs, so that what a run inherited does not count. */
#include "verdict/expected_parts.h"

#include <math.h>
#include <stdlib.h>

/* Errors of the repeats; their mean and the sum of squared distances from it. */
struct repeats {
    double *mean, *squares;
    unsigned n;
    unsigned strangers; /* runs with quite other inputs, which are no repeats */
    bool other_inputs;  /* some repeat has another reference: results are rounded elsewhere, too */
};

/* A wrong formula errs by another amount where its inputs are others, which is no noise: references
 * of repeats are at most this far apart, relatively. */
#define SAME_INPUTS 0x1p-5

/* Noise of arithmetic reaches that many times sigma, when sums are kept in the coarsest type; what
 * differs by more is no rounding. */
#define COARSEST_SUM 0x1p16
#define COARSEST_SUM_WIDE 0x1p29 /* float64 kept in float32 */

static bool is_alike(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    const enum plumb_kind kind = plumb_dtype_info(b->dtype)->kind;
    return a->count == b->count && plumb_dtype_parts(a->dtype) == plumb_dtype_parts(b->dtype) &&
           (kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX);
}

static struct repeats *repeats_of(struct plumb_expected *e, struct expected_tensor *t)
{
    if (t->repeats)
        return t->repeats;
    const size_t n = (size_t)t->reference->count * plumb_dtype_parts(t->reference->dtype);
    struct repeats *r = arena_alloc(&e->arena, sizeof *r);
    if (!r)
        return NULL;
    r->mean = arena_array(&e->arena, n + 1, sizeof *r->mean);
    r->squares = arena_array(&e->arena, n + 1, sizeof *r->squares);
    return t->repeats = r->mean && r->squares ? r : NULL;
}

/* The mean of one more error, and squared distances from it. NaN sticks, and excuses nothing. */
static void join(double error, unsigned n, double *mean, double *squares)
{
    const double apart = error - *mean;
    *mean += apart / n;
    *squares += apart * (error - *mean);
}

/* Whether two references are those of nearly the same inputs. */
static bool is_near(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    enum { PIECE = 512 };
    double x[2 * PIECE], y[2 * PIECE], apart = 0, size = 0;
    const unsigned parts = plumb_dtype_parts(a->dtype);
    for (uint64_t first = 0; first < a->count; first += PIECE) {
        const size_t n = a->count - first < PIECE ? (size_t)(a->count - first) : PIECE;
        plumb_tensor_to_f64(a, first, n, x);
        plumb_tensor_to_f64(b, first, n, y);
        for (size_t i = 0; i < n * parts; i++) {
            if (!isfinite(x[i]) || !isfinite(y[i]))
                continue;
            apart = hypot(apart, x[i] - y[i]);
            size = hypot(size, x[i]);
        }
    }
    return apart <= SAME_INPUTS * size;
}

enum plumb_code plumb_expected_repeat(struct plumb_expected *e, enum plumb_expected_part part,
                                      size_t k, const struct plumb_tensor *reference,
                                      const struct plumb_tensor *got, struct plumb_error *err)
{
    enum { PIECE = 512 };
    double own[2 * PIECE], y[2 * PIECE], x[2 * PIECE];
    struct expected_tensor *t = k < e->n_parts[part] ? &e->parts[part][k] : NULL;
    if (!t || !t->reference || !is_alike(t->reference, reference) || !is_alike(reference, got))
        return plumb_fail(err, PLUMB_E_ARG,
                          "the repeat has no such result, or one of another shape");
    struct repeats *r = repeats_of(e, t);
    if (!r)
        return plumb_no_memory(err);
    if (!is_near(t->reference, reference)) {
        r->strangers++;
        return PLUMB_OK;
    }
    r->n++;
    const unsigned parts = plumb_dtype_parts(got->dtype);
    for (uint64_t first = 0; first < got->count; first += PIECE) {
        const size_t n = got->count - first < PIECE ? (size_t)(got->count - first) : PIECE;
        plumb_tensor_to_f64(t->reference, first, n, own);
        plumb_tensor_to_f64(reference, first, n, y);
        plumb_tensor_to_f64(got, first, n, x);
        for (size_t i = 0; i < n * parts; i++) {
            const uint64_t at = first * parts + i;
            r->other_inputs |= own[i] != y[i];
            join(x[i] - y[i], r->n, &r->mean[at], &r->squares[at]);
        }
    }
    return PLUMB_OK;
}

unsigned repeat_count(const struct expected_tensor *t)
{
    return t->repeats ? t->repeats->n : 0;
}

unsigned repeat_strangers(const struct expected_tensor *t)
{
    return t->repeats ? t->repeats->strangers : 0;
}

/* ---- Spread ---------------------------------------------------------------------------------- */

/* The variance of element i between all runs, without what rounding of the results may make of it
 * where runs have other inputs. */
static double spread_at(const struct repeats *r, const struct sample *s, uint64_t i)
{
    double mean = r->mean[i], squares = r->squares[i];
    join(s->got[i] - s->y[i], r->n + 1, &mean, &squares);
    const double variance = squares / r->n;
    const double rounding = r->other_inputs ? s->ulp[i] * s->ulp[i] / 2 : 0;
    return variance > rounding ? variance - rounding : 0; /* 0 for NaN */
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Variances of elements that have something in common. */
struct common {
    double absolute, relative; /* the one that describes them better, in units of 1 or of sigma^2 */
    double sigma;              /* of right arithmetic: the middle one */
};

/* How far apart the quarters are. */
static double quarters(const double *sorted, size_t n)
{
    return sorted[n * 3 / 4] / sorted[n / 4];
}

/* Of elements [first, end): the middle one of those that differ at all, if that is an eighth of
 * them. Few that differ say nothing about the others. */
static struct common common_of(const struct sample *s, const double *spread, uint64_t first,
                               uint64_t end, unsigned n)
{
    enum { MOST = 1024 };
    double absolute[MOST], relative[MOST], sigma[MOST];
    size_t differ = 0, seen = 0;
    const uint64_t step = (end - first + MOST - 1) / MOST;
    for (uint64_t i = first; i < end; i += step) {
        if (s->out[i] || !(s->sigma[i] > 0))
            continue;
        sigma[seen++] = s->sigma[i];
        if (spread[i] > 0) {
            absolute[differ] = spread[i];
            relative[differ++] = spread[i] / (s->sigma[i] * s->sigma[i]);
        }
    }
    struct common c = {0};
    if (seen) {
        qsort(sigma, seen, sizeof *sigma, compare_numbers);
        c.sigma = sigma[seen / 2];
    }
    if (differ < 8 || 8 * differ < seen)
        return c;
    qsort(absolute, differ, sizeof *absolute, compare_numbers);
    qsort(relative, differ, sizeof *relative, compare_numbers);
    /* The median of a mean of n squares of normal numbers is below their variance. */
    const double below = pow(1 - 2.0 / (9 * n), 3);
    if (quarters(absolute, differ) < quarters(relative, differ))
        c.absolute = absolute[differ / 2] / below;
    else
        c.relative = relative[differ / 2] / below;
    return c;
}

static double common_at(const struct common *c, double sigma)
{
    return fmax(sqrt(c->absolute), sigma * sqrt(c->relative));
}

double *repeat_sigma(const struct expected_tensor *t, const struct sample *s)
{
    const struct repeats *r = t->repeats;
    const double coarsest = s->u < 0x1p-40 ? COARSEST_SUM_WIDE : COARSEST_SUM;
    const double most = s->terms > 8 ? coarsest : 4 * coarsest; /* scattered sums are not counted */
    double *spread = arena_array(s->arena, (size_t)s->n + 1, sizeof *spread);
    if (!spread)
        return NULL;
    for (uint64_t i = 0; i < s->n; i++)
        spread[i] = s->out[i] ? 0 : spread_at(r, s, i);
    const struct common all = common_of(s, spread, 0, s->n, r->n);
    for (uint64_t first = 0; first < s->n; first += s->row) {
        const uint64_t end = first + s->row < s->n ? first + s->row : s->n;
        const struct common row = common_of(s, spread, first, end, r->n);
        for (uint64_t i = first; i < end; i++) {
            const double sigma = s->sigma[i],
                         together = fmax(common_at(&all, sigma), common_at(&row, sigma));
            const double between = fmax(sqrt(spread[i]), together);
            spread[i] = fmax(sigma, fmin(between, most * fmax(sigma, row.sigma)));
        }
    }
    return spread;
}

double repeat_apart(const struct expected_tensor *t, const struct sample *s, uint64_t i)
{
    return sqrt(spread_at(t->repeats, s, i));
}
