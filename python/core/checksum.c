/* Checksums of a tensor's dense bytes. */
#include "core.h"

#include <libdeflate.h>
#include <stdbool.h>
#include <string.h>

enum { PIECE_BYTES = 64 * 1024 };

struct bytes {
    const unsigned char *data;
    size_t size;
};

/* The next piece, beginning with element *at: all of a dense tensor, else a part gathered into
 * room. False at the end. */
static bool next_piece(const struct plumb_tensor *tensor, uint64_t *at, unsigned char *room,
                       struct bytes *piece)
{
    if (*at >= tensor->count)
        return false;
    if (tensor->dense) {
        *piece = (struct bytes){tensor->data, (size_t)plumb_tensor_bytes(tensor)};
        *at = tensor->count;
        return true;
    }
    const size_t size = plumb_dtype_info(tensor->dtype)->bits / 8, most = PIECE_BYTES / size;
    const size_t n = tensor->count - *at < most ? (size_t)(tensor->count - *at) : most;
    plumb_tensor_gather(tensor, *at, n, room);
    *piece = (struct bytes){room, n * size};
    *at += n;
    return true;
}

uint32_t core_tensor_crc32(const struct plumb_tensor *tensor)
{
    unsigned char room[PIECE_BYTES];
    struct bytes piece;
    uint32_t crc = 0;
    for (uint64_t at = 0; next_piece(tensor, &at, room, &piece);)
        crc = libdeflate_crc32(crc, piece.data, piece.size);
    return crc;
}

uint64_t core_tensor_xor64(const struct plumb_tensor *tensor)
{
    unsigned char room[PIECE_BYTES];
    struct bytes piece;
    uint64_t sum = 0;
    /* Only the last piece can end in half a word. */
    for (uint64_t at = 0; next_piece(tensor, &at, room, &piece);) {
        const size_t whole = piece.size / sizeof sum * sizeof sum;
        uint64_t word;
        for (size_t i = 0; i < whole; i += sizeof word) {
            memcpy(&word, piece.data + i, sizeof word);
            sum ^= word;
        }
        if (piece.size > whole) {
            word = 0;
            memcpy(&word, piece.data + whole, piece.size - whole);
            sum ^= word;
        }
    }
    return sum;
}
