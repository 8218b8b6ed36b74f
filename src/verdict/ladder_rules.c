/* Reading rule sets. */
#include "verdict/ladder_rules.h"

#include "base/nearest.h"
#include "base/plain.h"
#include "verdict/ladder_names.h"
#include "verdict/lines.h"
#include "verdict/profile.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 1024 }; /* names on a list */

/* A set on its way. */
struct reading {
    const struct precheck_profile *const *profiles;
    struct arena *arena;
    struct standard_set *set;
    const char **apis[STANDARD_COUNT]; /* the set's lists, with room for LIST_MAX names */
    const char **level_apis[STANDARD_LEVELS];
    bool begun; /* there was a statement */
};

void rules_names(struct buf *out, const struct precheck_profile *const *profiles,
                 const char *separator)
{
    for (size_t i = 0; profiles[i]; i++)
        buf_printf(out, "%s%s", i ? separator : "", profiles[i]->name);
}

/* An error that ends with the names of all profiles. */
static enum plumb_code fail_with_names(enum plumb_code code, const char *what,
                                       const struct precheck_profile *const *profiles,
                                       const char *separator, struct plumb_error *err)
{
    struct buf names = {0};
    rules_names(&names, profiles, separator);
    code = names.failed ? plumb_no_memory(err) : plumb_fail(err, code, "%s%s", what, names.data);
    buf_free(&names);
    return code;
}

static bool copy_list(struct reading *reading, const char *const *from, const char ***to)
{
    if (!*to)
        *to = arena_array(reading->arena, LIST_MAX + 1, sizeof **to);
    size_t n = 0;
    for (; *to && from[n]; n++)
        (*to)[n] = from[n];
    if (*to)
        (*to)[n] = NULL;
    return *to != NULL;
}

static bool take_base(struct reading *reading, const struct standard_set *base)
{
    *reading->set = *base;
    for (int i = 0; i < STANDARD_COUNT; i++) {
        if (!copy_list(reading, base->apis[i], &reading->apis[i]))
            return false;
        reading->set->apis[i] = reading->apis[i];
    }
    for (int i = 0; i < STANDARD_LEVELS; i++) {
        if (!copy_list(reading, base->level_apis[i], &reading->level_apis[i]))
            return false;
        reading->set->level_apis[i] = reading->level_apis[i];
    }
    return true;
}

static enum plumb_code read_base(struct reading *reading, char *const *words, size_t count,
                                 size_t line, struct plumb_error *err)
{
    const struct precheck_profile *base =
        count == 2 ? profile_named(reading->profiles, words[1]) : NULL;
    if (!base) {
        char what[80];
        snprintf(what, sizeof what, "line %zu: write it as: base ", line);
        return fail_with_names(PLUMB_E_FORMAT, what, reading->profiles, "|", err);
    }
    if (reading->begun)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: base has to come before everything else",
                          line);
    take_base(reading, base->standards); /* the room is there */
    return PLUMB_OK;
}

static bool find_number(const char *name, struct rules_number *number, struct nearest *nearest)
{
    nearest_init(nearest, name);
    for (size_t i = 0; rules_number(i, number); i++) {
        if (strcmp(number->name, name) == 0)
            return true;
        nearest_try(nearest, number->name, strlen(number->name));
    }
    return false;
}

static enum plumb_code read_number(struct reading *reading, char *const *words, size_t count,
                                   size_t line, struct plumb_error *err)
{
    struct rules_number number;
    struct nearest nearest;
    if (count != 3)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: write it as: set NAME NUMBER", line);
    if (!find_number(words[1], &number, &nearest))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: there is no number '%s'; %s%s%s'plumb standard %s' shows all",
                          line, words[1], nearest_is_close(&nearest) ? "did you mean '" : "",
                          nearest_is_close(&nearest) ? nearest.name : "",
                          nearest_is_close(&nearest) ? "'? " : "", reading->set->profile->name);
    char *end;
    const double value = plain_number(words[2], &end);
    if (end == words[2] || *end || !(value >= 0 && value <= number.most))
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: %s needs a number from 0 %s, not '%s'",
                          line, words[1], number.most == 1 ? "to 1" : "up", words[2]);
    memcpy((char *)reading->set + number.offset, &value, sizeof value);
    return PLUMB_OK;
}

/* Takes a name off whatever list it is on. */
static void take_off(const char **const *lists, size_t n, const char *name,
                     int (*compare)(const char *, const char *))
{
    for (size_t i = 0; i < n; i++) {
        const char **kept = lists[i];
        for (const char **from = lists[i]; *from; from++)
            if (compare(*from, name) != 0)
                *kept++ = *from;
        *kept = NULL;
    }
}

static enum plumb_code put_on(struct reading *reading, const char **list, const char *name,
                              size_t line, struct plumb_error *err)
{
    size_t n = 0;
    while (list[n])
        n++;
    if (n == LIST_MAX)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: more than %d names", line, LIST_MAX);
    list[n] = arena_copy(reading->arena, name, strlen(name));
    list[n + 1] = NULL;
    return list[n] ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code check_api(const char *name, size_t line, struct plumb_error *err)
{
    const char *dot = strchr(name, '.');
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
            return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: '%s' is no name of an API", line,
                              name);
    if (dot && isupper((unsigned char)*name))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: APIs are named without their prefix: '%s', not '%s'", line,
                          dot + 1, name);
    return PLUMB_OK;
}

static enum plumb_code read_use(struct reading *reading, char *const *words, size_t count,
                                size_t line, struct plumb_error *err)
{
    int standard = 0;
    const char *word = NULL;
    for (; standard < STANDARD_COUNT; standard++)
        if ((word = rules_standard_word((enum check_standard)standard)) && count > 1 &&
            strcmp(word, words[1]) == 0)
            break;
    if (standard == STANDARD_COUNT || count < 3)
        return plumb_fail(
            err, PLUMB_E_FORMAT,
            "line %zu: write it as: use absolute|binary|ulp|thousandth|benchmark API...", line);
    if (reading->set->profile->judge->floats_by_benchmark)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "line %zu: base %s holds all floats to the benchmark standard, "
                          "whatever the API; use needs base %s",
                          line, reading->set->profile->name, profile_documented.name);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 2; k < count && !code; k++) {
        if ((code = check_api(words[k], line, err)))
            break;
        take_off(reading->apis, STANDARD_COUNT, words[k], strcmp);
        if (standard != STANDARD_BENCHMARK)
            code = put_on(reading, reading->apis[standard], words[k], line, err);
    }
    return code;
}

static enum plumb_code read_level(struct reading *reading, char *const *words, size_t count,
                                  size_t line, struct plumb_error *err)
{
    int level = 0;
    while (level < STANDARD_LEVELS && count > 1 &&
           strcmp(reading->set->levels[level].name, words[1]) != 0)
        level++;
    if (level == STANDARD_LEVELS || count < 3)
        return plumb_fail(err, PLUMB_E_FORMAT, "line %zu: write it as: level L0|L1|L2 API...",
                          line);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 2; k < count && !code; k++) {
        if ((code = check_api(words[k], line, err)))
            break;
        take_off(reading->level_apis, STANDARD_LEVELS, words[k],
                 reading->set->profile->judge->compare_level);
        if (level > 0)
            code = put_on(reading, reading->level_apis[level], words[k], line, err);
    }
    return code;
}

static enum plumb_code read_statement(void *context, char *const *words, size_t count, size_t line,
                                      struct plumb_error *err)
{
    static const struct {
        const char *word;
        enum plumb_code (*read)(struct reading *, char *const *, size_t, size_t,
                                struct plumb_error *);
    } statements[] = {
        {"base", read_base}, {"set", read_number}, {"use", read_use}, {"level", read_level}};
    struct reading *reading = context;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (strcmp(words[0], statements[i].word) != 0)
            continue;
        enum plumb_code code = statements[i].read(reading, words, count, line, err);
        reading->begun = true;
        return code;
    }
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "line %zu: begins with '%s'; a line is base, set, use, level or a # comment",
                      line, words[0]);
}

static enum plumb_code begin(struct reading *reading,
                             const struct precheck_profile *const *profiles, struct arena *arena,
                             struct plumb_error *err)
{
    *reading = (struct reading){
        .profiles = profiles, .arena = arena, .set = arena_alloc(arena, sizeof *reading->set)};
    if (!reading->set || !take_base(reading, profiles[0]->standards))
        return plumb_no_memory(err);
    return PLUMB_OK;
}

enum plumb_code rules_parse(const struct precheck_profile *const *profiles, const char *text,
                            size_t size, struct arena *arena, const struct standard_set **set,
                            struct plumb_error *err)
{
    struct reading reading;
    enum plumb_code code = begin(&reading, profiles, arena, err);
    if (!code)
        code = lines_parse(text, size, read_statement, &reading, err);
    *set = code ? NULL : reading.set;
    return code;
}

enum plumb_code rules_load(const struct precheck_profile *const *profiles, const char *name_or_path,
                           struct arena *arena, const struct standard_set **set,
                           struct plumb_error *err)
{
    const struct precheck_profile *named = profile_named(profiles, name_or_path);
    *set = named ? named->standards : NULL;
    if (named)
        return PLUMB_OK;
    if (access(name_or_path, F_OK) != 0) {
        char what[600];
        snprintf(
            what, sizeof what,
            "there are no rules '%.500s' and no file of that name; built in are: ", name_or_path);
        return fail_with_names(PLUMB_E_ARG, what, profiles, ", ", err);
    }
    struct reading reading;
    enum plumb_code code = begin(&reading, profiles, arena, err);
    if (!code)
        code = lines_parse_file(name_or_path, read_statement, &reading, err);
    if (!code)
        *set = reading.set;
    return code;
}
