/* What is left of a GE file after plumb condense, or after the script of the TorchAir guide: the
 * statistics of its tensors. */
#define _GNU_SOURCE
#include "format/condensed.h"
#include "format/ge_file.h"
#include "format/ge_type.h"
#include "format/recorded.h"

#include <stdlib.h>
#include <string.h>

enum { GE_TYPES = 64 };

static int32_t type_of(enum plumb_dtype dtype)
{
    for (int32_t number = 1; number < GE_TYPES; number++) {
        const struct ge_type *type = ge_type_find(number);
        if (type && type->storage == GE_AS_IS && type->dtype == dtype)
            return number;
    }
    return -1;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

/* The same, without texts of numbers, which nobody asks for. */
static const struct plumb_kept *copy_kept(const struct plumb_kept *kept, struct arena *arena)
{
    struct plumb_kept *copy = arena_alloc(arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *kept;
    for (int i = 0; i < PLUMB_STATISTICS; i++)
        copy->finite[i].text = NULL;
    copy->deviation.text = NULL;
    copy->crc32 = copy_text(arena, kept->crc32);
    copy->hash = copy_text(arena, kept->hash);
    struct plumb_sketch *sketch = kept->sketch ? arena_alloc(arena, sizeof *sketch) : NULL;
    if (sketch)
        *sketch = *kept->sketch;
    copy->sketch = sketch;
    const bool whole = !copy->crc32 == !kept->crc32 && !copy->hash == !kept->hash;
    return whole && !sketch == !kept->sketch ? copy : NULL;
}

/* A copy of what belongs to the listing; NULL when out of memory. */
static const struct plumb_recorded *copy_recorded(const struct plumb_recorded *recorded,
                                                  struct arena *arena)
{
    struct plumb_recorded *copy = arena_alloc(arena, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = (struct plumb_recorded){
        .tensor = true,
        .exact = recorded->exact,
        .dtype = copy_text(arena, recorded->dtype),
        .shape = copy_text(arena, recorded->shape),
        .checksum = copy_text(arena, recorded->checksum),
    };
    bool ok = copy->dtype && copy->shape;
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    struct plumb_recorded_rest *rest = kept ? recorded_rest(copy, arena) : NULL;
    if (rest)
        rest->kept = copy_kept(kept, arena);
    ok = ok && !kept == !plumb_recorded_kept(copy);
    for (unsigned i = 0; i < PLUMB_STATISTICS; i++) {
        struct plumb_value value = plumb_recorded_statistic(recorded, i);
        const bool written = value.text;
        value.text = copy_text(arena, value.text);
        ok =
            ok && written == (value.text != NULL) && recorded_set_statistic(copy, i, &value, arena);
    }
    return ok ? copy : NULL;
}

static bool set_dims(struct ge_dims *dims, const struct plumb_record *record, struct arena *arena)
{
    uint64_t *dim = arena_array(arena, record->ndim, sizeof *dim);
    for (unsigned i = 0; dim && i < record->ndim; i++)
        dim[i] = (uint64_t)record->shape[i];
    *dims = (struct ge_dims){record->ndim, dim};
    return dim;
}

/* "input.3" or "output.3" */
static bool is_output(const struct plumb_record *record)
{
    return strncmp(record->name, "output.", 7) == 0;
}

static enum plumb_code take_records(struct ge_file *ge, const struct listing *listing,
                                    struct arena *arena)
{
    size_t count = listing->count;
    ge->inputs = arena_array(arena, count, sizeof *ge->inputs);
    ge->outputs = arena_array(arena, count, sizeof *ge->outputs);
    if (!ge->inputs || !ge->outputs)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct plumb_record *record = &listing->records[i];
        bool output = is_output(record);
        size_t *index = output ? &ge->output_count : &ge->input_count;
        struct ge_tensor *tensor = output ? &ge->outputs[*index] : &ge->inputs[*index];
        *tensor = (struct ge_tensor){.part = output ? GE_OUTPUT : GE_INPUT,
                                     .index = (unsigned)*index,
                                     .type = type_of(record->dtype),
                                     .format = GE_ND,
                                     .sub_format = 0};
        ++*index;
        if (!set_dims(&tensor->shape, record, arena))
            return PLUMB_E_NOMEM;
        tensor->original = tensor->shape;
        if (record->error) {
            struct plumb_error *error = arena_alloc(arena, sizeof *error);
            if (!error)
                return PLUMB_E_NOMEM;
            *error = *record->error;
            tensor->error = error;
        } else if (!(tensor->recorded = copy_recorded(record->recorded, arena))) {
            return PLUMB_E_NOMEM;
        }
    }
    return PLUMB_OK;
}

bool ge_is_condensed(const char *path)
{
    return condensed_original(path, NULL, 0);
}

enum plumb_code ge_open_condensed(struct ge_file *ge, const char *path, struct arena *arena,
                                  struct plumb_error *err)
{
    struct arena own = {0};
    struct listing listing = {.arena = &own};
    struct format_file found;
    *ge = (struct ge_file){.path = path, .version = "", .op_name = ""};
    enum plumb_code code = format_list_file(&listing, path, &found, err);
    for (size_t i = 0; i < listing.count && !code; i++)
        if (!listing.records[i].absent)
            code = plumb_fail(err, PLUMB_E_FORMAT,
                              "neither a GE dump file nor what was condensed of one");
    if (!code && take_records(ge, &listing, arena))
        code = plumb_no_memory(err);
    if (code)
        plumb_error_in_file(err, path);
    arena_free(&own);
    return code;
}
