/* The standards of api_precision_compare, each a function over the metrics of two devices. */
#ifndef VERDICT_PRECISION_LIMITS_H
#define VERDICT_PRECISION_LIMITS_H

#include "verdict/precision.h"

/* Whether all cells that decide are there. */
bool precision_has(const struct metrics *metrics, const struct route *route,
                   enum check_standard standard);

/* Fills the fields, the verdict and the message. Blank cells count as 0 where the standard has them
 * so; else the row counts as failed. */
void precision_apply(const struct metrics *metrics, const struct route *route,
                     enum check_standard standard, struct judged *judged);

/* Whether the numbers that the standard holds to limits of their own are as good as the other
 * device's, so that a limit that fails here fails there as well. */
bool precision_no_worse(const struct metrics *metrics, enum check_standard standard);

/* Documented rules: NaN and infinities that the device under test has beyond the other one are an
 * error whichever standard decides, since the other metrics leave such elements out. */
void precision_apply_inf_nan(const struct metrics *metrics, struct judged *judged);

#endif
