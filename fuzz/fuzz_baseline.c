/* Baselines: whatever is in them, they are refused with a message or compare as accepted. */
#include "verdict/baseline_parts.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct plumb_baseline_options options = {.seed = 1234};
    struct plumb_baseline *baseline = NULL;
    struct plumb_baseline_diff *diff = NULL;
    struct plumb_error err = {0};
    if (baseline_parse(data, size, &options, &baseline, &err)) {
        if (!err.message[0] || baseline)
            abort();
        return 0;
    }
    if (plumb_baseline_compare(baseline, baseline, &diff, &err))
        abort();
    char *text = plumb_baseline_diff_text(diff, 3);
    if (diff->n_changes || diff->count[PLUMB_STANDING_ACCEPTED] != baseline->count || !text)
        abort();
    free(text);
    plumb_baseline_diff_free(diff);
    plumb_baseline_free(baseline);
    return 0;
}
