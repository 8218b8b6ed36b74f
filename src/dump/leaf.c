/* Leaves: the tensors, scalars and Nones of an entry, each a row. */
#include "dump/outline.h"
#include "dump/python.h"
#include "dump/reader.h"
#include "dump/uninitialised.h"

#include <string.h>

struct shape {
    const char *text;
    size_t ndim;
    const int64_t *dims;
};

/* A leaf's fields, as far as they were there. */
struct leaf {
    const char *type, *dtype, *data_name, *md5, *requires_grad, *group_ranks;
    const struct shape *shape;
    struct dump_value statistic[DUMP_STATISTICS_COUNT], value;
    const char *value_class; /* as Python names the value's type */
    const char *value_shape; /* of a list value, as numpy prints it */
    bool spread;             /* a part of a tensor that several processes have */
    const char *dtensor;     /* how, as it is written; or NULL */
    bool uninitialised;
};

bool dump_push(struct reader *r, const char *text, size_t length)
{
    if (r->path.size + length + 1 > DUMP_MAX_NAME) {
        dump_warn(r->tree, "%.60s...: a name longer than %d bytes, left out", r->path.data,
                  DUMP_MAX_NAME);
        return false;
    }
    buf_append(&r->path, ".", 1);
    buf_append(&r->path, text, length);
    return !r->path.failed;
}

void dump_pop(struct reader *r, size_t size)
{
    r->path.size = size;
    r->path.data[size] = '\0';
}

const char *dump_intern(struct reader *r, const char *text, size_t length)
{
    uint64_t *place = map_get(&r->words, text, length);
    if (place)
        return (const char *)(uintptr_t)*place;
    char *copy = arena_copy(&r->tree->arena, text, length);
    place = copy ? map_put(&r->words, copy, length, NULL) : NULL;
    if (place)
        *place = (uintptr_t)copy;
    return place ? copy : NULL;
}

/* The text of the value that begins with event; NULL on damage or without memory. */
static const char *read_text(struct reader *r, enum json_event event, bool common)
{
    r->text.size = 0;
    if (!python_text(&r->json, event, &r->text) || r->text.failed)
        return NULL;
    const char *text = r->text.data ? r->text.data : "";
    return common ? dump_intern(r, text, r->text.size)
                  : arena_copy(&r->tree->arena, text, r->text.size);
}

static enum plumb_code failure(const struct reader *r)
{
    return r->json.error ? PLUMB_E_FORMAT : PLUMB_E_NOMEM;
}

static const struct shape *read_shape(struct reader *r, enum json_event event)
{
    struct json start = r->json;
    const char *text = read_text(r, event, true);
    if (!text)
        return NULL;
    bool added;
    uint64_t *place = map_put(&r->shapes, text, strlen(text), &added);
    if (!place || !added)
        return place ? (const struct shape *)(uintptr_t)*place : NULL;

    struct shape *shape = arena_alloc(&r->tree->arena, sizeof *shape);
    if (!shape)
        return NULL;
    *place = (uintptr_t)shape;
    shape->text = text;
    if (event != JSON_ARRAY)
        return shape;

    struct json json = start;
    size_t count = 0;
    int64_t value;
    while (json_next(&json) == JSON_NUMBER && json_int64(&json, &value))
        count++;
    if (json.next != r->json.next) /* something that is no integer: only its text is kept */
        return shape;
    int64_t *dims = arena_array(&r->tree->arena, count, sizeof *dims);
    if (!dims)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        json_next(&start);
        json_int64(&start, &dims[i]);
    }
    shape->ndim = count;
    shape->dims = dims;
    return shape;
}

static bool is_integer(const struct json *json)
{
    for (size_t i = 0; i < json->length; i++)
        if (json->text[i] != '-' && (json->text[i] < '0' || json->text[i] > '9'))
            return false;
    return true;
}

static enum plumb_code read_value(struct reader *r, enum json_event event, struct dump_value *out)
{
    *out = (struct dump_value){0};
    if (event == JSON_NULL)
        return PLUMB_OK;
    if (event == JSON_NUMBER) {
        char text[NUMBER_BYTES];
        out->kind = DUMP_NUMBER;
        out->integer = python_number(&r->json, &out->number, text);
        out->text = arena_copy(&r->tree->arena, text, strlen(text));
        return out->text ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    out->kind = DUMP_WORD;
    out->text = read_text(r, event, event == JSON_TRUE || event == JSON_FALSE);
    return out->text ? PLUMB_OK : failure(r);
}

static const char *python_class(const struct json *json, enum json_event event)
{
    switch (event) {
    case JSON_NUMBER:
        return is_integer(json) ? "<class 'int'>" : "<class 'float'>";
    case JSON_STRING:
        return "<class 'str'>";
    case JSON_TRUE:
    case JSON_FALSE:
        return "<class 'bool'>";
    case JSON_ARRAY:
        return "<class 'list'>";
    case JSON_OBJECT:
        return "<class 'dict'>";
    default:
        return "<class 'NoneType'>";
    }
}

/* "(3,)": what numpy says of the list that the parser has just entered. */
static const char *list_shape(struct reader *r, enum json_event event)
{
    struct json json = r->json;
    size_t count = 0;
    if (event != JSON_ARRAY)
        return "()";
    for (enum json_event e; (e = json_next(&json)) > JSON_END && e != JSON_ARRAY_END; count++)
        if (!json_skip(&json, e))
            break;
    return arena_printf(&r->tree->arena, "(%zu,)", count);
}

static enum plumb_code read_field(struct reader *r, struct leaf *leaf)
{
    static const struct {
        const char *key;
        size_t offset;
        bool common;
    } texts[] = {
        {"type", offsetof(struct leaf, type), true},
        {"dtype", offsetof(struct leaf, dtype), true},
        {"requires_grad", offsetof(struct leaf, requires_grad), true},
        {"data_name", offsetof(struct leaf, data_name), false},
        {"md5", offsetof(struct leaf, md5), false},
        {"group_ranks", offsetof(struct leaf, group_ranks), true},
    };
    static const char *const statistics[DUMP_STATISTICS_COUNT] = {"Max", "Min", "Mean", "Norm"};

    for (size_t i = 0; i < DUMP_STATISTICS_COUNT; i++)
        if (json_is(&r->json, statistics[i]))
            return read_value(r, json_next(&r->json), &leaf->statistic[i]);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!json_is(&r->json, texts[i].key))
            continue;
        enum json_event event = json_next(&r->json);
        const char *text = event == JSON_NULL ? NULL : read_text(r, event, texts[i].common);
        if (event != JSON_NULL && !text)
            return failure(r);
        memcpy((char *)leaf + texts[i].offset, &text, sizeof text);
        return PLUMB_OK;
    }
    if (json_is(&r->json, "dtensor")) {
        const uint8_t *begin = r->json.next;
        if (outline_spread(&r->json, &leaf->spread))
            return PLUMB_E_FORMAT;
        leaf->dtensor = dump_intern(r, (const char *)begin, (size_t)(r->json.next - begin));
        return leaf->dtensor ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    if (json_is(&r->json, DUMP_UNINITIALISED)) {
        enum json_event event = json_next(&r->json);
        leaf->uninitialised = event == JSON_TRUE;
        return json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    }
    if (json_is(&r->json, "shape")) {
        leaf->shape = read_shape(r, json_next(&r->json));
        return leaf->shape ? PLUMB_OK : failure(r);
    }
    if (json_is(&r->json, "value")) {
        enum json_event event = json_next(&r->json);
        leaf->value_class = python_class(&r->json, event);
        leaf->value_shape = list_shape(r, event);
        if (!leaf->value_shape)
            return PLUMB_E_NOMEM;
        enum plumb_code code = read_value(r, event, &leaf->value);
        if (!code && event == JSON_NULL)
            leaf->value.text = "None";
        return code;
    }
    return json_skip(&r->json, JSON_KEY) ? PLUMB_OK : PLUMB_E_FORMAT;
}

static bool ends_in_peer(const char *path)
{
    static const char *const names[] = {"src", "dst", "group_src", "group_dst"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(dot ? dot + 1 : path, names[i]) == 0)
            return true;
    return false;
}

static void fill(struct dump_row *row, const char *dtype, const char *shape,
                 const struct dump_value *value)
{
    row->dtype = dtype;
    row->shape = shape;
    for (size_t i = 0; value && i < DUMP_STATISTICS_COUNT; i++)
        row->statistic[i] = *value;
}

/* What is shown for a leaf that is no tensor. */
static void describe_other(struct dump_row *row, const struct leaf *leaf)
{
    struct dump_value word = {.kind = DUMP_WORD};
    word.text = leaf->value.text ? leaf->value.text : "None";
    if (strcmp(leaf->type, "torch.Size") == 0) {
        fill(row, leaf->type, word.text, NULL);
    } else if (strcmp(leaf->type, "slice") == 0) {
        fill(row, leaf->type, leaf->value_shape ? leaf->value_shape : "()", NULL);
    } else if (strcmp(leaf->type, "ellipsis") == 0) {
        fill(row, leaf->type, "[]", &leaf->value);
    } else if (ends_in_peer(row->path_name)) {
        fill(row, leaf->type, "[]", &word);
        row->md5 = word.text;
    } else if (strcmp(leaf->type, "torch.ProcessGroup") == 0) {
        word.text = leaf->group_ranks ? leaf->group_ranks : "None";
        fill(row, leaf->type, "[]", &word);
        row->md5 = word.text;
    } else {
        struct dump_value value = leaf->value;
        if (value.kind == DUMP_ABSENT)
            value.text = NULL;
        fill(row, leaf->value_class ? leaf->value_class : "<class 'NoneType'>", "[]", &value);
    }
}

/* A new row at r->path; NULL without memory. */
static struct dump_row *add_row(struct reader *r)
{
    struct dump_tree *tree = r->tree;
    struct dump_row *rows =
        dump_grow(tree->rows, tree->row_count, &r->row_capacity, sizeof *tree->rows);
    if (!rows)
        return NULL;
    tree->rows = rows;
    struct dump_row *row = &rows[tree->row_count];
    *row = (struct dump_row){.api = tree->api_count - 1, .section = r->section, .depth = r->depth};
    row->path_name = row->name = arena_copy(&tree->arena, r->path.data, r->path.size);
    if (!row->name)
        return NULL;
    r->name_bytes += r->path.size;
    tree->row_count++;
    return row;
}

static enum plumb_code add_none(struct reader *r)
{
    struct dump_row *row = add_row(r);
    if (!row)
        return PLUMB_E_NOMEM;
    fill(row, "None", "None", NULL);
    return PLUMB_OK;
}

static enum plumb_code add_leaf(struct reader *r, const struct leaf *leaf)
{
    struct dump_row *row = add_row(r);
    if (!row)
        return PLUMB_E_NOMEM;
    row->type = leaf->type;
    row->value = leaf->value.text;
    row->requires_grad = leaf->requires_grad;
    row->md5 = leaf->md5 && *leaf->md5 ? leaf->md5 : NULL;
    row->group_ranks = leaf->group_ranks;
    row->spread = leaf->spread;
    row->dtensor = leaf->dtensor;
    r->checksums |= row->md5 != NULL;
    memcpy(row->statistic, leaf->statistic, sizeof row->statistic);
    if (leaf->data_name && *leaf->data_name) {
        row->data_name = leaf->data_name;
        const char *dot = strrchr(leaf->data_name, '.');
        size_t stem = dot ? (size_t)(dot - leaf->data_name) : strlen(leaf->data_name);
        if (strlen(row->name) != stem || memcmp(row->name, leaf->data_name, stem) != 0)
            row->name = arena_copy(&r->tree->arena, leaf->data_name, stem);
        if (!row->name)
            return PLUMB_E_NOMEM;
    }
    if (leaf->dtype && *leaf->dtype) {
        const char *call = r->tree->apis[row->api].name;
        row->tensor = true;
        row->uninitialised = leaf->uninitialised ||
                             (row->section == DUMP_OUTPUT && dump_takes_memory(call, strlen(call)));
        fill(row, leaf->dtype, leaf->shape ? leaf->shape->text : "None", NULL);
        if (leaf->shape) {
            row->ndim = leaf->shape->ndim;
            row->dims = leaf->shape->dims;
        }
    } else {
        describe_other(row, leaf);
    }
    return PLUMB_OK;
}

static enum plumb_code read_leaf(struct reader *r)
{
    struct leaf leaf = {0};
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = read_field(r, &leaf);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    if (!leaf.type)
        leaf.type = "";
    return add_leaf(r, &leaf);
}

/* A send or receive of a batch: its tensor is the leaf. */
static enum plumb_code read_p2p(struct reader *r)
{
    const char *op = NULL, *peer = NULL;
    size_t before = r->tree->row_count;
    enum json_event event;
    while ((event = json_next(&r->json)) == JSON_KEY) {
        enum plumb_code code = PLUMB_OK;
        if (json_is(&r->json, "tensor") && r->tree->row_count == before) {
            event = json_next(&r->json);
            if (event == JSON_OBJECT)
                code = read_leaf(r);
            else if (!json_skip(&r->json, event))
                code = PLUMB_E_FORMAT;
        } else if (json_is(&r->json, "op")) {
            op = read_text(r, json_next(&r->json), true);
            code = op ? PLUMB_OK : failure(r);
        } else if (json_is(&r->json, "peer")) {
            peer = read_text(r, json_next(&r->json), true);
            code = peer ? PLUMB_OK : failure(r);
        } else if (!json_skip(&r->json, JSON_KEY)) {
            code = PLUMB_E_FORMAT;
        }
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    if (r->tree->row_count == before) {
        enum plumb_code code = add_none(r);
        if (code)
            return code;
    }
    r->tree->rows[before].p2p_op = op;
    r->tree->rows[before].p2p_peer = peer;
    return PLUMB_OK;
}

enum object_kind { OBJECT_DICT, OBJECT_LEAF, OBJECT_P2P };

/* Looks ahead: the keys may stand in any order, though "type" nearly always comes first. */
static enum object_kind classify(const struct json *start)
{
    struct json json = *start;
    while (json_next(&json) == JSON_KEY) {
        bool type = json_is(&json, "type"), class_type = json_is(&json, "class_type");
        enum json_event event = json_next(&json);
        if (type && event == JSON_STRING)
            return OBJECT_LEAF;
        if (class_type && event == JSON_STRING && json_is(&json, "torch.distributed.P2POp"))
            return OBJECT_P2P;
        if (!json_skip(&json, event))
            break;
    }
    return OBJECT_DICT;
}

static enum plumb_code walk_below(struct reader *r, enum json_event event)
{
    bool list = event == JSON_ARRAY;
    struct buf key = {0};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; !code; i++) {
        event = json_next(&r->json);
        if (event == JSON_ARRAY_END || event == JSON_OBJECT_END)
            break;
        key.size = 0;
        if (list) {
            buf_printf(&key, "%zu", i);
        } else {
            python_string(&r->json, &key);
            event = json_next(&r->json);
        }
        if (event <= JSON_END) {
            code = PLUMB_E_FORMAT;
        } else if (key.failed) {
            code = PLUMB_E_NOMEM;
        } else if (list && r->flat) {
            code = dump_walk(r, event);
        } else {
            size_t size = r->path.size;
            if (dump_push(r, key.data ? key.data : "", key.size)) {
                r->depth++;
                code = dump_walk(r, event);
                r->depth--;
            } else if (r->path.failed) {
                code = PLUMB_E_NOMEM;
            } else if (!json_skip(&r->json, event)) {
                code = PLUMB_E_FORMAT;
            }
            if (!r->path.failed)
                dump_pop(r, size);
        }
    }
    buf_free(&key);
    return code;
}

enum plumb_code dump_walk(struct reader *r, enum json_event event)
{
    if (event <= JSON_END)
        return PLUMB_E_FORMAT;
    if (event != JSON_NULL && event != JSON_ARRAY && event != JSON_OBJECT)
        return PLUMB_OK;
    if (r->name_bytes > r->name_limit || r->json.depth > DUMP_MAX_NESTING) {
        enum plumb_code code = dump_warn(
            r->tree, "%s: %s, left out", r->path.data,
            r->json.depth > DUMP_MAX_NESTING ? "nested too deep" : "names take too much memory");
        return code ? code : json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    }
    if (event == JSON_NULL)
        return add_none(r);
    if (event == JSON_OBJECT) {
        switch (classify(&r->json)) {
        case OBJECT_LEAF:
            return read_leaf(r);
        case OBJECT_P2P:
            return read_p2p(r);
        case OBJECT_DICT:
            break;
        }
    }
    return walk_below(r, event);
}
