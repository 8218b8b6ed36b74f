/* Float outputs as msProbe compares them: numpy's arithmetic in numpy's types, in its order of
 * summation, and its columns. */
#include "msprobe/judge.h"
#include "msprobe/numpy_sum.h"
#include "verdict/cells.h"
#include "verdict/ladder.h"
#include "verdict/precheck_parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { BLOCK = 1024 };

struct sums {
    /* numpy's types: of each side, of a difference, and of a relative error. */
    enum plumb_dtype bench, device, wide, relative;
    bool scalar; /* shape (): numpy promotes differently */
    double eps, dual[DUALS];
    const struct standard_limits *limits;

    uint64_t count, bad, small, small_errors, masked, above, below, under[DUALS];
    double max_abs, max_rel, max_device, max_bench, max_ulp;
    uint64_t ulp_over;
    struct numpy_sum squares, rel, ulp;
    double b[BLOCK], d[BLOCK];
};

static double narrow(enum plumb_dtype type, double x)
{
    return type == PLUMB_F64 ? x : type == PLUMB_F32 ? (double)(float)x : plumb_round_to(type, x);
}

/* numpy's maximum: a NaN stays. */
static double maximum(double a, double b)
{
    return isnan(a) || a >= b ? a : b;
}

static enum plumb_dtype numpy_type(const struct judge_pair *pair, enum plumb_dtype dtype)
{
    bool brain = pair->device->dtype == PLUMB_BF16; /* makes float32 of both sides */
    if (brain || dtype == PLUMB_BF16 || standard_is_fp8(dtype))
        return PLUMB_F32;
    return dtype;
}

static void sums_init(struct sums *sums, const struct judge_pair *pair)
{
    sums->bench = numpy_type(pair, pair->bench->dtype);
    sums->device = numpy_type(pair, pair->device->dtype);
    sums->wide = plumb_dtype_info(sums->bench)->bits > plumb_dtype_info(sums->device)->bits
                     ? sums->bench
                     : sums->device;
    sums->scalar = pair->device->rank == 0;
    sums->relative = sums->scalar ? PLUMB_F64 : sums->wide;
    sums->eps = pair->device->dtype == PLUMB_BF16 ? 0x1p-8
                : sums->bench == PLUMB_F16        ? 0x1p-10
                : sums->bench == PLUMB_F32        ? 0x1p-23
                                                  : 0x1p-52;
    for (int i = 0; i < DUALS; i++) /* an array is compared in its own type */
        sums->dual[i] = narrow(sums->relative, ladder_limit[i]);
    sums->limits = standard_limits(pair->options->rules, pair->device->dtype);
    sums->count = sums->bad = sums->small = sums->small_errors = sums->masked = 0;
    sums->above = sums->below = sums->ulp_over = 0;
    sums->under[0] = sums->under[1] = sums->under[2] = 0;
    sums->max_abs = sums->max_rel = sums->max_device = sums->max_bench = 0;
    sums->max_ulp = -INFINITY;
    numpy_sum_init(&sums->squares, sums->relative);
    numpy_sum_init(&sums->rel, sums->relative);
    numpy_sum_init(&sums->ulp, PLUMB_F64);
}

static void add_element(struct sums *sums, double b, double d, bool brain)
{
    double error = narrow(sums->wide, fabs(d - b));
    bool wide = sums->scalar && brain; /* a number of Python's makes float64 of a scalar */
    double den = narrow(wide ? PLUMB_F64 : sums->bench, fabs(b) + sums->eps);
    double rel = narrow(wide ? PLUMB_F64 : sums->wide, error / den);
    double held = narrow(sums->device, b);
    bool finite = isfinite(d) && isfinite(held);
    bool small = finite && fabs(b) <= sums->limits->small;

    sums->count++;
    sums->bad += !finite;
    sums->above += d - held > 0;
    sums->below += d - held < 0;
    sums->small += small;
    sums->small_errors += small && error > narrow(sums->relative, sums->limits->small_atol);
    for (int i = 0; i < DUALS; i++)
        sums->under[i] += rel < sums->dual[i];
    sums->max_abs = maximum(sums->max_abs, error);
    sums->max_device = maximum(sums->max_device, fabs(d));
    sums->max_bench = maximum(sums->max_bench, fabs(b));
    if (small || !finite) {
        sums->masked++;
        numpy_sum_add(&sums->squares, 0);
    } else {
        numpy_sum_add(&sums->squares, narrow(sums->relative, error * error));
        numpy_sum_add(&sums->rel, rel);
        sums->max_rel = maximum(sums->max_rel, rel);
    }
}

static void add_ulp(struct sums *sums, double b, double d)
{
    double ulp = judge_fp8_ulp(d, b);
    sums->max_ulp = isnan(ulp) ? ulp : maximum(sums->max_ulp, ulp);
    sums->ulp_over += ulp > sums->limits->ulp_threshold;
    numpy_sum_add(&sums->ulp, ulp);
}

static void add_all(struct sums *sums, const struct judge_pair *pair)
{
    bool brain = pair->device->dtype == PLUMB_BF16;
    bool fp8 = standard_is_fp8(pair->device->dtype);
    for (uint64_t at = 0; at < pair->device->count; at += BLOCK) {
        uint64_t left = pair->device->count - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        plumb_tensor_to_f64(pair->bench, at, n, sums->b);
        plumb_tensor_to_f64(pair->device, at, n, sums->d);
        for (size_t i = 0; i < n; i++)
            add_element(sums, brain ? (double)(float)sums->b[i] : sums->b[i], sums->d[i], brain);
        for (size_t i = 0; fp8 && i < n; i++)
            add_ulp(sums, sums->b[i], sums->d[i]);
    }
}

static double share(uint64_t part, uint64_t whole)
{
    return (double)part / (double)whole;
}

/* A rate over elements that there may be none of: a plain 0 then. */
static const char *rate_cell(const struct judge_pair *pair, double rate, uint64_t whole)
{
    return whole ? cell_number(pair->arena, rate, PLUMB_F64, pair->options->precision) : "0";
}

static void fill_benchmark(const struct judge_pair *pair, struct sums *sums)
{
    struct arena *arena = pair->arena;
    unsigned precision = pair->options->precision;
    const char **cell = pair->row->cell;
    uint64_t n = sums->count, kept = n - sums->masked;
    uint64_t balance =
        sums->above > sums->below ? sums->above - sums->below : sums->below - sums->above;
    double correction = (double)n / ((double)kept + 0.0001) + 0.0001;

    cell[CELL_BALANCE] = cell_number(arena, share(balance, n), PLUMB_F64, precision);
    cell[CELL_RMSE] =
        cell_number(arena, sqrt(numpy_sum_mean(&sums->squares) * correction), PLUMB_F64, precision);
    cell[CELL_SMALL] = rate_cell(pair, share(sums->small_errors, sums->small), sums->small);
    cell[CELL_MAX_REL] = kept ? cell_number(arena, sums->max_rel, sums->relative, precision) : "0";
    cell[CELL_MEAN_REL] =
        kept ? cell_number(arena, numpy_sum_mean(&sums->rel), sums->relative, precision) : "0";
}

static void fill_absolute(const struct judge_pair *pair, const struct sums *sums,
                          const struct plumb_metrics *metrics)
{
    const char **cell = pair->row->cell;
    cell[CELL_INF_NAN] = rate_cell(pair, metrics->inf_nan_error_rate, sums->bad);
    cell[CELL_REL_RATE] =
        rate_cell(pair, metrics->rel_error_rate, sums->count - sums->bad - sums->small);
    cell[CELL_ABS_RATE] = rate_cell(pair, metrics->abs_error_rate, sums->small);
}

static void fill_ulp(const struct judge_pair *pair, struct sums *sums)
{
    struct arena *arena = pair->arena;
    unsigned precision = pair->options->precision;
    const char **cell = pair->row->cell;
    cell[CELL_ULP_MAX] = cell_number(arena, sums->max_ulp, PLUMB_F64, precision);
    cell[CELL_ULP_MEAN] = cell_number(arena, numpy_sum_mean(&sums->ulp), PLUMB_F64, precision);
    cell[CELL_ULP_RATE] =
        cell_number(arena, share(sums->ulp_over, sums->count), PLUMB_F64, precision);
}

/* Cells are filled as far as the way to the verdict went. */
static enum plumb_code fill_ladder(const struct judge_pair *pair, const struct sums *sums,
                                   double cosine)
{
    struct arena *arena = pair->arena;
    unsigned precision = pair->options->precision;
    const char **cell = pair->row->cell;
    uint64_t n = sums->count;
    bool half = plumb_dtype_info(pair->device->dtype)->bits <= 16;
    struct ladder ladder = {
        .rules = pair->options->rules,
        .half = half,
        .which =
            cosine_case(n, sums->max_device <= COSINE_ZERO, sums->max_bench <= COSINE_ZERO, cosine),
        .cosine = cosine,
        .max_abs = sums->max_abs,
    };
    for (int i = 0; i < DUALS; i++)
        ladder.dual[i] = share(sums->under[i], n);

    enum ladder_step end;
    if (!ladder_climb(&ladder, arena, pair->row, &end))
        return PLUMB_E_NOMEM;
    if (ladder.which == COSINE_GIVEN || ladder.which == COSINE_NAN)
        cell[CELL_COSINE] = cell_number(arena, cosine, PLUMB_F64, precision);
    if (end != STEP_COSINE)
        cell[CELL_MAX_ABS] = cell_number(arena, sums->max_abs, sums->wide, precision);
    if (end == STEP_COSINE || end == STEP_MAX_ABS)
        return PLUMB_OK;
    if (half)
        cell[CELL_DUAL_100] = cell_number(arena, ladder.dual[DUAL_100], PLUMB_F64, precision);
    if (!half || end == STEP_DUAL_1000)
        cell[CELL_DUAL_1000] = cell_number(arena, ladder.dual[DUAL_1000], PLUMB_F64, precision);
    if (!half)
        cell[CELL_DUAL_10000] = cell_number(arena, ladder.dual[DUAL_10000], PLUMB_F64, precision);
    return PLUMB_OK;
}

/* To the metrics engine, 0 stands for limits of its own. */
static double at_least_something(double limit)
{
    return limit > 0 ? limit : DBL_TRUE_MIN;
}

enum plumb_code msprobe_judge_floats(const struct judge_pair *pair)
{
    enum check_standard standard =
        standard_route(pair->options->rules, pair->api, pair->device->dtype, pair->fp8_input);
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.relative = PLUMB_REL_PRECHECK;
    spec.groups = PLUMB_G_ERROR | (standard == STANDARD_ABSOLUTE ? PLUMB_G_PRECHECK : 0);
    const struct standard_limits *limits =
        standard_limits(pair->options->rules, pair->device->dtype);
    spec.small = at_least_something(limits->small);
    spec.small_atol = at_least_something(limits->absolute_atol);
    spec.small_rtol = at_least_something(limits->rtol);
    struct plumb_metrics metrics;
    struct sums *sums = malloc(sizeof *sums);
    enum plumb_code code = PLUMB_E_NOMEM;
    if (!sums || plumb_metric_pair(&spec, pair->device, pair->bench, &metrics, NULL))
        goto out;
    sums_init(sums, pair);
    add_all(sums, pair);

    bool finite = isfinite(sums->max_device) && isfinite(sums->max_bench);
    code = fill_ladder(pair, sums, finite ? metrics.cosine : NAN);
    if (pair->device->dtype == PLUMB_F64)
        goto out; /* none of the standards is for float64 */
    if (standard == STANDARD_BENCHMARK)
        fill_benchmark(pair, sums);
    else if (standard == STANDARD_ABSOLUTE)
        fill_absolute(pair, sums, &metrics);
    else
        fill_ulp(pair, sums);
out:
    free(sums);
    return code;
}
