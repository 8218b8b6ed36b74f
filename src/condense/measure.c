#include "condense/measure.h"

#include "metric/kept.h"

enum { ELEMENTS_BETWEEN_QUESTIONS = 1 << 20 };

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
    struct kept_state state = {0};
    struct kernels kernels = kernels_current();
    *out = (struct measured){0};
    for (uint64_t at = 0; at < tensor->count; at += ELEMENTS_BETWEEN_QUESTIONS) {
        if (stop && stop(context))
            return false;
        kept_tensor(&state, &kernels, tensor, at, ELEMENTS_BETWEEN_QUESTIONS);
    }
    stats_finish(&state.stats, &out->stats);
    stats_finish_finite(&state.stats, &out->finite);
    out->crc = state.crc;
    if (keep & PLUMB_KEEP_SKETCH)
        take_sketch(out, tensor);
    return true;
}
