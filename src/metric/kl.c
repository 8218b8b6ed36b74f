/* Kullback-Leibler divergence in one pass. */
#include "metric/kl.h"

#include "plumb/metric.h"

#include <math.h>

#define LN2 0x1.62e42fefa39efp-1
#define WIDTH (512 * LN2) /* of a bucket, in units of x */
#define LONE 0x1p58 /* from here on, neighbouring float64 values are too far apart to share one */

static double bucket_of(double x)
{
    return fabs(x) < LONE ? floor((x / LN2 + 256) / 512) : x;
}

/* Makes `bucket` the highest, if it is higher. Returns its place: 0, 1, or 2 when it is too low. */
static int place_of(struct kl_sum *sum, double bucket)
{
    if (!sum->any || bucket > sum->bucket) {
        const struct exact none = {0};
        bool neighbour = sum->any && bucket == sum->bucket + 1;
        sum->total[1] = neighbour ? sum->total[0] : none;
        sum->weighted[1] = neighbour ? sum->weighted[0] : none;
        sum->total[0] = sum->weighted[0] = none;
        sum->bucket = bucket;
        sum->any = true;
    }
    return bucket == sum->bucket ? 0 : bucket == sum->bucket - 1 ? 1 : 2;
}

static void add(struct kl_sum *sum, double bucket, double total, double weighted)
{
    int place = place_of(sum, bucket);
    if (place == 2)
        return;
    exact_add(&sum->total[place], total);
    exact_add(&sum->weighted[place], weighted);
}

/* exp(x) as a multiple of its bucket; times x - y too, without rounding: what is large in it
 * cancels in the end. */
static void add_one(struct kl_sum *sum, double x, double y)
{
    double bucket = bucket_of(x);
    double value = fabs(x) < LONE ? kernel_exp(fma(-bucket, WIDTH, x)) : 1;
    int place = place_of(sum, bucket);
    if (place == 2)
        return;
    exact_add(&sum->total[place], value);
    const double d = x - y, part = d - x, rest = (x - (d - part)) - (y + part);
    if (rest == 0 && d != 0) {
        exact_add_product(&sum->weighted[place], value, d);
    } else if (rest != 0) { /* not all of the difference is in d, or it is infinite */
        exact_add_product(&sum->weighted[place], value, x);
        exact_add_product(&sum->weighted[place], -value, y);
    }
}

static double total(const double *lanes)
{
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

void kl_add(struct kl_state *kl, const struct kl_lanes *lanes)
{
    add(&kl->golden, 0, total(lanes->golden), total(lanes->weighted));
    add(&kl->target, 0, total(lanes->target), 0);
}

static double larger_size(const struct kernels *kernels, const double *x, size_t n, double least)
{
    struct range_lanes range = range_of_nothing();
    kernels->range(x, n, &range);
    return fmax(least, range_largest(&range));
}

void kl_block(struct kl_state *kl, const struct kernels *kernels, enum kernel_type type,
              const void *t, const void *g, size_t n, double bound, bool near)
{
    double x[PLUMB_METRIC_BLOCK], y[PLUMB_METRIC_BLOCK];
    if (bound > KL_FAST) {
        kernels->load[type](t, n, x);
        kernels->load[type](g, n, y);
        bound = larger_size(kernels, x, n, larger_size(kernels, y, n, 0));
    }
    if (bound <= KL_FAST && n) {
        struct kl_lanes lanes = {0};
        if (!near)
            kernels->pair_kl[type](t, g, n, &lanes);
        else if (!kernels->pair_kl_short[type](t, g, n, &lanes))
            kernels->pair_kl_near[type](t, g, n, &lanes);
        kl_add(kl, &lanes);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        add_one(&kl->golden, y[i], x[i]);
        add_one(&kl->target, x[i], x[i]);
    }
}

static void merge_sum(struct kl_sum *sum, const struct kl_sum *other)
{
    if (!other->any)
        return;
    for (int i = 0; i < 2; i++) {
        int place = place_of(sum, other->bucket - i);
        if (place == 2)
            continue;
        exact_merge(&sum->total[place], &other->total[i]);
        exact_merge(&sum->weighted[place], &other->weighted[i]);
    }
}

void kl_merge(struct kl_state *kl, const struct kl_state *other)
{
    merge_sum(&kl->target, &other->target);
    merge_sum(&kl->golden, &other->golden);
}

/* Both buckets together. */
static struct exact joined(const struct exact sums[2])
{
    struct exact sum = sums[0];
    exact_merge_shifted(&sum, &sums[1], -512 / 32);
    return sum;
}

/* Adds factor * (where the side's bucket begins) * total to sum, without rounding. */
static void add_start(struct exact *sum, const struct kl_sum *side, double factor, double total)
{
    double width = fabs(side->bucket) < LONE ? WIDTH : 1;
    double start = side->bucket * width, rest = fma(side->bucket, width, -start);
    exact_add_product(sum, factor * start, total);
    exact_add_product(sum, factor * rest, total);
}

/* sum(P * (g - t)) - ln(sum exp(g)) + ln(sum exp(t)). What the buckets begin with cancels against
 * the first term and may be huge, so that much is exact. */
double kl_finish(const struct kl_state *kl)
{
    if (!kl->golden.any)
        return 0;
    struct exact total = joined(kl->golden.total), mean = joined(kl->golden.weighted);
    const struct exact of_target = joined(kl->target.total);
    const double golden = exact_round(&total), target = exact_round(&of_target);
    const bool apart = kl->golden.bucket != kl->target.bucket;
    for (double part = golden; apart && part != 0; part = exact_round(&total)) {
        add_start(&mean, &kl->golden, -1, part);
        add_start(&mean, &kl->target, 1, part);
        exact_add(&total, -part);
    }
    const double first = exact_round_shifted(&mean, -EXACT_STEP) / golden * EXACT_SCALE;
    const double divergence = first + log(target / golden);
    return divergence < 0 ? 0 : divergence;
}
