/* The kernels over stored values, in the words of a vec_LEVEL.h; see kernel_tally.h. */
#ifndef METRIC_KERNEL_PAIR_H
#define METRIC_KERNEL_PAIR_H

/* The address of element i, for handing the rest of a block to the C version. */
INLINE const void *element(enum kernel_type type, const void *data, size_t i)
{
    return (const char *)data + i * kernel_width(type);
}

INLINE void load_kernel(enum kernel_type type, const void *data, size_t n, double *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(out + i, load8(type, data, i));
    if (i < n)
        kernels_c.load[type](element(type, data, i), n - i, out + i);
}

INLINE void error_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                         struct error_lanes *out)
{
    struct errors8 e = get_error(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 x = load8(type, t, i), y = load8(type, g, i);
        e = add_error(type, e, x, y, subtract(x, y));
    }
    put_error(out, e);
    if (i < n)
        kernels_c.pair_error[type](element(type, t, i), element(type, g, i), n - i, out);
}

INLINE void quotient_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                            struct error_lanes *errors, struct relative_counts *relatives)
{
    struct errors8 e = get_error(errors);
    struct relative8 r = get_relative(relatives);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 x = load8(type, t, i), y = load8(type, g, i), d = subtract(x, y);
        e = add_error(type, e, x, y, d);
        r = add_relative(r, divide(size_of(d), size_of(y)));
    }
    put_error(errors, e);
    put_relative(relatives, r);
    if (i < n)
        kernels_c.pair_relative[type](element(type, t, i), element(type, g, i), n - i, errors,
                                      relatives);
}

/* Differences over limits->gt, which is zero for most: then all but the equal ones are. */
INLINE uint64_t count_greater(enum kernel_type type, const void *t, const void *g, size_t n,
                              double gt, uint64_t unequal)
{
    if (gt == 0)
        return unequal;
    n8 greater = no_counts();
    for (size_t i = 0; i < n; i += 8)
        greater =
            count(greater, above(size_of(subtract(load8(type, t, i), load8(type, g, i))), all(gt)));
    return counted(greater);
}

INLINE void close_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                         const struct close_limits *limits, struct close_counts *out)
{
    struct close8 x = no_close();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 y = load8(type, g, i);
        x = add_close(x, subtract(load8(type, t, i), y), y, limits);
    }
    put_close(out, x);
    out->greater += count_greater(type, t, g, i, limits->gt, counted(x.above) + counted(x.below));
    if (i < n)
        kernels_c.pair_close[type](element(type, t, i), element(type, g, i), n - i, limits, out);
}

/* See power_of_e in kernel_c.c. One term after another: few operations count more than long chains,
 * of which processors have several under way. */
INLINE v8 power_of_e(v8 x, const double *terms, int count)
{
    const v8 sum = fused(x, all(KERNEL_LOG2E), all(0x1.8p52));
    const v8 r = product_less(x, all(KERNEL_LOG2E), subtract(sum, all(0x1.8p52)));
    v8 p = all(terms[count - 1]);
    for (int i = count - 2; i >= 0; i--)
        p = fused(p, r, all(terms[i]));
    return times_power(p, sum);
}

INLINE v8 exp8(v8 x)
{
    return power_of_e(x, kernel_exp2, EXP_TERMS);
}

struct kl8 {
    v8 golden, target, weighted;
};

INLINE struct kl8 get_kl(const struct kl_lanes *p)
{
    return (struct kl8){get(p->golden), get(p->target), get(p->weighted)};
}

INLINE void put_kl(struct kl_lanes *p, struct kl8 x)
{
    put(p->golden, x.golden);
    put(p->target, x.target);
    put(p->weighted, x.weighted);
}

INLINE struct kl8 add_kl(struct kl8 k, v8 t, v8 g)
{
    const v8 weight = exp8(g);
    k.golden = add(k.golden, weight);
    k.weighted = fused(weight, subtract(g, t), k.weighted);
    k.target = add(k.target, exp8(t));
    return k;
}

INLINE struct kl8 add_kl_near(struct kl8 k, v8 t, v8 g)
{
    const v8 d = subtract(t, g), weight = power_of_e(g, kernel_weight2, WEIGHT_TERMS);
    v8 growth = fused(d, all(1.0 / 120), all(1.0 / 24));
    growth = fused(growth, d, all(1.0 / 6));
    growth = fused(growth, d, all(0.5));
    growth = fused(growth, d, all(1.0));
    const v8 shift = multiply(weight, d);
    k.golden = add(k.golden, weight);
    k.target = add(k.target, fused(shift, growth, weight));
    k.weighted = subtract(k.weighted, shift);
    return k;
}

INLINE void kl_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                      struct kl_lanes *out)
{
    struct kl8 k = get_kl(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        k = add_kl(k, load8(type, t, i), load8(type, g, i));
    put_kl(out, k);
    if (i < n)
        kernels_c.pair_kl[type](element(type, t, i), element(type, g, i), n - i, out);
}

INLINE void kl_near_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                           struct kl_lanes *out)
{
    struct kl8 k = get_kl(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        k = add_kl_near(k, load8(type, t, i), load8(type, g, i));
    put_kl(out, k);
    if (i < n)
        kernels_c.pair_kl_near[type](element(type, t, i), element(type, g, i), n - i, out);
}

/* Statistics. */

struct centre8 {
    v8 sum, squares;
};

/* Product and sum are rounded apart, as in plain C. */
INLINE struct centre8 add_centre(struct centre8 r, v8 x, v8 middle)
{
    const v8 deviation = subtract(x, middle);
    return (struct centre8){add(r.sum, deviation), add(r.squares, multiply(deviation, deviation))};
}

INLINE struct centre8 get_centre(const struct centre_lanes *p)
{
    return (struct centre8){get(p->sum), get(p->squares)};
}

INLINE void put_centre(struct centre_lanes *p, struct centre8 r)
{
    put(p->sum, r.sum);
    put(p->squares, r.squares);
}

INLINE void centre_kernel(enum kernel_type type, const void *data, size_t n, double middle,
                          struct centre_lanes *out)
{
    struct centre8 r = get_centre(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        r = add_centre(r, load8(type, data, i), all(middle));
    put_centre(out, r);
    if (i < n)
        kernels_c.centre[type](element(type, data, i), n - i, middle, out);
}

#endif
