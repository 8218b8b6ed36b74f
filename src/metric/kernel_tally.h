/* The kernels over float64 values, in the words of a vec_LEVEL.h, which is included before.
 *
 * What is left over after whole vectors goes through the C version, which continues with lane 0. */
#ifndef METRIC_KERNEL_TALLY_H
#define METRIC_KERNEL_TALLY_H

/* Products of two values of at most 24 significant bits are exact in float64, so that fused and
 * separate multiply-add round alike; for those types the fused form is used. */
INLINE v8 add_product(enum kernel_type type, v8 sum, v8 a, v8 b)
{
    if (type == KERNEL_F64)
        return add(sum, multiply(a, b));
    return fused(a, b, sum);
}

struct errors8 {
    v8 tg, tt, gg, dd;
    x8 max;
};

INLINE struct errors8 get_error(const struct error_lanes *p)
{
    return (struct errors8){get(p->tg), get(p->tt), get(p->gg), get(p->dd), extreme(p->max)};
}

INLINE void put_error(struct error_lanes *p, struct errors8 e)
{
    put(p->tg, e.tg);
    put(p->tt, e.tt);
    put(p->gg, e.gg);
    put(p->dd, e.dd);
    p->max = largest(e.max);
}

INLINE struct errors8 add_error(enum kernel_type type, struct errors8 e, v8 t, v8 g, v8 d)
{
    e.tg = add_product(type, e.tg, t, g);
    e.tt = add_product(type, e.tt, t, t);
    e.gg = add_product(type, e.gg, g, g);
    e.dd = add_product(KERNEL_F64, e.dd, d, d);
    e.max = raise_to_size(e.max, d);
    return e;
}

static void error(const double *t, const double *g, const double *d, size_t n,
                  struct error_lanes *out)
{
    struct errors8 e = get_error(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        e = add_error(KERNEL_F64, e, get(t + i), get(g + i), get(d + i));
    put_error(out, e);
    kernels_c.error(t + i, g + i, d + i, n - i, out);
}

struct relative8 {
    x8 max;
    n8 below_5e3, below_1e3;
};

INLINE struct relative8 get_relative(const struct relative_counts *p)
{
    return (struct relative8){extreme(p->max), no_counts(), no_counts()};
}

INLINE void put_relative(struct relative_counts *p, struct relative8 x)
{
    p->max = largest(x.max);
    p->below_5e3 += counted(x.below_5e3);
    p->below_1e3 += counted(x.below_1e3);
}

INLINE struct relative8 add_relative(struct relative8 x, v8 r)
{
    x.max = raise_to(x.max, r);
    x.below_5e3 = count(x.below_5e3, not_at_least(r, all(5e-3)));
    x.below_1e3 = count(x.below_1e3, not_at_least(r, all(1e-3)));
    return x;
}

static void relative_tally(const double *r, size_t n, struct relative_counts *out)
{
    struct relative8 x = get_relative(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_relative(x, get(r + i));
    put_relative(out, x);
    kernels_c.relative_tally(r + i, n - i, out);
}

struct ratio8 {
    v8 sum;
    n8 below_1e2, below_1e4;
};

INLINE struct ratio8 add_ratio(struct ratio8 x, v8 r)
{
    x.sum = add(x.sum, only(at_least(r, all(0)), r));
    x.below_1e2 = count(x.below_1e2, not_at_least(r, all(1e-2)));
    x.below_1e4 = count(x.below_1e4, not_at_least(r, all(1e-4)));
    return x;
}

INLINE void put_ratio(struct ratio_lanes *p, struct ratio8 x)
{
    put(p->sum, x.sum);
    p->below_1e2 += counted(x.below_1e2);
    p->below_1e4 += counted(x.below_1e4);
}

static void ratio_tally(const double *r, size_t n, struct ratio_lanes *out)
{
    struct ratio8 x = {get(out->sum), no_counts(), no_counts()};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_ratio(x, get(r + i));
    put_ratio(out, x);
    kernels_c.ratio_tally(r + i, n - i, out);
}

struct close8 {
    n8 close, above, below;
};

INLINE struct close8 no_close(void)
{
    return (struct close8){no_counts(), no_counts(), no_counts()};
}

INLINE void put_close(struct close_counts *p, struct close8 x)
{
    p->close += counted(x.close);
    p->above += counted(x.above);
    p->below += counted(x.below);
}

INLINE m8 is_close(v8 size, v8 g, const struct close_limits *limits)
{
    return at_most(size, add(all(limits->atol), multiply(all(limits->rtol), size_of(g))));
}

INLINE struct close8 add_close(struct close8 x, v8 d, v8 g, const struct close_limits *limits)
{
    const v8 zero = all(0);
    x.close = count(x.close, is_close(size_of(d), g, limits));
    x.above = count(x.above, above(d, zero));
    x.below = count(x.below, above(zero, d));
    return x;
}

static void close(const double *d, const double *g, size_t n, const struct close_limits *limits,
                  struct close_counts *out)
{
    struct close8 x = no_close();
    n8 greater = no_counts();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const v8 difference = get(d + i);
        x = add_close(x, difference, get(g + i), limits);
        greater = count(greater, above(size_of(difference), all(limits->gt)));
    }
    put_close(out, x);
    out->greater += counted(greater);
    kernels_c.close(d + i, g + i, n - i, limits, out);
}

struct absolute8 {
    v8 sum;
    x8 min;
};

INLINE struct absolute8 add_absolute(struct absolute8 x, v8 size)
{
    x.sum = add(x.sum, size);
    x.min = lower_to_positive(x.min, size);
    return x;
}

/* How many sizes are over some of the limits: as many as there are registers for. */
INLINE void count_over(const double *d, size_t n, int first, int last, struct absolute_lanes *out)
{
    n8 over[ABS_LIMITS];
    for (int k = first; k < last; k++)
        over[k] = no_counts();
    for (size_t i = 0; i < n; i += 8) {
        const v8 size = size_of(get(d + i));
        for (int k = first; k < last; k++)
            over[k] = count(over[k], above(size, all(kernel_abs_limits[k])));
    }
    for (int k = first; k < last; k++)
        out->over[k] += counted(over[k]);
}

static void absolute(const double *d, size_t n, struct absolute_lanes *out)
{
    struct absolute8 x = {get(out->sum), extreme(out->min)};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_absolute(x, size_of(get(d + i)));
    put(out->sum, x.sum);
    out->min = smallest(x.min);
    count_over(d, i, 0, 4, out);
    count_over(d, i, 4, ABS_LIMITS, out);
    kernels_c.absolute(d + i, n - i, out);
}

struct ulps8 {
    v8 sum;
    x8 max;
    n8 over;
};

INLINE struct ulps8 add_ulps(struct ulps8 x, v8 u, double threshold)
{
    x.sum = add(x.sum, u);
    x.max = raise_to(x.max, u);
    x.over = count(x.over, above(u, all(threshold)));
    return x;
}

INLINE void put_ulps(struct ulp_lanes *p, struct ulps8 x)
{
    put(p->sum, x.sum);
    p->max = largest(x.max);
    p->over += counted(x.over);
}

static void ulp_tally(const double *u, size_t n, double threshold, struct ulp_lanes *out)
{
    struct ulps8 x = {get(out->sum), extreme(out->max), no_counts()};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_ulps(x, get(u + i), threshold);
    put_ulps(out, x);
    kernels_c.ulp_tally(u + i, n - i, threshold, out);
}

struct small8 {
    n8 small, errors;
};

INLINE struct small8 add_small(struct small8 x, v8 d, v8 g, const struct small_limits *limits)
{
    const m8 is_small = at_most(size_of(g), all(limits->value));
    x.small = count(x.small, is_small);
    x.errors = count(x.errors, both(is_small, above(size_of(d), all(limits->error))));
    return x;
}

INLINE void put_small(struct small_counts *p, struct small8 x)
{
    p->small += counted(x.small);
    p->errors += counted(x.errors);
}

static void small(const double *d, const double *g, size_t n, const struct small_limits *limits,
                  struct small_counts *out)
{
    struct small8 x = {no_counts(), no_counts()};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        x = add_small(x, get(d + i), get(g + i), limits);
    put_small(out, x);
    kernels_c.small(d + i, g + i, n - i, limits, out);
}

struct range8 {
    v8 sum, min, max;
};

INLINE struct range8 get_range(const struct range_lanes *p)
{
    return (struct range8){get(p->sum), get(p->min), get(p->max)};
}

INLINE void put_range(struct range_lanes *p, struct range8 x)
{
    put(p->sum, x.sum);
    put(p->min, x.min);
    put(p->max, x.max);
}

INLINE struct range8 add_range(struct range8 r, v8 x)
{
    return (struct range8){add(r.sum, x), smaller(x, r.min), larger(x, r.max)};
}

static void range(const double *x, size_t n, struct range_lanes *out)
{
    struct range8 r = get_range(out);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        r = add_range(r, get(x + i));
    put_range(out, r);
    kernels_c.range(x + i, n - i, out);
}

/* From values to what is tallied. */

static void difference(const double *t, const double *g, size_t n, double *d)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(d + i, subtract(get(t + i), get(g + i)));
    kernels_c.difference(t + i, g + i, n - i, d + i);
}

static void relative(const double *d, const double *g, size_t n, double *r)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(r + i, divide(size_of(get(d + i)), size_of(get(g + i))));
    kernels_c.relative(d + i, g + i, n - i, r + i);
}

INLINE v8 ulps_of(v8 d, v8 g, int emin, double factor)
{
    return multiply(multiply(size_of(d), unit_of(g, emin)), all(factor));
}

static void ulps(const double *d, const double *g, size_t n, const struct ulp_scale *scale,
                 double *u)
{
    const double factor = ldexp(1, scale->precision - 1);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        put(u + i, ulps_of(get(d + i), get(g + i), scale->emin, factor));
    kernels_c.ulps(d + i, g + i, n - i, scale, u + i);
}

#endif
