/* Have two runs parted at a tensor? */
#include "verdict/parted.h"

#include "metric/sketch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

double parted_limit(enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (info->kind != PLUMB_KIND_FLOAT && info->kind != PLUMB_KIND_COMPLEX)
        return 0;
    if (info->precision >= 52)
        return 1e-8;
    return info->precision >= 23 ? 1e-4 : ldexp(4, -info->precision);
}

static bool same_shape(const struct parted_side *a, const struct parted_side *b)
{
    return a->rank == b->rank &&
           (!a->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

/* Another type or shape, or other numbers of NaN and infinities: no distance is needed. */
static bool differ_in_kind(const struct parted_side *t, const struct parted_side *g, char *why,
                           size_t size)
{
    const struct plumb_kept *a = t->kept, *b = g->kept;
    char here[200], there[200];
    if (t->dtype != g->dtype) {
        snprintf(why, size, "%s, but %s there", plumb_dtype_info(t->dtype)->name,
                 plumb_dtype_info(g->dtype)->name);
        return true;
    }
    if (!same_shape(t, g)) {
        snprintf(why, size, "shape %s, but %s there",
                 plumb_dims_text(t->rank, t->shape, here, sizeof here),
                 plumb_dims_text(g->rank, g->shape, there, sizeof there));
        return true;
    }
    if (a->nan == b->nan && a->pos_inf == b->pos_inf && a->neg_inf == b->neg_inf)
        return false;
    snprintf(why, size,
             "%" PRIu64 " NaN and %" PRIu64 " infinite values, but %" PRIu64 " and %" PRIu64
             " there",
             a->nan, a->pos_inf + a->neg_inf, b->nan, b->pos_inf + b->neg_inf);
    return true;
}

enum parted parted_judge(const struct parted_side *target, const struct parted_side *golden,
                         double limit, char *why, size_t size)
{
    const struct plumb_kept *t = target->kept, *g = golden->kept;
    if (differ_in_kind(target, golden, why, size))
        return PARTED_APART;
    const bool hashes = t->hash && g->hash;
    if (hashes && strcmp(t->hash, g->hash) == 0) {
        snprintf(why, size, "the same bytes");
        return PARTED_EQUAL;
    }
    if (!t->sketch || !g->sketch || t->sketch->version != g->sketch->version) {
        if (t->sketch && g->sketch)
            snprintf(why, size, "a sketch of version %d there, which cannot be compared with %d",
                     g->sketch->version, t->sketch->version);
        else
            snprintf(why, size, "no sketch there");
        return hashes ? PARTED_APART : PARTED_UNKNOWN;
    }
    const struct sketch_estimate estimate = sketch_distance(t->sketch, g->sketch, golden->norm);
    const double distance = estimate.distance;
    const double most = limit < 0 ? parted_limit(golden->dtype) : limit;
    char where[120];
    sketch_where(t->sketch, g->sketch, where, sizeof where);
    snprintf(why, size, "relative distance %.3g%% (estimate, standard error %.1g%%)%s%s",
             distance * 100, estimate.error * 100, *where ? "; " : "", where);
    /* Integers that differ do so, however little; bits that no sketch sees are no distance. */
    return distance > most || (most > 0 && distance == most) ? PARTED_APART : PARTED_NEAR;
}
