/* Blocks of a tensor, dense and in native byte order. */
#include "metric/dense.h"

const void *dense_block(const struct plumb_tensor *tensor, uint64_t first, size_t n,
                        struct room *room)
{
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    if (tensor->dense && !tensor->swap)
        return (const char *)tensor->data + first * bits / 8;
    plumb_tensor_gather(tensor, first, n, room->bytes);
    size_t width = bits / 8 / plumb_dtype_parts(tensor->dtype);
    if (tensor->swap && width > 1) {
        size_t total = n * bits / 8;
        for (size_t at = 0; at < total; at += width)
            for (size_t i = 0; i < width / 2; i++) {
                unsigned char byte = room->bytes[at + i];
                room->bytes[at + i] = room->bytes[at + width - 1 - i];
                room->bytes[at + width - 1 - i] = byte;
            }
    }
    return room->bytes;
}

int kernel_type_of(enum plumb_dtype dtype)
{
    switch (dtype) {
    case PLUMB_F64:
    case PLUMB_C128:
        return KERNEL_F64;
    case PLUMB_F32:
    case PLUMB_C64:
        return KERNEL_F32;
    case PLUMB_F16:
        return KERNEL_F16;
    case PLUMB_BF16:
        return KERNEL_BF16;
    default:
        return -1;
    }
}

void dense_load(const struct kernels *kernels, enum plumb_dtype dtype, const void *data,
                size_t numbers, double *out)
{
    int type = kernel_type_of(dtype);
    if (type >= 0)
        kernels->load[type](data, numbers, out);
    else
        plumb_to_f64(dtype, data, 0, numbers, false, out);
}
