/* JSON values in the words of Python: str, repr, and its numbers. */
#include "dump/python.h"

#include <math.h>
#include <string.h>

void python_string(const struct json *json, struct buf *out)
{
    struct json copy = *json;
    size_t size = out->size, length = json->length;
    buf_append(out, json->text, length);
    if (!json->escaped || out->failed)
        return;
    if (json_unescape(&copy, out->data + size, &length)) {
        out->size = size + length;
        out->data[out->size] = '\0';
    } else {
        memcpy(out->data + size, json->text, json->length);
    }
}

void python_quote(const char *text, size_t length, struct buf *out)
{
    const char *quote = memchr(text, '\'', length) && !memchr(text, '"', length) ? "\"" : "'";
    buf_text(out, quote);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\\' || c == (unsigned char)*quote)
            buf_printf(out, "\\%c", c);
        else if (c == '\n')
            buf_text(out, "\\n");
        else if (c == '\t')
            buf_text(out, "\\t");
        else if (c == '\r')
            buf_text(out, "\\r");
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_append(out, text + i, 1);
    }
    buf_text(out, quote);
}

void python_float(double value, char text[NUMBER_BYTES])
{
    if (isnan(value))
        memcpy(text, "nan", 4);
    else
        number_exact(value, true, text);
}

bool python_number(const struct json *json, double *value, char text[NUMBER_BYTES])
{
    bool integer = true;
    for (size_t i = 0; i < json->length && integer; i++)
        integer = json->text[i] == '-' || (json->text[i] >= '0' && json->text[i] <= '9');
    *value = json_double(json);
    if (integer && json->length < NUMBER_BYTES) {
        memcpy(text, json->text, json->length);
        text[json->length] = '\0';
        if (strcmp(text, "-0") == 0)
            memcpy(text, "0", 2);
    } else {
        python_float(*value, text);
    }
    return integer;
}

static void put_quoted(const struct json *json, struct buf *out)
{
    struct buf plain = {0};
    python_string(json, &plain);
    python_quote(plain.data ? plain.data : "", plain.size, out);
    out->failed |= plain.failed;
    buf_free(&plain);
}

bool python_text(struct json *json, enum json_event event, struct buf *out)
{
    char text[NUMBER_BYTES];
    double number;
    unsigned open = 0;
    bool comma = false;
    for (;; event = json_next(json)) {
        bool closes = event == JSON_ARRAY_END || event == JSON_OBJECT_END;
        if (comma && !closes)
            buf_text(out, ", ");
        comma = true;
        switch (event) {
        case JSON_ARRAY:
        case JSON_OBJECT:
            buf_text(out, event == JSON_ARRAY ? "[" : "{");
            comma = false;
            open++;
            break;
        case JSON_ARRAY_END:
        case JSON_OBJECT_END:
            buf_text(out, event == JSON_ARRAY_END ? "]" : "}");
            open--;
            break;
        case JSON_KEY:
            put_quoted(json, out);
            buf_text(out, ": ");
            comma = false;
            break;
        case JSON_STRING:
            if (open)
                put_quoted(json, out);
            else
                python_string(json, out);
            break;
        case JSON_NUMBER:
            python_number(json, &number, text);
            buf_text(out, text);
            break;
        case JSON_TRUE:
        case JSON_FALSE:
            buf_text(out, event == JSON_TRUE ? "True" : "False");
            break;
        case JSON_NULL:
            buf_text(out, "None");
            break;
        case JSON_ERROR:
        case JSON_END:
            return false;
        }
        if (!open)
            return true;
    }
}
