/* All profiles of the pre-check that there are: what --rules and the base of a file of rules can
 * name. */
#ifndef MSPROBE_PROFILES_H
#define MSPROBE_PROFILES_H

#include "verdict/profile.h"

/* The documented one first, NULL at the end. */
extern const struct precheck_profile *const precheck_profiles[];

/* Their names, for the tables of options; and that of the one with a generator of its own. */
#define PRECHECK_PROFILES "documented|msprobe"
#define PRECHECK_GENERATOR "msprobe"

#endif
