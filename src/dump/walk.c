/* The lists and dicts of an entry, down to the leaves. */
#include "dump/python.h"
#include "dump/reader.h"

#include <string.h>

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
                code = dump_leaf(r);
            else if (!json_skip(&r->json, event))
                code = PLUMB_E_FORMAT;
        } else if (json_is(&r->json, "op")) {
            op = dump_word(r, json_next(&r->json), 0);
            code = op ? PLUMB_OK : dump_failure(r);
        } else if (json_is(&r->json, "peer")) {
            peer = dump_word(r, json_next(&r->json), 0);
            code = peer ? PLUMB_OK : dump_failure(r);
        } else if (!json_skip(&r->json, JSON_KEY)) {
            code = PLUMB_E_FORMAT;
        }
        if (code)
            return code;
    }
    if (event != JSON_OBJECT_END)
        return PLUMB_E_FORMAT;
    if (r->tree->row_count == before) {
        enum plumb_code code = dump_none(r);
        if (code)
            return code;
    }
    r->tree->rows[before].p2p_op = op;
    r->tree->rows[before].p2p_peer = peer;
    return PLUMB_OK;
}

enum object_kind { OBJECT_DICT, OBJECT_LEAF, OBJECT_P2P };

/* Looks ahead: the keys may stand in any order, though "type" nearly always comes first. */
static enum object_kind classify(const struct reader *r)
{
    if (dump_is_like_leaf(r))
        return OBJECT_LEAF;
    struct json json = r->json;
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
            char digits[NUMBER_BYTES];
            buf_append(&key, digits, number_integer((int64_t)i, digits));
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
        return dump_none(r);
    if (event == JSON_OBJECT) {
        switch (classify(r)) {
        case OBJECT_LEAF:
            return dump_leaf(r);
        case OBJECT_P2P:
            return read_p2p(r);
        case OBJECT_DICT:
            break;
        }
    }
    return walk_below(r, event);
}
