/* The table of a level: kernel_tally.h, kernel_pair.h and kernel_all.h for every type. */
#ifndef METRIC_KERNEL_TABLE_H
#define METRIC_KERNEL_TABLE_H

#include "metric/kernel_bits.h"

#define TYPED(suffix, type)                                                                        \
    static void load_##suffix(const void *data, size_t n, double *out)                             \
    {                                                                                              \
        load_kernel(type, data, n, out);                                                           \
    }                                                                                              \
    static void pair_error_##suffix(const void *t, const void *g, size_t n,                        \
                                    struct error_lanes *out)                                       \
    {                                                                                              \
        error_kernel(type, t, g, n, out);                                                          \
    }                                                                                              \
    static void pair_relative_##suffix(const void *t, const void *g, size_t n,                     \
                                       struct error_lanes *errors,                                 \
                                       struct relative_counts *relatives)                          \
    {                                                                                              \
        relative_kernel(type, t, g, n, errors, relatives);                                         \
    }                                                                                              \
    static void pair_close_##suffix(const void *t, const void *g, size_t n,                        \
                                    const struct close_limits *limits, struct close_counts *out)   \
    {                                                                                              \
        close_kernel(type, t, g, n, limits, out);                                                  \
    }                                                                                              \
    static void pair_kl_##suffix(const void *t, const void *g, size_t n, struct kl_lanes *out)     \
    {                                                                                              \
        kl_kernel(type, t, g, n, out);                                                             \
    }                                                                                              \
    static void pair_kl_near_##suffix(const void *t, const void *g, size_t n,                      \
                                      struct kl_lanes *out)                                        \
    {                                                                                              \
        kl_near_kernel(type, t, g, n, out);                                                        \
    }                                                                                              \
    static void pair_all_##suffix(const void *t, const void *g, size_t n,                          \
                                  const struct all_limits *limits, struct all_sums *out,           \
                                  uint8_t *classes)                                                \
    {                                                                                              \
        all_kernel(type, t, g, n, limits, out, classes);                                           \
    }                                                                                              \
    static void centre_##suffix(const void *data, size_t n, double middle,                         \
                                struct centre_lanes *out)                                          \
    {                                                                                              \
        centre_kernel(type, data, n, middle, out);                                                 \
    }                                                                                              \
    static bool pair_kl_short_##suffix(const void *t, const void *g, size_t n,                     \
                                       struct kl_lanes *out)                                       \
    {                                                                                              \
        return kl_short_kernel(type, t, g, n, out);                                                \
    }                                                                                              \
    static void ranges_##suffix(const void *data, double *wide, struct range_lanes *out)           \
    {                                                                                              \
        ranges_kernel(type, data, wide, out);                                                      \
    }

TYPED(f64, KERNEL_F64)
TYPED(f32, KERNEL_F32)
TYPED(f16, KERNEL_F16)
TYPED(bf16, KERNEL_BF16)

#define OF_ALL_TYPES(name)                                                                         \
    {                                                                                              \
        name##_f64, name##_f32, name##_f16, name##_bf16                                            \
    }

static const struct kernels level = {
    .name = LEVEL,
    .load = OF_ALL_TYPES(load),
    .widen = widen_bytes,
    .difference = difference,
    .relative = relative,
    .ulps = ulps,
    .error = error,
    .relative_tally = relative_tally,
    .ratio_tally = ratio_tally,
    .close = close,
    .absolute = absolute,
    .ulp_tally = ulp_tally,
    .small = small,
    .range = range,
    .find_bins = find_bins,
    .count_bins = count_bins,
    .differing = differing,
    .crc32 = crc32_of,
    .sketch = sketch,
    .hash_eight = hash_of_eight,
    .pair_error = OF_ALL_TYPES(pair_error),
    .pair_relative = OF_ALL_TYPES(pair_relative),
    .pair_close = OF_ALL_TYPES(pair_close),
    .pair_kl = OF_ALL_TYPES(pair_kl),
    .pair_kl_near = OF_ALL_TYPES(pair_kl_near),
    .pair_all = OF_ALL_TYPES(pair_all),
    .pair_kl_short = OF_ALL_TYPES(pair_kl_short),
    .centre = OF_ALL_TYPES(centre),
    .ranges = OF_ALL_TYPES(ranges),
    .centres = centres,
};

#endif
