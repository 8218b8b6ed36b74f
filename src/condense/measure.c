#include "condense/measure.h"

#include "metric/dense.h"
#include "metric/stats.h"

#include <libdeflate.h>
#include <math.h>

enum { BLOCKS_BETWEEN_QUESTIONS = 1024 };

uint64_t measure_index(uint64_t n, unsigned k)
{
    enum { STEPS = PLUMB_SKETCH_VALUES - 1 };
    if (n <= PLUMB_SKETCH_VALUES)
        return k;
    uint64_t last = n - 1;
    return last / STEPS * k + last % STEPS * k / STEPS; /* k * last / STEPS, but never too large */
}

static void take_sketch(struct measured *out, const struct plumb_tensor *tensor)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    bool packed = plumb_dtype_info(tensor->dtype)->bits < 8;
    uint64_t numbers = tensor->count * parts;
    out->sketch_count = numbers < PLUMB_SKETCH_VALUES ? (unsigned)numbers : PLUMB_SKETCH_VALUES;
    for (unsigned k = 0; k < out->sketch_count; k++) {
        uint64_t index = measure_index(numbers, k), element = index / parts;
        uint64_t first = packed ? element & ~UINT64_C(1) : element;
        double values[2];
        plumb_tensor_to_f64(tensor, first, (size_t)(element - first) + 1, values);
        out->sketch[k] = values[packed ? element - first : index % parts];
    }
}

bool measure(struct measured *out, const struct plumb_tensor *tensor, unsigned keep,
             bool (*stop)(const void *context), const void *context)
{
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    unsigned bits = plumb_dtype_info(tensor->dtype)->bits;
    size_t block = PLUMB_METRIC_BLOCK / parts;
    struct stats_state stats = {0};
    struct kernels kernels = kernels_current();
    struct room room;
    double x[PLUMB_METRIC_BLOCK];

    *out = (struct measured){0};
    for (uint64_t at = 0, asked = 0; at < tensor->count; asked++) {
        uint64_t left = tensor->count - at;
        size_t n = left < block ? (size_t)left : block;
        const void *bytes = dense_block(tensor, at, n, &room);
        dense_load(&kernels, tensor->dtype, bytes, n * parts, x);
        for (size_t i = 0; parts == 2 && i < n; i++)
            x[i] = hypot(x[2 * i], x[2 * i + 1]);
        stats_values(&stats, &kernels, x, n);
        if (keep & PLUMB_KEEP_CRC32)
            out->crc = libdeflate_crc32(out->crc, bytes, (n * bits + 7) / 8);
        at += n;
        if (stop && asked % BLOCKS_BETWEEN_QUESTIONS == 0 && stop(context))
            return false;
    }
    stats_finish(&stats, &out->stats);
    if (keep & PLUMB_KEEP_SKETCH)
        take_sketch(out, tensor);
    return true;
}
