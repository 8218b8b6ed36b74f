/* Comparing graph dumps: two folders, by rank and graph. */
#define _GNU_SOURCE
#include "plumb/torchair.h"

#include "base/buf.h"
#include "pair/graph_groups.h"
#include "pair/graph_names.h"
#include "task/compare/graph_report.h"
#include "verdict/profiles.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct session {
    const struct plumb_torchair_options *options;
    const struct graph_profile *profile;
    struct plumb_torchair *out;
    struct compare_standards standards;
    struct arena arena; /* of both trees */
    struct tree trees[2];
    bool fx[2];  /* which sides are FX dumps; the target is only where the golden side is */
    bool ranked; /* the target has a folder for each rank */
};

/* One rank, or the only one there is. */
struct rank {
    int64_t number; /* -1: no ranks */
    const struct tree *trees[2];
    struct arena arena;
    struct graph_files graphs;
    struct air_dump dumps[2];
    uint64_t next_id;
};

bool plumb_torchair_recognise(const char *path)
{
    return graphs_recognise(path);
}

bool plumb_torchair_recognise_fx(const char *path)
{
    return graphs_recognise_fx(path);
}

/* Results. */

static struct plumb_torchair_part *add_part(struct plumb_torchair *out)
{
    struct plumb_torchair_part *parts = realloc(out->parts, (out->count + 1) * sizeof *out->parts);
    if (!parts)
        return NULL;
    out->parts = parts;
    parts[out->count] = (struct plumb_torchair_part){0};
    return &parts[out->count++];
}

static void put_note(struct buf *notes, const char *what, const char *path, const char *why)
{
    const char *slash = strrchr(path, '/');
    buf_printf(notes, "%s %s: %s\n", what, slash ? slash + 1 : path, why);
}

/* Measures rows and puts their table among the results. */
static enum plumb_code finish_part(struct session *session, struct rank *rank, int64_t graph,
                                   const struct air_rows *rows, const char *notes,
                                   struct plumb_error *err)
{
    struct measurement measurement = {.rows = rows->items,
                                      .count = rows->count,
                                      .options = session->options,
                                      .profile = session->profile,
                                      .standards = &session->standards};
    if (session->options->columns)
        measurement.columns = session->options->columns->graph_columns;
    enum plumb_code code = measure_prepare(&measurement, err);
    if (!code)
        code = measure_rows(&measurement, err);
    struct plumb_torchair_part *part = code ? NULL : add_part(session->out);
    if (!code && !part)
        code = plumb_no_memory(err);
    if (part) {
        struct report report = {
            .measurement = &measurement,
            .rank = rank->number,
            .roots = {session->trees[0].path, session->trees[1].path},
            .notes = notes,
        };
        part->rank = rank->number;
        part->graph = graph;
        code = report_make(&part->comparison, &part->alone, &report, err);
    }
    measure_free(&measurement);
    return code;
}

/* Pairing. */

static const char *token_name(struct rank *rank, int64_t id)
{
    return arena_printf(&rank->arena, "token %" PRId64, id);
}

static void add_lone_token(struct rank *rank, struct pairing *pairing, int64_t id, bool in_target)
{
    pair_lone(pairing, AIR_MISSING, token_name(rank, id), side_none(), side_none(),
              in_target ? "the golden run has no such token" : "the target run has no such token");
}

static enum plumb_code pair_group(struct session *session, struct rank *rank,
                                  const struct graph *graph, const struct air_group *target,
                                  const struct air_group *golden, struct air_rows *rows,
                                  struct plumb_error *err)
{
    struct pairing pairing = {
        .graph = graph, .rules = &session->profile->rules, .arena = &rank->arena, .rows = rows};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < target->token_count && !code; i++) {
        pairing.target = &target->tokens[i];
        pairing.golden = air_find_token(golden, pairing.target->id);
        if (pairing.golden)
            code = pair_token(&pairing, session->fx, err);
        else if (!pairing.rules->pairs_only)
            add_lone_token(rank, &pairing, pairing.target->id, true);
    }
    pairing.target = NULL;
    for (size_t i = 0; i < golden->token_count && !code && !pairing.rules->pairs_only; i++) {
        pairing.golden = &golden->tokens[i];
        if (!air_find_token(target, pairing.golden->id))
            add_lone_token(rank, &pairing, pairing.golden->id, false);
    }
    return pairing.failed && !code ? plumb_no_memory(err) : code;
}

/* One row for something that a whole side lacks. */
static void add_lone_row(struct session *session, struct rank *rank, struct air_rows *rows,
                         const char *name, const char *why)
{
    struct pairing pairing = {
        .rules = &session->profile->rules, .arena = &rank->arena, .rows = rows};
    pair_lone(&pairing, AIR_MISSING, name, side_none(), side_none(), why);
}

/* What was not understood of the text, or why there is none. */
static void note_text(struct session *session, struct rank *rank, const struct graph_file *file,
                      struct air_rows *rows, struct buf *notes)
{
    char text[100];
    if (file->problem)
        add_lone_row(session, rank, rows, "graph text", file->problem);
    else if (file->graph.cut && !session->profile->rules.pairs_only)
        add_lone_row(session, rank, rows, "graph text",
                     "it ends inside an operator: what was behind it is not compared");
    if (file->graph.odd_lines) {
        snprintf(text, sizeof text, "%zu line%s not understood and left out, the first is line %zu",
                 file->graph.odd_lines, file->graph.odd_lines == 1 ? "" : "s",
                 file->graph.first_odd);
        put_note(notes, "Graph text", file->path, text);
    }
}

static enum plumb_code compare_graph(struct session *session, struct rank *rank,
                                     const struct graph_set *set, bool several, const char *note,
                                     struct plumb_error *err)
{
    static const struct graph unknown;
    const struct air_group *const *groups = set->groups;
    struct air_rows rows = {.next_id = rank->next_id};
    struct buf notes = {0};
    enum plumb_code code = PLUMB_OK;
    buf_text(&notes, note);
    if (set->text)
        note_text(session, rank, set->text, &rows, &notes);
    if (!groups[0] || !groups[1])
        add_lone_row(session, rank, &rows, set->name,
                     groups[0]   ? "the golden run has no data of this graph"
                     : groups[1] ? "the target run has no data of this graph"
                                 : "neither run has data of this graph");
    else if (!set->text && session->fx[1] && !session->fx[0])
        add_lone_row(session, rank, &rows, set->name, "there is data of it, but no graph text");
    else
        code = pair_group(session, rank, set->text ? &set->text->graph : &unknown, groups[0],
                          groups[1], &rows, err);
    if (!code && notes.failed)
        code = plumb_no_memory(err);
    if (!code)
        code = finish_part(session, rank, several ? set->id : -1, &rows, notes.data, err);
    rank->next_id = rows.next_id;
    buf_free(&notes);
    return code;
}

static enum plumb_code read_dumps(struct session *session, struct rank *rank,
                                  struct plumb_error *err)
{
    const struct air_rules *rules = &session->profile->rules;
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = session->fx[i]
                   ? air_read_fx(&rank->dumps[i], rank->trees[i], rank->number >= 0, rules,
                                 &rank->arena, err)
                   : air_read_ge(&rank->dumps[i], rank->trees[i], rules, &rank->arena, err);
    return code;
}

static enum plumb_code compare_rank(struct session *session, struct rank *rank,
                                    struct plumb_error *err)
{
    struct graph_sets sets = {0};
    struct buf notes = {0};
    buf_text(&notes, "");
    graphs_find(&rank->graphs, &session->trees[0], rank->number);
    enum plumb_code code = graphs_read(&rank->graphs, &session->profile->rules, &rank->arena, err);
    if (!code)
        code = read_dumps(session, rank, err);
    if (!code)
        code = groups_match(&sets, &rank->graphs, rank->dumps, &session->profile->rules, &notes,
                            &rank->arena, err);
    for (size_t i = 0; i < sets.count && !code; i++)
        code =
            compare_graph(session, rank, &sets.items[i], sets.count > 1, i ? "" : notes.data, err);
    air_dump_free(&rank->dumps[0]);
    air_dump_free(&rank->dumps[1]);
    graphs_free(&rank->graphs);
    buf_free(&notes);
    arena_free(&rank->arena);
    return code;
}

/* Ranks. */

/* The folder of a rank: the last one whose name ends so. */
static const struct tree *find_rank(const struct tree *tree, int64_t number)
{
    const struct tree *found = NULL;
    for (size_t i = 0; i < tree->folder_count; i++)
        if (rank_of_folder(tree->folders[i].name) == number)
            found = &tree->folders[i];
    return found;
}

static size_t count_ranks(const struct tree *tree, int64_t *only)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->folder_count; i++) {
        int64_t rank = rank_of_folder(tree->folders[i].name);
        if (rank < 0)
            continue;
        count++;
        *only = rank;
    }
    return count;
}

static enum plumb_code lone_rank(struct session *session, int64_t number, bool in_target,
                                 struct plumb_error *err)
{
    struct rank rank = {.number = number};
    struct air_rows rows = {0};
    const char *name = arena_printf(&rank.arena, "rank %" PRId64, number);
    add_lone_row(session, &rank, &rows, name,
                 in_target ? "the golden run has no such rank" : "the target run has no such rank");
    enum plumb_code code =
        rows.count && name ? finish_part(session, &rank, -1, &rows, "", err) : plumb_no_memory(err);
    arena_free(&rank.arena);
    return code;
}

static int by_number(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* All ranks of both sides, each once, in order. */
static int64_t *list_ranks(const struct session *session, size_t *count)
{
    size_t most = session->trees[0].folder_count + session->trees[1].folder_count;
    int64_t *ranks = calloc(most + 1, sizeof *ranks);
    *count = 0;
    for (int side = 0; side < 2 && ranks; side++)
        for (size_t i = 0; i < session->trees[side].folder_count; i++) {
            int64_t rank = rank_of_folder(session->trees[side].folders[i].name);
            if (rank >= 0)
                ranks[(*count)++] = rank;
        }
    if (ranks && *count)
        qsort(ranks, *count, sizeof *ranks, by_number);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (!kept || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    *count = kept;
    return ranks;
}

static enum plumb_code compare_ranks(struct session *session, struct plumb_error *err)
{
    size_t count, common = 0;
    int64_t *ranks = list_ranks(session, &count);
    if (!ranks)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < count; i++)
        common +=
            find_rank(&session->trees[0], ranks[i]) && find_rank(&session->trees[1], ranks[i]);
    if (!code && !common)
        code = plumb_fail(err, PLUMB_E_ARG,
                          "no rank is in both folders; name the two rank folders themselves");
    for (size_t i = 0; i < count && !code; i++) {
        struct rank rank = {.number = ranks[i],
                            .trees = {find_rank(&session->trees[0], ranks[i]),
                                      find_rank(&session->trees[1], ranks[i])}};
        if (rank.trees[0] && rank.trees[1])
            code = compare_rank(session, &rank, err);
        else if (!session->profile->rules.pairs_only)
            code = lone_rank(session, ranks[i], rank.trees[0] != NULL, err);
    }
    free(ranks);
    return code;
}

static enum plumb_code compare_all(struct session *session, struct plumb_error *err)
{
    int64_t only[2] = {-1, -1};
    size_t ranks[2];
    for (int i = 0; i < 2; i++)
        ranks[i] = count_ranks(&session->trees[i], &only[i]);
    if (session->profile->rules.by_target ? ranks[0] > 0 : ranks[0] && ranks[1])
        return compare_ranks(session, err);
    struct rank rank = {.number = -1, .trees = {&session->trees[0], &session->trees[1]}};
    /* One side says which rank it is, the other does not: they are still the same thing. */
    for (int i = 0; i < 2 && !session->profile->rules.by_target; i++) {
        if (ranks[i] > 1)
            return plumb_fail(err, PLUMB_E_ARG,
                              "the %s run has %zu ranks and the %s run has none: name the folder "
                              "of one rank",
                              i ? "golden" : "target", ranks[i], i ? "target" : "golden");
        if (ranks[i])
            rank.trees[i] = find_rank(&session->trees[i], only[i]);
    }
    return compare_rank(session, &rank, err);
}

static enum plumb_code recognise_sides(struct session *session, const char *target,
                                       struct plumb_error *err)
{
    const struct tree *trees = session->trees;
    bool by_target = session->profile->rules.by_target, text = graphs_has_text(&trees[0]);
    session->fx[1] = by_target ? !graphs_has_text(&trees[1]) : air_has_fx(&trees[1], false);
    session->fx[0] = !by_target && !text && air_has_fx(&trees[0], false);
    if (session->fx[0] && !session->fx[1])
        return plumb_fail(err, PLUMB_E_ARG,
                          "%s is an FX dump, and the golden side is not: the two are swapped. The "
                          "GE dump is TARGET, which is judged, the FX dump GOLDEN",
                          target);
    if (text || session->fx[0] || !(session->fx[1] || by_target))
        return PLUMB_OK;
    plumb_fail(
        err, PLUMB_E_FORMAT,
        "there is no dynamo_original_graph_*.txt below it; without that text it is unknown which "
        "operator is which");
    plumb_error_in_file(err, target);
    return PLUMB_E_FORMAT;
}

enum plumb_code plumb_torchair_compare(struct plumb_torchair *out, const char *target,
                                       const char *golden,
                                       const struct plumb_torchair_options *options,
                                       struct plumb_error *err)
{
    static const struct graph_profile usual = {0};
    const struct plumb_profile *rules = options->rules;
    struct session session = {
        .options = options, .profile = rules && rules->graph ? rules->graph : &usual, .out = out};
    const char *paths[2] = {target, golden};
    *out = (struct plumb_torchair){0};
    enum plumb_code code = compare_load_standards(
        &session.standards, options->standard ? options->standard : "torchair", options->settings,
        options->settings_count, err);
    for (int i = 0; i < 2 && !code; i++)
        code = tree_read(&session.trees[i], paths[i], &session.arena, err);
    if (code)
        goto out;
    code = recognise_sides(&session, target, err);
    if (!code)
        code = compare_all(&session, err);
    if (!code && !out->count)
        code = plumb_fail(err, PLUMB_E_FORMAT, "there is no dump data to compare in %s and %s",
                          target, golden);
out:
    if (code)
        plumb_torchair_free(out);
    compare_free_standards(&session.standards);
    arena_free(&session.arena);
    return code;
}

void plumb_torchair_free(struct plumb_torchair *result)
{
    for (size_t i = 0; i < result->count; i++)
        plumb_comparison_free(&result->parts[i].comparison);
    free(result->parts);
    *result = (struct plumb_torchair){0};
}
