/* One call of a dump, computed again from what went in, and what came out held against it. */
#include "verdict/local.h"

#include "verdict/convert.h"
#include "verdict/given.h"
#include "verdict/ties.h"

#include <stdio.h>
#include <string.h>

struct local {
    const struct local_options *options;
    struct generate_options inputs;
    struct arena *arena;  /* of texts that stay */
    struct arena scratch; /* of tensors */
    struct check_case from;
    struct plumb_call call;
    struct plumb_result reference, given;
    struct plumb_expected *expected;
    uint64_t ties;
    struct local_verdict *out;
    size_t recorded;         /* which recorded result is being looked at; SIZE_MAX: none */
    size_t n_grads_recorded; /* entries of the backward's output */
    const char *no_backward; /* why the recorded one is not judged, or NULL */
};

/* False when out of memory. */
static bool copy_texts(struct arena *arena, const struct local_verdict *from,
                       struct local_verdict *to)
{
    const char *const *texts[] = {&from->why, &from->result, &from->arithmetic, &from->pattern};
    const char **copies[] = {&to->why, &to->result, &to->arithmetic, &to->pattern};
    *to = *from;
    to->seen = true;
    bool fine = true;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        *copies[k] = arena_printf(arena, "%s", *texts[k] ? *texts[k] : "");
        fine &= *copies[k] != NULL;
    }
    return fine;
}

static enum plumb_code keep(struct local *l, unsigned direction,
                            const struct local_verdict *verdict, struct plumb_error *err)
{
    struct local_verdict *out = &l->out[direction];
    struct local_verdict *kept = arena_alloc(l->arena, sizeof *kept);
    if (!kept || !copy_texts(l->arena, verdict, kept))
        return plumb_no_memory(err);
    kept->recorded = l->recorded;
    kept->next = out->next;
    out->next = kept;
    const unsigned new = plumb_word_severity(verdict->word), old = plumb_word_severity(out->word);
    if (out->seen && (new < old || (new == old && !(verdict->worst > out->worst))))
        return PLUMB_OK;
    *out = *kept;
    out->next = kept;
    return PLUMB_OK;
}

static enum plumb_code not_judged(struct local *l, unsigned direction, const char *why,
                                  struct plumb_error *err)
{
    const struct local_verdict verdict = {.word = PLUMB_WORD_NOT_JUDGED, .why = why, .result = ""};
    return keep(l, direction, &verdict, err);
}

/* Neither direction is judged. */
static enum plumb_code leave(struct local *l, const char *why, struct plumb_error *err)
{
    const enum plumb_code code = not_judged(l, 0, why, err);
    return code || !l->from.has_backward ? code : not_judged(l, 1, why, err);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

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
    bool any = false;
    if (!l->from.has_backward)
        return;
    if (has_out(&l->call)) {
        l->no_backward = "the result went into a given tensor (out=)";
        return;
    }
    if (generate_grads(&l->from, &l->inputs, &l->scratch, &l->call.grads, &l->call.n_grads, &why))
        l->no_backward = arena_printf(l->arena, "gradient: %s", why.message);
    for (size_t k = 0; k < l->call.n_grads && !l->no_backward; k++)
        any |= l->call.grads[k] != NULL;
    if (!any && !l->no_backward)
        l->no_backward = "all recorded gradients are null";
    if (l->no_backward)
        l->call.n_grads = 0;
}

/* The name of a payload file without its folder, before the message. */
static const char *reason(struct local *l, const char *who, const struct plumb_error *why)
{
    const char *slash = strrchr(why->file, '/');
    const char *text = arena_printf(l->arena, "%s%s%s%s", who, slash ? slash + 1 : "",
                                    slash ? ": " : "", why->message);
    return text ? text : "out of memory";
}

static enum plumb_code prepare(struct local *l, const char **refused, struct plumb_error *err)
{
    bool still = false;
    enum plumb_code code = generate_call(&l->from, &l->inputs, &l->scratch, &l->call, err);
    if (!code)
        code = convert_autocast(&l->call, l->from.output_dtype, true, &l->scratch, err);
    if (!code)
        code = convert_still(&l->call, &still, &l->scratch, err);
    if (!code && still)
        *refused = "which elements its dropout chose is not recorded";
    if (!code)
        take_grads(l);
    return code;
}

static enum plumb_code run_reference(struct local *l, struct plumb_error *err)
{
    l->call.memory = l->options->memory;
    enum plumb_code code = plumb_op_run(&l->call, PLUMB_RAISED, &l->reference, err);
    if (!code || code == PLUMB_E_NOMEM || !l->call.n_grads)
        return code;
    l->no_backward = reason(l, "", err);
    l->call.n_grads = 0;
    plumb_result_destroy(&l->reference);
    return plumb_op_run(&l->call, PLUMB_RAISED, &l->reference, err);
}

/* ---- Results --------------------------------------------------------------------------------- */

static enum plumb_code load_given(struct local *l, struct plumb_error *err)
{
    struct case_results results;
    enum plumb_code code =
        given_result(l->options->file, &l->from, &l->call, &l->inputs, &l->scratch, &l->given, err);
    if (!code)
        code = case_parse_results(l->options->file, l->from.index, &l->scratch, &results, err);
    l->n_grads_recorded = code ? 0 : results.n_grads;
    return code;
}

static enum plumb_code judge_result(struct local *l, enum plumb_expected_part part, size_t k,
                                    const struct plumb_arg *reference, const struct plumb_arg *got,
                                    struct plumb_error *err)
{
    const unsigned direction = part == PLUMB_PART_GRADIENT;
    if (reference->kind == PLUMB_ARG_NONE && got->kind == PLUMB_ARG_NONE)
        return PLUMB_OK;
    l->recorded = direction ? given_gradient(&l->call, l->n_grads_recorded, k) : k;
    if (got->kind == PLUMB_ARG_OTHER)
        return not_judged(l, direction, got->text ? got->text : "it is no tensor", err);
    struct plumb_opinion opinion;
    enum plumb_code code = plumb_expected_judge(l->expected, part, k, got, &opinion, err);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code)
        return not_judged(l, direction, err->message, err);
    char result[48], why[sizeof opinion.why + 16];
    snprintf(result, sizeof result, "%s %zu", direction ? "gradient" : "output", k);
    snprintf(why, sizeof why, "%s%s", opinion.allowed ? "allowed: " : "", opinion.why);
    const struct local_verdict verdict = {.word = opinion.allowed ? PLUMB_WORD_ROUNDING
                                                  : opinion.word == PLUMB_WORD_SAME && l->ties > 0
                                                      ? PLUMB_WORD_TIE
                                                      : opinion.word,
                                          .worst = opinion.worst,
                                          .why = why,
                                          .result = result,
                                          .arithmetic = opinion.arithmetic,
                                          .pattern = opinion.pattern};
    return keep(l, direction, &verdict, err);
}

static enum plumb_code judge_results(struct local *l, enum plumb_expected_part part,
                                     const struct plumb_arg *reference, size_t n_reference,
                                     const struct plumb_arg *got, size_t n_got,
                                     struct plumb_error *err)
{
    static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; (k < n_reference || k < n_got) && !code; k++)
        code = judge_result(l, part, k, k < n_reference ? &reference[k] : &nothing,
                            k < n_got ? &got[k] : &nothing, err);
    l->recorded = SIZE_MAX;
    return code;
}

static enum plumb_code judge_all(struct local *l, struct plumb_error *err)
{
    const struct plumb_expected_options options = {.seed = l->options->seed,
                                                   .arithmetic = l->options->arithmetic,
                                                   .memory = l->options->memory};
    enum plumb_code code = ties_settle(&l->call, &l->given, &l->reference, &l->scratch, &l->ties);
    if (code)
        return plumb_no_memory(err);
    code = plumb_expected_new(&l->call, &l->reference, &options, &l->expected, err);
    if (!code)
        code = judge_results(l, PLUMB_PART_OUTPUT, l->reference.outputs, l->reference.n_outputs,
                             l->given.outputs, l->given.n_outputs, err);
    if (code)
        return code;
    if (!l->out[0].seen)
        code = not_judged(l, 0, "no result was recorded", err);
    if (!code && l->call.n_grads)
        code = judge_results(l, PLUMB_PART_GRADIENT, l->reference.grads, l->reference.n_grads,
                             l->given.grads, l->given.n_grads, err);
    if (!code && l->from.has_backward && !l->out[1].seen)
        code = not_judged(l, 1, l->no_backward ? l->no_backward : "no gradient was recorded", err);
    return code;
}

static enum plumb_code run(struct local *l, size_t i, struct plumb_error *err)
{
    struct plumb_error why = {0};
    enum plumb_code code = case_parse(l->options->file, i, &l->scratch, &l->from, &why);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code)
        return leave(l, reason(l, "", &why), err);
    const struct plumb_op *op = plumb_op_find(l->from.prefix, l->from.api);
    if (!op) {
        const char *text = arena_printf(l->arena, "plumb has no operator %s", l->from.api);
        return text ? leave(l, text, err) : plumb_no_memory(err);
    }
    if (op->random)
        return leave(l, "the results are random", err);
    const char *refused = NULL;
    code = prepare(l, &refused, &why);
    if (!code && !refused)
        code = run_reference(l, &why);
    if (!code && !refused)
        code = load_given(l, &why);
    if (!code && !refused)
        code = judge_all(l, &why);
    if (code == PLUMB_E_NOMEM) {
        *err = why;
        return code;
    }
    return code || refused ? leave(l, refused ? refused : reason(l, "", &why), err) : PLUMB_OK;
}

enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[2], struct plumb_error *err)
{
    struct local l = {.options = options,
                      .inputs = {.data_dir = case_data_dir(options->file),
                                 .recorded_only = true,
                                 .memory = options->memory / 3},
                      .arena = arena,
                      .out = out,
                      .recorded = SIZE_MAX};
    out[0] = out[1] = (struct local_verdict){0};
    const enum plumb_code code = run(&l, i, err);
    plumb_expected_free(l.expected);
    plumb_result_destroy(&l.reference);
    arena_free(&l.scratch);
    return code;
}
