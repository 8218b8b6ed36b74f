/* One pass over a tensor that can be stopped. */
#include "task/condense/measure.h"

#include "metric/kept.h"

#include <stdlib.h>

enum { ELEMENTS_BETWEEN_QUESTIONS = 1 << 20 };

enum measure_outcome measure(struct measured *out, const struct plumb_tensor *tensor, unsigned keep,
                             bool (*stop)(const void *context), const void *context)
{
    struct kept_state state = {0};
    struct kernels kernels = kernels_current();
    enum measure_outcome outcome = MEASURE_DONE;
    *out = (struct measured){0};
    if (keep & PLUMB_KEEP_SKETCH && !(state.sketch = sketch_new()))
        return MEASURE_NO_MEMORY;
    for (uint64_t at = 0; at < tensor->count && !outcome; at += ELEMENTS_BETWEEN_QUESTIONS) {
        if (stop && stop(context))
            outcome = MEASURE_STOPPED;
        else
            kept_tensor(&state, &kernels, tensor, at, ELEMENTS_BETWEEN_QUESTIONS);
    }
    stats_finish(&state.stats, &out->stats);
    stats_finish_finite(&state.stats, &out->finite);
    out->ends = state.stats.ends;
    out->crc = state.crc;
    if (state.sketch)
        sketch_finish(state.sketch, &out->sketch);
    free(state.sketch);
    return outcome;
}
