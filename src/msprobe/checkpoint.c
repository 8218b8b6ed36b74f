/* Checkpoints as msProbe joins, numbers and chooses their parts, faults included. */
#include "msprobe/profile.h"

const struct checkpoint_profile msprobe_checkpoint = {
    .renames_all = true,
    .plain_cuts = true,
    .plain_experts = true,
    .even_chunks = true,
    .joins_some = true,
    .last_wins = true,
    .no_aliases = true,
    .as_float32 = true,
    .no_infinities = true,
    .judges_nothing = true,
    .any_kind = true,
};
