/* Names for the numbers of a rule set, made of groups, types and members. */
#include "verdict/ladder_names.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

struct member {
    const char *name;
    size_t offset;
    double most;
};

#define SET(member) offsetof(struct standard_set, member)
#define LIMIT(member) offsetof(struct standard_limits, member)
#define LEVEL(member) offsetof(struct standard_level, member)

static const struct member ladder[] = {
    {"cosine", SET(cosine), 1},
    {"max_abs", SET(max_abs), INFINITY},
    {"dual_100", SET(dual[DUAL_100]), 1},
    {"dual_1000", SET(dual[DUAL_1000]), 1},
    {"dual_10000", SET(dual[DUAL_10000]), 1},
    {NULL, 0, 0},
};

static const struct member others[] = {
    {"quantized.max_abs", SET(quantized), INFINITY},
    {"dropout.gap", SET(dropout_gap), 1},
    {"dropout.count", SET(dropout_count), INFINITY},
    {NULL, 0, 0},
};

static const struct member ratios[] = {
    {"thousandth.min", SET(thousandth), 1},
    {"ulp.ratio", SET(ulp_ratio), INFINITY},
    {NULL, 0, 0},
};

static const struct member limits[] = {
    {"small", LIMIT(small), INFINITY},
    {"small_atol", LIMIT(small_atol), INFINITY},
    {"atol", LIMIT(absolute_atol), INFINITY},
    {"rtol", LIMIT(rtol), INFINITY},
    {"min_denominator", LIMIT(min_denominator), INFINITY},
    {"ulp", LIMIT(ulp_threshold), INFINITY},
    {"ulp_mean", LIMIT(ulp_mean), INFINITY},
    {"ulp_share", LIMIT(ulp_share), 1},
    {NULL, 0, 0},
};

static const struct member level[] = {
    {"max_rel", LEVEL(max_rel), INFINITY}, {"mean_rel", LEVEL(mean_rel), INFINITY},
    {"rmse", LEVEL(rmse), INFINITY},       {"small", LEVEL(small), INFINITY},
    {"balance", LEVEL(balance), INFINITY}, {NULL, 0, 0},
};

static const struct {
    const char *prefix;
    size_t offset;
    const struct member *members;
    const char *about;
} groups[] = {
    {"", 0, ladder,
     "acc_check: a cosine that is not over the first is an error, a largest absolute error below\n"
     "# the second a pass. Otherwise the shares of values within 1 %, 0.1 % and 0.01 % decide, "
     "which\n"
     "# have to be over the others."},
    {"", 0, others,
     "acc_check: integers of quantized outputs may differ by this much; the shares of zeros that\n"
     "# dropout leaves have to be less than gap apart, among at least count values."},
    {"", 0, ratios,
     "api_precision_compare: the share within 0.1 % of an API of `use thousandth`; the share of\n"
     "# ULP errors of an API of `use ulp` in proportion to that of the other device."},
    {"float8.", SET(limits[TYPE_F8]), limits,
     "By type. Values up to small are judged by their absolute error: over small_atol it counts\n"
     "# for the benchmark standard, over atol for the absolute threshold, where other values "
     "count\n"
     "# with a relative error over rtol. Ratios have at least min_denominator below them. ULP "
     "errors\n"
     "# over ulp are counted; a mean below ulp_mean (0: not looked at) or a share of counted ones\n"
     "# below ulp_share passes."},
    {"float16.", SET(limits[TYPE_F16]), limits, ""},
    {"bfloat16.", SET(limits[TYPE_BF16]), limits, ""},
    {"float32.", SET(limits[TYPE_F32]), limits, ""},
    {"float64.", SET(limits[TYPE_F64]), limits, ""},
    {"L0.", SET(levels[0]), level,
     "Benchmark standard: the errors of one device may be this many times those of the other.\n"
     "# balance is shown and does not count."},
    {"L1.", SET(levels[1]), level, ""},
    {"L2.", SET(levels[2]), level, ""},
};

bool rules_number(size_t i, struct rules_number *number)
{
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (const struct member *member = groups[g].members; member->name; member++) {
            if (i-- > 0)
                continue;
            snprintf(number->name, sizeof number->name, "%s%s", groups[g].prefix, member->name);
            number->offset = groups[g].offset + member->offset;
            number->most = member->most;
            number->about = member == groups[g].members ? groups[g].about : NULL;
            return true;
        }
    }
    return false;
}

const char *rules_standard_word(enum check_standard standard)
{
    static const char *const words[STANDARD_COUNT] = {
        [STANDARD_BENCHMARK] = "benchmark",   [STANDARD_BINARY] = "binary",
        [STANDARD_ABSOLUTE] = "absolute",     [STANDARD_ULP] = "ulp",
        [STANDARD_THOUSANDTH] = "thousandth",
    };
    return words[standard];
}
