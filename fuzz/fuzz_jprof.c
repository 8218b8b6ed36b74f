/* A dump.json of operators turned into Python: what is printed is ASCII, and quotes are closed at
 * the end of every line. */
#include "task/unittest/module.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const char *text, size_t size)
{
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' ? quoted : text[i] < ' ' || text[i] > '~')
            abort();
        if (quoted && text[i] == '\\')
            i++;
        else
            quoted ^= text[i] == '"';
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct calls calls = {0};
    struct plumb_error err = {0};
    if (calls_parse(&calls, data, size, &err)) {
        if (!err.message[0])
            abort();
    } else {
        for (size_t g = 0; g < calls.group_count; g++) {
            struct buf text = {0};
            if (module_text(&text, &calls, &calls.groups[g]))
                look(text.data, text.size);
            buf_free(&text);
        }
    }
    calls_close(&calls);
    return 0;
}
