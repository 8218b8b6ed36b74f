/* The header of a GE dump file. */
#define _GNU_SOURCE
#include "format/ge_file.h"

#include "base/mapped.h"
#include "format/bytes.h"
#include "format/wire.h"

#include <string.h>

enum { NANO_MAGIC = 0x5A5A5A5A };

/* Fields of DumpData. */
enum {
    F_VERSION = 1,
    F_TIME = 2,
    F_OUTPUT = 3,
    F_INPUT = 4,
    F_BUFFER = 5,
    F_NAME = 6,
    F_SPACE = 8
};

bool ge_probe(const uint8_t *head, size_t n, uint64_t size)
{
    if (n < 12)
        return false;
    uint64_t header = bytes_le64(head);
    if (header < 4 || header > size - 8)
        return false;
    if (bytes_le32(head + 8) == NANO_MAGIC)
        return true;
    /* A message begins with the version, as a short string of digits and dots. */
    size_t length = head[9];
    if (head[8] != (F_VERSION << 3 | WIRE_BYTES) || length == 0 || length > 16 || n < 10 + length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (head[10 + i] != '.' && (head[10 + i] < '0' || head[10 + i] > '9'))
            return false;
    return true;
}

/* A growing list of tensors of one part. */
struct list {
    enum ge_part part;
    struct ge_tensor *items;
    size_t count, capacity;
};

static struct ge_tensor *list_add(struct list *list, struct arena *arena)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 4;
        struct ge_tensor *items = arena_array(arena, capacity, sizeof *items);
        if (!items)
            return NULL;
        if (list->count)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    struct ge_tensor *tensor = &list->items[list->count];
    *tensor = (struct ge_tensor){.part = list->part, .index = (unsigned)list->count};
    list->count++;
    return tensor;
}

/* Shape: one repeated number, packed or not; a list that comes in pieces is joined. */
static enum plumb_code parse_shape(struct ge_dims *dims, struct wire wire, struct arena *arena,
                                   struct plumb_error *err)
{
    uint64_t dim[PLUMB_MAX_RANK];
    unsigned rank = 0;
    struct wire_field field;
    for (bool more;;) {
        enum plumb_code code = wire_next(&wire, &field, &more, err);
        if (code)
            return code;
        if (!more)
            break;
        if (field.number != 1 || (field.type != WIRE_BYTES && field.type != WIRE_VARINT))
            continue;
        do {
            uint64_t value = field.value;
            if (field.type == WIRE_BYTES) {
                if (field.bytes.next == field.bytes.end)
                    break;
                code = wire_varint(&field.bytes, &value, err);
                if (code)
                    return code;
            }
            if (rank == PLUMB_MAX_RANK)
                return plumb_fail_at(err, PLUMB_E_FORMAT, field.at,
                                     "a shape of more than %d dimensions", PLUMB_MAX_RANK);
            dim[rank++] = value;
        } while (field.type == WIRE_BYTES);
    }
    uint64_t *copy = arena_array(arena, rank, sizeof *copy);
    if (!copy)
        return plumb_no_memory(err);
    if (rank)
        memcpy(copy, dim, rank * sizeof *copy);
    *dims = (struct ge_dims){rank, copy};
    return PLUMB_OK;
}

/* OpInput, OpOutput, OpBuffer and Workspace; they number the same things differently. */
static enum plumb_code parse_tensor(struct ge_tensor *tensor, struct wire wire, struct arena *arena,
                                    struct plumb_error *err)
{
    static const struct {
        uint32_t size, original, sub_format;
    } numbers[] = {[GE_INPUT] = {5, 6, 7},
                   [GE_OUTPUT] = {6, 7, 8},
                   [GE_BUFFER] = {3, 0, 0},
                   [GE_SPACE] = {3, 0, 0}};
    bool described = tensor->part <= GE_OUTPUT;
    struct wire_field field;
    for (bool more;;) {
        enum plumb_code code = wire_next(&wire, &field, &more, err);
        if (code)
            return code;
        if (!more)
            return PLUMB_OK;
        bool number = field.type == WIRE_VARINT;
        if (number && field.number == numbers[tensor->part].size)
            tensor->size = field.value;
        if (!described)
            continue;
        if (number && field.number == 1)
            tensor->type = (int32_t)field.value;
        else if (number && field.number == 2)
            tensor->format = (int32_t)field.value;
        else if (number && field.number == numbers[tensor->part].sub_format)
            tensor->sub_format = (int32_t)field.value;
        else if (field.type == WIRE_BYTES && field.number == 3)
            code = parse_shape(&tensor->shape, field.bytes, arena, err);
        else if (field.type == WIRE_BYTES && field.number == numbers[tensor->part].original)
            code = parse_shape(&tensor->original, field.bytes, arena, err);
        if (code)
            return code;
    }
}

enum plumb_code ge_place(struct ge_tensor *tensors, size_t count, uint64_t file_size,
                         uint64_t *position, const char *path, struct arena *arena,
                         struct plumb_error *err)
{
    for (size_t i = 0; i < count; i++) {
        struct ge_tensor *tensor = &tensors[i];
        uint64_t left = *position < file_size ? file_size - *position : 0;
        tensor->offset = file_size - left;
        if (tensor->size > left) {
            struct plumb_error *error = arena_alloc(arena, sizeof *error);
            if (!error)
                return plumb_no_memory(err);
            plumb_fail_at(error, PLUMB_E_FORMAT, tensor->offset,
                          "the file ends inside this tensor: %llu bytes of %llu are there",
                          (unsigned long long)left, (unsigned long long)tensor->size);
            plumb_error_in_file(error, path);
            tensor->error = error;
        }
        /* Once past the end, everything that follows is missing too. */
        *position = tensor->size > left ? UINT64_MAX : *position + tensor->size;
    }
    return PLUMB_OK;
}

static enum plumb_code copy_text(const char **text, const struct wire_field *field,
                                 struct arena *arena, struct plumb_error *err)
{
    size_t length = (size_t)(field->bytes.end - field->bytes.begin);
    *text = arena_copy(arena, (const char *)field->bytes.begin, length);
    return *text ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code parse_message(struct ge_file *ge, struct wire wire, struct arena *arena,
                                     struct plumb_error *err)
{
    struct list lists[] = {{.part = GE_INPUT}, {.part = GE_OUTPUT}};
    uint64_t position = wire.base + (uint64_t)(wire.end - wire.begin);
    enum plumb_code code = PLUMB_OK;
    struct wire_field field;
    for (bool more; !code;) {
        code = wire_next(&wire, &field, &more, err);
        if (code || !more)
            break;
        bool bytes = field.type == WIRE_BYTES;
        if (bytes && (field.number == F_INPUT || field.number == F_OUTPUT)) {
            struct ge_tensor *tensor = list_add(&lists[field.number == F_OUTPUT], arena);
            code = tensor ? parse_tensor(tensor, field.bytes, arena, err) : plumb_no_memory(err);
        } else if (bytes && (field.number == F_BUFFER || field.number == F_SPACE)) {
            /* Behind everything that is compared; only their shape as a message matters. */
            struct ge_tensor rest = {.part = field.number == F_BUFFER ? GE_BUFFER : GE_SPACE};
            code = parse_tensor(&rest, field.bytes, arena, err);
        } else if (bytes && field.number == F_VERSION) {
            code = copy_text(&ge->version, &field, arena, err);
        } else if (bytes && field.number == F_NAME) {
            code = copy_text(&ge->op_name, &field, arena, err);
        } else if (field.type == WIRE_VARINT && field.number == F_TIME) {
            ge->dump_time = field.value;
        }
    }
    for (int i = 0; i < 2 && !code; i++)
        code = ge_place(lists[i].items, lists[i].count, ge->size, &position, ge->path, arena, err);
    if (code)
        return code;
    ge->inputs = lists[0].items;
    ge->input_count = lists[0].count;
    ge->outputs = lists[1].items;
    ge->output_count = lists[1].count;
    return PLUMB_OK;
}

enum plumb_code ge_parse(struct ge_file *ge, const struct plumb_file *file, const char *path,
                         struct arena *arena, struct plumb_error *err)
{
    *ge = (struct ge_file){.path = path,
                           .version = "",
                           .op_name = "",
                           .size = file->file_size,
                           .mtime_ns = file->mtime_ns};
    if (file->size < 8)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 0,
                             "%llu bytes are too few for a GE dump file, which begins with the "
                             "length of its header",
                             (unsigned long long)file->size);
    uint64_t header = bytes_le64(file->data);
    if (header > file->size - 8)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 0,
                             "the header should have %llu bytes where %llu follow: cut short, or "
                             "no GE dump file",
                             (unsigned long long)header, (unsigned long long)(file->size - 8));
    const uint8_t *begin = file->data + 8;
    if (header >= 4 && bytes_le32(begin) == NANO_MAGIC) {
        ge->nano = true;
        return ge_parse_nano(ge, file, header, arena, err);
    }
    return parse_message(ge, (struct wire){begin, begin, begin + header, 8}, arena, err);
}

enum plumb_code ge_open(struct ge_file *ge, const char *path, struct arena *arena,
                        struct plumb_error *err)
{
    struct mapped in;
    if (ge_is_condensed(path))
        return ge_open_condensed(ge, path, arena, err);
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    return mapped_close(&in, ge_parse(ge, &in.file, path, arena, err), err);
}
