/* Kernels: the inner loops over one block of finite pairs.
 *
 * Each works on up to PLUMB_METRIC_BLOCK pairs and adds sums to lanes: element i goes to lane
 * i % LANES, in ascending order, with one rounding for each operation that the C version writes. So
 * a version for any vector width has the same bits to deliver. Counts, least and greatest values do
 * not depend on an order, and have no lanes. The C versions are the definition; the others replace
 * entries of the table. */
#ifndef METRIC_KERNEL_H
#define METRIC_KERNEL_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight lanes are one register of AVX-512, and keep additions from waiting for each other. */
enum { LANES = 8, ABS_LIMITS = 7 };

/* Blocks whose statistics are counted side by side: one alone waits for its own additions. */
enum { SIDE_BY_SIDE = 2 };

/* Pairs of equal types that the hottest kernels read without converting them first. */
enum kernel_type { KERNEL_F64, KERNEL_F32, KERNEL_F16, KERNEL_BF16, KERNEL_TYPES };

/* Bytes of a stored value. */
static inline size_t kernel_width(enum kernel_type type)
{
    return type == KERNEL_F64 ? 8 : type == KERNEL_F32 ? 4 : 2;
}

/* t: target, g: golden, d = t - g. */
struct error_lanes {
    double tg[LANES], tt[LANES], gg[LANES], dd[LANES];
    double max; /* of |d| */
};

/* r = |d| / |g|; NaN, which only 0/0 gives, counts as no error. */
struct relative_counts {
    double max; /* the larger of the largest r and what it was, another r of the type or 0 */
    uint64_t below_5e3, below_1e3;
};

struct ratio_lanes {
    double sum[LANES];
    uint64_t below_1e2, below_1e4;
};

struct close_limits {
    double rtol, atol, gt;
};

/* By how much a value may be off and be close to golden: the one definition. */
static inline double close_room(const struct close_limits *limits, double golden)
{
    return limits->atol + limits->rtol * fabs(golden);
}

struct close_counts {
    uint64_t close, greater, above, below;
};

struct absolute_lanes {
    double sum[LANES];
    double min; /* the smaller of what it was and the smallest |d| that is not zero */
    uint64_t over[ABS_LIMITS];
};

struct ulp_scale {
    int precision, emin; /* of the type whose ULPs are counted */
    double threshold;
};

struct ulp_lanes {
    double sum[LANES];
    double max;
    uint64_t over;
};

struct small_limits {
    double value, error; /* |g| up to the one is small, |d| above the other an error then */
};

struct small_counts {
    uint64_t small, errors;
};

/* Lanes throughout: of 0 and -0 the first of a lane stays. */
struct range_lanes {
    double sum[LANES], min[LANES], max[LANES];
};

/* Deviations from a centre. */
struct centre_lanes {
    double sum[LANES], squares[LANES];
};

/* Sums of exp(g), exp(t), exp(g)*(g-t), for |t|, |g| <= KL_FAST.
 *
 * Where |d| <= KL_NEAR (near), exp(t) is had from exp(g) by a short series in d, to 2e-12. Then
 * exp(g) is but a weight, the same in all three sums: one that is off by a factor 1 + e changes a
 * divergence by e times its own part of it, which is below 1e-3 there. So 3e-9 is close enough.
 *
 * Where, besides, |g| <= KL_SHORT, float32 is (short): what is rounded away is a part of 1e-7 of
 * a divergence. The sum of exp(t) is put together from those of exp(g), of exp(g)*d and of what is
 * left, exp(g)*(exp(d)-1-d), so that the first two, whatever was rounded, cancel as they should. */
struct kl_lanes {
    double golden[LANES], target[LANES], weighted[LANES];
};
#define KL_FAST 170.0
#define KL_NEAR 0x1p-5
#define KL_SHORT 60.0f
enum { KL_RUN = 128 }; /* pairs that are added up in float32, in sixteen lanes */

/* Bin 0 is zero; bin k > 0 holds sizes of exponent HISTOGRAM_LOWEST + k - 1, clamped at both ends.
 * The last bin is not a kernel's: it is for pairs that are not finite. */
enum { HISTOGRAM_BINS = 130, HISTOGRAM_LOWEST = -96 };

/* The bin of a size; NaN is 0/0: no error. */
static inline unsigned kernel_bin(double size)
{
    uint64_t bits;
    memcpy(&bits, &size, sizeof bits);
    const int bin = (int)(bits >> 52) - 1023 - HISTOGRAM_LOWEST + 1;
    if (!(size > 0))
        return 0;
    return bin < 1 ? 1 : bin > HISTOGRAM_BINS - 2 ? HISTOGRAM_BINS - 2 : (unsigned)bin;
}

/* The class of a size is its bin, plus how many of some limits it passes: one number that says
 * both, so that classes are all that has to be counted. */
enum {
    CLASS_LIMITS = ABS_LIMITS,
    CLASSES = HISTOGRAM_BINS - 1 + CLASS_LIMITS,
    CLASS_STEPS = 32,
    QUOTIENT_STEPS = 32
};

struct size_classes {
    double limit[CLASS_LIMITS]; /* ascending, no two between neighbouring powers of two */
    int limits;
    bool reached; /* is a limit passed by a size that equals it? */

    /* The same from the upper 32 bits x of a float64, with the exponent field e, in two ways. What
     * lies beyond a table is as its end.
     *
     * x + step[e - first] has the class above bit 20. Zeros below it say that the lower half
     * decides: up to lower[e - first] the class is one less. */
    uint32_t first, step[CLASS_STEPS], lower[CLASS_STEPS];

    /* i = place[e / 2 - first / 2] limits are passed, and one more if x is above limit_upper[i], or
     * is equal and the lower half is above limit_lower[i]. */
    uint8_t place[16];
    uint32_t limit_upper[CLASS_LIMITS + 1], limit_lower[CLASS_LIMITS + 1];

    /* For sizes that float32 has, with the bits x and the exponent field e, where limits are passed
     * from above: x + short_step[e - short_first] has the class above bit 23. */
    uint32_t short_first, short_step[CLASS_STEPS];

    /* For quotients d / g of such sizes that are 2^k to 2^(k+1), k from 1 - QUOTIENT_STEPS to 0,
     * where limits are reached: with i = k modulo QUOTIENT_STEPS, the class is k +
     * quotient_class[i], and one less where d * quotient_factor[i] is below g. Limits are one over
     * whole numbers; no quotient near them rounds to them. */
    uint32_t quotient_class[QUOTIENT_STEPS];
    float quotient_factor[QUOTIENT_STEPS];
};

/* What pair_all adds up, and its limits: all groups over finite values but the divergence. Classes
 * tell how many sizes passed the limits of |d| and r: those counts are left as they were. */
struct all_limits {
    struct close_limits close;
    struct small_limits small;
    struct ulp_scale ulp;
    struct size_classes abs, ratio;
};

struct all_sums {
    struct error_lanes error;
    struct relative_counts relative;
    struct ratio_lanes ratio;
    struct close_counts close;
    struct absolute_lanes absolute;
    struct ulp_lanes ulp;
    struct small_counts small;
    struct range_lanes range[2]; /* of t, of g */
};

/* A sketch adds tiles of consecutive numbers to sums: number l of a tile to sum (place xor l), so
 * that every vector of numbers goes to one of sums, with its lanes in another order. */
enum {
    KERNEL_SKETCH_SUMS = 256,
    KERNEL_SKETCH_TILE = 64,
    KERNEL_SKETCH_TILES = 1024 / KERNEL_SKETCH_TILE + 1, /* that a block may touch */
};

/* How many bytes further on `ranges` asks for what is needed next, so that it waits for less;
 * nobody has to have them. */
enum { KERNEL_AHEAD = 16384 };

/* Output j of SplitMix64 from seed 0. */
static inline uint64_t kernel_sketch_word(uint64_t j)
{
    uint64_t z = (j + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Number l of a tile is subtracted where bit l is set. */
static inline uint64_t kernel_sketch_signs(uint64_t tile)
{
    return kernel_sketch_word(tile);
}

/* The places of eight tiles, of which `tile` is one: a byte each. */
static inline uint64_t kernel_sketch_places(uint64_t tile)
{
    return kernel_sketch_word((UINT64_C(1) << 63) + tile / 8);
}

static inline unsigned kernel_sketch_place(uint64_t places, uint64_t tile)
{
    return (unsigned)(places >> 8 * (tile % 8)) & 255;
}

struct byte_words;
struct hash;

struct kernels {
    const char *name;

    /* From stored values to float64, and from t and g to what the other kernels read. */
    void (*load[KERNEL_TYPES])(const void *data, size_t n, double *out);
    void (*widen)(const struct byte_words *words, const void *bytes, size_t n, uint16_t *out);
    void (*difference)(const double *t, const double *g, size_t n, double *d);
    void (*relative)(const double *d, const double *g, size_t n, double *r);
    void (*ulps)(const double *d, const double *g, size_t n, const struct ulp_scale *scale,
                 double *u);

    void (*error)(const double *t, const double *g, const double *d, size_t n,
                  struct error_lanes *out);
    void (*relative_tally)(const double *r, size_t n, struct relative_counts *out);
    void (*ratio_tally)(const double *r, size_t n, struct ratio_lanes *out);
    void (*close)(const double *d, const double *g, size_t n, const struct close_limits *limits,
                  struct close_counts *out);
    void (*absolute)(const double *d, size_t n, struct absolute_lanes *out);
    void (*ulp_tally)(const double *u, size_t n, double threshold, struct ulp_lanes *out);
    void (*small)(const double *d, const double *g, size_t n, const struct small_limits *limits,
                  struct small_counts *out);
    void (*range)(const double *x, size_t n, struct range_lanes *out);

    /* The bin of each size (a byte below HISTOGRAM_BINS - 1), and how many there are of each. The
     * same for classes, of which top is the greatest. */
    void (*find_bins)(const double *x, size_t n, uint8_t *bin);
    void (*count_bins)(const uint8_t *bin, size_t n, uint8_t top, uint64_t *bins);

    /* How many of n elements, at most PLUMB_METRIC_BLOCK, have other bits. */
    uint64_t (*differing)(const void *t, const void *g, size_t n, unsigned bits);

    /* CRC-32, continued from crc, as libdeflate_crc32 has it. */
    uint32_t (*crc32)(uint32_t crc, const void *data, size_t size);

    /* Adds numbers [first, first+n) of a tensor, at most a block, to KERNEL_SKETCH_SUMS sums. Sets
     * fold[k] for the k-th tile that they lie in: one sum each of its numbers whose sums have the
     * same number modulo 4. */
    void (*sketch)(const double *x, size_t n, uint64_t first, double *sums, double (*fold)[4]);

    /* Adds HASH_SIDE whole pieces to a hash (metric/hash.h), and continues a CRC-32 with them. */
    uint32_t (*hash_eight)(const void *data, uint64_t piece, struct hash *hash, uint32_t crc);

    /* Straight from the stored values of pairs of one type. pair_all writes the classes of
     * |d| and r and the bins of u, each PLUMB_METRIC_BLOCK after the one before, in any order. */
    void (*pair_error[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                     struct error_lanes *out);
    void (*pair_relative[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                        struct error_lanes *error,
                                        struct relative_counts *relative);
    void (*pair_close[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                     const struct close_limits *limits, struct close_counts *out);
    void (*pair_kl[KERNEL_TYPES])(const void *t, const void *g, size_t n, struct kl_lanes *out);
    void (*pair_kl_near[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                       struct kl_lanes *out);
    /* Adds nothing, and returns false, where a |g| is larger than KL_SHORT; and for float64. */
    bool (*pair_kl_short[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                        struct kl_lanes *out);
    void (*pair_all[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                   const struct all_limits *limits, struct all_sums *out,
                                   uint8_t *classes);

    void (*centre[KERNEL_TYPES])(const void *data, size_t n, double centre,
                                 struct centre_lanes *out);

    /* load and range of SIDE_BY_SIDE whole blocks of stored values, one after another in memory;
     * float64 is not loaded. Then centre of what was. Lanes are set, not added to. */
    void (*ranges[KERNEL_TYPES])(const void *data, double *wide,
                                 struct range_lanes out[SIDE_BY_SIDE]);
    void (*centres)(const double *wide, const double centre[SIDE_BY_SIDE],
                    struct centre_lanes out[SIDE_BY_SIDE]);
};

/* Of no values. */
static inline struct range_lanes range_of_nothing(void)
{
    struct range_lanes range = {0};
    for (int l = 0; l < LANES; l++) {
        range.min[l] = INFINITY;
        range.max[l] = -INFINITY;
    }
    return range;
}

/* The largest size of the values; 0 for none. */
static inline double range_largest(const struct range_lanes *range)
{
    double most = 0;
    for (int l = 0; l < LANES; l++)
        most = fmax(most, fmax(-range->min[l], range->max[l]));
    return most;
}

/* The absolute limits 1e-1 .. 1e-7. */
extern const double kernel_abs_limits[ABS_LIMITS];

/* What kernel_exp and kernel_weight are made of: 2^r by powers of r. */
#define KERNEL_LOG2E 0x1.71547652b82fep0
enum { EXP_TERMS = 9, WEIGHT_TERMS = 7 };
extern const double kernel_exp2[EXP_TERMS], kernel_weight2[WEIGHT_TERMS];

/* The same in float32. */
#define SHORT_LOG2E 0x1.715476p0f
#define SHORT_LOG2E_REST 0x1.4ae0cp-26f
extern const float kernel_short2[WEIGHT_TERMS];

extern const struct kernels kernels_c;

/* exp(x) for |x| <= 708, to about 1e-12, by the same operations on every level; and to 3e-9. For
 * |x| <= KL_SHORT, to 2e-7. */
double kernel_exp(double x);
double kernel_weight(double x);
float kernel_short_weight(float x);

/* Where a level has nothing better. */
void kernel_widen_c(const struct byte_words *words, const void *bytes, size_t n, uint16_t *out);

/* The C table, upgraded as far as the processor and the mask allow. */
struct kernels kernels_select(unsigned mask);

/* The same with the mask in force (plumb_cpu_mask). */
struct kernels kernels_current(void);

#if defined(__x86_64__)
void kernels_avx2(struct kernels *table);
void kernels_avx512(struct kernels *table);
#elif defined(__aarch64__)
void kernels_neon(struct kernels *table);
#endif

#endif
