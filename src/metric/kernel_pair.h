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

/* See kernel_exp. */
INLINE v8 exp8(v8 x)
{
    const double *c = kernel_exp2;
    const v8 sum = fused(x, all(KERNEL_LOG2E), all(0x1.8p52));
    const v8 r = product_less(x, all(KERNEL_LOG2E), subtract(sum, all(0x1.8p52)));
    const v8 r2 = multiply(r, r), r4 = multiply(r2, r2);
    const v8 p01 = fused(r, all(c[1]), all(c[0])), p23 = fused(r, all(c[3]), all(c[2]));
    const v8 p45 = fused(r, all(c[5]), all(c[4])), p67 = fused(r, all(c[7]), all(c[6]));
    const v8 p89 = fused(r, all(c[9]), all(c[8]));
    const v8 low = fused(p23, r2, p01), high = fused(p67, r2, p45);
    return times_power(fused(fused(p89, r4, high), r4, low), sum);
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
    const v8 d = subtract(t, g), d2 = multiply(d, d), weight = exp8(g);
    const v8 high = fused(d2, all(1.0 / 720), fused(d, all(1.0 / 120), all(1.0 / 24)));
    const v8 low = fused(d, all(1.0 / 6), all(0.5));
    const v8 growth = fused(fused(high, d2, low), d2, add(all(1.0), d));
    k.golden = add(k.golden, weight);
    k.target = fused(weight, growth, k.target);
    k.weighted = less_product(k.weighted, weight, d);
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

#ifdef REST_APART
INLINE void rest_kernel(enum kernel_type type, bool near, const void *t, const void *g, size_t n,
                        const double middle[2], struct kl_lanes *kl, struct centre_lanes centre[2])
{
    (near ? kl_near_kernel : kl_kernel)(type, t, g, n, kl);
    centre_kernel(type, t, n, middle[0], &centre[0]);
    centre_kernel(type, g, n, middle[1], &centre[1]);
}
#else
/* Exponentials are multiplications, deviations additions: processors do both at a time. */
INLINE void rest_kernel(enum kernel_type type, bool near, const void *t, const void *g, size_t n,
                        const double middle[2], struct kl_lanes *kl, struct centre_lanes centre[2])
{
    struct kl8 k = get_kl(kl);
    struct centre8 a = get_centre(&centre[0]), b = get_centre(&centre[1]);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 x = load8(type, t, i), y = load8(type, g, i);
        k = near ? add_kl_near(k, x, y) : add_kl(k, x, y);
        a = add_centre(a, x, all(middle[0]));
        b = add_centre(b, y, all(middle[1]));
    }
    put_kl(kl, k);
    put_centre(&centre[0], a);
    put_centre(&centre[1], b);
    if (i < n)
        kernels_c.pair_rest[type](element(type, t, i), element(type, g, i), n - i, near, middle, kl,
                                  centre);
}
#endif

/* TOGETHER blocks at a time: as many as there are registers for. */
_Static_assert(SIDE_BY_SIDE % TOGETHER == 0, "whole groups of blocks");

INLINE void ranges_kernel(enum kernel_type type, const void *data, struct range_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    const struct range8 nothing = {all(0), all(INFINITY), all(-INFINITY)};
    for (size_t first = 0; first < SIDE_BY_SIDE; first += TOGETHER) {
        struct range8 r[TOGETHER];
        for (size_t b = 0; b < TOGETHER; b++)
            r[b] = nothing;
        for (size_t i = 0; i < N; i += 8)
            for (size_t b = 0; b < TOGETHER; b++)
                r[b] = add_range(r[b], load8(type, data, (first + b) * N + i));
        for (size_t b = 0; b < TOGETHER; b++)
            put_range(&out[first + b], r[b]);
    }
}

INLINE void centres_kernel(enum kernel_type type, const void *data, const double *middle,
                           struct centre_lanes *out)
{
    enum { N = PLUMB_METRIC_BLOCK };
    for (size_t first = 0; first < SIDE_BY_SIDE; first += TOGETHER) {
        struct centre8 r[TOGETHER];
        for (size_t b = 0; b < TOGETHER; b++)
            r[b] = (struct centre8){all(0), all(0)};
        for (size_t i = 0; i < N; i += 8)
            for (size_t b = 0; b < TOGETHER; b++)
                r[b] = add_centre(r[b], load8(type, data, (first + b) * N + i),
                                  all(middle[first + b]));
        for (size_t b = 0; b < TOGETHER; b++)
            put_centre(&out[first + b], r[b]);
    }
}

#endif
