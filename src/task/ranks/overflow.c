/* The first NaN or infinity. */
#define _GNU_SOURCE
#include "ranks/travel.h"
#include "task/ranks/analyze.h"
#include "task/ranks/finding.h"
#include "task/ranks/reading.h"

#include <stdlib.h>
#include <string.h>

struct overflow {
    struct plumb_analysis *out;
    const struct plumb_analyze_options *options; /* or NULL */
    struct dump_places places;
    struct seen *seen; /* on which hosts they are; NULL: there is one process */
    const struct ranks_rules *rules;
    struct arena arena;
    struct graph_rank *ranks;   /* those that could be read */
    struct dump_place **source; /* where each of them came from */
    size_t count;
    struct buf notes;
    struct plumb_error *err;
};

static enum plumb_code add_rank(struct overflow *o, struct dump_place *place,
                                const struct rank_reading *is, char *text, size_t size)
{
    if (is->code == PLUMB_E_NOMEM || (is->code && o->places.count == 1)) {
        if (o->err)
            *o->err = is->error;
        return is->code;
    }
    if (is->code) {
        plumb_error_text(&is->error, text, size);
        analyze_note(&o->notes, place->rank, "left out: %s", text);
        o->out->incomplete++;
        return PLUMB_OK;
    }
    buf_append(&o->notes, is->notes.data, is->notes.size);
    o->ranks[o->count] = is->rank;
    o->source[o->count] = place;
    o->out->nodes += is->blind ? 0 : is->rank.count;
    o->out->incomplete += is->cut || is->blind;
    o->count++;
    return PLUMB_OK;
}

/* Every rank is read by itself; the process that leads puts them together in their order. */
static enum plumb_code read_ranks(struct overflow *o)
{
    char text[1024] = "";
    const size_t count = o->places.count;
    struct rank_reading *list = calloc(count + 1, sizeof *list);
    o->ranks = arena_array(&o->arena, count, sizeof *o->ranks);
    o->source = arena_array(&o->arena, count, sizeof *o->source);
    enum plumb_code code = list && o->ranks && o->source ? PLUMB_OK : PLUMB_E_NOMEM;
    if (!code)
        code = rank_read_all(list, &o->places, o->seen, o->options, &o->arena, o->err);
    for (size_t i = 0; i < count && !code; i++)
        code = add_rank(o, &o->places.places[i], &list[i], text, sizeof text);
    for (size_t i = 0; i < count && list; i++)
        buf_free(&list[i].notes);
    free(list);
    if (code)
        return code;
    return o->count ? PLUMB_OK
                    : plumb_fail(o->err, PLUMB_E_FORMAT, "no rank of it can be read: %.300s", text);
}

/* Nodes [from, to) of what was found, which are of one rank. */
static enum plumb_code make_finding(struct overflow *o, struct finding *finding,
                                    const struct graph_result *result, size_t from, size_t to)
{
    const size_t rank = result->found[from]->rank;
    *finding = (struct finding){.place = *o->source[rank],
                                .at = (size_t)(o->source[rank] - o->places.places),
                                .number = o->ranks[rank].number,
                                .nodes = arena_array(&o->arena, to - from, sizeof *finding->nodes),
                                .count = to - from,
                                .given = o->out->given};
    if (!finding->nodes)
        return plumb_no_memory(o->err);
    for (size_t i = from; i < to; i++)
        finding->nodes[i - from] = (struct finding_node){
            (size_t)(result->found[i] - o->ranks[rank].nodes), result->found[i]->name};
    return PLUMB_OK;
}

static size_t end_of_rank(const struct graph_result *result, size_t i)
{
    const size_t rank = result->found[i]->rank;
    while (i < result->count && result->found[i]->rank == rank)
        i++;
    return i;
}

static enum plumb_code write_report(struct overflow *o, const struct graph_result *result)
{
    struct finding *list = arena_array(&o->arena, result->count, sizeof *list);
    struct buf text = {0};
    size_t count = 0;
    enum plumb_code code = list ? PLUMB_OK : plumb_no_memory(o->err);
    for (size_t i = 0, end; !code && i < result->count; i = end) {
        end = end_of_rank(result, i);
        code = make_finding(o, &list[count++], result, i, end);
    }
    if (!code)
        code = findings_read(list, count, o->seen, o->options, o->err);
    buf_text(&text, "{");
    for (size_t i = 0; i < count; i++) {
        if (!code && !finding_add_rows(&list[i], o->out->table))
            code = plumb_no_memory(o->err);
        buf_text(&text, i ? "," : "");
        buf_append(&text, list[i].text.data, list[i].text.size);
        buf_append(&o->notes, list[i].notes.data, list[i].notes.size);
        finding_free(&list[i]);
    }
    buf_text(&text, "\n}");
    if (!code && text.failed)
        code = PLUMB_E_NOMEM;
    if (code)
        buf_free(&text);
    o->out->report = text.data;
    return code;
}

/* ---- Where it came from ---------------------------------------------------------------------- */

static enum graph_phase phase_of(const struct overflow *o, const struct graph_node *node)
{
    const struct graph_rank *rank = &o->ranks[node->rank];
    bool before = false, after = node->communication;
    for (const struct graph_node *other = rank->nodes; other < rank->nodes + rank->count; other++) {
        before |= other->communication && other < node;
        after |= other->communication && other > node;
    }
    return !before ? GRAPH_BEFORE : after ? GRAPH_DURING : GRAPH_AFTER;
}

static int by_rank(const void *a, const void *b)
{
    const struct graph_node *const *x = a, *const *y = b;
    return (*x)->rank < (*y)->rank ? -1 : (*x)->rank > (*y)->rank;
}

/* What was asked for does not count. */
static bool is_given(const struct travel *travel)
{
    return travel->given && !(travel->from->ignored && travel->from->bad);
}

/* It may have come with gradients that were reduced, which is no call. */
static bool is_after_reduced(const struct overflow *o, const struct graph_node *node)
{
    static const char reduced[] = "Module.reduced.";
    for (const struct graph_node *at = o->ranks[node->rank].nodes; at < node; at++)
        if (strncmp(at->name, reduced, sizeof reduced - 1) == 0)
            return true;
    return false;
}

/* Nodes at ranks that something came to before them made nothing. Where no other is left, it came
 * in with what a rank was given. */
static void keep_origins(struct overflow *o, const struct travels *travels,
                         struct graph_result *result)
{
    size_t kept = 0;
    for (size_t i = 0; i < result->count; i++) {
        const size_t owner = travels->owner[result->found[i]->rank];
        if (!owner || !is_given(&travels->list[owner - 1]))
            result->found[kept++] = result->found[i];
    }
    result->count = kept;
    for (int later = 0; later < 2 && !result->count; later++)
        for (size_t t = 0; t < travels->count; t++) {
            const struct graph_node *from = travels->list[t].from;
            struct graph_node *nodes = o->ranks[from->rank].nodes;
            if (is_given(&travels->list[t]) && (later || !is_after_reduced(o, from)))
                result->found[result->count++] = &nodes[from - nodes];
        }
    if (kept)
        return;
    qsort(result->found, result->count, sizeof *result->found, by_rank);
    o->out->given = result->count;
    result->phase = result->count ? phase_of(o, result->found[0]) : GRAPH_CLEAN;
}

static void put_travel(const struct overflow *o, const struct travel *travel, struct buf *out)
{
    enum { SHOWN = 8 };
    buf_printf(out, "rank %lld: %s", (long long)o->ranks[travel->from->rank].number,
               travel->from->name);
    for (size_t h = 0; h < travel->count && h < SHOWN; h++) {
        const struct travel_hop *hop = &travel->hops[h];
        int64_t *numbers = malloc((hop->count + 1) * sizeof *numbers);
        out->failed |= !numbers;
        for (size_t k = 0; numbers && k < hop->count; k++)
            numbers[k] = o->ranks[hop->to[k]].number;
        buf_printf(out, " -> %s -> rank%s ", hop->by->name, hop->count == 1 ? "" : "s");
        if (numbers)
            travel_put_ranks(out, numbers, hop->count);
        free(numbers);
    }
    if (travel->count > SHOWN)
        buf_printf(out, " and %zu more exchanges", travel->count - SHOWN);
    buf_text(out, "\n");
}

/* How what is not finite went from rank to rank. */
static enum plumb_code say_travels(struct overflow *o, const struct travels *travels)
{
    struct buf text = {0};
    for (size_t t = 0; t < travels->count; t++)
        if (travels->list[t].count)
            put_travel(o, &travels->list[t], &text);
    if (text.failed)
        buf_free(&text);
    o->out->travelled = text.data;
    return text.failed ? PLUMB_E_NOMEM : PLUMB_OK;
}

/* The name of the rank folder of a dump.json below a path; "" when it lies in there itself; NULL:
 * it is deeper, in steps, or out of memory. */
static const char *folder_of(const char *json, const char *path, struct arena *arena)
{
    const size_t length = strlen(path);
    if (strlen(json) <= length + 1)
        return "";
    const char *name = json + length + 1, *slash = strchr(name, '/');
    if (!slash)
        return "";
    return strchr(slash + 1, '/') ? NULL : arena_copy(arena, name, (size_t)(slash - name));
}

/* Where the ranks are: below the path, on whatever host. */
static enum plumb_code find_places(struct overflow *o, const char *path)
{
    const struct seen *seen = o->seen;
    enum plumb_code code = seen ? seen_look(o->seen, o->options->crew, &path, 1, o->err) : PLUMB_OK;
    if (code)
        return code;
    bool found = seen && seen->count;
    o->places.places =
        arena_array(&o->places.arena, found ? seen->count : 0, sizeof *o->places.places);
    for (size_t i = 0; found && o->places.places && i < seen->count; i++) {
        struct dump_place *place = &o->places.places[o->places.count++];
        place->json = seen->ranks[i].side[0].json;
        place->rank = folder_of(place->json, path, &o->places.arena);
        found = place->rank;
    }
    if (found && o->places.places)
        return PLUMB_OK;
    dump_places_free(&o->places);
    seen_free(o->seen ? o->seen : &(struct seen){0});
    o->seen = NULL;
    return dump_find(&o->places, path, o->err);
}

enum plumb_code plumb_overflow_check(struct plumb_analysis *out, const char *path,
                                     const struct plumb_analyze_options *options,
                                     struct plumb_error *err)
{
    static const struct plumb_column columns[] = {
        {.title = "Rank"},
        {.title = "Node", .left = true, .elastic = true},
        {.title = "Output", .left = true},
        {.title = "Max"},
        {.title = "Min"},
    };
    *out = (struct plumb_analysis){0};
    struct seen seen = {0};
    struct overflow o = {.out = out,
                         .seen = options && options->crew ? &seen : NULL,
                         .options = options,
                         .rules = rank_rules(options ? options->rules : NULL),
                         .err = err};
    const bool own = o.rules == rank_rules(NULL);
    struct graph_result result;
    struct travels travels;
    enum plumb_code code = find_places(&o, path);
    if (code) {
        seen_free(&seen);
        return code;
    }
    out->table = plumb_table_new(columns, sizeof columns / sizeof columns[0]);
    code = out->table ? read_ranks(&o) : PLUMB_E_NOMEM;
    if (!code)
        code = graph_search(&result, o.ranks, o.count, o.rules, &o.arena);
    if (!code && own)
        code = travel_find(&travels, o.ranks, o.count, true, &o.arena);
    if (!code && own)
        keep_origins(&o, &travels, &result);
    if (!code) {
        out->phase = (enum plumb_phase)result.phase;
        out->found = result.count;
        out->ranks = o.count;
    }
    if (!code && result.count)
        code = write_report(&o, &result);
    if (!code && result.count && own)
        code = say_travels(&o, &travels);
    if (code == PLUMB_E_NOMEM)
        plumb_fail(err, code, "out of memory");
    out->notes = o.notes.failed ? NULL : o.notes.data;
    if (o.notes.failed)
        buf_free(&o.notes);
    if (code) {
        plumb_error_in_file(err, path);
        plumb_analysis_free(out);
    }
    arena_free(&o.arena);
    dump_places_free(&o.places);
    seen_free(&seen);
    return code;
}
