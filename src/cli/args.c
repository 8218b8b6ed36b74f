/* Parsing a command line by the table of its command, as argparse would. */
#define _GNU_SOURCE
#include "cli/args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const struct args_command *command;
    int argc, next; /* next: the first word that was not looked at */
    char **argv;
    char *fields; /* the options struct */
    struct arena *arena;
    struct plumb_error *err;
};

bool args_is_option(const struct args_option *option)
{
    return option->names[0] && option->names[0][0] == '-';
}

static bool is_negative_number(const char *word)
{
    if (word[0] != '-' || !(isdigit((unsigned char)word[1]) || word[1] == '.'))
        return false;
    char *end;
    strtod(word, &end);
    return *end == '\0';
}

static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] && !is_negative_number(word);
}

/* Visits every option of the command: start with NULL, ends with NULL. */
static const struct args_option *next_option(const struct args_command *command,
                                             const struct args_set **set,
                                             const struct args_option *option)
{
    if (!option) {
        *set = command->sets;
        option = (*set)->title ? (*set)->options : NULL;
    } else {
        option++;
    }
    while (option && !option->names[0]) {
        ++*set;
        option = (*set)->title ? (*set)->options : NULL;
    }
    return option;
}

static bool is_list(const struct args_option *option)
{
    return option->arity == ARGS_TWO || option->arity == ARGS_MANY || option->arity == ARGS_EACH;
}

static enum plumb_code no_memory(struct parser *parser)
{
    return plumb_no_memory(parser->err);
}

/* -- Values --------------------------------------------------------------------------------- */

static enum plumb_code check_range(struct parser *parser, const struct args_option *option,
                                   const char *name, const char *text, double value)
{
    if (option->min >= option->max)
        return PLUMB_OK;
    if (value < option->min)
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s: %s is less than %.15g", name, text,
                          option->min);
    if (value > option->max)
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s: %s is more than %.15g", name, text,
                          option->max);
    return PLUMB_OK;
}

static enum plumb_code set_int(struct parser *parser, const struct args_option *option,
                               const char *name, const char *text)
{
    int64_t *field = (int64_t *)(void *)(parser->fields + option->offset);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, option->kind == ARGS_BITS ? 0 : 10);
    if (end == text || *end || errno)
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s: '%s' is not a whole number", name, text);
    *field = value;
    return check_range(parser, option, name, text, (double)value);
}

static enum plumb_code set_real(struct parser *parser, const struct args_option *option,
                                const char *name, const char *text)
{
    double *field = (double *)(void *)(parser->fields + option->offset);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || isnan(value))
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s: '%s' is not a number", name, text);
    *field = value;
    return check_range(parser, option, name, text, value);
}

static enum plumb_code set_choice(struct parser *parser, const struct args_option *option,
                                  const char *name, const char *text)
{
    int *field = (int *)(void *)(parser->fields + option->offset);
    const char *choice = option->choices;
    for (int i = 0; choice; i++) {
        size_t length = strcspn(choice, "|");
        if (length == strlen(text) && !memcmp(choice, text, length)) {
            *field = i;
            return PLUMB_OK;
        }
        choice = choice[length] ? choice + length + 1 : NULL;
    }
    return plumb_fail(parser->err, PLUMB_E_ARG, "%s: '%s' is none of %s", name, text,
                      option->choices);
}

static enum plumb_code add_to_list(struct parser *parser, const struct args_option *option,
                                   const char *text)
{
    struct args_list *list = (struct args_list *)(void *)(parser->fields + option->offset);
    if (!list->items) {
        /* No more values than words, and one for a default. */
        list->items = arena_array(parser->arena, (size_t)parser->argc + 1, sizeof *list->items);
        if (!list->items)
            return no_memory(parser);
    }
    list->items[list->count++] = text;
    return PLUMB_OK;
}

/* name is the option as the user typed it. */
static enum plumb_code set_value(struct parser *parser, const struct args_option *option,
                                 const char *name, const char *text)
{
    if (is_list(option))
        return add_to_list(parser, option, text);
    switch (option->kind) {
    case ARGS_FLAG:
    case ARGS_HELP:
        *(bool *)(parser->fields + option->offset) = true;
        return PLUMB_OK;
    case ARGS_TEXT:
    case ARGS_PATH:
        *(const char **)(void *)(parser->fields + option->offset) = text;
        return PLUMB_OK;
    case ARGS_INT:
    case ARGS_BITS:
        return set_int(parser, option, name, text);
    case ARGS_REAL:
        return set_real(parser, option, name, text);
    case ARGS_CHOICE:
        return set_choice(parser, option, name, text);
    }
    return PLUMB_OK;
}

static enum plumb_code set_defaults(struct parser *parser)
{
    const struct args_set *set = NULL;
    const struct args_option *option = NULL;
    while ((option = next_option(parser->command, &set, option))) {
        void *field = parser->fields + option->offset;
        if (option->initial) {
            enum plumb_code code = set_value(parser, option, option->names[0], option->initial);
            if (code)
                return code;
        } else if (is_list(option)) {
            *(struct args_list *)field = (struct args_list){0};
        } else if (option->kind == ARGS_INT || option->kind == ARGS_BITS) {
            *(int64_t *)field = ARGS_UNSET;
        } else if (option->kind == ARGS_REAL) {
            *(double *)field = (double)NAN;
        } else if (option->kind == ARGS_CHOICE) {
            *(int *)field = -1;
        }
    }
    return PLUMB_OK;
}

/* -- Names ---------------------------------------------------------------------------------- */

/* True when name begins with the first `length` characters of word, "-" and "_" being the same
 * after the leading dashes of a long name. */
static bool begins_with(const char *name, const char *word, size_t length)
{
    bool is_long = name[0] == '-' && name[1] == '-';
    for (size_t i = 0; i < length; i++) {
        char a = name[i], b = word[i];
        if (is_long && i >= 2) {
            a = a == '-' ? '_' : a;
            b = b == '-' ? '_' : b;
        }
        if (a != b)
            return false;
    }
    return true;
}

static const struct args_option *find_exact(struct parser *parser, const char *word, size_t length)
{
    const struct args_set *set = NULL;
    const struct args_option *option = NULL;
    while ((option = next_option(parser->command, &set, option)))
        for (size_t i = 0; i < ARGS_NAMES && option->names[i] && args_is_option(option); i++)
            if (begins_with(option->names[i], word, length) && !option->names[i][length])
                return option;
    return NULL;
}

/* How many options have a name that begins with the first `length` characters of word; *found is
 * the last of them, names lists them all. */
static unsigned find_prefix(struct parser *parser, const char *word, size_t length,
                            const struct args_option **found, struct buf *names)
{
    bool is_long = word[1] == '-';
    unsigned count = 0;
    const struct args_set *set = NULL;
    const struct args_option *option = NULL;
    while ((option = next_option(parser->command, &set, option))) {
        for (size_t i = 0; i < ARGS_NAMES && option->names[i] && args_is_option(option); i++) {
            const char *name = option->names[i];
            if ((name[1] == '-') != is_long || !begins_with(name, word, length))
                continue;
            buf_printf(names, "%s%s", count ? ", " : "", name);
            *found = option;
            count++;
            break; /* two names of one option are not ambiguous */
        }
    }
    return count;
}

static enum plumb_code unknown_option(struct parser *parser, const char *word, size_t length)
{
    const char *names[256];
    size_t count = 0;
    const struct args_set *set = NULL;
    const struct args_option *option = NULL;
    while ((option = next_option(parser->command, &set, option)))
        for (size_t i = 0; i < ARGS_NAMES && option->names[i] && args_is_option(option); i++)
            if (count < sizeof names / sizeof *names - 1)
                names[count++] = option->names[i];
    names[count] = NULL;
    const char *typed = arena_copy(parser->arena, word, length);
    const char *near = typed ? args_nearest(typed, names) : NULL;
    return plumb_fail(parser->err, PLUMB_E_ARG, "unknown option %.*s%s%s%s", (int)length, word,
                      near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}

/* Which option a word names. *value is the text that came in the same word ("--x=y", "-oX"), or
 * NULL; *name the option as it was typed. */
static enum plumb_code resolve(struct parser *parser, const char *word,
                               const struct args_option **option, const char **name,
                               const char **value)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    *value = NULL;
    *option = find_exact(parser, word, strlen(word));
    if (!*option) {
        *value = equals ? equals + 1 : NULL;
        *option = find_exact(parser, word, length);
    }
    if (!*option && word[1] != '-' && length > 2) {
        *option = find_exact(parser, word, 2);
        if (*option) {
            *value = word + 2;
            length = 2;
        }
    }
    if (!*option) {
        struct buf names = {0};
        unsigned count = find_prefix(parser, word, length, option, &names);
        enum plumb_code code = PLUMB_OK;
        if (count > 1)
            code = plumb_fail(parser->err, PLUMB_E_ARG, "%.*s could be any of %s", (int)length,
                              word, names.data ? names.data : "several options");
        else if (!count)
            code = unknown_option(parser, word, length);
        buf_free(&names);
        if (code)
            return code;
    }
    *name = arena_copy(parser->arena, word, length);
    return *name ? PLUMB_OK : no_memory(parser);
}

/* -- Parsing -------------------------------------------------------------------------------- */

/* The next word, if it can be a value. */
static const char *take_value(struct parser *parser, bool dash_value)
{
    if (parser->next == parser->argc)
        return NULL;
    const char *word = parser->argv[parser->next];
    if (looks_like_option(word) && !(dash_value && strcmp(word, "--") != 0))
        return NULL;
    parser->next++;
    return word;
}

static enum plumb_code take_list(struct parser *parser, const struct args_option *option,
                                 const char *name, const char *value)
{
    struct args_list *list = (struct args_list *)(void *)(parser->fields + option->offset);
    size_t most = option->arity == ARGS_TWO ? 2 : SIZE_MAX;
    list->count = 0;
    while (list->count < most && (value || (value = take_value(parser, option->dash_value)))) {
        enum plumb_code code = add_to_list(parser, option, value);
        if (code)
            return code;
        value = NULL;
    }
    if (option->arity == ARGS_TWO && list->count < 2)
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s needs two values (%s)", name,
                          option->metavar);
    if (!list->count)
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s needs at least one value (%s)", name,
                          option->metavar);
    return PLUMB_OK;
}

static enum plumb_code parse_option(struct parser *parser, const char *word, bool *help)
{
    const struct args_option *option = NULL;
    const char *name, *value;
    enum plumb_code code = resolve(parser, word, &option, &name, &value);
    if (code)
        return code;
    if (option->kind == ARGS_FLAG || option->kind == ARGS_HELP) {
        *help = option->kind == ARGS_HELP;
        code = set_value(parser, option, name, NULL);
        if (!value || *help)
            return code;
        /* "-qo X": what follows a one-letter flag is more options. */
        if (name[1] == '-' || name[2] || word[2] == '=')
            return plumb_fail(parser->err, PLUMB_E_ARG, "%s takes no value", name);
        const char *rest = arena_printf(parser->arena, "-%s", value);
        return rest ? parse_option(parser, rest, help) : no_memory(parser);
    }
    if (option->arity == ARGS_TWO || option->arity == ARGS_MANY)
        return take_list(parser, option, name, value);
    if (!value)
        value = take_value(parser, option->dash_value);
    if (!value && option->arity == ARGS_MAYBE)
        value = "";
    if (!value) {
        const char *shown = option->metavar ? option->metavar : option->choices;
        return plumb_fail(parser->err, PLUMB_E_ARG, "%s needs a value (%s)", name, shown);
    }
    return set_value(parser, option, name, value);
}

/* Hands the positional words out to the positionals of the table, in order. */
static enum plumb_code assign_positionals(struct parser *parser, const char *const *words,
                                          size_t count)
{
    size_t used = 0;
    const struct args_set *set = NULL;
    const struct args_option *option = NULL;
    while ((option = next_option(parser->command, &set, option))) {
        if (args_is_option(option))
            continue;
        const char *name = option->names[0];
        if (used == count && option->arity != ARGS_MAYBE)
            return plumb_fail(parser->err, PLUMB_E_ARG, "%s is missing", name);
        size_t most = option->arity == ARGS_MANY ? SIZE_MAX : 1;
        for (size_t i = 0; i < most && used < count; i++) {
            enum plumb_code code = set_value(parser, option, name, words[used++]);
            if (code)
                return code;
        }
    }
    if (used < count)
        return plumb_fail(parser->err, PLUMB_E_ARG, "unexpected argument '%s'", words[used]);
    return PLUMB_OK;
}

enum plumb_code args_parse(const struct args_command *command, int argc, char **argv, void *options,
                           struct arena *arena, struct plumb_error *err)
{
    struct parser parser = {command, argc, 0, argv, options, arena, err};
    const char **words = arena_array(arena, (size_t)argc + 1, sizeof *words);
    size_t count = 0;
    bool only_words = false, help = false;
    if (!words)
        return no_memory(&parser);
    enum plumb_code code = set_defaults(&parser);
    while (!code && !help && parser.next < argc) {
        const char *word = argv[parser.next++];
        if (only_words || !looks_like_option(word))
            words[count++] = word;
        else if (!strcmp(word, "--"))
            only_words = true;
        else
            code = parse_option(&parser, word, &help);
    }
    if (code || help)
        return code;
    return assign_positionals(&parser, words, count);
}
