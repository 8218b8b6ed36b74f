/* Where in a model a call is. */
#include "run/module.h"

#include <stdio.h>
#include <string.h>

/* The first of these words in a name, or NULL. */
static const char *find_word(const char *name, const char *const *words)
{
    const char *found = NULL;
    for (; *words && !found; words++)
        found = strstr(name, *words);
    return found;
}

/* One part of a name back: from behind its last dot to that dot. */
static const char *step_back(const char *name, const char *end)
{
    while (end > name && *--end != '.')
        ;
    return end;
}

const char *run_module(const char *call, char *text, size_t size)
{
    static const char *const dump[] = {".forward.", ".backward.", ".parameters_grad.", NULL};
    static const char *const capture[] = {".forward", ".backward", NULL};
    static const char prefix[] = "Module.";
    const char *end = NULL;
    if (strncmp(call, prefix, sizeof prefix - 1) == 0) {
        call += sizeof prefix - 1;
        end = find_word(call, dump);
        end = end ? step_back(call, end) : call + strlen(call);
    } else if ((end = find_word(call, capture))) {
        const char *number = step_back(call, end);
        const size_t digits = strspn(number + 1, "0123456789");
        end = digits && number + 1 + digits == end ? step_back(call, number) : NULL;
    }
    snprintf(text, size, "%.*s", end ? (int)(end - call) : 0, call);
    return text;
}
