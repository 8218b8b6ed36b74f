#include "verdict/precheck.h"

#include "verdict/cells.h"
#include "verdict/precheck_parts.h"

#include <math.h>
#include <string.h>

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

static bool equal_scalars(enum check_rules rules, const struct plumb_arg *bench,
                          const struct plumb_arg *device)
{
    switch (device->kind) {
    case PLUMB_ARG_BOOL:
    case PLUMB_ARG_INT:
        return bench->integer == device->integer;
    case PLUMB_ARG_FLOAT:
        if (rules == RULES_DOCUMENTED && isnan(bench->number) && isnan(device->number))
            return true;
        return bench->number == device->number;
    default:
        return strcmp(bench->text ? bench->text : "", device->text ? device->text : "") == 0;
    }
}

static void judge_scalars(const struct judge_options *options, const struct plumb_arg *bench,
                          const struct plumb_arg *device, struct arena *arena,
                          struct details_row *row)
{
    bool equal = equal_scalars(options->rules->base, bench, device);
    bool documented = options->rules->base == RULES_DOCUMENTED;
    row->bench_dtype = python_class(bench->kind);
    row->device_dtype = python_class(device->kind);
    if (documented)
        row->cell[CELL_BINARY] = cell_number(arena, equal ? 0 : 1, PLUMB_F64, options->precision);
    else if (equal)
        row->cell[CELL_BINARY] = "0";
    set(row, equal ? STATUS_PASS : STATUS_ERROR,
        equal ? "binary consistency: the values are equal"
              : "binary consistency: the values differ");
}

/* The classes in which msProbe compares. */
enum type_class { CLASS_NONE, CLASS_FLOAT, CLASS_BOOL, CLASS_INT, CLASS_COMPLEX };

static enum type_class class_of(enum check_rules rules, enum plumb_dtype dtype)
{
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    if (kind == PLUMB_KIND_FLOAT)
        return CLASS_FLOAT;
    if (rules == RULES_DOCUMENTED)
        return kind == PLUMB_KIND_COMPLEX ? CLASS_COMPLEX : CLASS_INT;
    if (dtype == PLUMB_BOOL || dtype == PLUMB_U8)
        return CLASS_BOOL;
    return dtype == PLUMB_I8 || dtype == PLUMB_I32 || dtype == PLUMB_I64 ? CLASS_INT : CLASS_NONE;
}

static bool equal_shapes(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static enum plumb_code judge_tensors(const struct judge_pair *pair)
{
    const struct plumb_tensor *bench = pair->bench, *device = pair->device;
    enum check_rules rules = pair->options->rules->base;
    struct details_row *row = pair->row;
    row->bench_dtype = cell_dtype(pair->arena, bench->dtype);
    row->device_dtype = cell_dtype(pair->arena, device->dtype);
    row->shape = cell_shape(pair->arena, device);
    if (!row->bench_dtype || !row->device_dtype || !row->shape)
        return PLUMB_E_NOMEM;

    enum type_class class = class_of(rules, bench->dtype);
    if (!equal_shapes(bench, device)) {
        set(row, STATUS_ERROR,
            arena_printf(pair->arena, "shapes differ: the benchmark's is %s, the device's %s",
                         cell_shape(pair->arena, bench), row->shape));
    } else if (class == CLASS_NONE || class != class_of(rules, device->dtype)) {
        set(row, STATUS_ERROR,
            arena_printf(pair->arena,
                         "%s of the benchmark cannot be compared with %s of the device",
                         row->bench_dtype, row->device_dtype));
    } else if (device->count == 0) {
        set(row, STATUS_SKIP, "the output has no elements");
    } else if (class == CLASS_INT || class == CLASS_BOOL) {
        return judge_integers(pair);
    } else {
        return rules == RULES_MSPROBE ? judge_msprobe_float(pair) : judge_documented_float(pair);
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
    if (bench->kind == PLUMB_ARG_NONE && device->kind == PLUMB_ARG_TENSOR && !options->gradient &&
        options->rules->base == RULES_DOCUMENTED) {
        /* The signs of singular vectors, for instance, are anybody's choice. */
        set(row, STATUS_SKIP, "the operator does not determine this output");
    } else if (options->gradient && options->rules->base == RULES_DOCUMENTED &&
               ((bench->kind == PLUMB_ARG_NONE && is_zero(device)) ||
                (device->kind == PLUMB_ARG_NONE && is_zero(bench)))) {
        set(row, STATUS_PASS, "None on one side, zeros on the other: no gradient either way");
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

enum check_status judge_rows(enum check_rules rules, const struct details_row *rows, size_t n)
{
    if (!n)
        return STATUS_BLANK;
    enum check_status status = STATUS_PASS;
    for (size_t i = 0; i < n; i++) {
        enum check_status one = rows[i].status;
        if (one != STATUS_WARNING && one != STATUS_ERROR)
            continue;
        if (rules == RULES_MSPROBE || status != STATUS_ERROR)
            status = one;
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
