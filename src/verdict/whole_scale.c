/* A scale of everything in a narrow type. Single elements show nothing of it below the rounding of
 * the type, and neither does their noise; their sum does, beside the same sum of right runs. */
#include "verdict/whole_scale.h"

#include "base/plain.h"

#include <math.h>

/* Normal deviates, by the spread of rows. */
static const double SIGNIFICANT = 8;
/* Times what the graph before and every run with errors have. */
static const double BEYOND_RIGHT = 8;

struct slope {
    double size, z;
};

/* Of v - y on y. difference: v is that difference, and its sum is yet to be stored. */
static struct slope slope_of(const struct sample *s, const double *v, bool difference)
{
    double dx = 0, xx = 0, variance = 0;
    for (unsigned turn = 0; turn < 2; turn++) {
        const double size = turn && xx > 0 ? dx / xx : 0;
        for (uint64_t first = 0; s->row && first < s->n; first += s->row) {
            double of_row = 0;
            for (uint64_t i = first; i < first + s->row && i < s->n; i++) {
                const double y = s->y[i], noise = s->ulp[i] * s->ulp[i] / 12;
                const double got = difference ? plumb_round_to(s->dtype, y + v[i]) : v[i];
                const double weight = 1 / (noise + s->sigma[i] * s->sigma[i]);
                if (s->out[i] || !isfinite(got) || !isfinite(weight))
                    continue;
                of_row += weight * y * (got - y - size * y);
                xx += turn ? 0 : weight * y * y;
            }
            dx += turn ? 0 : of_row;
            variance += turn ? of_row * of_row : 0;
        }
    }
    struct slope found = {0};
    if (xx > 0) {
        found.size = dx / xx;
        found.z = variance > 0 ? dx / sqrt(variance) : INFINITY;
    }
    return found;
}

static double largest(const struct sample *s, const struct moves *m)
{
    double most = 0;
    for (unsigned r = 0; r < m->n; r++)
        most = fmax(most, fabs(slope_of(s, m->by[r], true).size));
    return most;
}

struct system_part whole_scale(const struct sample *s, const double *before,
                               const struct moves *noise, const struct moves *changed)
{
    struct system_part part = {0};
    if (plumb_dtype_info(s->dtype)->bits >= 32 || s->counted < SYSTEM_LEAST || s->rows < 8 ||
        noise->n < 3)
        return part;
    const struct slope found = slope_of(s, s->got, false);
    /* Half a unit of the type: what one number that all are multiplied by may be off. */
    const double least = sample_ulp(s->dtype, 1) / 2;
    if (!(fabs(found.size) > least) || fabs(found.z) < SIGNIFICANT)
        return part;
    const double most =
        fmax(fabs(slope_of(s, before, false).size), fmax(largest(s, noise), largest(s, changed)));
    if (fabs(found.size) <= BEYOND_RIGHT * most)
        return part;
    part = (struct system_part){.found = true, .scale = true, .size = found.size, .z = found.z};
    plain_print(part.text, sizeof part.text, "everything is scaled by %.6g (%.0f sigma)",
                1 + found.size, fabs(found.z));
    return part;
}
