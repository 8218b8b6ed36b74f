/* The answer as a report: all calls in their order, with what is to be said of each. */
#include "task/blame/kept.h"

#include "plumb/report.h"
#include "run/module.h"

#include "plumb/junit.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum plumb_mood mood_of(const struct plumb_suspect *is)
{
    return is->word == PLUMB_WORD_FAULT        ? PLUMB_MOOD_BAD
           : is->word == PLUMB_WORD_CHEAPER    ? PLUMB_MOOD_DOUBT
           : is->word == PLUMB_WORD_NOT_JUDGED ? PLUMB_MOOD_UNSEEN
                                               : PLUMB_MOOD_GOOD;
}

/* ---- The table ------------------------------------------------------------------------------- */

enum column {
    CALL,
    RESULT,
    MODULE,
    STEP,
    RANK,
    VERDICT,
    WORST,
    LIMIT,
    APART_IN,
    APART,
    DIFFERING,
    PLACE,
    GOT,
    EXPECTED,
    PATTERN,
    ARITHMETIC,
    WHY,
    SOURCE,
    COLUMNS
};

static const struct plumb_column columns[COLUMNS] = {
    [CALL] = {"Call", PLUMB_STYLE_TEXT, true, true},
    [RESULT] = {"Result", PLUMB_STYLE_TEXT, true, false},
    [MODULE] = {"Module", PLUMB_STYLE_TEXT, true, true},
    [STEP] = {"Step", PLUMB_STYLE_NUMBER, false, false},
    [RANK] = {"Rank", PLUMB_STYLE_NUMBER, false, false},
    [VERDICT] = {"Verdict", PLUMB_STYLE_TEXT, true, false},
    [WORST] = {"Worst", PLUMB_STYLE_DIGITS, false, false},
    [LIMIT] = {"Limit", PLUMB_STYLE_DIGITS, false, false},
    [APART_IN] = {"Inputs apart", PLUMB_STYLE_DIGITS, false, false},
    [APART] = {"Outputs apart", PLUMB_STYLE_DIGITS, false, false},
    [DIFFERING] = {"Differing", PLUMB_STYLE_DIGITS, false, false},
    [PLACE] = {"At", PLUMB_STYLE_TEXT, true, false},
    [GOT] = {"Got", PLUMB_STYLE_DIGITS, false, false},
    [EXPECTED] = {"Expected", PLUMB_STYLE_DIGITS, false, false},
    [PATTERN] = {"Pattern", PLUMB_STYLE_TEXT, true, true},
    [ARITHMETIC] = {"Arithmetic", PLUMB_STYLE_TEXT, true, true},
    [WHY] = {"Why", PLUMB_STYLE_TEXT, true, true},
    [SOURCE] = {"Source", PLUMB_STYLE_TEXT, true, true},
};

static bool put_text(struct plumb_table *table, size_t column, const char *text)
{
    return !text || !*text || plumb_table_text(table, column, text);
}

static void put_number(struct plumb_table *table, size_t column, double value)
{
    if (!isnan(value))
        plumb_table_real(table, column, value);
}

static bool add_row(struct plumb_table *table, const struct plumb_suspect *is)
{
    const bool judged = is->word != PLUMB_WORD_NOT_JUDGED;
    if (!plumb_table_add_row(table, is->word == PLUMB_WORD_FAULT     ? PLUMB_FAILED
                                    : is->word == PLUMB_WORD_CHEAPER ? PLUMB_SUSPICIOUS
                                                                     : PLUMB_NORMAL))
        return false;
    if (is->step >= 0)
        plumb_table_int(table, STEP, is->step);
    if (is->rank >= 0)
        plumb_table_int(table, RANK, is->rank);
    if (judged)
        plumb_table_real(table, WORST, is->worst);
    if (judged && is->limit > 0)
        plumb_table_real(table, LIMIT, is->limit);
    if (judged && !is->by_jump) {
        plumb_table_real(table, DIFFERING, is->differing);
        plumb_table_real(table, GOT, is->got);
        plumb_table_real(table, EXPECTED, is->expected);
    }
    put_number(table, APART_IN, is->in);
    put_number(table, APART, is->out);
    return plumb_table_text(table, CALL, is->call) && put_text(table, RESULT, is->result) &&
           put_text(table, MODULE, is->parent) &&
           plumb_table_text(table, VERDICT, plumb_word_text(is->word)) &&
           put_text(table, PLACE, is->place) && put_text(table, PATTERN, is->pattern) &&
           put_text(table, ARITHMETIC, is->arithmetic) && put_text(table, WHY, is->why) &&
           put_text(table, SOURCE, source_line(is->stack));
}

struct plumb_table *plumb_blame_table(const struct plumb_blame *blame)
{
    const struct sites *sites = &((const struct kept *)blame->memory)->sites;
    struct plumb_table *table = plumb_table_new(columns, COLUMNS);
    for (size_t k = 0; table && k < sites->count; k++)
        if (!add_row(table, &sites->list[k].is)) {
            plumb_table_free(table);
            table = NULL;
        }
    return table;
}

const char *odd_text(const struct plumb_odd *odd)
{
    return odd->rank < 0 ? "ranks differ" : "odd rank";
}

/* A row for a rank that is not as the others. */
static bool add_odd_row(struct plumb_table *table, const struct plumb_odd *odd)
{
    if (!plumb_table_add_row(table, PLUMB_FAILED))
        return false;
    if (odd->step >= 0)
        plumb_table_int(table, STEP, odd->step);
    if (odd->rank >= 0)
        plumb_table_int(table, RANK, odd->rank);
    put_number(table, APART, odd->apart);
    return plumb_table_text(table, CALL, odd->name) &&
           plumb_table_text(table, RESULT, odd_text(odd)) &&
           plumb_table_text(table, VERDICT, odd_text(odd)) && put_text(table, WHY, odd->why);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static void put_sentence(struct buf *out, const struct plumb_blame *blame)
{
    const uint64_t judged = blame->calls - blame->words[PLUMB_WORD_NOT_JUDGED];
    if (!judged)
        buf_text(out, "None of the calls could be judged.");
    else if (blame->n_faults && judged == 1)
        buf_text(out, "The only judged call is wrong.");
    else if (blame->n_faults)
        buf_printf(out, "%zu of %" PRIu64 " judged calls %s wrong.", blame->n_faults, judged,
                   blame->n_faults == 1 ? "is" : "are");
    else
        buf_printf(out, "None of the %" PRIu64 " judged calls is wrong.", judged);
    if (judged && judged < blame->calls)
        buf_printf(out, " %" PRIu64 " could not be judged.", blame->calls - judged);
}

static int64_t row_of(const struct sites *sites, const struct plumb_suspect *is)
{
    for (size_t k = 0; k < sites->count; k++)
        if (strcmp(sites->list[k].is.call, is->call) == 0 && sites->list[k].is.step == is->step &&
            sites->list[k].is.rank == is->rank)
            return (int64_t)k;
    return -1;
}

/* What a person should look at first: of several ranks what came first, else the worst. */
static const struct plumb_suspect *choose(const struct plumb_blame *blame)
{
    for (size_t k = 0; k < blame->n_faults && blame->n_first; k++)
        if (strcmp(blame->faults[k].call, blame->first->call) == 0 &&
            blame->faults[k].step == blame->first->step &&
            blame->faults[k].rank == blame->first->rank)
            return &blame->faults[k];
    return blame->n_faults       ? &blame->faults[0]
           : blame->n_odd        ? NULL
           : blame->n_suspicious ? &blame->suspicious[0]
                                 : NULL;
}

/* Of several ranks: the lines that the text has, too. */
static void tell_ranks(struct plumb_report *report, const struct plumb_blame *blame)
{
    struct buf text = {0};
    across_put_text(&text, blame, UINT_MAX);
    for (char *line = text.data; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        plumb_report_note(report, line);
        line = end ? end + 1 : NULL;
    }
    buf_free(&text);
}

static void tell_answer(struct plumb_report *report, const struct plumb_blame *blame,
                        const struct plumb_blame_options *options)
{
    const struct sites *sites = &((const struct kept *)blame->memory)->sites;
    const struct plumb_suspect *first = choose(blame);
    const struct plumb_odd *odd = blame->n_faults ? NULL : blame->n_odd ? &blame->odd[0] : NULL;
    const bool judged = blame->calls > blame->words[PLUMB_WORD_NOT_JUDGED];
    struct buf sentence = {0}, where = {0}, command = {0};
    put_sentence(&sentence, blame);
    if (odd && odd->rank >= 0)
        buf_printf(&sentence, " Rank %" PRId64 " is not as the others.", odd->rank);
    else if (odd)
        buf_text(&sentence, " Ranks that must agree do not.");
    if (odd)
        buf_text(&where, odd->name);
    if (first) {
        buf_text(&where, first->call);
        text_place(&where, first);
        if (!first->by_jump && !first->module && blame->calls > 2) {
            replay_put(&command, options->target, first);
            if (command.data)
                plumb_report_next(report, command.data);
        }
    }
    plumb_report_answer(
        report, &(struct plumb_report_answer){.mood = !judged                  ? PLUMB_MOOD_UNSEEN
                                                      : blame->n_faults || odd ? PLUMB_MOOD_BAD
                                                      : first                  ? PLUMB_MOOD_DOUBT
                                                                               : PLUMB_MOOD_GOOD,
                                              .sentence = sentence.data ? sentence.data : "",
                                              .where = where.data ? where.data : "",
                                              .row = first ? row_of(sites, first) : -1,
                                              .sure = first ? first->why
                                                      : odd ? odd->why
                                                            : ""});
    buf_free(&sentence);
    buf_free(&where);
    buf_free(&command);
}

static void tell_counts(struct plumb_report *report, const struct plumb_blame *blame)
{
    for (int word = 0; word < PLUMB_WORDS; word++)
        if (blame->words[word])
            plumb_report_count(report, plumb_word_text((enum plumb_word)word), blame->words[word],
                               mood_of(&(struct plumb_suspect){.word = (enum plumb_word)word}));
    for (size_t k = 0; k < blame->n_reasons; k++) {
        struct buf line = {0};
        buf_printf(&line, "not judged: %" PRIu64 " for %s", blame->reasons[k].count,
                   blame->reasons[k].what);
        if (line.data)
            plumb_report_note(report, line.data);
        buf_free(&line);
    }
}

/* ---- The calls ------------------------------------------------------------------------------- */

static bool is_odd(const struct plumb_blame *blame, const struct plumb_suspect *is)
{
    const size_t length = strlen(is->call);
    for (size_t k = 0; k < blame->n_odd; k++)
        if (blame->odd[k].rank == is->rank && blame->odd[k].step == is->step &&
            strncmp(blame->odd[k].name, is->call, length) == 0 && blame->odd[k].name[length] == '.')
            return true;
    return false;
}

static struct plumb_report_call as_call(struct arena *arena, const struct site *site, size_t row)
{
    const struct plumb_suspect *is = &site->is;
    char text[1024];
    const char *call = is->parent ? is->parent : site->module ? is->call : "";
    const char *module = run_module(call, text, sizeof text);
    const bool judged = is->word != PLUMB_WORD_NOT_JUDGED && !is->by_jump;
    return (struct plumb_report_call){.name = is->call,
                                      .module = arena_copy(arena, module, strlen(module)),
                                      .back = strstr(is->call, ".backward") != NULL,
                                      .rank = (int32_t)is->rank,
                                      .step = (int32_t)is->step,
                                      .total = is->out,
                                      .local = judged ? is->worst : NAN,
                                      .limit = judged && is->limit > 0 ? is->limit : NAN,
                                      .band = site->floor > 0 ? site->floor : NAN,
                                      .mood = mood_of(is),
                                      .word = plumb_word_text(is->word),
                                      .row = (int32_t)row};
}

enum plumb_code plumb_blame_report(struct plumb_report *report, const struct plumb_blame *blame,
                                   const struct plumb_blame_options *options,
                                   struct plumb_error *err)
{
    struct kept *kept = blame->memory;
    const struct sites *sites = &kept->sites;
    struct plumb_table *table = plumb_blame_table(blame);
    struct plumb_report_call *calls = malloc((sites->count + 1) * sizeof *calls);
    unsigned char *moods = malloc(sites->count + 1);
    int32_t *pages = malloc((sites->count + 1) * sizeof *pages);
    bool fine = table && calls && moods && pages;
    for (size_t k = 0; fine && k < sites->count; k++) {
        calls[k] = as_call(&kept->arena, &sites->list[k], k);
        if (is_odd(blame, &sites->list[k].is)) {
            calls[k].mood = PLUMB_MOOD_BAD;
            calls[k].word = "odd rank";
        }
        moods[k] = (unsigned char)calls[k].mood;
    }
    fine = fine && !looks_pages(&kept->looks, sites, options, report, pages, err);
    if (fine) {
        tell_answer(report, blame, options);
        tell_counts(report, blame);
        if (blame->ranks)
            tell_ranks(report, blame);
        plumb_report_network(report, calls, sites->count);
        const enum plumb_grid_value value =
            options->golden ? PLUMB_GRID_DISTANCE : PLUMB_GRID_EXCESS;
        plumb_report_call_grid(report, calls, sites->count, PLUMB_GRID_RANKS, value);
        plumb_report_call_grid(report, calls, sites->count, PLUMB_GRID_STEPS, value);
        plumb_report_table(report, "calls", table, moods, pages);
    }
    plumb_table_free(table);
    free(calls);
    free(moods);
    free(pages);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}

static bool is_changed(enum plumb_standing standing)
{
    return standing == PLUMB_STANDING_NEW || standing == PLUMB_STANDING_WORSE;
}

char *plumb_blame_junit(const struct plumb_blame *blame, double seconds)
{
    const struct sites *sites = &((const struct kept *)blame->memory)->sites;
    struct plumb_table *table = plumb_blame_table(blame);
    unsigned char *moods = malloc(sites->count + blame->n_odd + 1);
    char *text = NULL;
    bool good = table && moods;
    for (size_t k = 0; good && k < sites->count; k++) {
        const struct plumb_suspect *is = &sites->list[k].is;
        moods[k] =
            (unsigned char)(blame->baseline && is_changed(is->standing)        ? PLUMB_MOOD_BAD
                            : blame->baseline && mood_of(is) == PLUMB_MOOD_BAD ? PLUMB_MOOD_GOOD
                                                                               : mood_of(is));
    }
    for (size_t k = 0; good && k < blame->n_odd; k++) {
        good = add_odd_row(table, &blame->odd[k]);
        moods[sites->count + k] = blame->baseline && !is_changed(blame->odd[k].standing)
                                      ? PLUMB_MOOD_GOOD
                                      : PLUMB_MOOD_BAD;
    }
    if (good)
        text = plumb_junit_text("plumb.blame", table, moods, seconds);
    plumb_table_free(table);
    free(moods);
    return text;
}
