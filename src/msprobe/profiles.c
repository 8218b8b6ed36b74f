/* The table of all profiles. */
#include "msprobe/graph.h"
#include "msprobe/profile.h"
#include "plumb/profile.h"

#include <string.h>

static const struct plumb_profile documented = {
    .name = "documented",
    .precheck = &profile_documented,
};

static const struct plumb_profile msprobe = {
    .name = "msprobe",
    .precheck = &profile_msprobe,
    .graph = &msprobe_graph,
    .graph_columns = &msprobe_graph_columns,
    .checkpoint = &msprobe_checkpoint,
    .ranks = &msprobe_ranks,
};

const struct plumb_profile *const all_profiles[] = {&documented, &msprobe, NULL};

const struct precheck_profile *const precheck_profiles[] = {&profile_documented, &profile_msprobe,
                                                            NULL};

const struct plumb_profile *plumb_profile_find(const char *name)
{
    for (const struct plumb_profile *const *profile = all_profiles; *profile; profile++)
        if (strcmp((*profile)->name, name) == 0)
            return *profile;
    return NULL;
}
