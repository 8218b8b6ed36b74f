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
enum { SIDE_BY_SIDE = 4 };

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
    double max; /* the larger of what it was and the largest r */
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

/* Sums of exp(g), exp(t), exp(g)*(g-t), for |t|, |g| <= KL_FAST. Where |d| <= KL_NEAR, exp(t) is
 * had from exp(g) by a short series in d. */
struct kl_lanes {
    double golden[LANES], target[LANES], weighted[LANES];
};
#define KL_FAST 170.0
#define KL_NEAR 0x1p-4

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
enum { CLASS_LIMITS = ABS_LIMITS, CLASSES = HISTOGRAM_BINS - 1 + CLASS_LIMITS, CLASS_STEPS = 32 };

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

/* A sketch adds groups of consecutive numbers to sums beside each other, so that those of a group
 * that begins near the end go beyond the 256th; fold has four more. */
enum { KERNEL_SKETCH_GROUP = 16, KERNEL_SKETCH_ROOM = 256 + KERNEL_SKETCH_GROUP };

/* Output j of SplitMix64 from seed 0: for group j, bits 0 to 7 say where it begins, bits 8 to 23
 * which of its numbers are subtracted. */
static inline uint64_t kernel_sketch_word(uint64_t j)
{
    uint64_t z = (j + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

struct hash;

struct kernels {
    const char *name;

    /* From stored values to float64, and from t and g to what the other kernels read. */
    void (*load[KERNEL_TYPES])(const void *data, size_t n, double *out);
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

    /* Adds stored numbers [first, first+n) of a tensor, at most a block, to KERNEL_SKETCH_ROOM sums
     * and to fold: one sum each for numbers whose places have the same last two bits. */
    void (*sketch[KERNEL_TYPES])(const void *data, size_t n, uint64_t first, double *sums,
                                 double fold[4]);

    /* Adds HASH_SIDE whole pieces to a hash: metric/hash.h. */
    void (*hash_eight)(const void *data, uint64_t piece, struct hash *hash);

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
    void (*pair_all[KERNEL_TYPES])(const void *t, const void *g, size_t n,
                                   const struct all_limits *limits, struct all_sums *out,
                                   uint8_t *classes);

    /* pair_kl_near or pair_kl, and centre of both sides. */
    void (*pair_rest[KERNEL_TYPES])(const void *t, const void *g, size_t n, bool near,
                                    const double middle[2], struct kl_lanes *kl,
                                    struct centre_lanes centre[2]);

    void (*centre[KERNEL_TYPES])(const void *data, size_t n, double centre,
                                 struct centre_lanes *out);

    /* range and centre of SIDE_BY_SIDE whole blocks of stored values, one after another in memory.
     * Lanes are set, not added to. */
    void (*ranges[KERNEL_TYPES])(const void *data, struct range_lanes out[SIDE_BY_SIDE]);
    void (*centres[KERNEL_TYPES])(const void *data, const double centre[SIDE_BY_SIDE],
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

/* The absolute limits 1e-1 .. 1e-7. */
extern const double kernel_abs_limits[ABS_LIMITS];

/* What kernel_exp is made of. */
#define KERNEL_LOG2E 0x1.71547652b82fep0
extern const double kernel_exp2[10];

extern const struct kernels kernels_c;

/* exp(x) for |x| <= 708, to about 1e-11, by the same operations on every level. */
double kernel_exp(double x);

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
