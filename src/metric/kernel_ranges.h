/* Whole blocks for statistics and sketches, in the words of a vec_LEVEL.h: converted once, with
 * their ranges, and then their deviations. */
#ifndef METRIC_KERNEL_RANGES_H
#define METRIC_KERNEL_RANGES_H

INLINE void ranges_kernel(enum kernel_type type, const void *data, double *wide,
                          struct range_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        struct range8 r = {all(0), all(INFINITY), all(-INFINITY)};
        for (size_t i = b * N; i < (b + 1) * N; i += 8) {
            const v8 x = load8(type, data, i);
            __builtin_prefetch((const char *)element(type, data, i) + KERNEL_AHEAD, 0, 2);
            if (type != KERNEL_F64)
                put(wide + i, x);
            r = add_range(r, x);
        }
        put_range(&out[b], r);
    }
}

static void centres(const double *wide, const double *middle, struct centre_lanes *out)
{
    for (size_t b = 0; b < SIDE_BY_SIDE; b++) {
        out[b] = (struct centre_lanes){0};
        centre_kernel(KERNEL_F64, wide + b * PLUMB_METRIC_BLOCK, PLUMB_METRIC_BLOCK, middle[b],
                      &out[b]);
    }
}

#endif
