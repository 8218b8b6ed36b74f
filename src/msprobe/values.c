/* The origin's recipe for random values: one generator, one or two draws an element, and every
 * rounding where PyTorch 1.13 rounds. */
#include "exec/values/parts.h"
#include "msprobe/profile.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 };

struct recipe {
    const struct case_tensor *tensor;
    struct value_draws *draws;
    const struct plumb_tensor *out;
    void *data;
    struct plumb_error *err;
    struct case_limit lo, hi, lo0, hi0; /* without and with NaN and infinities */
};

static bool is_number(const struct case_limit *limit)
{
    return limit->kind == LIMIT_INT || limit->kind == LIMIT_FLOAT || limit->kind == LIMIT_BOOL;
}

static bool is_nan(const struct case_limit *limit)
{
    return is_number(limit) && isnan(limit->number);
}

static bool is_inf(const struct case_limit *limit)
{
    return is_number(limit) && isinf(limit->number);
}

static uint64_t draw64(struct value_draws *draws)
{
    uint64_t high = value_draw(draws);
    return high << 32 | value_draw(draws);
}

static void put_floats(const struct recipe *r, const struct encoder *e, double lo, double hi)
{
    enum plumb_dtype dtype = r->out->dtype;
    double scale = hi - lo, block[BLOCK];
    /* The types of 8 bits are drawn as float32. */
    uint32_t steps = dtype == PLUMB_F16 ? 1u << 11 : dtype == PLUMB_BF16 ? 1u << 8 : 1u << 24;
    float by = values_round_float(dtype, (float)scale), from = values_round_float(dtype, (float)lo);
    for (uint64_t at = 0; at < r->out->count; at += BLOCK) {
        size_t n = r->out->count - at < BLOCK ? (size_t)(r->out->count - at) : BLOCK;
        for (size_t i = 0; i < n && dtype == PLUMB_F64; i++) {
            double unit = (double)(draw64(r->draws) & 0x1FFFFFFFFFFFFFu) * 0x1p-53;
            block[i] = unit * scale + lo;
        }
        for (size_t i = 0; i < n && dtype != PLUMB_F64; i++) {
            float unit = (float)(value_draw(r->draws) & (steps - 1)) / (float)steps;
            float product = values_round_float(dtype, unit * by);
            block[i] = (double)values_round_float(dtype, product + from);
        }
        encoder_put(e, r->data, at, n, block);
    }
}

static void put_all(const struct recipe *r, const struct encoder *e, uint64_t from, double value)
{
    for (uint64_t i = from; i < r->out->count; i++)
        encoder_put_one(e, r->data, i, value);
}

static void put_one(const struct recipe *r, const struct encoder *e, uint64_t at, double value)
{
    /* A Python number becomes a float16 by way of float32. */
    encoder_put_one(e, r->data, at, r->out->dtype == PLUMB_F64 ? value : (double)(float)value);
}

static void put_float_ends(const struct recipe *r, const struct encoder *e)
{
    uint64_t last = r->out->count - 1;
    put_one(r, e, 0, r->lo.number);
    if (is_nan(&r->hi0))
        put_one(r, e, last > 1 ? 1 : 0, NAN);
    put_one(r, e, last, r->hi.number);
    if (is_inf(&r->hi0))
        put_one(r, e, last, r->hi0.number);
    if (is_inf(&r->lo0))
        put_one(r, e, 0, r->lo0.number);
}

static enum plumb_code fill_floats(const struct recipe *r)
{
    struct encoder e;
    encoder_init(&e, r->out->dtype);
    double lo = r->lo.number, hi = r->hi.number;
    if (isnan(hi)) {
        put_all(r, &e, 0, NAN);
        return PLUMB_OK;
    }
    bool truthy = is_number(&r->hi0) && r->hi0.number != 0;
    if (truthy && isinf(hi)) {
        if (r->out->rank == 0)
            return plumb_fail(r->err, PLUMB_E_FORMAT,
                              "a scalar cannot have an infinite Max under "
                              "these rules");
        uint64_t slice = r->out->count / (uint64_t)r->out->shape[0];
        put_all(r, &e, 0, hi);
        put_all(r, &e, r->out->count - slice, lo);
        return PLUMB_OK;
    }
    double max = plumb_dtype_info(r->out->dtype)->max_finite;
    put_floats(r, &e, isinf(lo) ? copysign(max, lo) : lo, isinf(hi) ? copysign(max, hi) : hi);
    put_float_ends(r, &e);
    return PLUMB_OK;
}

/* The limit cut to an integer. False when it is none, or none of 64 bits. */
static bool whole(const struct case_limit *limit, int64_t *out)
{
    if (limit->kind != LIMIT_FLOAT) {
        *out = limit->integer;
        return true;
    }
    double cut = trunc(limit->number);
    if (!(cut >= -0x1p63 && cut < 0x1p63))
        return false;
    *out = (int64_t)cut;
    return true;
}

static bool fits(enum plumb_dtype dtype, int64_t value)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (info->kind == PLUMB_KIND_BOOL || info->bits == 64)
        return true;
    bool is_signed = info->kind == PLUMB_KIND_INT;
    int64_t max = (int64_t)1 << (info->bits - (is_signed ? 1 : 0));
    return value < max && value >= (is_signed ? -max : 0);
}

static enum plumb_code fill_ints(const struct recipe *r)
{
    enum plumb_dtype dtype = r->out->dtype;
    bool boolean = dtype == PLUMB_BOOL;
    int64_t lo, hi;
    if (!whole(&r->lo, &lo) || !whole(&r->hi, &hi))
        return plumb_fail(r->err, PLUMB_E_FORMAT, "its limits %g and %g are no integers",
                          r->lo.number, r->hi.number);
    if (boolean && lo > hi) {
        int64_t swap = lo;
        lo = hi;
        hi = swap;
    }
    uint64_t range = (uint64_t)hi - (uint64_t)lo + 1;
    if (lo > hi || !range || hi == INT64_MAX || !fits(dtype, lo) || !fits(dtype, hi))
        return plumb_fail(r->err, PLUMB_E_FORMAT, "%s cannot be drawn from %lld to %lld",
                          plumb_dtype_info(dtype)->name, (long long)lo, (long long)hi);
    uint64_t block[BLOCK];
    for (uint64_t at = 0; at < r->out->count; at += BLOCK) {
        size_t n = r->out->count - at < BLOCK ? (size_t)(r->out->count - at) : BLOCK;
        for (size_t i = 0; i < n; i++) {
            uint64_t draw = range > UINT32_MAX ? draw64(r->draws) : value_draw(r->draws);
            uint64_t value = (uint64_t)lo + draw % range;
            block[i] = boolean ? (int64_t)value > 0 : value;
        }
        values_put_ints(dtype, r->data, at, n, block);
    }
    if (!boolean) {
        uint64_t ends[2] = {(uint64_t)lo, (uint64_t)hi};
        values_put_ints(dtype, r->data, 0, 1, &ends[0]);
        values_put_ints(dtype, r->data, r->out->count - 1, 1, &ends[1]);
    }
    return PLUMB_OK;
}

/* PyTorch 1.13 has no other integers. */
static bool is_drawable(enum plumb_dtype dtype)
{
    switch (dtype) {
    case PLUMB_U16:
    case PLUMB_U32:
    case PLUMB_U64:
    case PLUMB_I4:
    case PLUMB_F4_E2M1:
    case PLUMB_C64:
    case PLUMB_C128:
        return false;
    default:
        return true;
    }
}

static enum plumb_code fill(const struct case_tensor *t, struct value_draws *draws,
                            const struct plumb_tensor *out, void *data, struct plumb_error *err)
{
    struct recipe r = {.tensor = t, .draws = draws, .out = out, .data = data, .err = err};
    r.lo0 = t->min;
    r.hi0 = t->max;
    r.lo = t->min_finite.kind != LIMIT_ABSENT ? t->min_finite : t->min;
    r.hi = t->max_finite.kind != LIMIT_ABSENT ? t->max_finite : t->max;
    if (out->count && (!is_number(&r.lo) || !is_number(&r.hi)))
        return plumb_fail(err, PLUMB_E_FORMAT, "its Max or Min is no number");
    if (!is_drawable(out->dtype))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "%s values are not generated under the rules of msprobe",
                          plumb_dtype_info(out->dtype)->name);
    if (!out->count)
        return PLUMB_OK;
    if (plumb_dtype_info(out->dtype)->kind == PLUMB_KIND_FLOAT)
        return fill_floats(&r);
    return fill_ints(&r);
}

/* ---- What else it does with arguments -------------------------------------------------------- */

static enum plumb_code refuse(const struct case_arg *arg, struct plumb_error *err)
{
    if (arg->bare)
        plumb_fail(err, PLUMB_E_FORMAT, "a bare value, without its type, is not accepted");
    else if (arg->value.kind == PLUMB_ARG_OTHER && arg->numpy)
        plumb_fail(err, PLUMB_E_UNSUPPORTED, "a numpy array is not accepted");
    else if (arg->value.kind == PLUMB_ARG_OTHER && !arg->value.text)
        plumb_fail(err, PLUMB_E_UNSUPPORTED,
                   "what it was has not been recorded (a dtype or device?)");
    else
        return PLUMB_OK;
    return PLUMB_E_UNSUPPORTED;
}

static enum plumb_code refuse_list(const struct case_arg *list, struct plumb_error *err)
{
    for (size_t i = 0; i < list->n_items; i++) {
        enum plumb_arg_kind kind = list->items[i].value.kind;
        if (kind == PLUMB_ARG_NONE || kind == PLUMB_ARG_LIST)
            return plumb_fail(err, PLUMB_E_UNSUPPORTED, "a list in it, or a null, is not accepted");
    }
    return PLUMB_OK;
}

/* HF32, in which convolutions compute: float32 with 11 bits of mantissa, ties away from zero. */
static void round_hf32(const char *api, const struct plumb_tensor *tensor, void *data)
{
    if (tensor->dtype != PLUMB_F32 || (strcmp(api, "conv1d") != 0 && strcmp(api, "conv2d") != 0))
        return;
    uint32_t *bits = data;
    for (uint64_t i = 0; i < tensor->count; i++)
        bits[i] = (bits[i] + 0x800u) & 0xFFFFF000u;
}

const struct value_profile msprobe_values = {
    .name = "msprobe",
    .recipe = fill,
    .seed = 1234,
    .refuse = refuse,
    .refuse_list = refuse_list,
    .finish = round_hf32,
    .lists_need_no_grad = true,
    .any_file = true,
    .files_only = true,
    .any_classes = true,
    .unsorted_offsets = true,
};
