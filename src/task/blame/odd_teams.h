/* Ranks that work together, and what says that they must have a tensor alike. */
#ifndef BLAME_ODD_TEAMS_H
#define BLAME_ODD_TEAMS_H

#include "task/blame/odd.h"

/* Of tensors, in elements. */
struct sizes {
    uint64_t *list;
    size_t count, capacity;
    uint64_t sum;
};

/* By their places in the step. */
struct team {
    const size_t *ranks; /* ascending */
    size_t count;
    bool reduces;              /* about as many elements as there are parameters */
    bool gradients;            /* what it reduces are gradients of parameters */
    bool twins;                /* have the same part of a model that is cut, as their tensors say */
    bool crosses;              /* has ranks of different twins */
    struct sizes reduced, own; /* what it reduces, and the parameters of its first rank */
};

struct teams {
    struct team *list; /* largest first */
    size_t count, capacity;
    struct map names;
    struct arena arena;
    bool failed;
};

/* All ranks, the groups of all exchanges, and twins where the model is cut. */
enum plumb_code teams_find(struct teams *teams, const struct across *across,
                           const struct across_step *step, const struct replica_sets *sets,
                           const struct plumb_run *run);
void teams_close(struct teams *teams);

/* Whether the members of a team must have this tensor alike, whatever is in it: its reduced
 * gradient is the same for them, they reduce gradients of all parameters of its size, or they are
 * twins and most other twins have it alike. */
bool teams_must_agree(const struct teams *teams, const struct team *team,
                      const struct replica_sets *sets, const struct replicas *set,
                      const struct plumb_run *run);

#endif
