/* The divergence of pairs that are close, in float32; in the words of a singles_LEVEL.h. See
 * kl_short() of kernel_c.c, which is the definition. */
#ifndef METRIC_KERNEL_SHORT_H
#define METRIC_KERNEL_SHORT_H

INLINE s16 short_weight(s16 x)
{
    const s16 sum = fused_singles(x, all_singles(SHORT_LOG2E), all_singles(0x1.8p23f));
    s16 r = product_less_singles(x, all_singles(SHORT_LOG2E),
                                 subtract_singles(sum, all_singles(0x1.8p23f)));
    r = fused_singles(x, all_singles(SHORT_LOG2E_REST), r);
    s16 p = all_singles(kernel_short2[WEIGHT_TERMS - 1]);
    for (int i = WEIGHT_TERMS - 2; i >= 0; i--)
        p = fused_singles(p, r, all_singles(kernel_short2[i]));
    return singles_times_power(p, sum);
}

struct short16 {
    s16 golden, shift, curve;
};

INLINE struct short16 add_short(struct short16 s, s16 t, s16 g)
{
    const s16 d = subtract_singles(t, g), weight = short_weight(g);
    s16 half = fused_singles(d, all_singles(1.0f / 120), all_singles(1.0f / 24));
    half = fused_singles(half, d, all_singles(1.0f / 6));
    half = fused_singles(half, d, all_singles(0.5f));
    const s16 shift = multiply_singles(weight, d);
    return (struct short16){add_singles(s.golden, weight), add_singles(s.shift, shift),
                            fused_singles(multiply_singles(shift, d), half, s.curve)};
}

INLINE struct kl8 add_run(struct kl8 k, struct short16 s)
{
    const v8 golden = folded(s.golden), shift = folded(s.shift);
    k.golden = add(k.golden, golden);
    k.target = add(k.target, add(golden, add(shift, folded(s.curve))));
    k.weighted = subtract(k.weighted, shift);
    return k;
}

INLINE bool kl_short_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct kl_lanes *out)
{
    if (type == KERNEL_F64)
        return false;
    struct kl8 k = get_kl(out);
    s16 most = all_singles(0);
    size_t i = 0;
    for (; i + KL_RUN <= n; i += KL_RUN) {
        struct short16 s = {all_singles(0), all_singles(0), all_singles(0)};
        NO_UNROLL
        for (size_t j = i; j < i + KL_RUN; j += 16) {
            const s16 y = load16(type, g, j);
            most = larger_sizes(most, y);
            s = add_short(s, load16(type, t, j), y);
        }
        k = add_run(k, s);
    }
    struct kl_lanes sums;
    put_kl(&sums, k);
    if (largest_single(most) > KL_SHORT ||
        (i < n &&
         !kernels_c.pair_kl_short[type](element(type, t, i), element(type, g, i), n - i, &sums)))
        return false;
    *out = sums;
    return true;
}

#endif
