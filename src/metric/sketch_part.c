/* Sketches of parts, with the indices of the whole. */
#include "metric/sketch.h"
#include "plumb/metric.h"

/* How many elements of the part lie behind each other in the whole too: its last axis, and those
 * before it as long as all behind them is there. */
static uint64_t run_of(const struct plumb_tensor *part, const int64_t *shape)
{
    uint64_t run = 1;
    for (unsigned i = part->rank; i--;) {
        run *= (uint64_t)part->shape[i];
        if (part->shape[i] != shape[i])
            break;
    }
    return run;
}

/* Where element `index` of the part is in the whole. */
static uint64_t place_of(const struct plumb_tensor *part, const int64_t *shape,
                         const int64_t *offset, uint64_t index)
{
    uint64_t place = 0, inner = 1;
    for (unsigned i = part->rank; i--;) {
        const uint64_t size = (uint64_t)part->shape[i];
        place += (index % size + (uint64_t)offset[i]) * inner;
        index /= size;
        inner *= (uint64_t)shape[i];
    }
    return place;
}

static enum plumb_code check(const struct plumb_tensor *part, const int64_t *shape,
                             const int64_t *offset, struct plumb_error *err)
{
    struct plumb_tensor whole;
    enum plumb_code code = plumb_tensor_init(&whole, part->dtype, part->rank, shape, err);
    for (unsigned i = 0; i < part->rank && !code; i++)
        if (offset[i] < 0 || offset[i] > shape[i] - part->shape[i])
            code = plumb_fail(err, PLUMB_E_ARG, "a part that leaves the whole along axis %u", i);
    return code;
}

enum plumb_code sketch_part(struct sketch_state *sketch, const struct plumb_tensor *part,
                            const int64_t *shape, const int64_t *offset, struct plumb_error *err)
{
    const struct kernels kernels = kernels_current();
    const unsigned numbers = plumb_dtype_parts(part->dtype);
    double x[PLUMB_METRIC_BLOCK];
    enum plumb_code code = check(part, shape, offset, err);
    if (code || !part->count)
        return code;
    const uint64_t run = run_of(part, shape);
    for (uint64_t at = 0; at < part->count;) {
        const uint64_t left = run - at % run;
        const size_t most = sizeof x / sizeof *x / numbers, n = left < most ? (size_t)left : most;
        plumb_tensor_to_f64(part, at, n, x);
        sketch_add(sketch, &kernels, place_of(part, shape, offset, at) * numbers, x, n * numbers,
                   false);
        at += n;
    }
    return PLUMB_OK;
}
