/* GE dump files, made by hand. Include after cmocka.h. */
#ifndef TESTS_TORCHAIR_GE_MAKE_H
#define TESTS_TORCHAIR_GE_MAKE_H

#include "base/buf.h"

#include <stdbool.h>
#include <string.h>

struct made_tensor {
    bool output;
    unsigned type, format, sub_format;
    unsigned rank, original_rank;
    uint64_t shape[8], original[8];
    const void *data;
    uint64_t size;
};

static inline void make_varint(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_append(out, &(uint8_t){(uint8_t)(value | 0x80)}, 1);
    buf_append(out, &(uint8_t){(uint8_t)value}, 1);
}

static inline void make_number(struct buf *out, unsigned field, uint64_t value)
{
    make_varint(out, field << 3);
    make_varint(out, value);
}

static inline void make_bytes(struct buf *out, unsigned field, const void *bytes, size_t size)
{
    make_varint(out, field << 3 | 2);
    make_varint(out, size);
    buf_append(out, bytes, size);
}

static inline void make_shape(struct buf *out, unsigned field, const uint64_t *dim, unsigned rank)
{
    struct buf packed = {0}, message = {0};
    for (unsigned i = 0; i < rank; i++)
        make_varint(&packed, dim[i]);
    if (rank)
        make_bytes(&message, 1, packed.data, packed.size);
    make_bytes(out, field, message.data ? message.data : "", message.size);
    buf_free(&packed);
    buf_free(&message);
}

static inline void make_le64(struct buf *out, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        buf_append(out, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void make_le32(struct buf *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        buf_append(out, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

/* A whole file; tensors of one kind keep their order. Free with buf_free. */
static inline struct buf make_ge(const struct made_tensor *tensors, size_t count)
{
    struct buf header = {0}, file = {0};
    make_bytes(&header, 1, "2.0", 3);
    make_number(&header, 2, 1740800000000000);
    make_bytes(&header, 77, "later", 5); /* a field that plumb does not know */
    for (size_t i = 0; i < count; i++) {
        const struct made_tensor *t = &tensors[i];
        struct buf message = {0};
        make_number(&message, 1, t->type);
        make_number(&message, 2, t->format);
        make_shape(&message, 3, t->shape, t->rank);
        make_number(&message, t->output ? 6 : 5, t->size);
        make_shape(&message, t->output ? 7 : 6, t->original, t->original_rank);
        if (t->sub_format)
            make_number(&message, t->output ? 8 : 7, t->sub_format);
        make_bytes(&header, t->output ? 3 : 4, message.data, message.size);
        buf_free(&message);
    }
    make_bytes(&header, 6, "MyOp", 4);
    make_le64(&file, header.size);
    buf_append(&file, header.data, header.size);
    for (int outputs = 0; outputs < 2; outputs++)
        for (size_t i = 0; i < count; i++)
            if (tensors[i].output == (outputs == 1))
                buf_append(&file, tensors[i].data, tensors[i].size);
    buf_free(&header);
    assert_false(file.failed);
    return file;
}

#endif
