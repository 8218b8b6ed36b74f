/* Tensors that hold whatever the memory held. */
#include "dump/uninitialised.h"

#include <string.h>

const char dump_uninitialised[] = "uninitialised";

static bool names_memory(const char *word, size_t length)
{
    static const char *const names[] = {
        "empty",     "empty_like",        "empty_strided",     "empty_permuted",
        "new_empty", "new_empty_strided", "empty_with_format",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(word, names[i], length) == 0)
            return true;
    return false;
}

/* PREFIX.NAME.NUMBER...; the names of other calls have other words there. */
bool dump_takes_memory(const char *call, size_t length)
{
    const char *dot = memchr(call, '.', length);
    if (!dot || strncmp(call, "Module.", 7) == 0 || strncmp(call, "Cell.", 5) == 0)
        return false;
    const char *word = dot + 1, *end = call + length;
    const char *next = memchr(word, '.', (size_t)(end - word));
    return names_memory(word, (size_t)((next ? next : end) - word));
}

static bool is_marked(const struct case_arg *arg)
{
    if (arg->tensor && arg->tensor->uninitialised)
        return true;
    for (size_t k = 0; k < arg->n_items; k++)
        if (is_marked(&arg->items[k]))
            return true;
    return false;
}

/* What is in its first argument does not matter to it. */
static bool writes_over(const char *api)
{
    return strcmp(api, "copy_") == 0 || strcmp(api, "fill_") == 0 || strcmp(api, "zero_") == 0;
}

const char *case_uninitialised(const struct check_case *call, struct arena *arena)
{
    const char *text = NULL;
    for (size_t k = writes_over(call->api); k < call->n_args && !text; k++)
        if (is_marked(&call->args[k]))
            text = arena_printf(arena, "%s: input %zu", dump_uninitialised, k);
    for (size_t k = 0; k < call->n_kwargs && !text; k++)
        if (strcmp(call->kwargs[k].name, "out") != 0 && is_marked(&call->kwargs[k].value))
            text = arena_printf(arena, "%s: input %s", dump_uninitialised, call->kwargs[k].name);
    return text;
}
