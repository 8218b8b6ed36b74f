/* The second container of GE dumps: little-endian records in a tag-length-value list.
 *
 *     u32 magic, u32 version, then TLVs (u32 tag, u32 length): 4 = inputs, 5 = outputs,
 *     each: u32 count, then records that end with a TLV list of their own (0 shape, 1 original) */
#include "format/bytes.h"
#include "format/ge_file.h"
#include "format/ge_type.h"

enum { TAG_INPUTS = 4, TAG_OUTPUTS = 5, TAG_SHAPE = 0, TAG_ORIGINAL = 1 };

struct reader {
    const uint8_t *begin, *next, *end; /* begin is byte 0 of the file */
};

static uint64_t left(const struct reader *reader)
{
    return (uint64_t)(reader->end - reader->next);
}

static uint64_t at(const struct reader *reader)
{
    return (uint64_t)(reader->next - reader->begin);
}

static enum plumb_code fail_short(const struct reader *reader, struct plumb_error *err)
{
    return plumb_fail_at(err, PLUMB_E_FORMAT, at(reader), "the header ends inside a record");
}

static uint32_t take32(struct reader *reader)
{
    reader->next += 4;
    return bytes_le32(reader->next - 4);
}

static uint64_t take64(struct reader *reader)
{
    reader->next += 8;
    return bytes_le64(reader->next - 8);
}

/* Opens the TLV at reader: inner covers its value, reader moves behind it. */
static enum plumb_code take_tlv(struct reader *reader, uint32_t *tag, struct reader *inner,
                                struct plumb_error *err)
{
    if (left(reader) < 8)
        return fail_short(reader, err);
    *tag = take32(reader);
    uint32_t length = take32(reader);
    if (length > left(reader))
        return plumb_fail_at(err, PLUMB_E_FORMAT, at(reader) - 4,
                             "a part of %u bytes where %llu are left", length,
                             (unsigned long long)left(reader));
    *inner = (struct reader){reader->begin, reader->next, reader->next + length};
    reader->next += length;
    return PLUMB_OK;
}

static enum plumb_code take_dims(struct ge_dims *dims, struct reader inner, struct arena *arena,
                                 struct plumb_error *err)
{
    uint64_t rank = left(&inner) / 8;
    if (left(&inner) % 8 || rank > PLUMB_MAX_RANK)
        return plumb_fail_at(err, PLUMB_E_FORMAT, at(&inner), "a shape of %llu bytes",
                             (unsigned long long)left(&inner));
    uint64_t *copy = arena_array(arena, (size_t)rank, sizeof *copy);
    if (!copy)
        return plumb_no_memory(err);
    for (uint64_t i = 0; i < rank; i++)
        copy[i] = take64(&inner);
    *dims = (struct ge_dims){(unsigned)rank, copy};
    return PLUMB_OK;
}

static enum plumb_code take_record(struct reader *reader, struct ge_tensor *tensor,
                                   struct arena *arena, struct plumb_error *err)
{
    /* Outputs say in between which original output they are: index, type and format. */
    size_t numbers = tensor->part == GE_OUTPUT ? 6 : 3;
    if (left(reader) < numbers * 4 + 3 * 8 + 4)
        return fail_short(reader, err);
    tensor->type = ge_type_of_runtime((int32_t)take32(reader));
    tensor->format = (int32_t)take32(reader);
    reader->next += (numbers - 2) * 4 + 2 * 8; /* address type, originals, address, offset */
    tensor->size = take64(reader);
    uint32_t length = take32(reader);
    if (length > left(reader))
        return fail_short(reader, err);
    struct reader list = {reader->begin, reader->next, reader->next + length};
    reader->next += length;
    while (left(&list)) {
        uint32_t tag = 0;
        struct reader inner;
        enum plumb_code code = take_tlv(&list, &tag, &inner, err);
        if (!code && tag == TAG_SHAPE)
            code = take_dims(&tensor->shape, inner, arena, err);
        else if (!code && tag == TAG_ORIGINAL)
            code = take_dims(&tensor->original, inner, arena, err);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

static enum plumb_code take_records(struct reader reader, enum ge_part part, struct ge_tensor **out,
                                    size_t *count, struct arena *arena, struct plumb_error *err)
{
    if (left(&reader) < 4)
        return fail_short(&reader, err);
    uint32_t promised = take32(&reader);
    if (promised > left(&reader) / 40) /* the least a record takes */
        return plumb_fail_at(err, PLUMB_E_FORMAT, at(&reader) - 4,
                             "%u records do not fit into %llu bytes", promised,
                             (unsigned long long)left(&reader));
    struct ge_tensor *tensors = arena_array(arena, promised, sizeof *tensors);
    if (!tensors)
        return plumb_no_memory(err);
    for (uint32_t i = 0; i < promised; i++) {
        tensors[i].part = part;
        tensors[i].index = i;
        enum plumb_code code = take_record(&reader, &tensors[i], arena, err);
        if (code)
            return code;
    }
    *out = tensors;
    *count = promised;
    return PLUMB_OK;
}

enum plumb_code ge_parse_nano(struct ge_file *ge, const struct plumb_file *file,
                              uint64_t header_size, struct arena *arena, struct plumb_error *err)
{
    struct reader reader = {file->data, file->data + 8, file->data + 8 + header_size};
    uint64_t position = 8 + header_size;
    if (left(&reader) < 8)
        return fail_short(&reader, err);
    reader.next += 4;
    ge->version = arena_printf(arena, "%u", take32(&reader));
    if (!ge->version)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    while (!code && left(&reader)) {
        uint32_t tag = 0;
        struct reader inner;
        code = take_tlv(&reader, &tag, &inner, err);
        if (!code && tag == TAG_INPUTS)
            code = take_records(inner, GE_INPUT, &ge->inputs, &ge->input_count, arena, err);
        else if (!code && tag == TAG_OUTPUTS)
            code = take_records(inner, GE_OUTPUT, &ge->outputs, &ge->output_count, arena, err);
    }
    if (!code)
        code = ge_place(ge->inputs, ge->input_count, ge->size, &position, ge->path, arena, err);
    if (!code)
        code = ge_place(ge->outputs, ge->output_count, ge->size, &position, ge->path, arena, err);
    return code;
}
