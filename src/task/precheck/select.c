/* Which calls are checked. */
#include "task/precheck/select.h"

#include <string.h>

enum { LISTED, ALWAYS_BLACK };

/* Memory as it is found, or a copy of the input: there is nothing to compare. */
static const char *const always_black[] = {
    "to",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_with_format",
};

static enum plumb_code add_name(struct map *map, const char *name, uint64_t value,
                                struct plumb_error *err)
{
    uint64_t *place = map_put(map, name, strlen(name), NULL);
    if (!place)
        return plumb_no_memory(err);
    *place = value;
    return PLUMB_OK;
}

static enum plumb_code add_list(struct map *map, const char *list, const struct check_names *names,
                                bool (*knows)(const char *), struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < names->count && !code; i++) {
        if (knows && !knows(names->names[i]))
            return plumb_fail(err, PLUMB_E_ARG,
                              "%s: \"%.100s\" is no API that can be checked under these rules; "
                              "entries are bare names, such as \"conv2d\" or \"linalg.inv\"",
                              list, names->names[i]);
        code = add_name(map, names->names[i], LISTED, err);
    }
    return code;
}

enum plumb_code selector_init(struct selector *selector, const struct check_config *config,
                              const struct precheck_selecting *how, struct plumb_error *err)
{
    *selector = (struct selector){.how = how};
    enum plumb_code code =
        add_list(&selector->white, "white_list", &config->white_list, how->knows, err);
    if (!code)
        code = add_list(&selector->black, "black_list", &config->black_list, how->knows, err);
    for (size_t i = 0; i < sizeof always_black / sizeof *always_black && !code; i++)
        code = add_name(&selector->black, always_black[i], ALWAYS_BLACK, err);
    return code;
}

void selector_destroy(struct selector *selector)
{
    map_free(&selector->white);
    map_free(&selector->black);
    *selector = (struct selector){0};
}

/* A character that makes a spreadsheet take a cell for a formula, in ASCII or full width. */
static bool starts_formula(const char *text)
{
    static const char *const wide[] = {"＋", "－", "＝", "％", "＠"};
    if (*text && strchr("+-=%@", *text))
        return true;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strncmp(text, wide[i], strlen(wide[i])) == 0)
            return true;
    return false;
}

static bool is_formula(const char *name)
{
    if (starts_formula(name))
        return true;
    for (const char *p = name; (p = strchr(p, ';'));)
        if (starts_formula(++p))
            return true;
    return false;
}

struct parts {
    const char *prefix, *api;
    size_t prefix_length, api_length, count;
};

static struct parts split(const char *name)
{
    const char *first = strchr(name, '.'), *last = strrchr(name, '.');
    struct parts parts = {.prefix = name, .api = "", .count = 1};
    parts.prefix_length = first ? (size_t)(first - name) : strlen(name);
    for (const char *dot = first; dot; dot = strchr(dot + 1, '.'))
        parts.count++;
    if (parts.count > 2) {
        parts.api = first + 1;
        parts.api_length = (size_t)(last - first) - 1;
    }
    return parts;
}

size_t select_api(const char *name, const char **api)
{
    const struct parts parts = split(name);
    *api = parts.api;
    return parts.api_length;
}

static bool has_prefix(const struct parts *parts, const char *prefix)
{
    return parts->prefix_length == strlen(prefix) &&
           memcmp(parts->prefix, prefix, parts->prefix_length) == 0;
}

enum select_outcome select_call(const struct selector *selector, const char *name,
                                const char **reason)
{
    struct parts parts = split(name);
    const uint64_t *black = map_get(&selector->black, parts.api, parts.api_length);
    enum select_outcome outcome = SELECT_SKIP;
    *reason = NULL;
    if (is_formula(name)) {
        *reason = "the name holds a character that spreadsheets take for the start of a formula";
        outcome = selector->how->formula;
    } else if (has_prefix(&parts, "Distributed") || has_prefix(&parts, "MindSpeed")) {
        *reason = "calls of Distributed and MindSpeed are not checked: one process alone cannot "
                  "repeat them";
    } else if (parts.count != 3 && parts.count != 4) {
        *reason = "not the name of a call that can be checked: expected PREFIX.API.NUMBER or "
                  "PREFIX.MODULE.API.NUMBER";
    } else if (black) {
        *reason = *black == ALWAYS_BLACK ? "never checked: there is no computed result to compare"
                                         : "on the black_list";
    } else if (selector->white.count && !map_get(&selector->white, parts.api, parts.api_length)) {
        *reason = "not on the white_list";
    } else if (selector->how->choose) {
        return selector->how->choose((struct csv_cell){parts.prefix, parts.prefix_length},
                                     (struct csv_cell){parts.api, parts.api_length}, reason);
    } else {
        outcome = SELECT_RUN;
    }
    return outcome;
}
