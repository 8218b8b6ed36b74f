/* Which names may still go into an H5 file: well-formed, and neither taken nor a group. */
#include "h5names.h"

#include <inttypes.h>
#include <string.h>

enum { DATASET = 1, GROUP };

/* Slashes make groups: there must be something between them, and a dot would mean the same
 * group again. */
static bool well_formed(const char *name)
{
    for (const char *part = name;; part++) {
        const size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.'))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

static bool is_taken(const struct h5names *names, const char *path, size_t length, uint64_t as)
{
    const uint64_t *found = map_get(&names->taken, path, length);
    return found && *found == as;
}

static bool take(struct h5names *names, const char *path, size_t length, uint64_t as)
{
    uint64_t *place = map_put(&names->taken, path, length, NULL);
    if (place)
        *place = as;
    return place != NULL;
}

const char *h5names_take(struct h5names *names, int64_t step, const char *name)
{
    static const char *const no_memory = "out of memory";
    if (!well_formed(name))
        return "HDF5 has no such names: empty, with a \".\" alone, or with \"//\"";
    const char *path = step < 0 ? arena_printf(&names->arena, "%s", name)
                                : arena_printf(&names->arena, "%" PRId64 "/%s", step, name);
    if (!path)
        return no_memory;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if (is_taken(names, path, (size_t)(slash - path), DATASET))
            return "a tensor in the file has the name of its group";
    if (is_taken(names, path, strlen(path), DATASET))
        return "it is already in the file";
    if (is_taken(names, path, strlen(path), GROUP))
        return "a group in the file has its name";

    bool good = take(names, path, strlen(path), DATASET);
    for (const char *slash = strchr(path, '/'); slash && good; slash = strchr(slash + 1, '/'))
        good = take(names, path, (size_t)(slash - path), GROUP);
    return good ? NULL : no_memory;
}

void h5names_free(struct h5names *names)
{
    map_free(&names->taken);
    arena_free(&names->arena);
}
