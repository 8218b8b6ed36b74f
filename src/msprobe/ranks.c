/* How msProbe searches ranks: two searches that differ from plumb's, and from each other. */
#include "msprobe/profile.h"

const struct ranks_profile msprobe_ranks = {
    .overflow =
        {
            .plain_roles = true,
            .exact_names = true,
            .own_layers = true,
            .rounds = true,
            .first_group = true,
            .poisoned_only = true,
            .first_found = true,
            .direct_only = true,
        },
    .differences =
        {
            .all_ties = true,
            .text_roles = true,
            .begin_alike = true,
            .own_layers = true,
            .growing = true,
            .rounds = true,
            .first_found = true,
            .numbers_only = true,
            .same_ranks = true,
            .p2p_by_place = true,
        },
};
