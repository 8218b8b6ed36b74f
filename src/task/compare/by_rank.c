/* Two dumps of several ranks in one table, compared one rank after the other. */
#define _GNU_SOURCE
#include "task/compare/by_rank.h"

#include "task/compare/rank_names.h"

#include <stdlib.h>
#include <string.h>

/* What has to be the same in all ranks, so that a look at all of them would not change a row. */
struct kind {
    bool known;
    int64_t step;
    unsigned decided; /* plumb_matching.decided */
    char *level[2];
    struct plumb_table *columns; /* without rows */
};

struct session {
    const struct by_rank *what;
    struct plumb_comparison *sum;
    struct closing_facts facts;
    struct advice advice;
    struct kind kind;
    struct stock stock[2];
    const int64_t *ranks;
    size_t count;
    struct rank_names alone[2]; /* of records without a partner */
    bool *some[2];              /* by rank: it has such records */
    size_t at;                  /* the rank at hand */
    bool fits;
};

/* Options whose meaning goes beyond a rank. */
static bool suits(const struct plumb_compare_options *options)
{
    const struct plumb_pair_options *match = &options->match;
    return (match->mode == PLUMB_PAIR_AUTO || match->mode == PLUMB_PAIR_EXACT) &&
           !match->map_file && !match->data_map && !match->cell_map && !match->api_map &&
           !match->layer_map && !match->rank && options->columns != PLUMB_COLUMNS_XRAY &&
           options->verdict == PLUMB_BY_RULES && !options->found && !options->report;
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The records of a rank are of one step, and not one alone: that is paired whatever its name is. */
static bool is_regular(const struct session *session, struct plumb_run *const runs[2])
{
    if (plumb_run_count(runs[0]) < 2 || plumb_run_count(runs[1]) < 2)
        return false;
    if (!plumb_run_record(runs[0], 0)->recorded || !plumb_run_record(runs[1], 0)->recorded)
        return false;
    const int64_t step =
        session->kind.known ? session->kind.step : plumb_run_record(runs[0], 0)->step;
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < plumb_run_count(runs[side]); i++)
            if (plumb_run_record(runs[side], i)->step != step)
                return false;
    return true;
}

static bool same_columns(const struct plumb_table *a, const struct plumb_table *b)
{
    if (plumb_table_columns(a) != plumb_table_columns(b))
        return false;
    for (size_t i = 0; i < plumb_table_columns(a); i++)
        if (strcmp(plumb_table_column(a, i)->title, plumb_table_column(b, i)->title) != 0)
            return false;
    return true;
}

/* The first rank says what the others have to be like. False when out of memory. */
static bool learn(struct session *session, struct plumb_run *const runs[2],
                  const struct plumb_table *table)
{
    struct kind *kind = &session->kind;
    const size_t count = plumb_table_columns(table);
    struct plumb_column *columns = calloc(count + 1, sizeof *columns);
    for (size_t i = 0; columns && i < count; i++)
        columns[i] = *plumb_table_column(table, i);
    kind->columns = columns ? plumb_table_new(columns, count) : NULL;
    free(columns);
    kind->step = plumb_run_record(runs[0], 0)->step;
    bool fine = kind->columns;
    for (int side = 0; side < 2 && fine; side++) {
        const char *level = run_level(runs[side]);
        kind->level[side] = level ? strdup(level) : NULL;
        fine = !level || kind->level[side];
    }
    kind->known = true;
    return fine;
}

static bool is_like_the_first(const struct session *session, struct plumb_run *const runs[2],
                              const struct plumb_comparison *is, const struct closing_facts *facts,
                              unsigned decided)
{
    const struct kind *kind = &session->kind;
    return !is->mapping && facts->mode == session->facts.mode && decided == kind->decided &&
           !(decided & MATCH_SHIFTED) && same_columns(is->table, kind->columns) &&
           same_text(run_level(runs[0]), kind->level[0]) &&
           same_text(run_level(runs[1]), kind->level[1]);
}

static void add_stock(struct stock *sum, const struct stock *more)
{
    sum->tensors += more->tensors;
    sum->payloads += more->payloads;
    sum->statistics += more->statistics;
    sum->checksums += more->checksums;
}

static bool note_alone(void *context, int side, const struct plumb_record *record)
{
    struct session *session = context;
    session->some[side][session->at] = true;
    return rank_names_add(&session->alone[side], record);
}

static void take_in(struct session *session, struct plumb_run *const runs[2],
                    struct plumb_comparison *is, struct closing_facts *facts)
{
    for (int side = 0; side < 2; side++) {
        const struct stock stock = run_stock(runs[side]);
        add_stock(&session->stock[side], &stock);
        advice_add(&session->advice, side, runs[side]);
    }
    session->advice.matched += plumb_table_rows(is->table);
    closing_add(session->sum, &session->facts, is, facts);
}

/* The pairs of a rank. */
static enum plumb_code compare_rank(struct session *session, struct plumb_run *const runs[2],
                                    struct plumb_error *err)
{
    const struct by_rank *what = session->what;
    struct plumb_comparison is = {0};
    struct closing_facts facts = {0};
    struct part part = {.rows = PART_PAIRS, .alone = note_alone, .context = session};
    enum plumb_code code = compare_part(&is, &facts, runs[0], runs[1], what->options, &part, err);
    if (!code && !session->kind.known) {
        session->facts.mode = facts.mode;
        session->kind.decided = part.decided;
        if (!learn(session, runs, is.table))
            code = plumb_no_memory(err);
    }
    session->fits = !code && is_like_the_first(session, runs, &is, &facts, part.decided);
    if (session->fits) {
        take_in(session, runs, &is, &facts);
        code = what->rows(what->context, is.table, err);
    }
    plumb_comparison_free(&is);
    closing_facts_free(&facts);
    return code;
}

static enum plumb_code open_rank(struct plumb_run *runs[2], const struct session *session,
                                 struct plumb_error *err)
{
    const struct by_rank *what = session->what;
    const char *const paths[] = {what->target, what->golden};
    enum plumb_code code = PLUMB_OK;
    for (int side = 0; side < 2 && !code; side++)
        code = plumb_run_open_rank(&runs[side], paths[side], session->ranks[session->at], err);
    return code;
}

static enum plumb_code open_and_compare(struct session *session, struct plumb_error *err)
{
    const struct by_rank *what = session->what;
    struct plumb_run *runs[2] = {NULL, NULL};
    enum plumb_code code = open_rank(runs, session, err);
    session->fits = !code && is_regular(session, runs);
    if (session->fits)
        code = compare_rank(session, runs, err);
    for (int side = 0; side < 2; side++) {
        if (!code && session->fits)
            what->opened(what->context, runs[side], side);
        plumb_run_free(runs[side]);
    }
    return code;
}

static enum plumb_code compare_pairs(struct session *session, struct plumb_error *err)
{
    const struct by_rank *what = session->what;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < session->count && session->fits && !code; i++) {
        if (what->progress)
            what->progress(what->context, i, session->count);
        session->at = i;
        code = open_and_compare(session, err);
    }
    session->fits =
        !code && session->fits &&
        compare_choose_mode(session->stock[0], session->stock[1]) == session->facts.mode;
    return code;
}

/* ---- What has no partner: its rows follow those of all pairs --------------------------------- */

struct asking {
    struct session *session;
    struct rank_names *names; /* of the other side */
    int side;
};

static const struct near_record *find_nearest(void *context, const char *name)
{
    const struct asking *asking = context;
    const struct near_record *near = rank_names_nearest(asking->names, name);
    if (near && asking->side == 0)
        advice_near(&asking->session->advice, name, near->name);
    return near;
}

/* All names of a side, for whoever has no partner where all of them have. */
static enum plumb_code list_names(struct rank_names *names, const struct session *session, int side,
                                  struct plumb_error *err)
{
    const char *path = side ? session->what->golden : session->what->target;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < session->count && !code; i++) {
        struct plumb_run *run = NULL;
        code = plumb_run_open_rank(&run, path, session->ranks[i], err);
        for (size_t k = 0; !code && k < plumb_run_count(run); k++)
            if (!rank_names_add(names, plumb_run_record(run, k)))
                code = plumb_no_memory(err);
        plumb_run_free(run);
    }
    return code;
}

static enum plumb_code add_alone(struct session *session, struct asking *asking,
                                 struct plumb_error *err)
{
    const struct by_rank *what = session->what;
    struct plumb_run *runs[2] = {NULL, NULL};
    struct plumb_comparison is = {0};
    struct closing_facts facts = {0};
    struct part part = {.rows = asking->side ? PART_GOLDEN_ONLY : PART_TARGET_ONLY,
                        .nearest = find_nearest,
                        .context = asking};
    enum plumb_code code = open_rank(runs, session, err);
    if (!code)
        code = compare_part(&is, &facts, runs[0], runs[1], what->options, &part, err);
    session->fits = !code && same_columns(is.table, session->kind.columns);
    if (session->fits) {
        closing_add(session->sum, &session->facts, &is, &facts);
        code = what->rows(what->context, is.table, err);
    }
    plumb_comparison_free(&is);
    closing_facts_free(&facts);
    plumb_run_free(runs[1]);
    plumb_run_free(runs[0]);
    return code;
}

/* Of records of a side. */
static enum plumb_code compare_alone(struct session *session, int side, struct plumb_error *err)
{
    struct rank_names all = {0}, *names = &session->alone[!side];
    enum plumb_code code = PLUMB_OK;
    if (!session->alone[side].count)
        return PLUMB_OK;
    if (!names->count) {
        names = &all;
        code = list_names(names, session, !side, err);
    }
    if (!code && !near_ready(&names->near))
        code = plumb_no_memory(err);
    struct asking asking = {session, names, side};
    for (size_t i = 0; i < session->count && session->fits && !code; i++) {
        session->at = i;
        if (session->some[side][i])
            code = add_alone(session, &asking, err);
    }
    rank_names_free(&all);
    return code;
}

static bool same_ranks(const struct plumb_ranks *a, const struct plumb_ranks *b)
{
    return a->count == b->count && memcmp(a->list, b->list, a->count * sizeof *a->list) == 0;
}

static void end_session(struct session *session)
{
    closing_facts_free(&session->facts);
    advice_free(&session->advice);
    plumb_table_free(session->kind.columns);
    for (int side = 0; side < 2; side++) {
        rank_names_free(&session->alone[side]);
        free(session->some[side]);
        free(session->kind.level[side]);
    }
}

static enum plumb_code compare_all(struct session *session, struct plumb_error *err)
{
    for (int side = 0; side < 2; side++)
        if (!(session->some[side] = calloc(session->count, sizeof *session->some[side])))
            return plumb_no_memory(err);
    enum plumb_code code = compare_pairs(session, err);
    for (int side = 0; side < 2 && session->fits && !code; side++)
        code = compare_alone(session, side, err);
    if (!code && session->fits)
        code = closing_end(session->sum, &session->facts, &session->advice, err);
    return code;
}

enum plumb_code compare_by_rank(struct plumb_comparison *out, const struct by_rank *what,
                                bool *done, struct plumb_error *err)
{
    struct session session = {.what = what,
                              .sum = out,
                              .advice = {.dumps = true, .mode = what->options->match.mode},
                              .fits = true};
    struct plumb_ranks ranks[2] = {{0}};
    *done = false;
    *out = (struct plumb_comparison){.verdict = what->options->verdict};
    if (!suits(what->options))
        return PLUMB_OK;
    enum plumb_code code = plumb_run_ranks(&ranks[0], what->target, err);
    if (!code)
        code = plumb_run_ranks(&ranks[1], what->golden, err);
    session.ranks = ranks[0].list;
    session.count = ranks[0].count;
    session.fits = !code && session.count > 1 && same_ranks(&ranks[0], &ranks[1]);
    if (session.fits)
        code = compare_all(&session, err);
    *done = !code && session.fits;
    end_session(&session);
    free(ranks[0].list);
    free(ranks[1].list);
    return code;
}
