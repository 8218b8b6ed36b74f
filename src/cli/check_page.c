/* The page of acc_check: its answer agrees with the exit code, its counts with the closing line. */
#include "cli/check_page.h"

#include "base/shell.h"

#include <inttypes.h>
#include <string.h>

static uint64_t checked_apis(const struct plumb_precheck_summary *s)
{
    return s->apis[PLUMB_PRECHECK_PASS] + s->apis[PLUMB_PRECHECK_WARNING] +
           s->apis[PLUMB_PRECHECK_ERROR];
}

static uint64_t judged_apis(const struct plumb_precheck_summary *s)
{
    uint64_t judged = 0;
    for (int word = 0; word < PLUMB_WORDS; word++)
        judged += word == PLUMB_WORD_NOT_JUDGED ? 0 : s->words[word];
    return judged;
}

static void put_share(struct buf *out, uint64_t some, uint64_t all, const char *what,
                      const char *one, const char *many)
{
    if (some)
        buf_printf(out, "%" PRIu64 " of %" PRIu64 " %s%s %s", some, all, what, all == 1 ? "" : "s",
                   some == 1 ? one : many);
    else
        buf_printf(out, "None of %" PRIu64 " %s%s %s", all, what, all == 1 ? "" : "s", one);
}

/* By the rules. False: nothing was looked at. */
static bool put_rules(struct buf *out, const struct plumb_precheck_summary *s)
{
    const uint64_t all = checked_apis(s), skipped = s->apis[PLUMB_PRECHECK_SKIP];
    if (!all)
        return false;
    put_share(out, s->apis[PLUMB_PRECHECK_ERROR], all, skipped ? "checked API" : "API", "fails",
              "fail");
    if (s->apis[PLUMB_PRECHECK_WARNING])
        buf_printf(out, ", %" PRIu64 " with a warning", s->apis[PLUMB_PRECHECK_WARNING]);
    buf_text(out, ".");
    if (skipped)
        buf_printf(out, " %" PRIu64 " %s skipped.", skipped, skipped == 1 ? "was" : "were");
    return true;
}

static bool put_opinions(struct buf *out, const struct plumb_precheck_summary *s)
{
    const uint64_t all = judged_apis(s);
    if (!all)
        return false;
    put_share(out, s->words[PLUMB_WORD_FAULT], all, "judged API", "is wrong by itself",
              "are wrong by themselves");
    if (s->words[PLUMB_WORD_CHEAPER])
        buf_printf(out, ", %" PRIu64 " with cheaper arithmetic", s->words[PLUMB_WORD_CHEAPER]);
    buf_text(out, ".");
    return true;
}

static void put_sentence(struct buf *out, const struct check_page *page, bool *seen)
{
    *seen = page->verdict != PLUMB_BY_EXPECTED && put_rules(out, page->summary);
    if (page->verdict != PLUMB_BY_RULES) {
        struct buf own = {0};
        if (put_opinions(&own, page->summary)) {
            buf_printf(out, "%s%s", out->size ? " " : "", own.data ? own.data : "");
            *seen = true;
        }
        buf_free(&own);
    }
    if (!*seen)
        buf_text(out, "No API could be checked.");
    if (page->baseline)
        buf_printf(out, " %" PRIu64 " deviation%s new or worse than the baseline has.",
                   page->changed, page->changed == 1 ? " is" : "s are");
}

static void tell_counts(struct plumb_report *report, const struct check_page *page)
{
    static const struct {
        const char *word;
        enum plumb_mood mood;
    } words[PLUMB_PRECHECK_STATUSES] = {[PLUMB_PRECHECK_PASS] = {"pass", PLUMB_MOOD_GOOD},
                                        [PLUMB_PRECHECK_WARNING] = {"warning", PLUMB_MOOD_DOUBT},
                                        [PLUMB_PRECHECK_ERROR] = {"error", PLUMB_MOOD_BAD},
                                        [PLUMB_PRECHECK_SKIP] = {"skipped", PLUMB_MOOD_UNSEEN}};
    const struct plumb_precheck_summary *s = page->summary;
    for (int k = 0; k < PLUMB_PRECHECK_STATUSES; k++)
        if (s->apis[k])
            plumb_report_count(report, words[k].word, s->apis[k], words[k].mood);
    for (int word = 0; word < PLUMB_WORDS && page->verdict != PLUMB_BY_RULES; word++) {
        char text[64];
        snprintf(text, sizeof text, "second opinion: %s", plumb_word_text((enum plumb_word)word));
        if (s->words[word])
            plumb_report_count(report, text, s->words[word], page_mood((enum plumb_word)word));
    }
}

static void tell_note(struct plumb_report *report, uint64_t count, const char *text)
{
    char line[160];
    snprintf(line, sizeof line, "%" PRIu64 " %s", count, text);
    if (count)
        plumb_report_note(report, line);
}

/* The closing line, without what the counts say. */
static void tell_left_out(struct plumb_report *report, const struct plumb_precheck_summary *s)
{
    tell_note(report, s->no_backward, "ran forward; their backward could not be checked");
    tell_note(report, s->resumed, "were finished by an earlier run, and are in the table");
    tell_note(report, s->repeated, "repeat others and were left out");
}

/* As the closing lines have them. */
static void put_counts(struct buf *out, const struct check_page *page)
{
    const struct plumb_precheck_summary *s = page->summary;
    const uint64_t skipped = s->apis[PLUMB_PRECHECK_SKIP], all = checked_apis(s) + skipped;
    buf_printf(out,
               "%" PRIu64 " API%s: %" PRIu64 " pass, %" PRIu64 " warning, %" PRIu64
               " error, %" PRIu64 " skipped",
               all, all == 1 ? "" : "s", s->apis[PLUMB_PRECHECK_PASS],
               s->apis[PLUMB_PRECHECK_WARNING], s->apis[PLUMB_PRECHECK_ERROR], skipped);
    const char *between = "\nsecond opinion: ";
    for (int word = 0; word < PLUMB_WORDS && page->verdict != PLUMB_BY_RULES; word++)
        if (s->words[word] || word == PLUMB_WORD_FAULT) {
            buf_printf(out, "%s%" PRIu64 " %s", between, s->words[word],
                       plumb_word_text((enum plumb_word)word));
            between = ", ";
        }
}

/* A recorded call is taken out of its dump; what a rule says of a device is held against what right
 * arithmetic shows; and what is wrong by that is kept, to be looked at. */
static void tell_next(struct plumb_report *report, const struct check_page *page,
                      const struct page_found *found)
{
    struct buf command = {0};
    if (!page->failed || !*found->where)
        return;
    if (page->recorded)
        shell_capsule(&command, page->dump, found->where, strlen(found->where));
    else if (page->verdict == PLUMB_BY_RULES)
        page_command(&command, " --verdict both");
    else if (!*page->summary->error_data)
        page_command(&command, " -save_error_data");
    if (command.data && !command.failed)
        plumb_report_next(report, command.data);
    buf_free(&command);
}

enum plumb_code check_page_tell(struct plumb_report *report, const struct check_page *page,
                                struct plumb_error *err)
{
    struct page_found apis, outputs;
    struct buf sentence = {0}, counts = {0};
    bool seen;
    enum plumb_code code =
        page_file(report, "APIs", page->summary->result, page->verdict, &apis, err);
    if (!code)
        code = page_file(report, "outputs", page->summary->details, page->verdict, &outputs, err);
    if (code)
        return code;
    put_sentence(&sentence, page, &seen);
    put_counts(&counts, page);
    page_answer_counts(report, page->failed, seen, sentence.data ? sentence.data : "", &apis,
                       counts.data ? counts.data : "");
    tell_next(report, page, &apis);
    buf_free(&sentence);
    buf_free(&counts);
    tell_counts(report, page);
    tell_left_out(report, page->summary);
    page_unseen(report, "skipped or not judged", &apis);
    plumb_report_fact(report, "result", page->summary->result);
    plumb_report_fact(report, "details", page->summary->details);
    return PLUMB_OK;
}
