/* .safetensors files: a header of JSON, then the bytes of all tensors. */
#include "base/json.h"
#include "base/map.h"
#include "format/format.h"
#include "format/writer.h"

#include <inttypes.h>
#include <string.h>

/* The format's own limit; no model comes near it. */
enum { MAX_HEADER = 100000000, PREFIX = 8 };

static uint64_t header_length(const uint8_t *data)
{
    uint64_t length = 0;
    for (int i = 0; i < PREFIX; i++)
        length |= (uint64_t)data[i] << (8 * i);
    return length;
}

static bool probe(const uint8_t *head, size_t n)
{
    return n > PREFIX && head[PREFIX] == '{' && header_length(head) <= MAX_HEADER;
}

struct reader {
    struct listing *out;
    struct json json;
    struct plumb_error *err;
    uint64_t data_offset, data_size;
    struct map names;
};

/* What the header says about one tensor. */
struct entry {
    const char *name;
    size_t name_length;
    uint64_t at; /* byte position of the name */
    enum plumb_dtype dtype;
    const char *dtype_text;
    unsigned ndim;
    int64_t shape[PLUMB_MAX_RANK];
    int64_t offsets[2];
    bool has_dtype, has_shape, has_offsets;
};

/* The last event was not what the header needs here. */
static enum plumb_code unexpected(struct reader *r, const char *wanted)
{
    if (r->json.error)
        return json_fail(&r->json, PREFIX, r->err);
    return plumb_fail_at(r->err, PLUMB_E_FORMAT, PREFIX + r->json.start,
                         "the header is damaged: expected %s here", wanted);
}

static enum plumb_code read_text(struct reader *r, const char **text, size_t *length)
{
    *text = json_copy(&r->json, r->out->arena, length);
    if (!*text)
        return r->json.error ? json_fail(&r->json, PREFIX, r->err) : plumb_no_memory(r->err);
    if (memchr(*text, '\0', *length))
        return unexpected(r, "a name without a zero byte");
    return PLUMB_OK;
}

static enum plumb_code read_dtype(struct reader *r, struct entry *entry)
{
    size_t length;
    if (json_next(&r->json) != JSON_STRING)
        return unexpected(r, "the name of a type");
    enum plumb_code code = read_text(r, &entry->dtype_text, &length);
    if (code)
        return code;
    entry->dtype = PLUMB_DTYPE_COUNT;
    for (int i = 0; i < PLUMB_DTYPE_COUNT; i++) {
        const char *name = plumb_dtype_info((enum plumb_dtype)i)->safetensors;
        if (name && strcmp(name, entry->dtype_text) == 0)
            entry->dtype = (enum plumb_dtype)i;
    }
    entry->has_dtype = true;
    return PLUMB_OK;
}

/* An array of at most max sizes. */
static enum plumb_code read_sizes(struct reader *r, int64_t *sizes, unsigned max, unsigned *count)
{
    if (json_next(&r->json) != JSON_ARRAY)
        return unexpected(r, "an array of sizes");
    enum json_event event;
    *count = 0;
    while ((event = json_next(&r->json)) == JSON_NUMBER) {
        if (*count == max)
            return unexpected(r, "fewer numbers");
        if (!json_int64(&r->json, &sizes[*count]) || sizes[*count] < 0)
            return unexpected(r, "a whole number that is not negative");
        ++*count;
    }
    return event == JSON_ARRAY_END ? PLUMB_OK : unexpected(r, "a number");
}

static enum plumb_code read_entry(struct reader *r, struct entry *entry)
{
    if (json_next(&r->json) != JSON_OBJECT)
        return unexpected(r, "an object that describes a tensor");
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = PLUMB_OK;
        unsigned count = 0;
        if (json_is(&r->json, "dtype")) {
            code = read_dtype(r, entry);
        } else if (json_is(&r->json, "shape")) {
            code = read_sizes(r, entry->shape, PLUMB_MAX_RANK, &entry->ndim);
            entry->has_shape = true;
        } else if (json_is(&r->json, "data_offsets")) {
            code = read_sizes(r, entry->offsets, 2, &count);
            if (!code && count != 2)
                code = unexpected(r, "two numbers");
            entry->has_offsets = true;
        } else if (!json_skip(&r->json, event)) {
            code = unexpected(r, "a value");
        }
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return unexpected(r, "a key");
    if (!entry->has_dtype || !entry->has_shape || !entry->has_offsets)
        return unexpected(r, "dtype, shape and data_offsets before the end");
    return PLUMB_OK;
}

/* Can this tensor be read? Fills *why otherwise. */
static enum plumb_code check_entry(struct reader *r, struct plumb_record *record,
                                   const struct entry *entry, struct plumb_error *why)
{
    const char *name = entry->name;
    if (entry->dtype == PLUMB_DTYPE_COUNT)
        return plumb_fail_at(why, PLUMB_E_UNSUPPORTED, entry->at,
                             "tensor %s is of type %s, which plumb does not know", name,
                             entry->dtype_text);
    enum plumb_code code =
        listing_set_shape(r->out, record, entry->dtype, entry->ndim, entry->shape, why);
    if (code)
        return code;
    uint64_t begin = (uint64_t)entry->offsets[0], end = (uint64_t)entry->offsets[1], bytes = 0;
    plumb_dtype_bytes(entry->dtype, record->count, &bytes);
    if (begin > end)
        return plumb_fail_at(why, PLUMB_E_FORMAT, entry->at,
                             "tensor %s ends at %" PRIu64 ", before it begins at %" PRIu64, name,
                             end, begin);
    if (bytes != end - begin)
        return plumb_fail_at(why, PLUMB_E_FORMAT, entry->at,
                             "tensor %s has %" PRIu64
                             " bytes, but its type and shape need %" PRIu64,
                             name, end - begin, bytes);
    if (end > r->data_size)
        return plumb_fail_at(why, PLUMB_E_FORMAT, entry->at,
                             "tensor %s ends at byte %" PRIu64 " of the data, which has %" PRIu64
                             ": the file is cut short",
                             name, end, r->data_size);
    record->offset = r->data_offset + begin;
    record->bytes = bytes;
    return PLUMB_OK;
}

static enum plumb_code read_tensor(struct reader *r)
{
    struct entry entry = {.at = PREFIX + r->json.start};
    enum plumb_code code = read_text(r, &entry.name, &entry.name_length);
    if (code)
        return code;
    bool added;
    if (!map_put(&r->names, entry.name, entry.name_length, &added))
        return plumb_no_memory(r->err);
    if (!added)
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, entry.at, "a second tensor is called %s",
                             entry.name);
    code = read_entry(r, &entry);
    if (code)
        return code;

    struct plumb_record *record = listing_add(r->out, entry.name, entry.name_length);
    if (!record)
        return plumb_no_memory(r->err);
    struct plumb_error why;
    code = check_entry(r, record, &entry, &why);
    if (code == PLUMB_E_NOMEM || (code && listing_fail(r->out, record, &why)))
        return plumb_no_memory(r->err);
    return PLUMB_OK;
}

static enum plumb_code read_header(struct reader *r)
{
    const size_t first = r->out->count;
    if (json_next(&r->json) != JSON_OBJECT)
        return unexpected(r, "an object");
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = PLUMB_OK;
        if (!json_is(&r->json, "__metadata__"))
            code = read_tensor(r);
        else if (!json_skip(&r->json, event))
            code = unexpected(r, "a value");
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END || json_next(&r->json) != JSON_END)
        return unexpected(r, "the end of the header");
    return listing_refuse_overlaps(r->out, first, r->err);
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    if (file->size < PREFIX)
        return plumb_fail_at(err, PLUMB_E_FORMAT, file->size, "the file is cut short");
    uint64_t length = header_length(file->data);
    if (length > MAX_HEADER)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 0,
                             "the header claims %" PRIu64 " bytes, more than the allowed 100 MB",
                             length);
    if (length > file->size - PREFIX)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 0,
                             "the header claims %" PRIu64 " bytes, but only %" PRIu64
                             " follow: the file is cut short",
                             length, file->size - PREFIX);
    struct reader reader = {
        .out = out,
        .err = err,
        .data_offset = PREFIX + length,
        .data_size = file->size - PREFIX - length,
    };
    json_init(&reader.json, file->data + PREFIX, (size_t)length);
    enum plumb_code code = read_header(&reader);
    map_free(&reader.names);
    return code;
}

const struct format format_safetensors = {.name = "safetensors",
                                          .endings = ".safetensors",
                                          .weights = true,
                                          .probe = probe,
                                          .list = list,
                                          .write = safetensors_writer_open};
