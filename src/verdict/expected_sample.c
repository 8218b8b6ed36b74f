/* One result beside its reference: numbers, spacings, and the standard deviation that right
 * arithmetic has at each. */
#include "verdict/expected_parts.h"

#include <float.h>
#include <math.h>

double sample_ulp(enum plumb_dtype dtype, double y)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    int exponent = info->emin;
    if (y != 0 && isfinite(y)) {
        const int of_y = ilogb(y);
        exponent = of_y > exponent ? of_y : exponent;
    }
    return ldexp(1, exponent - info->precision);
}

double sample_limit(uint64_t n)
{
    return 2 + sqrt(2 * log((double)(n > 1 ? n : 2)));
}

/* The reference's numbers count from 0; a row is what the last dimension holds, or enough of the
 * tensor to say something together. */
static void set_rows(struct sample *s, const struct plumb_tensor *got)
{
    const unsigned parts = plumb_dtype_parts(got->dtype);
    uint64_t row = got->rank ? (uint64_t)got->shape[got->rank - 1] * parts : parts;
    for (unsigned d = got->rank; row && row < 16 && d-- > 1;)
        row *= (uint64_t)got->shape[d - 1];
    s->row = row && row <= s->n ? row : s->n;
    s->rows = s->row ? s->n / s->row : 0;
}

void sample_smooth(const struct sample *s, const double *squares, unsigned weight, double *out)
{
    enum { TOGETHER = 32 };
    const double own = weight < TOGETHER ? weight : TOGETHER;
    for (uint64_t first = 0; first < s->n; first += s->row) {
        const uint64_t end = first + s->row < s->n ? first + s->row : s->n;
        double sum = 0, relative = 0;
        uint64_t n = 0, n_relative = 0;
        for (uint64_t i = first; i < end; i++) {
            if (s->out[i])
                continue;
            sum += squares[i];
            n++;
            if (s->y[i] != 0) {
                relative += squares[i] / (s->y[i] * s->y[i]);
                n_relative++;
            }
        }
        sum = n ? sum / (double)n : 0;
        relative = n_relative ? relative / (double)n_relative : INFINITY;
        for (uint64_t i = first; i < end; i++) {
            const double by_size = relative * s->y[i] * s->y[i];
            const double usual = by_size < sum || isnan(by_size) ? by_size : sum;
            out[i] =
                (own * squares[i] + (TOGETHER - own) * (isnan(usual) ? sum : usual)) / TOGETHER;
        }
    }
}

static void set_sigma(struct sample *s, const struct expected_tensor *t, unsigned runs,
                      double *scratch)
{
    const double u2 = s->u * s->u, terms = (double)s->terms;
    for (uint64_t i = 0; i < s->n; i++)
        s->sigma[i] = 0;
    if (t->own) {
        sample_smooth(s, t->own, 1, scratch);
        for (uint64_t i = 0; i < s->n; i++)
            s->sigma[i] = scratch[i];
    }
    if (t->noise)
        sample_smooth(s, t->noise, runs, scratch);
    for (uint64_t i = 0; i < s->n; i++) {
        const double y2 = s->y[i] * s->y[i];
        const double noise = t->noise ? u2 * scratch[i] : 0;
        s->sigma[i] = sqrt(fmax(s->sigma[i], terms * (noise + u2 * y2 / 9)));
    }
}

enum plumb_code sample_load(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                            const struct plumb_tensor *got, struct arena *arena, struct sample *s,
                            struct plumb_error *err)
{
    const struct expected_tensor *t = &e->parts[part][k];
    const struct plumb_dtype_info *info = plumb_dtype_info(got->dtype);
    const bool wide = got->dtype == PLUMB_F64 || got->dtype == PLUMB_C128;
    *s = (struct sample){.arena = arena,
                         .dtype = got->dtype == PLUMB_C64    ? PLUMB_F32
                                  : got->dtype == PLUMB_C128 ? PLUMB_F64
                                                             : got->dtype,
                         .u = wide ? 0x1p-53 : 0x1p-24,
                         .terms = e->terms[part],
                         .n = got->count * plumb_dtype_parts(got->dtype)};
    (void)info;
    set_rows(s, got);
    const size_t n = (size_t)s->n + 1;
    s->y = arena_array(arena, n, sizeof(double));
    s->got = arena_array(arena, n, sizeof(double));
    s->sigma = arena_array(arena, n, sizeof(double));
    s->ulp = arena_array(arena, n, sizeof(double));
    s->out = arena_array(arena, n, sizeof(bool));
    double *scratch = arena_array(arena, n, sizeof(double));
    if (!s->y || !s->got || !s->sigma || !s->ulp || !s->out || !scratch)
        return plumb_no_memory(err);
    plumb_tensor_to_f64(t->reference, 0, (size_t)t->reference->count, s->y);
    plumb_tensor_to_f64(got, 0, (size_t)got->count, s->got);
    for (uint64_t i = 0; i < s->n; i++) {
        s->out[i] = !isfinite(s->y[i]) || !isfinite(s->got[i]);
        s->counted += !s->out[i];
        s->ulp[i] = sample_ulp(s->dtype, s->y[i]);
    }
    set_sigma(s, t, e->runs, scratch);
    return PLUMB_OK;
}

struct excess sample_excess(const struct sample *s, const double *y, const double *sigma,
                            double limit)
{
    struct excess e = {0};
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double over = fabs(s->got[i] - y[i]) - s->ulp[i] / 2;
        if (!(over > 0))
            continue;
        /* A reference of float64 is rounded itself. */
        const double t = sigma[i] > 0 ? over / sigma[i] : over > 0x1p-50 * s->ulp[i] ? INFINITY : 0;
        e.beyond += t > limit;
        if (t > e.worst) {
            e.worst = t;
            e.at = i;
        }
    }
    return e;
}
