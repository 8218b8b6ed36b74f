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
    *range = (struct range_lanes){0};
    for (int l = 0; l < LANES; l++) {
        range->min[l] = INFINITY;
        range->max[l] = -INFINITY;
    }
    kernels->range(x, n, range);
    return total(range->sum);
}

static void widen(struct stats_state *stats, double min, double max)
{
    if (!stats->finite || min < stats->min)
        stats->min = min;
    if (!stats->finite || max > stats->max)
        stats->max = max;
}

/* With m near the block's mean and r = x - m, the sums of x and x^2 are n*m + sum(r) and n*m^2 +
 * 2*m*sum(r) + sum(r^2). Put together from these parts without rounding, they keep the digits that
 * the deviation of values far from zero needs. */
static void add_sums(const struct kernels *kernels, const double *x, size_t n, double about,
                     struct exact *sum, struct exact *squares)
{
    double m = about / (double)n;
    struct centre_lanes centre = {0};
    kernels->centre(x, n, m, &centre);
    double rest = total(centre.sum), square = m * m;
    exact_add_product(sum, m, (double)n);
    exact_add(sum, rest);
    exact_add_product(squares, square, (double)n);
    exact_add_product(squares, fma(m, m, -square), (double)n);
    exact_add_product(squares, 2 * m, rest);
    exact_add(squares, total(centre.squares));
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
    double min = range.min[0], max = range.max[0];
    for (int l = 1; l < LANES; l++) {
        min = range.min[l] < min ? range.min[l] : min;
        max = range.max[l] > max ? range.max[l] : max;
    }
    widen(stats, min, max);
    stats->finite += n;

    /* Squares must neither overflow nor vanish. */
    double size = -min > max ? -min : max;
    bool huge = size >= 0x1p480, tiny = size > 0 && size < 0x1p-400;
    if (!huge && !tiny) {
        add_sums(kernels, x, n, sum, &stats->sum, &stats->squares);
        return;
    }
    int limbs = huge ? EXACT_STEP : -EXACT_STEP;
    struct exact scaled = {0}, squares = {0};
    for (size_t i = 0; i < n; i++)
        finite[i] = x[i] * (huge ? 1 / EXACT_SCALE : EXACT_SCALE);
    add_sums(kernels, finite, n, find_range(kernels, finite, n, &range), &scaled, &squares);
    exact_merge_shifted(&stats->sum, &scaled, limbs);
    exact_merge_shifted(&stats->squares, &squares, 2 * limbs);
}

void stats_tensor(struct stats_state *stats, const struct kernels *kernels,
                  const struct plumb_tensor *tensor, uint64_t first, uint64_t count)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    uint64_t end = count < tensor->count - first ? first + count : tensor->count;
    struct room room;
    double x[PLUMB_METRIC_BLOCK];
    for (uint64_t at = first; at < end;) {
        size_t n = PLUMB_METRIC_BLOCK / parts;
        if (n > end - at)
            n = (size_t)(end - at);
        const void *bytes = dense_block(tensor, at, n, &room);
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
