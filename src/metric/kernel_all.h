/* The kernel for all groups at once, in the words of a vec_LEVEL.h; see kernel_tally.h.
 *
 * One loop for all sums wants more registers than there are. Where that is slow, a level names
 * several short ones (ALL_LOOPS), over a part of the block that stays in the first-level cache. */
#ifndef METRIC_KERNEL_ALL_H
#define METRIC_KERNEL_ALL_H

#include "metric/classes.h"

/* What a loop adds up. Constants where used, so that each loop has its own code. */
enum part {
    PART_ERROR = 1,
    PART_RANGE = 2, /* of both sides */
    PART_CLOSE = 4,
    PART_ABSOLUTE = 8,
    PART_SMALL = 16,
    PART_RATIO = 32,
    PART_ULP = 64,
    PART_SORT = 128, /* |d| by class */
    ALL_PARTS = 255,
};

enum { PIECE = 256, STEP = 64 };

/* What is known of a block before its loops. */
struct preview {
    double min[2][LANES], max[2][LANES]; /* of t, of g */
    bool ordinary; /* known, and every g is as large as the least normal number, or larger */
    bool small;    /* may some g be small? */
};

struct all8 {
    struct errors8 error;
    struct range8 range[2];
    n8 close, below;
    struct absolute8 absolute;
    struct small8 small;
    x8 max_ratio;
    v8 ratio;
    struct ulps8 ulp;
};

/* ULPs are counted in the last places of 1 but for float64, whose may overflow: elsewhere the
 * factor between the two, a power of two, can wait for the sum. */
struct ulp_units {
    int emin, power; /* of the factor that waits */
    double factor, threshold;
};

INLINE double power_of_2(int k)
{
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE struct ulp_units units_of(enum kernel_type type, const struct ulp_scale *scale)
{
    const int power = type == KERNEL_F64 ? 0 : scale->precision - 1;
    return (struct ulp_units){.emin = scale->emin,
                              .power = power,
                              .factor = power_of_2(scale->precision - 1 - power),
                              .threshold = scale->threshold * power_of_2(-power)};
}

INLINE v8 units8(enum kernel_type type, bool ordinary, v8 size, v8 g, const struct ulp_units *units)
{
    const v8 u = multiply(size, ordinary ? unit_of_normal(g) : unit_of(g, units->emin));
    return type == KERNEL_F64 ? multiply(u, all(units->factor)) : u;
}

/* Least and greatest values need no float64, in which all else is computed, and take half the time
 * without. With the least size of golden they tell what the loops may leave out. */
INLINE struct preview preview_of(enum kernel_type type, const void *t, const void *g, size_t n,
                                 const struct all_limits *limits)
{
    struct preview view = {.ordinary = false};
    if (type == KERNEL_F64)
        return view;
    f8 min[2], max[2], least = all_floats(INFINITY);
    min[0] = min[1] = least;
    max[0] = max[1] = all_floats(-INFINITY);
    for (size_t i = 0; i < n; i += 8) {
        const f8 x = floats8(type, t, i), y = floats8(type, g, i);
        min[0] = smaller_floats(x, min[0]);
        max[0] = larger_floats(x, max[0]);
        min[1] = smaller_floats(y, min[1]);
        max[1] = larger_floats(y, max[1]);
        least = smaller_floats(float_sizes(y), least);
    }
    double size[LANES], smallest_size = INFINITY;
    put_floats(size, least);
    for (int l = 0; l < LANES; l++)
        smallest_size = size[l] < smallest_size ? size[l] : smallest_size;
    for (int side = 0; side < 2; side++) {
        put_floats(view.min[side], min[side]);
        put_floats(view.max[side], max[side]);
    }
    view.ordinary = smallest_size >= power_of_2(limits->ulp.emin);
    view.small = smallest_size <= limits->small.value;
    return view;
}

/* The next block of a long tensor, little by little: processors do not read ahead across pages, and
 * all of it at once would be waited for. */
INLINE void fetch_next(enum kernel_type type, const void *data, size_t i)
{
    const char *next = (const char *)element(type, data, i + PLUMB_METRIC_BLOCK);
    for (size_t at = 0; at < STEP * kernel_width(type); at += 64)
        __builtin_prefetch(next + at);
}

INLINE void all_loop(unsigned parts, enum kernel_type type, bool ordinary, const void *t,
                     const void *g, size_t n, const struct all_limits *limits,
                     const struct ulp_units *units, struct all8 *sums, double *piece,
                     uint8_t *classes)
{
    struct all8 s = *sums;
    for (size_t i = 0; i < n; i += STEP) {
        c16 class[STEP / 16], ratio_class[STEP / 16], ulp_class[STEP / 16];
        if (parts & PART_ERROR) {
            fetch_next(type, t, i);
            fetch_next(type, g, i);
        }
        NO_UNROLL
        for (size_t k = 0; k < STEP / 16; k++) {
            v8 size[2], ratio[2], ulp[2];
            for (size_t half = 0; half < 2; half++) {
                const size_t at = i + 16 * k + 8 * half;
                v8 x = all(0), y = all(0), d;
                if (parts & (PART_ERROR | PART_RANGE))
                    x = load8(type, t, at);
                if (parts & ~(unsigned)(PART_ABSOLUTE | PART_SORT))
                    y = load8(type, g, at);
                if (parts & PART_ERROR)
                    d = subtract(x, y);
                else
                    d = get(piece + at);
                if (parts & PART_ERROR && parts != ALL_PARTS)
                    put(piece + at, d);
                size[half] = size_of(d);
                if (parts & PART_ERROR)
                    s.error = add_error(type, s.error, x, y, d);
                if (parts & PART_RANGE && ordinary) {
                    s.range[0].sum = add(s.range[0].sum, x);
                    s.range[1].sum = add(s.range[1].sum, y);
                } else if (parts & PART_RANGE) {
                    s.range[0] = add_range(s.range[0], x);
                    s.range[1] = add_range(s.range[1], y);
                }
                if (parts & PART_CLOSE) {
                    s.close = count(s.close, is_close(size[half], y, &limits->close));
                    s.below = count(s.below, above(all(0), d));
                }
                if (parts & PART_ABSOLUTE)
                    s.absolute = add_absolute(s.absolute, size[half]);
                if (parts & PART_SMALL && !ordinary)
                    s.small = add_small(s.small, d, y, &limits->small);
                if (parts & PART_RATIO) {
                    ratio[half] = divide(size[half], size_of(y));
                    if (!ordinary) /* NaN, which only 0/0 gives, becomes 0. */
                        ratio[half] = larger(ratio[half], all(0));
                    s.max_ratio = raise_to(s.max_ratio, ratio[half]);
                    s.ratio = add(s.ratio, ratio[half]);
                }
                if (parts & PART_ULP) {
                    ulp[half] = units8(type, ordinary, size[half], y, units);
                    s.ulp = add_ulps(s.ulp, ulp[half], units->threshold);
                }
            }
            if (parts & PART_SORT)
                class[k] = class16(size[0], size[1], &limits->abs);
            if (parts & PART_RATIO)
                ratio_class[k] = class16(ratio[0], ratio[1], &limits->ratio);
            if (parts & PART_ULP)
                ulp_class[k] = bin16(ulp[0], ulp[1], units->power);
        }
        if (parts & PART_SORT)
            put_classes(classes + i, class, top_class(limits->abs.limits));
        if (parts & PART_RATIO)
            put_classes(classes + PLUMB_METRIC_BLOCK + i, ratio_class,
                        top_class(limits->ratio.limits));
        if (parts & PART_ULP)
            put_classes(classes + 2 * PLUMB_METRIC_BLOCK + i, ulp_class, top_class(0));
    }
    if (parts & PART_ERROR)
        sums->error = s.error;
    if (parts & PART_RANGE) {
        sums->range[0] = s.range[0];
        sums->range[1] = s.range[1];
    }
    if (parts & PART_CLOSE) {
        sums->close = s.close;
        sums->below = s.below;
    }
    if (parts & PART_ABSOLUTE)
        sums->absolute = s.absolute;
    if (parts & PART_SMALL)
        sums->small = s.small;
    if (parts & PART_RATIO) {
        sums->max_ratio = s.max_ratio;
        sums->ratio = s.ratio;
    }
    if (parts & PART_ULP)
        sums->ulp = s.ulp;
}

INLINE struct all8 get_all(const struct all_sums *p, int power)
{
    const double scale = power_of_2(-power);
    return (struct all8){
        .error = get_error(&p->error),
        .range = {get_range(&p->range[0]), get_range(&p->range[1])},
        .close = no_counts(),
        .below = no_counts(),
        .absolute = {get(p->absolute.sum), extreme(INFINITY)},
        .small = {no_counts(), no_counts()},
        .max_ratio = extreme(p->relative.max),
        .ratio = get(p->ratio.sum),
        .ulp = {multiply(get(p->ulp.sum), all(scale)), extreme(p->ulp.max * scale), no_counts()},
    };
}

INLINE void put_all(struct all_sums *p, const struct all8 *s, int power)
{
    const double scale = power_of_2(power), min = smallest(s->absolute.min);
    put_error(&p->error, s->error);
    put_range(&p->range[0], s->range[0]);
    put_range(&p->range[1], s->range[1]);
    p->close.close += counted(s->close);
    p->close.below += counted(s->below);
    put(p->absolute.sum, s->absolute.sum);
    p->absolute.min = min < p->absolute.min ? min : p->absolute.min;
    put_small(&p->small, s->small);
    p->relative.max = largest(s->max_ratio);
    put(p->ratio.sum, s->ratio);
    put_ulps(&p->ulp, s->ulp);
    put(p->ulp.sum, multiply(s->ulp.sum, all(scale)));
    p->ulp.max *= scale;
}

/* Has every size a bin of its own? None of |d|, r and u is smaller than the least |d| over the
 * greatest value of golden, or over 1. */
INLINE bool are_sorted(const struct all8 *s)
{
    const x8 greatest = raise_to_size(raise_to_size(extreme(1), s->range[1].min), s->range[1].max);
    return smallest(s->absolute.min) >= largest(greatest) * 0x1p-95;
}

/* Not by find_bins, which has its own order. */
static void find_classes(const double *x, size_t n, const struct size_classes *sizes,
                         uint8_t *classes)
{
    for (size_t i = 0; i < n; i++)
        classes[i] = (uint8_t)kernel_bin(fabs(x[i]));
    for (int k = 0; k < sizes->limits; k++) {
        const double limit = sizes->limit[k];
        for (size_t i = 0; i < n; i++) {
            const bool passed = sizes->reached ? fabs(x[i]) >= limit : fabs(x[i]) > limit;
            classes[i] = (uint8_t)(classes[i] + passed);
        }
    }
}

/* Classes of any sizes. x is room for as many. */
static void sort_any(const double *d, const double *g, size_t n, const struct all_limits *limits,
                     double *x, uint8_t *classes)
{
    find_classes(d, n, &limits->abs, classes);
    relative(d, g, n, x);
    find_classes(x, n, &limits->ratio, classes + PLUMB_METRIC_BLOCK);
    ulps(d, g, n, &limits->ulp, x);
    find_bins(x, n, classes + 2 * PLUMB_METRIC_BLOCK);
}

INLINE void sort_again(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct all_limits *limits, uint8_t *classes)
{
    double x[PLUMB_METRIC_BLOCK], y[PLUMB_METRIC_BLOCK], d[PLUMB_METRIC_BLOCK];
    load_kernel(type, t, n, x);
    load_kernel(type, g, n, y);
    difference(x, y, n, d);
    sort_any(d, y, n, limits, x, classes);
}

/* Differences that are not zero; of a block. */
static uint64_t count_unequal(const uint8_t *classes, size_t n)
{
    uint16_t unequal = 0;
    for (size_t i = 0; i < n; i++)
        unequal = (uint16_t)(unequal + (classes[i] != 0));
    return unequal;
}

INLINE void all_loops(enum kernel_type type, bool ordinary, const void *t, const void *g, size_t n,
                      const struct all_limits *limits, const struct ulp_units *units,
                      struct all8 *sums, uint8_t *classes)
{
    for (size_t i = 0, some; i < n; i += some) {
        double piece[PIECE];
        const void *x = element(type, t, i), *y = element(type, g, i);
        some = n - i < PIECE ? n - i : PIECE;
#define LOOP(parts)                                                                                \
    all_loop(parts, type, ordinary, x, y, some, limits, units, sums, piece, classes + i);
        ALL_LOOPS(LOOP)
#undef LOOP
    }
}

INLINE void small_loop(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct small_limits *limits, struct small8 *sums)
{
    struct small8 s = *sums;
    for (size_t i = 0; i < n; i += 8) {
        const v8 y = load8(type, g, i);
        s = add_small(s, subtract(load8(type, t, i), y), y, limits);
    }
    *sums = s;
}

/* n: a multiple of STEP. */
INLINE void any_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct all_limits *limits, struct all_sums *out, uint8_t *classes)
{
    const struct ulp_units units = units_of(type, &limits->ulp);
    const struct preview view = preview_of(type, t, g, n, limits);
    struct all8 sums = get_all(out, units.power);
    if (type != KERNEL_F64 && view.ordinary) {
        all_loops(type, true, t, g, n, limits, &units, &sums, classes);
        for (int side = 0; side < 2; side++) {
            sums.range[side].min = smaller(get(view.min[side]), sums.range[side].min);
            sums.range[side].max = larger(get(view.max[side]), sums.range[side].max);
        }
        if (view.small)
            small_loop(type, t, g, n, &limits->small, &sums.small);
    } else {
        all_loops(type, false, t, g, n, limits, &units, &sums, classes);
    }
    put_all(out, &sums, units.power);
    if (!are_sorted(&sums))
        sort_again(type, t, g, n, limits, classes);
    const uint64_t unequal = count_unequal(classes, n);
    out->close.above += unequal - counted(sums.below);
    out->close.greater += count_greater(type, t, g, n, limits->close.gt, unequal);
}

/* A faster way for blocks whose pairs are close, where a level has one. */
#ifdef NEAR_KERNEL
#include NEAR_KERNEL
#else
#define near_kernel(type, t, g, n, limits, out, classes) false
#endif

INLINE void all_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct all_limits *limits, struct all_sums *out, uint8_t *classes)
{
    const size_t i = n / STEP * STEP;
    if (type == KERNEL_F64 || !near_kernel(type, t, g, i, limits, out, classes))
        any_kernel(type, t, g, i, limits, out, classes);
    if (i < n)
        kernels_c.pair_all[type](element(type, t, i), element(type, g, i), n - i, limits, out,
                                 classes + i);
}

#endif
