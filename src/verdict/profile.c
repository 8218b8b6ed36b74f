/* The documented profile, put together. */
#include "verdict/profile.h"

#include <string.h>

static const struct precheck_selecting selecting = {.formula = SELECT_SKIP};

static const struct precheck_running running = {0};

static const struct precheck_comparing comparing = {0};

const struct precheck_profile profile_documented = {
    .name = "documented",
    .standards = &standards_documented,
    .values = &values_documented,
    .select = &selecting,
    .run = &running,
    .compare = &comparing,
    .judge = &judging_documented,
    .files = &dialect_documented,
    .precision = &precision_documented,
};

const struct precheck_profile *profile_named(const struct precheck_profile *const *profiles,
                                             const char *name)
{
    for (; *profiles; profiles++)
        if (!name || strcmp((*profiles)->name, name) == 0)
            return *profiles;
    return NULL;
}
