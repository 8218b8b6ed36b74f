/* One call of a dump, computed again from what went in, and what came out held against it. */
#include "verdict/local.h"

#include "dump/uninitialised.h"
#include "verdict/convert.h"
#include "verdict/given.h"

#include <string.h>

struct local {
    const struct local_options *options;
    struct generate_options inputs;
    struct arena *arena;  /* of texts that stay */
    struct arena scratch; /* of tensors */
    struct check_case from;
    struct known_call known;
    struct local_verdict *out;
};

/* Neither direction is judged. */
static enum plumb_code leave(struct local *l, const char *why, struct plumb_error *err)
{
    memset(l->out, 0, LOCAL_DIRECTIONS * sizeof *l->out);
    const enum plumb_code code = verdict_none(&l->out[LOCAL_FORWARD], why, l->arena, err);
    return code || !l->from.has_backward
               ? code
               : verdict_none(&l->out[LOCAL_BACKWARD], why, l->arena, err);
}

/* ---- What went in and came out --------------------------------------------------------------- */

static bool has_out(const struct plumb_call *call)
{
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, "out") == 0)
            return true;
    return false;
}

static void take_grads(struct local *l)
{
    struct plumb_error why = {0};
    struct plumb_call *call = &l->known.call;
    const char **no_backward = &l->known.no_backward;
    bool any = false;
    if (!l->from.has_backward)
        return;
    if (has_out(call)) {
        *no_backward = "the result went into a given tensor (out=)";
        return;
    }
    if (generate_grads(&l->from, &l->inputs, &l->scratch, &call->grads, &call->n_grads, &why))
        *no_backward = arena_printf(l->arena, "gradient: %s", why.message);
    for (size_t k = 0; k < call->n_grads && !*no_backward; k++)
        any |= call->grads[k] != NULL;
    if (!any && !*no_backward)
        *no_backward = "all recorded gradients are null";
    if (*no_backward)
        call->n_grads = 0;
}

/* The gradient of what an in-place call wrote over is not seen by those who record. */
static bool is_in_place(const struct plumb_call *call, const struct plumb_op *op)
{
    const size_t length = strlen(call->name);
    if (length > 1 && call->name[length - 1] == '_' && call->name[length - 2] != '_')
        return true;
    bool on = false;
    for (size_t k = 0; k < call->n_args; k++)
        on |= call->args[k].kind == PLUMB_ARG_BOOL && call->args[k].integer;
    for (size_t k = 0; k < call->n_kwargs; k++)
        on |= strcmp(call->kwargs[k].name, "inplace") == 0 && call->kwargs[k].value.integer;
    return on && strstr(op->schema, "inplace");
}

static enum plumb_code prepare(struct local *l, const char **refused, struct plumb_error *err)
{
    bool still = false;
    struct plumb_call *call = &l->known.call;
    enum plumb_code code = generate_call(&l->from, &l->inputs, &l->scratch, call, err);
    if (!code)
        code = convert_autocast(call, l->from.output_dtype, true, &l->scratch, err);
    if (!code)
        code = convert_still(call, &still, &l->scratch, err);
    if (!code && still)
        *refused = "which elements its dropout chose is not recorded";
    if (!code)
        take_grads(l);
    l->known.has_backward = l->from.has_backward;
    return code;
}

/* x[i] = y returns nothing: what it made of x is not in the dump. */
static bool writes_unseen(const struct local *l)
{
    const struct plumb_result *given = &l->known.given;
    return strcmp(l->from.api, "__setitem__") == 0 && given->n_outputs == 1 &&
           given->outputs[0].kind == PLUMB_ARG_NONE;
}

/* A dump of operators need not have what came out, and then says so everywhere. */
static bool lacks_results(const struct local *l)
{
    bool any = false;
    for (size_t k = 0; k < l->known.given.n_outputs; k++)
        any |= l->known.given.outputs[k].kind != PLUMB_ARG_OTHER;
    return !any && strcmp(l->from.prefix, "Aten") == 0;
}

static enum plumb_code load_given(struct local *l, const char **refused, struct plumb_error *err)
{
    struct case_results results;
    enum plumb_code code = given_result(l->options->file, &l->from, &l->known.call, &l->inputs,
                                        &l->scratch, &l->known.given, err);
    if (!code)
        code = case_parse_results(l->options->file, l->from.index, &l->scratch, &results, err);
    l->known.n_grads_recorded = code ? 0 : results.n_grads;
    if (!code && lacks_results(l))
        *refused = "begin_dump kept what went in, but not what came out (X_DUMP_OUTPUT=1 does)";
    else if (!code && writes_unseen(l))
        *refused = "it writes into its argument, and what became of that is not recorded";
    return code;
}

/* The call and what it gave; *refused says why it is not to be judged. */
static enum plumb_code load(struct local *l, size_t i, const char **refused,
                            struct plumb_error *err)
{
    enum plumb_code code = case_parse(l->options->file, i, &l->scratch, &l->from, err);
    if (code)
        return code;
    const struct plumb_op *op = plumb_op_find(l->from.prefix, l->from.api);
    if (!op) {
        *refused = arena_printf(l->arena, "plumb has no operator %s", l->from.api);
        return *refused ? PLUMB_OK : plumb_no_memory(err);
    }
    const char *name = case_place(l->options->file, i)->call;
    if (dump_takes_memory(name, strlen(name)))
        *refused = dump_uninitialised;
    else if (op->random && strcmp(op->family, "dropout") != 0)
        *refused = "the results are random";
    else
        *refused = case_uninitialised(&l->from, l->arena);
    if (*refused)
        return PLUMB_OK;
    code = prepare(l, refused, err);
    if (!code && !*refused)
        code = load_given(l, refused, err);
    l->known.only_recorded = !code && is_in_place(&l->known.call, op);
    l->known.taken = l->scratch.bytes;
    return code;
}

static void local_init(struct local *l, const struct local_options *options, struct arena *arena,
                       struct local_verdict *out)
{
    *l = (struct local){.options = options,
                        .inputs = {.data_dir = case_data_dir(options->file),
                                   .recorded_only = true,
                                   .memory = options->memory / 3},
                        .arena = arena,
                        .out = out};
}

/* ---- Repeats of the program ------------------------------------------------------------------ */

/* What a repeat does not have, or has otherwise, is left. */
static void show_results(struct plumb_expected *expected, enum plumb_expected_part part,
                         const struct plumb_arg *reference, size_t n_reference,
                         const struct plumb_arg *got, size_t n_got, bool *shown)
{
    struct plumb_error why;
    for (size_t k = 0; k < n_reference && k < n_got; k++)
        if (reference[k].kind == PLUMB_ARG_TENSOR && got[k].kind == PLUMB_ARG_TENSOR)
            *shown |=
                !plumb_expected_repeat(expected, part, k, reference[k].tensor, got[k].tensor, &why);
}

/* The same call of one repeat, by its own inputs. PLUMB_E_NOMEM. */
static enum plumb_code show_repeat(const struct local *l, size_t k, struct plumb_expected *expected,
                                   bool *shown, struct plumb_error *err)
{
    struct local_options options = *l->options;
    struct arena texts = {0};
    struct plumb_error why = {0};
    struct plumb_result reference = {0};
    const char *refused = NULL;
    size_t call = 0;
    options.file =
        repeats_find(options.repeats, k, l->from.name, options.step, options.rank, &call);
    if (!options.file)
        return PLUMB_OK;
    struct local other;
    local_init(&other, &options, &texts, NULL);
    enum plumb_code code = load(&other, call, &refused, &why);
    if (!code && !refused)
        code = known_reference(&options, &other.known, &texts, &reference, &why);
    if (!code && !refused) {
        const struct plumb_result *given = &other.known.given;
        show_results(expected, PLUMB_PART_OUTPUT, reference.outputs, reference.n_outputs,
                     given->outputs, given->n_outputs, shown);
        show_results(expected, PLUMB_PART_GRADIENT, reference.grads, reference.n_grads,
                     given->grads, given->n_grads, shown);
    }
    plumb_result_destroy(&reference);
    arena_free(&other.scratch);
    arena_free(&texts);
    if (code == PLUMB_E_NOMEM)
        *err = why;
    return code == PLUMB_E_NOMEM ? code : PLUMB_OK;
}

static enum plumb_code show(void *context, struct plumb_expected *expected, bool *shown,
                            struct plumb_error *err)
{
    const struct local *l = context;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < repeats_count(l->options->repeats) && !code; k++)
        code = show_repeat(l, k, expected, shown, err);
    return code;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static enum plumb_code run(struct local *l, size_t i, struct plumb_error *err)
{
    struct plumb_error why = {0};
    const char *refused = NULL;
    enum plumb_code code = load(l, i, &refused, &why);
    if (!code && !refused) {
        l->known.show = l->options->repeats ? show : NULL;
        l->known.show_context = l;
        code = known_judge(l->options, &l->known, l->arena, l->out, &why);
    }
    if (code == PLUMB_E_NOMEM || l->known.watch_failed) {
        *err = why;
        return code;
    }
    return code || refused ? leave(l, refused ? refused : verdict_reason(l->arena, &why), err)
                           : PLUMB_OK;
}

enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[LOCAL_DIRECTIONS], struct plumb_error *err)
{
    struct local l;
    local_init(&l, options, arena, out);
    memset(out, 0, LOCAL_DIRECTIONS * sizeof *out);
    const enum plumb_code code = run(&l, i, err);
    arena_free(&l.scratch);
    return code;
}
