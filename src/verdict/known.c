/* A call with what it gave: computed again in higher precision, and its results held against
 * that. */
#include "verdict/known.h"

#include "base/buf.h"
#include "verdict/given.h"
#include "verdict/spell.h"
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

/* ---- What is said ---------------------------------------------------------------------------- */

/* False when out of memory. */
static bool copy_texts(struct arena *arena, const struct local_verdict *from,
                       struct local_verdict *to)
{
    const char *const *texts[] = {&from->why, &from->result, &from->arithmetic, &from->pattern,
                                  &from->place};
    const char **copies[] = {&to->why, &to->result, &to->arithmetic, &to->pattern, &to->place};
    *to = *from;
    to->seen = true;
    bool fine = true;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        *copies[k] = arena_printf(arena, "%s", *texts[k] ? *texts[k] : "");
        fine &= *copies[k] != NULL;
    }
    return fine;
}

enum plumb_code verdict_keep(struct local_verdict *out, const struct local_verdict *verdict,
                             struct arena *arena, struct plumb_error *err)
{
    struct local_verdict *kept = arena_alloc(arena, sizeof *kept);
    if (!kept || !copy_texts(arena, verdict, kept))
        return plumb_no_memory(err);
    kept->next = out->next;
    out->next = kept;
    const unsigned new = plumb_word_severity(verdict->word), old = plumb_word_severity(out->word);
    if (out->seen && (new < old || (new == old && !(verdict->worst > out->worst))))
        return PLUMB_OK;
    *out = *kept;
    out->next = kept;
    return PLUMB_OK;
}

enum plumb_code verdict_none(struct local_verdict *out, const char *why, struct arena *arena,
                             struct plumb_error *err)
{
    const struct local_verdict verdict = {.word = PLUMB_WORD_NOT_JUDGED,
                                          .why = why,
                                          .result = "",
                                          .number = SIZE_MAX,
                                          .recorded = SIZE_MAX};
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

enum plumb_code known_reference(const struct local_options *options, struct known_call *known,
                                struct arena *arena, struct plumb_result *out,
                                struct plumb_error *err)
{
    struct plumb_call *call = &known->call;
    call->memory = options->memory;
    enum plumb_code code = plumb_op_run(call, PLUMB_RAISED, out, err);
    if (!code || code == PLUMB_E_NOMEM || !call->n_grads)
        return code;
    known->no_backward = verdict_reason(arena, err);
    call->n_grads = 0;
    plumb_result_destroy(out);
    return plumb_op_run(call, PLUMB_RAISED, out, err);
}

/* What judging takes besides the tensors: bytes for each number of all results, whose noise is
 * kept, and of the largest one, which is held against hypotheses. As measured. */
enum { NOISE_BYTES = 32, SAMPLE_BYTES = 128 };

static void add_numbers(const struct plumb_arg *list, size_t n, uint64_t *all, uint64_t *largest)
{
    for (size_t k = 0; list && k < n; k++) {
        const struct plumb_tensor *t = list[k].kind == PLUMB_ARG_TENSOR ? list[k].tensor : NULL;
        const uint64_t numbers = t ? t->count * plumb_dtype_parts(t->dtype) : 0;
        *all += numbers;
        *largest = numbers > *largest ? numbers : *largest;
    }
}

static bool fits(const struct judging *j)
{
    uint64_t all = 0, largest = 0;
    const uint64_t taken = j->known->taken, memory = j->options->memory;
    add_numbers(j->reference.outputs, j->reference.n_outputs, &all, &largest);
    add_numbers(j->reference.grads, j->reference.n_grads, &all, &largest);
    return taken <= memory && NOISE_BYTES * all + SAMPLE_BYTES * largest <= memory - taken;
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

static enum plumb_code keep_opinion(struct judging *j, const struct plumb_opinion *opinion,
                                    const struct plumb_arg *got, struct local_verdict verdict,
                                    struct local_verdict *out, struct plumb_error *err)
{
    char why[sizeof opinion->why + 16];
    struct buf place = {0};
    snprintf(why, sizeof why, "%s%s", opinion->allowed ? "allowed: " : "", opinion->why);
    if (got->kind == PLUMB_ARG_TENSOR && got->tensor->count && opinion->worst > 0)
        spell_place(&place, got->tensor, opinion->at);
    verdict.word = opinion->allowed                                  ? PLUMB_WORD_ROUNDING
                   : opinion->word == PLUMB_WORD_SAME && j->ties > 0 ? PLUMB_WORD_TIE
                                                                     : opinion->word;
    verdict.unsteady = opinion->unsteady;
    verdict.worst = opinion->worst;
    verdict.limit = opinion->limit;
    verdict.why = why;
    verdict.arithmetic = opinion->arithmetic;
    verdict.pattern = opinion->pattern;
    verdict.place = place.data;
    verdict.got = opinion->got;
    verdict.expected = opinion->expected;
    verdict.differing = opinion->differing;
    const enum plumb_code code = verdict_keep(out, &verdict, j->arena, err);
    buf_free(&place);
    return code;
}

static enum plumb_code judge_result(struct judging *j, enum plumb_expected_part part, size_t k,
                                    const struct plumb_arg *reference, const struct plumb_arg *got,
                                    struct plumb_error *err)
{
    char result[64];
    struct local_verdict *out = &j->out[name_result(j, part, k, result, sizeof result)];
    if (reference->kind == PLUMB_ARG_NONE && got->kind == PLUMB_ARG_NONE)
        return PLUMB_OK;
    struct local_verdict verdict = {
        .word = PLUMB_WORD_NOT_JUDGED,
        .result = "",
        .part = part,
        .number = k,
        .recorded = part == PLUMB_PART_GRADIENT
                        ? given_gradient(&j->known->call, j->known->n_grads_recorded, k)
                        : k};
    if (got->kind == PLUMB_ARG_OTHER) {
        verdict.why = got->text ? got->text : "it is no tensor";
        return verdict_keep(out, &verdict, j->arena, err);
    }
    struct plumb_opinion opinion;
    const enum plumb_code code = plumb_expected_judge(j->expected, part, k, got, &opinion, err);
    if (code == PLUMB_E_NOMEM)
        return code;
    if (code) {
        verdict.why = err->message;
        return verdict_keep(out, &verdict, j->arena, err);
    }
    verdict.result = result;
    return keep_opinion(j, &opinion, got, verdict, out, err);
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

/* Every recorded result. */
static enum plumb_code opine(struct judging *j, struct plumb_error *err)
{
    const struct known_call *known = j->known;
    memset(j->out, 0, LOCAL_DIRECTIONS * sizeof *j->out);
    enum plumb_code code =
        judge_results(j, PLUMB_PART_OUTPUT, j->reference.outputs, j->reference.n_outputs,
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

static bool is_deviation(const struct local_verdict *v)
{
    return v->seen && (v->word == PLUMB_WORD_FAULT || v->word == PLUMB_WORD_CHEAPER);
}

/* What is worse than rounding is judged again, beside what repeats of the program gave. */
static enum plumb_code ask_repeats(struct judging *j, struct plumb_error *err)
{
    bool shown = false, worse = false;
    for (int d = 0; d < LOCAL_DIRECTIONS; d++)
        worse |= is_deviation(&j->out[d]);
    if (!worse || !j->known->show)
        return PLUMB_OK;
    const enum plumb_code code = j->known->show(j->known->show_context, j->expected, &shown, err);
    return code || !shown ? code : opine(j, err);
}

static enum plumb_code judge_all(struct judging *j, struct plumb_error *err)
{
    struct known_call *known = j->known;
    const struct plumb_expected_options options = {.seed = j->options->seed,
                                                   .arithmetic = j->options->arithmetic,
                                                   .memory = j->options->memory};
    if (!fits(j))
        return plumb_fail(err, PLUMB_E_NOMEM, "it needs more memory than it may take");
    enum plumb_code code =
        ties_settle(&known->call, &known->given, &j->reference, &j->scratch, &j->ties);
    if (code)
        return plumb_no_memory(err);
    code = plumb_expected_new(&known->call, &j->reference, &options, &j->expected, err);
    if (!code)
        code = plumb_expected_given(j->expected, known->given.outputs, known->given.n_outputs,
                                    known->given.grads, known->given.n_grads, err);
    if (!code)
        code = opine(j, err);
    if (!code)
        code = ask_repeats(j, err);
    if (code || !j->options->watch)
        return code;
    code = j->options->watch(j->options->watch_context, j->expected, &j->reference, known, err);
    known->watch_failed = code != PLUMB_OK;
    return code;
}

enum plumb_code known_judge(const struct local_options *options, struct known_call *known,
                            struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                            struct plumb_error *err)
{
    struct judging j = {.options = options, .known = known, .arena = arena, .out = out};
    enum plumb_code code = known_reference(options, known, arena, &j.reference, err);
    if (!code)
        code = judge_all(&j, err);
    plumb_expected_free(j.expected);
    plumb_result_destroy(&j.reference);
    arena_free(&j.scratch);
    return code;
}
