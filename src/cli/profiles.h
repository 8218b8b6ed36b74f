/* What users call profiles: the one file of the program that knows a name other than "documented".
 * The tables of options need the words as literals; tests hold them against plumb_profile_find. */
#ifndef CLI_PROFILES_H
#define CLI_PROFILES_H

#include "plumb/profile.h"

#define PROFILE_OTHER "msprobe"      /* --rules, --columns, --rng */
#define PROFILE_OTHER_TOOL "msProbe" /* whose behaviour that is */
#define PROFILE_NAMES "documented|" PROFILE_OTHER

/* The profile of a choice among PROFILE_NAMES; NULL for the documented one, and where nothing was
 * chosen. */
static inline const struct plumb_profile *profile_chosen(int choice)
{
    return choice == 1 ? plumb_profile_find(PROFILE_OTHER) : NULL;
}

#endif
