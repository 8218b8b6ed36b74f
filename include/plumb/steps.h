/* The statistics of one training run along its steps: what is not finite, and what jumps. */
#ifndef PLUMB_STEPS_H
#define PLUMB_STEPS_H

#include "plumb/report.h"
#include "plumb/run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLUMB_STEPS_HISTORY = 20, /* steps that a value is held against, at most */
    PLUMB_STEPS_LEAST = 4,    /* and at least: before that nothing is said to jump */
    PLUMB_STEPS_FACTOR = 8    /* median absolute deviations that are a jump */
};

/* Tells a report the series, the jumps and the answer.
 *
 * A statistic jumps when it is further from the median of the last PLUMB_STEPS_HISTORY steps than
 * PLUMB_STEPS_FACTOR times their median absolute deviation, which counts as 1 % of the median at
 * least. With an earlier run, also when it is that far from what that had in the same step, by the
 * deviation of the earlier run's last steps. Norm and range (the larger of |max| and |min|) are
 * looked at. A jump is told where it begins. What is not finite is told where it begins, too, and
 * is bad.
 *
 * earlier: NULL, there is none. PLUMB_E_ARG when the run has no steps or no recorded statistics. */
enum plumb_code plumb_steps_report(struct plumb_report *report, const struct plumb_run *run,
                                   const struct plumb_run *earlier, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
