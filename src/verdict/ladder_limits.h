/* Which API is held to which standard, and every limit that a verdict of the pre-check compares a
 * number with. Data only: each profile (profile.h) has a set built in, ladder_rules.h reads others
 * from files. Pure and thread-safe. */
#ifndef VERDICT_LADDER_LIMITS_H
#define VERDICT_LADDER_LIMITS_H

#include "plumb/dtype.h"

struct precheck_profile;

enum check_standard {
    STANDARD_BENCHMARK,
    STANDARD_BINARY,
    STANDARD_ABSOLUTE,
    STANDARD_ULP,
    STANDARD_THOUSANDTH,
    STANDARD_ACCUMULATIVE,
    STANDARD_COUNT
};

/* "benchmark comparison", "binary consistency", "absolute threshold", ... */
extern const char *const standard_names[STANDARD_COUNT];
const char *standard_name(enum check_standard standard);

/* Ratios of the benchmark standard (device under test over the other device): each may be at most
 * this. balance is shown, but takes no part in the verdict. */
struct standard_level {
    const char *name; /* "L0", "L1", "L2" */
    double max_rel, mean_rel, rmse, small, balance;
};

/* Limits by the device's type. */
struct standard_limits {
    double small;           /* |reference| up to this is a small value */
    double small_atol;      /* benchmark: a small value's error over this counts */
    double absolute_atol;   /* absolute threshold: the same */
    double rtol;            /* absolute threshold: a relative error over this counts */
    double min_denominator; /* of the ratios between two devices */
    double ulp_threshold;   /* ULP errors over this are counted */
    double ulp_mean;        /* a mean ULP error below this passes; 0: does not count */
    double ulp_share;       /* a share of counted ULP errors below this passes */
};

enum standard_type { TYPE_F8, TYPE_F16, TYPE_BF16, TYPE_F32, TYPE_F64, STANDARD_TYPES };

enum { DUAL_100, DUAL_1000, DUAL_10000, DUALS };

enum { STANDARD_LEVELS = 3 };

struct standard_set {
    const struct precheck_profile *profile; /* how the pre-check goes about it */
    double cosine;                          /* over */
    double max_abs;                         /* below */
    double dual[DUALS];                     /* shares of elements within 1 %, 0.1 %, 0.01 %: over */
    double thousandth;                      /* over, or not below: the profile says */
    double ulp_ratio;                       /* of the shares of two devices: below */
    double quantized;     /* integers of quantized outputs may differ by this much */
    double dropout_gap;   /* between the shares of zeros: below */
    double dropout_count; /* fewer elements than this have no share to speak of */
    struct standard_limits limits[STANDARD_TYPES];
    struct standard_level levels[STANDARD_LEVELS];
    /* Lists of bare names ("matmul", "__add__") that end with NULL. An API is on one list of either
     * kind at most; on none, it is held to the benchmark standard, at level L0. Those two lists
     * are empty. */
    const char *const *apis[STANDARD_COUNT];
    const char *const *level_apis[STANDARD_LEVELS];
};

extern const struct standard_set standards_documented;

/* Its lists. */
extern const char *const standard_absolute_apis[],
    *const standard_binary_apis[], *const standard_ulp_apis[],
                                       *const standard_thousandth_apis[],
                                           *const standard_accumulative_apis[],
                                               *const standard_level1_apis[],
                                                   *const standard_level2_apis[],
                                                       *const standard_no_apis[];

/* The standard of an API by its bare name; benchmark when on no list. */
enum check_standard standard_of_api(const struct standard_set *set, const char *api);

/* APIs of the binary-consistency list that only move values forward, but add them up backward:
 * their gradients are rounded, and not held to equality under the documented rules. */
bool standard_adds_gradients(const char *api);

/* APIs of the binary-consistency list that choose among elements: which of 0 and -0 is the larger
 * is anybody's guess under the documented rules. */
bool standard_chooses(const char *api);

/* APIs of the binary-consistency list that round when they are given complex numbers (a square root
 * of squares, a quotient): their results are then not held to equality under the documented
 * rules. */
bool standard_rounds_complex(const char *api);

/* The standard of one output. dtype is the device's; PLUMB_DTYPE_COUNT when the output is not a
 * tensor (binary). 8-bit floats go by ULP, 8-bit float inputs by absolute threshold, what is not a
 * float or complex number by binary, the rest by the lists, unless the profile holds ordinary
 * floats to the benchmark standard whatever these say. */
enum check_standard standard_route(const struct standard_set *set, const char *api,
                                   enum plumb_dtype dtype, bool fp8_input);

/* The APIs whose integers may differ by one; ends with NULL. */
extern const char *const standard_quantized[];

bool standard_is_fp8(enum plumb_dtype dtype); /* any 8-bit float, HiFloat8 included */

/* The operator's monitoring level. "GELU" of the list is the class's name; whether the API gelu is
 * meant too is up to the profile (compare_level). */
const struct standard_level *standard_level_of(const struct standard_set *set, const char *api);

/* Complex numbers have the limits of their parts, what is no float those of float32. */
const struct standard_limits *standard_limits(const struct standard_set *set,
                                              enum plumb_dtype device);

#endif
