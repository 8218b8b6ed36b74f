/* Little-endian numbers at any address. */
#ifndef FORMAT_BYTES_H
#define FORMAT_BYTES_H

#include <stdint.h>

static inline uint16_t bytes_le16(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t bytes_le32(const uint8_t *at)
{
    return bytes_le16(at) | (uint32_t)bytes_le16(at + 2) << 16;
}

static inline uint64_t bytes_le64(const uint8_t *at)
{
    return bytes_le32(at) | (uint64_t)bytes_le32(at + 4) << 32;
}

#endif
