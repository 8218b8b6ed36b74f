#define _GNU_SOURCE
#include "standard/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_CHARS 200
#define WORDS_MAX 5 /* one more than any line may have, so that a surplus shows */
#define NAME_MAX_CHARS 40

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
    *number = strtod(text, &end);
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

/* Levenshtein's distance; names longer than NAME_MAX_CHARS are cut. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_CHARS + 1];
    size_t columns = strnlen(b, NAME_MAX_CHARS), rows = strnlen(a, NAME_MAX_CHARS);
    for (size_t j = 0; j <= columns; j++)
        row[j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[columns];
}

const char *standard_nearest(const char *name)
{
    const char *best = "jump";
    size_t least = edit_distance(name, best);
    for (unsigned i = 0; i < STANDARD_SETTINGS; i++) {
        size_t distance = edit_distance(name, setting_names[i]);
        if (distance < least) {
            least = distance;
            best = setting_names[i];
        }
    }
    for (const struct plumb_metric_name *metric = plumb_metric_names(); metric->name; metric++) {
        size_t distance = edit_distance(name, metric->name);
        if (distance < least) {
            least = distance;
            best = metric->name;
        }
    }
    return best;
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
    bool jump = strcmp(words[1], "jump") == 0;
    if (!jump && !(rule.metric = plumb_metric_find(words[1])))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: there is no metric '%s'; the nearest name is '%s'", line,
                          words[1], standard_nearest(words[1]));

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
    if (jump && (rule.severity != PLUMB_SUSPICIOUS || rule.relation != STANDARD_LE))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: a rule on jump has the form: expect jump <= NUMBER", line);

    struct standard_rule *kept = arena_alloc(&standard->arena, sizeof *kept);
    if (!kept)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    *kept = rule;
    struct standard_rule **last = &standard->rules;
    while (*last)
        last = &(*last)->next;
    *last = kept;
    return PLUMB_OK;
}

static size_t split(char *line, char *words[WORDS_MAX])
{
    static const char blank[] = " \t\r\v\f";
    size_t count = 0;
    for (line += strspn(line, blank); *line && count < WORDS_MAX; line += strspn(line, blank)) {
        words[count++] = line;
        line += strcspn(line, blank);
        if (*line)
            *line++ = '\0';
    }
    return count;
}

static enum plumb_code parse_line(struct plumb_standard *standard, const char *text, size_t size,
                                  size_t line, struct plumb_error *err)
{
    const char *comment = memchr(text, '#', size);
    if (comment)
        size = (size_t)(comment - text);
    if (memchr(text, '\0', size))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: holds a zero byte; not a text", line);
    if (size > LINE_MAX_CHARS)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: longer than %d characters", line,
                          LINE_MAX_CHARS);

    char copy[LINE_MAX_CHARS + 1], *words[WORDS_MAX] = {NULL};
    memcpy(copy, text, size);
    copy[size] = '\0';
    size_t count = split(copy, words);
    if (count == 0)
        return PLUMB_OK;
    if (strcmp(words[0], "set") == 0)
        return parse_set(standard, words, count, line, err);
    if (strcmp(words[0], "require") == 0 || strcmp(words[0], "expect") == 0)
        return parse_rule(standard, words, count, line, err);
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "line %zu: begins with '%s'; a line is set, require, expect or a # comment",
                      line, words[0]);
}

enum plumb_code standard_parse(struct plumb_standard *standard, const char *text, size_t size,
                               struct plumb_error *err)
{
    size_t line = 1;
    for (const char *end = text + size; text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = newline ? (size_t)(newline - text) : (size_t)(end - text);
        enum plumb_code code = parse_line(standard, text, length, line, err);
        if (code)
            return code;
        text += length + (newline != NULL);
    }
    if (!standard->rules)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "there is no require or expect line, so everything would pass");
    return PLUMB_OK;
}
