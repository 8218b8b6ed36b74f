/* What kernels found in a block, added to a state. */
#ifndef METRIC_SUMS_H
#define METRIC_SUMS_H

#include "metric/state.h"

/* The squares of both sides together: not finite where a value is not, or is huge. */
double sums_of_squares(const struct error_lanes *lanes);

/* Those of one of them: of t, g, or d. */
double sums_lanes(const double lanes[LANES]);

/* Are they far enough from both ends of float64? Those of all narrower types are. */
static inline bool sums_are_ordinary(double squares)
{
    return squares >= 0x1p-800 && squares < 0x1p1000;
}

/* Each by itself, since t, g and d may have little to do with each other. */
static inline bool sums_are_all_ordinary(const struct error_lanes *lanes)
{
    return sums_are_ordinary(sums_lanes(lanes->tt)) && sums_are_ordinary(sums_lanes(lanes->gg)) &&
           (lanes->max == 0 || sums_are_ordinary(sums_lanes(lanes->dd)));
}

/* No value of the block is larger than this. */
double sums_largest_value(const struct error_lanes *error);

void sums_add_error(struct error_sums *sums, const struct error_lanes *lanes);

void sums_add_relative(struct plumb_metric_state *state, const struct relative_counts *counts);
void sums_add_ratio(struct plumb_metric_state *state, const struct ratio_lanes *lanes);
void sums_add_close(struct plumb_metric_state *state, const struct close_counts *counts);
void sums_add_absolute(struct plumb_metric_state *state, const struct absolute_lanes *lanes);
void sums_add_ulp(struct plumb_metric_state *state, const struct ulp_lanes *lanes);
void sums_add_small(struct plumb_metric_state *state, const struct small_counts *counts);

/* Is max, of the block that begins at base, the largest error so far? Of equals the first is
 * wanted, and parts come in any order. */
bool sums_is_largest(const struct plumb_metric_state *state, double max, uint64_t base);

/* Notes max and where it is among n differences, if it is. place: where each stood, or NULL. */
void sums_note_max(struct plumb_metric_state *state, double max, const double *d, size_t n,
                   uint64_t base, const uint16_t *place);

#endif
