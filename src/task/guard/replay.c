/* A saved failure, run again. */
#define _GNU_SOURCE
#include "task/guard/guard.h"

#include "base/json.h"
#include "base/mapped.h"
#include "exec/values/values.h"
#include "plumb/device.h"
#include "verdict/outputs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct memory {
    struct arena arena;
    struct plumb_result reference, device;
    struct plumb_table *worst;
};

/* What dump.json says about the check that failed. */
struct facts {
    double rtol, atol;
    bool native;  /* the saved reference is in the types of the outputs */
    bool derived; /* what was judged is not the outputs as they are, nor is the saved reference */
    const char *error, *message, *label;
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* One member of "precision_check", whose key has been read; false at the end of the text. */
static bool read_fact(struct json *json, struct arena *arena, struct facts *out)
{
    double *number = json_is(json, "rtol") ? &out->rtol : json_is(json, "atol") ? &out->atol : NULL;
    const char **text = json_is(json, "error")     ? &out->error
                        : json_is(json, "message") ? &out->message
                        : json_is(json, "judged")  ? &out->label
                                                   : NULL;
    const bool reference = json_is(json, "reference"), derived = json_is(json, "derived");
    const enum json_event e = json_next(json);
    size_t length;
    if (number && e == JSON_NUMBER)
        *number = json_double(json);
    else if (text && e == JSON_STRING)
        return (*text = json_copy(json, arena, &length)) != NULL;
    else if (reference && e == JSON_STRING)
        out->native = json_is(json, "native");
    else if (derived)
        out->derived = e == JSON_TRUE;
    else
        return json_skip(json, e);
    return true;
}

static enum plumb_code read_facts(const char *path, struct arena *arena, struct facts *out,
                                  struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    struct json json;
    json_init(&json, in.file.data, in.file.size);
    bool found = false;
    *out = (struct facts){.rtol = NAN, .atol = NAN, .error = "", .message = "", .label = ""};
    for (enum json_event e; (e = json_next(&json)) > JSON_END;) {
        if (e != JSON_KEY)
            continue;
        if (json.depth == 1 && json_is(&json, "precision_check")) {
            found = true;
        } else if (json.depth == 1) {
            if (!json_skip(&json, e))
                break;
        } else if (json.depth == 2 && !read_fact(&json, arena, out)) {
            break;
        }
    }
    if (json.error)
        code = json_fail(&json, 0, err);
    else if (!found || !(out->rtol >= 0) || !(out->atol >= 0))
        code = plumb_fail(err, PLUMB_E_FORMAT,
                          "no failure of the precision check: it has no \"precision_check\" with "
                          "rtol and atol; for other dumps use plumb acc_check");
    return mapped_close(&in, code, err);
}

/* Call number i of a dump with the values that were saved. */
static enum plumb_code read_call(const char *path, size_t n, struct arena *arena,
                                 struct plumb_call *out, struct plumb_error *err)
{
    struct case_file *file = NULL;
    enum plumb_code code = case_file_open(path, &file, err);
    if (code)
        return code;
    if (case_count(file) != n || !case_data_dir(file))
        code = plumb_fail(err, PLUMB_E_FORMAT, "it holds %zu calls instead of %zu, or no tensors",
                          case_count(file), n);
    for (size_t i = 0; i < n && !code; i++) {
        struct check_case from;
        code = case_parse(file, i, arena, &from, err);
        const char *folder = arena_copy(arena, case_data_dir(file), strlen(case_data_dir(file)));
        const struct generate_options options = {.data_dir = folder};
        if (!code && !folder)
            code = plumb_no_memory(err);
        if (!code)
            code = generate_call(&from, &options, arena, &out[i], err);
        if (!code) { /* names end with the file */
            out[i].name = arena_copy(arena, from.api, strlen(from.api));
            out[i].prefix = "Aten";
            code = out[i].name ? PLUMB_OK : plumb_no_memory(err);
        }
    }
    case_file_close(file);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

/* The two files of the failure that path means. */
static enum plumb_code find_files(const char *path, struct arena *arena, const char **dump,
                                  const char **outputs, struct plumb_error *err)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        *dump = arena_printf(arena, "%s/dump.json", path);
        *outputs = arena_printf(arena, "%s/outputs.json", path);
    } else {
        *dump = path;
        *outputs =
            arena_printf(arena, "%.*soutputs.json", slash ? (int)(slash - path) + 1 : 0, path);
    }
    return *dump && *outputs ? PLUMB_OK : plumb_no_memory(err);
}

/* ---- The worst elements ---------------------------------------------------------------------- */

struct element {
    uint64_t index;
    double a, b, error;
};

static int by_error(const void *x, const void *y)
{
    const struct element *a = x, *b = y;
    const double ea = isnan(a->error) ? INFINITY : a->error;
    const double eb = isnan(b->error) ? INFINITY : b->error;
    if (ea != eb)
        return ea > eb ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Puts an element among the n worst so far; returns how many there are then. */
static size_t put_element(struct element *worst, size_t have, size_t n, const struct element *one)
{
    if (have == n && by_error(one, &worst[n - 1]) > 0)
        return have;
    size_t at = have < n ? have : n - 1;
    for (; at > 0 && by_error(one, &worst[at - 1]) < 0; at--)
        worst[at] = worst[at - 1];
    worst[at] = *one;
    return have < n ? have + 1 : n;
}

static void text_index(const struct plumb_tensor *tensor, uint64_t number, char *text, size_t size)
{
    struct buf out = {0};
    spell_place(&out, tensor, number);
    if (plumb_dtype_parts(tensor->dtype) > 1)
        buf_text(&out, number % 2 ? ".imag" : ".real");
    snprintf(text, size, "%s", out.data ? out.data : "?");
    buf_free(&out);
}

enum { PLACE, KERNEL, REFERENCE, ABSOLUTE, RELATIVE, COLUMNS };

static struct plumb_table *worst_table(const struct plumb_tensor *a, const struct plumb_tensor *b,
                                       size_t n)
{
    static const struct plumb_column columns[COLUMNS] = {
        [PLACE] = {.title = "Element", .left = true},
        [KERNEL] = {.title = "Kernel", .style = PLUMB_STYLE_DIGITS},
        [REFERENCE] = {.title = "Reference", .style = PLUMB_STYLE_DIGITS},
        [ABSOLUTE] = {.title = "AbsErr", .style = PLUMB_STYLE_DIGITS},
        [RELATIVE] = {.title = "RelErr", .style = PLUMB_STYLE_DIGITS},
    };
    struct plumb_table *table = plumb_table_new(columns, COLUMNS);
    struct element *worst = calloc(n ? n : 1, sizeof *worst);
    bool fine = table && worst;
    const unsigned parts = plumb_dtype_parts(a->dtype);
    size_t have = 0;
    for (uint64_t k = 0; fine && n && k < a->count; k++) {
        double x[2], y[2];
        plumb_tensor_to_f64(a, k, 1, x);
        plumb_tensor_to_f64(b, k, 1, y);
        for (unsigned j = 0; j < parts; j++) {
            const bool same = x[j] == y[j] || (isnan(x[j]) && isnan(y[j]));
            const struct element one = {k * parts + j, x[j], y[j], same ? 0 : fabs(x[j] - y[j])};
            if (!same)
                have = put_element(worst, have, n, &one);
        }
    }
    for (size_t k = 0; fine && k < have; k++) {
        char place[256];
        text_index(a, worst[k].index, place, sizeof place);
        fine = plumb_table_add_row(table, PLUMB_NORMAL) && plumb_table_text(table, PLACE, place);
        if (!fine)
            break;
        plumb_table_real(table, KERNEL, worst[k].a);
        plumb_table_real(table, REFERENCE, worst[k].b);
        plumb_table_real(table, ABSOLUTE, worst[k].error);
        plumb_table_real(table, RELATIVE, worst[k].error / (fabs(worst[k].b) + 1e-12));
    }
    free(worst);
    if (fine)
        return table;
    plumb_table_free(table);
    return NULL;
}

/* Tensor number `at` of the outputs, lists opened; NULL when that is none. */
static const struct plumb_tensor *tensor_at(const struct plumb_arg *args, size_t n, size_t *at)
{
    for (size_t k = 0; k < n; k++) {
        if (args[k].kind == PLUMB_ARG_LIST) {
            const struct plumb_tensor *inside = tensor_at(args[k].items, args[k].n_items, at);
            if (inside || *at == SIZE_MAX)
                return inside;
        } else if (*at == 0) {
            *at = SIZE_MAX;
            return args[k].kind == PLUMB_ARG_TENSOR ? args[k].tensor : NULL;
        } else {
            --*at;
        }
    }
    return NULL;
}

static enum plumb_code find_worst(struct memory *memory, const struct plumb_call *saved,
                                  const struct plumb_arg *reference, size_t n_reference,
                                  const struct plumb_guard_verdict *verdict, size_t worst,
                                  struct plumb_error *err)
{
    size_t at = verdict->found.output, same = verdict->found.output;
    const struct plumb_tensor *a = tensor_at(saved->args, saved->n_args, &at);
    const struct plumb_tensor *b = tensor_at(reference, n_reference, &same);
    if (!a || !b || a->count != b->count ||
        plumb_dtype_parts(a->dtype) != plumb_dtype_parts(b->dtype))
        return PLUMB_OK;
    memory->worst = worst_table(a, b, worst);
    return memory->worst ? PLUMB_OK : plumb_no_memory(err);
}

/* ---- Running --------------------------------------------------------------------------------- */

static enum plumb_code compare_device(const struct plumb_call *call,
                                      const struct plumb_result *result,
                                      const struct plumb_arg *reference, size_t n_reference,
                                      bool raised, const struct facts *facts,
                                      struct plumb_outputs_verdict *out, struct plumb_error *err)
{
    const struct outputs_sides sides = {.outputs = result->outputs,
                                        .n_outputs = result->n_outputs,
                                        .reference = reference,
                                        .n_reference = n_reference,
                                        .raised = raised,
                                        .rtol = facts->rtol,
                                        .atol = facts->atol};
    return outputs_compare_call(&sides, call, result->n_outputs, out, err);
}

/* What a device says of a call is part of the result; that there is no such device is not. */
static enum plumb_code run_device(struct memory *memory, const char *name,
                                  const struct plumb_call *call, const struct plumb_arg *reference,
                                  size_t n_reference, bool raised, const struct facts *facts,
                                  struct plumb_replay *out, struct plumb_error *err)
{
    struct plumb_device *device = NULL;
    enum plumb_code code = plumb_device_open(name, &device, err);
    if (code)
        return code;
    char why[256] = "";
    struct plumb_error own = {0};
    if (device->supports && !device->supports(device, call, why, sizeof why))
        code = plumb_fail(&own, PLUMB_E_UNSUPPORTED, "%s", why);
    if (!code)
        code = device->run(device, call, &memory->device, &own);
    if (!code)
        code = compare_device(call, &memory->device, reference, n_reference, raised, facts,
                              &out->device.found, &own);
    if (code) {
        char text[1024];
        plumb_error_text(&own, text, sizeof text);
        out->device_error = arena_copy(&memory->arena, text, strlen(text));
        if (!out->device_error)
            out->device_error = "out of memory";
    }
    plumb_device_close(device);
    return PLUMB_OK;
}

/* The saved output against the reference; and what was found then that no numbers show: types,
 * which the float64 reference has lost, and what the kernel did to its inputs. */
static enum plumb_code judge_recorded(const struct facts *facts, const struct plumb_call *sides,
                                      const struct plumb_arg *reference, size_t n, bool raised,
                                      struct plumb_guard_verdict *out, struct plumb_error *err)
{
    struct plumb_outputs_verdict *found = &out->found, types;
    const struct plumb_call *kernel = &sides[0], *saved = &sides[1];
    enum plumb_code code = plumb_outputs_compare(kernel->args, kernel->n_args, reference, n, raised,
                                                 facts->rtol, facts->atol, found, err);
    if (!code && facts->native)
        code = plumb_outputs_compare(kernel->args, kernel->n_args, saved->args, saved->n_args,
                                     false, facts->rtol, facts->atol, &types, err);
    if (code)
        return code;
    if (facts->native && types.fault == PLUMB_FAULT_DTYPE)
        *found = types;
    if (found->fault == PLUMB_FAULT_NONE &&
        strcmp(facts->error, plumb_fault_name(PLUMB_FAULT_INPUT)) == 0) {
        found->fault = PLUMB_FAULT_INPUT;
        snprintf(found->message, sizeof found->message, "%s", facts->message);
    }
    if (found->fault != PLUMB_FAULT_NONE)
        snprintf(out->label, sizeof out->label, "%s", facts->label);
    return PLUMB_OK;
}

enum plumb_code plumb_replay_run(const char *path, const char *device, size_t worst,
                                 struct plumb_replay *out, struct plumb_error *err)
{
    *out = (struct plumb_replay){0};
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return plumb_no_memory(err);
    out->memory = memory;
    const char *dump, *outputs;
    struct plumb_call call, sides[2];
    struct facts facts;
    enum plumb_code code = plumb_op_ready(err);
    if (!code)
        code = find_files(path, &memory->arena, &dump, &outputs, err);
    if (!code)
        code = read_facts(dump, &memory->arena, &facts, err);
    if (!code)
        code = read_call(dump, 1, &memory->arena, &call, err);
    if (!code)
        code = read_call(outputs, 2, &memory->arena, sides, err);
    if (code)
        return code;
    snprintf(out->op, sizeof out->op, "%s", call.name);
    const struct plumb_arg *reference = sides[1].args;
    size_t n = sides[1].n_args;
    bool raised = !facts.native;
    struct plumb_error own = {0};
    const bool has_own = !plumb_op_run(&call, PLUMB_RAISED, &memory->reference, &own);
    if (has_own && !facts.derived) {
        reference = memory->reference.outputs;
        n = memory->reference.n_outputs;
        raised = true;
    }
    code = judge_recorded(&facts, sides, reference, n, raised, &out->recorded, err);
    if (!code)
        code = find_worst(memory, &sides[0], reference, n, &out->recorded, worst, err);
    if (code)
        return code;
    out->worst = memory->worst;
    if (has_own) {
        reference = memory->reference.outputs;
        n = memory->reference.n_outputs;
        raised = true;
    }
    return run_device(memory, device, &call, reference, n, raised, &facts, out, err);
}

void plumb_replay_destroy(struct plumb_replay *replay)
{
    struct memory *memory = replay->memory;
    if (!memory)
        return;
    plumb_result_destroy(&memory->reference);
    plumb_result_destroy(&memory->device);
    plumb_table_free(memory->worst);
    arena_free(&memory->arena);
    free(memory);
    replay->memory = NULL;
}
