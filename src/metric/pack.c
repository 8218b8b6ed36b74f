/* States of the metrics engine as bytes. */
#include "metric/pack.h"

#include "metric/state.h"

#include <stdlib.h>

/* Limbs of a sum whose carries are settled have 32 bits and a sign, but for the top one. */
#define LIMB_LIMIT (INT64_C(1) << 40)

/* The limbs between the first and the last that are not zero: of most sums, a few. */
static void pack_limbs(struct pack *pack, struct exact *sum)
{
    unsigned first = 0, end = EXACT_LIMBS;
    while (end && !sum->limb[end - 1])
        end--;
    while (first < end && !sum->limb[first])
        first++;
    pack_below(pack, &end, EXACT_LIMBS + 1);
    pack_below(pack, &first, end + 1);
    for (unsigned i = first; i < end; i++) {
        pack_i64(pack, &sum->limb[i]);
        if (!pack_check(pack, sum->limb[i] < LIMB_LIMIT && sum->limb[i] > -LIMB_LIMIT))
            sum->limb[i] = 0;
    }
}

static void pack_exact(struct pack *pack, struct exact *sum)
{
    struct exact settled = {0};
    if (pack->out)
        exact_merge(&settled, sum);
    unsigned marks = (unsigned)(settled.nan | settled.positive << 1 | settled.negative << 2);
    pack_below(pack, &marks, 8);
    pack_limbs(pack, &settled);
    if (pack->out)
        return;
    settled.nan = marks & 1;
    settled.positive = marks >> 1 & 1;
    settled.negative = marks >> 2 & 1;
    settled.pending = 2;
    *sum = settled;
}

static void pack_counts(struct pack *pack, uint64_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pack_u64(pack, &counts[i]);
}

/* Most bins are empty. */
static void pack_histogram(struct pack *pack, struct plumb_histogram *histogram)
{
    unsigned end = PLUMB_HISTOGRAM_BINS;
    while (end && !histogram->bin[end - 1])
        end--;
    pack_below(pack, &end, PLUMB_HISTOGRAM_BINS + 1);
    pack_counts(pack, histogram->bin, end);
}

static void pack_ends(struct pack *pack, struct ends *ends)
{
    unsigned dtype = ends->dtype;
    pack_below(pack, &dtype, PLUMB_DTYPE_COUNT);
    ends->dtype = (enum plumb_dtype)dtype;
    pack_bool(pack, &ends->any);
    pack_u64(pack, &ends->min);
    pack_u64(pack, &ends->max);
}

void metric_pack_stats(struct pack *pack, struct stats_state *stats)
{
    pack_u64(pack, &stats->finite);
    pack_u64(pack, &stats->nan);
    pack_u64(pack, &stats->pos_inf);
    pack_u64(pack, &stats->neg_inf);
    pack_real(pack, &stats->min);
    pack_real(pack, &stats->max);
    pack_exact(pack, &stats->sum);
    pack_exact(pack, &stats->squares);
    pack_ends(pack, &stats->ends);
}

static void pack_kl(struct pack *pack, struct kl_sum *sum)
{
    pack_bool(pack, &sum->any);
    if (!sum->any)
        return;
    pack_real(pack, &sum->bucket);
    for (int i = 0; i < 2; i++) {
        pack_exact(pack, &sum->total[i]);
        pack_exact(pack, &sum->weighted[i]);
    }
}

static void pack_thresholds(struct pack *pack, struct threshold_counts *counts)
{
    pack_u64(pack, &counts->normal);
    pack_u64(pack, &counts->normal_errors);
    pack_u64(pack, &counts->small);
    pack_u64(pack, &counts->small_errors);
    pack_u64(pack, &counts->bad);
    pack_u64(pack, &counts->bad_errors);
}

static void pack_precheck(struct pack *pack, struct precheck_state *state)
{
    pack_u64(pack, &state->count);
    pack_u64(pack, &state->small_count);
    pack_u64(pack, &state->small_errors);
    pack_u64(pack, &state->masked);
    pack_u64(pack, &state->above);
    pack_u64(pack, &state->below);
    pack_exact(pack, &state->squares);
    pack_exact(pack, &state->rel_sum);
    pack_real(pack, &state->max_rel);
    pack_thresholds(pack, &state->absolute);
    pack_thresholds(pack, &state->accumulative);
}

/* The same members, in the order of plumb_metric_merge, which says what there is to add up. */
void metric_pack_state(struct pack *pack, struct plumb_metric_state *state)
{
    pack_counts(pack, &state->classes[0][0], (size_t)PLUMB_CLASSES * PLUMB_CLASSES);
    pack_exact(pack, &state->sums.tg);
    pack_exact(pack, &state->sums.tt);
    pack_exact(pack, &state->sums.gg);
    pack_exact(pack, &state->sums.dd);
    pack_real(pack, &state->max_abs);
    pack_u64(pack, &state->max_index);
    pack_real(pack, &state->max_rel);
    pack_u64(pack, &state->below_1e2);
    pack_u64(pack, &state->below_5e3);
    pack_u64(pack, &state->below_1e3);
    pack_u64(pack, &state->below_1e4);
    pack_exact(pack, &state->rel_sum);
    pack_u64(pack, &state->close);
    pack_u64(pack, &state->greater);
    pack_u64(pack, &state->above);
    pack_u64(pack, &state->below);
    pack_exact(pack, &state->abs_sum);
    pack_real(pack, &state->min_abs);
    pack_counts(pack, state->abs_over, ABS_LIMITS);
    pack_exact(pack, &state->ulp_sum);
    pack_real(pack, &state->max_ulp);
    pack_u64(pack, &state->ulp_over);
    pack_u64(pack, &state->small_count);
    pack_u64(pack, &state->small_errors);
    for (int side = 0; side < 2; side++) {
        metric_pack_stats(pack, &state->stats[side]);
        pack_u32(pack, &state->crc[side]);
    }
    pack_kl(pack, &state->kl.target);
    pack_kl(pack, &state->kl.golden);
    pack_u64(pack, &state->bits_differ);
    for (int which = 0; which < 3; which++)
        pack_histogram(pack, &state->histogram[which]);
    if (state->spec.groups & PLUMB_G_PRECHECK)
        pack_precheck(pack, &state->precheck);
}

void metric_pack_spec(struct pack *pack, struct plumb_metric_spec *spec)
{
    unsigned relative = spec->relative;
    pack_u32(pack, &spec->groups);
    pack_below(pack, &relative, PLUMB_REL_PRECHECK + 1);
    spec->relative = (enum plumb_relative_rule)relative;
    pack_real(pack, &spec->rtol);
    pack_real(pack, &spec->atol);
    pack_real(pack, &spec->gt);
    pack_bool(pack, &spec->equal_nan);
    pack_real(pack, &spec->ulp_threshold);
    pack_real(pack, &spec->small);
    pack_real(pack, &spec->small_atol);
    pack_real(pack, &spec->small_rtol);
}

/* A sum that is kept as high + low + rest becomes rest alone. */
static void pack_parts(struct pack *pack, double high, double low, struct exact *rest)
{
    struct exact sum = {0};
    if (pack->out && rest)
        sum = *rest;
    exact_add(&sum, high);
    exact_add(&sum, low);
    pack_exact(pack, &sum);
    if (!pack->out && rest)
        *rest = sum;
}

static void pack_sketch(struct pack *pack, struct sketch_state *sketch)
{
    const size_t cells = sketch_cells(sketch);
    if (pack->out)
        sketch_flush(sketch);
    else if (!sketch->rest)
        pack_check(pack, (sketch->rest = calloc(cells, sizeof *sketch->rest)));
    for (size_t i = 0; i < cells; i++)
        pack_parts(pack, sketch->high[i], sketch->low[i], sketch->rest ? &sketch->rest[i] : NULL);
    pack_bool(pack, &sketch->failed);
}

void metric_pack_kept(struct pack *pack, struct kept_state *kept)
{
    metric_pack_stats(pack, &kept->stats);
    pack_u32(pack, &kept->crc);
    pack_u64(pack, &kept->words);
    pack_u64(pack, &kept->hash.word[0]);
    pack_u64(pack, &kept->hash.word[1]);
    if (kept->sketch)
        pack_sketch(pack, kept->sketch);
    if (kept->sketch2)
        pack_sketch(pack, kept->sketch2);
    for (int i = 0; kept->sketch1 && i < PLUMB_SKETCH_SUMS; i++)
        pack_parts(pack, kept->sketch1->sum[i].high, kept->sketch1->sum[i].low,
                   &kept->sketch1->rest[i]);
}
