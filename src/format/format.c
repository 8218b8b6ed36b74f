/* The table of formats, and what all of them have in common: recognising, listing, loading. */
#define _GNU_SOURCE
#include "format/format.h"

#include "base/mapped.h"
#include "format/condensed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FORMAT_ENTRY(NAME) &format_##NAME,
static const struct format *const formats[] = {FORMAT_TABLE(FORMAT_ENTRY)};
enum { FORMATS = sizeof formats / sizeof *formats };

const struct format *format_named(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

/* -- Endings ---------------------------------------------------------------------------------- */

/* The next of a list of endings, or NULL; *at moves behind it. */
static const char *next_ending(const char **at, size_t *length)
{
    if (!*at)
        return NULL;
    const char *start = *at + strspn(*at, " ");
    *length = strcspn(start, " ");
    *at = start + *length;
    return *length ? start : NULL;
}

static bool ends_in_one(const char *path, const char *endings)
{
    size_t total = strlen(path), length;
    for (const char *ending; (ending = next_ending(&endings, &length));)
        if (total >= length && strncasecmp(path + total - length, ending, length) == 0)
            return true;
    return false;
}

bool format_is_promised(const char *path)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (ends_in_one(path, formats[i]->endings))
            return true;
    return false;
}

bool format_is_promised_weights(const char *path)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (!formats[i]->recorded && (ends_in_one(path, formats[i]->endings) ||
                                      ends_in_one(path, formats[i]->weight_endings)))
            return true;
    return false;
}

const struct format *format_written(const char *path)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i]->write && ends_in_one(path, formats[i]->endings))
            return formats[i];
    return NULL;
}

static bool is_chosen(const struct format *format, enum format_choice choice)
{
    switch (choice) {
    case FORMAT_WEIGHTS:
        return format->weights;
    case FORMAT_WRITTEN:
        return format->write;
    default:
        return !format->recorded;
    }
}

const char *format_endings(enum format_choice choice, const char *word, char *text, size_t size)
{
    size_t used = 0, length, held_length = 0;
    const char *held = NULL; /* written when it is known whether it is the last */
    text[0] = '\0';
    for (size_t i = 0; i < FORMATS; i++) {
        const char *at = is_chosen(formats[i], choice) ? formats[i]->endings : NULL;
        for (const char *ending; (ending = next_ending(&at, &length));) {
            if (held && used < size)
                used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "",
                                         (int)held_length, held);
            held = ending;
            held_length = length;
        }
    }
    if (held && used < size)
        snprintf(text + used, size - used, "%s%s%s%.*s", used ? " " : "", used ? word : "",
                 used ? " " : "", (int)held_length, held);
    return text;
}

const char *plumb_format_endings(char *text, size_t size)
{
    return format_endings(FORMAT_ALL, "and", text, size);
}

/* -- Recognising and listing ------------------------------------------------------------------ */

enum { HEAD_BYTES = 512 };

static const struct format *format_of(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (formats[i]->probe(head, n))
            return formats[i];
    return NULL;
}

const struct format *format_probe(const struct plumb_file *file)
{
    size_t n = file->size < HEAD_BYTES ? (size_t)file->size : HEAD_BYTES;
    if (!n)
        return NULL;
    uint8_t head[HEAD_BYTES];
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, file);
    memcpy(head, file->data, n);
    return plumb_file_guard_leave(&guard) ? NULL : format_of(head, n);
}

enum plumb_code format_list(const struct format *format, struct listing *out,
                            const struct plumb_file *file, struct plumb_error *err)
{
    size_t before = out->count;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, file);
    enum plumb_code code = format->list(out, file, err);
    if (plumb_file_guard_leave(&guard))
        code = mapped_fail_shrank(err);
    if (code) {
        out->count = before;
        plumb_error_in_file(err, out->path);
    }
    return code;
}

static enum plumb_code fail_unknown(const struct plumb_file *file, struct plumb_error *err)
{
    char endings[FORMAT_ENDINGS_BYTES];
    if (!file->size)
        return plumb_fail(err, PLUMB_E_FORMAT, "the file is empty");
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "the content is none that plumb knows; it reads %s files",
                      plumb_format_endings(endings, sizeof endings));
}

/* Lists a file by its first bytes, where they are enough: mapping it takes several times as long,
 * which counts in folders of many. False: nothing was listed, and why is for others to find out,
 * unless memory is short. */
static bool list_by_head(struct listing *out, const char *path, struct format_file *found,
                         enum plumb_code *code, struct plumb_error *err)
{
    uint8_t head[HEAD_BYTES];
    struct plumb_file file;
    const size_t n = file_peek(&file, path, head, sizeof head), before = out->count;
    const struct format *format = n ? format_of(head, n) : NULL;
    const size_t listed_by = format && format->listed_by ? format->listed_by(head, n) : 0;
    if (!listed_by || listed_by > n || condensed_is_reduced(path))
        return false;
    file.data = head;
    *found = (struct format_file){format, file.file_size, file.mtime_ns};
    out->path = path;
    *code = format_list(format, out, &file, err);
    if (*code)
        out->count = before;
    return !*code || *code == PLUMB_E_NOMEM;
}

enum plumb_code format_list_file(struct listing *out, const char *path, struct format_file *found,
                                 struct plumb_error *err)
{
    struct mapped in;
    size_t before = out->count;
    enum plumb_code code = PLUMB_OK;
    if (list_by_head(out, path, found, &code, err))
        return code;
    *found = (struct format_file){0};
    code = mapped_open(&in, path, err);
    if (code)
        return code;
    const struct format *format = format_probe(&in.file);
    *found = (struct format_file){format, in.file.file_size, in.file.mtime_ns};
    out->path = path;
    code = format ? format_list(format, out, &in.file, err) : fail_unknown(&in.file, err);
    if (!code && condensed_is_reduced(path))
        code = condensed_list_reduced(out, before, format, &in.file, err);
    code = mapped_close(&in, code, err);
    if (code)
        out->count = before;
    return code;
}

struct plumb_record *listing_lend(struct listing *out, const char *name)
{
    if (out->count == out->capacity) {
        size_t capacity = out->capacity ? out->capacity * 2 : 16;
        struct plumb_record *records =
            arena_grow(out->arena, out->records, out->count, capacity, sizeof *records);
        if (!records)
            return NULL;
        out->records = records;
        out->capacity = capacity;
    }
    struct plumb_record *record = &out->records[out->count++];
    *record = (struct plumb_record){
        .name = name, .path = out->path, .step = -1, .rank = -1, .requires_grad = -1};
    return record;
}

struct plumb_record *listing_add(struct listing *out, const char *name, size_t length)
{
    const char *copy = arena_copy(out->arena, name, length);
    return copy ? listing_lend(out, copy) : NULL;
}

struct plumb_record *listing_add_unnamed(struct listing *out)
{
    const char *slash = strrchr(out->path, '/');
    const char *name = slash ? slash + 1 : out->path;
    const char *dot = strrchr(name, '.');
    return listing_add(out, name, dot && dot != name ? (size_t)(dot - name) : strlen(name));
}

enum plumb_code listing_lend_shape(struct plumb_record *record, enum plumb_dtype dtype,
                                   unsigned ndim, const int64_t *shape, struct plumb_error *err)
{
    static const int64_t none = 0;
    struct plumb_tensor tensor;
    enum plumb_code code = plumb_tensor_init(&tensor, dtype, ndim, shape, err);
    if (code)
        return code;
    record->dtype = dtype;
    record->ndim = ndim;
    record->shape = shape ? shape : &none;
    record->count = tensor.count;
    return PLUMB_OK;
}

enum plumb_code listing_set_shape(struct listing *out, struct plumb_record *record,
                                  enum plumb_dtype dtype, unsigned ndim, const int64_t *shape,
                                  struct plumb_error *err)
{
    enum plumb_code code = listing_lend_shape(record, dtype, ndim, shape, err);
    if (code)
        return code;
    int64_t *copy = arena_array(out->arena, ndim, sizeof *copy);
    if (!copy)
        return plumb_no_memory(err);
    if (ndim)
        memcpy(copy, shape, ndim * sizeof *copy);
    record->shape = copy;
    return PLUMB_OK;
}

bool listing_set_view(struct listing *out, struct plumb_record *record, uint64_t start,
                      const int64_t *stride)
{
    struct plumb_view *view = arena_alloc(out->arena, sizeof *view);
    int64_t *copy = stride ? arena_array(out->arena, record->ndim, sizeof *copy) : NULL;
    if (!view || (stride && !copy))
        return false;
    if (stride && record->ndim)
        memcpy(copy, stride, record->ndim * sizeof *copy);
    *view = (struct plumb_view){start, copy};
    record->view = view;
    return true;
}

enum plumb_code listing_fail(struct listing *out, struct plumb_record *record,
                             const struct plumb_error *err)
{
    struct plumb_error *copy = arena_alloc(out->arena, sizeof *copy);
    if (!copy)
        return PLUMB_E_NOMEM;
    *copy = *err;
    plumb_error_in_file(copy, out->path);
    record->error = copy;
    return PLUMB_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct plumb_record *left = *(const struct plumb_record *const *)a;
    const struct plumb_record *right = *(const struct plumb_record *const *)b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

enum plumb_code listing_refuse_overlaps(const struct listing *out, size_t first,
                                        struct plumb_error *err)
{
    size_t count = 0;
    const struct plumb_record **stored = malloc((out->count - first + 1) * sizeof *stored);
    if (!stored)
        return plumb_no_memory(err);
    for (size_t i = first; i < out->count; i++)
        if (!out->records[i].error && out->records[i].bytes)
            stored[count++] = &out->records[i];
    qsort(stored, count, sizeof *stored, by_offset);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 1; i < count && !code; i++)
        if (stored[i]->offset < stored[i - 1]->offset + stored[i - 1]->bytes)
            code = plumb_fail_at(err, PLUMB_E_FORMAT, stored[i]->offset,
                                 "tensors %s and %s overlap", stored[i - 1]->name, stored[i]->name);
    free(stored);
    return code;
}

/* The view that the record describes, over a storage of that many bytes. */
static enum plumb_code make_view(const struct plumb_record *record, const void *storage,
                                 uint64_t bytes, struct plumb_tensor *tensor,
                                 struct plumb_error *err)
{
    static const char nothing[16];
    enum plumb_code code =
        plumb_tensor_init(tensor, record->dtype, record->ndim, record->shape, err);
    if (code)
        return code;

    unsigned bits = plumb_dtype_info(record->dtype)->bits;
    uint64_t available = bits < 8 ? bytes * 2 : bytes / (bits / 8);
    const struct plumb_view view = record->view ? *record->view : (struct plumb_view){0};
    if (bits < 8 && view.start % 2)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a view of a packed 4-bit type that begins in the middle of a byte");
    code = plumb_tensor_set_strides(tensor, view.stride ? view.stride : tensor->stride, view.start,
                                    available, err);
    if (code)
        return code;
    tensor->swap = record->swap;
    tensor->data = nothing;
    if (tensor->count)
        tensor->data =
            (const uint8_t *)storage + (bits < 8 ? view.start / 2 : view.start * (bits / 8));
    return PLUMB_OK;
}

static enum plumb_code check_unchanged(const struct plumb_file *file, uint64_t file_size,
                                       int64_t mtime_ns, struct plumb_error *err)
{
    if (file->file_size == file_size && file->mtime_ns == mtime_ns)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_IO, "the file changed since it was listed");
}

/* What is larger gets a mapping of its own, which goes with it: memory follows what is compared. */
static const uint64_t small = 1 << 20;

/* The part of a held file that the record is. */
static enum plumb_code map_held(const struct plumb_record *record, struct holder *holder,
                                struct plumb_file *file, struct plumb_error *err)
{
    enum plumb_code code = holder_map(holder, record->path, file, err);
    if (code)
        return code;
    if (record->offset > file->size || record->bytes > file->size - record->offset)
        return PLUMB_E_FORMAT;
    file->data = record->bytes ? file->data + record->offset : NULL;
    file->size = record->bytes;
    return PLUMB_OK;
}

static enum plumb_code map_stored(const struct plumb_record *record, uint64_t file_size,
                                  int64_t mtime_ns, struct holder *holder,
                                  struct plumb_payload *payload, struct plumb_error *err)
{
    struct plumb_file *file = &payload->file;
    enum plumb_code code =
        holder && record->bytes < small
            ? map_held(record, holder, file, err)
            : plumb_file_map(file, record->path, record->offset, record->bytes, err);
    /* Too short for the extent that was there when it was listed: changed, not damaged. */
    if (code == PLUMB_E_FORMAT)
        return plumb_fail(err, PLUMB_E_IO, "the file changed since it was listed");
    if (!code)
        code = check_unchanged(file, file_size, mtime_ns, err);
    if (!code)
        code = make_view(record, file->data, file->size, &payload->tensor, err);
    return code;
}

static enum plumb_code decode_stored(const struct format *format, const struct plumb_record *record,
                                     uint64_t file_size, int64_t mtime_ns, struct holder *holder,
                                     struct plumb_payload *payload, struct plumb_error *err)
{
    struct mapped in;
    uint64_t bytes = 0;
    if (record->bytes >= small)
        holder = NULL;
    enum plumb_code code = mapped_open_held(&in, holder, record->path, err);
    if (code)
        return code;
    code = check_unchanged(&in.file, file_size, mtime_ns, err);
    if (!code)
        code = format->read(record, &in.file, &payload->owned, &bytes, err);
    code = mapped_close(&in, code, err);
    return code ? code : make_view(record, payload->owned, bytes, &payload->tensor, err);
}

enum plumb_code format_load(const struct format *format, const struct plumb_record *record,
                            uint64_t file_size, int64_t mtime_ns, struct holder *holder,
                            struct plumb_payload *payload, struct plumb_error *err)
{
    *payload = (struct plumb_payload){0};
    if (record->error) {
        if (err)
            *err = *record->error;
        return record->error->code;
    }
    enum plumb_code code =
        format->read && record->detail
            ? decode_stored(format, record, file_size, mtime_ns, holder, payload, err)
            : map_stored(record, file_size, mtime_ns, holder, payload, err);
    if (code) {
        plumb_error_in_file(err, record->path);
        plumb_payload_release(payload);
    }
    return code;
}

void plumb_payload_release(struct plumb_payload *payload)
{
    plumb_file_unmap(&payload->file);
    free(payload->owned);
    *payload = (struct plumb_payload){0};
}
