/* One call of a dump, computed again from what went in, and what came out held against it. */
#include "task/blame/parts.h"

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
    const enum plumb_code code = verdict_none(&l->out[LOCAL_FORWARD], why, l->arena, err);
    return code || !l->from.has_backward
               ? code
               : verdict_none(&l->out[LOCAL_BACKWARD], why, l->arena, err);
}

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

/* Dropout that is switched off passes its input on: dropout(x, p, training=False). */
static bool passes_on(const struct plumb_call *call)
{
    const char *name = call->name;
    const struct plumb_arg *training = call->n_args > 2 ? &call->args[2] : NULL;
    if (!strstr(name, "dropout") || strstr(name, "native") || strstr(name, "npu") || !call->n_args)
        return false;
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, "training") == 0 ||
            strcmp(call->kwargs[k].name, "train") == 0)
            training = &call->kwargs[k].value;
    return training && training->kind == PLUMB_ARG_BOOL && !training->integer;
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

/* A dump of operators need not have what came out, and then says so everywhere. */
static bool lacks_results(const struct local *l)
{
    bool any = false;
    for (size_t k = 0; k < l->known.given.n_outputs; k++)
        any |= l->known.given.outputs[k].kind != PLUMB_ARG_OTHER;
    return !any && strcmp(l->from.prefix, "Aten") == 0;
}

static enum plumb_code run(struct local *l, size_t i, struct plumb_error *err)
{
    struct plumb_error why = {0};
    enum plumb_code code = case_parse(l->options->file, i, &l->scratch, &l->from, &why);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code)
        return leave(l, verdict_reason(l->arena, &why), err);
    const struct plumb_op *op = plumb_op_find(l->from.prefix, l->from.api);
    if (!op) {
        const char *text = arena_printf(l->arena, "plumb has no operator %s", l->from.api);
        return text ? leave(l, text, err) : plumb_no_memory(err);
    }
    const char *refused = NULL;
    code = prepare(l, &refused, &why);
    if (!code && op->random && passes_on(&l->known.call)) {
        l->known.call.name = "clone";
        l->known.call.n_args = 1;
        l->known.call.n_kwargs = 0;
    } else if (op->random) {
        return leave(l, "the results are random", err);
    }
    l->known.only_recorded = !code && is_in_place(&l->known.call, op);
    if (!code && !refused)
        code = given_result(l->options->file, &l->from, &l->known.call, &l->inputs, &l->scratch,
                            &l->known.given, &why);
    if (!code && !refused && lacks_results(l))
        refused = "begin_dump kept what went in, but not what came out (X_DUMP_OUTPUT=1 does)";
    if (!code && !refused)
        code = known_judge(l->options, &l->known, l->arena, l->out, &why);
    if (code == PLUMB_E_NOMEM) {
        *err = why;
        return code;
    }
    return code || refused ? leave(l, refused ? refused : verdict_reason(l->arena, &why), err)
                           : PLUMB_OK;
}

enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[LOCAL_DIRECTIONS], struct plumb_error *err)
{
    struct local l = {.options = options,
                      .inputs = {.data_dir = case_data_dir(options->file),
                                 .recorded_only = true,
                                 .memory = options->memory / 3},
                      .arena = arena,
                      .out = out};
    memset(out, 0, LOCAL_DIRECTIONS * sizeof *out);
    const enum plumb_code code = run(&l, i, err);
    arena_free(&l.scratch);
    return code;
}
