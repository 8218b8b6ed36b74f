/* Standards: loading, changing and asking them. */
#define _GNU_SOURCE
#include "verdict/builtin.h"
#include "verdict/rules.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *find_text(const struct builtin *builtin, const char *name)
{
    while (builtin->name && strcmp(builtin->name, name) != 0)
        builtin++;
    return builtin->text;
}

const char *plumb_standard_text(const char *name)
{
    const char *text = find_text(standard_builtins, name);
    return text ? text : find_text(standard_task_builtins, name);
}

static enum plumb_code unknown_standard(const char *name, struct plumb_error *err)
{
    struct buf names = {0};
    for (const struct builtin *builtin = standard_builtins; builtin->name; builtin++)
        buf_printf(&names, "%s%s", builtin == standard_builtins ? "" : ", ", builtin->name);
    plumb_fail(err, PLUMB_E_ARG,
               "there is no standard '%s' and no file of that name; built in are: %s", name,
               names.data && !names.failed ? names.data : "");
    buf_free(&names);
    return PLUMB_E_ARG;
}

/* text NULL: from the file of that name. */
static enum plumb_code load(struct plumb_standard **standard, const char *name_or_path,
                            const char *text, bool of_task, struct plumb_error *err)
{
    struct plumb_standard *loaded = calloc(1, sizeof *loaded);
    enum plumb_code code = PLUMB_OK;
    if (loaded) {
        loaded->of_task = of_task;
        loaded->name = arena_copy(&loaded->arena, name_or_path, strlen(name_or_path));
    }
    if (!loaded || !loaded->name)
        code = plumb_no_memory(err);
    else if (text)
        code = standard_parse(loaded, text, strlen(text), err);
    else
        code = standard_parse_file(loaded, name_or_path, err);

    if (code)
        plumb_standard_free(loaded);
    else
        *standard = loaded;
    return code;
}

enum plumb_code plumb_standard_load(struct plumb_standard **standard, const char *name_or_path,
                                    struct plumb_error *err)
{
    const char *text = find_text(standard_builtins, name_or_path);
    if (!text && access(name_or_path, F_OK) != 0)
        return unknown_standard(name_or_path, err);
    return load(standard, name_or_path, text, false, err);
}

enum plumb_code standard_load_task(struct plumb_standard **standard, const char *name,
                                   struct plumb_error *err)
{
    return load(standard, name, find_text(standard_task_builtins, name), true, err);
}

void plumb_standard_free(struct plumb_standard *standard)
{
    if (!standard)
        return;
    arena_free(&standard->arena);
    free(standard);
}

const char *plumb_standard_name(const struct plumb_standard *standard)
{
    return standard->name;
}

const struct standard_rule *standard_find_rule(const struct plumb_standard *standard,
                                               const char *name, enum plumb_severity severity)
{
    const struct standard_rule *rule = standard->rules;
    while (rule && (rule->severity != severity || strcmp(rule->name, name) != 0))
        rule = rule->next;
    return rule;
}

bool standard_set_limit(struct plumb_standard *standard, const char *name, double limit)
{
    bool found = false;
    for (struct standard_rule *rule = standard->rules; rule; rule = rule->next) {
        if (strcmp(rule->name, name) != 0)
            continue;
        found = true;
        rule->limit = limit;
    }
    return found;
}

static enum plumb_code override_rules(struct plumb_standard *standard, const char *name,
                                      const char *value, struct plumb_error *err)
{
    bool found = false;
    for (struct standard_rule *rule = standard->rules; rule; rule = rule->next) {
        if (strcmp(rule->name, name) != 0)
            continue;
        found = true;
        double limit;
        if (!standard_read_limit(rule->metric, value, &limit))
            return plumb_fail(err, PLUMB_E_ARG, "'%s' is no threshold for %s", value, name);
        rule->limit = limit;
    }
    if (found)
        return PLUMB_OK;
    if (plumb_metric_find(name) || strcmp(name, RULE_JUMP) == 0)
        return plumb_fail(err, PLUMB_E_ARG, "the standard %s has no rule on %s", standard->name,
                          name);
    struct nearest nearest;
    standard_nearest(name, &nearest);
    return plumb_fail(err, PLUMB_E_ARG,
                      "there is no metric or setting '%s'; the nearest name is '%s'", name,
                      nearest.name);
}

enum plumb_code plumb_standard_override(struct plumb_standard *standard, const char *assignment,
                                        struct plumb_error *err)
{
    char name[64];
    const char *equals = strchr(assignment, '=');
    if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof name)
        return plumb_fail(err, PLUMB_E_ARG, "'%s' is not of the form NAME=VALUE", assignment);
    memcpy(name, assignment, (size_t)(equals - assignment));
    name[equals - assignment] = '\0';

    enum standard_setting setting = standard_find_setting(name);
    if (setting == STANDARD_SETTINGS)
        return override_rules(standard, name, equals + 1, err);
    double value;
    if (!standard_read_setting(setting, equals + 1, &value))
        return plumb_fail(err, PLUMB_E_ARG, "%s needs %s, not '%s'", name,
                          setting == STANDARD_EQUAL_NAN ? "yes or no" : "a number from 0 up",
                          equals + 1);
    standard->setting[setting] = value;
    standard->is_set[setting] = true;
    return PLUMB_OK;
}

void plumb_standard_spec(const struct plumb_standard *standard, struct plumb_metric_spec *spec)
{
    for (const struct standard_rule *rule = standard->rules; rule; rule = rule->next)
        if (rule->metric)
            spec->groups |= rule->metric->group;
    if (standard->is_set[STANDARD_RTOL])
        spec->rtol = standard->setting[STANDARD_RTOL];
    if (standard->is_set[STANDARD_ATOL])
        spec->atol = standard->setting[STANDARD_ATOL];
    if (standard->is_set[STANDARD_GT_LIMIT])
        spec->gt = standard->setting[STANDARD_GT_LIMIT];
    if (standard->is_set[STANDARD_EQUAL_NAN])
        spec->equal_nan = standard->setting[STANDARD_EQUAL_NAN] != 0;
    if (standard->is_set[STANDARD_ULP_THRESHOLD])
        spec->ulp_threshold = standard->setting[STANDARD_ULP_THRESHOLD];
}

double plumb_standard_jump(const struct plumb_standard *standard)
{
    double limit = 0;
    for (const struct standard_rule *rule = standard->rules; rule; rule = rule->next)
        if (strcmp(rule->name, RULE_JUMP) == 0 && (limit == 0 || rule->limit < limit))
            limit = rule->limit;
    return limit;
}
