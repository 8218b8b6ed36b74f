/* What two sketches say about two tensors. */
#include "metric/sketch.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool sketch_alike(const struct plumb_sketch *a, const struct plumb_sketch *b)
{
    bool alike = a->version == b->version && a->axes == b->axes;
    for (unsigned k = 0; alike && k < a->axes; k++)
        alike = a->axis[k].axis == b->axis[k].axis && a->axis[k].size == b->axis[k].size &&
                a->axis[k].length == b->axis[k].length;
    return alike;
}

/* Products of the sums of both, scaled so that neither overflows. */
struct products {
    double tt, gg, tg, dd; /* d: target - golden */
    int exponent;          /* of the scale */
};

static struct products multiply(const struct plumb_sketch *target,
                                const struct plumb_sketch *golden)
{
    int exponent = target->exponent > golden->exponent ? target->exponent : golden->exponent;
    struct products p = {.exponent = exponent};
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        double t = ldexp((double)target->sum[i], target->exponent - exponent);
        double g = ldexp((double)golden->sum[i], golden->exponent - exponent);
        p.tt += t * t;
        p.gg += g * g;
        p.tg += t * g;
        p.dd += (t - g) * (t - g);
    }
    return p;
}

double sketch_distance(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                       double norm)
{
    struct products p = multiply(target, golden);
    if (p.dd == 0)
        return 0;
    return sqrt(p.dd) / (isnan(norm) ? sqrt(p.gg) : ldexp(norm, -p.exponent));
}

struct sketch_scale sketch_scale(const struct plumb_sketch *target,
                                 const struct plumb_sketch *golden)
{
    struct products p = multiply(target, golden);
    if (!(p.gg > 0))
        return (struct sketch_scale){NAN, NAN, NAN};
    double factor = p.tg / p.gg, rest = 0;
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        double t = ldexp((double)target->sum[i], target->exponent - p.exponent);
        double g = ldexp((double)golden->sum[i], golden->exponent - p.exponent);
        rest += (t - factor * g) * (t - factor * g);
    }
    return (struct sketch_scale){
        .factor = factor,
        .error = sqrt(rest / p.gg / PLUMB_SKETCH_SUMS),
        .left = p.dd > 0 ? sqrt(rest / p.dd) : 0,
    };
}

bool sketch_shares(const struct plumb_sketch *target, const struct plumb_sketch *golden, unsigned k,
                   double share[PLUMB_SKETCH_BLOCKS])
{
    const struct plumb_sketch_axis *t = &target->axis[k], *g = &golden->axis[k];
    int exponent = target->exponent > golden->exponent ? target->exponent : golden->exponent;
    double total = 0;
    for (unsigned b = 0; b < t->blocks; b++) {
        share[b] = 0;
        for (unsigned j = 0; j < PLUMB_SKETCH_FOLD; j++) {
            double d = ldexp((double)t->sum[b][j], target->exponent - exponent) -
                       ldexp((double)g->sum[b][j], golden->exponent - exponent);
            share[b] += d * d;
        }
        total += share[b];
    }
    for (unsigned b = 0; total > 0 && b < t->blocks; b++)
        share[b] /= total;
    return total > 0;
}

/* Marks the blocks where an axis differs: those that do at all, or those that hold nearly all of
 * the distance when they are few. Of two or three blocks one may seem to by chance, since a share
 * is an estimate from four sums; of four, once in a million times. How many there are; 0:
 * everywhere. */
static unsigned choose(const double *share, unsigned blocks, bool *marked)
{
    const double nearly_all = 0.9;
    unsigned count = 0;
    for (unsigned b = 0; b < blocks; b++) {
        marked[b] = share[b] > 0;
        count += marked[b];
    }
    if (count < blocks)
        return count;
    memset(marked, 0, blocks * sizeof *marked);
    const unsigned few = blocks / 4;
    double held = 0;
    for (count = 0; count < few && held < nearly_all; count++) {
        unsigned most = 0;
        while (marked[most])
            most++;
        for (unsigned b = most; b < blocks; b++)
            most = !marked[b] && share[b] > share[most] ? b : most;
        marked[most] = true;
        held += share[most];
    }
    return held >= nearly_all ? count : 0;
}

/* Text that is cut where its room ends. */
struct cut_text {
    char *at;
    size_t left; /* with the NUL */
};

static void put(struct cut_text *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct cut_text *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(out->at, out->left, format, args);
    va_end(args);
    size_t written = wanted < 0 ? 0 : (size_t)wanted;
    written = written < out->left ? written : out->left - 1;
    out->at += written;
    out->left -= written;
}

static void put_axis(struct cut_text *out, const struct plumb_sketch_axis *axis, const bool *marked,
                     unsigned count)
{
    enum { SHOWN = 3 };
    unsigned shown = 0;
    put(out, "axis %u: ", axis->axis);
    for (unsigned b = 0, end; b < axis->blocks; b = end) {
        for (end = b; end < axis->blocks && marked[end];)
            end++;
        if (end == b) {
            end++;
            continue;
        }
        if (shown++ == SHOWN) {
            put(out, ", ...");
            break;
        }
        uint64_t last = end * axis->length < axis->size ? end * axis->length : axis->size;
        put(out, "%s%" PRIu64, shown > 1 ? ", " : "", b * axis->length);
        if (last - 1 > b * axis->length)
            put(out, "-%" PRIu64, last - 1);
    }
    put(out, " (%u of %u blocks)", count, axis->blocks);
}

const char *sketch_where(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                         char *text, size_t size)
{
    struct cut_text out = {text, size};
    *text = '\0';
    if (!sketch_alike(target, golden))
        return text;
    for (unsigned k = 0; k < target->axes; k++) {
        double share[PLUMB_SKETCH_BLOCKS];
        bool marked[PLUMB_SKETCH_BLOCKS];
        unsigned count = sketch_shares(target, golden, k, share)
                             ? choose(share, target->axis[k].blocks, marked)
                             : 0;
        if (!count)
            continue;
        put(&out, "%s", out.at == text ? "" : "; ");
        put_axis(&out, &target->axis[k], marked, count);
    }
    return text;
}
