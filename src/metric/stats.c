/* Statistics of one side, mergeable. */
#include "metric/stats.h"

#include "metric/dense.h"

#include <math.h>

static double total(const double *lanes)
{
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* Takes out what is not finite, counting it; returns how many values are left. */
static size_t keep_finite(struct stats_state *stats, const double *x, size_t n, double *finite)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i]))
            finite[kept++] = x[i];
        else if (isnan(x[i]))
            stats->nan++;
        else if (x[i] > 0)
            stats->pos_inf++;
        else
            stats->neg_inf++;
    }
    return kept;
}

static double find_range(const struct kernels *kernels, const double *x, size_t n,
                         struct range_lanes *range)
{
    *range = range_of_nothing();
    kernels->range(x, n, range);
    return total(range->sum);
}

/* The least and the greatest of all lanes. */
static void find_ends(const struct range_lanes *range, double *min, double *max)
{
    *min = range->min[0];
    *max = range->max[0];
    for (int l = 1; l < LANES; l++) {
        *min = range->min[l] < *min ? range->min[l] : *min;
        *max = range->max[l] > *max ? range->max[l] : *max;
    }
}

/* Squares must neither overflow nor vanish. */
static double size_of(double min, double max)
{
    return -min > max ? -min : max;
}

static bool is_huge(double size)
{
    return size >= 0x1p480;
}

static bool is_tiny(double size)
{
    return size > 0 && size < 0x1p-400;
}

static void widen(struct stats_state *stats, double min, double max)
{
    if (!stats->finite || min < stats->min)
        stats->min = min;
    if (!stats->finite || max > stats->max)
        stats->max = max;
}

/* What deviations are taken from: the mean, or 0 where that costs no digits, and nothing has to be
 * subtracted. Of up to PLUMB_METRIC_BLOCK values the standard deviation is at least a 46th of what
 * they span, so that such a mean is less than six of those. */
static double middle_of(const struct range_lanes *range, size_t n, double min, double max)
{
    const double mean = total(range->sum) / (double)n;
    return fabs(mean) * 8 <= max - min ? 0 : mean;
}

/* With m near the block's mean and r = x - m, the sums of x and x^2 are n*m + sum(r) and n*m^2 +
 * 2*m*sum(r) + sum(r^2). Put together from these parts without rounding, they keep the digits that
 * the deviation of values far from zero needs. */
static void add_centred(size_t n, double m, const struct centre_lanes *centre, struct exact *sum,
                        struct exact *squares)
{
    double rest = total(centre->sum), square = m * m;
    exact_add(sum, rest);
    exact_add(squares, total(centre->squares));
    if (m == 0)
        return;
    exact_add_product(sum, m, (double)n);
    exact_add_product(squares, square, (double)n);
    exact_add_product(squares, fma(m, m, -square), (double)n);
    exact_add_product(squares, 2 * m, rest);
}

static void add_sums(const struct kernels *kernels, const double *x, size_t n, double m,
                     struct exact *sum, struct exact *squares)
{
    struct centre_lanes centre = {0};
    kernels->centre[KERNEL_F64](x, n, m, &centre);
    add_centred(n, m, &centre, sum, squares);
}

bool stats_middle(const struct range_lanes *range, size_t n, double *middle)
{
    double min, max;
    find_ends(range, &min, &max);
    const double size = size_of(min, max);
    *middle = middle_of(range, n, min, max);
    return !is_huge(size) && !is_tiny(size);
}

void stats_add(struct stats_state *stats, size_t n, const struct range_lanes *range, double middle,
               const struct centre_lanes *centre)
{
    double min, max;
    find_ends(range, &min, &max);
    widen(stats, min, max);
    stats->finite += n;
    add_centred(n, middle, centre, &stats->sum, &stats->squares);
}

void stats_values(struct stats_state *stats, const struct kernels *kernels, const double *x,
                  size_t n)
{
    double finite[PLUMB_METRIC_BLOCK];
    struct range_lanes range;
    double sum = find_range(kernels, x, n, &range);
    if (!isfinite(sum)) {
        n = keep_finite(stats, x, n, finite);
        x = finite;
        sum = find_range(kernels, x, n, &range);
    }
    if (!n)
        return;
    double min, max;
    find_ends(&range, &min, &max);
    widen(stats, min, max);
    stats->finite += n;

    double size = size_of(min, max);
    bool huge = is_huge(size), tiny = is_tiny(size);
    if (!huge && !tiny) {
        add_sums(kernels, x, n, middle_of(&range, n, min, max), &stats->sum, &stats->squares);
        return;
    }
    int limbs = huge ? EXACT_STEP : -EXACT_STEP;
    struct exact scaled = {0}, squares = {0};
    for (size_t i = 0; i < n; i++)
        finite[i] = x[i] * (huge ? 1 / EXACT_SCALE : EXACT_SCALE);
    const double mean = find_range(kernels, finite, n, &range) / (double)n;
    add_sums(kernels, finite, n, mean, &scaled, &squares);
    exact_merge_shifted(&stats->sum, &scaled, limbs);
    exact_merge_shifted(&stats->squares, &squares, 2 * limbs);
}

const double *stats_blocks(struct stats_state *stats, const struct kernels *kernels,
                           enum kernel_type type, const void *data, double *wide)
{
    struct range_lanes range[SIDE_BY_SIDE];
    struct centre_lanes centre[SIDE_BY_SIDE];
    double min[SIDE_BY_SIDE], max[SIDE_BY_SIDE], middle[SIDE_BY_SIDE];
    if (type == KERNEL_F64 && (uintptr_t)data % _Alignof(double)) {
        kernels->load[type](data, STATS_BLOCKS, wide);
        data = wide;
    }
    const double *x = type == KERNEL_F64 ? data : wide;
    kernels->ranges[type](data, wide, range);
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        double sum = total(range[b].sum);
        find_ends(&range[b], &min[b], &max[b]);
        double size = size_of(min[b], max[b]);
        if (!isfinite(sum) || is_huge(size) || is_tiny(size))
            return NULL;
        middle[b] = middle_of(&range[b], PLUMB_METRIC_BLOCK, min[b], max[b]);
    }
    kernels->centres(x, middle, centre);
    for (int b = 0; b < SIDE_BY_SIDE; b++) {
        widen(stats, min[b], max[b]);
        stats->finite += PLUMB_METRIC_BLOCK;
        add_centred(PLUMB_METRIC_BLOCK, middle[b], &centre[b], &stats->sum, &stats->squares);
    }
    return x;
}

void stats_tensor(struct stats_state *stats, const struct kernels *kernels,
                  const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    const uint64_t side = STATS_BLOCKS / parts;
    const int type = tensor->dense && !tensor->swap ? kernel_type_of(tensor->dtype) : -1;
    uint64_t alone = first; /* up to here blocks are counted one by one */
    struct room room;
    _Alignas(64) double x[STATS_BLOCKS];
    for (uint64_t at = first; at < end;) {
        size_t n = PLUMB_METRIC_BLOCK / parts;
        if (n > end - at)
            n = (size_t)(end - at);
        const void *bytes = dense_block(tensor, at, n, &room);
        if (type >= 0 && at >= alone && end - at >= side) {
            if (stats_blocks(stats, kernels, (enum kernel_type)type, bytes, x)) {
                at += side;
                continue;
            }
            alone = at + side;
        }
        dense_load(kernels, tensor->dtype, bytes, n * parts, x);
        stats_values(stats, kernels, x, n * parts);
        ends_add(&stats->ends, tensor->dtype, bytes, n);
        at += n;
    }
}

void stats_merge(struct stats_state *stats, const struct stats_state *other)
{
    if (other->finite)
        widen(stats, other->min, other->max);
    stats->finite += other->finite;
    stats->nan += other->nan;
    stats->pos_inf += other->pos_inf;
    stats->neg_inf += other->neg_inf;
    exact_merge(&stats->sum, &other->sum);
    exact_merge(&stats->squares, &other->squares);
    ends_merge(&stats->ends, &other->ends);
}

/* sum(x^2) - sum(x)^2 / n, again without rounding before the end. */
static double centred_squares(const struct stats_state *stats, int limbs)
{
    struct exact sum = {0}, result = {0};
    exact_merge_shifted(&sum, &stats->sum, limbs);
    exact_merge_shifted(&result, &stats->squares, 2 * limbs);
    double n = (double)stats->finite, high = exact_round(&sum);
    exact_add(&sum, -high);
    double low = exact_round(&sum);

    /* high / n = first + second + third, with more digits than two float64 hold */
    double first = high / n, left = fma(-first, n, high);
    double second = left / n, third = fma(-second, n, left) / n;
    exact_add_product(&result, -first, high);
    exact_add_product(&result, -second, high);
    exact_add_product(&result, -third, high);
    exact_add_product(&result, -2 * first, low);
    exact_add_product(&result, -2 * second, low);
    exact_add(&result, -low * low / n);
    double value = exact_round(&result);
    return value < 0 ? 0 : value;
}

void stats_finish(const struct stats_state *stats, struct plumb_stats *out)
{
    uint64_t n = stats->finite;
    *out = (struct plumb_stats){
        .count = n + stats->nan + stats->pos_inf + stats->neg_inf,
        .nan = stats->nan,
        .pos_inf = stats->pos_inf,
        .neg_inf = stats->neg_inf,
        .finite_min = n ? stats->min : NAN,
        .finite_max = n ? stats->max : NAN,
    };
    if (stats->nan || !out->count) {
        out->min = out->max = out->mean = out->std = out->norm = NAN;
        return;
    }
    bool infinite = stats->pos_inf || stats->neg_inf;
    out->min = stats->neg_inf ? -INFINITY : n ? stats->min : INFINITY;
    out->max = stats->pos_inf ? INFINITY : n ? stats->max : -INFINITY;
    if (infinite) {
        out->mean = stats->pos_inf && stats->neg_inf ? NAN : stats->pos_inf ? INFINITY : -INFINITY;
        out->std = NAN;
        out->norm = INFINITY;
        return;
    }
    /* Scaled, when float64 cannot hold the squares. */
    double size = exact_round(&stats->squares);
    int limbs = size > 0x1p900 ? -EXACT_STEP : size < 0x1p-700 ? EXACT_STEP : 0;
    double scale = limbs < 0 ? EXACT_SCALE : limbs > 0 ? 1 / EXACT_SCALE : 1;
    out->mean = exact_round_shifted(&stats->sum, limbs) / (double)n * scale;
    out->std = n > 1 ? sqrt(centred_squares(stats, limbs) / (double)(n - 1)) * scale : NAN;
    out->norm = sqrt(exact_round_shifted(&stats->squares, 2 * limbs)) * scale;
}

void stats_finish_finite(const struct stats_state *stats, struct plumb_stats *out)
{
    struct stats_state finite = *stats;
    finite.nan = finite.pos_inf = finite.neg_inf = 0;
    stats_finish(&finite, out);
}
