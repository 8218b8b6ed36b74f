/* What two sketches say about two tensors. */
#include "metric/sketch.h"

#include "format/sketch_kept.h"

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
    double noise; /* mean square of what rounding adds to a difference */
};

/* Below so many steps of the sums, a distance is estimated from the fewer ones that have more
 * digits. Above, their rounding is known well enough to be taken off, unless the sketch is a sum of
 * many: below SOME_STEPS the fewer ones have a say. */
enum { FEW_STEPS = 16, SOME_STEPS = 128 };

/* The mean square of the rounding of one side: a twelfth of a squared step. */
static double rounding(int exponent, int digits)
{
    const double step = ldexp(1, exponent - digits);
    return step * step / 12;
}

static double noise_of(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                       int exponent, int digits)
{
    return rounding(target->exponent - exponent, digits) +
           rounding(golden->exponent - exponent, digits);
}

static struct sums all_sums(const struct plumb_sketch *target, const struct plumb_sketch *golden)
{
    const int exponent = target->exponent > golden->exponent ? target->exponent : golden->exponent;
    struct sums sums = {.count = PLUMB_SKETCH_SUMS, .exponent = exponent};
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++) {
        sums.t[i] = ldexp((double)target->sum[i], target->exponent - exponent);
        sums.g[i] = ldexp((double)golden->sum[i], golden->exponent - exponent);
    }
    if (target->version > 1)
        sums.noise = noise_of(target, golden, exponent, sketch_digits(target->version)->sum);
    return sums;
}

/* Over every 64th of them, with what these lost. */
static struct sums fine_sums(const struct plumb_sketch *target, const struct plumb_sketch *golden)
{
    const struct sums all = all_sums(target, golden);
    struct sums fine = {.count = PLUMB_SKETCH_FINE, .exponent = all.exponent};
    fine.noise = noise_of(target, golden, all.exponent, sketch_digits(target->version)->rest);
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

/* The squared length of target - factor * golden, without what rounding adds to it. A change of few
 * numbers leaves most sums alone, which adds nothing. Where all sums differ, down to a step on
 * average, at least 1 in 1.6 is seen to. */
static double squared(const struct sums *sums, double factor)
{
    double square = 0;
    unsigned differ = 0;
    for (unsigned i = 0; i < sums->count; i++) {
        const double d = sums->t[i] - factor * sums->g[i];
        square += d * d;
        differ += d != 0;
    }
    const double changed = fmin(1.6 * differ, sums->count);
    return fmax(square - changed * sums->noise, square / 4);
}

static double product(const double *a, const double *b, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Is what is left of all sums below so many steps? */
static bool is_below(const struct plumb_sketch *sketch, double square, int steps)
{
    if (sketch->version < 2)
        return false;
    const double few = ldexp(steps, -sketch_digits(sketch->version)->sum);
    return square < few * few;
}

/* The squared standard error of a distance, as a share of it: that of so many sums, and that of
 * their rounding. */
static double error_of(const struct sums *sums, double square)
{
    const double share = sums->noise / square;
    return 0.5 / sums->count + share + 0.5 * sums->count * share * share;
}

struct sketch_estimate sketch_distance(const struct plumb_sketch *target,
                                       const struct plumb_sketch *golden, double norm)
{
    const struct sums all = all_sums(target, golden);
    double square = squared(&all, 1), error = error_of(&all, square);
    if (is_below(target, square, SOME_STEPS)) {
        const struct sums fine = fine_sums(target, golden);
        const double with_digits = squared(&fine, 1);
        /* Zero: differences that are none of the rounding cancel in them. */
        if (with_digits > 0 && (is_below(target, square, FEW_STEPS) || with_digits < square / 2)) {
            square = with_digits;
            error = error_of(&fine, square);
        }
    }
    if (square == 0)
        return (struct sketch_estimate){0};
    double excess = sqrt(1 + 6 * sqrt(error)); /* three standard deviations of the square */
    if (!isfinite(norm)) {                     /* that of huge values is infinite */
        const double of_norm = 0.5 / all.count;
        norm = sqrt(product(all.g, all.g, all.count));
        excess /= sqrt(1 - 6 * sqrt(of_norm));
        error += of_norm;
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
    if (is_below(target, rest, FEW_STEPS)) {
        const struct sums fine = fine_sums(target, golden);
        if (product(fine.g, fine.g, fine.count) > 0)
            scale = scale_of(&fine, &rest);
    }
    return scale;
}

/* A sum of a block in steps of 2^exponent. Where all are rounded down, so is this: then blocks that
 * are the same stay the same, even when one of the sketches has coarser steps. */
static double in_steps(float sum, int by, const struct sketch_digits *digits)
{
    const double steps = ldexp((double)sum, by);
    return digits->down ? floor(steps) : steps;
}

/* The squared differences of each block of axis k, in steps of the coarser, and their sum. A single
 * step, which next to nothing may make, is none. */
static double block_squares(const struct plumb_sketch *target, const struct plumb_sketch *golden,
                            unsigned k, double square[PLUMB_SKETCH_BLOCKS])
{
    const struct sketch_digits *digits = sketch_digits(target->version);
    const struct plumb_sketch_axis *t = &target->axis[k], *g = &golden->axis[k];
    const int of_t = target->block_exponent, of_g = golden->block_exponent;
    const int exponent = (of_t > of_g ? of_t : of_g) - digits->block;
    double total = 0;
    for (unsigned b = 0; b < t->blocks; b++) {
        square[b] = 0;
        for (unsigned j = 0; j < digits->fold; j++) {
            const double d = in_steps(t->sum[b][j], of_t - exponent, digits) -
                             in_steps(g->sum[b][j], of_g - exponent, digits);
            square[b] += fabs(d) > 1 ? d * d : 0;
        }
        total += square[b];
    }
    return total;
}

/* Marks the blocks that differ most until they hold `share` of all. How many these are; 0 when it
 * takes more than `most`. */
static unsigned mark_largest(const double *square, double share, unsigned blocks, unsigned most,
                             bool *marked)
{
    unsigned count = 0;
    double held = 0;
    memset(marked, 0, blocks * sizeof *marked);
    for (; count < most && held < share; count++) {
        unsigned largest = 0;
        while (largest + 1 < blocks && marked[largest])
            largest++;
        for (unsigned b = largest; b < blocks; b++)
            largest = !marked[b] && square[b] > square[largest] ? b : largest;
        marked[largest] = true;
        held += square[largest];
    }
    return held >= share ? count : 0;
}

/* What blocks that do not differ may hold of all, by rounding and noise. */
#define NOTHING 1e-3

/* When all blocks differ by so many steps, would some `same` of them seem not to at most once in
 * 10,000 times? A sum seems not to with a chance of 1.2 / steps, or is that small with one of
 * 0.025; there are at most blocks^few ways to choose them. */
static bool is_certain(double steps, unsigned blocks, unsigned same, unsigned fold)
{
    const unsigned few = same < blocks - same ? same : blocks - same;
    return -log(1.2 / steps + 0.025) * fold * same - log(blocks) * few >= log(1e4);
}

/* Marks the blocks where an axis differs: those beside which the others do not, or those that hold
 * nearly all of the distance when they are few. How many there are; 0: everywhere.
 *
 * The share of a block is an estimate from two sums (four in version 2), so that blocks that differ
 * alike may seem not to. That a quarter of them seems to hold nearly all happens once in 90,000
 * times at most. */
static unsigned choose(const double *square, double total, unsigned blocks, unsigned fold,
                       bool *marked)
{
    const double nearly_all = fold == 2 && blocks < 10 ? 0.99 : 0.9;
    const unsigned count = mark_largest(square, (1 - NOTHING) * total, blocks, blocks - 1, marked);
    if (count && is_certain(sqrt(total / (count * fold)), blocks, blocks - count, fold))
        return count;
    if (total < 4.0 * blocks * fold) /* less than two steps on average */
        return 0;
    return mark_largest(square, nearly_all * total, blocks, blocks / 4, marked);
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
        const unsigned count = total > 0 ? choose(square, total, target->axis[k].blocks,
                                                  sketch_digits(target->version)->fold, marked)
                                         : 0;
        if (!count)
            continue;
        put(&out, "%s", out.at == text ? "" : "; ");
        put_axis(&out, &target->axis[k], marked, count);
    }
    return text;
}
