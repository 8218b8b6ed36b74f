/* The nearest of a list of candidates, for "did you mean". */
#include "cli/args.h"

#include "base/nearest.h"

#include <string.h>

const char *args_nearest(const char *text, const char *const *candidates)
{
    struct nearest nearest;
    nearest_init(&nearest, text);
    for (const char *const *name = candidates; *name; name++)
        nearest_try(&nearest, *name, strlen(*name));
    if (!nearest_is_close(&nearest))
        return NULL;
    while (strcmp(*candidates, nearest.name) != 0)
        candidates++;
    return *candidates;
}
