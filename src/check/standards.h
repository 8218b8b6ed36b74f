/* Which API is held to which standard, and every limit that a verdict of the pre-check compares a
 * number with. Data only: both rule sets, selected by name. Pure and thread-safe. */
#ifndef CHECK_STANDARDS_H
#define CHECK_STANDARDS_H

#include "plumb/dtype.h"

enum check_rules { RULES_DOCUMENTED, RULES_MSPROBE };

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
const char *standard_name(enum check_standard standard);

/* The standard of an API by its bare name ("matmul", "__add__"); benchmark when on no list. */
enum check_standard standard_of_api(const char *api);

/* APIs of the binary-consistency list that only move values forward, but add them up backward:
 * their gradients are rounded, and not held to equality under the documented rules. */
bool standard_adds_gradients(const char *api);

/* The standard of one output. dtype is the device's; PLUMB_DTYPE_COUNT when the output is not a
 * tensor (binary). Documented: 8-bit floats by ULP, 8-bit float inputs by absolute threshold, what
 * is not a float or complex number by binary, the rest by the lists. msprobe: ordinary floats are
 * always held to the benchmark standard, whatever the lists say. */
enum check_standard standard_route(enum check_rules rules, const char *api, enum plumb_dtype dtype,
                                   bool fp8_input);

/* The APIs whose integers may differ by one; ends with NULL. */
extern const char *const standard_quantized[];

bool standard_is_fp8(enum plumb_dtype dtype); /* any 8-bit float, HiFloat8 included */

/* Ratios of the benchmark standard (device under test over the other device): each may be at most
 * this. balance is shown, but takes no part in the verdict. */
struct standard_level {
    const char *name; /* "L0", "L1", "L2" */
    double max_rel, mean_rel, rmse, small, balance;
};

/* The operator's monitoring level. "GELU" of the list is the class's name: documented rules take it
 * for the API gelu too, msprobe does not. */
const struct standard_level *standard_level_of(enum check_rules rules, const char *api);

/* Limits by the device's type. */
struct standard_limits {
    double small;         /* |reference| up to this is a small value */
    double small_atol;    /* benchmark: a small value's error over this counts */
    double absolute_atol; /* absolute threshold: the same */
    double rtol;          /* absolute threshold: a relative error over this counts */
    double bound;         /* accumulative error: all three of the above; values up to 1 are small */
    double balance;       /* accumulative error: the largest error balance */
    double min_denominator; /* of the ratios between two devices */
    double ulp_threshold;   /* ULP errors over this are counted */
    double ulp_mean;        /* a mean ULP error below this passes; 0: does not count */
    double ulp_share;       /* a share of counted ULP errors below this passes */
};

const struct standard_limits *standard_limits(enum check_rules rules, enum plumb_dtype device);

#define STANDARD_COSINE 0.99          /* over */
#define STANDARD_MAX_ABS 0.001        /* below */
#define STANDARD_THOUSANDTH_MIN 0.999 /* documented: over; msprobe: not below */
#define STANDARD_ULP_RATIO 1.0        /* below */

#endif
