/* CRC-32 of bytes that arrive in pieces, in any order. */
#ifndef METRIC_CRC_H
#define METRIC_CRC_H

#include <stdint.h>

/* What a piece with checksum crc contributes to the checksum of the whole, when `after` more bytes
 * follow it. The checksum of the whole is the exclusive or of all contributions. */
uint32_t crc_contribution(uint32_t crc, uint64_t after);

#endif
