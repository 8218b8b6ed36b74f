/* The hottest kernel on AVX-512. */
#ifndef METRIC_RELATIVE_AVX512_H
#define METRIC_RELATIVE_AVX512_H

#include "metric/vec_avx512.h"

#include "metric/relative_x86.h"

/* As float64: float32 are converted as they are loaded. */
INLINE v8 widened(enum kernel_type type, const void *data, size_t i, f8 x)
{
    return type == KERNEL_F32 ? load8(type, data, i) : _mm512_cvtps_pd(x);
}

INLINE struct errors8 add_eight_pairs(enum kernel_type type, struct errors8 e, v8 t, v8 g)
{
    return add_error(type, e, t, g, subtract(t, g));
}

INLINE void narrow_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                          struct error_lanes *errors, struct relative_counts *relatives)
{
    struct errors8 e = get_error(errors);
    struct relative_counts counts = *relatives;
    f8 most = all_floats(nearly(type, counts.max));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const f8 t0 = floats8(type, t, i), g0 = floats8(type, g, i);
        const f8 t1 = floats8(type, t, i + 8), g1 = floats8(type, g, i + 8);
        const struct left a = left_of(t0, g0, most), b = left_of(t1, g1, most);
        count_left(a, b, &counts);
        e = add_eight_pairs(type, e, widened(type, t, i, t0), widened(type, g, i, g0));
        e = add_eight_pairs(type, e, widened(type, t, i + 8, t1), widened(type, g, i + 8, g1));
        if (may_be_largest(a, b)) {
            counts.max = raise_ratio(type, t, g, i, counts.max);
            most = all_floats(nearly(type, counts.max));
        }
    }
    put_error(errors, e);
    *relatives = counts;
    if (i < n)
        kernels_c.pair_relative[type](element(type, t, i), element(type, g, i), n - i, errors,
                                      relatives);
}

INLINE void relative_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct error_lanes *errors, struct relative_counts *relatives)
{
    if (type == KERNEL_F64)
        quotient_kernel(type, t, g, n, errors, relatives);
    else
        narrow_kernel(type, t, g, n, errors, relatives);
}

#endif
