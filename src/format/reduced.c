/* NAME_min_max.npy and NAME_min_max.npz: what the script of the TorchAir guide makes of a dump to
 * save space. A .npy holds [min, max] of what NAME.npy held. A .npz holds, of a GE file NAME, the
 * arrays "inputs" and "outputs" with a row [min, max] for each tensor. */
#include "format/condensed.h"
#include "format/recorded.h"

#include "base/mapped.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROWS = 1 << 16 };

/* Makes the record one of a tensor of which nothing but type and range is known. */
static bool set_range(struct listing *out, struct plumb_record *record, enum plumb_dtype dtype,
                      const char *format, const double range[2])
{
    struct plumb_recorded *recorded = arena_alloc(out->arena, sizeof *recorded);
    struct condensed_note *note = arena_alloc(out->arena, sizeof *note);
    if (!recorded || !note)
        return false;
    *note = (struct condensed_note){.format = format};
    *recorded = (struct plumb_recorded){.tensor = true,
                                        .exact = true,
                                        .shape = "unknown",
                                        .type = "torch.Tensor",
                                        .dtype = plumb_dtype_info(dtype)->name};
    *record = (struct plumb_record){.name = record->name,
                                    .path = record->path,
                                    .step = record->step,
                                    .rank = record->rank,
                                    .requires_grad = -1,
                                    .dtype = dtype,
                                    .detail = note,
                                    .recorded = recorded,
                                    .absent = true};
    struct plumb_value ends[2];
    return condensed_number(out->arena, &ends[0], range[0]) &&
           condensed_number(out->arena, &ends[1], range[1]) &&
           recorded_set_statistic(recorded, PLUMB_STATISTIC_MIN, &ends[0], out->arena) &&
           recorded_set_statistic(recorded, PLUMB_STATISTIC_MAX, &ends[1], out->arena);
}

/* [min, max], or n rows of it, or nothing at all. */
static bool is_ranges(const struct plumb_record *record, bool rows)
{
    if (record->error || plumb_dtype_parts(record->dtype) != 1)
        return false;
    if (rows && record->count == 0)
        return true;
    return record->ndim == (rows ? 2u : 1u) && record->shape[rows ? 1 : 0] == 2 &&
           record->count / 2 <= MAX_ROWS;
}

static enum plumb_code read_ranges(const struct plumb_record *record, const struct format *format,
                                   const struct plumb_file *file, double *values,
                                   struct plumb_error *err)
{
    struct plumb_payload payload;
    struct plumb_file_guard guard;
    if (!record->count)
        return PLUMB_OK;
    enum plumb_code code =
        format_load(format, record, file->file_size, file->mtime_ns, NULL, &payload, err);
    if (code)
        return code;
    plumb_file_guard_enter(&guard, &payload.file);
    plumb_tensor_to_f64(&payload.tensor, 0, (size_t)payload.tensor.count, values);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    plumb_payload_release(&payload);
    return code;
}

static enum plumb_code list_one(struct listing *out, size_t first, const struct format *format,
                                const struct plumb_file *file, struct plumb_error *err)
{
    static const char ending[] = "_min_max";
    struct plumb_record *record = &out->records[first];
    double range[2];
    size_t length = strlen(record->name), tail = sizeof ending - 1;
    enum plumb_code code = read_ranges(record, format, file, range, err);
    if (code)
        return code;
    if (length > tail)
        record->name = arena_copy(out->arena, record->name, length - tail);
    return record->name && set_range(out, record, record->dtype, format->name, range)
               ? PLUMB_OK
               : plumb_no_memory(err);
}

/* Appends a record a row of the array, called input.0, input.1, ... */
static enum plumb_code list_rows(struct listing *out, const struct plumb_record *array,
                                 const struct format *format, const struct plumb_file *file,
                                 struct plumb_error *err)
{
    size_t rows = (size_t)array->count / 2;
    double *values = arena_array(out->arena, rows * 2, sizeof *values);
    if (!values)
        return plumb_no_memory(err);
    enum plumb_code code = read_ranges(array, format, file, values, err);
    for (size_t i = 0; i < rows && !code; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s.%zu", (int)strlen(array->name) - 1, array->name, i);
        struct plumb_record *record = listing_add(out, name, strlen(name));
        if (!record || !set_range(out, record, array->dtype, "ge", &values[2 * i]))
            code = plumb_no_memory(err);
    }
    return code;
}

static enum plumb_code list_many(struct listing *out, size_t first, const struct format *format,
                                 const struct plumb_file *file, struct plumb_error *err)
{
    struct plumb_record arrays[2];
    size_t count = out->count - first;
    for (size_t i = 0; i < count; i++) {
        if (count > 2 || !is_ranges(&out->records[first + i], true) ||
            (strcmp(out->records[first + i].name, "inputs") != 0 &&
             strcmp(out->records[first + i].name, "outputs") != 0))
            return PLUMB_OK;
        arrays[i] = out->records[first + i];
    }
    out->count = first;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = list_rows(out, &arrays[i], format, file, err);
    return code;
}

enum plumb_code condensed_list_reduced(struct listing *out, size_t first,
                                       const struct format *format, const struct plumb_file *file,
                                       struct plumb_error *err)
{
    if (format == &format_npz)
        return list_many(out, first, format, file, err);
    if (format == &format_npy && out->count == first + 1 && is_ranges(&out->records[first], false))
        return list_one(out, first, format, file, err);
    return PLUMB_OK;
}
