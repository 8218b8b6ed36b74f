/* One output, by its kind; and the parts of the documented rules that are no more than a line. */
#include "verdict/precheck.h"

#include "verdict/cells.h"
#include "verdict/profile.h"

#include <math.h>
#include <string.h>
#include <strings.h>

const char *check_status_text(enum check_status status)
{
    static const char *const text[] = {"pass", "warning", "error", "SKIP", " "};
    return text[status];
}

static const char *python_class(enum plumb_arg_kind kind)
{
    switch (kind) {
    case PLUMB_ARG_BOOL:
        return "<class 'bool'>";
    case PLUMB_ARG_INT:
        return "<class 'int'>";
    case PLUMB_ARG_FLOAT:
        return "<class 'float'>";
    case PLUMB_ARG_TEXT:
        return "<class 'str'>";
    default:
        return NULL;
    }
}

static void set(struct details_row *row, enum check_status status, const char *message)
{
    row->status = status;
    row->message = message;
}

/* A bool is an int to Python, but not the other way round. */
static bool comparable_kinds(const struct plumb_arg *bench, const struct plumb_arg *device)
{
    return bench->kind == device->kind ||
           (bench->kind == PLUMB_ARG_BOOL && device->kind == PLUMB_ARG_INT);
}

static bool equal_scalars(const struct precheck_judging *how, const struct plumb_arg *bench,
                          const struct plumb_arg *device)
{
    switch (device->kind) {
    case PLUMB_ARG_BOOL:
    case PLUMB_ARG_INT:
        return bench->integer == device->integer;
    case PLUMB_ARG_FLOAT:
        return how->equal_floats(bench->number, device->number);
    default:
        return strcmp(bench->text ? bench->text : "", device->text ? device->text : "") == 0;
    }
}

static void judge_scalars(const struct judge_options *options, const struct plumb_arg *bench,
                          const struct plumb_arg *device, struct arena *arena,
                          struct details_row *row)
{
    const struct precheck_judging *how = options->rules->profile->judge;
    bool equal = equal_scalars(how, bench, device);
    row->bench_dtype = python_class(bench->kind);
    row->device_dtype = python_class(device->kind);
    row->cell[CELL_BINARY] = how->scalar_cell(options, equal, arena);
    set(row, equal ? STATUS_PASS : STATUS_ERROR,
        equal ? "binary consistency: the values are equal"
              : "binary consistency: the values differ");
}

static bool equal_shapes(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static enum plumb_code judge_tensors(const struct judge_pair *pair)
{
    const struct plumb_tensor *bench = pair->bench, *device = pair->device;
    const struct precheck_judging *how = pair->options->rules->profile->judge;
    struct details_row *row = pair->row;
    row->bench_dtype = cell_dtype(pair->arena, bench->dtype);
    row->device_dtype = cell_dtype(pair->arena, device->dtype);
    row->shape = cell_shape(pair->arena, device);
    if (!row->bench_dtype || !row->device_dtype || !row->shape)
        return PLUMB_E_NOMEM;

    enum type_class class = how->class_of(bench->dtype);
    if (!equal_shapes(bench, device)) {
        set(row, STATUS_ERROR,
            arena_printf(pair->arena, "shapes differ: the benchmark's is %s, the device's %s",
                         cell_shape(pair->arena, bench), row->shape));
    } else if (class == CLASS_NONE || class != how->class_of(device->dtype)) {
        set(row, STATUS_ERROR,
            arena_printf(pair->arena,
                         "%s of the benchmark cannot be compared with %s of the device",
                         row->bench_dtype, row->device_dtype));
    } else if (device->count == 0) {
        set(row, STATUS_SKIP, "the output has no elements");
    } else if (class == CLASS_INT || class == CLASS_BOOL) {
        return judge_integers(pair);
    } else {
        return how->floats(pair);
    }
    return row->message ? PLUMB_OK : PLUMB_E_NOMEM;
}

static uint64_t count_zeros(const struct plumb_tensor *tensor)
{
    enum { BLOCK = 1024 };
    double values[2 * BLOCK];
    unsigned parts = plumb_dtype_parts(tensor->dtype);
    uint64_t zeros = 0;
    for (uint64_t at = 0; at < tensor->count; at += BLOCK) {
        uint64_t left = tensor->count - at;
        size_t n = left < BLOCK ? (size_t)left : BLOCK;
        plumb_tensor_to_f64(tensor, at, n, values);
        for (size_t i = 0; i < n; i++)
            zeros += values[i * parts] == 0 && values[(i + 1) * parts - 1] == 0;
    }
    return zeros;
}

static bool is_zero(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_TENSOR && count_zeros(arg->tensor) == arg->tensor->count;
}

enum plumb_code judge_output(const struct judge_options *options, const char *api, bool fp8_input,
                             const struct plumb_arg *bench, const struct plumb_arg *device,
                             struct arena *arena, struct details_row *row)
{
    row->bench_dtype = row->device_dtype = row->shape = CELL_BLANK;
    for (int i = 0; i < CELL_COUNT; i++)
        row->cell[i] = CELL_BLANK;
    const struct precheck_judging *how = options->rules->profile->judge;
    if (how->settle && how->settle(options, bench, device, row)) {
        /* that was all */
    } else if (!comparable_kinds(bench, device)) {
        set(row, STATUS_ERROR,
            arena_printf(arena, "the benchmark returned %s, the device %s",
                         plumb_arg_kind_text(bench->kind), plumb_arg_kind_text(device->kind)));
    } else if (device->kind == PLUMB_ARG_TENSOR) {
        struct judge_pair pair = {.options = options,
                                  .api = api,
                                  .fp8_input = fp8_input,
                                  .bench = bench->tensor,
                                  .device = device->tensor,
                                  .arena = arena,
                                  .row = row};
        if (judge_tensors(&pair))
            return PLUMB_E_NOMEM;
    } else if (device->kind == PLUMB_ARG_NONE) {
        set(row, STATUS_SKIP,
            options->gradient ? "None: this argument has no gradient" : "the output is None");
    } else if (python_class(device->kind)) {
        judge_scalars(options, bench, device, arena, row);
    } else {
        set(row, STATUS_ERROR,
            arena_printf(arena, "an output that is %s cannot be compared",
                         plumb_arg_kind_text(device->kind)));
    }
    for (int i = 0; i < CELL_COUNT; i++)
        if (!row->cell[i])
            return PLUMB_E_NOMEM;
    return row->message ? PLUMB_OK : PLUMB_E_NOMEM;
}

enum check_status judge_rows(const struct precheck_profile *profile, const struct details_row *rows,
                             size_t n)
{
    if (!n)
        return STATUS_BLANK;
    enum check_status status = STATUS_PASS;
    for (size_t i = 0; i < n; i++) {
        enum check_status one = rows[i].status;
        if (one == STATUS_WARNING || one == STATUS_ERROR)
            status = profile->judge->combine(status, one);
    }
    return status;
}

enum check_status judge_dropout(const struct standard_set *rules, const struct plumb_arg *bench,
                                const struct plumb_arg *device)
{
    if (bench->kind != PLUMB_ARG_TENSOR || device->kind != PLUMB_ARG_TENSOR)
        return bench->kind == PLUMB_ARG_NONE && device->kind == PLUMB_ARG_NONE ? STATUS_SKIP
                                                                               : STATUS_ERROR;
    if (bench->tensor->count != device->tensor->count)
        return STATUS_ERROR;
    uint64_t n = bench->tensor->count;
    if ((double)n < rules->dropout_count)
        return STATUS_PASS;
    double zeros[2] = {(double)count_zeros(bench->tensor), (double)count_zeros(device->tensor)};
    return fabs(zeros[0] - zeros[1]) / (double)n < rules->dropout_gap ? STATUS_PASS : STATUS_ERROR;
}

/* ---- The documented rules -------------------------------------------------------------------- */

static bool settle(const struct judge_options *options, const struct plumb_arg *bench,
                   const struct plumb_arg *device, struct details_row *row)
{
    const bool no_bench = bench->kind == PLUMB_ARG_NONE, no_device = device->kind == PLUMB_ARG_NONE;
    if (!options->gradient && no_bench && device->kind == PLUMB_ARG_TENSOR) {
        /* The signs of singular vectors, for instance, are anybody's choice. */
        set(row, STATUS_SKIP, "the operator does not determine this output");
        return true;
    }
    if (options->gradient && ((no_bench && is_zero(device)) || (no_device && is_zero(bench)))) {
        set(row, STATUS_PASS, "None on one side, zeros on the other: no gradient either way");
        return true;
    }
    return false;
}

static bool equal_floats(double bench, double device)
{
    return bench == device || (isnan(bench) && isnan(device));
}

static const char *scalar_cell(const struct judge_options *options, bool equal, struct arena *arena)
{
    return cell_number(arena, equal ? 0 : 1, PLUMB_F64, options->precision);
}

static enum type_class class_of(enum plumb_dtype dtype)
{
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    return kind == PLUMB_KIND_FLOAT     ? CLASS_FLOAT
           : kind == PLUMB_KIND_COMPLEX ? CLASS_COMPLEX
                                        : CLASS_INT;
}

/* Any error, else any warning. */
static enum check_status combine(enum check_status so_far, enum check_status next)
{
    return so_far == STATUS_ERROR ? so_far : next;
}

const struct precheck_judging judging_documented = {
    .settle = settle,
    .equal_floats = equal_floats,
    .scalar_cell = scalar_cell,
    .class_of = class_of,
    .floats = judge_documented_float,
    .quantized = judge_documented_quantized,
    .combine = combine,
    .compare_level = strcasecmp,
};
