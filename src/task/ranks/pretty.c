/* Writing indented JSON, and laying recorded values out anew. */
#include "task/ranks/pretty.h"

#include "base/json.h"
#include "base/json_put.h"

static void new_line(struct pretty *out)
{
    buf_text(&out->text, "\n");
    buf_repeat(&out->text, ' ', (size_t)out->depth * out->indent);
}

void pretty_open(struct pretty *out, char bracket)
{
    buf_append(&out->text, &bracket, 1);
    out->depth++;
    out->first = true;
}

void pretty_close(struct pretty *out, char bracket)
{
    out->depth--;
    if (!out->first)
        new_line(out);
    buf_append(&out->text, &bracket, 1);
    out->first = false;
}

void pretty_item(struct pretty *out)
{
    if (!out->first)
        buf_text(&out->text, ",");
    new_line(out);
    out->first = false;
}

void pretty_key(struct pretty *out, const char *key)
{
    pretty_item(out);
    pretty_string(out, key);
    buf_text(&out->text, ": ");
}

void pretty_string(struct pretty *out, const char *text)
{
    json_put_string(&out->text, text);
}

void pretty_word(struct pretty *out, const char *word)
{
    buf_text(&out->text, word);
}

static void raw_string(struct pretty *out, const struct json *json)
{
    buf_text(&out->text, "\"");
    buf_append(&out->text, json->text, json->length);
    buf_text(&out->text, "\"");
}

bool pretty_value(struct pretty *out, const void *bytes, size_t size)
{
    struct json json;
    const unsigned depth = out->depth;
    const size_t start = out->text.size;
    bool in_object[JSON_MAX_DEPTH + 1] = {false};
    json_init(&json, bytes, size);
    for (enum json_event event; (event = json_next(&json)) > JSON_END;) {
        bool closes = event == JSON_OBJECT_END || event == JSON_ARRAY_END;
        unsigned level = out->depth - depth;
        if (!closes && event != JSON_KEY && level && !in_object[level])
            pretty_item(out);
        switch (event) {
        case JSON_OBJECT:
        case JSON_ARRAY:
            pretty_open(out, event == JSON_OBJECT ? '{' : '[');
            in_object[level + 1] = event == JSON_OBJECT;
            break;
        case JSON_OBJECT_END:
        case JSON_ARRAY_END:
            pretty_close(out, event == JSON_OBJECT_END ? '}' : ']');
            break;
        case JSON_KEY:
            pretty_item(out);
            raw_string(out, &json);
            buf_text(&out->text, ": ");
            break;
        case JSON_STRING:
            raw_string(out, &json);
            break;
        case JSON_NUMBER:
            buf_append(&out->text, json.text, json.length);
            break;
        case JSON_TRUE:
            pretty_word(out, "true");
            break;
        case JSON_FALSE:
            pretty_word(out, "false");
            break;
        default:
            pretty_word(out, "null");
            break;
        }
    }
    if (!json.error)
        return true;
    out->depth = depth;
    out->first = false;
    if (!out->text.failed)
        out->text.size = start;
    pretty_word(out, "null");
    return false;
}
