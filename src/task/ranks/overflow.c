/* The first NaN or infinity. */
#define _GNU_SOURCE
#include "base/json.h"
#include "base/mapped.h"
#include "plumb/file.h"
#include "ranks/roles.h"
#include "ranks/travel.h"
#include "task/ranks/analyze.h"
#include "task/ranks/reading.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct overflow {
    struct plumb_analysis *out;
    const struct plumb_analyze_options *options; /* or NULL */
    struct dump_places places;
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
        code = rank_read_all(list, &o->places, o->options, &o->arena, o->err);
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

/* The value of a key of an API's entry as the file has it, or what stands for nothing. */
static void put_part(struct pretty *out, const struct plumb_file *file, const struct dump_api *api,
                     const char *key, const char *nothing)
{
    struct json json;
    const uint8_t *bytes = file->data + api->offset;
    pretty_key(out, key);
    json_init(&json, bytes, api->size);
    if (json_next(&json) == JSON_OBJECT) {
        while (json_next(&json) == JSON_KEY) {
            bool wanted = json_is(&json, key);
            enum json_event event = json_next(&json);
            uint64_t start = json.start;
            if (!json_skip(&json, event))
                break;
            if (!wanted)
                continue;
            pretty_value(out, bytes + start, (size_t)(json.next - bytes) - start);
            return;
        }
    }
    pretty_word(out, nothing);
}

static void put_node(struct overflow *o, struct pretty *out, const struct plumb_file *file,
                     const struct dump_tree *tree, const struct dump_api *api, const char *rank)
{
    pretty_item(out);
    pretty_open(out, '{');
    pretty_key(out, "op_name");
    pretty_string(out, api->name);
    pretty_key(out, "data_info");
    pretty_open(out, '{');
    if (strstr(api->name, "forward")) {
        put_part(out, file, api, "input_args", "[]");
        put_part(out, file, api, "input_kwargs", "{}");
    } else {
        put_part(out, file, api, "input", "[]");
    }
    put_part(out, file, api, "output", "{}");
    pretty_close(out, '}');
    pretty_key(out, "construct_info");
    if (!analyze_put_ancestors(out, tree->folder, api->name, &o->arena))
        analyze_note(&o->notes, rank,
                     "construct.json is missing or damaged: the modules around "
                     "the node are not known");
    pretty_key(out, "stack_info");
    analyze_put_stack(out, tree, api, "{}");
    if (!api->stack && strstr(api->name, "forward")) /* nobody calls a backward */
        analyze_note(&o->notes, rank, "stack.json does not tell where %.200s was called",
                     api->name);
    pretty_close(out, '}');
}

static bool add_row(struct plumb_table *table, const char *rank, const struct dump_api *api,
                    const struct dump_row *row)
{
    size_t length = strlen(api->name);
    char texts[2][NUMBER_BYTES];
    const char *max = dump_value_text(&row->statistic[DUMP_MAX], texts[0]);
    const char *min = dump_value_text(&row->statistic[DUMP_MIN], texts[1]);
    return plumb_table_add_row(table, PLUMB_FAILED) && plumb_table_text(table, 0, rank) &&
           plumb_table_text(table, 1, api->name) &&
           plumb_table_text(table, 2, row->path_name + length + (row->path_name[length] == '.')) &&
           plumb_table_text(table, 3, max ? max : "None") &&
           plumb_table_text(table, 4, min ? min : "None");
}

/* One rank's part of the report: nodes [from, to) of what was found. */
static enum plumb_code put_rank(struct overflow *o, struct pretty *out,
                                const struct graph_result *result, size_t from, size_t to)
{
    size_t rank = result->found[from]->rank;
    const struct dump_place *place = o->source[rank];
    struct dump_tree tree;
    struct mapped in;
    char key[32], label[32];
    snprintf(key, sizeof key, "rank_%lld", (long long)o->ranks[rank].number);
    snprintf(label, sizeof label, "%lld", (long long)o->ranks[rank].number);
    enum plumb_code code = dump_open(&tree, place->json, o->err);
    if (code)
        return code;
    code = mapped_open(&in, place->json, o->err);
    if (code)
        goto out;
    pretty_key(out, key);
    pretty_open(out, '[');
    for (size_t i = from; !code && i < to; i++) {
        size_t number = (size_t)(result->found[i] - o->ranks[rank].nodes);
        const struct dump_api *api = number < tree.api_count ? &tree.apis[number] : NULL;
        if (!api || strcmp(api->name, result->found[i]->name) != 0 || api->offset > in.file.size ||
            api->size > in.file.size - api->offset) {
            code = plumb_fail(o->err, PLUMB_E_IO, "the file changed while it was read");
            break;
        }
        put_node(o, out, &in.file, &tree, api, place->rank);
        for (size_t k = api->first; k < api->first + api->count; k++)
            if (tree.rows[k].section == DUMP_OUTPUT && rank_is_abnormal(&tree.rows[k], o->rules) &&
                !add_row(o->out->table, label, api, &tree.rows[k]))
                code = plumb_no_memory(o->err);
    }
    pretty_close(out, ']');
    code = mapped_close(&in, code, o->err);
out:
    dump_close(&tree);
    return code;
}

static enum plumb_code write_report(struct overflow *o, const struct graph_result *result)
{
    struct pretty out = {.indent = 1};
    enum plumb_code code = PLUMB_OK;
    pretty_open(&out, '{');
    for (size_t i = 0, end; !code && i < result->count; i = end) {
        for (end = i + 1; end < result->count && result->found[end]->rank == result->found[i]->rank;
             end++)
            ;
        code = put_rank(o, &out, result, i, end);
    }
    pretty_close(&out, '}');
    if (!code && out.text.failed)
        code = PLUMB_E_NOMEM;
    if (code)
        buf_free(&out.text);
    o->out->report = out.text.data;
    return code;
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
static enum plumb_code follow(struct overflow *o)
{
    struct travels travels;
    struct buf text = {0};
    enum plumb_code code = travel_find(&travels, o->ranks, o->count, true, &o->arena);
    for (size_t t = 0; t < travels.count && !code; t++)
        if (travels.list[t].count)
            put_travel(o, &travels.list[t], &text);
    if (text.failed)
        buf_free(&text);
    o->out->travelled = text.data;
    return text.failed ? PLUMB_E_NOMEM : code;
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
    struct overflow o = {.out = out,
                         .options = options,
                         .rules = rank_rules(options ? options->rules : NULL),
                         .err = err};
    struct graph_result result;
    enum plumb_code code = dump_find(&o.places, path, err);
    if (code)
        return code;
    out->table = plumb_table_new(columns, sizeof columns / sizeof columns[0]);
    code = out->table ? read_ranks(&o) : PLUMB_E_NOMEM;
    if (!code)
        code = graph_search(&result, o.ranks, o.count, o.rules, &o.arena);
    if (!code) {
        out->phase = (enum plumb_phase)result.phase;
        out->found = result.count;
        out->ranks = o.count;
    }
    if (!code && result.count)
        code = write_report(&o, &result);
    if (!code && result.count && o.rules == rank_rules(NULL))
        code = follow(&o);
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
    return code;
}
