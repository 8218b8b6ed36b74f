/* The second opinion about a row: whether right arithmetic would have shown it. */
#include "task/precheck/work_parts.h"

static bool is_result(const struct plumb_arg *list, size_t n, size_t k)
{
    return list && k < n && list[k].kind != PLUMB_ARG_NONE;
}

/* Whether the reference has such a result. */
static bool is_expected(const struct work *w, enum plumb_expected_part part, size_t k)
{
    const struct plumb_result *r = &w->bench;
    return part == PLUMB_PART_OUTPUT     ? is_result(r->outputs, r->n_outputs, k)
           : part == PLUMB_PART_GRADIENT ? is_result(r->grads, r->n_grads, k)
                                         : is_result(r->written, r->n_grads, k);
}

void work_no_opinion(const struct work *w, const char *why, struct details_row *row)
{
    if (!w->shared->judged_by)
        return;
    row->word = PLUMB_WORD_NOT_JUDGED;
    row->verdict = plumb_word_text(row->word);
    row->why = why;
    row->judged_by = w->shared->judged_by;
}

static enum plumb_code prepare(struct work *w, struct plumb_error *err)
{
    const struct plumb_expected_options options = {
        .seed = w->inputs.seed, .arithmetic = w->shared->arithmetic, .memory = work_memory_left(w)};
    if (w->expected)
        return PLUMB_OK;
    const enum plumb_code code =
        plumb_expected_new(&w->raised, &w->bench, &options, &w->expected, err);
    return code ? code
                : plumb_expected_given(w->expected, w->actual.outputs, w->actual.n_outputs,
                                       w->actual.grads, w->actual.n_grads, err);
}

enum plumb_code work_opine(struct work *w, enum plumb_expected_part part, size_t k,
                           const struct plumb_arg *got, struct details_row *row,
                           struct plumb_error *err)
{
    if (!w->shared->judged_by)
        return PLUMB_OK;
    if (got->kind == PLUMB_ARG_NONE && !is_expected(w, part, k)) {
        row->verdict = row->why = " "; /* there is nothing, and there should be nothing */
        row->judged_by = w->shared->judged_by;
        return PLUMB_OK;
    }
    if (w->by_fallback) {
        work_no_opinion(w, "plumb has no operator of its own for this call", row);
        return PLUMB_OK;
    }
    if (got->kind == PLUMB_ARG_OTHER) {
        const char *why = arena_printf(w->arena, "%s", got->text);
        if (!why)
            return work_no_memory(err);
        work_no_opinion(w, why, row);
        return PLUMB_OK;
    }
    struct plumb_error why = {0};
    struct plumb_opinion opinion;
    enum plumb_code code = prepare(w, &why);
    if (!code)
        code = plumb_expected_judge(w->expected, part, k, got, &opinion, &why);
    if (code == PLUMB_E_NOMEM && !w->room->all)
        return work_no_memory(err);
    const bool allowed = !code && opinion.allowed;
    const char *text = arena_printf(w->arena, "%s%s", allowed ? "allowed: " : "",
                                    code ? why.message : opinion.why);
    if (!text)
        return work_no_memory(err);
    work_no_opinion(w, text, row);
    if (code)
        return PLUMB_OK;
    row->word = opinion.word == PLUMB_WORD_SAME && w->ties ? PLUMB_WORD_TIE : opinion.word;
    row->verdict = plumb_word_text(row->word);
    row->allowed = allowed;
    row->worst = opinion.worst;
    row->arithmetic = arena_printf(w->arena, "%s", opinion.arithmetic);
    row->pattern = arena_printf(w->arena, "%s", opinion.pattern);
    return row->arithmetic && row->pattern ? PLUMB_OK : work_no_memory(err);
}

void work_worst_opinion(const struct work *w, struct journal_entry *out)
{
    if (!w->shared->judged_by)
        return;
    out->verdict = plumb_word_text(PLUMB_WORD_NOT_JUDGED);
    out->why = "there is no result";
    out->word = PLUMB_WORD_NOT_JUDGED;
    bool any = false;
    for (size_t k = 0; k < out->n_rows; k++) {
        const struct details_row *row = &out->rows[k];
        if (*row->verdict == ' ' ||
            (any && plumb_word_severity(row->word) <= plumb_word_severity(out->word)))
            continue;
        any = true;
        out->verdict = row->verdict;
        out->why = row->why;
        out->word = row->word;
    }
}
