/* The first difference. */
#define _GNU_SOURCE
#include "task/ranks/diff.h"

#include "ranks/roles.h"

#include <stdlib.h>
#include <string.h>

struct analysis {
    struct plumb_analysis *out;
    const struct plumb_analyze_options *options;
    const struct ranks_rules *rules;
    struct arena arena;
    struct plumb_general_place *places; /* those that could be compared */
    struct graph_rank *ranks;
    size_t count;
    struct buf notes, written;
    struct plumb_error *err;
};

/* As for NaN and infinity; and what is put into a tensor is not what was computed. */
static bool is_ignored(const char *name)
{
    return strstr(name, "Torch.empty") || strstr(name, "Torch.fill") ||
           strstr(name, "Tensor.__setitem__");
}

static enum plumb_code describe(struct analysis *a, struct graph_rank *rank,
                                const struct diff *diff)
{
    struct roles roles = {.arena = &a->arena, .rules = a->rules};
    struct diff_api api = {0};
    enum plumb_code code = PLUMB_OK;
    char words[256];
    rank->nodes = arena_array(&a->arena, diff->general.target.api_count, sizeof *rank->nodes);
    if (!rank->nodes)
        return PLUMB_E_NOMEM;
    while (!code && rank->count < diff->general.target.api_count && diff_next(diff, &api)) {
        struct graph_node *node = &rank->nodes[rank->count];
        size_t from = 0;
        code = roles_describe(&roles, node, &diff->general.target, api.api, rank->number);
        if (code)
            break;
        node->ignored = is_ignored(api.api->name);
        node->bad = diff_find(diff, &api, &from, words, sizeof words);
        node->bad_input = !a->rules->numbers_only && diff_in_input(diff, &api);
        node->tainted = node->bad || node->bad_input;
        node->name = arena_copy(&a->arena, api.api->name, strlen(api.api->name));
        code = node->name ? PLUMB_OK : PLUMB_E_NOMEM;
        rank->count++;
    }
    roles_free(&roles);
    return code;
}

static size_t count_partners(const struct general *general)
{
    size_t partners = 0;
    for (size_t i = 0; i < general->count; i++)
        partners += general->pairs[i].golden != GENERAL_NONE;
    return partners;
}

static enum plumb_code compare_rank(struct analysis *a, const struct plumb_general_place *place)
{
    struct diff diff;
    char *path = NULL;
    enum plumb_code code = diff_open(&diff, place, a->options, a->rules, a->err);
    if (code)
        return code;
    struct graph_rank *rank = &a->ranks[a->count];
    rank->number = analyze_rank(place->rank);
    analyze_note_warnings(&a->notes, place->rank, &diff.general.target);
    analyze_note_warnings(&a->notes, place->rank, &diff.general.golden);
    size_t partners = count_partners(&diff.general);
    if (!partners)
        analyze_note(&a->notes, place->rank, "no row of the target has a partner");
    a->out->incomplete += !partners || diff.general.target.cut || diff.general.golden.cut;
    code = describe(a, rank, &diff);
    if (code)
        plumb_fail(a->err, code, "out of memory");
    if (!code && a->options->folder)
        code = diff_write(&diff, a->options->folder, place->rank, &path, a->err);
    if (path)
        buf_printf(&a->written, "%s\n", path);
    free(path);
    a->out->nodes += rank->count;
    a->places[a->count++] = *place;
    diff_close(&diff);
    return code;
}

static enum plumb_code compare_ranks(struct analysis *a, const struct plumb_general_place *places,
                                     size_t count)
{
    char text[1024] = "";
    a->places = arena_array(&a->arena, count, sizeof *a->places);
    a->ranks = arena_array(&a->arena, count, sizeof *a->ranks);
    if (!a->places || !a->ranks)
        return plumb_no_memory(a->err);
    for (size_t i = 0; i < count; i++) {
        analyze_progress(a->options, i, count);
        size_t before = a->count;
        struct plumb_error trouble = {0}, *outer = a->err;
        a->err = &trouble;
        enum plumb_code code = compare_rank(a, &places[i]);
        a->err = outer;
        if (!code)
            continue;
        /* One rank that cannot be read is no reason to keep silent about the others. */
        if (code == PLUMB_E_NOMEM || a->count > before || count == 1) {
            if (outer)
                *outer = trouble;
            return code;
        }
        a->out->incomplete++;
        analyze_note(&a->notes, places[i].rank, "left out: %s",
                     plumb_error_text(&trouble, text, sizeof text));
    }
    return a->count ? PLUMB_OK
                    : plumb_fail(a->err, PLUMB_E_FORMAT, "no rank can be compared: %.300s", text);
}

static enum plumb_code add_rows(struct analysis *a, const struct diff *diff,
                                const struct diff_api *api, int64_t number)
{
    struct plumb_table *table = a->out->table;
    char words[256], label[32];
    size_t from = 0, length = strlen(api->api->name);
    snprintf(label, sizeof label, "%lld", (long long)number);
    while (diff_find(diff, api, &from, words, sizeof words)) {
        const struct dump_row *row =
            &diff->general.target.rows[diff->general.pairs[from - 1].target];
        const char *output = row->path_name + length;
        if (!plumb_table_add_row(table, PLUMB_FAILED) || !plumb_table_text(table, 0, label) ||
            !plumb_table_text(table, 1, api->api->name) ||
            !plumb_table_text(table, 2, output + (*output == '.')) ||
            !plumb_table_text(table, 3, words))
            return plumb_no_memory(a->err);
    }
    return PLUMB_OK;
}

/* One rank's part of the report. */
static enum plumb_code put_rank(struct analysis *a, struct pretty *out,
                                const struct graph_result *result, size_t rank)
{
    struct diff diff;
    struct diff_api api = {0};
    char key[32];
    size_t number = 0;
    enum plumb_code code = diff_open(&diff, &a->places[rank], a->options, a->rules, a->err);
    if (code)
        return code;
    snprintf(key, sizeof key, "rank_%lld", (long long)a->ranks[rank].number);
    pretty_key(out, key);
    pretty_open(out, '[');
    for (; !code && number < a->ranks[rank].count && diff_next(&diff, &api); number++) {
        bool wanted = false;
        for (size_t i = 0; i < result->count && !wanted; i++)
            wanted = result->found[i] == &a->ranks[rank].nodes[number];
        if (!wanted)
            continue;
        diff_put_node(out, &diff, &api);
        code = add_rows(a, &diff, &api, a->ranks[rank].number);
    }
    pretty_close(out, ']');
    diff_close(&diff);
    return code;
}

static enum plumb_code write_report(struct analysis *a, const struct graph_result *result)
{
    struct pretty out = {.indent = 1};
    enum plumb_code code = PLUMB_OK;
    pretty_open(&out, '{');
    for (size_t r = 0; !code && r < a->count; r++) {
        bool wanted = false;
        for (size_t i = 0; i < result->count && !wanted; i++)
            wanted = result->found[i]->rank == r;
        if (wanted)
            code = put_rank(a, &out, result, r);
    }
    pretty_close(&out, '}');
    if (!code && out.text.failed)
        code = plumb_no_memory(a->err);
    if (code)
        buf_free(&out.text);
    a->out->report = out.text.data;
    return code;
}

/* Ranks that only one side has are left out, with a note. */
static enum plumb_code pair_by_name(struct analysis *a, const char *target, const char *golden,
                                    struct plumb_general_place **places, size_t *count)
{
    struct dump_places left = {0}, right = {0};
    enum plumb_code code = dump_find(&left, target, a->err);
    if (!code)
        code = dump_find(&right, golden, a->err);
    *count = 0;
    *places = code ? NULL : arena_array(&a->arena, left.count, sizeof **places);
    if (!code && !*places)
        code = plumb_no_memory(a->err);
    for (size_t i = 0; !code && i < left.count; i++) {
        const struct dump_place *mine = &left.places[i], *theirs = NULL;
        for (size_t k = 0; k < right.count && !theirs; k++)
            if (strcmp(right.places[k].rank, mine->rank) == 0)
                theirs = &right.places[k];
        if (!theirs) {
            analyze_note(&a->notes, mine->rank, "left out: the golden side has no such rank");
            a->out->incomplete++;
            continue;
        }
        struct plumb_general_place *place = &(*places)[(*count)++];
        place->target = arena_copy(&a->arena, mine->json, strlen(mine->json));
        place->golden = arena_copy(&a->arena, theirs->json, strlen(theirs->json));
        place->rank = arena_copy(&a->arena, mine->rank, strlen(mine->rank));
        if (!place->target || !place->golden || !place->rank)
            code = plumb_no_memory(a->err);
    }
    if (!code && !*count)
        code = plumb_fail(a->err, PLUMB_E_ARG, "the two sides have no rank in common");
    dump_places_free(&left);
    dump_places_free(&right);
    return code;
}

static enum plumb_code analyze(struct analysis *a, const char *target, const char *golden)
{
    struct plumb_general_places places = {0};
    struct plumb_general_place *named = NULL;
    struct graph_result result;
    size_t count = 0;
    enum plumb_code code = plumb_general_find(&places, target, golden, a->err);
    if (code == PLUMB_E_ARG && !a->rules->same_ranks)
        code = pair_by_name(a, target, golden, &named, &count);
    if (!code)
        code = compare_ranks(a, named ? named : places.places, named ? count : places.count);
    if (!code) {
        code = graph_search(&result, a->ranks, a->count, a->rules, &a->arena);
        if (code)
            plumb_fail(a->err, code, "out of memory");
    }
    if (!code) {
        a->out->phase = (enum plumb_phase)result.phase;
        a->out->found = result.count;
        a->out->ranks = a->count;
    }
    if (!code && result.count)
        code = write_report(a, &result);
    plumb_general_places_free(&places);
    return code;
}

static char *take(struct buf *text)
{
    if (text->failed) /* lines for people are no reason to lose the result */
        buf_free(text);
    return text->data;
}

enum plumb_code plumb_diff_analyze(struct plumb_analysis *out, const char *target_path,
                                   const char *golden_path,
                                   const struct plumb_analyze_options *options,
                                   struct plumb_error *err)
{
    static const struct plumb_column columns[] = {
        {.title = "Rank"},
        {.title = "Node", .left = true, .elastic = true},
        {.title = "Output", .left = true},
        {.title = "Difference", .left = true},
    };
    static const struct plumb_analyze_options usual = {0};
    static const struct ranks_rules own = {.all_ties = true};
    *out = (struct plumb_analysis){0};
    struct analysis a = {.out = out, .options = options ? options : &usual, .err = err};
    const struct plumb_profile *profile = a.options->rules;
    a.rules = profile && profile->ranks ? &profile->ranks->differences : &own;
    out->table = plumb_table_new(columns, sizeof columns / sizeof columns[0]);
    enum plumb_code code =
        out->table ? analyze(&a, target_path, golden_path) : plumb_no_memory(err);
    out->notes = take(&a.notes);
    out->written = take(&a.written);
    if (code)
        plumb_analysis_free(out);
    arena_free(&a.arena);
    return code;
}
