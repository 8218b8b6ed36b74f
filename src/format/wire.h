/* The wire format of protobuf: a flat sequence of numbered fields. Just enough of it to read
 * messages whose schema is known; fields nobody asks for are stepped over. */
#ifndef FORMAT_WIRE_H
#define FORMAT_WIRE_H

#include "plumb/error.h"

#include <stdbool.h>

/* Bytes of a message inside a file; `next` moves. */
struct wire {
    const uint8_t *begin, *next, *end;
    uint64_t base; /* position of begin in the file, for errors */
};

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint32_t number;
    enum wire_type type;
    uint64_t value;    /* of numbers */
    struct wire bytes; /* of WIRE_BYTES: a string, a message, or packed numbers */
    uint64_t at;       /* where the field begins in the file */
};

/* The next field. *more is false at the end of the message. PLUMB_E_FORMAT with the position when
 * the bytes are not a message. */
enum plumb_code wire_next(struct wire *wire, struct wire_field *field, bool *more,
                          struct plumb_error *err);

/* A varint by itself, as packed lists hold them. */
enum plumb_code wire_varint(struct wire *wire, uint64_t *value, struct plumb_error *err);

static inline uint64_t wire_at(const struct wire *wire)
{
    return wire->base + (uint64_t)(wire->next - wire->begin);
}

#endif
