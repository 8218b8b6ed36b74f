/* What plumb-h5 says about a file, turned into records. */
#include "format/h5reply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Fill values take no room in the file: so much of them is believed, whatever the file's size. */
#define MAX_FILL ((uint64_t)256 << 20)

/* The answer as it is taken apart. */
struct cursor {
    const uint8_t *at;
    size_t left;
};

/* One dataset's parts, pointing into the answer, where nothing is aligned. */
struct entry {
    struct h5_dataset head;
    int64_t shape[H5_MAX_RANK];
    uint64_t chunk_shape[H5_MAX_RANK];
    const uint8_t *chunks;
    const char *path, *reason;
    char dtype[H5_MAX_TEXT];
};

static const uint8_t *take(struct cursor *cursor, uint64_t size)
{
    if (size > cursor->left)
        return NULL;
    const uint8_t *at = cursor->at;
    cursor->at += size;
    cursor->left -= (size_t)size;
    return at;
}

static bool take_copy(struct cursor *cursor, void *to, size_t size)
{
    const uint8_t *from = take(cursor, size);
    if (from && size)
        memcpy(to, from, size);
    return from;
}

/* False when the answer breaks the protocol. The end mark has a path_length of 0. */
static bool take_entry(struct cursor *cursor, struct entry *entry)
{
    struct h5_dataset *head = &entry->head;
    if (!take_copy(cursor, head, sizeof *head))
        return false;
    if (head->path_length >= H5_MAX_PATH || head->dtype_length >= H5_MAX_TEXT ||
        head->reason_length > H5_MAX_TEXT || head->ndim > H5_MAX_RANK ||
        head->chunk_count > cursor->left / sizeof(struct h5_chunk))
        return false;
    bool chunked = head->layout == H5_CHUNKED;
    if (!take_copy(cursor, entry->shape, head->ndim * sizeof *entry->shape) ||
        (chunked &&
         !take_copy(cursor, entry->chunk_shape, head->ndim * sizeof *entry->chunk_shape)))
        return false;
    entry->chunks = take(cursor, head->chunk_count * sizeof(struct h5_chunk));
    entry->path = (const char *)take(cursor, head->path_length);
    if (!entry->chunks || !entry->path || !take_copy(cursor, entry->dtype, head->dtype_length))
        return false;
    entry->dtype[head->dtype_length] = '\0';
    entry->reason = (const char *)take(cursor, head->reason_length);
    return entry->reason && !memchr(entry->path, '\0', head->path_length) &&
           (!head->path_length || entry->path[0] == '/');
}

static enum plumb_dtype sized(unsigned size, enum plumb_dtype one, enum plumb_dtype two,
                              enum plumb_dtype four, enum plumb_dtype eight)
{
    return size == 1   ? one
           : size == 2 ? two
           : size == 4 ? four
           : size == 8 ? eight
                       : PLUMB_DTYPE_COUNT;
}

static enum plumb_dtype stored_dtype(const struct h5_dataset *head)
{
    const enum plumb_dtype none = PLUMB_DTYPE_COUNT;
    unsigned size = head->size;
    switch (head->type) {
    case H5_UINT:
        return sized(size, PLUMB_U8, PLUMB_U16, PLUMB_U32, PLUMB_U64);
    case H5_INT:
        return sized(size, PLUMB_I8, PLUMB_I16, PLUMB_I32, PLUMB_I64);
    case H5_FLOAT:
        return sized(size, none, PLUMB_F16, PLUMB_F32, PLUMB_F64);
    case H5_BFLOAT16:
        return sized(size, none, PLUMB_BF16, none, none);
    case H5_E4M3:
        return sized(size, PLUMB_F8_E4M3FN, none, none, none);
    case H5_E5M2:
        return sized(size, PLUMB_F8_E5M2, none, none, none);
    case H5_BOOLEAN:
        return sized(size, PLUMB_BOOL, none, none, none);
    case H5_COMPLEX:
        return size == 8 ? PLUMB_C64 : size == 16 ? PLUMB_C128 : none;
    default:
        return none;
    }
}

/* The attribute names the real type where HDF5 has none and bits were stored as integers. A type of
 * another width is what the tensor was before it was converted for storage: the stored one counts.
 * */
static enum plumb_code decide_dtype(const struct entry *entry, enum plumb_dtype *dtype,
                                    struct plumb_error *err)
{
    enum plumb_dtype stored = stored_dtype(&entry->head);
    if (stored == PLUMB_DTYPE_COUNT)
        return plumb_fail(err, PLUMB_E_FORMAT, "elements of an impossible type");
    *dtype = stored;
    enum plumb_dtype named = plumb_dtype_from_name(entry->dtype);
    if (named == PLUMB_DTYPE_COUNT || named == stored)
        return PLUMB_OK;
    const struct plumb_dtype_info *is = plumb_dtype_info(stored), *says = plumb_dtype_info(named);
    bool in_integer = is->kind == PLUMB_KIND_UINT || is->kind == PLUMB_KIND_INT;
    bool in_float8 = is->kind == PLUMB_KIND_FLOAT && is->bits == 8;
    bool says_float = says->kind == PLUMB_KIND_FLOAT || says->kind == PLUMB_KIND_COMPLEX;
    if (says->bits != is->bits) {
        /* Integers for floats of another width, or with several packed in one, are no numbers. */
        if (says->bits >= 8 && !(in_integer && says_float))
            return PLUMB_OK;
    } else if ((in_integer && (says->kind == PLUMB_KIND_FLOAT || says->kind == PLUMB_KIND_BOOL)) ||
               (in_float8 && says->kind == PLUMB_KIND_FLOAT)) {
        *dtype = named;
        return PLUMB_OK;
    }
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "the attribute dtype says %s, but the elements are stored as %s",
                      entry->dtype, is->name);
}

/* Checks the table against the grid of chunks and the file. */
static enum plumb_code check_chunks(const struct entry *entry, const struct h5_chunk *chunks,
                                    uint64_t file_size, struct plumb_error *err)
{
    const struct h5_dataset *head = &entry->head;
    uint64_t grid = 1, chunk_bytes = head->size;
    for (unsigned i = 0; i < head->ndim; i++) {
        uint64_t extent = entry->chunk_shape[i];
        if (!extent || __builtin_mul_overflow(chunk_bytes, extent, &chunk_bytes) ||
            chunk_bytes > UINT32_MAX)
            return plumb_fail(err, PLUMB_E_FORMAT, "chunks of an impossible size");
        grid *= ((uint64_t)entry->shape[i] - 1) / extent + 1;
    }
    if (head->chunk_count > grid)
        return plumb_fail(err, PLUMB_E_FORMAT, "more chunks than the shape has room for");
    bool filters_end = false;
    for (unsigned i = 0; i < H5_MAX_FILTERS; i++) {
        uint8_t filter = head->filters[i];
        if (filter > H5_DEFLATE || (filter && filters_end))
            return plumb_fail(err, PLUMB_E_FORMAT, "an impossible list of filters");
        filters_end = !filter;
    }
    for (uint64_t i = 0; i < head->chunk_count; i++)
        if (chunks[i].index >= grid || chunks[i].offset > file_size ||
            chunks[i].bytes > file_size - chunks[i].offset)
            return plumb_fail_at(err, PLUMB_E_FORMAT, chunks[i].offset,
                                 "a chunk of %" PRIu32 " bytes lies outside the file",
                                 chunks[i].bytes);
    return PLUMB_OK;
}

static enum plumb_code fill_chunks(struct listing *out, const struct entry *entry,
                                   struct plumb_record *record, struct h5_detail *detail,
                                   uint64_t file_size, struct plumb_error *err)
{
    const struct h5_dataset *head = &entry->head;
    struct h5_chunk *chunks = arena_array(out->arena, head->chunk_count, sizeof *chunks);
    uint64_t *chunk_shape = arena_array(out->arena, head->ndim, sizeof *chunk_shape);
    if (!chunks || !chunk_shape)
        return plumb_no_memory(err);
    memcpy(chunks, entry->chunks, head->chunk_count * sizeof *chunks);
    memcpy(chunk_shape, entry->chunk_shape, head->ndim * sizeof *chunk_shape);
    enum plumb_code code = check_chunks(entry, chunks, file_size, err);
    if (code)
        return code;
    record->bytes = 0;
    for (uint64_t i = 0; i < head->chunk_count; i++)
        record->bytes += chunks[i].bytes;
    memcpy(detail->filters, head->filters, sizeof detail->filters);
    detail->chunk_shape = chunk_shape;
    detail->chunks = chunks;
    detail->chunk_count = (size_t)head->chunk_count;
    return PLUMB_OK;
}

static enum plumb_code check_promise(uint64_t bytes, uint64_t file_size, struct plumb_error *err)
{
    uint64_t most;
    if (__builtin_mul_overflow(file_size, H5_DEFLATE_RATIO, &most) || most > INT64_MAX)
        most = INT64_MAX;
    if (bytes <= most + MAX_FILL && bytes <= SIZE_MAX / 2)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "the shape promises %" PRIu64 " bytes, more than a file of %" PRIu64
                      " bytes can hold",
                      bytes, file_size);
}

static enum plumb_code fill_storage(struct listing *out, const struct entry *entry,
                                    struct plumb_record *record, uint64_t file_size,
                                    struct plumb_error *err)
{
    const struct h5_dataset *head = &entry->head;
    uint64_t bytes = record->count * head->size;
    if (!bytes)
        return PLUMB_OK;
    if (head->layout == H5_CONTIGUOUS) {
        if (head->bytes != bytes)
            return plumb_fail_at(err, PLUMB_E_FORMAT, head->offset,
                                 "%" PRIu64 " bytes are stored, but the shape needs %" PRIu64,
                                 head->bytes, bytes);
        if (head->offset > file_size || bytes > file_size - head->offset)
            return plumb_fail_at(err, PLUMB_E_FORMAT, head->offset,
                                 "%" PRIu64 " bytes reach beyond the end of the file", bytes);
        record->offset = head->offset;
        record->bytes = bytes;
        return PLUMB_OK;
    }

    enum plumb_code code = check_promise(bytes, file_size, err);
    if (code)
        return code;
    struct h5_detail *detail = arena_alloc(out->arena, sizeof *detail);
    const char *path = arena_copy(out->arena, entry->path, head->path_length);
    if (!detail || !path)
        return plumb_no_memory(err);
    *detail = (struct h5_detail){
        .layout = H5_ASK, .dataset = path, .bytes = bytes, .element = head->size};
    record->bytes = bytes;
    if (head->layout == H5_CHUNKED) {
        detail->layout = H5_CHUNKED;
        code = fill_chunks(out, entry, record, detail, file_size, err);
    }
    record->detail = detail;
    return code;
}

/* A component "..": harmless here, but names may become file names elsewhere. */
static bool climbs(const char *path, size_t length)
{
    for (size_t i = 0; i + 3 <= length; i++)
        if (memcmp(path + i, "/..", 3) == 0 && (i + 3 == length || path[i + 3] == '/'))
            return true;
    return false;
}

static enum plumb_code fill_record(struct listing *out, const struct entry *entry,
                                   struct plumb_record *record, uint64_t file_size,
                                   struct plumb_error *err)
{
    const struct h5_dataset *head = &entry->head;
    if (head->reason_length)
        return plumb_fail(
            err, head->status == H5_EXIT_UNSUPPORTED ? PLUMB_E_UNSUPPORTED : PLUMB_E_FORMAT, "%.*s",
            (int)head->reason_length, entry->reason);
    if (climbs(entry->path, head->path_length))
        return plumb_fail(err, PLUMB_E_FORMAT, "a name with \"..\" in it");
    if (head->layout >= H5_LAYOUT_COUNT || (head->layout == H5_CHUNKED && !head->ndim))
        return plumb_fail(err, PLUMB_E_FORMAT, "an impossible storage layout");
    enum plumb_dtype dtype = PLUMB_DTYPE_COUNT;
    enum plumb_code code = decide_dtype(entry, &dtype, err);
    if (!code)
        code = listing_set_shape(out, record, dtype, head->ndim, entry->shape, err);
    if (code)
        return code;
    record->path_call = head->path_call;
    bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    record->swap = head->size > 1 && head->big_endian != host_is_big;
    return fill_storage(out, entry, record, file_size, err);
}

/* The length of a first component that is a step, followed by more; else 0. */
static size_t step_length(const char *name)
{
    size_t digits = strspn(name, "0123456789");
    return digits <= 18 && name[digits] == '/' ? digits : 0;
}

/* Top-level groups are steps when all of them are numbers. */
static void split_steps(struct plumb_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strchr(records[i].name, '/') && !step_length(records[i].name))
            return;
    for (size_t i = 0; i < count; i++) {
        size_t digits = step_length(records[i].name);
        if (!digits)
            continue;
        records[i].step = strtoll(records[i].name, NULL, 10);
        records[i].name += digits + 1;
    }
}

enum plumb_code h5reply_parse(struct listing *out, const void *reply, size_t size,
                              uint64_t file_size, struct plumb_error *err)
{
    struct cursor cursor = {reply, size};
    struct h5_hello hello;
    size_t before = out->count;
    if (!take_copy(&cursor, &hello, sizeof hello) || hello.magic != H5_MAGIC)
        goto nonsense;
    for (;;) {
        struct entry entry;
        if (!take_entry(&cursor, &entry))
            goto nonsense;
        if (!entry.head.path_length)
            break;
        struct plumb_error why = {0};
        struct plumb_record *record = listing_add(out, entry.path + 1, entry.head.path_length - 1);
        if (!record)
            return plumb_no_memory(err);
        record->rank = hello.global_rank < 0 ? -1 : hello.global_rank;
        enum plumb_code code = fill_record(out, &entry, record, file_size, &why);
        if (code && code != PLUMB_E_NOMEM)
            code = listing_fail(out, record, &why);
        if (code)
            return plumb_no_memory(err);
    }
    if (cursor.left)
        goto nonsense;
    split_steps(out->records + before, out->count - before);
    return PLUMB_OK;
nonsense:
    return plumb_fail(
        err, PLUMB_E_FORMAT,
        "plumb-h5 answered nonsense: the file confused it, or it is of another version");
}
