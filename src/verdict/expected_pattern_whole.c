/* What a fault in whole numbers looks like: wrapped around, cut off at the end of a type, and what
 * may happen to any number. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"

#include <inttypes.h>
#include <math.h>

/* Both sides as numbers without noise. False when memory runs out. */
static bool load(struct arena *arena, const struct plumb_tensor *y, const struct plumb_tensor *got,
                 struct sample *s)
{
    const size_t n = (size_t)got->count + 1;
    *s = (struct sample){.arena = arena, .dtype = PLUMB_F64, .n = got->count, .terms = 1};
    s->y = arena_array(arena, n, sizeof *s->y);
    s->got = arena_array(arena, n, sizeof *s->got);
    s->sigma = arena_array(arena, n, sizeof *s->sigma);
    s->ulp = arena_array(arena, n, sizeof *s->ulp);
    s->out = arena_array(arena, n, sizeof *s->out);
    if (!s->y || !s->got || !s->sigma || !s->ulp || !s->out)
        return false;
    plumb_tensor_to_f64(y, 0, (size_t)y->count, s->y);
    plumb_tensor_to_f64(got, 0, (size_t)got->count, s->got);
    for (uint64_t i = 0; i < s->n; i++)
        s->ulp[i] = sample_ulp(PLUMB_F64, s->y[i]);
    s->counted = s->n;
    s->row = got->rank ? (uint64_t)got->shape[got->rank - 1] : 1;
    s->rows = s->row ? s->n / s->row : 0;
    return true;
}

/* What is left of a whole number in so many bits, with a sign or without. */
static double wrapped(double x, int bits, bool sign)
{
    const double all = ldexp(1, bits), rest = x - floor(x / all) * all;
    return sign && rest >= all / 2 ? rest - all : rest;
}

static double cut_off(double x, int bits, bool sign)
{
    const double most = ldexp(1, bits - sign) - 1, least = sign ? -most - 1 : 0;
    return fmin(fmax(x, least), most);
}

static bool all_become(const struct sample *s, double (*become)(double, int, bool), int bits,
                       bool sign)
{
    for (uint64_t i = 0; i < s->n; i++)
        if (s->got[i] != become(s->y[i], bits, sign))
            return false;
    return true;
}

static bool say_range(const struct sample *s, uint64_t n, char *text)
{
    static const int widths[] = {8, 16, 32};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
        for (int sign = 1; sign >= 0; sign--) {
            const bool wraps = all_become(s, wrapped, widths[k], sign);
            if (!wraps && !all_become(s, cut_off, widths[k], sign))
                continue;
            plain_print(text, PATTERN_TEXT,
                        "%" PRIu64 " elements %s %s%d bits: all %" PRIu64 " numbers fit", n,
                        wraps ? "overflowed and wrapped around in"
                              : "are saturated: cut off at the end of",
                        sign ? "" : "unsigned ", widths[k], s->n);
            return true;
        }
    return false;
}

/* True and False the other way around. */
static bool is_inverted(const struct off *f)
{
    return f->got->dtype == PLUMB_BOOL && f->n == f->s->n && f->n > 8;
}

void pattern_whole(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                   const struct plumb_tensor *y, const struct plumb_tensor *got,
                   struct plumb_opinion *opinion)
{
    struct arena arena = {0};
    struct sample s;
    struct off f;
    const struct system_part none = {0};
    opinion->limit = 1;
    if (load(&arena, y, got, &s) && off_find(&f, got, &s, opinion->limit)) {
        if (is_inverted(&f))
            plain_print(opinion->pattern, sizeof opinion->pattern, "inverted: all %" PRIu64, f.n);
        else if (got->dtype == PLUMB_BOOL || !say_range(&s, f.n, opinion->pattern))
            pattern_find(e, part, k, got, &s, &none, opinion);
    }
    opinion->limit = 0;
    arena_free(&arena);
}
