/* The parts of msProbe's profile, each in a file of its own. */
#ifndef MSPROBE_PROFILE_H
#define MSPROBE_PROFILE_H

#include "verdict/profile.h"
#include "verdict/profiles.h"

extern const struct precheck_profile profile_msprobe;
extern const struct checkpoint_profile msprobe_checkpoint;
extern const struct ranks_profile msprobe_ranks;

extern const struct standard_set msprobe_standards;
extern const struct value_profile msprobe_values;
extern const struct precheck_judging msprobe_judging;
extern const struct precheck_dialect msprobe_dialect;
extern const struct precision_profile msprobe_precision;

#endif
