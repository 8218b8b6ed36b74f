/* Statistics along steps as a report: the answer, the table of jumps, the series. */
#include "task/compare/steps.h"

#include "base/buf.h"
#include "base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 400000 }; /* of a series: a page must open */

static const char *const titles[SERIES] = {
    [SERIES_NORM] = "norm", [SERIES_MAX] = "max", [SERIES_MIN] = "min",
    [SERIES_MEAN] = "mean", [SERIES_NAN] = "NaN", [SERIES_INF] = "Inf"};

static void put_why(struct buf *out, const struct jump *jump)
{
    char value[NUMBER_BYTES], usual[NUMBER_BYTES], limit[NUMBER_BYTES];
    number_brief(jump->value, 4, value);
    number_brief(jump->usual, 4, usual);
    number_brief(jump->limit, 4, limit);
    if (isnan(jump->limit))
        buf_printf(out, "holds %s%s", jump->what,
                   jump->mood == PLUMB_MOOD_DOUBT ? ", as in the earlier run" : "");
    else if (jump->earlier)
        buf_printf(out, "the %s is %s, and %s in the earlier run: more than %s apart", jump->what,
                   value, usual, limit);
    else
        buf_printf(out, "the %s is %s, and usually %s: more than %s apart", jump->what, value,
                   usual, limit);
    if (jump->lasts > 1)
        buf_printf(out, "; for %zu steps", jump->lasts);
}

/* ---- The table ------------------------------------------------------------------------------- */

static struct plumb_table *make_table(const struct steps *s)
{
    static const struct plumb_column columns[] = {
        {"Step", PLUMB_STYLE_NUMBER, false, false},  {"Tensor", PLUMB_STYLE_TEXT, true, true},
        {"What", PLUMB_STYLE_TEXT, true, false},     {"Value", PLUMB_STYLE_DIGITS, false, false},
        {"Usual", PLUMB_STYLE_DIGITS, false, false}, {"Limit", PLUMB_STYLE_DIGITS, false, false},
        {"Steps", PLUMB_STYLE_NUMBER, false, false}, {"Against", PLUMB_STYLE_TEXT, true, false},
        {"Why", PLUMB_STYLE_TEXT, true, true},
    };
    struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
    bool fine = table != NULL;
    for (size_t k = 0; k < s->n_jumps && fine; k++) {
        const struct jump *jump = &s->jumps[k];
        struct buf why = {0};
        put_why(&why, jump);
        fine = plumb_table_add_row(table,
                                   jump->mood == PLUMB_MOOD_BAD ? PLUMB_FAILED : PLUMB_SUSPICIOUS);
        if (fine) {
            plumb_table_int(table, 0, s->steps[jump->at]);
            plumb_table_int(table, 6, (int64_t)jump->lasts);
            if (!isnan(jump->limit)) {
                plumb_table_real(table, 3, jump->value);
                plumb_table_real(table, 4, jump->usual);
                plumb_table_real(table, 5, jump->limit);
            }
            fine = plumb_table_text(table, 1, s->names[jump->tensor]) &&
                   plumb_table_text(table, 2, jump->what) &&
                   plumb_table_text(table, 7,
                                    jump->earlier        ? "the earlier run"
                                    : isnan(jump->limit) ? ""
                                                         : "its last steps") &&
                   why.data && plumb_table_text(table, 8, why.data);
        }
        buf_free(&why);
    }
    if (fine)
        return table;
    plumb_table_free(table);
    return NULL;
}

/* ---- The answer ------------------------------------------------------------------------------ */

struct found {
    size_t bad, doubt; /* rows */
    int64_t first;     /* the first of the worst */
};

static struct found count_jumps(const struct steps *s)
{
    struct found found = {.first = -1};
    for (size_t k = 0; k < s->n_jumps; k++) {
        const bool bad = s->jumps[k].mood == PLUMB_MOOD_BAD;
        if (found.first < 0 || (bad && !found.bad))
            found.first = (int64_t)k;
        found.bad += bad;
        found.doubt += !bad;
    }
    return found;
}

/* Whether there are enough steps for anything to be called a jump. */
static bool can_judge(const struct steps *s)
{
    return s->n_steps > PLUMB_STEPS_LEAST;
}

static void tell_answer(struct plumb_report *report, const struct steps *s)
{
    const struct found found = count_jumps(s);
    struct buf sentence = {0}, why = {0};
    const struct jump *first = found.first >= 0 ? &s->jumps[found.first] : NULL;
    if (found.bad)
        buf_printf(&sentence,
                   "%zu time%s a tensor begins to hold NaN or infinity, first in step "
                   "%" PRId64 ".",
                   found.bad, found.bad == 1 ? "" : "s", s->steps[first->at]);
    if (found.doubt)
        buf_printf(&sentence, "%s%zu jump%s", found.bad ? " " : "", found.doubt,
                   found.doubt == 1 ? "" : "s");
    if (found.doubt && !found.bad)
        buf_printf(&sentence, ", the first in step %" PRId64, s->steps[first->at]);
    if (found.doubt)
        buf_text(&sentence, ".");
    if (!first && can_judge(s))
        buf_printf(&sentence, "Nothing jumps, and all is finite: %zu tensors over %zu steps.",
                   s->n_names, s->n_steps);
    else if (!first)
        buf_printf(&sentence, "All is finite; %zu steps are too few to tell what jumps.",
                   s->n_steps);
    if (first)
        put_why(&why, first);
    plumb_report_answer(
        report, &(struct plumb_report_answer){.mood = found.bad      ? PLUMB_MOOD_BAD
                                                      : found.doubt  ? PLUMB_MOOD_DOUBT
                                                      : can_judge(s) ? PLUMB_MOOD_GOOD
                                                                     : PLUMB_MOOD_UNSEEN,
                                              .sentence = sentence.data ? sentence.data : "",
                                              .where = first ? s->names[first->tensor] : "",
                                              .row = found.first,
                                              .sure = why.data ? why.data : ""});
    plumb_report_count(report, "not finite", found.bad, PLUMB_MOOD_BAD);
    plumb_report_count(report, "jumps", found.doubt, PLUMB_MOOD_DOUBT);
    buf_free(&sentence);
    buf_free(&why);
}

static void tell_rule(struct plumb_report *report, const struct steps *s)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "A norm or range jumps when it is further from the median of the last %d steps than %d "
        "times their median absolute deviation, which counts as 1 %% of the median at least%s. "
        "The first %d steps have no history, and are not held against any.",
        PLUMB_STEPS_HISTORY, PLUMB_STEPS_FACTOR,
        s->has_before ? "; or when it is as far from the same step of the earlier run" : "",
        PLUMB_STEPS_LEAST);
    plumb_report_note(report, text);
    if (s->without) {
        snprintf(text, sizeof text,
                 "%zu tensors of single steps have no recorded statistics, and were not looked at.",
                 s->without);
        plumb_report_note(report, text);
    }
}

/* ---- The series ------------------------------------------------------------------------------ */

/* Which tensors are drawn: those that jump first, as many as there is room for. */
static size_t choose(const struct steps *s, size_t *chosen, size_t *place)
{
    const size_t most = MOST_POINTS / s->n_steps > 1 ? MOST_POINTS / s->n_steps : 1;
    size_t n = 0;
    for (size_t k = 0; k < s->n_names; k++)
        place[k] = SIZE_MAX;
    for (size_t k = 0; k < s->n_jumps && n < most; k++)
        if (place[s->jumps[k].tensor] == SIZE_MAX)
            place[chosen[n] = s->jumps[k].tensor] = n, n++;
    for (size_t k = 0; k < s->n_names && n < most; k++)
        if (place[k] == SIZE_MAX)
            place[chosen[n] = k] = n, n++;
    return n;
}

static const double **pick(struct steps *s, const struct history *history, const size_t *chosen,
                           size_t n)
{
    const double **series = arena_array(&s->arena, SERIES, sizeof *series);
    for (int k = 0; k < SERIES && series; k++) {
        double *values = arena_array(&s->arena, n * s->n_steps + 1, sizeof *values);
        if (!values)
            return NULL;
        for (size_t i = 0; i < n; i++)
            memcpy(values + i * s->n_steps, history->values[k] + chosen[i] * s->n_steps,
                   s->n_steps * sizeof *values);
        series[k] = values;
    }
    return series;
}

static bool tell_series(struct plumb_report *report, struct steps *s)
{
    size_t *chosen = arena_array(&s->arena, s->n_names + 1, sizeof *chosen),
           *place = arena_array(&s->arena, s->n_names + 1, sizeof *place), n_jumps = 0;
    if (!chosen || !place)
        return false;
    const size_t n = choose(s, chosen, place);
    const char **names = arena_array(&s->arena, n + 1, sizeof *names);
    struct plumb_report_jump *jumps = arena_array(&s->arena, s->n_jumps + 1, sizeof *jumps);
    const double **now = pick(s, &s->now, chosen, n),
                 **before = s->has_before ? pick(s, &s->before, chosen, n) : NULL;
    if (!names || !jumps || !now || (s->has_before && !before))
        return false;
    for (size_t k = 0; k < n; k++)
        names[k] = s->names[chosen[k]];
    for (size_t k = 0; k < s->n_jumps; k++) {
        const struct jump *jump = &s->jumps[k];
        struct buf why = {0};
        put_why(&why, jump);
        const char *text = why.data ? arena_copy(&s->arena, why.data, why.size) : NULL;
        buf_free(&why);
        if (!text)
            return false;
        if (place[jump->tensor] != SIZE_MAX)
            jumps[n_jumps++] = (struct plumb_report_jump){(int32_t)place[jump->tensor],
                                                          s->steps[jump->at], text, jump->mood};
    }
    plumb_report_steps(report, &(struct plumb_report_steps){.steps = s->steps,
                                                            .n_steps = s->n_steps,
                                                            .names = names,
                                                            .n_names = n,
                                                            .titles = titles,
                                                            .n_series = SERIES,
                                                            .now = now,
                                                            .before = before,
                                                            .jumps = jumps,
                                                            .n_jumps = n_jumps});
    if (n < s->n_names) {
        char text[160];
        snprintf(
            text, sizeof text,
            "%zu of %zu tensors have their series here, those that jump first; all were looked "
            "at.",
            n, s->n_names);
        plumb_report_note(report, text);
    }
    return true;
}

enum plumb_code plumb_steps_report(struct plumb_report *report, const struct plumb_run *run,
                                   const struct plumb_run *earlier, struct plumb_error *err)
{
    struct steps s;
    struct plumb_table *table = NULL;
    enum plumb_code code = steps_collect(&s, run, earlier, err);
    if (!code) {
        const bool fine = steps_find_jumps(&s) && (table = make_table(&s)) != NULL;
        if (fine) {
            tell_answer(report, &s);
            plumb_report_table(report, "jumps", table, NULL, NULL);
            tell_rule(report, &s);
        }
        code = fine && tell_series(report, &s) ? PLUMB_OK : plumb_no_memory(err);
    }
    plumb_table_free(table);
    steps_release(&s);
    return code;
}
