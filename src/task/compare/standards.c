/* What a comparison judges by. */
#include "task/compare/compare.h"

#include "base/plain.h"
#include "verdict/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads "stat_limit=0.02"; leaves *limit alone when the setting is another one. */
static enum plumb_code read_limit(const char *setting, double *limit, bool *mine,
                                  struct plumb_error *err)
{
    static const char name[] = "stat_limit=";
    *mine = strncmp(setting, name, sizeof name - 1) == 0;
    if (!*mine)
        return PLUMB_OK;
    char *end;
    const char *text = setting + sizeof name - 1;
    *limit = plain_number(text, &end);
    if (end == text || *end || !(*limit > 0))
        return plumb_fail(err, PLUMB_E_ARG, "stat_limit needs a number above 0, not '%s'", text);
    return PLUMB_OK;
}

enum plumb_code compare_load_standards(struct compare_standards *standards, const char *name,
                                       const char *const *settings, size_t count,
                                       struct plumb_error *err)
{
    double limit = NAN;
    *standards = (struct compare_standards){0};
    enum plumb_code code = plumb_standard_load(&standards->values, name, err);
    if (!code)
        code = standard_load_task(&standards->recorded, "statistics", err);
    for (size_t i = 0; !code && i < count; i++) {
        bool mine;
        code = read_limit(settings[i], &limit, &mine, err);
        if (!code && !mine)
            code = plumb_standard_override(standards->values, settings[i], err);
    }
    if (!code && !isnan(limit))
        recorded_set_limit(standards->recorded, limit);
    return code;
}

void compare_free_standards(struct compare_standards *standards)
{
    plumb_standard_free(standards->values);
    plumb_standard_free(standards->recorded);
}
