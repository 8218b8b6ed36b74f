#include "base/json.h"

#include <stdlib.h>

/* Walks all events, and again with every other value skipped; decodes what can be decoded. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json json;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    json_init(&json, data, size);
    for (enum json_event event; (event = json_next(&json)) > JSON_END;) {
        size_t length;
        int64_t integer;
        if (event == JSON_NUMBER) {
            json_int64(&json, &integer);
            json_double(&json);
        } else if (event == JSON_KEY || event == JSON_STRING) {
            json_is(&json, "data_offsets");
            json_unescape(&json, text, &length);
        }
    }
    json_init(&json, data, size);
    unsigned turn = 0;
    for (enum json_event event; (event = json_next(&json)) > JSON_END;)
        if (++turn % 2 && !json_skip(&json, event))
            break;
    struct plumb_error err;
    json_fail(&json, 0, &err);
    free(text);
    return 0;
}
