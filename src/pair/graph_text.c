/* Reading dynamo_original_graph_*.txt. */
#define _GNU_SOURCE
#include "pair/graph_text.h"

#include "base/mapped.h"
#include "pair/graph_names.h"
#include "plumb/file.h"

#include <string.h>

#define FX_NAME "_fx_tensor_name"

/* What a block is, as far as it matters. Deeper than the last, blocks are only counted. */
enum block { IN_FILE, IN_OP, IN_OUTPUT, IN_ATTR, IN_VALUE };

struct slice {
    const char *text;
    size_t length;
};

struct parser {
    struct graph *graph;
    struct arena *arena;
    size_t op_capacity, input_capacity, fx_capacity;
    enum block block;
    size_t other;       /* open blocks inside `block` that do not matter */
    struct graph_op op; /* the one that is open */
    bool is_fx;         /* the open attr has the key we look for */
    struct slice value; /* of the open attr */
};

static bool is(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.text, text, slice.length) == 0;
}

static struct slice trim(struct slice slice)
{
    while (slice.length && strchr(" \t\r\v\f", slice.text[0]) && slice.text[0])
        slice.text++, slice.length--;
    while (slice.length && strchr(" \t\r\v\f", slice.text[slice.length - 1]) &&
           slice.text[slice.length - 1])
        slice.length--;
    return slice;
}

/* Where the two characters stand next to each other first, or NULL. */
static const char *find_two(struct slice slice, const char two[2])
{
    for (size_t i = 0; i + 1 < slice.length; i++)
        if (slice.text[i] == two[0] && slice.text[i + 1] == two[1])
            return slice.text + i;
    return NULL;
}

/* Makes room for one more of what array holds. */
static void *grow(struct arena *arena, void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 8;
    void *larger = arena_array(arena, wanted, size);
    if (!larger)
        return NULL;
    if (count)
        memcpy(larger, array, count * size);
    *capacity = wanted;
    return larger;
}

static bool add_input(struct parser *parser, struct slice value)
{
    struct graph_op *op = &parser->op;
    size_t capacity = parser->input_capacity;
    const char *colon = memrchr(value.text, ':', value.length);
    size_t length = colon ? (size_t)(colon - value.text) : 0;
    op->inputs = grow(parser->arena, op->inputs, op->input_count, &parser->input_capacity,
                      sizeof *op->inputs);
    if (!op->inputs)
        return false;
    op->sources = grow(parser->arena, op->sources, op->input_count, &capacity, sizeof *op->sources);
    if (!op->sources)
        return false;
    op->sources[op->input_count] = arena_copy(parser->arena, value.text, value.length);
    op->inputs[op->input_count] = arena_copy(parser->arena, value.text, length);
    return op->sources[op->input_count] && op->inputs[op->input_count++];
}

/* The k of "key.OUTPUT.k" and the length of key. */
static int64_t split_output(struct slice name, size_t *length)
{
    const char *dot = memrchr(name.text, '.', name.length);
    *length = name.length;
    if (!dot)
        return -1;
    size_t before = (size_t)(dot - name.text);
    static const char word[] = ".OUTPUT";
    size_t tail = sizeof word - 1;
    if (before < tail || memcmp(dot - tail, word, tail) != 0)
        return -1;
    *length = before - tail;
    int64_t number = 0;
    for (const char *c = dot + 1; c < name.text + name.length; c++) {
        if (*c < '0' || *c > '9' || number > INT32_MAX)
            return -1;
        number = number * 10 + (*c - '0');
    }
    return name.length > before + 1 ? number : -1;
}

static bool add_fx(struct parser *parser)
{
    struct graph_op *op = &parser->op;
    op->fx = grow(parser->arena, op->fx, op->fx_count, &parser->fx_capacity, sizeof *op->fx);
    if (!op->fx)
        return false;
    size_t length;
    int64_t number = split_output(parser->value, &length);
    op->fx[op->fx_count] =
        (struct graph_fx){.key = arena_copy(parser->arena, parser->value.text, length),
                          .fx_output = number,
                          .output = op->outputs - 1};
    return op->fx[op->fx_count++].key != NULL;
}

static bool add_op(struct parser *parser)
{
    struct graph *graph = parser->graph;
    if (!parser->op.name)
        return true;
    graph->ops =
        grow(parser->arena, graph->ops, graph->count, &parser->op_capacity, sizeof *graph->ops);
    uint64_t *place = graph->ops
                          ? map_put(&graph->by_name, parser->op.name, strlen(parser->op.name), NULL)
                          : NULL;
    if (!place)
        return false;
    *place = graph->count;
    parser->op.key = parser->op.name;
    graph->ops[graph->count++] = parser->op;
    return true;
}

static void open_block(struct parser *parser, struct slice key)
{
    if (parser->other) {
        parser->other++;
    } else if (parser->block == IN_FILE && is(key, "op")) {
        parser->op = (struct graph_op){0};
        parser->input_capacity = parser->fx_capacity = 0;
        parser->block = IN_OP;
    } else if (parser->block == IN_OP && is(key, "output_desc")) {
        parser->op.outputs++;
        parser->block = IN_OUTPUT;
    } else if (parser->block == IN_OUTPUT && is(key, "attr")) {
        parser->is_fx = false;
        parser->value = (struct slice){0};
        parser->block = IN_ATTR;
    } else if (parser->block == IN_ATTR && is(key, "value")) {
        parser->block = IN_VALUE;
    } else {
        parser->other = 1;
    }
}

/* False when out of memory; *odd when nothing was open. */
static bool close_block(struct parser *parser, bool *odd)
{
    if (parser->other) {
        parser->other--;
        return true;
    }
    enum block block = parser->block;
    if (block == IN_FILE) {
        *odd = true;
        return true;
    }
    parser->block--;
    if (block == IN_ATTR && parser->is_fx && parser->value.text)
        return add_fx(parser);
    return block == IN_OP ? add_op(parser) : true;
}

static bool set_value(struct parser *parser, struct slice key, struct slice value)
{
    if (value.length >= 2 && value.text[0] == '"' && value.text[value.length - 1] == '"') {
        value.text++;
        value.length -= 2;
    }
    if (parser->other)
        return true;
    if (parser->block == IN_FILE && is(key, "name") && !parser->graph->name) {
        parser->graph->name = arena_copy(parser->arena, value.text, value.length);
        return parser->graph->name != NULL;
    }
    if (parser->block == IN_OP && is(key, "input"))
        return add_input(parser, value);
    if (parser->block == IN_OP && is(key, "type"))
        parser->op.constant = is(value, "Const") || is(value, "Constant");
    if (parser->block == IN_OP && is(key, "name") && !parser->op.name) {
        parser->op.name = arena_copy(parser->arena, value.text, value.length);
        return parser->op.name != NULL;
    }
    if (parser->block == IN_ATTR && is(key, "key"))
        parser->is_fx = is(value, FX_NAME);
    else if (parser->block == IN_VALUE && is(key, "s"))
        parser->value = value;
    return true;
}

/* An operator begins at the margin: whatever is still open there lost its closing brace. */
static bool resume(struct parser *parser)
{
    bool odd = false;
    parser->other = 0;
    while (parser->block != IN_FILE)
        if (!close_block(parser, &odd))
            return false;
    return true;
}

/* False when out of memory. */
static bool take_line(struct parser *parser, struct slice raw, bool *odd)
{
    struct slice line = trim(raw);
    if (raw.length >= 4 && memcmp(raw.text, "op {", 4) == 0 &&
        (parser->block != IN_FILE || parser->other)) {
        *odd = true;
        if (!resume(parser))
            return false;
    }
    if (!line.length)
        return true;
    const char *colon = find_two(line, ": ");
    const char *brace = find_two(line, " {");
    /* A string may hold either sign; whichever comes first says what the line is. */
    if (brace && (!colon || brace < colon)) {
        open_block(parser, (struct slice){line.text, (size_t)(brace - line.text)});
        return true;
    }
    if (colon) {
        size_t length = (size_t)(colon - line.text);
        return set_value(parser, (struct slice){line.text, length},
                         trim((struct slice){colon + 2, line.length - length - 2}));
    }
    if (line.text[0] == '}' && line.length == 1)
        return close_block(parser, odd);
    *odd = true;
    return true;
}

enum plumb_code graph_parse(struct graph *graph, const char *text, size_t size, struct arena *arena,
                            struct plumb_error *err)
{
    struct parser parser = {.graph = graph, .arena = arena};
    size_t line = 0;
    *graph = (struct graph){0};
    for (size_t at = 0; text && at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        bool odd = false;
        line++;
        if (!take_line(&parser, (struct slice){text + at, length}, &odd)) {
            graph_free(graph);
            return plumb_no_memory(err);
        }
        graph->odd_lines += odd;
        if (odd && !graph->first_odd)
            graph->first_odd = line;
        at += length + 1;
    }
    /* A text that was cut short still says what its last operator is called. */
    graph->cut = parser.block != IN_FILE || parser.other;
    if (graph->cut) {
        graph->odd_lines++;
        if (!graph->first_odd)
            graph->first_odd = line;
        if (!resume(&parser)) {
            graph_free(graph);
            return plumb_no_memory(err);
        }
    }
    return PLUMB_OK;
}

enum plumb_code graph_open(struct graph *graph, const char *path, struct arena *arena,
                           struct plumb_error *err)
{
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    bool parsed =
        !(code = graph_parse(graph, (const char *)in.file.data, (size_t)in.file.size, arena, err));
    code = mapped_close(&in, code, err);
    if (code && parsed)
        graph_free(graph);
    return code;
}

/* Takes the escapes of a string in protobuf text out, in place. */
static void unescape(char *text)
{
    static const char letters[] = "abfnrtv", meant[] = "\a\b\f\n\r\t\v";
    char *out = text;
    while (*text) {
        const char *letter;
        if (*text != '\\' || !text[1]) {
            *out++ = *text++;
            continue;
        }
        text++;
        if (*text >= '0' && *text <= '7') {
            unsigned value = 0;
            for (int i = 0; i < 3 && *text >= '0' && *text <= '7'; i++)
                value = value * 8 + (unsigned)(*text++ - '0');
            *out++ = (char)(value & 0xFF ? value : '?');
        } else {
            letter = strchr(letters, *text);
            *out++ = letter ? meant[letter - letters] : *text;
            text++;
        }
    }
    *out = '\0';
}

bool graph_spell_as_files(struct graph *graph, struct arena *arena)
{
    for (size_t i = 0; i < graph->count; i++) {
        struct graph_op *op = &graph->ops[i];
        char *key = arena_copy(arena, op->name, strlen(op->name));
        bool added;
        if (!key)
            return false;
        unescape(key);
        ge_name_spell(key);
        op->key = key;
        graph->longest = strlen(key) > graph->longest ? strlen(key) : graph->longest;
        uint64_t *place = map_put(&graph->by_name, key, strlen(key), &added);
        if (!place)
            return false;
        if (!added && strcmp(graph->ops[*place].name, op->name) != 0)
            op->shared = graph->ops[*place].shared = true;
        *place = i;
    }
    return true;
}

void graph_free(struct graph *graph)
{
    map_free(&graph->by_name);
    *graph = (struct graph){0};
}

const struct graph_op *graph_find(const struct graph *graph, const char *name, size_t length)
{
    const uint64_t *place = map_get(&graph->by_name, name, length);
    return place ? &graph->ops[*place] : NULL;
}
