/* One call of a dump, computed again from what went in, and what came out held against it. */
#include "verdict/local.h"

#include "base/buf.h"
#include "verdict/convert.h"
#include "verdict/given.h"
#include "verdict/spell.h"
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
    struct local_verdict *all = out->next;
    *out = *kept;
    out->next = all;
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
    struct buf place = {0};
    snprintf(why, sizeof why, "%s%s", opinion.allowed ? "allowed: " : "", opinion.why);
    snprintf(result, sizeof result, "%s %zu", direction ? "gradient" : "output", k);
    if (got->kind == PLUMB_ARG_TENSOR && got->tensor->count && opinion.worst > 0)
        spell_place(&place, got->tensor, opinion.at);
    const struct local_verdict verdict = {.word = opinion.allowed ? PLUMB_WORD_ROUNDING
                                                  : opinion.word == PLUMB_WORD_SAME && l->ties > 0
                                                      ? PLUMB_WORD_TIE
                                                      : opinion.word,
                                          .unsteady = opinion.unsteady,
                                          .worst = opinion.worst,
                                          .limit = opinion.limit,
                                          .why = why,
                                          .result = result,
                                          .arithmetic = opinion.arithmetic,
                                          .pattern = opinion.pattern,
                                          .place = place.data,
                                          .got = opinion.got,
                                          .expected = opinion.expected,
                                          .differing = opinion.differing};
    code = keep(l, direction, &verdict, err);
    buf_free(&place);
    return code;
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

/* Every recorded result. */
static enum plumb_code opine(struct local *l, struct plumb_error *err)
{
    l->out[0] = l->out[1] = (struct local_verdict){0};
    enum plumb_code code =
        judge_results(l, PLUMB_PART_OUTPUT, l->reference.outputs, l->reference.n_outputs,
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

/* The call, its reference and what it gave; *refused says why it is not to be judged. */
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
    if (op->random && strcmp(op->family, "dropout") != 0) {
        *refused = "the results are random";
        return PLUMB_OK;
    }
    code = prepare(l, refused, err);
    if (!code && !*refused)
        code = run_reference(l, err);
    if (!code && !*refused)
        code = load_given(l, err);
    return code;
}

/* ---- Repeats of the program ------------------------------------------------------------------ */

static void local_init(struct local *l, const struct local_options *options, struct arena *arena,
                       struct local_verdict *out)
{
    *l = (struct local){.options = options,
                        .inputs = {.data_dir = case_data_dir(options->file),
                                   .recorded_only = true,
                                   .memory = options->memory / 3},
                        .arena = arena,
                        .out = out,
                        .recorded = SIZE_MAX};
}

static void local_free(struct local *l)
{
    plumb_expected_free(l->expected);
    plumb_result_destroy(&l->reference);
    arena_free(&l->scratch);
}

/* Shows what a repeat gave to the verdict; what it does not have, or has otherwise, is left. */
static void show_results(struct local *l, enum plumb_expected_part part,
                         const struct plumb_arg *reference, size_t n_reference,
                         const struct plumb_arg *got, size_t n_got, bool *shown)
{
    struct plumb_error why;
    for (size_t k = 0; k < n_reference && k < n_got; k++)
        if (reference[k].kind == PLUMB_ARG_TENSOR && got[k].kind == PLUMB_ARG_TENSOR)
            *shown |= !plumb_expected_repeat(l->expected, part, k, reference[k].tensor,
                                             got[k].tensor, &why);
}

/* The same call of one repeat, by its own inputs. PLUMB_E_NOMEM. */
static enum plumb_code show_repeat(struct local *l, size_t k, bool *shown, struct plumb_error *err)
{
    struct local_options options = *l->options;
    struct local_verdict unused[2];
    struct arena texts = {0};
    struct plumb_error why = {0};
    const char *refused = NULL;
    size_t call = 0;
    options.file =
        repeats_find(options.repeats, k, l->from.name, options.step, options.rank, &call);
    if (!options.file)
        return PLUMB_OK;
    struct local other;
    local_init(&other, &options, &texts, unused);
    const enum plumb_code code = load(&other, call, &refused, &why);
    if (!code && !refused) {
        show_results(l, PLUMB_PART_OUTPUT, other.reference.outputs, other.reference.n_outputs,
                     other.given.outputs, other.given.n_outputs, shown);
        show_results(l, PLUMB_PART_GRADIENT, other.reference.grads, other.reference.n_grads,
                     other.given.grads, other.given.n_grads, shown);
    }
    local_free(&other);
    arena_free(&texts);
    if (code == PLUMB_E_NOMEM)
        *err = why;
    return code == PLUMB_E_NOMEM ? code : PLUMB_OK;
}

static bool is_deviation(const struct local_verdict *v)
{
    return v->seen && (v->word == PLUMB_WORD_FAULT || v->word == PLUMB_WORD_CHEAPER);
}

/* What is worse than rounding is judged again, beside what repeats of the program gave. */
static enum plumb_code ask_repeats(struct local *l, struct plumb_error *err)
{
    const size_t n = repeats_count(l->options->repeats);
    bool shown = false;
    enum plumb_code code = PLUMB_OK;
    if (!n || !(is_deviation(&l->out[0]) || is_deviation(&l->out[1])))
        return PLUMB_OK;
    for (size_t k = 0; k < n && !code; k++)
        code = show_repeat(l, k, &shown, err);
    return code || !shown ? code : opine(l, err);
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

static bool fits(const struct local *l)
{
    uint64_t all = 0, largest = 0;
    add_numbers(l->reference.outputs, l->reference.n_outputs, &all, &largest);
    add_numbers(l->reference.grads, l->reference.n_grads, &all, &largest);
    const uint64_t taken = l->scratch.bytes;
    return taken <= l->options->memory &&
           NOISE_BYTES * all + SAMPLE_BYTES * largest <= l->options->memory - taken;
}

static enum plumb_code judge_all(struct local *l, struct plumb_error *err)
{
    if (!fits(l))
        return plumb_fail(err, PLUMB_E_NOMEM, "it needs more memory than it may take");
    const struct plumb_expected_options options = {.seed = l->options->seed,
                                                   .arithmetic = l->options->arithmetic,
                                                   .memory = l->options->memory};
    enum plumb_code code = ties_settle(&l->call, &l->given, &l->reference, &l->scratch, &l->ties);
    if (code)
        return plumb_no_memory(err);
    code = plumb_expected_new(&l->call, &l->reference, &options, &l->expected, err);
    if (!code)
        code = plumb_expected_given(l->expected, l->given.outputs, l->given.n_outputs,
                                    l->given.grads, l->given.n_grads, err);
    if (!code)
        code = opine(l, err);
    return code ? code : ask_repeats(l, err);
}

static enum plumb_code run(struct local *l, size_t i, struct plumb_error *err)
{
    struct plumb_error why = {0};
    const char *refused = NULL;
    enum plumb_code code = load(l, i, &refused, &why);
    if (!code && !refused)
        code = judge_all(l, &why);
    if (!code && !refused && l->options->watch)
        return l->options->watch(l->options->watch_context, l->expected, &l->reference, &l->given,
                                 err);
    if (code == PLUMB_E_NOMEM) {
        *err = why;
        return code;
    }
    return code || refused ? leave(l, refused ? refused : reason(l, "", &why), err) : PLUMB_OK;
}

enum plumb_code local_judge(const struct local_options *options, size_t i, struct arena *arena,
                            struct local_verdict out[2], struct plumb_error *err)
{
    struct local l;
    local_init(&l, options, arena, out);
    out[0] = out[1] = (struct local_verdict){0};
    const enum plumb_code code = run(&l, i, err);
    local_free(&l);
    return code;
}
