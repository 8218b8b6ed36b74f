/* What became of the rows, and the closing lines, part by part. */
#include "task/compare/outcome.h"

enum plumb_trouble outcome_of(const struct plumb_verdict *verdict)
{
    if (verdict->severity == PLUMB_FAILED)
        return verdict->nonfinite ? PLUMB_TROUBLE_NONFINITE : PLUMB_TROUBLE_LIMIT;
    if (verdict->unjudged)
        return PLUMB_TROUBLE_UNJUDGED;
    return verdict->severity == PLUMB_SUSPICIOUS ? PLUMB_TROUBLE_SUSPICIOUS : PLUMB_TROUBLE_NONE;
}

bool outcome_note(struct plumb_comparison *out, size_t row, struct plumb_outcome outcome)
{
    out->outcomes[row] = outcome;
    if (outcome.trouble == PLUMB_TROUBLE_NONE)
        return false;
    struct plumb_trouble_rows *rows = &out->troubles[outcome.trouble];
    if (rows->count++)
        return false;
    rows->first = row;
    return true;
}

enum plumb_code closing_join(struct plumb_comparison *out, struct closing_parts *parts,
                             struct plumb_error *err)
{
    struct buf *all[] = {&parts->advice, &parts->words,   &parts->fault,
                         &parts->counts, &parts->details, &parts->rule};
    struct buf closing = {0}, counts = {0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        buf_append(&closing, all[i]->data, all[i]->size);
        closing.failed = closing.failed || all[i]->failed;
    }
    buf_append(&counts, parts->words.data, parts->words.size);
    buf_text(&counts, parts->words.size ? "\n" : "");
    buf_append(&counts, parts->counts.data, parts->counts.size);
    buf_append(&counts, parts->rule.data, parts->rule.size);
    buf_text(&parts->advice, "");
    bool failed = closing.failed || counts.failed || parts->advice.failed;
    if (failed) {
        buf_free(&closing);
        buf_free(&counts);
    } else {
        out->closing = closing.data;
        out->advice = parts->advice.data;
        out->counts = counts.data;
        parts->advice = (struct buf){0};
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_free(all[i]);
    return failed ? plumb_no_memory(err) : PLUMB_OK;
}
