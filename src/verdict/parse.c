/* The rule language: settings and rules, from text. */
#define _GNU_SOURCE
#include "verdict/rules.h"

#include "base/plain.h"
#include "verdict/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const standard_sign[] = {"<", "<=", ">", ">=", "==", "!="};
_Static_assert(sizeof standard_sign / sizeof *standard_sign == STANDARD_RELATIONS, "a sign each");

static const char *const setting_names[] = {"rtol", "atol", "gt", "equal_nan", "ulp_threshold"};
_Static_assert(sizeof setting_names / sizeof *setting_names == STANDARD_SETTINGS, "a name each");

enum standard_setting standard_find_setting(const char *name)
{
    unsigned i = 0;
    while (i < STANDARD_SETTINGS && strcmp(setting_names[i], name) != 0)
        i++;
    return (enum standard_setting)i;
}

static bool read_number(const char *text, double *number)
{
    char *end;
    *number = plain_number(text, &end);
    return end != text && *end == '\0' && !isnan(*number);
}

bool standard_read_setting(enum standard_setting setting, const char *text, double *value)
{
    if (setting != STANDARD_EQUAL_NAN)
        return read_number(text, value) && isfinite(*value) && *value >= 0;
    *value = strcmp(text, "yes") == 0;
    return *value != 0 || strcmp(text, "no") == 0;
}

bool standard_read_limit(const struct plumb_metric_name *metric, const char *text, double *limit)
{
    if (!read_number(text, limit))
        return false;
    return metric || (isfinite(*limit) && *limit > 0);
}

void standard_nearest(const char *name, struct nearest *nearest)
{
    nearest_init(nearest, name);
    nearest_try(nearest, RULE_JUMP, strlen(RULE_JUMP));
    for (unsigned i = 0; i < STANDARD_SETTINGS; i++)
        nearest_try(nearest, setting_names[i], strlen(setting_names[i]));
    for (const struct plumb_metric_name *metric = plumb_metric_names(); metric->name; metric++)
        nearest_try(nearest, metric->name, strlen(metric->name));
}

static enum plumb_code parse_set(struct plumb_standard *standard, char *const *words, size_t count,
                                 size_t line, struct plumb_error *err)
{
    if (count != 3)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: write it as: set NAME VALUE", line);
    enum standard_setting setting = standard_find_setting(words[1]);
    if (setting == STANDARD_SETTINGS)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: there is no setting '%s'; there are rtol, atol, gt, equal_nan "
                          "and ulp_threshold",
                          line, words[1]);
    if (standard->is_set[setting])
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s is set a second time", line, words[1]);
    if (!standard_read_setting(setting, words[2], &standard->setting[setting]))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s needs %s, not '%s'", line, words[1],
                          setting == STANDARD_EQUAL_NAN ? "yes or no" : "a number from 0 up",
                          words[2]);
    standard->is_set[setting] = true;
    return PLUMB_OK;
}

/* What the rule is on; false when there is no such thing. */
static bool find_subject(const struct plumb_standard *standard, const char *name,
                         struct standard_rule *rule)
{
    static const char *const others[] = {RULE_JUMP, RULE_STATISTICS, RULE_ARGUMENT};
    size_t count = standard->of_task ? sizeof others / sizeof *others : 1;
    rule->metric = plumb_metric_find(name);
    if (rule->metric)
        rule->name = rule->metric->name;
    for (size_t i = 0; i < count && !rule->name; i++)
        if (strcmp(name, others[i]) == 0)
            rule->name = others[i];
    return rule->name;
}

static enum plumb_code parse_rule(struct plumb_standard *standard, char *const *words, size_t count,
                                  size_t line, struct plumb_error *err)
{
    if (count != 4)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: write it as: %s METRIC OPERATOR NUMBER, with spaces between",
                          line, words[0]);

    struct standard_rule rule = {
        .severity = words[0][0] == 'r' ? PLUMB_FAILED : PLUMB_SUSPICIOUS,
    };
    if (!find_subject(standard, words[1], &rule)) {
        struct nearest nearest;
        standard_nearest(words[1], &nearest);
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: there is no metric '%s'; the nearest name is '%s'", line,
                          words[1], nearest.name);
    }

    unsigned relation = 0;
    while (relation < STANDARD_RELATIONS && strcmp(standard_sign[relation], words[2]) != 0)
        relation++;
    if (relation == STANDARD_RELATIONS)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: '%s' is no operator; use < <= > >= == or !=", line, words[2]);
    rule.relation = (enum standard_relation)relation;
    if (!standard_read_limit(rule.metric, words[3], &rule.limit))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: '%s' is no threshold for %s", line,
                          words[3], words[1]);
    if (strcmp(rule.name, RULE_JUMP) == 0 &&
        (rule.severity != PLUMB_SUSPICIOUS || rule.relation != STANDARD_LE))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: a rule on jump has the form: expect jump <= NUMBER", line);

    struct standard_rule *kept = arena_alloc(&standard->arena, sizeof *kept);
    if (!kept)
        return plumb_no_memory(err);
    *kept = rule;
    struct standard_rule **last = &standard->rules;
    while (*last)
        last = &(*last)->next;
    *last = kept;
    return PLUMB_OK;
}

static enum plumb_code parse_statement(void *context, char *const *words, size_t count, size_t line,
                                       struct plumb_error *err)
{
    struct plumb_standard *standard = context;
    if (strcmp(words[0], "set") == 0)
        return parse_set(standard, words, count, line, err);
    if (strcmp(words[0], "require") == 0 || strcmp(words[0], "expect") == 0)
        return parse_rule(standard, words, count, line, err);
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "line %zu: begins with '%s'; a line is set, require, expect or a # comment",
                      line, words[0]);
}

static enum plumb_code check_rules(const struct plumb_standard *standard, struct plumb_error *err)
{
    if (standard->rules)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "there is no require or expect line, so everything would pass");
}

enum plumb_code standard_parse(struct plumb_standard *standard, const char *text, size_t size,
                               struct plumb_error *err)
{
    enum plumb_code code = lines_parse(text, size, parse_statement, standard, err);
    return code ? code : check_rules(standard, err);
}

enum plumb_code standard_parse_file(struct plumb_standard *standard, const char *path,
                                    struct plumb_error *err)
{
    enum plumb_code code = lines_parse_file(path, parse_statement, standard, err);
    if (!code && (code = check_rules(standard, err)))
        plumb_error_in_file(err, path);
    return code;
}
