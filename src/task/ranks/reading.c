/* Reading the ranks of a step. */
#define _GNU_SOURCE
#include "task/ranks/reading.h"

#include "base/pack.h"
#include "ranks/roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char kind[] = "rank";

const struct ranks_rules *rank_rules(const struct plumb_profile *profile)
{
    static const struct ranks_rules own = {0};
    return profile && profile->ranks ? &profile->ranks->overflow : &own;
}

/* ---- One rank -------------------------------------------------------------------------------- */

static bool is_abnormal_value(const struct dump_value *value)
{
    if (value->kind == DUMP_NUMBER)
        return !isfinite(value->number);
    return value->kind == DUMP_WORD && value->text &&
           (!strcasecmp(value->text, "nan") || !strcasecmp(value->text, "inf") ||
            !strcasecmp(value->text, "-inf"));
}

bool rank_is_abnormal(const struct dump_row *row, const struct ranks_rules *rules)
{
    if (!row->tensor || (rules->direct_only && (row->depth != 1 || row->p2p_op || row->p2p_peer)))
        return false;
    return is_abnormal_value(&row->statistic[DUMP_MAX]) ||
           is_abnormal_value(&row->statistic[DUMP_MIN]);
}

static bool is_nan_value(const struct dump_value *value)
{
    return value->kind == DUMP_NUMBER
               ? isnan(value->number)
               : value->kind == DUMP_WORD && value->text && !strcasecmp(value->text, "nan");
}

bool rank_has_nan(const struct dump_row *row)
{
    return row->tensor && !row->uninitialised &&
           (is_nan_value(&row->statistic[DUMP_MAX]) || is_nan_value(&row->statistic[DUMP_MIN]));
}

bool rank_is_given(const struct dump_row *row)
{
    return row->section == DUMP_INPUT || row->section == DUMP_PARAMETERS ||
           row->section == DUMP_BUFFERS;
}

/* Gradients that were reduced are neither: they came from all ranks. */
static bool has_nan(const struct dump_tree *tree, const struct dump_api *api, bool given)
{
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        if ((given ? rank_is_given(row) : row->section == DUMP_OUTPUT) && rank_has_nan(row))
            return true;
    }
    return false;
}

static bool has_abnormal(const struct dump_tree *tree, const struct dump_api *api,
                         enum dump_section section, const struct ranks_rules *rules)
{
    for (size_t i = api->first; i < api->first + api->count; i++)
        if (tree->rows[i].section == section && rank_is_abnormal(&tree->rows[i], rules))
            return true;
    return false;
}

/* What these make is not theirs to answer for: memory as it was found, or a value asked for. */
static bool is_ignored(const char *name)
{
    return strstr(name, "Torch.empty") || strstr(name, "Torch.fill");
}

/* Why nothing can be seen in a dump, or NULL. */
static const char *blindness(const struct dump_tree *tree)
{
    size_t tensors = 0;
    for (size_t i = 0; i < tree->row_count; i++) {
        const struct dump_row *row = &tree->rows[i];
        if (row->tensor && (row->statistic[DUMP_MAX].kind != DUMP_ABSENT ||
                            row->statistic[DUMP_MIN].kind != DUMP_ABSENT))
            return NULL;
        tensors += row->tensor;
    }
    return !tree->api_count ? "the dump is empty"
           : !tensors       ? "the dump has no tensors, so nothing can be seen in it"
                            : "the dump has no Max and Min, so nothing can be seen in it";
}

static enum plumb_code describe(struct graph_rank *rank, const struct dump_tree *tree,
                                const struct ranks_rules *rules, struct arena *arena)
{
    struct roles roles = {.arena = arena, .rules = rules};
    enum plumb_code code = PLUMB_OK;
    rank->nodes = arena_array(arena, tree->api_count, sizeof *rank->nodes);
    if (!rank->nodes)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; !code && i < tree->api_count; i++) {
        const struct dump_api *api = &tree->apis[i];
        struct graph_node *node = &rank->nodes[i];
        code = roles_describe(&roles, node, tree, api, rank->number);
        if (code)
            break;
        bool input = has_abnormal(tree, api, DUMP_INPUT, rules);
        bool output = has_abnormal(tree, api, DUMP_OUTPUT, rules);
        node->ignored = is_ignored(api->name);
        node->bad = output && !input;
        node->bad_input = input;
        if (rules == rank_rules(NULL)) { /* a NaN that is made of an infinity is made, too */
            const bool in = has_nan(tree, api, true), out = has_nan(tree, api, false);
            node->bad =
                out ? !in : output && !input && !has_abnormal(tree, api, DUMP_PARAMETERS, rules);
            node->given = in || (output && node->ignored);
        }
        node->tainted = input || output;
        node->name = arena_copy(arena, api->name, strlen(api->name)); /* the tree goes */
        code = node->name ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    rank->count = tree->api_count;
    roles_free(&roles);
    return code;
}

static void read_rank(struct rank_reading *is, const struct dump_place *place,
                      const struct ranks_rules *rules, struct arena *arena)
{
    struct dump_tree tree;
    is->code = dump_open(&tree, place->json, &is->error);
    if (is->code)
        return;
    analyze_note_warnings(&is->notes, place->rank, &tree);
    const char *blind = blindness(&tree);
    if (blind)
        analyze_note(&is->notes, place->rank, "%s", blind);
    is->blind = blind;
    is->cut = tree.cut;
    is->rank.number = analyze_rank(place->rank);
    is->code = describe(&is->rank, &tree, rules, arena);
    dump_close(&tree);
    if (is->code || is->notes.failed)
        is->code = plumb_no_memory(&is->error);
}

/* ---- As bytes -------------------------------------------------------------------------------- */

static void pack_ranks(struct pack *pack, const int64_t **ranks, size_t *count, struct arena *arena)
{
    pack_size(pack, count);
    if (!pack->out && pack_check(pack, *count <= pack->left)) {
        int64_t *list = arena_array(arena, *count, sizeof *list);
        pack_check(pack, list);
        for (size_t i = 0; i < *count && list; i++)
            pack_i64(pack, &list[i]);
        *ranks = list;
    }
    for (size_t i = 0; pack->out && i < *count; i++) {
        int64_t rank = (*ranks)[i];
        pack_i64(pack, &rank);
    }
}

/* Most exchanges are in the group of the one before, and a group may have thousands of ranks. */
static void pack_group(struct pack *pack, struct graph_node *node, const struct graph_node *before,
                       struct arena *arena)
{
    bool same = before && before->group_count == node->group_count &&
                (before->group == node->group || !node->group_count ||
                 memcmp(before->group, node->group, node->group_count * sizeof *node->group) == 0);
    pack_bool(pack, &same);
    if (!same) {
        pack_ranks(pack, &node->group, &node->group_count, arena);
    } else if (!pack->out && pack_check(pack, before)) {
        node->group = before->group;
        node->group_count = before->group_count;
    }
}

/* before: the last node with a group, or NULL. */
static void pack_node(struct pack *pack, struct graph_node *node, const struct graph_node *before,
                      struct arena *arena)
{
    unsigned role = node->role;
    bool all = node->peer_count && node->peers == node->group;
    pack_text(pack, &node->name, arena);
    pack_bool(pack, &node->communication);
    pack_bool(pack, &node->ignored);
    pack_bool(pack, &node->bad);
    pack_bool(pack, &node->tainted);
    pack_bool(pack, &node->bad_input);
    pack_bool(pack, &node->given);
    pack_below(pack, &role, GRAPH_TARGET + 1);
    node->role = (enum graph_role)role;
    if (node->communication)
        pack_group(pack, node, before, arena);
    pack_bool(pack, &all);
    if (!all) {
        pack_ranks(pack, &node->peers, &node->peer_count, arena);
    } else if (!pack->out) {
        node->peers = node->group;
        node->peer_count = node->group_count;
    }
    pack_i64(pack, &node->order);
    pack_check(pack, node->name);
}

static void pack_reading(struct pack *pack, struct rank_reading *is, struct arena *arena)
{
    bool failed = is->code;
    pack_bool(pack, &failed);
    if (failed) {
        pack_error(pack, &is->error);
        is->code = is->error.code;
        pack_check(pack, is->code);
        return;
    }
    const void *notes = is->notes.data;
    size_t size = is->notes.size;
    pack_bytes(pack, &notes, &size);
    if (!pack->out && size)
        buf_append(&is->notes, notes, size);
    pack_bool(pack, &is->blind);
    pack_bool(pack, &is->cut);
    pack_i64(pack, &is->rank.number);
    pack_size(pack, &is->rank.count);
    if (!pack->out && pack_check(pack, is->rank.count <= pack->left))
        pack_check(pack,
                   (is->rank.nodes = arena_array(arena, is->rank.count, sizeof *is->rank.nodes)));
    const struct graph_node *before = NULL;
    for (size_t i = 0; i < is->rank.count && !pack->bad; i++) {
        struct graph_node *node = &is->rank.nodes[i];
        pack_node(pack, node, before, arena);
        before = node->communication ? node : before;
    }
}

/* ---- By several processes -------------------------------------------------------------------- */

const char *rank_profile(const struct plumb_analyze_options *options)
{
    return options && options->rules ? options->rules->name : NULL;
}

void rank_pack_request(struct pack *pack, struct dump_place *place, const char **profile,
                       struct arena *arena)
{
    pack_text(pack, &place->json, arena);
    pack_text(pack, &place->rank, arena);
    pack_text(pack, profile, arena);
    pack_check(pack, place->json && place->rank);
}

static bool answer(void *context, const void *request, size_t size, struct buf *reply)
{
    const struct crew_places *places = context;
    struct arena arena = {0};
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    struct dump_place place = {0};
    const char *profile = NULL;
    rank_pack_request(&in, &place, &profile, &arena);
    bool fine = pack_good(&in) && (place.json = crew_places_here(places, place.json, &arena));
    if (fine) {
        struct rank_reading is = {0};
        read_rank(&is, &place, rank_rules(profile ? plumb_profile_find(profile) : NULL), &arena);
        fine = is.code != PLUMB_E_IO && is.code != PLUMB_E_NOMEM;
        crew_places_name(places, &is.error);
        pack_reading(&out, &is, NULL);
        buf_free(&is.notes);
    }
    arena_free(&arena);
    return fine && pack_good(&out);
}

struct crew_handler rank_handler(const struct crew_places *places)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)places, answer};
}

struct session {
    struct rank_reading *list;
    const struct dump_places *places;
    const struct seen *seen;
    const struct plumb_analyze_options *options;
    struct arena *arena;
    size_t done;
};

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct session *session = context;
    struct pack pack = pack_writer(request);
    struct dump_place place = session->places->places[piece];
    const char *profile = rank_profile(session->options);
    rank_pack_request(&pack, &place, &profile, NULL);
}

/* A rank that nobody has a dump.json of is as missing here as elsewhere. */
static bool has(void *context, size_t piece, unsigned host)
{
    const struct seen *seen = ((const struct session *)context)->seen;
    return seen->ranks[piece].side[0].files ? seen_has(seen, piece, host) : !host;
}

static void read_elsewhere(struct rank_reading *is, const struct session *session, size_t piece,
                           struct arena *arena)
{
    const char *why = seen_trouble(session->seen, piece, arena);
    if (!why)
        why = seen_lost(session->seen, piece, arena);
    is->code = why ? plumb_fail(&is->error, PLUMB_E_IO, "%s", why) : plumb_no_memory(&is->error);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct session *session = context;
    const struct crew_places *places = crew_places_of(session->options->crew);
    struct pack pack = pack_writer(reply);
    struct arena arena = {0};
    struct rank_reading is = {0};
    struct dump_place place = session->places->places[piece];
    place.json = crew_places_here(places, place.json, &arena);
    if (!place.json)
        is.code = plumb_no_memory(&is.error);
    else if (has(context, piece, 0))
        read_rank(&is, &place, rank_rules(session->options->rules), &arena);
    else
        read_elsewhere(&is, session, piece, &arena);
    crew_places_name(places, &is.error);
    pack_reading(&pack, &is, NULL);
    buf_free(&is.notes);
    arena_free(&arena);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct session *session = context;
    struct rank_reading is = {0};
    struct pack pack = pack_reader(reply, size);
    (void)resumed;
    pack_reading(&pack, &is, session->arena);
    if (!pack_good(&pack) || is.notes.failed) {
        buf_free(&is.notes);
        return false;
    }
    session->list[piece] = is;
    analyze_progress(session->options, ++session->done, session->places->count);
    return true;
}

enum plumb_code rank_read_all(struct rank_reading *list, const struct dump_places *places,
                              const struct seen *seen, const struct plumb_analyze_options *options,
                              struct arena *arena, struct plumb_error *err)
{
    struct session session = {list, places, seen, options, arena, 0};
    const struct crew_job job = {.kind = kind,
                                 .count = places->count,
                                 .context = &session,
                                 .fleeting = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .has = has};
    if (seen)
        return crew_run(options->crew, &job, err);
    for (size_t i = 0; i < places->count; i++) {
        analyze_progress(options, i, places->count);
        read_rank(&list[i], &places->places[i], rank_rules(options ? options->rules : NULL), arena);
    }
    return PLUMB_OK;
}
