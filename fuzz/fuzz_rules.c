#include "verdict/ladder_rules.h"
#include "verdict/profile.h"
#include "verdict/profiles.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any text is a set of rules that prints, reads back and prints the same, or an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct plumb_error err = {0};
    struct buf text = {0}, again = {0};
    const struct standard_set *set = NULL, *back = NULL;
    if (rules_parse(precheck_profiles, (const char *)data, size, &arena, &set, &err)) {
        if (set || !err.message[0])
            abort();
    } else {
        rules_print(&text, set);
        if (!text.failed &&
            rules_parse(precheck_profiles, text.data, text.size, &arena, &back, &err) == PLUMB_OK) {
            rules_print(&again, back);
            if (!again.failed && strcmp(text.data, again.data) != 0)
                abort();
        } else if (err.code == PLUMB_E_FORMAT) {
            abort();
        }
    }
    buf_free(&text);
    buf_free(&again);
    arena_free(&arena);
    return 0;
}
