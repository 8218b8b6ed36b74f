/* The calls by which torch rebuilds tensors. */
#include "format/pt_tensor.h"

#include <string.h>

enum rebuild {
    REBUILD_NONE,
    REBUILD_TENSOR,    /* storage, offset, size, stride [, requires_grad, hooks [, dtype]]
                        * [, metadata] */
    REBUILD_PARAMETER, /* tensor, requires_grad, hooks [, state] */
    REBUILD_TYPE,      /* function, class, arguments, state */
    REBUILD_OTHER,     /* a tensor that plumb does not read */
};

static const struct {
    const char *name;
    enum rebuild rebuild;
} rebuilders[] = {
    {"torch._utils._rebuild_tensor", REBUILD_TENSOR},
    {"torch._utils._rebuild_tensor_v2", REBUILD_TENSOR},
    {"torch._utils._rebuild_tensor_v3", REBUILD_TENSOR},
    {"torch._utils._rebuild_parameter", REBUILD_PARAMETER},
    {"torch._utils._rebuild_parameter_with_state", REBUILD_PARAMETER},
    {"torch._tensor._rebuild_from_type", REBUILD_TYPE},
    {"torch._tensor._rebuild_from_type_v2", REBUILD_TYPE},
    {"torch.storage._load_from_bytes", REBUILD_OTHER},
    {"numpy.core.multiarray._reconstruct", REBUILD_OTHER},
    {"numpy._core.multiarray._reconstruct", REBUILD_OTHER},
};

static const struct {
    const char *name;
    enum plumb_dtype dtype;
} storages[] = {
    {"FloatStorage", PLUMB_F32},        {"DoubleStorage", PLUMB_F64},
    {"HalfStorage", PLUMB_F16},         {"BFloat16Storage", PLUMB_BF16},
    {"LongStorage", PLUMB_I64},         {"IntStorage", PLUMB_I32},
    {"ShortStorage", PLUMB_I16},        {"CharStorage", PLUMB_I8},
    {"ByteStorage", PLUMB_U8},          {"BoolStorage", PLUMB_BOOL},
    {"ComplexFloatStorage", PLUMB_C64}, {"ComplexDoubleStorage", PLUMB_C128},
    {"UntypedStorage", PLUMB_U8},       {"_UntypedStorage", PLUMB_U8},
};

/* A chain of wrappers (a Parameter of a subclass of a tensor) is this deep at most. */
enum { MAX_WRAPPERS = 8 };

static enum rebuild rebuild_of(const struct pickle_value *callable)
{
    static const char any[] = "torch._utils._rebuild_";
    if (callable->kind != PICKLE_GLOBAL)
        return REBUILD_NONE;
    for (size_t i = 0; i < sizeof rebuilders / sizeof *rebuilders; i++)
        if (strcmp(callable->global, rebuilders[i].name) == 0)
            return rebuilders[i].rebuild;
    return strncmp(callable->global, any, sizeof any - 1) == 0 ? REBUILD_OTHER : REBUILD_NONE;
}

static bool is_storage(const struct pickle_value *value)
{
    return value->kind == PICKLE_PERSISTENT && value->id->kind == PICKLE_TUPLE &&
           value->id->items.count && pickle_is_str(value->id->items.at[0], "storage");
}

bool pt_is_tensor(const struct pickle_value *value)
{
    if (value->kind == PICKLE_OBJECT)
        return rebuild_of(value->object->callable) != REBUILD_NONE;
    return is_storage(value);
}

static enum plumb_code malformed(const struct pickle_value *value, const char *what,
                                 struct plumb_error *err)
{
    return plumb_fail_at(err, PLUMB_E_FORMAT, value->offset,
                         "a tensor's %s is not what torch writes", what);
}

/* ("storage", type, key, location, count) */
static enum plumb_code read_storage(const struct pickle_value *value, struct pt_storage *out,
                                    struct plumb_error *err)
{
    if (!is_storage(value) || value->id->items.count < 5)
        return malformed(value, "storage", err);
    struct pickle_value **at = value->id->items.at;
    const struct pickle_value *type = at[1], *key = at[2], *count = at[4];
    if (type->kind != PICKLE_GLOBAL || key->kind != PICKLE_STR || count->kind != PICKLE_INT ||
        count->integer < 0)
        return malformed(value, "storage", err);

    const char *name = strrchr(type->global, '.') + 1;
    out->dtype = PLUMB_DTYPE_COUNT;
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++)
        if (strncmp(type->global, "torch.", 6) == 0 && strcmp(name, storages[i].name) == 0)
            out->dtype = storages[i].dtype;
    if (out->dtype == PLUMB_DTYPE_COUNT)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, type->offset,
                             "storages of the type %.200s are not read", type->global);
    out->key = key->text.bytes;
    out->key_length = key->text.size;
    out->count = (uint64_t)count->integer;
    return PLUMB_OK;
}

/* A tuple or list of integers, bare or wrapped in torch.Size. */
static enum plumb_code read_sizes(const struct pickle_value *value, int64_t *out, unsigned *count,
                                  struct plumb_error *err)
{
    if (value->kind == PICKLE_OBJECT && pickle_is_global(value->object->callable, "torch.Size") &&
        value->object->args->items.count == 1)
        value = value->object->args->items.at[0];
    if (value->kind != PICKLE_TUPLE && value->kind != PICKLE_LIST)
        return malformed(value, "shape", err);
    if (value->items.count > PLUMB_MAX_RANK)
        return plumb_fail_at(err, PLUMB_E_FORMAT, value->offset,
                             "%u dimensions, more than the %d plumb can hold", value->items.count,
                             PLUMB_MAX_RANK);
    for (uint32_t i = 0; i < value->items.count; i++) {
        if (value->items.at[i]->kind != PICKLE_INT)
            return malformed(value->items.at[i], "shape", err);
        out[i] = value->items.at[i]->integer;
    }
    *count = value->items.count;
    return PLUMB_OK;
}

static enum plumb_code read_dtype(const struct pickle_value *value, enum plumb_dtype *dtype,
                                  struct plumb_error *err)
{
    if (value->kind != PICKLE_GLOBAL || strncmp(value->global, "torch.", 6) != 0)
        return malformed(value, "dtype", err);
    *dtype = plumb_dtype_from_name(value->global);
    if (*dtype == PLUMB_DTYPE_COUNT)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, value->offset,
                             "tensors of the type %.200s are not read", value->global);
    return PLUMB_OK;
}

/* Marks by which torch puts off work: the storage does not hold the tensor's values. */
static enum plumb_code check_metadata(const struct pickle_value *metadata, struct plumb_error *err)
{
    if (metadata->kind != PICKLE_DICT)
        return PLUMB_OK;
    for (uint32_t i = 0; i + 1 < metadata->items.count; i += 2) {
        const struct pickle_value *key = metadata->items.at[i], *on = metadata->items.at[i + 1];
        bool conj = pickle_is_str(key, "conj");
        if ((conj || pickle_is_str(key, "neg")) && on->kind == PICKLE_BOOL && on->integer)
            return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, key->offset,
                                 "%s views are not read: save what %s() gives",
                                 conj ? "conjugate" : "negative",
                                 conj ? "resolve_conj" : "resolve_neg");
    }
    return PLUMB_OK;
}

static enum plumb_code read_call(const struct pickle_value *callable,
                                 const struct pickle_value *args, struct pt_tensor *out,
                                 struct plumb_error *err)
{
    struct pickle_value **at = args->items.at;
    bool typed = !pickle_is_global(callable, "torch._utils._rebuild_tensor_v3");
    if (args->items.count < (typed ? 4 : 7))
        return malformed(args, "list of arguments", err);
    enum plumb_code code = read_storage(at[0], &out->storage, err);
    if (code)
        return code;
    out->dtype = out->storage.dtype;
    if (!typed) {
        code = read_dtype(at[6], &out->dtype, err);
        if (code)
            return code;
    }
    if (at[1]->kind != PICKLE_INT || at[1]->integer < 0)
        return malformed(at[1], "offset", err);
    out->start = (uint64_t)at[1]->integer;
    unsigned strides = 0;
    code = read_sizes(at[2], out->shape, &out->ndim, err);
    if (!code)
        code = read_sizes(at[3], out->stride, &strides, err);
    if (!code && strides != out->ndim)
        code = malformed(at[3], "number of strides", err);
    if (args->items.count > 4 && at[4]->kind == PICKLE_BOOL && out->requires_grad < 0)
        out->requires_grad = (int8_t)at[4]->integer;
    uint32_t metadata = typed ? 6 : 7;
    if (!code && args->items.count > metadata)
        code = check_metadata(at[metadata], err);
    return code;
}

static enum plumb_code read_bare_storage(const struct pickle_value *value, struct pt_tensor *out,
                                         struct plumb_error *err)
{
    enum plumb_code code = read_storage(value, &out->storage, err);
    if (code)
        return code;
    out->dtype = out->storage.dtype;
    out->start = 0;
    out->ndim = 1;
    out->shape[0] = (int64_t)out->storage.count;
    out->stride[0] = 1;
    return PLUMB_OK;
}

enum plumb_code pt_tensor_read(const struct pickle_value *value, struct pt_tensor *out,
                               struct plumb_error *err)
{
    out->requires_grad = -1;
    if (value->kind == PICKLE_PERSISTENT)
        return read_bare_storage(value, out, err);
    if (value->kind != PICKLE_OBJECT)
        return malformed(value, "data", err);

    const struct pickle_value *callable = value->object->callable, *args = value->object->args;
    for (int depth = 0; depth < MAX_WRAPPERS; depth++) {
        struct pickle_value **at = args->items.at;
        switch (rebuild_of(callable)) {
        case REBUILD_TENSOR:
            return read_call(callable, args, out, err);
        case REBUILD_PARAMETER:
            if (args->items.count < 2 || at[0]->kind != PICKLE_OBJECT || at[1]->kind != PICKLE_BOOL)
                return malformed(args, "list of arguments", err);
            if (out->requires_grad < 0)
                out->requires_grad = (int8_t)at[1]->integer;
            callable = at[0]->object->callable;
            args = at[0]->object->args;
            break;
        case REBUILD_TYPE:
            if (args->items.count < 3 || at[2]->kind != PICKLE_TUPLE)
                return malformed(args, "list of arguments", err);
            callable = at[0];
            args = at[2];
            break;
        case REBUILD_OTHER:
            return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, callable->offset,
                                 "what %.200s makes is not read: save it as a dense tensor",
                                 callable->global);
        case REBUILD_NONE:
            return malformed(callable, "function", err);
        }
    }
    return malformed(value, "nesting", err);
}

struct pickle_value *pt_tensor_attributes(const struct pickle_value *value)
{
    if (value->kind != PICKLE_OBJECT)
        return NULL;
    const struct pickle_value *args = value->object->args;
    enum rebuild rebuild = rebuild_of(value->object->callable);
    struct pickle_value *state = value->object->state;
    if ((rebuild == REBUILD_PARAMETER || rebuild == REBUILD_TYPE) && args->items.count > 3)
        state = args->items.at[3];
    return state && state->kind == PICKLE_DICT ? state : NULL;
}
