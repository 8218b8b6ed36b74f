/* The parts of a tensor that ranks have, loaded. */
#define _GNU_SOURCE
#include "task/compare/shards.h"

#include <inttypes.h>

bool shards_is_empty(const struct plumb_record *record)
{
    return record->absent && !record->error && record->ndim && !record->count;
}

enum plumb_code shards_parts_load(struct shards_parts *out, const struct shards_run *side,
                                  const struct shards_group *group, struct arena *arena,
                                  struct plumb_error *err)
{
    out->payloads = arena_array(arena, group->parts, sizeof *out->payloads);
    out->guards = arena_array(arena, group->parts, sizeof *out->guards);
    out->parts = arena_array(arena, group->parts, sizeof *out->parts);
    if (!out->payloads || !out->guards || !out->parts)
        return plumb_no_memory(err);
    for (unsigned p = 0; p < group->parts; p++) {
        struct plumb_error why;
        const struct plumb_record *record = side->records[group->records[p]];
        enum plumb_code code =
            shards_is_empty(record)
                ? plumb_tensor_init(&out->payloads[p].tensor, record->dtype, record->ndim,
                                    record->shape, &why)
                : plumb_run_load(side->run, group->records[p], &out->payloads[p], &why);
        if (code) {
            char text[700];
            return plumb_fail(err, code, "the part of rank %" PRId64 " cannot be read: %s",
                              group->ranks[p], plumb_error_text(&why, text, sizeof text));
        }
        out->parts[p] = &out->payloads[p].tensor;
        out->count++;
    }
    return PLUMB_OK;
}

void shards_parts_enter(struct shards_parts *loaded)
{
    for (unsigned p = 0; p < loaded->count; p++)
        plumb_file_guard_enter(&loaded->guards[p], &loaded->payloads[p].file);
}

bool shards_parts_leave(struct shards_parts *loaded)
{
    bool shrank = false;
    for (unsigned p = loaded->count; p-- > 0;)
        shrank = plumb_file_guard_leave(&loaded->guards[p]) || shrank;
    return shrank;
}

void shards_parts_release(struct shards_parts *loaded)
{
    for (unsigned p = 0; p < loaded->count; p++)
        plumb_payload_release(&loaded->payloads[p]);
}
