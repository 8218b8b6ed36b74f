/* Looking an API up in msProbe's lists. */
#include "msprobe/api_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *key, const void *element)
{
    return strcmp(key, *(const char *const *)element);
}

bool api_name_listed(const char *prefix, const char *api)
{
    char name[160]; /* longer than all of them */
    int length = snprintf(name, sizeof name, "%s.%s", prefix, api);
    return length > 0 && (size_t)length < sizeof name &&
           bsearch(name, api_names, api_names_count, sizeof *api_names, compare);
}

bool api_name_listed_anywhere(const char *api)
{
    static const char *const prefixes[] = {"Functional", "Tensor", "Torch", "NPU"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (api_name_listed(prefixes[i], api))
            return true;
    return false;
}
