/* Verdicts: named metrics against thresholds that are data.
 *
 * A standard is a small text, built in (xray, torchair, allclose) or from a file:
 *
 *     # comment
 *     set rtol 1e-3               settings of the metrics: rtol, atol, gt, equal_nan, ulp_threshold
 *     require cosine >= 0.99      not true (or NaN): FAIL
 *     expect max_rel < 0.001      not true (or NaN): suspicious
 *     expect jump <= 10           jump: worst output of an operator over its worst input
 *
 * Names are those of plumb_metric_names. The first line that is not met decides, require before
 * expect.
 *
 * The built-in standards `statistics` (what was recorded) and `checkpoint` (weights) have the same
 * form, but judge what is no pair of tensors: they cannot be loaded here, only printed. */
#ifndef PLUMB_VERDICT_H
#define PLUMB_VERDICT_H

#include "plumb/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_severity { PLUMB_NORMAL, PLUMB_SUSPICIOUS, PLUMB_FAILED };

struct plumb_standard;

struct plumb_verdict {
    enum plumb_severity severity;
    char rule[160]; /* "max_abs 0.015625 > 0.01": the rule, the number and the threshold */
    bool unjudged;  /* what is known tells nothing: it neither passes nor fails */
    bool nonfinite; /* failed, since one side has a NaN or infinity where the other does not */
};

/* Loads a built-in standard by name, else the file of that name. PLUMB_E_ARG lists what there is;
 * PLUMB_E_FORMAT names file and line. */
enum plumb_code plumb_standard_load(struct plumb_standard **standard, const char *name_or_path,
                                    struct plumb_error *err);
void plumb_standard_free(struct plumb_standard *standard);

const char *plumb_standard_name(const struct plumb_standard *standard);

/* The text of a built-in standard, or NULL: a start for one's own. */
const char *plumb_standard_text(const char *name);

/* Changes one threshold: "max_abs=0.02" replaces the number of every rule on that metric,
 * "rtol=1e-2" a setting. PLUMB_E_ARG when nothing has that name. */
enum plumb_code plumb_standard_override(struct plumb_standard *standard, const char *assignment,
                                        struct plumb_error *err);

/* Adds the groups and settings that the rules need to spec. */
void plumb_standard_spec(const struct plumb_standard *standard, struct plumb_metric_spec *spec);

void plumb_standard_judge(const struct plumb_standard *standard,
                          const struct plumb_metrics *metrics, struct plumb_verdict *verdict);

/* The limit of the rule on `jump`, or 0 when there is none. */
double plumb_standard_jump(const struct plumb_standard *standard);

/* When two numbers count as the same: |target - golden| <= atol + rtol * |golden|. Infinities are
 * close to themselves only, NaN to nothing, or to NaN with equal_nan. */
struct plumb_tolerance {
    double rtol, atol;
    bool equal_nan;
};

/* The first element, in C order, that is not close; the count of elements when all are. Both
 * tensors have the same number of elements, and both or neither are complex. Safe to call from
 * several threads; mapped bytes need the guard of plumb/file.h. */
uint64_t plumb_first_apart(const struct plumb_tensor *target, const struct plumb_tensor *golden,
                           const struct plumb_tolerance *tolerance);

#ifdef __cplusplus
}
#endif
#endif
