/* The headers of objects in HDF5 files, of both versions. */
#include "format/h5header.h"

#include "format/bytes.h"

#include <string.h>

enum { CHUNKS_MOST = 64, CHECKSUM = 4, FLAG_SHARED = 2, FLAGS_KNOWN = 0x7f };

/* Flags of a header of version 2. */
enum { WIDTH = 3, ORDERED = 4, PHASES = 16, TIMES = 32, ALL_FLAGS = 63 };

struct header {
    struct h5_image *image;
    bool (*use)(void *context, const struct h5_message *message);
    void *context;
    unsigned version, head; /* head: bytes before the data of a message */
    size_t messages;
    unsigned chunk_count;
    struct chunk {
        uint64_t address, size;
    } chunks[CHUNKS_MOST];
};

const uint8_t *h5_image_at(struct h5_image *image, uint64_t address, uint64_t size)
{
    if (address > image->size || size > image->size - address || size > image->patience)
        return NULL;
    image->patience -= size;
    return image->data + address;
}

static uint32_t turn(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* lookup3 of Bob Jenkins, which is in the public domain. */
static uint32_t checksum(const uint8_t *at, size_t size)
{
    uint32_t a = 0xdeadbeef + (uint32_t)size, b = a, c = a;
    uint8_t rest[12] = {0};
    for (; size > 12; at += 12, size -= 12) {
        a += bytes_le32(at), b += bytes_le32(at + 4), c += bytes_le32(at + 8);
        a -= c, a ^= turn(c, 4), c += b;
        b -= a, b ^= turn(a, 6), a += c;
        c -= b, c ^= turn(b, 8), b += a;
        a -= c, a ^= turn(c, 16), c += b;
        b -= a, b ^= turn(a, 19), a += c;
        c -= b, c ^= turn(b, 4), b += a;
    }
    if (!size)
        return c;
    memcpy(rest, at, size);
    a += bytes_le32(rest), b += bytes_le32(rest + 4), c += bytes_le32(rest + 8);
    c ^= b, c -= turn(b, 14);
    a ^= c, a -= turn(c, 11);
    b ^= a, b -= turn(a, 25);
    c ^= b, c -= turn(b, 16);
    a ^= c, a -= turn(c, 4);
    b ^= a, b -= turn(a, 14);
    c ^= b, c -= turn(b, 24);
    return c;
}

static bool checked(const uint8_t *at, uint64_t size)
{
    return size >= CHECKSUM &&
           checksum(at, (size_t)size - CHECKSUM) == bytes_le32(at + size - CHECKSUM);
}

static bool add_chunk(struct header *header, uint64_t address, uint64_t size)
{
    if (header->chunk_count == CHUNKS_MOST || !h5_image_at(header->image, address, size))
        return false;
    header->chunks[header->chunk_count++] = (struct chunk){address, size};
    return true;
}

/* What was left over of an earlier header stays in a list of messages without being one of them. */
static bool go_on(struct header *header, const struct h5_message *message)
{
    if (message->size < 16)
        return false;
    uint64_t address = bytes_le64(message->data), size = bytes_le64(message->data + 8);
    if (header->version == 2) {
        const uint8_t *at = h5_image_at(header->image, address, size);
        if (!at || size < 4 + CHECKSUM || memcmp(at, "OCHK", 4) != 0 || !checked(at, size))
            return false;
        address += 4;
        size -= 4 + CHECKSUM;
    }
    return add_chunk(header, address, size);
}

static bool read_chunk(struct header *header, const struct chunk *chunk)
{
    const uint8_t *at = header->image->data + chunk->address, *end = at + chunk->size;
    while ((size_t)(end - at) >= header->head) {
        const bool old = header->version == 1;
        struct h5_message message = {.type = old ? bytes_le16(at) : at[0],
                                     .size = bytes_le16(at + (old ? 2 : 1)),
                                     .data = at + header->head};
        const unsigned flags = at[old ? 4 : 3];
        if (message.size > (size_t)(end - message.data) || (flags & FLAG_SHARED) ||
            (flags & ~(unsigned)FLAGS_KNOWN) || (old && message.size % 8))
            return false;
        header->messages++;
        const bool fine = message.type == H5_MESSAGE_GOES_ON
                              ? go_on(header, &message)
                              : header->use(header->context, &message);
        if (!fine)
            return false;
        at = message.data + message.size;
    }
    return header->version == 2 || at == end;
}

static bool begin_old(struct header *header, uint64_t address, size_t *promised)
{
    const uint8_t *at = h5_image_at(header->image, address, 16);
    if (!at || at[0] != 1 || bytes_le32(at + 4) != 1)
        return false;
    header->version = 1;
    header->head = 8;
    *promised = bytes_le16(at + 2);
    return add_chunk(header, address + 16, bytes_le32(at + 8));
}

static bool begin_new(struct header *header, uint64_t address)
{
    const uint8_t *at = h5_image_at(header->image, address, 6);
    if (!at || memcmp(at, "OHDR", 4) != 0 || at[4] != 2 || at[5] & ~(unsigned)ALL_FLAGS)
        return false;
    const unsigned flags = at[5], width = 1u << (flags & WIDTH);
    const uint64_t before = 6u + (flags & TIMES ? 16u : 0u) + (flags & PHASES ? 4u : 0u) + width;
    at = h5_image_at(header->image, address, before);
    uint64_t size = 0;
    for (unsigned i = 0; at && i < width; i++)
        size |= (uint64_t)at[before - width + i] << (8 * i);
    if (!at || size > header->image->size)
        return false;
    at = h5_image_at(header->image, address, before + size + CHECKSUM);
    header->version = 2;
    header->head = flags & ORDERED ? 6 : 4;
    return at && checked(at, before + size + CHECKSUM) && add_chunk(header, address + before, size);
}

bool h5header_each(struct h5_image *image, uint64_t address,
                   bool (*use)(void *context, const struct h5_message *message), void *context)
{
    struct header header = {.image = image, .use = use, .context = context};
    size_t promised = 0;
    if (!begin_new(&header, address) && !begin_old(&header, address, &promised))
        return false;
    for (unsigned i = 0; i < header.chunk_count; i++) {
        const struct chunk chunk = header.chunks[i];
        if (!read_chunk(&header, &chunk))
            return false;
    }
    return header.version == 2 || header.messages == promised;
}
