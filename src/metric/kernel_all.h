/* The kernel for all groups at once, in the words of a vec_LEVEL.h; see kernel_tally.h.
 *
 * A part of the block is loaded once, and stays in the first-level cache for several short loops,
 * since one loop for all sums would want more registers than there are. */
#ifndef METRIC_KERNEL_ALL_H
#define METRIC_KERNEL_ALL_H

/* What a loop adds up. Constants where used, so that each loop has its own code. */
enum part {
    PART_ERROR = 1,
    PART_RANGE = 2, /* of both sides */
    PART_CLOSE = 4,
    PART_ABSOLUTE = 8,
    PART_SMALL = 16,
    PART_RATIO = 32, /* r, kept for its bins */
    PART_ULP = 64,   /* u, likewise */
    PART_LIMITS = 128,
};

enum { PIECE = 256 };

/* d, r and u of a piece. */
struct piece {
    double d[PIECE], r[PIECE], u[PIECE];
};

struct all8 {
    struct errors8 error;
    struct range8 range[2];
    struct close8 close;
    struct absolute8 absolute;
    struct small8 small;
    struct relative8 relative;
    struct ratio8 ratio;
    struct ulps8 ulp;
    n8 over[ABS_LIMITS];
};

INLINE void all_loop(unsigned parts, enum kernel_type type, const void *t, const void *g, size_t n,
                     const struct all_limits *limits, double factor, struct all8 *sums,
                     struct piece *piece)
{
    struct all8 s = *sums;
    for (size_t i = 0; i < n; i += 8) {
        v8 x = all(0), y = all(0), d;
        if (parts & (PART_ERROR | PART_RANGE))
            x = load8(type, t, i);
        if (parts & ~(unsigned)(PART_ABSOLUTE | PART_LIMITS))
            y = load8(type, g, i);
        if (parts & PART_ERROR)
            put(piece->d + i, d = subtract(x, y));
        else
            d = get(piece->d + i);
        if (parts & PART_ERROR)
            s.error = add_error(type, s.error, x, y, d);
        if (parts & PART_RANGE) {
            s.range[0] = add_range(s.range[0], x);
            s.range[1] = add_range(s.range[1], y);
        }
        if (parts & PART_CLOSE)
            s.close = add_close(s.close, d, y, &limits->close);
        if (parts & PART_ABSOLUTE)
            s.absolute = add_absolute(s.absolute, size_of(d));
        if (parts & PART_SMALL)
            s.small = add_small(s.small, d, y, &limits->small);
        if (parts & PART_RATIO) {
            const v8 r = divide(size_of(d), size_of(y));
            s.relative = add_relative(s.relative, r);
            s.ratio = add_ratio(s.ratio, r);
            put(piece->r + i, r);
        }
        if (parts & PART_ULP) {
            const v8 u = ulps_of(d, y, limits->ulp.emin, factor);
            s.ulp = add_ulps(s.ulp, u, limits->ulp.threshold);
            put(piece->u + i, u);
        }
        for (int k = 0; parts & PART_LIMITS && k < ABS_LIMITS; k++)
            s.over[k] = count(s.over[k], above(size_of(d), all(kernel_abs_limits[k])));
    }
    if (parts & PART_ERROR)
        sums->error = s.error;
    if (parts & PART_RANGE) {
        sums->range[0] = s.range[0];
        sums->range[1] = s.range[1];
    }
    if (parts & PART_CLOSE)
        sums->close = s.close;
    if (parts & PART_ABSOLUTE)
        sums->absolute = s.absolute;
    if (parts & PART_SMALL)
        sums->small = s.small;
    if (parts & PART_RATIO) {
        sums->relative = s.relative;
        sums->ratio = s.ratio;
    }
    if (parts & PART_ULP)
        sums->ulp = s.ulp;
    for (int k = 0; parts & PART_LIMITS && k < ABS_LIMITS; k++)
        sums->over[k] = s.over[k];
}

INLINE struct all8 get_all(const struct all_sums *p)
{
    struct all8 s = {
        .error = get_error(&p->error),
        .range = {get_range(&p->range[0]), get_range(&p->range[1])},
        .close = no_close(),
        .absolute = {get(p->absolute.sum), extreme(p->absolute.min)},
        .small = {no_counts(), no_counts()},
        .relative = get_relative(&p->relative),
        .ratio = {get(p->ratio.sum), no_counts(), no_counts()},
        .ulp = {get(p->ulp.sum), extreme(p->ulp.max), no_counts()},
    };
    for (int k = 0; k < ABS_LIMITS; k++)
        s.over[k] = no_counts();
    return s;
}

INLINE void put_all(struct all_sums *p, const struct all8 *s)
{
    put_error(&p->error, s->error);
    put_range(&p->range[0], s->range[0]);
    put_range(&p->range[1], s->range[1]);
    put_close(&p->close, s->close);
    put(p->absolute.sum, s->absolute.sum);
    p->absolute.min = smallest(s->absolute.min);
    put_small(&p->small, s->small);
    put_relative(&p->relative, s->relative);
    put_ratio(&p->ratio, s->ratio);
    put_ulps(&p->ulp, s->ulp);
    for (int k = 0; k < ABS_LIMITS; k++)
        p->absolute.over[k] += counted(s->over[k]);
}

INLINE void all_kernel(enum kernel_type type, const void *t, const void *g, size_t n,
                       const struct all_limits *limits, struct all_sums *out, uint8_t *bins)
{
    struct all8 sums = get_all(out);
    const double factor = ldexp(1, limits->ulp.precision - 1);
    size_t i = 0;
    while (i + 8 <= n) {
        struct piece piece;
        const size_t some = n - i < PIECE ? (n - i) / 8 * 8 : PIECE;
        const void *x = element(type, t, i), *y = element(type, g, i);
#define LOOP(parts) all_loop(parts, type, x, y, some, limits, factor, &sums, &piece);
        ALL_LOOPS(LOOP)
#undef LOOP
        find_bins(piece.d, some, bins + i);
        find_bins(piece.r, some, bins + PLUMB_METRIC_BLOCK + i);
        find_bins(piece.u, some, bins + 2 * PLUMB_METRIC_BLOCK + i);
        i += some;
    }
    put_all(out, &sums);
    out->close.greater += count_greater(type, t, g, i, limits->close.gt, sums.close);
    if (i < n)
        kernels_c.pair_all[type](element(type, t, i), element(type, g, i), n - i, limits, out,
                                 bins + i);
}

#endif
