/* Loading the tensors of a unit. */
#include "task/blame/pieces.h"

#include "exec/values/tensor_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum plumb_code loader_take(struct loader *loader, const struct plumb_run *run, size_t record,
                            const struct plumb_tensor **out, struct plumb_error *err)
{
    const struct plumb_record *from = plumb_run_record(run, record);
    const uint64_t bits = from->dtype < PLUMB_DTYPE_COUNT ? plumb_dtype_info(from->dtype)->bits : 0;
    const uint64_t bytes =
        from->count > UINT64_MAX / 8 / (bits ? bits : 1) ? UINT64_MAX : from->count * bits / 8;
    struct tensor_file file = {0};
    struct plumb_tensor *tensor = arena_alloc(&loader->arena, sizeof *tensor);
    void *data;
    if (!tensor)
        return plumb_no_memory(err);
    if (!from->absent && !from->error && bytes > loader->left)
        return plumb_fail(err, PLUMB_E_NOMEM, "its tensors take more memory than there is");
    enum plumb_code code = plumb_run_load(run, record, &file.payload, err);
    if (code)
        return code;
    code = tensor_file_copy(&file, &loader->arena, tensor, &data, err);
    plumb_payload_release(&file.payload);
    loader->left -= bytes < loader->left ? bytes : loader->left;
    *out = tensor;
    return code;
}

/* What is no tensor, as far as modules take such things. */
static bool take_plain(const struct plumb_recorded *recorded, struct plumb_arg *out)
{
    const char *type = recorded->type, *value = recorded->value;
    char *end = NULL;
    *out = (struct plumb_arg){.kind = PLUMB_ARG_NONE};
    if (!type || !value)
        return true;
    if (strcmp(type, "bool") == 0) {
        out->kind = PLUMB_ARG_BOOL;
        out->integer = strcmp(value, "True") == 0;
    } else if (strcmp(type, "int") == 0) {
        out->kind = PLUMB_ARG_INT;
        out->integer = strtoll(value, &end, 10);
    } else {
        return false;
    }
    return !end || !*end;
}

static enum plumb_code take_piece(struct loader *loader, const struct piece *piece,
                                  struct named *out, struct plumb_error *err)
{
    const struct plumb_record *record = plumb_run_record(loader->run, piece->record);
    *out = (struct named){.name = piece->place};
    if (record->recorded && !record->recorded->tensor) {
        if (!take_plain(record->recorded, &out->arg))
            loader->refused = "an argument of it is neither a tensor nor a whole number";
        return PLUMB_OK;
    }
    if (record->recorded && record->recorded->spread) {
        loader->refused = "tensors of it are spread over processes, and one process has a part";
        return PLUMB_OK;
    }
    if (record->absent) {
        loader->refused = "its tensors were not recorded";
        return PLUMB_OK;
    }
    out->arg.kind = PLUMB_ARG_TENSOR;
    return loader_take(loader, loader->run, piece->record, &out->arg.tensor, err);
}

enum plumb_code list_take(struct loader *loader, const struct pieces *pieces, struct list *out,
                          struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (pieces->count > MAX_TENSORS - out->count)
        loader->refused = "it has too many tensors";
    for (size_t k = 0; k < pieces->count && !code && !loader->refused; k++) {
        code = take_piece(loader, &pieces->list[k], &out->items[out->count], err);
        out->count += !code;
    }
    return code;
}

const struct named *list_find(const struct list *list, const char *name, size_t length)
{
    for (size_t k = 0; k < list->count; k++)
        if (strlen(list->items[k].name) == length && memcmp(list->items[k].name, name, length) == 0)
            return &list->items[k];
    return NULL;
}

bool tensor_same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

double tensor_distance(const struct plumb_arg *reference, const struct plumb_tensor *got)
{
    enum { BLOCK = 1024 };
    double a[2 * BLOCK], b[2 * BLOCK], apart = 0, size = 0;
    if (reference->kind != PLUMB_ARG_TENSOR || !tensor_same_shape(reference->tensor, got))
        return INFINITY;
    const size_t parts = plumb_dtype_parts(got->dtype);
    if (parts != plumb_dtype_parts(reference->tensor->dtype))
        return INFINITY;
    for (uint64_t at = 0; at < got->count; at += BLOCK) {
        const size_t n = got->count - at < BLOCK ? (size_t)(got->count - at) : BLOCK;
        plumb_tensor_to_f64(reference->tensor, at, n, a);
        plumb_tensor_to_f64(got, at, n, b);
        for (size_t k = 0; k < n * parts; k++)
            if (isfinite(a[k]) && isfinite(b[k])) {
                apart += (a[k] - b[k]) * (a[k] - b[k]);
                size += a[k] * a[k];
            } else if (isfinite(b[k])) {
                return INFINITY;
            }
    }
    return apart == 0 ? 0 : size > 0 ? sqrt(apart / size) : INFINITY;
}
