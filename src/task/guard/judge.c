/* One call: its tolerances, its reference, its verdict, and what follows from that. */
#include "task/guard/guard.h"

#include "verdict/outputs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Tolerances ------------------------------------------------------------------------------ */

static void take_first_float(void *context, const struct plumb_tensor *tensor)
{
    const struct plumb_tensor **first = context;
    if (!*first && plumb_dtype_info(tensor->dtype)->kind == PLUMB_KIND_FLOAT)
        *first = tensor;
}

/* Operators that make tensors from numbers have none among their inputs. */
static const struct plumb_tensor *first_float(const struct plumb_guard_case *about)
{
    const struct plumb_call outputs = {.args = about->outputs, .n_args = about->n_outputs};
    const struct plumb_tensor *first = NULL;
    call_tensors(&about->call, take_first_float, &first);
    if (!first)
        call_tensors(&outputs, take_first_float, &first);
    return first;
}

/* Half types carry three digits at most. */
static double tolerance_of(const struct plumb_tensor *first_float, double asked)
{
    const bool half =
        first_float && (first_float->dtype == PLUMB_F16 || first_float->dtype == PLUMB_BF16);
    return half && asked < 1e-2 ? 1e-2 : asked;
}

/* ---- What follows ---------------------------------------------------------------------------- */

static const char *keep(struct plumb_guard *guard, const char *text)
{
    return text && *text ? arena_copy(&guard->arena, text, strlen(text)) : NULL;
}

void guard_take_word(struct plumb_guard_op *op, enum plumb_word word, const char *why)
{
    if (!op->judged || plumb_word_severity(word) > plumb_word_severity(op->word)) {
        op->word = word;
        snprintf(op->why, sizeof op->why, "%s", why);
    }
    op->judged = true;
}

static void count(struct plumb_guard_op *op, const struct plumb_guard_case *about,
                  const struct plumb_guard_verdict *verdict)
{
    struct plumb_guard *guard = op->guard;
    pthread_mutex_lock(&guard->lock);
    op->checked++;
    op->max_abs = fmax(op->max_abs, verdict->found.max_abs);
    op->max_rel = fmax(op->max_rel, verdict->found.max_rel);
    op->max_ulp = fmax(op->max_ulp, verdict->found.max_ulp);
    if (verdict->judged)
        guard_take_word(op, verdict->opinion.word, verdict->opinion.why);
    const bool failed = verdict->found.fault != PLUMB_FAULT_NONE;
    const char *failure =
        failed
            ? arena_printf(&guard->arena, "%s%s%s: %s", verdict->label, *verdict->label ? ", " : "",
                           plumb_fault_name(verdict->found.fault), verdict->found.message)
            : NULL;
    if (failed && !op->failed++) {
        op->first_failure = failure;
        op->where = keep(guard, about->where);
        op->saved = keep(guard, verdict->saved);
    }
    guard_family_tell(
        op, &(struct guard_family_news){
                .checked = 1,
                .failed = failed,
                .max_abs = verdict->found.max_abs,
                .max_rel = verdict->found.max_rel,
                .max_ulp = verdict->found.max_ulp,
                .verdict = verdict->judged ? plumb_word_text(verdict->opinion.word) : NULL,
                .failure = failure,
                .where = failed ? about->where : NULL,
                .saved = failed ? verdict->saved : NULL});
    pthread_mutex_unlock(&guard->lock);
}

/* Errors here are the check's own affair: counted, and told at the end. */
static void own_error(struct plumb_guard_op *op, const struct plumb_error *err)
{
    char text[1024];
    plumb_guard_trouble(op, plumb_error_text(err, text, sizeof text));
}

static void report(struct plumb_guard_op *op, const struct plumb_guard_case *about,
                   const struct plumb_arg *reference, size_t n_reference, bool raised,
                   struct plumb_guard_verdict *verdict)
{
    struct plumb_guard *guard = op->guard;
    struct plumb_error err = {0};
    if (guard->log_once)
        atomic_store(&op->open, false);
    if (guard->save &&
        guard_save_failure(guard, op, about, reference, n_reference, raised, verdict, &err))
        own_error(op, &err);
    if (guard_log_failure(op, about, verdict, &err))
        own_error(op, &err);
}

/* What has a label is no output of the operator. */
static size_t count_own(const struct plumb_guard_case *about, size_t n)
{
    size_t own = 0;
    while (own < n && (!about->labels || !*about->labels[own]))
        own++;
    return own;
}

/* Compares what is judged of the call. */
static enum plumb_code compare(const struct plumb_guard_op *op,
                               const struct plumb_guard_case *about,
                               const struct plumb_arg *reference, size_t n_reference, bool raised,
                               struct plumb_guard_verdict *out, struct plumb_error *err)
{
    const struct plumb_tensor *first = first_float(about);
    const struct outputs_sides sides = {
        .outputs = about->judged ? about->judged : about->outputs,
        .n_outputs = about->judged ? about->n_judged : about->n_outputs,
        .reference = reference,
        .n_reference = n_reference,
        .raised = raised,
        .rtol = tolerance_of(first, op->guard->rtol),
        .atol = tolerance_of(first, op->guard->atol),
    };
    const size_t n = sides.n_outputs, own = count_own(about, n);
    enum plumb_code code = outputs_compare_call(&sides, &about->call, own, &out->found, err);
    const struct plumb_outputs_verdict *found = &out->found;
    if (!code && found->fault != PLUMB_FAULT_NONE && about->labels && found->output < n)
        snprintf(out->label, sizeof out->label, "%s", about->labels[found->output]);
    return code;
}

/* ---- The second opinion ---------------------------------------------------------------------- */

static void take_given(const struct plumb_guard_case *about, struct plumb_guard_verdict *out)
{
    out->judged = true;
    out->opinion = *about->opinion;
    if (out->opinion.word != PLUMB_WORD_FAULT)
        return;
    out->found.output = about->opinion_on;
    if (about->labels && about->opinion_on < about->n_judged)
        snprintf(out->label, sizeof out->label, "%s", about->labels[about->opinion_on]);
}

/* The worst of the outputs. An operator that plumb does not have, or not so, leaves the tolerances
 * to decide. */
static void opine(const struct plumb_guard *guard, const struct plumb_guard_case *about,
                  const struct plumb_result *reference, struct plumb_guard_verdict *out)
{
    const struct plumb_expected_options options = {.arithmetic = guard->arithmetic};
    struct plumb_expected *expected = NULL;
    struct plumb_error err;
    if (about->opinion) {
        take_given(about, out);
        return;
    }
    if (guard->verdict == PLUMB_BY_RULES || about->judged ||
        plumb_expected_new(&about->call, reference, &options, &expected, &err))
        return;
    const bool given =
        !plumb_expected_given(expected, about->outputs, about->n_outputs, NULL, 0, &err);
    for (size_t k = 0; given && k < about->n_outputs; k++) {
        struct plumb_opinion opinion;
        if (plumb_expected_judge(expected, PLUMB_PART_OUTPUT, k, &about->outputs[k], &opinion,
                                 &err))
            break;
        if (out->judged &&
            plumb_word_severity(opinion.word) <= plumb_word_severity(out->opinion.word))
            continue;
        out->judged = true;
        out->opinion = opinion;
        if (opinion.word == PLUMB_WORD_FAULT && out->found.fault == PLUMB_FAULT_NONE)
            out->found.output = k;
    }
    plumb_expected_free(expected);
}

/* What follows from both. Another type or shape is wrong whoever decides. */
static void decide(const struct plumb_guard *guard, const struct plumb_guard_case *about,
                   struct plumb_guard_verdict *out)
{
    const bool expected =
        guard->verdict == PLUMB_BY_EXPECTED || (about->opinion && guard->verdict == PLUMB_BY_RULES);
    struct plumb_outputs_verdict *found = &out->found;
    const enum plumb_word word = out->opinion.word;
    const bool by_number =
        found->fault == PLUMB_FAULT_NOT_CLOSE || found->fault == PLUMB_FAULT_SPECIAL;
    if (!out->judged || word == PLUMB_WORD_NOT_JUDGED)
        return;
    if (expected && by_number && word != PLUMB_WORD_FAULT)
        found->fault = PLUMB_FAULT_NONE;
    if (word == PLUMB_WORD_FAULT && found->fault == PLUMB_FAULT_NONE) {
        found->fault = PLUMB_FAULT_NOT_CLOSE;
        snprintf(found->message, sizeof found->message, "%.500s", out->opinion.why);
    }
}

enum plumb_code plumb_guard_judge(struct plumb_guard_op *op, const struct plumb_guard_case *about,
                                  struct plumb_guard_verdict *out, struct plumb_error *err)
{
    struct plumb_result own = {0};
    const bool own_reference = about->reference == NULL;
    const bool raised = own_reference || about->raised;
    enum plumb_code code = PLUMB_OK;
    *out = (struct plumb_guard_verdict){0};
    if (own_reference)
        code = plumb_op_run(&about->call, PLUMB_RAISED, &own, err);
    if (code)
        goto out;
    const struct plumb_arg *reference = own_reference ? own.outputs : about->reference;
    const size_t n = own_reference ? own.n_outputs : about->n_reference;
    code = compare(op, about, reference, n, raised, out, err);
    if (code)
        goto out;
    opine(op->guard, about, own_reference ? &own : NULL, out);
    decide(op->guard, about, out);
    if (out->found.fault == PLUMB_FAULT_NONE && about->changed) {
        out->found.fault = PLUMB_FAULT_INPUT;
        out->label[0] = '\0';
        snprintf(out->found.message, sizeof out->found.message, "%s", about->changed);
    }
    if (out->found.fault != PLUMB_FAULT_NONE)
        report(op, about, reference, n, raised, out);
    count(op, about, out);
out:
    plumb_result_destroy(&own);
    return code;
}
