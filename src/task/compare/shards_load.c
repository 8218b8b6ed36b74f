/* Loading a whole: its parts, put together one by one. */
#define _GNU_SOURCE
#include "base/mapped.h"
#include "run/run.h"
#include "task/compare/shards.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

static enum plumb_code load_part(const struct shards_whole *whole, unsigned part,
                                 struct plumb_payload *payload, struct plumb_error *err)
{
    struct plumb_error why;
    enum plumb_code code = plumb_run_load(whole->run, whole->records[part], payload, &why);
    char text[700];
    return code ? plumb_fail(err, code, "the part of rank %" PRId64 " cannot be read: %s",
                             whole->ranks[part], plumb_error_text(&why, text, sizeof text))
                : PLUMB_OK;
}

/* One part at a time: in memory are the whole and what is being copied. */
static enum plumb_code put_parts(const struct shards_whole *whole, struct plumb_payload *out,
                                 const struct shards_plan *plan, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (unsigned p = 0; p < whole->layout->parts && !code; p++) {
        struct plumb_payload part;
        struct plumb_file_guard guard;
        if (!whole->use[p] || !plumb_run_record(whole->run, whole->records[p])->count)
            continue;
        code = load_part(whole, p, &part, err);
        if (code)
            break;
        plumb_file_guard_enter(&guard, &part.file);
        code = shards_put(plan, whole->layout, p, &part.tensor, out->owned, err);
        out->tensor.swap =
            whole->layout->reduce == SHARDS_ONE && whole->layout->divisor < 2 && part.tensor.swap;
        if (plumb_file_guard_leave(&guard) && !code)
            code = mapped_fail_shrank(err);
        plumb_payload_release(&part);
    }
    return code;
}

/* Shapes as the records have them: what is loaded is held against them. */
static enum plumb_code make_plan(struct shards_plan *plan, const struct shards_whole *whole,
                                 struct arena *arena, struct plumb_error *err)
{
    const unsigned count = whole->layout->parts;
    struct plumb_tensor *shapes = arena_array(arena, count, sizeof *shapes);
    const struct plumb_tensor **parts = arena_array(arena, count, sizeof *parts);
    enum plumb_code code = shapes && parts ? PLUMB_OK : plumb_no_memory(err);
    for (unsigned p = 0; p < count && !code; p++) {
        const struct plumb_record *record = plumb_run_record(whole->run, whole->records[p]);
        code = plumb_tensor_init(&shapes[p], record->dtype, record->ndim, record->shape, err);
        parts[p] = &shapes[p];
    }
    return code ? code : shards_plan(plan, arena, whole->layout, parts, err);
}

static enum plumb_code load_whole(const struct shards_whole *whole, struct plumb_payload *payload,
                                  struct plumb_error *err)
{
    struct arena arena = {0};
    struct shards_plan plan;
    uint64_t bytes;
    enum plumb_code code = make_plan(&plan, whole, &arena, err);
    if (!code)
        code = plumb_tensor_init(&payload->tensor, whole->dtype, whole->ndim, whole->shape, err);
    if (!code && (payload->tensor.count != plan.count ||
                  !plumb_dtype_bytes(whole->dtype, plan.count, &bytes)))
        code = plumb_fail(err, PLUMB_E_FORMAT, "its parts have changed");
    if (!code) {
        payload->owned = calloc(bytes + 1, 1);
        payload->tensor.data = payload->owned;
        code = payload->owned ? put_parts(whole, payload, &plan, err) : plumb_no_memory(err);
    }
    arena_free(&arena);
    if (code)
        plumb_payload_release(payload);
    return code;
}

enum plumb_code shards_load(const struct plumb_record *record, struct plumb_payload *payload,
                            struct plumb_error *err)
{
    const struct shards_whole *whole = record->detail;
    *payload = (struct plumb_payload){0};
    if (record->error) {
        if (err)
            *err = *record->error;
        return record->error->code;
    }
    if (!whole)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "how its parts lie is not known");
    if (whole->only != UINT_MAX)
        return load_part(whole, whole->only, payload, err);
    return load_whole(whole, payload, err);
}

const struct shards_whole *shards_whole_of(const struct plumb_run *run,
                                           const struct plumb_record *record)
{
    return run->load == shards_load && !record->error ? record->detail : NULL;
}

const char *compare_shards_note(const struct plumb_run *run)
{
    return run->shards;
}
