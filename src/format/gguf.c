/* GGUF files, versions 2 and 3: the models of llama.cpp.
 *
 *     magic | version | counts | key-value pairs | tensor infos | padding | bytes of all tensors
 *
 * Key-value pairs are stepped over, but for the alignment. Quantised tensors are listed and
 * cannot be compared. */
#include "base/map.h"
#include "format/bytes.h"
#include "format/format.h"

#include <inttypes.h>
#include <string.h>

enum {
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20,
    MAX_LEVELS = 8,     /* of arrays in arrays */
    LEAST_PAIR = 13,    /* bytes: an empty key, its type, a value */
    LEAST_INFO = 24,    /* bytes: an empty name, dimensions, type, offset */
    LEAST_STRING = 8,   /* bytes: its length */
    LEAST_ARRAY = 4 + 8 /* bytes: type and count */
};

static const uint8_t magic[] = {'G', 'G', 'U', 'F'};

enum value_type { VALUE_U32 = 4, VALUE_STRING = 8, VALUE_ARRAY = 9, VALUE_TYPES = 13 };

/* Bytes of the types that have a fixed size. */
static const uint8_t value_bytes[VALUE_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Types of tensors, by number. Those with a name only are quantised. */
static const struct {
    const char *name;
    bool plain;
    enum plumb_dtype dtype;
} tensor_types[] = {
    [0] = {"F32", true, PLUMB_F32},
    [1] = {"F16", true, PLUMB_F16},
    [2] = {.name = "Q4_0"},
    [3] = {.name = "Q4_1"},
    [4] = {.name = "Q4_2"},
    [5] = {.name = "Q4_3"},
    [6] = {.name = "Q5_0"},
    [7] = {.name = "Q5_1"},
    [8] = {.name = "Q8_0"},
    [9] = {.name = "Q8_1"},
    [10] = {.name = "Q2_K"},
    [11] = {.name = "Q3_K"},
    [12] = {.name = "Q4_K"},
    [13] = {.name = "Q5_K"},
    [14] = {.name = "Q6_K"},
    [15] = {.name = "Q8_K"},
    [16] = {.name = "IQ2_XXS"},
    [17] = {.name = "IQ2_XS"},
    [18] = {.name = "IQ3_XXS"},
    [19] = {.name = "IQ1_S"},
    [20] = {.name = "IQ4_NL"},
    [21] = {.name = "IQ3_S"},
    [22] = {.name = "IQ2_S"},
    [23] = {.name = "IQ4_XS"},
    [24] = {"I8", true, PLUMB_I8},
    [25] = {"I16", true, PLUMB_I16},
    [26] = {"I32", true, PLUMB_I32},
    [27] = {"I64", true, PLUMB_I64},
    [28] = {"F64", true, PLUMB_F64},
    [29] = {.name = "IQ1_M"},
    [30] = {"BF16", true, PLUMB_BF16},
    [31] = {.name = "Q4_0_4_4"},
    [32] = {.name = "Q4_0_4_8"},
    [33] = {.name = "Q4_0_8_8"},
    [34] = {.name = "TQ1_0"},
    [35] = {.name = "TQ2_0"},
    [36] = {.name = "IQ4_NL_4_4"},
    [37] = {.name = "IQ4_NL_4_8"},
    [38] = {.name = "IQ4_NL_8_8"},
    [39] = {.name = "MXFP4"},
};
enum { TENSOR_TYPES = sizeof tensor_types / sizeof *tensor_types };

struct reader {
    struct listing *out;
    const uint8_t *data;
    uint64_t size, at;
    struct plumb_error *err;
    uint64_t pairs, tensors; /* how many the file promises */
    uint64_t alignment, data_offset;
    struct map names;
};

/* What the file says about one tensor. */
struct info {
    const char *name; /* not NUL-terminated */
    size_t length;
    uint64_t where; /* byte position */
    unsigned ndim;
    uint64_t dim[PLUMB_MAX_RANK]; /* the fastest first */
    uint32_t type;
    uint64_t offset;
};

static bool probe(const uint8_t *head, size_t n)
{
    return n >= sizeof magic && memcmp(head, magic, sizeof magic) == 0;
}

static enum plumb_code damaged(const struct reader *r, const char *what)
{
    return plumb_fail_at(r->err, PLUMB_E_FORMAT, r->at, "the header is damaged: %s", what);
}

static enum plumb_code cut_short(const struct reader *r)
{
    return plumb_fail_at(r->err, PLUMB_E_FORMAT, r->size, "the header is cut short");
}

static uint64_t left(const struct reader *r)
{
    return r->size - r->at;
}

static enum plumb_code skip(struct reader *r, uint64_t bytes)
{
    if (bytes > left(r))
        return cut_short(r);
    r->at += bytes;
    return PLUMB_OK;
}

static enum plumb_code take_u32(struct reader *r, uint32_t *value)
{
    *value = 0;
    if (left(r) < 4)
        return cut_short(r);
    *value = bytes_le32(r->data + r->at);
    r->at += 4;
    return PLUMB_OK;
}

static enum plumb_code take_u64(struct reader *r, uint64_t *value)
{
    *value = 0;
    if (left(r) < 8)
        return cut_short(r);
    *value = bytes_le64(r->data + r->at);
    r->at += 8;
    return PLUMB_OK;
}

static enum plumb_code take_string(struct reader *r, const char **text, size_t *length)
{
    uint64_t bytes;
    *text = NULL;
    *length = 0;
    enum plumb_code code = take_u64(r, &bytes);
    if (code)
        return code;
    if (bytes > left(r))
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, r->at - 8,
                             "a string of %" PRIu64 " bytes, but only %" PRIu64 " follow", bytes,
                             left(r));
    *text = (const char *)r->data + r->at;
    *length = (size_t)bytes;
    r->at += bytes;
    return PLUMB_OK;
}

/* How many of something follow, each of which takes at least that many bytes. */
static enum plumb_code take_count(struct reader *r, uint64_t least, const char *what,
                                  uint64_t *count)
{
    enum plumb_code code = take_u64(r, count);
    if (code)
        return code;
    if (*count > left(r) / least)
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, r->at - 8,
                             "%" PRIu64 " %s cannot be in the %" PRIu64 " bytes that follow",
                             *count, what, left(r));
    return PLUMB_OK;
}

/* -- Key-value pairs -------------------------------------------------------------------------- */

static enum plumb_code skip_value(struct reader *r, uint32_t type, unsigned level);

static enum plumb_code skip_array(struct reader *r, unsigned level)
{
    uint32_t type;
    uint64_t count;
    enum plumb_code code = take_u32(r, &type);
    if (code)
        return code;
    if (type >= VALUE_TYPES)
        return damaged(r, "an array of an unknown type");
    const bool fixed = value_bytes[type];
    const uint64_t least = fixed                  ? value_bytes[type]
                           : type == VALUE_STRING ? LEAST_STRING
                                                  : LEAST_ARRAY;
    code = take_count(r, least, "elements of an array", &count);
    if (!code && fixed)
        return skip(r, count * least);
    for (uint64_t i = 0; i < count && !code; i++)
        code = skip_value(r, type, level);
    return code;
}

static enum plumb_code skip_value(struct reader *r, uint32_t type, unsigned level)
{
    const char *text;
    size_t length;
    if (type >= VALUE_TYPES)
        return damaged(r, "a value of an unknown type");
    if (type == VALUE_STRING)
        return take_string(r, &text, &length);
    if (type != VALUE_ARRAY)
        return skip(r, value_bytes[type]);
    if (level == MAX_LEVELS)
        return damaged(r, "arrays are nested too deeply");
    return skip_array(r, level + 1);
}

static enum plumb_code take_alignment(struct reader *r, uint32_t type)
{
    uint32_t value;
    if (type != VALUE_U32)
        return damaged(r, "general.alignment is no 32-bit number");
    enum plumb_code code = take_u32(r, &value);
    if (code)
        return code;
    if (!value || value % 8 || value > MAX_ALIGNMENT)
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, r->at - 4,
                             "an alignment of %" PRIu32
                             " bytes, which is no multiple of 8 up to %d",
                             value, MAX_ALIGNMENT);
    r->alignment = value;
    return PLUMB_OK;
}

static enum plumb_code read_pairs(struct reader *r)
{
    static const char key_of_alignment[] = "general.alignment";
    enum plumb_code code = PLUMB_OK;
    for (uint64_t i = 0; i < r->pairs && !code; i++) {
        const char *key;
        size_t length;
        uint32_t type = 0;
        code = take_string(r, &key, &length);
        if (!code)
            code = take_u32(r, &type);
        if (code)
            return code;
        if (length == sizeof key_of_alignment - 1 && !memcmp(key, key_of_alignment, length))
            code = take_alignment(r, type);
        else
            code = skip_value(r, type, 0);
    }
    return code;
}

/* -- Tensors ---------------------------------------------------------------------------------- */

static enum plumb_code read_info(struct reader *r, struct info *info)
{
    uint32_t ndim = 0;
    info->where = r->at;
    enum plumb_code code = take_string(r, &info->name, &info->length);
    if (!code && memchr(info->name, '\0', info->length))
        code = damaged(r, "a name with a zero byte");
    if (!code)
        code = take_u32(r, &ndim);
    if (!code && ndim > PLUMB_MAX_RANK)
        code = damaged(r, "a tensor of more dimensions than plumb knows");
    if (code)
        return code;
    info->ndim = ndim;
    for (unsigned i = 0; i < ndim && !code; i++)
        code = take_u64(r, &info->dim[i]);
    if (!code)
        code = take_u32(r, &info->type);
    if (!code)
        code = take_u64(r, &info->offset);
    return code;
}

/* Where the bytes of tensors begin is known only behind the last info. */
static enum plumb_code find_data(struct reader *r)
{
    const uint64_t start = r->at;
    enum plumb_code code = PLUMB_OK;
    for (uint64_t i = 0; i < r->tensors && !code; i++) {
        struct info info;
        code = read_info(r, &info);
    }
    r->data_offset = (r->at + r->alignment - 1) / r->alignment * r->alignment;
    r->at = start;
    return code;
}

static enum plumb_code check_type(const struct info *info, const char *name,
                                  struct plumb_error *why)
{
    if (info->type >= TENSOR_TYPES)
        return plumb_fail_at(why, PLUMB_E_UNSUPPORTED, info->where,
                             "tensor %s is of type %" PRIu32 ", which plumb does not know", name,
                             info->type);
    if (!tensor_types[info->type].plain)
        return plumb_fail_at(why, PLUMB_E_UNSUPPORTED, info->where,
                             "tensor %s is quantised (%s), and not comparable; convert the model to"
                             " F32 or F16",
                             name, tensor_types[info->type].name);
    return PLUMB_OK;
}

/* Can this tensor be read? Fills *why otherwise. */
static enum plumb_code check_info(struct reader *r, struct plumb_record *record,
                                  const struct info *info, struct plumb_error *why)
{
    int64_t shape[PLUMB_MAX_RANK];
    enum plumb_code code = check_type(info, record->name, why);
    if (code)
        return code;
    for (unsigned i = 0; i < info->ndim; i++) {
        if (info->dim[i] > INT64_MAX)
            return plumb_fail_at(why, PLUMB_E_FORMAT, info->where,
                                 "tensor %s has a dimension of %" PRIu64, record->name,
                                 info->dim[i]);
        shape[info->ndim - 1 - i] = (int64_t)info->dim[i];
    }
    const enum plumb_dtype dtype = tensor_types[info->type].dtype;
    code = listing_set_shape(r->out, record, dtype, info->ndim, shape, why);
    if (code)
        return code;
    uint64_t bytes = 0;
    plumb_dtype_bytes(dtype, record->count, &bytes);
    if (info->offset % r->alignment)
        return plumb_fail_at(why, PLUMB_E_FORMAT, info->where,
                             "tensor %s begins at byte %" PRIu64
                             " of the data, which is no multiple of the alignment %" PRIu64,
                             record->name, info->offset, r->alignment);
    const uint64_t room = r->size > r->data_offset ? r->size - r->data_offset : 0;
    if (info->offset > room || bytes > room - info->offset)
        return plumb_fail_at(why, PLUMB_E_FORMAT, info->where,
                             "tensor %s needs %" PRIu64 " bytes at %" PRIu64
                             " of the data, which has %" PRIu64 ": the file is cut short",
                             record->name, bytes, info->offset, room);
    if (!bytes)
        return PLUMB_OK;
    record->offset = r->data_offset + info->offset;
    record->bytes = bytes;
    return PLUMB_OK;
}

static enum plumb_code add_tensor(struct reader *r, const struct info *info)
{
    bool added;
    if (!map_put(&r->names, info->name, info->length, &added))
        return plumb_no_memory(r->err);
    struct plumb_record *record = listing_add(r->out, info->name, info->length);
    if (!record)
        return plumb_no_memory(r->err);
    if (!added)
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, info->where, "a second tensor is called %s",
                             record->name);
    struct plumb_error why;
    enum plumb_code code = check_info(r, record, info, &why);
    if (code == PLUMB_E_NOMEM || (code && listing_fail(r->out, record, &why)))
        return plumb_no_memory(r->err);
    return PLUMB_OK;
}

static enum plumb_code read_tensors(struct reader *r)
{
    const size_t first = r->out->count;
    enum plumb_code code = find_data(r);
    for (uint64_t i = 0; i < r->tensors && !code; i++) {
        struct info info;
        code = read_info(r, &info);
        if (!code)
            code = add_tensor(r, &info);
    }
    return code ? code : listing_refuse_overlaps(r->out, first, r->err);
}

static enum plumb_code read_version(struct reader *r)
{
    uint32_t version = 0;
    enum plumb_code code = skip(r, sizeof magic);
    if (!code)
        code = take_u32(r, &version);
    if (code)
        return code;
    if (version && !(version & 0xffffff))
        return plumb_fail_at(r->err, PLUMB_E_UNSUPPORTED, sizeof magic,
                             "a big-endian GGUF file; plumb reads little-endian ones");
    if (version < 2 || version > 3)
        return plumb_fail_at(r->err, PLUMB_E_UNSUPPORTED, sizeof magic,
                             "version %" PRIu32 " of the GGUF format; plumb reads 2 and 3",
                             version);
    return PLUMB_OK;
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    struct reader r = {.out = out,
                       .data = file->data,
                       .size = file->size,
                       .err = err,
                       .alignment = DEFAULT_ALIGNMENT};
    enum plumb_code code = read_version(&r);
    if (!code)
        code = take_count(&r, LEAST_INFO, "tensors", &r.tensors);
    if (!code)
        code = take_count(&r, LEAST_PAIR, "key-value pairs", &r.pairs);
    if (!code)
        code = read_pairs(&r);
    if (!code)
        code = read_tensors(&r);
    map_free(&r.names);
    return code;
}

const struct format format_gguf = {
    .name = "gguf", .endings = ".gguf", .weights = true, .probe = probe, .list = list};
