/* What was found in a rank. */
#define _GNU_SOURCE
#include "task/ranks/finding.h"

#include "base/json.h"
#include "base/mapped.h"
#include "base/pack.h"
#include "plumb/file.h"
#include "task/ranks/reading.h"

#include <stdio.h>
#include <string.h>

static const char kind[] = "finding";

/* ---- One rank -------------------------------------------------------------------------------- */

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

static void put_node(struct finding *finding, struct pretty *out, const struct plumb_file *file,
                     const struct dump_tree *tree, const struct dump_api *api, struct arena *arena)
{
    const char *rank = finding->place.rank;
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
    if (!analyze_put_ancestors(out, tree->folder, api->name, arena))
        analyze_note(&finding->notes, rank,
                     "construct.json is missing or damaged: the modules around "
                     "the node are not known");
    pretty_key(out, "stack_info");
    analyze_put_stack(out, tree, api, "{}");
    if (!api->stack && strstr(api->name, "forward")) /* nobody calls a backward */
        analyze_note(&finding->notes, rank, "stack.json does not tell where %.200s was called",
                     api->name);
    pretty_close(out, '}');
}

static bool add_row(struct finding *finding, const struct dump_api *api, const struct dump_row *row)
{
    const size_t length = strlen(api->name);
    const char *output = row->path_name + length + (row->path_name[length] == '.');
    struct arena *arena = &finding->arena;
    if (finding->row_count == finding->row_capacity) {
        const size_t more = finding->row_capacity ? finding->row_capacity * 2 : 8;
        struct finding_row *grown =
            arena_grow(arena, finding->rows, finding->row_count, more, sizeof *grown);
        if (!grown)
            return false;
        finding->rows = grown;
        finding->row_capacity = more;
    }
    char texts[2][NUMBER_BYTES];
    const char *max = dump_value_text(&row->statistic[DUMP_MAX], texts[0]);
    const char *min = dump_value_text(&row->statistic[DUMP_MIN], texts[1]);
    max = max ? max : "None";
    min = min ? min : "None";
    struct finding_row *added = &finding->rows[finding->row_count++];
    *added = (struct finding_row){
        arena_copy(arena, api->name, length), arena_copy(arena, output, strlen(output)),
        arena_copy(arena, max, strlen(max)), arena_copy(arena, min, strlen(min))};
    return added->node && added->output && added->max && added->min;
}

static bool is_shown(const struct finding *finding, const struct dump_row *row,
                     const struct ranks_rules *rules)
{
    return finding->given ? rank_is_given(row) && rank_has_nan(row)
                          : row->section == DUMP_OUTPUT && rank_is_abnormal(row, rules);
}

static enum plumb_code put_nodes(struct finding *finding, struct pretty *out,
                                 const struct dump_tree *tree, const struct plumb_file *file,
                                 const struct ranks_rules *rules, struct plumb_error *err)
{
    struct arena arena = {0};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; !code && i < finding->count; i++) {
        const struct finding_node *node = &finding->nodes[i];
        const struct dump_api *api =
            node->number < tree->api_count ? &tree->apis[node->number] : NULL;
        if (!api || strcmp(api->name, node->name) != 0 || api->offset > file->size ||
            api->size > file->size - api->offset) {
            code = plumb_fail(err, PLUMB_E_IO, "the file changed while it was read");
            break;
        }
        put_node(finding, out, file, tree, api, &arena);
        for (size_t k = api->first; k < api->first + api->count && !code; k++)
            if (is_shown(finding, &tree->rows[k], rules) && !add_row(finding, api, &tree->rows[k]))
                code = plumb_no_memory(err);
    }
    arena_free(&arena);
    return code;
}

/* json: where it is on this host. */
static enum plumb_code read_finding(struct finding *finding, const char *json,
                                    const struct ranks_rules *rules, struct plumb_error *err)
{
    struct pretty out = {.indent = 1, .depth = 1, .first = true};
    struct dump_tree tree;
    struct mapped in;
    char key[32];
    snprintf(key, sizeof key, "rank_%lld", (long long)finding->number);
    enum plumb_code code = dump_open(&tree, json, err);
    if (code)
        return code;
    code = mapped_open(&in, json, err);
    if (!code) {
        pretty_key(&out, key);
        pretty_open(&out, '[');
        code = put_nodes(finding, &out, &tree, &in.file, rules, err);
        pretty_close(&out, ']');
        code = mapped_close(&in, code, err);
    }
    dump_close(&tree);
    finding->text = out.text;
    if (!code && (out.text.failed || finding->notes.failed))
        code = plumb_no_memory(err);
    return code;
}

void finding_free(struct finding *finding)
{
    buf_free(&finding->text);
    buf_free(&finding->notes);
    arena_free(&finding->arena);
}

bool finding_add_rows(const struct finding *finding, struct plumb_table *table)
{
    char label[32];
    snprintf(label, sizeof label, "%lld", (long long)finding->number);
    bool fine = true;
    for (size_t i = 0; i < finding->row_count && fine; i++) {
        const struct finding_row *row = &finding->rows[i];
        fine = plumb_table_add_row(table, PLUMB_FAILED) && plumb_table_text(table, 0, label) &&
               plumb_table_text(table, 1, row->node) && plumb_table_text(table, 2, row->output) &&
               plumb_table_text(table, 3, row->max) && plumb_table_text(table, 4, row->min);
    }
    return fine;
}

/* ---- As bytes -------------------------------------------------------------------------------- */

static void pack_request(struct pack *pack, struct finding *finding, const char **profile,
                         struct arena *arena)
{
    rank_pack_request(pack, &finding->place, profile, arena);
    pack_i64(pack, &finding->number);
    pack_bool(pack, &finding->given);
    pack_size(pack, &finding->count);
    if (!pack->out && pack_check(pack, finding->count <= pack->left))
        pack_check(pack,
                   (finding->nodes = arena_array(arena, finding->count, sizeof *finding->nodes)));
    for (size_t i = 0; i < finding->count && !pack->bad; i++) {
        pack_size(pack, &finding->nodes[i].number);
        pack_text(pack, &finding->nodes[i].name, arena);
        pack_check(pack, finding->nodes[i].name);
    }
}

static void pack_buf(struct pack *pack, struct buf *buf)
{
    const void *bytes = buf->data;
    size_t size = buf->size;
    pack_bytes(pack, &bytes, &size);
    if (!pack->out && size)
        buf_append(buf, bytes, size);
}

static void pack_finding(struct pack *pack, struct finding *finding)
{
    struct arena *arena = &finding->arena;
    pack_buf(pack, &finding->text);
    pack_buf(pack, &finding->notes);
    pack_size(pack, &finding->row_count);
    if (!pack->out && pack_check(pack, finding->row_count <= pack->left))
        pack_check(pack,
                   (finding->rows = arena_array(arena, finding->row_count, sizeof *finding->rows)));
    for (size_t i = 0; i < finding->row_count && !pack->bad; i++) {
        struct finding_row *row = &finding->rows[i];
        pack_text(pack, &row->node, arena);
        pack_text(pack, &row->output, arena);
        pack_text(pack, &row->max, arena);
        pack_text(pack, &row->min, arena);
        pack_check(pack, row->node && row->output && row->max && row->min);
    }
}

/* What came of it: a finding, or why there is none. */
static void pack_end(struct pack *pack, struct finding *finding, enum plumb_code *code,
                     struct plumb_error *err)
{
    bool failed = *code;
    pack_bool(pack, &failed);
    if (failed)
        pack_error(pack, err);
    else
        pack_finding(pack, finding);
    if (failed && !pack->out)
        pack_check(pack, (*code = err->code));
}

/* ---- By several processes -------------------------------------------------------------------- */

static enum plumb_code read_here(struct finding *finding, const char *profile,
                                 const struct crew_places *places, struct plumb_error *err)
{
    struct arena arena = {0};
    const char *json = crew_places_here(places, finding->place.json, &arena);
    enum plumb_code code =
        json ? read_finding(finding, json, rank_rules(profile ? plumb_profile_find(profile) : NULL),
                            err)
             : plumb_no_memory(err);
    if (code)
        crew_places_name(places, err);
    arena_free(&arena);
    return code;
}

static bool answer(void *context, const void *request, size_t size, struct buf *reply)
{
    struct arena arena = {0};
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    struct finding finding = {0};
    struct plumb_error err;
    const char *profile = NULL;
    pack_request(&in, &finding, &profile, &arena);
    bool fine = pack_good(&in);
    if (fine) {
        enum plumb_code code = read_here(&finding, profile, context, &err);
        fine = code != PLUMB_E_IO && code != PLUMB_E_NOMEM;
        pack_end(&out, &finding, &code, &err);
    }
    finding_free(&finding);
    arena_free(&arena);
    return fine && pack_good(&out);
}

struct crew_handler finding_handler(const struct crew_places *places)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)places, answer};
}

struct session {
    struct finding *list;
    const struct seen *seen;
    const struct plumb_analyze_options *options;
    struct plumb_error *err;
    enum plumb_code code; /* why one of them could not be read */
};

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct session *session = context;
    struct pack pack = pack_writer(request);
    struct finding finding = session->list[piece];
    const char *profile = rank_profile(session->options);
    pack_request(&pack, &finding, &profile, NULL);
}

static bool has(void *context, size_t piece, unsigned host)
{
    const struct session *session = context;
    return seen_has(session->seen, session->list[piece].at, host);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct session *session = context;
    struct pack pack = pack_writer(reply);
    struct finding finding = session->list[piece];
    struct arena arena = {0};
    struct plumb_error err;
    enum plumb_code code;
    if (has(context, piece, 0)) {
        code = read_here(&finding, rank_profile(session->options),
                         crew_places_of(session->options->crew), &err);
    } else {
        const char *why = seen_lost(session->seen, session->list[piece].at, &arena);
        code = why ? plumb_fail(&err, PLUMB_E_IO, "%s", why) : plumb_no_memory(&err);
    }
    pack_end(&pack, &finding, &code, &err);
    finding_free(&finding);
    arena_free(&arena);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct session *session = context;
    struct finding finding = session->list[piece];
    struct pack pack = pack_reader(reply, size);
    enum plumb_code code = PLUMB_OK;
    struct plumb_error err;
    (void)resumed;
    pack_end(&pack, &finding, &code, &err);
    if (!pack_good(&pack) || finding.text.failed || finding.notes.failed) {
        finding_free(&finding);
        return false;
    }
    if (code && !session->code) {
        session->code = code;
        if (session->err)
            *session->err = err;
    }
    session->list[piece] = finding;
    return true;
}

enum plumb_code findings_read(struct finding *list, size_t count, const struct seen *seen,
                              const struct plumb_analyze_options *options, struct plumb_error *err)
{
    struct session session = {list, seen, options, err, PLUMB_OK};
    const struct crew_job job = {.kind = kind,
                                 .count = count,
                                 .context = &session,
                                 .fleeting = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .has = has};
    enum plumb_code code = PLUMB_OK;
    if (seen)
        code = crew_run(options->crew, &job, err);
    for (size_t i = 0; i < count && !seen && !code; i++)
        code = read_here(&list[i], rank_profile(options), NULL, err);
    return code ? code : session.code;
}
