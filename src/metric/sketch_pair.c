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

/* Sums of both, scaled so that neither overflows. */
struct sums {
    unsigned count;
    double t[PLUMB_SKETCH_SUMS], g[PLUMB_SKETCH_SUMS];
    int exponent; /* of the scale */
};

/* Below so many steps of 2^-15, a distance is estimated from the fewer sums that have more digits:
 * above, the rounding of all sums, sqrt(256 / 6) steps, adds at most half a percent to it. */
#define FEW_STEPS (64 * 0x1p-15)

static struct sums all_sums(const struct plumb_sketch *target, const struct plumb_sketch *golden)
{
    const int exponent = target->exponent > golden->exponent ? target->exponent : golden->exponent;
    struct sums sums = {.count = PLUMB_SKETCH_SUMS, .exponent = exponent};
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        sums.t[i] = ldexp((double)target->sum[i], target->exponent - exponent);
        sums.g[i] = ldexp((double)golden->sum[i], golden->exponent - exponent);
    }
    return sums;
}

/* Over every 64th of them, with what these lost. */
static struct sums fine_sums(const struct plumb_sketch *target, const struct plumb_sketch *golden)
{
    const struct sums all = all_sums(target, golden);
    struct sums fine = {.count = PLUMB_SKETCH_FINE, .exponent = all.exponent};
    for (int j = 0; j < PLUMB_SKETCH_FINE; j++) {
        fine.t[j] = ldexp((double)target->rest[j], target->exponent - all.exponent);
        fine.g[j] = ldexp((double)golden->rest[j], golden->exponent - all.exponent);
        for (int i = j; i < PLUMB_SKETCH_SUMS; i += PLUMB_SKETCH_FINE) {
            fine.t[j] += all.t[i];
            fine.g[j] += all.g[i];
        }
    }
    return fine;
}

/* The squared length of target - factor * golden. */
static double squared(const struct sums *sums, double factor)
{
    double square = 0;
    for (unsigned i = 0; i < sums->count; i++) {
        const double d = sums->t[i] - factor * sums->g[i];
        square += d * d;
    }
    return square;
}

static double product(const double *a, const double *b, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Is what is left of all sums mostly their rounding? */
static bool is_little(const struct plumb_sketch *sketch, double square)
{
    return sketch->version == SKETCH_VERSION && square < FEW_STEPS * FEW_STEPS;
}

/* Three standard deviations of an estimated square, as a share of it. */
static double three(unsigned count)
{
    return 3 * sqrt(2.0 / count);
}

struct sketch_estimate sketch_distance(const struct plumb_sketch *target,
                                       const struct plumb_sketch *golden, double norm)
{
    const struct sums all = all_sums(target, golden);
    double square = squared(&all, 1), error = 0, excess;
    unsigned count = all.count;
    if (is_little(target, square)) {
        const struct sums fine = fine_sums(target, golden);
        const double with_digits = squared(&fine, 1);
        if (with_digits > 0) { /* else differences that are none of the rounding cancel in them */
            square = with_digits;
            count = fine.count;
        }
    }
    if (square == 0)
        return (struct sketch_estimate){0};
    excess = sqrt(1 + three(count));
    error = 1.0 / (2 * count);
    if (isnan(norm)) {
        norm = sqrt(product(all.g, all.g, all.count));
        excess /= sqrt(1 - three(all.count));
        error += 1.0 / (2 * all.count);
    } else {
        norm = ldexp(norm, -all.exponent);
    }
    const double distance = sqrt(square) / norm;
    return (struct sketch_estimate){distance, distance * sqrt(error), distance / excess};
}

static struct sketch_scale scale_of(const struct sums *sums, double *rest)
{
    const double gg = product(sums->g, sums->g, sums->count);
    const double factor = product(sums->t, sums->g, sums->count) / gg, dd = squared(sums, 1);
    *rest = squared(sums, factor);
    return (struct sketch_scale){
        .factor = factor,
        .error = sqrt(*rest / gg / sums->count),
        .left = dd > 0 ? sqrt(*rest / dd) : 0,
    };
}

struct sketch_scale sketch_scale(const struct plumb_sketch *target,
                                 const struct plumb_sketch *golden)
{
    const struct sums all = all_sums(target, golden);
    if (!(product(all.g, all.g, all.count) > 0))
        return (struct sketch_scale){NAN, NAN, NAN};
    double rest;
    struct sketch_scale scale = scale_of(&all, &rest);
    if (is_little(target, rest)) {
        const struct sums fine = fine_sums(target, golden);
        if (product(fine.g, fine.g, fine.count) > 0)
            scale = scale_of(&fine, &rest);
    }
    return scale;
}

/* The squared differences of each block of axis k, in steps of 2^-23, and their sum. */
static double block_squares(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                            unsigned k, double square[PLUMB_SKETCH_BLOCKS])
{
    const struct plumb_sketch_axis *t = &target->axis[k], *g = &golden->axis[k];
    const int of_t = target->block_exponent, of_g = golden->block_exponent;
    const int exponent = (of_t > of_g ? of_t : of_g) - 23;
    double total = 0;
    for (unsigned b = 0; b < t->blocks; b++) {
        square[b] = 0;
        for (unsigned j = 0; j < PLUMB_SKETCH_FOLD; j++) {
            const double d = ldexp((double)t->sum[b][j], of_t - exponent) -
                             ldexp((double)g->sum[b][j], of_g - exponent);
            square[b] += d * d;
        }
        total += square[b];
    }
    return total;
}

/* Marks the blocks where an axis differs: those that do more than rounding, or those that hold
 * nearly all of the distance when they are few. Of two or three blocks one may seem to by chance,
 * since a share is an estimate from four sums; of four, once in a million times. How many there
 * are; 0: everywhere.
 *
 * Sums that differ by less than a step mostly do not seem to. When those of the others differed as
 * much as the marked ones do on average, all would seem not to once in 10,000 times at most, from
 * CERTAIN on: that is (0.4 / s)^(4 u) for u blocks and s steps. */
static unsigned choose(const double *square, double total, unsigned blocks, bool *marked)
{
    enum { CERTAIN = 20 };
    const double nearly_all = 0.9 * total, nothing = 1e-6 * total / blocks;
    unsigned count = 0;
    for (unsigned b = 0; b < blocks; b++) {
        marked[b] = square[b] > nothing;
        count += marked[b];
    }
    if (count < blocks)
        return total / (count * PLUMB_SKETCH_FOLD) * (blocks - count) >= CERTAIN ? count : 0;
    memset(marked, 0, blocks * sizeof *marked);
    const unsigned few = blocks / 4;
    double held = 0;
    for (count = 0; count < few && held < nearly_all; count++) {
        unsigned most = 0;
        while (marked[most])
            most++;
        for (unsigned b = most; b < blocks; b++)
            most = !marked[b] && square[b] > square[most] ? b : most;
        marked[most] = true;
        held += square[most];
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
        double square[PLUMB_SKETCH_BLOCKS];
        bool marked[PLUMB_SKETCH_BLOCKS];
        const double total = block_squares(target, golden, k, square);
        const unsigned count =
            total > 0 ? choose(square, total, target->axis[k].blocks, marked) : 0;
        if (!count)
            continue;
        put(&out, "%s", out.at == text ? "" : "; ");
        put_axis(&out, &target->axis[k], marked, count);
    }
    return text;
}
