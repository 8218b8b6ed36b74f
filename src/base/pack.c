/* Values as bytes, and back. */
#define _GNU_SOURCE
#include "base/pack.h"

#include <string.h>

enum { MOST_DIGITS = 10 }; /* of 64 bits, seven at a time */

struct pack pack_writer(struct buf *out)
{
    return (struct pack){.out = out};
}

struct pack pack_reader(const void *bytes, size_t size)
{
    return (struct pack){.from = bytes, .left = size};
}

bool pack_good(const struct pack *pack)
{
    return pack->out ? !pack->out->failed : !pack->bad && !pack->left;
}

bool pack_check(struct pack *pack, bool holds)
{
    pack->bad = pack->bad || !holds;
    return !pack->bad;
}

/* So many bytes to read, or NULL. */
static const uint8_t *take(struct pack *pack, size_t size)
{
    if (!pack_check(pack, size <= pack->left))
        return NULL;
    const uint8_t *at = pack->from;
    pack->from += size;
    pack->left -= size;
    return at;
}

static uint64_t read_number(struct pack *pack)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < MOST_DIGITS; i++) {
        const uint8_t *byte = take(pack, 1);
        if (!byte)
            return 0;
        value |= (uint64_t)(*byte & 0x7F) << 7 * i;
        if (!(*byte & 0x80))
            return value;
    }
    pack->bad = true;
    return 0;
}

static void write_number(struct buf *out, uint64_t value)
{
    uint8_t digits[MOST_DIGITS];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        digits[count++] = (uint8_t)(value | 0x80);
    digits[count++] = (uint8_t)value;
    buf_append(out, digits, count);
}

void pack_u64(struct pack *pack, uint64_t *value)
{
    if (pack->out)
        write_number(pack->out, *value);
    else
        *value = read_number(pack);
}

void pack_i64(struct pack *pack, int64_t *value)
{
    uint64_t folded = (uint64_t)*value << 1 ^ (*value < 0 ? UINT64_MAX : 0);
    pack_u64(pack, &folded);
    if (!pack->out)
        *value = (int64_t)(folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0));
}

void pack_u32(struct pack *pack, uint32_t *value)
{
    uint64_t wide = *value;
    pack_u64(pack, &wide);
    *value = pack_check(pack, wide <= UINT32_MAX) ? (uint32_t)wide : 0;
}

void pack_size(struct pack *pack, size_t *value)
{
    uint64_t wide = *value;
    pack_u64(pack, &wide);
    *value = pack_check(pack, wide <= SIZE_MAX) ? (size_t)wide : 0;
}

void pack_below(struct pack *pack, unsigned *value, unsigned end)
{
    uint64_t wide = *value;
    pack_u64(pack, &wide);
    *value = pack_check(pack, wide < end) ? (unsigned)wide : 0;
}

void pack_bool(struct pack *pack, bool *value)
{
    unsigned number = *value;
    pack_below(pack, &number, 2);
    *value = number;
}

void pack_real(struct pack *pack, double *value)
{
    if (pack->out) {
        buf_append(pack->out, value, sizeof *value);
        return;
    }
    const uint8_t *bytes = take(pack, sizeof *value);
    *value = 0;
    if (bytes)
        memcpy(value, bytes, sizeof *value);
}

void pack_bytes(struct pack *pack, const void **bytes, size_t *size)
{
    pack_size(pack, size);
    if (pack->out) {
        buf_append(pack->out, *bytes, *size);
        return;
    }
    *bytes = take(pack, *size);
    if (!*bytes)
        *size = 0;
}

void pack_text(struct pack *pack, const char **text, struct arena *arena)
{
    bool any = pack->out && *text;
    const void *bytes = pack->out ? *text : NULL;
    size_t size = any ? strlen(*text) : 0;
    pack_bool(pack, &any);
    if (any)
        pack_bytes(pack, &bytes, &size);
    if (pack->out)
        return;
    *text = any && bytes && !memchr(bytes, 0, size) ? arena_copy(arena, bytes, size) : NULL;
    pack_check(pack, !any || *text);
}

static void pack_array(struct pack *pack, char *text, size_t capacity)
{
    const void *bytes = text;
    size_t size = pack->out ? strnlen(text, capacity - 1) : 0;
    pack_bytes(pack, &bytes, &size);
    if (pack->out)
        return;
    if (!pack_check(pack, size < capacity))
        size = 0;
    if (size)
        memcpy(text, bytes, size);
    text[size] = 0;
}

void pack_error(struct pack *pack, struct plumb_error *err)
{
    unsigned code = pack->out ? err->code : 0;
    if (!pack->out)
        *err = (struct plumb_error){0};
    pack_below(pack, &code, PLUMB_E_ARG + 1);
    err->code = (enum plumb_code)code;
    pack_u64(pack, &err->offset);
    pack_array(pack, err->file, sizeof err->file);
    pack_array(pack, err->message, sizeof err->message);
}
