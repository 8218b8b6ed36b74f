/* One call, from its entry to the two sides that are compared. */
#include "task/precheck/work_parts.h"

#include "dump/uninitialised.h"
#include "task/precheck/error_data.h"
#include "verdict/convert.h"
#include "verdict/given.h"

#include <string.h>

/* ---- Skipping -------------------------------------------------------------------------------- */

/* The whole call was not checked. */
static enum plumb_code skip_case(struct work *w, const char *why, struct journal_entry *out,
                                 struct plumb_error *err)
{
    w->n_rows = 0;
    enum plumb_code code = work_skip_row(w, "forward", 0, why, err);
    *out = (struct journal_entry){.name = w->from.name,
                                  .forward = STATUS_SKIP,
                                  .backward = STATUS_SKIP,
                                  .message = why,
                                  .rows = w->rows,
                                  .n_rows = w->n_rows};
    work_worst_opinion(w, out);
    return code;
}

/* Leaves the name of a payload file: rows do not depend on where the dump lies. */
static void drop_folder(struct plumb_error *why)
{
    const char *slash = strrchr(why->file, '/');
    if (slash)
        memmove(why->file, slash + 1, strlen(slash));
}

static enum plumb_code skip_error(struct work *w, const char *who, const struct plumb_error *why,
                                  struct journal_entry *out, struct plumb_error *err)
{
    char text[1024];
    plumb_error_text(why, text, sizeof text);
    const char *message = arena_printf(w->arena, "%s%s", who, text);
    return message ? skip_case(w, message, out, err) : work_no_memory(err);
}

/* ---- The gradients --------------------------------------------------------------------------- */

static bool arg_wants_grad(const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_TENSOR)
        return arg->requires_grad;
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        if (arg_wants_grad(&arg->items[k]))
            return true;
    return false;
}

bool work_wants_grad(const struct plumb_call *call)
{
    for (size_t k = 0; k < call->n_args; k++)
        if (arg_wants_grad(&call->args[k]))
            return true;
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (arg_wants_grad(&call->kwargs[k].value))
            return true;
    return false;
}

static bool has_kwarg(const struct plumb_call *call, const char *name)
{
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, name) == 0)
            return true;
    return false;
}

/* Why the backward of a call is not run; NULL when it is, or when nobody asks. */
static const char *backward_refusal(const struct work *w)
{
    const struct precheck_running *how = w->profile->run;
    if (!w->from.has_backward && !how->no_backward)
        return NULL;
    if (has_kwarg(&w->call, "out"))
        return "no backward: the result went into a given tensor (out=)";
    return how->no_backward ? how->no_backward(w->from.api) : NULL;
}

static enum plumb_code raise_grads(struct work *w, struct plumb_error *err)
{
    const size_t n = w->call.n_grads;
    const struct plumb_tensor **grads = arena_array(&w->scratch, n, sizeof *grads);
    if (!grads)
        return work_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code; k++)
        if (w->call.grads[k])
            code = convert_raise_tensor(w->call.grads[k], &w->scratch, &grads[k], err);
    w->raised.grads = grads;
    w->raised.n_grads = n;
    return code;
}

/* Sets the gradients of both calls; outputs and tuple are those of the reference's forward. */
static enum plumb_code give_grads(struct work *w, size_t outputs, bool tuple,
                                  struct plumb_error *err)
{
    const struct precheck_running *how = w->profile->run;
    w->no_backward = backward_refusal(w);
    if (!w->from.has_backward || w->no_backward || outputs == 0)
        return PLUMB_OK;
    if (tuple && how->tuple_has_backward && !how->tuple_has_backward(w->from.api)) {
        w->no_backward = "no backward: several results, and none is known to carry the gradient";
        return PLUMB_OK;
    }
    enum plumb_code code =
        generate_grads(&w->from, &w->inputs, &w->scratch, &w->call.grads, &w->call.n_grads, err);
    if (code)
        return code;
    if (how->first_gradient) {
        if (!w->call.n_grads || !w->call.grads[0])
            return plumb_fail(err, PLUMB_E_ARG, "the recorded gradient is null");
        if (!work_wants_grad(&w->call))
            return plumb_fail(err, PLUMB_E_ARG, "no argument requires the recorded gradient");
        w->call.n_grads = 1;
    }
    bool any = false;
    for (size_t k = 0; k < w->call.n_grads; k++)
        any |= w->call.grads[k] != NULL;
    if (!any) {
        w->no_backward = "no backward: all recorded gradients are null";
        w->call.n_grads = 0;
    }
    if (how->widened)
        return raise_grads(w, err);
    w->raised.grads = w->call.grads;
    w->raised.n_grads = w->call.n_grads;
    return PLUMB_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

static uint64_t result_bytes(const struct plumb_result *result)
{
    const struct arena *arena = result->memory;
    return arena ? arena->bytes : 0;
}

/* What is left of the call's memory; at least a byte, since 0 would mean no limit. */
size_t work_memory_left(const struct work *w)
{
    const uint64_t used = w->scratch.bytes + result_bytes(&w->bench) + result_bytes(&w->actual);
    return used < w->room->memory ? (size_t)(w->room->memory - used) : 1;
}

/* It may do better alone. */
static bool is_short(const struct work *w, enum plumb_code code)
{
    return code == PLUMB_E_NOMEM && !w->room->all;
}

/* Somebody else's operator, when plumb has none; lack says so. */
static enum plumb_code run_fallback(struct work *w, const struct plumb_error *lack,
                                    struct plumb_error *err)
{
    struct plumb_device *other = w->shared->fallback;
    struct plumb_error why = {0};
    plumb_result_destroy(&w->bench);
    w->by_fallback = true;
    w->raised.memory = work_memory_left(w);
    const enum plumb_code code = w->profile->run->widened
                                     ? other->run(other, &w->raised, &w->bench, &why)
                                     : other->run_raised(other, &w->raised, &w->bench, &why);
    if (code)
        return plumb_fail(
            err, code, "%.120s; with PyTorch instead: %.300s%s", lack->message, why.message,
            w->shared->stand_in ? " (what --import brings is never the reference)" : "");
    return PLUMB_OK;
}

enum plumb_code work_run_reference(struct work *w, struct plumb_error *err)
{
    plumb_result_destroy(&w->bench);
    struct plumb_error why = {0};
    w->raised.memory = work_memory_left(w);
    const enum plumb_code code = plumb_op_run(
        &w->raised, w->profile->run->widened ? PLUMB_OWN : PLUMB_RAISED, &w->bench, &why);
    if (code == PLUMB_E_UNSUPPORTED && w->shared->fallback)
        return run_fallback(w, &why, err);
    if (code && err)
        *err = why;
    return code;
}

static enum plumb_code run_device(struct work *w, struct plumb_error *err)
{
    plumb_result_destroy(&w->actual);
    if (w->device->recorded)
        return given_result(w->shared->file, &w->from, &w->call, &w->inputs, &w->scratch,
                            &w->actual, err);
    w->call.memory = work_memory_left(w);
    char why[256] = "";
    struct plumb_device *device = !w->by_fallback || !w->device->native ? w->device
                                  : w->shared->stand_in                 ? w->shared->stand_in
                                                                        : w->shared->fallback;
    if (device->supports && !device->supports(device, &w->call, why, sizeof why))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "%s", why);
    return device->run(device, &w->call, &w->actual, err);
}

static uint32_t replay_next(void *state)
{
    struct replay *r = state;
    if (r->next == r->n) {
        if (r->n == r->room) {
            const size_t room = r->room ? 2 * r->room : 256;
            uint32_t *values = arena_array(r->arena, room, sizeof *values);
            if (!values)
                return r->source->next(r->source->state);
            if (r->n)
                memcpy(values, r->values, r->n * sizeof *values);
            r->values = values;
            r->room = room;
        }
        r->values[r->n++] = r->source->next(r->source->state);
    }
    return r->values[r->next++];
}

/* Draws of side k: those of the call, remembered. */
static const struct plumb_draws *replay_of(struct work *w, int k)
{
    w->replays[k] = (struct replay){.source = w->source, .arena = &w->scratch};
    w->draws[k] = (struct plumb_draws){replay_next, &w->replays[k]};
    return &w->draws[k];
}

/* The one generator of a run feeds the inputs, then the operator on either side, then the gradient.
 * Forward and backward run together here, so the operator's draws are made in a first run. */
static enum plumb_code run_in_draw_order(struct work *w, const char **who, struct plumb_error *err)
{
    struct replay *bench = &w->replays[0], *device = &w->replays[1];
    w->raised.draws = replay_of(w, 0);
    w->call.draws = replay_of(w, 1);
    *who = "reference: ";
    enum plumb_code code = work_run_reference(w, err);
    if (code)
        return code;
    *who = "device: ";
    code = run_device(w, err);
    const size_t outputs = w->bench.n_outputs;
    const bool tuple = w->bench.tuple;
    *who = "gradient: ";
    if (!code)
        code = give_grads(w, outputs, tuple, err);
    if (code || !w->call.n_grads)
        return code;
    bench->next = device->next = 0;
    *who = "reference: ";
    code = work_run_reference(w, err);
    *who = "device: ";
    return code ? code : run_device(w, err);
}

/* A gradient that does not fit costs the backward, not the forward. */
static enum plumb_code forward_only(struct work *w, const char *who, const struct plumb_error *why,
                                    struct plumb_error *err)
{
    char text[1024];
    w->no_backward =
        arena_printf(w->arena, "no backward: %s%s", who, plumb_error_text(why, text, sizeof text));
    w->call.n_grads = w->raised.n_grads = 0;
    return w->no_backward ? PLUMB_OK : work_no_memory(err);
}

/* Whether the reference returns several results is known only after it ran; the rules that ask
 * are few, so they get a forward run of their own. Each run gets the same draws, so that chance
 * makes no difference between the sides. */
static enum plumb_code run_sides(struct work *w, const char **who, struct plumb_error *err)
{
    struct replay *replay = &w->replays[0];
    w->call.draws = w->raised.draws = replay_of(w, 0);
    enum plumb_code code = PLUMB_OK;
    const bool all_or_nothing = w->profile->run->all_or_nothing;
    size_t outputs = 1;
    bool tuple = false;
    if (w->profile->run->tuple_has_backward && w->from.has_backward) {
        *who = "reference: ";
        if ((code = work_run_reference(w, err)))
            return code;
        outputs = w->bench.n_outputs;
        tuple = w->bench.tuple;
    }
    struct plumb_error why = {0};
    *who = "gradient: ";
    if ((code = give_grads(w, outputs, tuple, &why)) && !all_or_nothing && !is_short(w, code))
        code = forward_only(w, "", &why, &why);
    *err = why;
    if (code)
        return code;
    *who = "reference: ";
    replay->next = 0;
    if (!w->bench.memory || w->call.n_grads)
        code = work_run_reference(w, err);
    if (code && code != PLUMB_E_IO && !is_short(w, code) && w->call.n_grads && !all_or_nothing) {
        const struct plumb_error first = *err;
        code = forward_only(w, "", &first, err);
        replay->next = 0;
        if (!code)
            code = work_run_reference(w, err);
    }
    if (code)
        return code;
    *who = "device: ";
    replay->next = 0;
    return run_device(w, err);
}

static void see_type(struct work *w, const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_TENSOR) {
        w->fp8_input |= standard_is_fp8(arg->tensor->dtype);
        w->complex_input |= plumb_dtype_info(arg->tensor->dtype)->kind == PLUMB_KIND_COMPLEX;
    }
    for (size_t k = 0; arg->kind == PLUMB_ARG_LIST && k < arg->n_items; k++)
        see_type(w, &arg->items[k]);
}

static void see_types(struct work *w)
{
    for (size_t k = 0; k < w->call.n_args; k++)
        see_type(w, &w->call.args[k]);
    for (size_t k = 0; k < w->call.n_kwargs; k++)
        see_type(w, &w->call.kwargs[k].value);
}

static enum plumb_code save_failure(struct work *w, const struct journal_entry *out,
                                    struct plumb_error *err)
{
    const bool fine = out->forward == STATUS_PASS && out->word != PLUMB_WORD_FAULT &&
                      (out->backward == STATUS_PASS || out->backward == STATUS_BLANK);
    if (!w->shared->error_data || fine)
        return PLUMB_OK;
    const struct error_data data = {w->shared->error_data, w->from.name, &w->call, &w->bench,
                                    &w->actual};
    return error_data_save(&data, err);
}

/* ---- The whole way --------------------------------------------------------------------------- */

static enum plumb_code run_and_compare(struct work *w, struct journal_entry *out,
                                       struct plumb_error *err)
{
    const struct plumb_op *op = plumb_op_find(w->from.prefix, w->from.api);
    if (!op && !w->shared->fallback) {
        const char *message = arena_printf(
            w->arena, "plumb has no operator %s; 'plumb ops' lists those it has", w->from.api);
        return message ? skip_case(w, message, out, err) : work_no_memory(err);
    }
    struct plumb_error why = {0};
    const char *who = "";
    const struct precheck_comparing *how = w->profile->compare;
    const bool random = op && op->random;
    const bool dropout = strstr(w->from.api, "dropout") && (!op || random || how->dropout_by_zeros);
    if (random && !dropout)
        return skip_case(w, "the results are random: there is nothing to compare", out, err);
    enum plumb_code code = random && w->shared->inputs.mt ? run_in_draw_order(w, &who, &why)
                                                          : run_sides(w, &who, &why);
    if (is_short(w, code))
        return code;
    if (code) {
        drop_folder(&why);
        return skip_error(w, who, &why, out, err);
    }
    if (how->needs_all_outputs && w->actual.n_outputs < w->bench.n_outputs)
        return skip_case(w, "the device returned fewer results than the reference", out, err);
    code = dropout && w->bench.n_outputs && w->actual.n_outputs ? work_compare_dropout(w, out, err)
                                                                : work_compare(w, out, err);
    work_worst_opinion(w, out);
    return code ? code : save_failure(w, out, err);
}

static enum plumb_code prepare(struct work *w, struct plumb_error *why)
{
    enum plumb_code code = generate_call(&w->from, &w->inputs, &w->scratch, &w->call, why);
    if (code)
        return code;
    see_types(w);
    w->source = w->call.draws;
    w->call.benchmark_forms = w->profile->run->benchmark_forms;
    if (w->profile->run->widened) { /* what was recorded, not what autocast made of it */
        code = convert_raise(&w->call, &w->scratch, &w->raised, why);
        return code ? code
                    : convert_autocast(&w->call, w->from.output_dtype, false, &w->scratch, why);
    }
    bool still = false;
    code = convert_autocast(&w->call, w->from.output_dtype, true, &w->scratch, why);
    if (!code)
        code = convert_still(&w->call, &still, &w->scratch, why);
    if (still && w->device->recorded)
        return plumb_fail(why, PLUMB_E_UNSUPPORTED,
                          "which elements its dropout chose is not recorded");
    if (still)
        w->note = "compared without its dropout, whose choices are random";
    w->raised = w->call;
    return code;
}

/* The one generator of a run has moved on behind a call that is refused late. */
static void draw_inputs(const struct work_shared *shared, size_t i)
{
    struct arena arena = {0};
    struct check_case from;
    struct plumb_call call;
    if (shared->inputs.mt && !case_parse(shared->file, i, &arena, &from, NULL))
        generate_call(&from, &shared->inputs, &arena, &call, NULL);
    arena_free(&arena);
}

/* Not run, and called a pass. */
static enum plumb_code unrun_case(struct work *w, const char *why, struct journal_entry *out,
                                  struct plumb_error *err)
{
    enum plumb_code code = skip_case(w, why, out, err);
    out->forward = STATUS_PASS;
    out->backward = STATUS_BLANK;
    return code;
}

enum plumb_code work_refuse(const struct work_shared *shared, size_t i, const char *why,
                            struct arena *arena, struct journal_entry *out, struct plumb_error *err)
{
    struct work w = {.shared = shared, .arena = arena, .profile = shared->judge.rules->profile};
    w.from.name = case_place(shared->file, i)->name;
    draw_inputs(shared, i);
    return skip_case(&w, why, out, err);
}

/* From the entry to the rows. */
static enum plumb_code parse_and_run(struct work *w, size_t i, struct journal_entry *out,
                                     struct plumb_error *err)
{
    struct plumb_error why = {0};
    const char *name = w->from.name;
    enum plumb_code code = case_parse(w->shared->file, i, &w->scratch, &w->from, &why);
    w->from.name = name; /* which lives as long as the file */
    if (is_short(w, code))
        return code;
    if (code) {
        why.file[0] = '\0'; /* rows do not depend on where the dump lies */
        return skip_error(w, "entry: ", &why, out, err);
    }
    const char *unwritten = case_uninitialised(&w->from, w->arena);
    if (unwritten)
        return skip_case(w, arena_printf(w->arena, "not judged: %s", unwritten), out, err);
    code = prepare(w, &why);
    if (is_short(w, code))
        return code;
    if (code) {
        drop_folder(&why);
        return skip_error(w, "inputs: ", &why, out, err);
    }
    running_note(w->shared->running, w->room->thread, i, w->scratch.bytes);
    return run_and_compare(w, out, err);
}

enum plumb_code work_case(const struct work_shared *shared, size_t i, struct plumb_device *device,
                          const struct work_room *room, struct arena *arena,
                          struct journal_entry *out, struct plumb_error *err)
{
    struct work w = {.shared = shared,
                     .device = device,
                     .room = room,
                     .inputs = shared->inputs,
                     .arena = arena,
                     .profile = shared->judge.rules->profile};
    /* The operators need several times what their arguments take. */
    w.inputs.memory = room->memory / 3;
    w.inputs.recorded_only = device->recorded;
    const char *reason = NULL;
    *out = (struct journal_entry){0};
    w.from.name = case_place(shared->file, i)->name;
    switch (select_call(shared->selector, case_place(shared->file, i)->call, &reason)) {
    case SELECT_ABORT:
        return plumb_fail(err, PLUMB_E_ARG, "%s: %s", w.from.name, reason);
    case SELECT_SKIP:
        return skip_case(&w, reason, out, err);
    case SELECT_REFUSED:
        draw_inputs(shared, i);
        return skip_case(&w, reason, out, err);
    case SELECT_UNRUN:
        draw_inputs(shared, i);
        return unrun_case(&w, reason, out, err);
    case SELECT_RUN:
        break;
    }
    running_note(shared->running, room->thread, i, 0);
    const char *name = w.from.name;
    enum plumb_code code = parse_and_run(&w, i, out, err);
    if (code == PLUMB_E_NOMEM && room->all)
        code = skip_case(&w, "out of memory while the results were compared", out, err);
    out->name = name;
    plumb_expected_free(w.expected);
    plumb_result_destroy(&w.bench);
    plumb_result_destroy(&w.actual);
    arena_free(&w.scratch);
    return code;
}
