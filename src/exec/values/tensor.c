/* One tensor of a call. */
#include "exec/values/parts.h"

#include <stdlib.h>
#include <string.h>

/* Puts the argument's position before the message. */
enum plumb_code maker_blame(struct plumb_error *err, const char *position, enum plumb_code code)
{
    if (!err)
        return code;
    struct plumb_error why = *err;
    plumb_fail_at(err, code, why.offset, "%.150s: %.350s", position, why.message);
    plumb_error_in_file(err, why.file);
    return code;
}

bool maker_api_is(const struct maker *m, const char *api)
{
    return strcmp(m->from->api, api) == 0;
}

/* Some devices take no int32 classes and no integer histogram; the values are the same. */
static enum plumb_dtype converted(const struct maker *m, enum plumb_dtype dtype, bool first)
{
    if (maker_api_is(m, "cross_entropy") && dtype == PLUMB_I32)
        return PLUMB_I64;
    if (maker_api_is(m, "histc") &&
        (dtype == PLUMB_I64 || (first && (dtype == PLUMB_I8 || dtype == PLUMB_I32))))
        return PLUMB_F32;
    return dtype;
}

static enum plumb_code allocate(struct maker *m, enum plumb_dtype dtype, unsigned rank,
                                const int64_t *shape, struct plumb_tensor *out, void **data)
{
    enum plumb_code code = plumb_tensor_init(out, dtype, rank, shape, m->err);
    if (code)
        return code;
    uint64_t bytes = plumb_tensor_bytes(out);
    if (bytes > m->bytes_left)
        return plumb_fail(m->err, PLUMB_E_NOMEM,
                          "a tensor of %llu bytes, where %llu are left of the third of a call's "
                          "memory that its arguments may take",
                          (unsigned long long)bytes, (unsigned long long)m->bytes_left);
    m->bytes_left -= bytes;
    *data = arena_alloc(m->arena, (size_t)bytes);
    out->data = *data;
    return *data ? PLUMB_OK : plumb_no_memory(m->err);
}

/* Operators that are defined for every number there is, in every argument. */
static bool takes_any_number(const char *api)
{
    static const char *const names[] = {
        "abs",   "add",   "ceil",    "eq",   "exp",     "floor",   "ge",   "gt",    "isfinite",
        "isinf", "isnan", "le",      "lt",   "maximum", "minimum", "mul",  "ne",    "neg",
        "relu",  "round", "sigmoid", "sign", "sqrt",    "sub",     "tanh", "trunc",
    };
    while (*api == '_')
        api++;
    size_t length = strlen(api);
    while (length && api[length - 1] == '_')
        length--;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], api, length) == 0)
            return true;
    return false;
}

static enum plumb_code fill(struct maker *m, const struct place *at, const struct case_tensor *info,
                            const struct plumb_tensor *out, void *data)
{
    const struct generate_options *options = m->options;
    uint64_t key = value_key(options->seed, m->from->name, at->position);
    bool complex = plumb_dtype_parts(out->dtype) == 2;
    value_recipe *recipe = m->profile->recipe;
    if (recipe && options->inputs != INPUTS_UNIFORM && !complex)
        recipe = NULL;
    else if (!recipe && options->mt && !complex)
        recipe = options->rng->recipe;
    if (recipe) {
        struct value_draws draws = {options->mt, key, 0};
        return recipe(info, &draws, out, data, m->err);
    }
    if (!out->count)
        return PLUMB_OK;
    struct fill job = {
        .dtype = out->dtype,
        .count = out->count,
        .row = out->rank ? (uint64_t)out->shape[out->rank - 1] : 1,
        .data = data,
        .key = key,
        .specials = !m->gradient && takes_any_number(m->from->api),
    };
    enum plumb_code code = values_limits(info, out->dtype, &job.limits, m->err);
    if (!code)
        fill_values(&job, options->inputs);
    return code;
}

static int compare_i32(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int compare_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Where the bags of embedding_bag start: numbers that ascend. */
static bool are_offsets(const struct maker *m, const struct place *at)
{
    return !m->profile->unsorted_offsets && maker_api_is(m, "embedding_bag") &&
           (strcmp(at->position, "forward.input.2") == 0 ||
            strcmp(at->position, "forward.kwargs.offsets") == 0);
}

static void sort_integers(const struct plumb_tensor *tensor, void *data)
{
    if (tensor->dtype == PLUMB_I32)
        qsort(data, (size_t)tensor->count, sizeof(int32_t), compare_i32);
    else if (tensor->dtype == PLUMB_I64)
        qsort(data, (size_t)tensor->count, sizeof(int64_t), compare_i64);
}

static enum plumb_code generate(struct maker *m, const struct place *at,
                                const struct case_tensor *recorded, struct plumb_tensor *out)
{
    if (recorded->dtype == PLUMB_DTYPE_COUNT)
        return plumb_fail(m->err, PLUMB_E_UNSUPPORTED, "\"%.60s\" is no type that plumb knows",
                          recorded->dtype_name);
    struct case_tensor info = *recorded;
    /* Classes that are left out are recorded as negative numbers, often -100. */
    bool classes = plumb_dtype_info(info.dtype)->kind == PLUMB_KIND_INT && info.max.number >= 0;
    if (maker_api_is(m, "cross_entropy") && at->second && info.min.number < 0 &&
        (classes || m->profile->any_classes))
        info.min = (struct case_limit){LIMIT_INT, 0, 0};
    void *data;
    enum plumb_code code =
        allocate(m, converted(m, info.dtype, at->first), info.rank, info.shape, out, &data);
    if (!code)
        code = fill(m, at, &info, out, data);
    if (!code && are_offsets(m, at))
        sort_integers(out, data);
    return code;
}

static enum plumb_code convert(struct maker *m, bool first, struct plumb_tensor *tensor)
{
    const struct plumb_tensor from = *tensor;
    enum plumb_dtype dtype = converted(m, from.dtype, first && !m->profile->any_file);
    if (dtype == from.dtype)
        return PLUMB_OK;
    void *data;
    enum plumb_code code = allocate(m, dtype, from.rank, from.shape, tensor, &data);
    for (uint64_t i = 0; !code && i < from.count; i++) {
        int64_t value = from.dtype == PLUMB_I8    ? ((const int8_t *)from.data)[i]
                        : from.dtype == PLUMB_I32 ? ((const int32_t *)from.data)[i]
                                                  : ((const int64_t *)from.data)[i];
        if (dtype == PLUMB_F32)
            ((float *)data)[i] = (float)value;
        else
            ((int64_t *)data)[i] = value;
    }
    return code;
}

static enum plumb_code load(struct maker *m, const struct place *at, const struct case_tensor *info,
                            struct plumb_tensor *out)
{
    enum plumb_code code =
        real_data_load(m->options->data_dir, info->data_name, m->bytes_left, m->arena, out, m->err);
    if (code)
        return code;
    m->bytes_left -= plumb_tensor_bytes(out);
    bool same = out->rank == info->rank &&
                memcmp(out->shape, info->shape, info->rank * sizeof *info->shape) == 0;
    if (!same && !m->profile->any_file) {
        char text[120];
        return plumb_fail(m->err, PLUMB_E_FORMAT,
                          "its data file %.200s holds a tensor of shape %s, not the recorded one",
                          info->data_name, plumb_shape_text(out, text, sizeof text));
    }
    if (out->dtype != info->dtype && !m->profile->any_file)
        return plumb_fail(m->err, PLUMB_E_FORMAT,
                          "its data file %.200s holds %s, but %s was recorded", info->data_name,
                          plumb_dtype_info(out->dtype)->name, info->dtype_name);
    return convert(m, at->first, out);
}

enum plumb_code maker_tensor(struct maker *m, const struct place *at,
                             const struct case_tensor *info, struct plumb_arg *out)
{
    const struct generate_options *options = m->options;
    struct plumb_tensor *tensor = arena_alloc(m->arena, sizeof *tensor);
    if (!tensor)
        return plumb_no_memory(m->err);
    enum plumb_code code;
    if (info->data_name && options->data_dir)
        code = load(m, at, info, tensor);
    else if (options->recorded_only)
        code = plumb_fail(m->err, PLUMB_E_UNSUPPORTED, "its values were not recorded");
    else if (info->data_name && m->profile->files_only)
        code = plumb_fail(m->err, PLUMB_E_FORMAT,
                          "it has a data file, but dump.json names no folder (dump_data_dir)");
    else
        code = generate(m, at, info, tensor);
    if (code)
        return maker_blame(m->err, at->position, code);
    if (m->profile->finish)
        m->profile->finish(m->from->api, tensor, (void *)tensor->data); /* ours, from the arena */
    enum plumb_kind kind = plumb_dtype_info(tensor->dtype)->kind;
    bool differentiable = kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX;
    *out = (struct plumb_arg){
        .kind = PLUMB_ARG_TENSOR,
        .tensor = tensor,
        .requires_grad = info->requires_grad && at->need_grad && differentiable,
    };
    return PLUMB_OK;
}

enum plumb_code maker_causal_mask(struct maker *m, const char *position, struct plumb_arg *out)
{
    static const int64_t shape[2] = {2048, 2048};
    struct plumb_tensor *tensor = arena_alloc(m->arena, sizeof *tensor);
    void *data;
    enum plumb_code code =
        tensor ? allocate(m, PLUMB_BOOL, 2, shape, tensor, &data) : plumb_no_memory(m->err);
    if (code)
        return maker_blame(m->err, position, code);
    for (size_t row = 0; row < 2048; row++)
        memset((uint8_t *)data + row * 2048 + row + 1, 1, 2047 - row);
    *out = (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = tensor};
    return PLUMB_OK;
}
