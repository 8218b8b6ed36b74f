/* One pass over a tensor that can be stopped. */
#include "task/condense/measure.h"

enum { ELEMENTS_BETWEEN_QUESTIONS = 1 << 20 };

unsigned measure_wanted(unsigned keep)
{
    return (keep & PLUMB_KEEP_HASH ? KEPT_HASH : 0) | (keep & PLUMB_KEEP_SKETCH ? KEPT_SKETCH : 0);
}

bool measure_take(struct measured *out, struct kept_state *state)
{
    *out = (struct measured){.ends = state->stats.ends, .crc = state->crc, .hash = state->hash};
    stats_finish(&state->stats, &out->stats);
    stats_finish_finite(&state->stats, &out->finite);
    return !state->sketch || sketch_finish(state->sketch, &out->sketch);
}

enum measure_outcome measure(struct measured *out, const struct plumb_tensor *tensor, unsigned keep,
                             bool (*stop)(const void *context), const void *context)
{
    struct kept_state state;
    struct kernels kernels = kernels_current();
    enum measure_outcome outcome = MEASURE_DONE;
    *out = (struct measured){0};
    if (!kept_begin(&state, tensor, measure_wanted(keep)))
        outcome = MEASURE_NO_MEMORY;
    for (uint64_t at = 0; at < tensor->count && !outcome; at += ELEMENTS_BETWEEN_QUESTIONS) {
        if (stop && stop(context))
            outcome = MEASURE_STOPPED;
        else
            kept_tensor(&state, &kernels, tensor, at, ELEMENTS_BETWEEN_QUESTIONS);
    }
    if (!outcome && !measure_take(out, &state))
        outcome = MEASURE_NO_MEMORY;
    kept_end(&state);
    return outcome;
}
