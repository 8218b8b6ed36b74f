/* Leaves: the tensors, scalars and Nones of an entry, each a row. */
#include "dump/outline.h"
#include "dump/python.h"
#include "dump/reader.h"
#include "dump/uninitialised.h"

#include <string.h>

/* A leaf's fields, as far as they were there. */
struct leaf {
    const char *type, *dtype, *data_name, *md5, *requires_grad, *group_ranks;
    const struct dump_shape *shape;
    struct dump_value statistic[DUMP_STATISTICS_COUNT], value;
    const char *value_class; /* as Python names the value's type */
    const char *value_shape; /* of a list value, as numpy prints it */
    bool spread;             /* a part of a tensor that several processes have */
    const char *dtensor;     /* how, as it is written; or NULL */
    bool uninitialised;
};

enum plumb_code dump_failure(const struct reader *r)
{
    return r->json.error ? PLUMB_E_FORMAT : PLUMB_E_NOMEM;
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
    out->text =
        event == JSON_TRUE || event == JSON_FALSE ? dump_word(r, event, 0) : dump_text(r, event);
    return out->text ? PLUMB_OK : dump_failure(r);
}

const char *dump_value_text(const struct dump_value *value, char text[NUMBER_BYTES])
{
    if (value->text || value->kind != DUMP_NUMBER)
        return value->text;
    python_float(value->number, text);
    return text;
}

/* The same without the text of a number that tells it as well; there are four of them a tensor. */
static enum plumb_code read_statistic(struct reader *r, enum json_event event,
                                      struct dump_value *out)
{
    if (event != JSON_NUMBER || is_integer(&r->json))
        return read_value(r, event, out);
    *out = (struct dump_value){.kind = DUMP_NUMBER, .number = json_double(&r->json)};
    return PLUMB_OK;
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

enum field {
    FIELD_MAX, /* statistics first, in their order */
    FIELD_MIN,
    FIELD_MEAN,
    FIELD_NORM,
    FIELD_TYPE,
    FIELD_DTYPE,
    FIELD_SHAPE,
    FIELD_REQUIRES_GRAD,
    FIELD_DATA_NAME,
    FIELD_MD5,
    FIELD_VALUE,
    FIELD_GROUP_RANKS,
    FIELD_DTENSOR,
    FIELD_UNINITIALISED,
    FIELD_OTHER
};
_Static_assert((int)FIELD_OTHER <= DUMP_FIELDS, "a last word for each");

/* Which one the key that was just read is. */
static enum field find_field(const struct json *json)
{
#define FIELD(text)                                                                                \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
    static const struct {
        const char *key;
        size_t length;
    } fields[] = {
        [FIELD_MAX] = FIELD("Max"),
        [FIELD_MIN] = FIELD("Min"),
        [FIELD_MEAN] = FIELD("Mean"),
        [FIELD_NORM] = FIELD("Norm"),
        [FIELD_TYPE] = FIELD("type"),
        [FIELD_DTYPE] = FIELD("dtype"),
        [FIELD_SHAPE] = FIELD("shape"),
        [FIELD_REQUIRES_GRAD] = FIELD("requires_grad"),
        [FIELD_DATA_NAME] = FIELD("data_name"),
        [FIELD_MD5] = FIELD("md5"),
        [FIELD_VALUE] = FIELD("value"),
        [FIELD_GROUP_RANKS] = FIELD("group_ranks"),
        [FIELD_DTENSOR] = FIELD("dtensor"),
        [FIELD_UNINITIALISED] = FIELD(DUMP_UNINITIALISED),
    };
#undef FIELD
    unsigned i = 0;
    if (json->escaped) {
        while (i < FIELD_OTHER && !json_is(json, fields[i].key))
            i++;
        return i;
    }
    for (; i < FIELD_OTHER; i++)
        if (fields[i].length == json->length && fields[i].key[0] == *json->text &&
            memcmp(fields[i].key, json->text, json->length) == 0)
            break;
    return i;
}

static enum plumb_code read_words(struct reader *r, enum field field, const char **out)
{
    const enum json_event event = json_next(&r->json);
    *out = event == JSON_NULL ? NULL : dump_word(r, event, field);
    return event == JSON_NULL || *out ? PLUMB_OK : dump_failure(r);
}

static enum plumb_code read_name(struct reader *r, const char **out)
{
    const enum json_event event = json_next(&r->json);
    *out = event == JSON_NULL ? NULL : dump_text(r, event);
    return event == JSON_NULL || *out ? PLUMB_OK : dump_failure(r);
}

static enum plumb_code read_other_value(struct reader *r, struct leaf *leaf)
{
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

static enum plumb_code read_field(struct reader *r, enum field field, struct leaf *leaf)
{
    switch (field) {
    case FIELD_MAX:
    case FIELD_MIN:
    case FIELD_MEAN:
    case FIELD_NORM:
        return read_statistic(r, json_next(&r->json), &leaf->statistic[field]);
    case FIELD_TYPE:
        return read_words(r, field, &leaf->type);
    case FIELD_DTYPE:
        return read_words(r, field, &leaf->dtype);
    case FIELD_SHAPE:
        leaf->shape = dump_shape(r, json_next(&r->json));
        return leaf->shape ? PLUMB_OK : dump_failure(r);
    case FIELD_REQUIRES_GRAD:
        return read_words(r, field, &leaf->requires_grad);
    case FIELD_DATA_NAME:
        return read_name(r, &leaf->data_name);
    case FIELD_MD5:
        return read_name(r, &leaf->md5);
    case FIELD_GROUP_RANKS:
        return read_words(r, field, &leaf->group_ranks);
    case FIELD_VALUE:
        return read_other_value(r, leaf);
    case FIELD_DTENSOR: {
        const uint8_t *begin = r->json.next;
        if (outline_spread(&r->json, &leaf->spread))
            return PLUMB_E_FORMAT;
        leaf->dtensor = dump_intern(r, (const char *)begin, (size_t)(r->json.next - begin), field);
        return leaf->dtensor ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    case FIELD_UNINITIALISED: {
        enum json_event event = json_next(&r->json);
        leaf->uninitialised = event == JSON_TRUE;
        return json_skip(&r->json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    }
    default:
        return json_skip(&r->json, JSON_KEY) ? PLUMB_OK : PLUMB_E_FORMAT;
    }
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

enum plumb_code dump_none(struct reader *r)
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
        row->tensor = true;
        row->uninitialised =
            leaf->uninitialised || (row->section == DUMP_OUTPUT && r->takes_memory);
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

/* Leaves have the same keys in the same order, as a rule: the k-th is tried first. */
static enum json_event next_field(struct reader *r, unsigned k, enum field *field)
{
    if (k >= DUMP_FIELDS) {
        const enum json_event event = json_next(&r->json);
        *field = event == JSON_KEY ? find_field(&r->json) : FIELD_OTHER;
        return event;
    }
    bool same;
    const enum json_event event = json_next_key(&r->json, &r->key_spans[k], &same);
    if (event == JSON_KEY && !same)
        r->key_fields[k] = (uint8_t)find_field(&r->json);
    *field = r->key_fields[k];
    return event;
}

enum plumb_code dump_leaf(struct reader *r)
{
    enum field field;
    struct leaf leaf = {0};
    enum json_event event;
    for (unsigned k = 0; (event = next_field(r, k, &field)) == JSON_KEY; k++) {
        enum plumb_code code = read_field(r, field, &leaf);
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    if (!leaf.type)
        leaf.type = "";
    return add_leaf(r, &leaf);
}

bool dump_is_like_leaf(const struct reader *r)
{
    return r->key_fields[0] == FIELD_TYPE && json_repeats_string(&r->json, &r->key_spans[0]);
}
