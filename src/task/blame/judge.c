/* A call with what it gave: computed again in higher precision, and its results held against
 * that. */
#include "task/blame/parts.h"

#include "verdict/convert.h"
#include "verdict/ties.h"

#include <stdio.h>
#include <string.h>

struct judging {
    const struct local_options *options;
    struct known_call *known;
    struct arena *arena;  /* of texts that stay */
    struct arena scratch; /* of tensors */
    struct plumb_result reference;
    struct plumb_expected *expected;
    uint64_t ties;
    struct local_verdict *out;
};

enum plumb_code verdict_keep(struct local_verdict *out, const struct local_verdict *verdict,
                             struct arena *arena, struct plumb_error *err)
{
    const unsigned new = plumb_word_severity(verdict->word), old = plumb_word_severity(out->word);
    if (out->seen && (new < old || (new == old && !(verdict->worst > out->worst))))
        return PLUMB_OK;
    *out = *verdict;
    out->seen = true;
    out->why = arena_printf(arena, "%s", verdict->why);
    out->result = arena_printf(arena, "%s", verdict->result);
    return out->why && out->result ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code verdict_none(struct local_verdict *out, const char *why, struct arena *arena,
                             struct plumb_error *err)
{
    const struct local_verdict verdict = {.word = PLUMB_WORD_NOT_JUDGED, .why = why, .result = ""};
    return verdict_keep(out, &verdict, arena, err);
}

const char *verdict_reason(struct arena *arena, const struct plumb_error *why)
{
    const char *slash = strrchr(why->file, '/');
    const char *text =
        arena_printf(arena, "%s%s%s", slash ? slash + 1 : "", slash ? ": " : "", why->message);
    return text ? text : "out of memory";
}

/* ---- The reference --------------------------------------------------------------------------- */

static enum plumb_code run_reference(struct judging *j, struct plumb_error *err)
{
    struct plumb_call *call = &j->known->call;
    call->memory = j->options->memory;
    enum plumb_code code = plumb_op_run(call, PLUMB_RAISED, &j->reference, err);
    if (!code || code == PLUMB_E_NOMEM || !call->n_grads)
        return code;
    j->known->no_backward = verdict_reason(j->arena, err);
    call->n_grads = 0;
    plumb_result_destroy(&j->reference);
    return plumb_op_run(call, PLUMB_RAISED, &j->reference, err);
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Which verdict a result counts for, and what it is called there. */
static unsigned name_result(const struct judging *j, enum plumb_expected_part part, size_t k,
                            char *name, size_t size)
{
    const struct known_gradient *of = j->known->gradients;
    if (part != PLUMB_PART_GRADIENT) {
        snprintf(name, size, "output %zu", k);
        return LOCAL_FORWARD;
    }
    if (of && of[k].name)
        snprintf(name, size, "gradient of %s", of[k].name);
    else
        snprintf(name, size, "gradient %zu", k);
    return of && of[k].parameter ? LOCAL_PARAMETERS : LOCAL_BACKWARD;
}

static enum plumb_code judge_result(struct judging *j, enum plumb_expected_part part, size_t k,
                                    const struct plumb_arg *reference, const struct plumb_arg *got,
                                    struct plumb_error *err)
{
    char result[64];
    struct local_verdict *out = &j->out[name_result(j, part, k, result, sizeof result)];
    if (reference->kind == PLUMB_ARG_NONE && got->kind == PLUMB_ARG_NONE)
        return PLUMB_OK;
    if (got->kind == PLUMB_ARG_OTHER)
        return verdict_none(out, got->text ? got->text : "it is no tensor", j->arena, err);
    struct plumb_opinion opinion;
    enum plumb_code code = plumb_expected_judge(j->expected, part, k, got, &opinion, err);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code)
        return verdict_none(out, err->message, j->arena, err);
    const struct local_verdict verdict = {.word = opinion.allowed ? PLUMB_WORD_ROUNDING
                                                  : opinion.word == PLUMB_WORD_SAME && j->ties > 0
                                                      ? PLUMB_WORD_TIE
                                                      : opinion.word,
                                          .worst = opinion.worst,
                                          .why = opinion.why,
                                          .result = result};
    return verdict_keep(out, &verdict, j->arena, err);
}

static enum plumb_code judge_results(struct judging *j, enum plumb_expected_part part,
                                     const struct plumb_arg *reference, size_t n_reference,
                                     const struct plumb_arg *got, size_t n_got,
                                     struct plumb_error *err)
{
    static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; (k < n_reference || k < n_got) && !code; k++)
        if (!j->known->only_recorded || (k < n_got && got[k].kind != PLUMB_ARG_NONE))
            code = judge_result(j, part, k, k < n_reference ? &reference[k] : &nothing,
                                k < n_got ? &got[k] : &nothing, err);
    return code;
}

static enum plumb_code judge_all(struct judging *j, struct plumb_error *err)
{
    const struct known_call *known = j->known;
    const struct plumb_expected_options options = {.seed = j->options->seed,
                                                   .arithmetic = j->options->arithmetic,
                                                   .memory = j->options->memory};
    enum plumb_code code =
        ties_settle(&known->call, &known->given, &j->reference, &j->scratch, &j->ties);
    if (code)
        return plumb_no_memory(err);
    code = plumb_expected_new(&known->call, &j->reference, &options, &j->expected, err);
    if (!code)
        code = judge_results(j, PLUMB_PART_OUTPUT, j->reference.outputs, j->reference.n_outputs,
                             known->given.outputs, known->given.n_outputs, err);
    if (code)
        return code;
    if (!j->out[LOCAL_FORWARD].seen)
        code = verdict_none(&j->out[LOCAL_FORWARD], "no result was recorded", j->arena, err);
    if (!code && known->call.n_grads)
        code = judge_results(j, PLUMB_PART_GRADIENT, j->reference.grads, j->reference.n_grads,
                             known->given.grads, known->given.n_grads, err);
    if (!code && known->has_backward && !j->out[LOCAL_BACKWARD].seen)
        code = verdict_none(&j->out[LOCAL_BACKWARD],
                            known->no_backward ? known->no_backward : "no gradient was recorded",
                            j->arena, err);
    return code;
}

enum plumb_code known_judge(const struct local_options *options, struct known_call *known,
                            struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                            struct plumb_error *err)
{
    struct judging j = {.options = options, .known = known, .arena = arena, .out = out};
    enum plumb_code code = run_reference(&j, err);
    if (!code)
        code = judge_all(&j, err);
    plumb_expected_free(j.expected);
    plumb_result_destroy(&j.reference);
    arena_free(&j.scratch);
    return code;
}
