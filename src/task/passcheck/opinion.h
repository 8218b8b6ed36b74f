/* The second opinion about a pass: both graphs in float64, and with errors made on purpose. */
#ifndef PASSCHECK_OPINION_H
#define PASSCHECK_OPINION_H

#include "plumb/expected.h"
#include "task/passcheck/harvest.h"

struct opinions;

/* Runs what the opinions need. before, after: both sides after their forward run, which must not
 * change as long as this is used. rate: of the step. *out is to be freed; a graph that cannot be
 * run in float64 is no failure, its results are not judged. */
enum plumb_code opinions_new(const struct passcheck_side *before,
                             const struct passcheck_side *after, const bool *chosen, double rate,
                             struct opinions **out, struct plumb_error *err);
void opinions_free(struct opinions *opinions);

/* About a pair of the first iteration. Fails only when memory runs out. */
enum plumb_code opinions_judge(struct opinions *opinions, enum plumb_passcheck_kind kind,
                               const char *name, const struct plumb_arg *before,
                               const struct plumb_arg *after, struct plumb_opinion *opinion,
                               struct plumb_error *err);

/* Whether a node of `after` (in float64) comes to what the node of the same name of `before` does
 * for the same inputs: what is off then came with these. False where it cannot be told. */
bool local_is_right(struct passcheck_side *before, const struct passcheck_side *after,
                    size_t before_node, size_t after_node);

#endif
