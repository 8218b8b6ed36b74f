/* What the records of a folder are called. */
#define _GNU_SOURCE
#include "run/folder.h"
#include "run/index.h"

#include <string.h>

const char *folder_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

size_t folder_stem(const char *path)
{
    const char *name = folder_base_name(path);
    const char *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

int64_t folder_rank(const char *path)
{
    static const char *const parts[] = {"globalrank-", "_localrank-"};
    const char *p = folder_base_name(path);
    int64_t ranks[2];
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(parts[i]);
        if (strncmp(p, parts[i], length) != 0)
            return -1;
        p += length;
        const char *digits = p;
        ranks[i] = 0;
        while (*p >= '0' && *p <= '9' && p - digits < 18)
            ranks[i] = ranks[i] * 10 + (*p++ - '0');
        if (p == digits)
            return -1;
    }
    return strcmp(p, ".h5") == 0 ? ranks[0] : -1;
}

static bool is_container(const struct source *source)
{
    return source->like && !source->like->unnamed;
}

static bool is_rank_dump(const struct source *source)
{
    return source->like == &format_hdf5 && folder_rank(source->relative) >= 0;
}

/* Do all module dumps of ranks lie in the same folder? */
static bool ranks_share_folder(const struct plumb_run *run)
{
    const struct source *seen = NULL;
    for (size_t i = 0; i < run->source_count; i++) {
        const struct source *source = &run->sources[i];
        if (!is_rank_dump(source))
            continue;
        size_t length = (size_t)(folder_base_name(source->relative) - source->relative);
        if (seen && ((size_t)(folder_base_name(seen->relative) - seen->relative) != length ||
                     memcmp(seen->relative, source->relative, length) != 0))
            return false;
        seen = source;
    }
    return true;
}

/* Is this the only tensor of its file, and called like it? */
static bool is_namesake(const struct plumb_run *run, const struct source *source)
{
    const char *name = folder_base_name(source->relative);
    size_t length = folder_stem(name);
    const char *inner = run->listing.records[source->first].name;
    return source->count == 1 && strlen(inner) == length && memcmp(inner, name, length) == 0;
}

/* Puts the first length bytes of the relative path and a dot before the names of a file. */
static enum plumb_code prefix_names(struct plumb_run *run, const struct source *source,
                                    size_t length)
{
    for (size_t i = 0; length && i < source->count; i++) {
        struct plumb_record *record = &run->listing.records[source->first + i];
        record->name =
            arena_printf(&run->arena, "%.*s.%s", (int)length, source->relative, record->name);
        if (!record->name)
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

/* Is this the only file of a folder "rank0", "rank_1", ... at the top? Then that folder names
 * it. */
static bool is_all_of_rank(const struct plumb_run *run, const struct source *source)
{
    const char *relative = source->relative, *slash = strchr(relative, '/');
    if (!slash || strncmp(relative, "rank", 4) != 0)
        return false;
    const char *digits = relative + 4 + (strchr("_-=", relative[4]) != NULL);
    const size_t count = strspn(digits, "0123456789");
    if (!count || digits + count != slash)
        return false;
    const size_t folder = (size_t)(slash + 1 - relative);
    const struct source *end = run->sources + run->source_count;
    const bool before =
        source > run->sources && strncmp(source[-1].relative, relative, folder) == 0;
    const bool behind = source + 1 < end && strncmp(source[1].relative, relative, folder) == 0;
    return !before && !behind;
}

enum plumb_code folder_name_records(struct plumb_run *run)
{
    size_t containers = 0;
    for (size_t i = 0; i < run->source_count; i++)
        containers += is_container(&run->sources[i]);
    bool one_folder = ranks_share_folder(run);

    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < run->source_count && !code; i++) {
        const struct source *source = &run->sources[i];
        const char *relative = source->relative;
        if (source->index) {
            code = prefix_names(run, source, index_folder(source->index));
        } else if ((source->like && source->like->unnamed) ||
                   (containers > 1 && is_namesake(run, source))) {
            const char *name = arena_copy(&run->arena, relative, folder_stem(relative));
            run->listing.records[source->first].name = name;
            code = name ? PLUMB_OK : PLUMB_E_NOMEM;
        } else if (is_rank_dump(source)) {
            size_t folder = (size_t)(folder_base_name(relative) - relative);
            code = prefix_names(run, source, one_folder || !folder ? 0 : folder - 1);
        } else if (is_container(source) && is_all_of_rank(run, source)) {
            code = prefix_names(run, source, strcspn(relative, "/"));
        } else if (is_container(source) && (containers > 1 || source->like == &format_condensed)) {
            code = prefix_names(run, source, folder_stem(relative));
        }
    }
    return code;
}
