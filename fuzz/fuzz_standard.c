#include "verdict/rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any text is a standard that judges without a crash, or an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plumb_standard standard = {.name = "fuzz"};
    struct plumb_error err;
    if (standard_parse(&standard, (const char *)data, size, &err) == PLUMB_OK) {
        struct plumb_metrics metrics = {.count = 100, .close = 99, .max_abs = 0.5};
        struct plumb_metric_spec spec = {.groups = 0};
        struct plumb_verdict verdict;
        plumb_standard_spec(&standard, &spec);
        plumb_standard_judge(&standard, &metrics, &verdict);
        if (verdict.severity == PLUMB_FAILED && !verdict.rule[0])
            abort();
        if (!(plumb_standard_jump(&standard) >= 0))
            abort();
    }
    arena_free(&standard.arena);
    return 0;
}
