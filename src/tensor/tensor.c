/* Tensors as strided views. */
#include "plumb/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum plumb_code plumb_tensor_init(struct plumb_tensor *tensor, enum plumb_dtype dtype,
                                  unsigned rank, const int64_t *shape, struct plumb_error *err)
{
    if (rank > PLUMB_MAX_RANK)
        return plumb_fail(err, PLUMB_E_FORMAT, "%u dimensions, more than the %d plumb can hold",
                          rank, PLUMB_MAX_RANK);
    tensor->dtype = dtype;
    tensor->swap = false;
    tensor->rank = rank;
    tensor->dense = true;
    tensor->data = NULL;

    /* Zero-sized dimensions do not excuse the others: their product must fit all the same. */
    uint64_t count = 1, extent = 1, bytes;
    for (unsigned i = rank; i-- > 0;) {
        if (shape[i] < 0)
            return plumb_fail(err, PLUMB_E_FORMAT, "dimension %u has the negative size %" PRId64, i,
                              shape[i]);
        tensor->shape[i] = shape[i];
        tensor->stride[i] = (int64_t)extent;
        uint64_t size = (uint64_t)shape[i];
        count *= size;
        if (__builtin_mul_overflow(extent, size ? size : 1, &extent) ||
            !plumb_dtype_bytes(dtype, extent, &bytes) || bytes > INT64_MAX)
            return plumb_fail(err, PLUMB_E_FORMAT, "the shape promises more than 2^63 bytes");
    }
    tensor->count = count;
    return PLUMB_OK;
}

enum plumb_code plumb_tensor_set_strides(struct plumb_tensor *tensor, const int64_t *stride,
                                         uint64_t offset, uint64_t available,
                                         struct plumb_error *err)
{
    bool dense = true;
    int64_t lowest = 0, highest = 0; /* element offsets the view reaches, relative to its start */
    uint64_t extent = 1;             /* the stride that C order would have */
    for (unsigned i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] != 1 && (uint64_t)stride[i] != extent)
            dense = false;
        extent *= tensor->shape[i] ? (uint64_t)tensor->shape[i] : 1;
        int64_t reach;
        if (tensor->count && (__builtin_mul_overflow(tensor->shape[i] - 1, stride[i], &reach) ||
                              __builtin_add_overflow(reach < 0 ? lowest : highest, reach,
                                                     reach < 0 ? &lowest : &highest)))
            return plumb_fail(err, PLUMB_E_FORMAT, "stride %" PRId64 " of dimension %u overflows",
                              stride[i], i);
    }
    if (tensor->count && (offset >= available || (uint64_t) - (lowest + 1) + 1 > offset ||
                          (uint64_t)highest >= available - offset))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the view reaches outside its storage of %" PRIu64 " elements",
                          available);
    if (!dense && plumb_dtype_info(tensor->dtype)->bits < 8)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "a strided view of a packed 4-bit type");
    /* The stride of a dimension of size 1 leads nowhere; a wild one must not overflow on the
     * way. */
    for (unsigned i = 0; i < tensor->rank; i++)
        tensor->stride[i] = tensor->shape[i] == 1 ? 0 : stride[i];
    tensor->dense = dense || tensor->count == 0;
    return PLUMB_OK;
}

uint64_t plumb_tensor_bytes(const struct plumb_tensor *tensor)
{
    uint64_t bytes = 0;
    plumb_dtype_bytes(tensor->dtype, tensor->count, &bytes);
    return bytes;
}

/* Walks elements [first, first+count) of a strided tensor as runs along the last dimension. */
struct walk {
    const struct plumb_tensor *tensor;
    int64_t at[PLUMB_MAX_RANK];
    int64_t position; /* element offset of the current run's first element */
};

static void walk_start(struct walk *walk, const struct plumb_tensor *tensor, uint64_t first)
{
    walk->tensor = tensor;
    walk->position = 0;
    for (unsigned i = tensor->rank; i-- > 0;) {
        uint64_t size = (uint64_t)tensor->shape[i];
        walk->at[i] = (int64_t)(first % size);
        walk->position += walk->at[i] * tensor->stride[i];
        first /= size;
    }
}

/* The length of the run at the current place, at most `limit`, stepping over it. */
static size_t walk_run(struct walk *walk, size_t limit, int64_t *position, int64_t *step)
{
    const struct plumb_tensor *tensor = walk->tensor;
    unsigned last = tensor->rank - 1;
    uint64_t left = (uint64_t)(tensor->shape[last] - walk->at[last]);
    size_t run = left < limit ? (size_t)left : limit;
    *position = walk->position;
    *step = tensor->stride[last];

    walk->at[last] += (int64_t)run;
    walk->position += (int64_t)run * tensor->stride[last];
    for (unsigned i = last; i > 0 && walk->at[i] == tensor->shape[i]; i--) {
        walk->position -= tensor->shape[i] * tensor->stride[i];
        walk->at[i] = 0;
        walk->at[i - 1]++;
        walk->position += tensor->stride[i - 1];
    }
    return run;
}

void plumb_tensor_gather(const struct plumb_tensor *tensor, uint64_t first, size_t count, void *out)
{
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    const unsigned char *data = tensor->data;
    if (!count)
        return;
    if (bits < 8) {
        memcpy(out, data + first / 2, (count + 1) / 2);
        return;
    }
    size_t size = bits / 8;
    if (tensor->dense) {
        memcpy(out, data + first * size, count * size);
        return;
    }
    struct walk walk;
    walk_start(&walk, tensor, first);
    unsigned char *to = out;
    while (count) {
        int64_t position, step;
        size_t run = walk_run(&walk, count, &position, &step);
        const unsigned char *from = data + position * (int64_t)size;
        if (step == 1) {
            memcpy(to, from, run * size);
        } else {
            for (size_t i = 0; i < run; i++)
                memcpy(to + i * size, from + (int64_t)i * step * (int64_t)size, size);
        }
        to += run * size;
        count -= run;
    }
}

void plumb_tensor_to_f64(const struct plumb_tensor *tensor, uint64_t first, size_t count,
                         double *out)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    if (tensor->dense) {
        plumb_to_f64(tensor->dtype, tensor->data, first * parts, count * parts, tensor->swap, out);
        return;
    }
    unsigned char piece[4096];
    size_t room = sizeof piece / (plumb_dtype_info(tensor->dtype)->bits / 8);
    while (count) {
        size_t n = count < room ? count : room;
        plumb_tensor_gather(tensor, first, n, piece);
        plumb_to_f64(tensor->dtype, piece, 0, n * parts, tensor->swap, out);
        first += n;
        count -= n;
        out += n * parts;
    }
}

bool plumb_tensor_is_zero(const struct plumb_tensor *tensor, uint64_t first)
{
    enum { PIECE = 512 };
    double numbers[2 * PIECE];
    const size_t parts = plumb_dtype_parts(tensor->dtype);
    for (uint64_t at = first; at < tensor->count; at += PIECE) {
        const uint64_t left = tensor->count - at;
        const size_t count = left < PIECE ? (size_t)left : PIECE;
        plumb_tensor_to_f64(tensor, at, count, numbers);
        for (size_t i = 0; i < count * parts; i++)
            if (numbers[i] != 0)
                return false;
    }
    return true;
}

const char *plumb_dims_text(unsigned rank, const int64_t *shape, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (unsigned i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

const char *plumb_shape_text(const struct plumb_tensor *tensor, char *text, size_t size)
{
    return plumb_dims_text(tensor->rank, tensor->shape, text, size);
}

bool plumb_shape_equivalent(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    unsigned i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->shape[i] == 1)
            i++;
        while (j < b->rank && b->shape[j] == 1)
            j++;
        if (i == a->rank || j == b->rank)
            return i == a->rank && j == b->rank;
        if (a->shape[i++] != b->shape[j++])
            return false;
    }
}
