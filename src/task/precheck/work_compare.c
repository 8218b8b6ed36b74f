/* What both sides of a call gave, row by row. */
#include "task/precheck/work_parts.h"
#include "verdict/ties.h"

#include <inttypes.h>
#include <string.h>

enum plumb_code work_no_memory(struct plumb_error *err)
{
    return plumb_no_memory(err);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

struct details_row *work_add_row(struct work *w, const char *direction, size_t k)
{
    if (w->n_rows == w->max_rows) {
        const size_t room = w->max_rows ? 2 * w->max_rows : 4;
        struct details_row *rows = arena_array(w->arena, room, sizeof *rows);
        if (!rows)
            return NULL;
        if (w->n_rows)
            memcpy(rows, w->rows, w->n_rows * sizeof *rows);
        w->rows = rows;
        w->max_rows = room;
    }
    struct details_row *row = &w->rows[w->n_rows];
    *row = (struct details_row){.bench_dtype = " ", .device_dtype = " ", .shape = " "};
    for (size_t c = 0; c < CELL_COUNT; c++)
        row->cell[c] = " ";
    row->name = arena_printf(w->arena, "%s.%s.output.%zu", w->from.name, direction, k);
    if (!row->name)
        return NULL;
    w->n_rows++;
    return row;
}

enum plumb_code work_skip_row(struct work *w, const char *direction, size_t k, const char *why,
                              struct plumb_error *err)
{
    struct details_row *row = work_add_row(w, direction, k);
    const char *kept = arena_printf(w->arena, "%s", why); /* rows outlive what a device returned */
    if (!row || !kept)
        return work_no_memory(err);
    row->status = STATUS_SKIP;
    row->message = kept;
    work_no_opinion(w, kept, row);
    return PLUMB_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

/* Adds what types the tensors of an argument have, and whether it names one. */
static void see_arg(const struct plumb_arg *arg, bool seen[PLUMB_DTYPE_COUNT], bool *named)
{
    *named |= arg->kind == PLUMB_ARG_DTYPE;
    if (arg->kind == PLUMB_ARG_TENSOR)
        seen[arg->tensor->dtype] = true;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        see_arg(&arg->items[k], seen, named);
}

/* Whether autocast, which is not recorded, may be why the call returned the one type then and the
 * other, an operand's, without it. */
static bool may_be_autocast(const struct plumb_call *call, enum plumb_dtype recorded,
                            enum plumb_dtype dtype)
{
    bool seen[PLUMB_DTYPE_COUNT] = {false}, named = false, cast[PLUMB_DTYPE_COUNT] = {false};
    for (size_t k = 0; k < call->n_args; k++)
        see_arg(&call->args[k], seen, &named);
    for (size_t k = 0; k < call->n_kwargs; k++)
        see_arg(&call->kwargs[k].value, seen, &named);
    cast[PLUMB_F16] = cast[PLUMB_BF16] = cast[PLUMB_F32] = true;
    return !named && cast[recorded] && cast[dtype] && seen[dtype];
}

/* Values say nothing about the type that they came in: the reference's is wider. */
static bool is_right_dtype(const struct work *w, size_t k, enum plumb_dtype dtype)
{
    const char *name = k < w->from.n_output_dtypes ? w->from.output_dtypes[k] : NULL;
    const enum plumb_dtype recorded = name ? plumb_dtype_from_name(name) : PLUMB_DTYPE_COUNT;
    return recorded == PLUMB_DTYPE_COUNT || recorded == dtype ||
           may_be_autocast(&w->call, recorded, dtype);
}

/* False when out of memory. */
static bool judge_dtype(struct work *w, size_t k, const struct plumb_arg *device,
                        struct details_row *row)
{
    /* a formula that ran in place of an operator has types of its own */
    if (device->kind != PLUMB_ARG_TENSOR || w->actual.note || row->status == STATUS_ERROR ||
        is_right_dtype(w, k, device->tensor->dtype))
        return true;
    row->status = STATUS_ERROR;
    row->message = arena_printf(w->arena, "the device returned %s, the recorded call %s",
                                row->device_dtype, w->from.output_dtypes[k]);
    return row->message != NULL;
}

/* Which result a row is about. */
struct subject {
    enum plumb_expected_part part;
    size_t k;          /* among those */
    size_t row;        /* its number in names */
    const char *about; /* which it is where that number does not tell, or NULL */
};

/* Of a call that returned nothing, the dump has not what it wrote into its arguments. */
static bool nothing_returned(const struct work *w)
{
    bool none = true;
    for (size_t k = 0; k < w->actual.n_outputs && none; k++)
        none = w->actual.outputs[k].kind == PLUMB_ARG_NONE;
    return none;
}

static enum plumb_code judge_one(struct work *w, const struct subject *of,
                                 const struct plumb_arg *bench, const struct plumb_arg *device,
                                 struct plumb_error *err)
{
    const char *direction = of->part == PLUMB_PART_GRADIENT ? "backward" : "forward";
    const char *about = of->about;
    if (w->device->recorded && device->kind == PLUMB_ARG_OTHER && bench->kind == PLUMB_ARG_TENSOR)
        return work_skip_row(w, direction, of->row, device->text, err); /* not in the dump */
    if (w->device->recorded && of->part == PLUMB_PART_OUTPUT && bench->kind == PLUMB_ARG_TENSOR &&
        nothing_returned(w))
        return work_skip_row(w, direction, of->row,
                             "it returned nothing, and what it wrote is not recorded", err);
    struct judge_options options = w->shared->judge;
    options.gradient = of->part == PLUMB_PART_GRADIENT;
    options.complex_input = w->complex_input;
    struct details_row *row = work_add_row(w, direction, of->row);
    if (!row)
        return work_no_memory(err);
    const char *name = row->name;
    if (judge_output(&options, w->from.api, w->fp8_input, bench, device, w->arena, row))
        return work_no_memory(err);
    row->name = name;
    if (!options.gradient && !about && !w->profile->compare->outputs_only &&
        !judge_dtype(w, of->k, device, row))
        return work_no_memory(err);
    if (work_opine(w, of->part, of->k, device, row, err))
        return err->code;
    if (w->fault && of->row == 0 && !options.gradient) {
        row->status = STATUS_ERROR;
        row->message = w->fault;
    }
    const char *who = !w->by_fallback     ? ""
                      : w->device->native ? "; plumb cannot run this call: reference and device by "
                                            "PyTorch"
                                          : "; plumb cannot run this call: reference by PyTorch";
    const char *how = w->actual.note, *note = w->note;
    if (!about && !*who && !how && !note)
        return PLUMB_OK;
    row->message = arena_printf(w->arena, "%s%s%s%s%s%s%s%s", about ? about : "", about ? ": " : "",
                                row->message, who, how ? "; " : "", how ? how : "",
                                note ? "; " : "", note ? note : "");
    return row->message ? PLUMB_OK : work_no_memory(err);
}

static enum plumb_code judge_list(struct work *w, enum plumb_expected_part part,
                                  const struct plumb_arg *bench, size_t n_bench,
                                  const struct plumb_arg *device, size_t n_device,
                                  struct plumb_error *err)
{
    static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n_bench && !code; k++) {
        const struct subject of = {.part = part, .k = k, .row = k};
        code = judge_one(w, &of, &bench[k], k < n_device ? &device[k] : &nothing, err);
    }
    return code;
}

/* Results of the device behind those of the reference. One that the recorded call had too is the
 * operator's own, and plumb does not know it; others no caller expects. */
static enum plumb_code judge_surplus(struct work *w, struct plumb_error *err)
{
    static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};
    for (size_t k = w->bench.n_outputs; k < w->actual.n_outputs; k++) {
        const struct subject of = {.part = PLUMB_PART_OUTPUT, .k = k, .row = k};
        enum plumb_code code = judge_one(w, &of, &nothing, &w->actual.outputs[k], err);
        if (code)
            return code;
        if (w->from.all_outputs && k >= w->from.n_output_dtypes) {
            struct details_row *row = &w->rows[w->n_rows - 1];
            row->status = STATUS_ERROR;
            row->message = "the device returned more results than the reference and the recorded "
                           "call";
        }
    }
    return PLUMB_OK;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- What was written into arguments --------------------------------------------------------- */

/* The tensors of an argument, depth first; NULL leaves only counts. */
static void find_leaves(const struct plumb_arg *arg, const struct plumb_arg **leaves, size_t *n)
{
    if (arg->kind == PLUMB_ARG_TENSOR) {
        if (leaves)
            leaves[*n] = arg;
        ++*n;
    }
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        find_leaves(&arg->items[k], leaves, n);
}

static size_t leaves_of(const struct plumb_call *call, const struct plumb_arg **leaves)
{
    size_t n = 0;
    for (size_t k = 0; k < call->n_args; k++)
        find_leaves(&call->args[k], leaves, &n);
    for (size_t k = 0; k < call->n_kwargs; k++)
        find_leaves(&call->kwargs[k].value, leaves, &n);
    return n;
}

/* What to call tensor number `leaf`; NULL when out of memory. */
static const char *leaf_name(const struct work *w, size_t leaf)
{
    size_t n = 0;
    for (size_t k = 0; k < w->call.n_args; k++) {
        find_leaves(&w->call.args[k], NULL, &n);
        if (n > leaf)
            return arena_printf(w->arena, "argument %zu as the call left it", k);
    }
    for (size_t k = 0; k < w->call.n_kwargs; k++) {
        find_leaves(&w->call.kwargs[k].value, NULL, &n);
        if (n > leaf)
            return arena_printf(w->arena, "%s as the call left it", w->call.kwargs[k].name);
    }
    return "a tensor as the call left it";
}

/* Buffers such as running statistics. One that a side did not write is what it was. Dumps do not
 * have them. */
static enum plumb_code judge_written(struct work *w, struct plumb_error *err)
{
    const struct plumb_arg *b = w->bench.written, *d = w->actual.written;
    const size_t n = leaves_of(&w->call, NULL);
    if (w->device->recorded || (!b && !d) || n != w->bench.n_grads || n != w->actual.n_grads)
        return PLUMB_OK;
    const struct plumb_arg **before = arena_array(&w->scratch, 2 * n, sizeof *before);
    if (!before)
        return work_no_memory(err);
    leaves_of(&w->raised, before);
    leaves_of(&w->call, before + n);
    size_t row = larger(w->bench.n_outputs, w->actual.n_outputs);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code; k++) {
        const bool in_bench = b && b[k].kind == PLUMB_ARG_TENSOR;
        const bool in_device = d && d[k].kind == PLUMB_ARG_TENSOR;
        if (!in_bench && !in_device)
            continue;
        const struct subject of = {PLUMB_PART_WRITTEN, k, row++, leaf_name(w, k)};
        if (!of.about)
            return work_no_memory(err);
        code =
            judge_one(w, &of, in_bench ? &b[k] : before[k], in_device ? &d[k] : before[n + k], err);
    }
    return code;
}

/* ---- The result ------------------------------------------------------------------------------ */

/* The first message among rows of that status. */
static const char *message_of(const struct details_row *rows, size_t n, enum check_status status)
{
    for (size_t k = 0; k < n; k++)
        if (rows[k].status == status && rows[k].message && *rows[k].message)
            return rows[k].message;
    return "";
}

/* The same, with the output it is about: "forward.output.0: ..."; NULL when out of memory. */
static const char *verdict_of(const struct work *w, const struct journal_entry *out,
                              enum check_status status)
{
    const size_t length = strlen(w->from.name) + 1;
    for (size_t k = 0; k < out->n_rows; k++)
        if (out->rows[k].status == status)
            return arena_printf(w->arena, "%s: %s", out->rows[k].name + length,
                                out->rows[k].message);
    return "";
}

static const char *result_message(const struct work *w, const struct journal_entry *out,
                                  size_t n_forward)
{
    const enum check_status order[] = {STATUS_ERROR, STATUS_WARNING};
    if (out->backward == STATUS_SKIP &&
        (w->profile->compare->skip_speaks || out->forward == STATUS_PASS))
        return message_of(out->rows + n_forward, out->n_rows - n_forward, STATUS_SKIP);
    for (size_t k = 0; k < 2; k++)
        if (out->forward == order[k] || out->backward == order[k])
            return verdict_of(w, out, order[k]);
    return "";
}

/* Vectors have signs and phases of anybody's choice. plumb's own operators leave them out; where
 * PyTorch is the reference, that is done here. */
static void leave_out_vectors(struct work *w)
{
    static const struct {
        const char *api;
        unsigned outputs; /* a bit each */
    } vectors[] = {{"eig", 2},          {"linalg.eig", 2},  {"linalg.eigh", 2}, {"linalg.svd", 5},
                   {"linalg_eig", 2},   {"linalg_eigh", 2}, {"linalg_svd", 5},  {"lobpcg", 2},
                   {"_linalg_eigh", 2}, {"_linalg_svd", 5}, {"svd", 5},         {"symeig", 2}};
    unsigned outputs = 0;
    for (size_t k = 0; w->by_fallback && k < sizeof vectors / sizeof *vectors; k++)
        if (strcmp(w->from.api, vectors[k].api) == 0)
            outputs = vectors[k].outputs;
    for (size_t k = 0; outputs >> k; k++) {
        if (!(outputs >> k & 1) || k >= w->bench.n_outputs)
            continue;
        w->bench.outputs[k].kind = PLUMB_ARG_NONE;
        if (k < w->call.n_grads && w->call.grads[k])
            w->no_backward = "no backward: it depends on the signs of the vectors";
    }
}

/* False when out of memory. */
static bool settle_ties(struct work *w)
{
    uint64_t settled;
    if (ties_settle(&w->call, &w->actual, &w->bench, &w->scratch, &settled))
        return false;
    w->ties = settled > 0;
    if (settled) /* none of these operators has another note */
        w->note = arena_printf(w->arena, "%" PRIu64 " choices among equals are others, and as good",
                               settled);
    return !settled || w->note;
}

/* The status of rows; of a recorded call, of which nothing may be in the dump, that too. */
static enum check_status status_of(const struct work *w, const struct details_row *rows, size_t n)
{
    size_t skipped = 0;
    for (size_t k = 0; k < n; k++)
        skipped += rows[k].status == STATUS_SKIP;
    return w->device->recorded && n && skipped == n ? STATUS_SKIP : judge_rows(w->profile, rows, n);
}

enum plumb_code work_compare(struct work *w, struct journal_entry *out, struct plumb_error *err)
{
    const struct precheck_comparing *how = w->profile->compare;
    if (!how->outputs_only) {
        leave_out_vectors(w);
        if (!settle_ties(w))
            return work_no_memory(err);
    }
    size_t n_bench = w->bench.n_outputs;
    if (how->n_compared)
        n_bench = how->n_compared(w->from.api, n_bench);
    enum plumb_code code = judge_list(w, PLUMB_PART_OUTPUT, w->bench.outputs, n_bench,
                                      w->actual.outputs, w->actual.n_outputs, err);
    if (!code && !how->outputs_only)
        code = judge_surplus(w, err);
    if (!code && !how->outputs_only)
        code = judge_written(w, err);
    const size_t n_forward = w->n_rows;
    if (!code && w->no_backward)
        code = work_skip_row(w, "backward", 0, w->no_backward, err);
    else if (!code && w->call.n_grads && work_wants_grad(&w->call))
        code = judge_list(w, PLUMB_PART_GRADIENT, w->bench.grads,
                          how->outputs_only ? w->bench.n_arg_grads : w->bench.n_grads,
                          w->actual.grads, w->actual.n_grads, err);
    if (code)
        return code;
    out->rows = w->rows;
    out->n_rows = w->n_rows;
    out->forward = status_of(w, w->rows, n_forward);
    out->backward =
        w->no_backward ? STATUS_SKIP : status_of(w, w->rows + n_forward, w->n_rows - n_forward);
    out->message = out->forward == STATUS_SKIP ? message_of(w->rows, n_forward, STATUS_SKIP)
                                               : result_message(w, out, n_forward);
    return out->message ? PLUMB_OK : work_no_memory(err);
}
