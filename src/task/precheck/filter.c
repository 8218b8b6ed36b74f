/* Only the hash of a call's form is kept; when it comes again, the form of the earlier call is made
 * once more and compared. */
#include "task/precheck/filter.h"

#include "base/map.h"
#include "base/mapped.h"
#include "dump/call_file.h"
#include "task/precheck/form.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(const struct buf *text)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < text->size; i++)
        hash = (hash ^ (uint8_t)text->data[i]) * 0x100000001b3u;
    return hash;
}

struct filter {
    const struct case_file *file;
    struct form now, earlier;
    struct map seen; /* hash to call */
    uint64_t *hashes;
};

/* Whether call i, which was just written down, is the first of its kind. */
static enum plumb_code look_up(struct filter *filter, size_t i, bool *first,
                               struct plumb_error *err)
{
    uint64_t *hash = &filter->hashes[i];
    for (*hash = hash_bytes(&filter->now.text);; ++*hash) {
        uint64_t *call = map_put(&filter->seen, (const char *)hash, sizeof *hash, first);
        if (!call)
            return plumb_no_memory(err);
        if (*first) {
            *call = i;
            return PLUMB_OK;
        }
        /* A file that was cut short meanwhile is noticed by the caller. */
        bool good = form_call(&filter->earlier, filter->file, (size_t)*call);
        if (form_failed(&filter->earlier))
            return plumb_no_memory(err);
        if (!good ||
            (filter->earlier.text.size == filter->now.text.size &&
             memcmp(filter->earlier.text.data, filter->now.text.data, filter->now.text.size) == 0))
            return PLUMB_OK;
    }
}

static enum plumb_code walk(struct filter *filter, bool *keep, struct plumb_error *err)
{
    const struct case_file *file = filter->file;
    struct form *now = &filter->now;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < file->count && !code; i++) {
        keep[i] = true;
        if (form_call(now, file, i))
            code = look_up(filter, i, &keep[i], err);
        else if (form_failed(now))
            code = plumb_no_memory(err);
        else if (now->by_objects)
            code = plumb_fail_at(err, PLUMB_E_FORMAT, file->places[i].forward,
                                 "%.200s has no input_args or no input_kwargs, or not as they must "
                                 "be, so that -f cannot tell whether it repeats another call",
                                 file->places[i].name);
    }
    return code;
}

enum plumb_code filter_repeats(const struct case_file *file, bool by_objects, bool *keep,
                               struct plumb_error *err)
{
    struct filter filter = {.file = file};
    filter.now.by_objects = filter.earlier.by_objects = by_objects;
    filter.hashes = calloc(file->count ? file->count : 1, sizeof *filter.hashes);
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &file->map);
    enum plumb_code code = filter.hashes ? walk(&filter, keep, err) : plumb_no_memory(err);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    if (code)
        plumb_error_in_file(err, file->path);
    map_free(&filter.seen);
    free(filter.hashes);
    form_free(&filter.now);
    form_free(&filter.earlier);
    return code;
}
