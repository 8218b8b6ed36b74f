/* How msProbe judges an output: Python's equality, numpy's integers, and the last word counts. */
#include "msprobe/judge.h"
#include "msprobe/profile.h"

#include "verdict/cells.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCK = 512 };

static bool equal_floats(double bench, double device)
{
    return bench == device;
}

static const char *scalar_cell(const struct judge_options *options, bool equal, struct arena *arena)
{
    (void)options;
    (void)arena;
    return equal ? "0" : CELL_BLANK;
}

static enum type_class class_of(enum plumb_dtype dtype)
{
    if (plumb_dtype_info(dtype)->kind == PLUMB_KIND_FLOAT)
        return CLASS_FLOAT;
    if (dtype == PLUMB_BOOL || dtype == PLUMB_U8)
        return CLASS_BOOL;
    return dtype == PLUMB_I8 || dtype == PLUMB_I32 || dtype == PLUMB_I64 ? CLASS_INT : CLASS_NONE;
}

/* Elements as 64-bit patterns, sign-extended where the type has a sign. Whole bytes only. */
static void load_bits(const struct plumb_tensor *tensor, uint64_t first, size_t n, uint64_t *out)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    unsigned char bytes[BLOCK * 8];
    size_t size = info->bits / 8;
    unsigned unused = 64 - info->bits;
    plumb_tensor_gather(tensor, first, n, bytes);
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        for (size_t k = 0; k < size; k++) {
            size_t at = tensor->swap ? size - 1 - k : k;
            value |= (uint64_t)bytes[i * size + at] << (8 * k);
        }
        if (info->kind == PLUMB_KIND_INT && unused)
            value = value >> (info->bits - 1) & 1 ? value | ~UINT64_C(0) << info->bits : value;
        out[i] = value;
    }
}

/* The largest difference as numpy has it in the wider of the two types: wrapped around, and with
 * the most negative number as its own absolute value. */
static int64_t wrapped_difference(const struct judge_pair *pair)
{
    const struct plumb_dtype_info *b = plumb_dtype_info(pair->bench->dtype);
    const struct plumb_dtype_info *d = plumb_dtype_info(pair->device->dtype);
    unsigned width = b->bits > d->bits ? b->bits : d->bits;
    bool has_sign = b->kind == PLUMB_KIND_INT;
    uint64_t mask = width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1;
    int64_t most = INT64_MIN;
    uint64_t bench[BLOCK], device[BLOCK];
    for (uint64_t at = 0; at < pair->device->count; at += BLOCK) {
        uint64_t left = pair->device->count - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        load_bits(pair->bench, at, n, bench);
        load_bits(pair->device, at, n, device);
        for (size_t i = 0; i < n; i++) {
            uint64_t gap = (device[i] - bench[i]) & mask;
            bool negative = has_sign && gap >> (width - 1) & 1;
            if (negative)
                gap = (0 - gap) & mask;
            bool lowest = negative && gap >> (width - 1) & 1;
            int64_t size = lowest ? -(int64_t)(gap >> 1) - (int64_t)(gap >> 1) : (int64_t)gap;
            most = size > most ? size : most;
        }
    }
    return most;
}

static void quantized(const struct judge_pair *pair, const struct plumb_metrics *metrics,
                      const char *rate)
{
    (void)metrics;
    (void)rate;
    struct details_row *row = pair->row;
    if (pair->bench->dtype == PLUMB_BOOL && pair->device->dtype == PLUMB_BOOL) {
        row->status = STATUS_SKIP;
        row->message =
            "bool has no differences, so a quantized output of that type is not compared";
        return;
    }
    int64_t most = wrapped_difference(pair);
    row->cell[CELL_MAX_ABS] = arena_printf(pair->arena, "%" PRId64, most);
    judge_quantized_row(pair, (double)most <= pair->options->rules->quantized);
}

/* The last that is not pass. */
static enum check_status combine(enum check_status so_far, enum check_status next)
{
    (void)so_far;
    return next;
}

const struct precheck_judging msprobe_judging = {
    .equal_floats = equal_floats,
    .scalar_cell = scalar_cell,
    .class_of = class_of,
    .floats = msprobe_judge_floats,
    .quantized = quantized,
    .combine = combine,
    .floats_by_benchmark = true,
    .compare_level = strcmp,
};
