/* The first NaN or infinity. */
#define _GNU_SOURCE
#include "base/json.h"
#include "base/mapped.h"
#include "plumb/file.h"
#include "task/ranks/analyze.h"
#include "task/ranks/roles.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

static bool is_abnormal_value(const struct dump_value *value)
{
    if (value->kind == DUMP_NUMBER)
        return !isfinite(value->number);
    return value->kind == DUMP_WORD && value->text &&
           (!strcasecmp(value->text, "nan") || !strcasecmp(value->text, "inf") ||
            !strcasecmp(value->text, "-inf"));
}

static bool is_abnormal(const struct dump_row *row, const struct ranks_rules *rules)
{
    if (!row->tensor || (rules->direct_only && (row->depth != 1 || row->p2p_op || row->p2p_peer)))
        return false;
    return is_abnormal_value(&row->statistic[DUMP_MAX]) ||
           is_abnormal_value(&row->statistic[DUMP_MIN]);
}

static bool has_abnormal(const struct dump_tree *tree, const struct dump_api *api,
                         enum dump_section section, const struct ranks_rules *rules)
{
    for (size_t i = api->first; i < api->first + api->count; i++)
        if (tree->rows[i].section == section && is_abnormal(&tree->rows[i], rules))
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

static enum plumb_code describe(struct overflow *o, struct graph_rank *rank,
                                const struct dump_tree *tree)
{
    struct roles roles = {.arena = &o->arena, .rules = o->rules};
    enum plumb_code code = PLUMB_OK;
    rank->nodes = arena_array(&o->arena, tree->api_count, sizeof *rank->nodes);
    if (!rank->nodes)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; !code && i < tree->api_count; i++) {
        const struct dump_api *api = &tree->apis[i];
        struct graph_node *node = &rank->nodes[i];
        code = roles_describe(&roles, node, tree, api, rank->number);
        if (code)
            break;
        bool input = has_abnormal(tree, api, DUMP_INPUT, o->rules);
        bool output = has_abnormal(tree, api, DUMP_OUTPUT, o->rules);
        node->ignored = is_ignored(api->name);
        node->bad = output && !input;
        node->bad_input = input;
        node->tainted = input || output;
        node->name = arena_copy(&o->arena, api->name, strlen(api->name)); /* the tree goes */
        code = node->name ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    rank->count = tree->api_count;
    roles_free(&roles);
    return code;
}

static enum plumb_code read_ranks(struct overflow *o)
{
    char text[1024] = "";
    o->ranks = arena_array(&o->arena, o->places.count, sizeof *o->ranks);
    o->source = arena_array(&o->arena, o->places.count, sizeof *o->source);
    if (!o->ranks || !o->source)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < o->places.count; i++) {
        analyze_progress(o->options, i, o->places.count);
        struct dump_place *place = &o->places.places[i];
        struct dump_tree tree;
        struct plumb_error trouble = {0};
        enum plumb_code code = dump_open(&tree, place->json, &trouble);
        if (code == PLUMB_E_NOMEM || (code && o->places.count == 1)) {
            if (o->err)
                *o->err = trouble;
            return code;
        }
        if (code) {
            plumb_error_text(&trouble, text, sizeof text);
            analyze_note(&o->notes, place->rank, "left out: %s", text);
            o->out->incomplete++;
            continue;
        }
        analyze_note_warnings(&o->notes, place->rank, &tree);
        const char *blind = blindness(&tree);
        if (blind)
            analyze_note(&o->notes, place->rank, "%s", blind);
        o->ranks[o->count].number = analyze_rank(place->rank);
        o->source[o->count] = place;
        code = describe(o, &o->ranks[o->count], &tree);
        o->out->nodes += blind ? 0 : tree.api_count;
        o->out->incomplete += tree.cut || blind;
        o->count++;
        dump_close(&tree);
        if (code)
            return code;
    }
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
            if (tree.rows[k].section == DUMP_OUTPUT && is_abnormal(&tree.rows[k], o->rules) &&
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
    static const struct ranks_rules own = {0};
    *out = (struct plumb_analysis){0};
    struct overflow o = {.out = out, .options = options, .rules = &own, .err = err};
    if (options && options->rules && options->rules->ranks)
        o.rules = &options->rules->ranks->overflow;
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
