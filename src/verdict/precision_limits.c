/* The standards, one function each. */
#include "verdict/precision_limits.h"
#include "verdict/profile.h"

#include <math.h>
#include <string.h>

static const struct {
    enum precision_column column;
    enum precision_field field;
    size_t limit; /* of struct standard_level */
    bool counts;  /* takes part in the verdict */
} ratios[] = {
    {COLUMN_SMALL, FIELD_SMALL, offsetof(struct standard_level, small), true},
    {COLUMN_RMSE, FIELD_RMSE, offsetof(struct standard_level, rmse), true},
    {COLUMN_MAX_REL, FIELD_MAX_REL, offsetof(struct standard_level, max_rel), true},
    {COLUMN_MEAN_REL, FIELD_MEAN_REL, offsetof(struct standard_level, mean_rel), true},
    {COLUMN_BALANCE, FIELD_BALANCE, offsetof(struct standard_level, balance), false},
};

enum { RATIO_COUNT = sizeof ratios / sizeof *ratios, RATE_COUNT = 3 };

static const struct {
    enum precision_column column;
    enum precision_field field;
} rates[RATE_COUNT] = {{COLUMN_INF_NAN, FIELD_INF_NAN},
                       {COLUMN_REL_RATE, FIELD_REL_RATE},
                       {COLUMN_ABS_RATE, FIELD_ABS_RATE}};

static void put_number(struct judged *judged, enum precision_field field, double number)
{
    judged->fields[field] = (struct field){.kind = FIELD_NUMBER, .number = number};
}

/* Sets a verdict field, and with it the row's verdict when it counts. */
static void put_verdict(struct judged *judged, enum precision_field field, bool good, bool counts)
{
    enum verdict verdict = good ? VERDICT_PASS : VERDICT_ERROR;
    const char *text = precision_verdict_text(verdict);
    judged->fields[field] =
        (struct field){.kind = FIELD_TEXT, .text = text, .length = strlen(text)};
    if (counts && judged->verdict < verdict)
        judged->verdict = verdict;
}

static void say(struct judged *judged, const char *separator)
{
    if (judged->message->size)
        buf_text(judged->message, separator);
}

static void fail_row(struct judged *judged, enum precision_column column, const char *what)
{
    judged->failed = true;
    say(judged, "; ");
    buf_printf(judged->message, "%s: %s", precision_column_title(column), what);
}

/* The number of a cell, where blank may count as 0; else the row fails. */
static double number_of(struct judged *judged, struct value value, enum precision_column column,
                        bool blank_is_zero)
{
    if (value.kind == VALUE_BLANK && blank_is_zero)
        return 0;
    if (value.kind == VALUE_BLANK)
        fail_row(judged, column, "the cell is blank");
    if (value.kind == VALUE_TEXT)
        fail_row(judged, column, "the cell is no number");
    return value.number;
}

/* |a| / |b|, with a smallest denominator; NaN where one of them is not finite, and then *equal says
 * whether they are the same infinity or both NaN. */
static double ratio_of(double a, double b, double smallest, bool *equal)
{
    *equal = isfinite(a) && isfinite(b);
    if (*equal)
        return fabs(a) / fmax(fabs(b), smallest);
    *equal = (isnan(a) && isnan(b)) || (isinf(a) && a == b);
    return NAN;
}

static void apply_benchmark(const struct metrics *metrics, const struct route *route,
                            struct judged *judged)
{
    for (size_t i = 0; i < RATIO_COUNT; i++) {
        enum precision_column column = ratios[i].column;
        const char *title = precision_column_title(column);
        double limit;
        memcpy(&limit, (const char *)route->level + ratios[i].limit, sizeof limit);
        bool blank =
            !route->rules->profile->precision->blank_is_zero &&
            (metrics->a[column].kind == VALUE_BLANK || metrics->b[column].kind == VALUE_BLANK);
        if (blank)
            continue; /* the error balance: no standard depends on it */
        double a = number_of(judged, metrics->a[column], column, true);
        double b = number_of(judged, metrics->b[column], column, true);
        if (judged->failed)
            return;
        bool equal;
        double ratio = ratio_of(a, b, route->limits->min_denominator, &equal);
        bool good = isnan(ratio) ? equal : ratio <= limit;
        put_number(judged, ratios[i].field, ratio);
        put_verdict(judged, ratios[i].field + 1, good, ratios[i].counts);
        if (isnan(ratio)) {
            say(judged, "; ");
            buf_printf(judged->message,
                       equal ? "%s: the same inf or nan on both sides"
                             : "%s: inf or nan is not the same on both sides",
                       title);
        } else if (!good) {
            say(judged, "; ");
            buf_printf(judged->message, "%s: ratio %.6g is over %g (%s)%s", title, ratio, limit,
                       route->level->name, ratios[i].counts ? "" : ", which does not count");
        }
    }
}

static void apply_binary(const struct metrics *metrics, const struct route *route,
                         struct judged *judged)
{
    struct value value = metrics->a[COLUMN_BINARY];
    struct csv_cell cell = metrics->cells[COLUMN_BINARY];
    double rate = number_of(judged, value, COLUMN_BINARY, false);
    if (judged->failed)
        return;
    /* Copied as it is, unless reading has made a number of it that is printed as such. */
    if (!route->rules->profile->precision->copies_rate || value.kind == VALUE_MISSING ||
        (value.typed && !value.whole))
        put_number(judged, FIELD_BINARY, rate);
    else
        judged->fields[FIELD_BINARY] =
            (struct field){.kind = FIELD_TEXT, .text = cell.text, .length = cell.length};
    put_verdict(judged, FIELD_BINARY_VERDICT, rate == 0, true);
    if (rate != 0) {
        say(judged, "; ");
        buf_printf(judged->message, "%s: %.6g is not 0", precision_column_title(COLUMN_BINARY),
                   fabs(rate)); /* here and below: a NaN without its sign */
    }
}

static void apply_absolute(const struct metrics *metrics, struct judged *judged)
{
    for (size_t i = 0; i < RATE_COUNT; i++) {
        enum precision_column column = rates[i].column;
        double rate = number_of(judged, metrics->a[column], column, false);
        if (judged->failed)
            return;
        put_number(judged, rates[i].field, rate);
        put_verdict(judged, rates[i].field + 1, rate == 0, true);
        if (rate != 0) {
            say(judged, "; ");
            buf_printf(judged->message, "%s: %.6g is not 0", precision_column_title(column),
                       fabs(rate));
        }
    }
}

/* 8-bit floats have no ratio and no mean. */
static void apply_ulp_fp8(const struct metrics *metrics, const struct route *route,
                          struct judged *judged)
{
    double share = number_of(judged, metrics->a[COLUMN_ULP_RATE], COLUMN_ULP_RATE, true);
    if (judged->failed)
        return;
    bool good = share < route->limits->ulp_share;
    put_number(judged, FIELD_ULP_RATE, share);
    put_verdict(judged, FIELD_ULP_VERDICT, good, true);
    if (!good)
        buf_printf(judged->message, "%s: %.6g is not below %g",
                   precision_column_title(COLUMN_ULP_RATE), fabs(share), route->limits->ulp_share);
}

static void apply_ulp(const struct metrics *metrics, const struct route *route,
                      struct judged *judged)
{
    const struct standard_limits *limits = route->limits;
    double mean = number_of(judged, metrics->a[COLUMN_ULP_MEAN], COLUMN_ULP_MEAN, false);
    double share = number_of(judged, metrics->a[COLUMN_ULP_RATE], COLUMN_ULP_RATE, false);
    double mean_b = number_of(judged, metrics->b[COLUMN_ULP_MEAN], COLUMN_ULP_MEAN, false);
    double share_b = number_of(judged, metrics->b[COLUMN_ULP_RATE], COLUMN_ULP_RATE, false);
    if (judged->failed)
        return;
    bool same_mean, same_share;
    ratio_of(mean, mean_b, limits->min_denominator, &same_mean);
    double ratio = ratio_of(share, share_b, limits->min_denominator, &same_share);
    bool good = same_mean && same_share &&
                ((limits->ulp_mean > 0 && mean < limits->ulp_mean) || share < limits->ulp_share ||
                 ratio < route->rules->ulp_ratio);
    put_number(judged, FIELD_ULP_MEAN, mean);
    put_number(judged, FIELD_ULP_RATE, share);
    put_number(judged, FIELD_ULP_RATIO, ratio);
    put_verdict(judged, FIELD_ULP_VERDICT, good, true);
    if (!same_mean || !same_share) {
        buf_printf(judged->message, "%s: inf or nan is not the same on both sides",
                   precision_column_title(same_mean ? COLUMN_ULP_RATE : COLUMN_ULP_MEAN));
        return;
    }
    if (good)
        return;
    if (limits->ulp_mean > 0)
        buf_printf(judged->message, "%s: %.6g is not below %g; ",
                   precision_column_title(COLUMN_ULP_MEAN), fabs(mean), limits->ulp_mean);
    buf_printf(judged->message, "%s: %.6g is not below %g, and its ratio %.6g is not below %g",
               precision_column_title(COLUMN_ULP_RATE), fabs(share), limits->ulp_share, fabs(ratio),
               route->rules->ulp_ratio);
}

static void apply_thousandth(const struct metrics *metrics, const struct route *route,
                             struct judged *judged)
{
    double share = number_of(judged, metrics->a[COLUMN_DUAL_1000], COLUMN_DUAL_1000, false);
    if (judged->failed)
        return;
    const double limit = route->rules->thousandth;
    bool reached = route->rules->profile->precision->thousandth_reached;
    bool good = reached ? share >= limit : share > limit;
    put_number(judged, FIELD_DUAL_1000, share);
    put_verdict(judged, FIELD_DUAL_1000_VERDICT, good, true);
    if (!good)
        buf_printf(judged->message, "%s: %.6g is not over %g",
                   precision_column_title(COLUMN_DUAL_1000), fabs(share), limit);
}

static bool has_both(const struct metrics *metrics, enum precision_column column)
{
    return metrics->a[column].kind != VALUE_BLANK && metrics->b[column].kind != VALUE_BLANK;
}

bool precision_has(const struct metrics *metrics, const struct route *route,
                   enum check_standard standard)
{
    bool has = true;
    switch (standard) {
    case STANDARD_BENCHMARK:
        for (size_t i = 0; i < RATIO_COUNT; i++)
            has = has && (!ratios[i].counts || has_both(metrics, ratios[i].column));
        return has;
    case STANDARD_ABSOLUTE:
        for (size_t i = 0; i < RATE_COUNT; i++)
            has = has && metrics->a[rates[i].column].kind != VALUE_BLANK;
        return has;
    case STANDARD_ULP:
        if (standard_is_fp8(route->dtype))
            return metrics->a[COLUMN_ULP_RATE].kind != VALUE_BLANK;
        return has_both(metrics, COLUMN_ULP_MEAN) && has_both(metrics, COLUMN_ULP_RATE);
    case STANDARD_BINARY:
        return metrics->a[COLUMN_BINARY].kind != VALUE_BLANK;
    case STANDARD_THOUSANDTH:
        return metrics->a[COLUMN_DUAL_1000].kind != VALUE_BLANK;
    case STANDARD_ACCUMULATIVE:
    case STANDARD_COUNT:
        break;
    }
    return false;
}

void precision_apply(const struct metrics *metrics, const struct route *route,
                     enum check_standard standard, struct judged *judged)
{
    judged->standard = (int)standard;
    switch (standard) {
    case STANDARD_BENCHMARK:
        apply_benchmark(metrics, route, judged);
        break;
    case STANDARD_ABSOLUTE:
        apply_absolute(metrics, judged);
        break;
    case STANDARD_ULP:
        if (standard_is_fp8(route->dtype))
            apply_ulp_fp8(metrics, route, judged);
        else
            apply_ulp(metrics, route, judged);
        break;
    case STANDARD_BINARY:
        apply_binary(metrics, route, judged);
        break;
    case STANDARD_THOUSANDTH:
        apply_thousandth(metrics, route, judged);
        break;
    case STANDARD_ACCUMULATIVE:
    case STANDARD_COUNT:
        break;
    }
}

/* Whether a is at most b, or both are NaN. */
static bool at_most(const struct metrics *metrics, enum precision_column column)
{
    const struct value *a = &metrics->a[column], *b = &metrics->b[column];
    const bool both_nan = a->kind == b->kind && isnan(a->number) && isnan(b->number);
    return b->kind != VALUE_BLANK && (a->number <= b->number || both_nan);
}

bool precision_no_worse(const struct metrics *metrics, enum check_standard standard)
{
    switch (standard) {
    case STANDARD_ABSOLUTE:
        return at_most(metrics, COLUMN_INF_NAN) && at_most(metrics, COLUMN_REL_RATE) &&
               at_most(metrics, COLUMN_ABS_RATE);
    case STANDARD_ULP:
        return at_most(metrics, COLUMN_ULP_MEAN) && at_most(metrics, COLUMN_ULP_RATE);
    case STANDARD_BINARY:
        return at_most(metrics, COLUMN_BINARY);
    case STANDARD_THOUSANDTH:
        return metrics->b[COLUMN_DUAL_1000].kind == VALUE_NUMBER &&
               metrics->a[COLUMN_DUAL_1000].number >= metrics->b[COLUMN_DUAL_1000].number;
    case STANDARD_BENCHMARK: /* compares with the other device to begin with */
    case STANDARD_ACCUMULATIVE:
    case STANDARD_COUNT:
        break;
    }
    return false;
}

void precision_apply_inf_nan(const struct metrics *metrics, struct judged *judged)
{
    const struct value *a = &metrics->a[COLUMN_INF_NAN], *b = &metrics->b[COLUMN_INF_NAN];
    const double other = b->kind == VALUE_NUMBER ? b->number : 0;
    if (a->kind != VALUE_NUMBER || !(a->number > other))
        return;
    put_number(judged, FIELD_INF_NAN, a->number);
    put_verdict(judged, FIELD_INF_NAN_VERDICT, false, true);
    say(judged, "; ");
    buf_printf(judged->message, "%s: %.6g is more than the other device's %.6g",
               precision_column_title(COLUMN_INF_NAN), a->number, other);
}
