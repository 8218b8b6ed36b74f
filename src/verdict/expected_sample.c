/* One result beside its reference: numbers, spacings, and the standard deviation that right
 * arithmetic has at each. */
#include "verdict/expected_parts.h"

#include "verdict/spell.h"

#include <math.h>
#include <string.h>

double sample_ulp(enum plumb_dtype dtype, double y)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    uint64_t bits;
    memcpy(&bits, &y, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7FF); /* of a float64; 0: less than any type's least */
    int exponent = info->emin;
    if (field != 0x7FF && field - 1023 > exponent)
        exponent = field - 1023;
    exponent -= info->precision;
    if (exponent < -1022)
        return ldexp(1, exponent);
    bits = (uint64_t)(exponent + 1023) << 52;
    memcpy(&y, &bits, sizeof y);
    return y;
}

double sample_limit(uint64_t n, int64_t terms)
{
    /* A sum whose parts grow before they cancel errs more than its terms tell. */
    const double larger = terms > 8 ? 1.25 : 1;
    return larger * (2 + sqrt(2 * log((double)(n > 1 ? n : 2))));
}

void sample_set_rows(struct sample *s, const struct plumb_tensor *got)
{
    const unsigned parts = plumb_dtype_parts(got->dtype);
    uint64_t row = got->rank ? (uint64_t)got->shape[got->rank - 1] * parts : parts;
    for (unsigned d = got->rank; row && row < 16 && d-- > 1;)
        row *= (uint64_t)got->shape[d - 1];
    s->row = row && row <= s->n ? row : s->n;
    s->rows = s->row ? s->n / s->row : 0;
}

/* Mean squares over what is alike: absolutely, and relative to y. */
struct mean {
    double sum, relative;
    double sum_2, relative_2; /* of their squares: how well each describes them */
    uint64_t n, n_relative;
};

static void mean_add(struct mean *m, const struct sample *s, const double *squares, uint64_t i)
{
    if (s->out[i])
        return;
    m->sum += squares[i];
    m->sum_2 += squares[i] * squares[i];
    m->n++;
    if (s->y[i] * s->y[i] > 0) {
        const double relative = squares[i] / (s->y[i] * s->y[i]);
        m->relative += relative;
        m->relative_2 += relative * relative;
        m->n_relative++;
    }
}

/* By the one of the two that varies less: results of one size, whatever they cancel to, or
 * errors in proportion. */
static double mean_at(const struct mean *m, const struct sample *s, uint64_t i, bool absolute)
{
    const double sum = m->n ? m->sum / (double)m->n : 0;
    if (absolute || !m->n_relative)
        return sum;
    const double relative = m->relative / (double)m->n_relative;
    const bool even = m->sum_2 / (double)m->n * relative * relative <=
                      m->relative_2 / (double)m->n_relative * sum * sum;
    return even ? sum : relative * s->y[i] * s->y[i];
}

/* The end of a group of elements, in order, with so many different inputs: equal ones err alike. */
static uint64_t group_end(const struct sample *s, uint64_t first, unsigned different)
{
    uint64_t at = first + 1;
    for (unsigned seen = 1; at < s->n; at++) {
        seen += s->key[s->order[at]] != s->key[s->order[at - 1]];
        if (seen > different)
            break;
    }
    /* What is left behind would be a small group of its own. */
    return s->n - at < different ? s->n : at;
}

void sample_smooth(const struct sample *s, const double *squares, unsigned weight, bool absolute,
                   double *out)
{
    const unsigned together = 32;
    const double own = weight < together ? weight : together, rest = together - own;
    for (uint64_t first = 0, end; first < s->n; first = end) {
        end = s->order ? group_end(s, first, together) : first + s->row;
        end = end < s->n ? end : s->n;
        struct mean m = {0};
        for (uint64_t i = first; i < end; i++)
            mean_add(&m, s, squares, s->order ? s->order[i] : i);
        for (uint64_t i = first; i < end; i++) {
            const uint64_t at = s->order ? s->order[i] : i;
            out[at] = (own * squares[at] + rest * mean_at(&m, s, at, absolute)) / together;
        }
    }
}

/* The first floating-point input with as many elements as the result. */
struct alike {
    uint64_t count;
    const struct plumb_tensor *found;
};

static void find_alike(void *context, const struct plumb_tensor *tensor)
{
    struct alike *a = context;
    if (!a->found && tensor->count == a->count &&
        plumb_dtype_info(tensor->dtype)->kind == PLUMB_KIND_FLOAT)
        a->found = tensor;
}

/* A number as one whose bits are ordered as float32 is. */
static uint32_t ordered_bits(double x)
{
    const float narrow = (float)x;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Sorts the numbers of elements by their keys, digit by digit; equal ones stay in order. False when
 * out of memory. */
static bool sort_by_key(struct arena *arena, const double *key, uint64_t n, uint64_t *order)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    uint64_t *other = arena_room(arena, (size_t)n + 1, sizeof *other);
    uint32_t *bits = arena_room(arena, (size_t)n + 1, sizeof *bits);
    uint64_t *first = arena_room(arena, DIGITS + 1, sizeof *first);
    if (!other || !bits || !first)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        bits[i] = ordered_bits(key[i]);
        order[i] = i;
    }
    for (unsigned shift = 0; shift < 32; shift += BITS) {
        memset(first, 0, (DIGITS + 1) * sizeof *first);
        for (uint64_t i = 0; i < n; i++)
            first[(bits[i] >> shift) % DIGITS + 1]++;
        for (unsigned d = 0; d < DIGITS; d++)
            first[d + 1] += first[d];
        for (uint64_t i = 0; i < n; i++)
            other[first[(bits[order[i]] >> shift) % DIGITS]++] = order[i];
        memcpy(order, other, (size_t)n * sizeof *order);
    }
    return true;
}

/* Functions of single elements have the same noise where their input is the same. */
static bool set_order(struct sample *s, const struct plumb_call *call)
{
    struct alike a = {.count = s->n};
    if (s->terms > 1)
        return true;
    call_tensors(call, find_alike, &a);
    if (!a.found)
        return true;
    double *x = arena_room(s->arena, (size_t)s->n, sizeof *x);
    s->order = arena_room(s->arena, (size_t)s->n, sizeof *s->order);
    if (!x || !s->order)
        return false;
    plumb_tensor_to_f64(a.found, 0, (size_t)s->n, x);
    for (uint64_t i = 0; i < s->n; i++)
        x[i] = isnan(x[i]) ? INFINITY : x[i];
    s->key = x;
    return sort_by_key(s->arena, x, s->n, s->order);
}

static void set_sigma(struct sample *s, const struct expected_tensor *t, unsigned runs,
                      double *scratch)
{
    const double u2 = s->u * s->u, terms = (double)s->terms;
    if (t->own) {
        sample_smooth(s, t->own, 1, false, scratch);
        for (uint64_t i = 0; i < s->n; i++)
            s->sigma[i] = scratch[i];
    }
    if (t->noise)
        sample_smooth(s, t->noise, runs, false, scratch);
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
    const bool wide = got->dtype == PLUMB_F64 || got->dtype == PLUMB_C128;
    *s = (struct sample){.arena = arena,
                         .dtype = got->dtype == PLUMB_C64    ? PLUMB_F32
                                  : got->dtype == PLUMB_C128 ? PLUMB_F64
                                                             : got->dtype,
                         .u = wide ? 0x1p-53 : 0x1p-24,
                         .terms = e->terms[part],
                         .n = got->count * plumb_dtype_parts(got->dtype)};
    sample_set_rows(s, got);
    const size_t n = (size_t)s->n + 1;
    s->y = arena_room(arena, n, sizeof(double));
    s->got = arena_room(arena, n, sizeof(double));
    s->sigma = arena_room(arena, n, sizeof(double));
    s->ulp = arena_room(arena, n, sizeof(double));
    s->out = arena_room(arena, n, sizeof(bool));
    double *scratch = arena_room(arena, n, sizeof(double));
    if (!s->y || !s->got || !s->sigma || !s->ulp || !s->out || !scratch)
        return plumb_no_memory(err);
    plumb_tensor_to_f64(t->reference, 0, (size_t)t->reference->count, s->y);
    plumb_tensor_to_f64(got, 0, (size_t)got->count, s->got);
    for (uint64_t i = 0; i < s->n; i++) {
        s->out[i] = !isfinite(s->y[i]) || !isfinite(s->got[i]);
        s->counted += !s->out[i];
        s->ulp[i] = sample_ulp(s->dtype, s->y[i]);
        s->sigma[i] = 0;
    }
    if (expected_is_exact(e, part))
        return PLUMB_OK; /* nothing is rounded on the way: sigma stays 0 */
    if (!set_order(s, &e->call))
        return plumb_no_memory(err);
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

enum plumb_code plumb_expected_noise(struct plumb_expected *expected, enum plumb_expected_part part,
                                     size_t k, const struct plumb_tensor *got, double *out,
                                     struct plumb_error *err)
{
    const struct plumb_tensor *y =
        k < expected->n_parts[part] ? expected->parts[part][k].reference : NULL;
    const unsigned parts = plumb_dtype_parts(got->dtype);
    const enum plumb_kind kind = plumb_dtype_info(got->dtype)->kind;
    if (!y || y->count != got->count || plumb_dtype_parts(y->dtype) != parts)
        return plumb_fail(err, PLUMB_E_ARG, "the reference has no such result");
    memset(out, 0, (size_t)got->count * parts * sizeof *out);
    if (!got->count || (kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX))
        return PLUMB_OK;
    struct arena arena = {0};
    struct sample s = {0};
    enum plumb_code code = expected_measure(expected, true, err);
    if (!code)
        code = sample_load(expected, part, k, got, &arena, &s, err);
    if (!code)
        memcpy(out, s.sigma, (size_t)s.n * sizeof *out);
    arena_free(&arena);
    return code;
}
