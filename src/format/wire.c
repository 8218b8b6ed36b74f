/* The wire format of protobuf. */
#include "format/wire.h"

#include "format/bytes.h"

enum plumb_code wire_varint(struct wire *wire, uint64_t *value, struct plumb_error *err)
{
    uint64_t at = wire_at(wire), result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (wire->next == wire->end)
            return plumb_fail_at(err, PLUMB_E_FORMAT, at, "the message ends inside a number");
        uint8_t byte = *wire->next++;
        if (shift == 63 && byte > 1)
            break;
        result |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = result;
            return PLUMB_OK;
        }
    }
    return plumb_fail_at(err, PLUMB_E_FORMAT, at, "a number of more than 64 bits");
}

/* Steps over size bytes and makes them the field's. */
static enum plumb_code take(struct wire *wire, uint64_t size, struct wire_field *field,
                            struct plumb_error *err)
{
    if (size > (uint64_t)(wire->end - wire->next))
        return plumb_fail_at(
            err, PLUMB_E_FORMAT, field->at, "field %u promises %llu bytes where %llu are left",
            field->number, (unsigned long long)size, (unsigned long long)(wire->end - wire->next));
    field->bytes = (struct wire){wire->next, wire->next, wire->next + size, wire_at(wire)};
    wire->next += size;
    return PLUMB_OK;
}

enum plumb_code wire_next(struct wire *wire, struct wire_field *field, bool *more,
                          struct plumb_error *err)
{
    *field = (struct wire_field){.at = wire_at(wire)};
    *more = wire->next != wire->end;
    if (!*more)
        return PLUMB_OK;
    uint64_t key, size = 0;
    enum plumb_code code = wire_varint(wire, &key, err);
    if (code)
        return code;
    if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
        return plumb_fail_at(err, PLUMB_E_FORMAT, field->at, "a field without a valid number");
    field->number = (uint32_t)(key >> 3);
    field->type = (enum wire_type)(key & 7);
    switch (field->type) {
    case WIRE_VARINT:
        return wire_varint(wire, &field->value, err);
    case WIRE_FIXED64:
        code = take(wire, 8, field, err);
        field->value = code ? 0 : bytes_le64(field->bytes.begin);
        return code;
    case WIRE_FIXED32:
        code = take(wire, 4, field, err);
        field->value = code ? 0 : bytes_le32(field->bytes.begin);
        return code;
    case WIRE_BYTES:
        code = wire_varint(wire, &size, err);
        return code ? code : take(wire, size, field, err);
    }
    return plumb_fail_at(err, PLUMB_E_FORMAT, field->at, "field %u has the unknown wire type %u",
                         field->number, (unsigned)(key & 7));
}
