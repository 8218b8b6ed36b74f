/* From exact sums to the numbers that are kept, and sums of those. */
#include "metric/sketch.h"

#include "format/sketch_kept.h"

#include <math.h>
#include <string.h>

/* A sum too large to be scaled by what float64 has. */
#define LARGE 0x1p1000

/* A sum times 2^(32*limbs), rounded once. */
static double round_cell(const struct sketch_state *sketch, size_t cell, int limbs)
{
    if (!sketch->rest && !limbs)
        return sketch->high[cell] + sketch->low[cell];
    struct exact sum = {0};
    if (sketch->rest)
        exact_merge(&sum, &sketch->rest[cell]);
    exact_add(&sum, sketch->high[cell]);
    exact_add(&sum, sketch->low[cell]);
    return exact_round_shifted(&sum, limbs);
}

/* All sums and those of blocks, times 2^(32*limbs); returns the largest in size. */
static double round_all(const struct sketch_state *sketch, int limbs, double *sums)
{
    double largest = 0;
    for (size_t i = 0; i < sketch_cells(sketch); i++) {
        sums[i] = round_cell(sketch, i, limbs);
        largest = fabs(sums[i]) > largest ? fabs(sums[i]) : largest;
    }
    return largest;
}

static void set_axes(struct plumb_sketch *out, const struct sketch_frame *frame, const double *sums,
                     int exponent)
{
    const unsigned fold = sketch_digits(frame->version)->fold;
    out->axes = frame->count;
    for (unsigned k = 0; k < frame->count; k++, sums += SKETCH_AXIS_SUMS) {
        const struct sketch_axis *from = &frame->axis[k];
        struct plumb_sketch_axis *axis = &out->axis[k];
        *axis =
            (struct plumb_sketch_axis){from->axis, from->blocks, from->size, from->length, {{0}}};
        for (unsigned b = 0; b < from->blocks; b++)
            for (unsigned j = 0; j < fold; j++) {
                double sum = 0;
                for (unsigned i = j; i < PLUMB_SKETCH_FOLD; i += fold)
                    sum += ldexp(sums[b * PLUMB_SKETCH_FOLD + i], -exponent);
                axis->sum[b][j] = (float)sum;
            }
    }
}

bool sketch_finish(struct sketch_state *sketch, struct plumb_sketch *out)
{
    double sums[SKETCH_CELLS];
    int exponent = 0, shift = 0;
    sketch_flush(sketch);
    double largest = round_all(sketch, 0, sums);
    if (largest >= LARGE) { /* their sum may have left float64 */
        largest = round_all(sketch, -EXACT_STEP, sums);
        shift = 32 * EXACT_STEP;
    }
    frexp(largest, &exponent);
    *out = (struct plumb_sketch){.version = sketch->frame.version,
                                 .exponent = exponent + shift,
                                 .block_exponent = exponent + shift};
    for (int i = 0; i < PLUMB_SKETCH_SUMS; i++)
        out->sum[i] = (float)ldexp(sums[i], -exponent);
    set_axes(out, &sketch->frame, sums + PLUMB_SKETCH_SUMS, exponent);
    sketch_round(out);
    return !sketch->failed;
}

/* a * 2^of_a + b * 2^of_b, where all of either are below 1, divided by 2^(the larger one + 1). */
static void add_all(float *a, int of_a, const float *b, int of_b, size_t count)
{
    const int top = 1 + (of_a > of_b ? of_a : of_b);
    for (size_t i = 0; i < count; i++)
        a[i] = (float)(ldexp((double)a[i], of_a - top) + ldexp((double)b[i], of_b - top));
}

static int exponent_of_sum(int a, int b)
{
    return 1 + (a > b ? a : b);
}

bool sketch_sum(struct plumb_sketch *out, const struct plumb_sketch *a,
                const struct plumb_sketch *b)
{
    if (!sketch_alike(a, b) || a->version != SKETCH_VERSION)
        return false;
    struct plumb_sketch sum = *a;
    add_all(sum.sum, a->exponent, b->sum, b->exponent, PLUMB_SKETCH_SUMS);
    add_all(sum.rest, a->exponent, b->rest, b->exponent, PLUMB_SKETCH_FINE);
    for (unsigned k = 0; k < a->axes; k++)
        add_all(&sum.axis[k].sum[0][0], a->block_exponent, &b->axis[k].sum[0][0], b->block_exponent,
                SKETCH_AXIS_SUMS);
    sum.exponent = exponent_of_sum(a->exponent, b->exponent);
    sum.block_exponent = exponent_of_sum(a->block_exponent, b->block_exponent);
    sketch_round(&sum);
    *out = sum;
    return true;
}
