/* The elements of a tensor, written to a file. */
#include "tensor/output.h"

#include <stdlib.h>

enum { PIECE_BYTES = 256 * 1024 };

static void swap_bytes(unsigned char *bytes, size_t size, size_t width)
{
    for (size_t at = 0; at + width <= size; at += width)
        for (size_t i = 0, j = width - 1; i < j; i++, j--) {
            unsigned char byte = bytes[at + i];
            bytes[at + i] = bytes[at + j];
            bytes[at + j] = byte;
        }
}

enum plumb_code tensor_output(struct output *out, const struct plumb_tensor *tensor,
                              struct plumb_error *err)
{
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    bool swap = tensor->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) && bits > 8;
    if (tensor->dense && !swap)
        return output_bytes(out, tensor->data, plumb_tensor_bytes(tensor), err);

    unsigned char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    uint64_t room = (uint64_t)PIECE_BYTES * 8 / bits;
    for (uint64_t first = 0; first < tensor->count && !code; first += room) {
        uint64_t left = tensor->count - first;
        size_t count = (size_t)(left < room ? left : room);
        plumb_tensor_gather(tensor, first, count, piece);
        size_t bytes = (count * bits + 7) / 8;
        if (swap)
            swap_bytes(piece, bytes, bits / 8 / plumb_dtype_parts(tensor->dtype));
        code = output_bytes(out, piece, bytes, err);
    }
    free(piece);
    return code;
}
