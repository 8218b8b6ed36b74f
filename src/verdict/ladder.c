/* The steps of the pre-check's verdict: cosine, largest error, dual ratios. */
#include "verdict/ladder.h"

#include "base/number.h"

#include <math.h>

const double ladder_limit[DUALS] = {0.01, 0.001, 0.0001};

static const char *const dual_name[DUALS] = {"dual-100", "dual-1000", "dual-10000"};

enum cosine_case cosine_case(uint64_t count, bool device_zero, bool bench_zero, double cosine)
{
    if (count == 1)
        return COSINE_ONE_ELEMENT;
    if (device_zero || bench_zero)
        return device_zero && bench_zero ? COSINE_BOTH_ZERO
               : device_zero             ? COSINE_DEVICE_ZERO
                                         : COSINE_BENCH_ZERO;
    return isnan(cosine) ? COSINE_NAN : COSINE_GIVEN;
}

/* What to say before the deciding rule; NULL: out of memory. */
static const char *note(const struct ladder *ladder, struct arena *arena)
{
    switch (ladder->which) {
    case COSINE_ONE_ELEMENT:
        return "a single element has no cosine similarity; ";
    case COSINE_BOTH_ZERO:
        return ladder->most > 0
                   ? arena_printf(arena,
                                  "no value of either side is above %.6g, so there is no cosine "
                                  "similarity; ",
                                  ladder->most)
                   : "both sides are zero, so there is no cosine similarity; ";
    case COSINE_NAN:
        return "the cosine similarity is NaN, as there are NaN or infinite values; ";
    default:
        return "";
    }
}

static bool passes(const struct ladder *ladder, int dual)
{
    return ladder->dual[dual] > ladder->rules->dual[dual];
}

static bool set_dual(const struct ladder *ladder, struct arena *arena, struct details_row *row,
                     int dual, enum check_status status)
{
    row->status = status;
    char number[NUMBER_BYTES];
    const char *first = note(ladder, arena);
    row->message = first ? arena_printf(arena, "%s%s %s is %s %g", first, dual_name[dual],
                                        number_brief(ladder->dual[dual], 6, number),
                                        passes(ladder, dual) ? "above" : "not above",
                                        ladder->rules->dual[dual])
                         : NULL;
    return row->message;
}

static bool set_cosine(const struct ladder *ladder, struct arena *arena, struct details_row *row)
{
    char number[NUMBER_BYTES];
    const bool device = ladder->which == COSINE_DEVICE_ZERO;
    row->status = STATUS_ERROR;
    if ((device || ladder->which == COSINE_BENCH_ZERO) && ladder->most > 0)
        row->message = arena_printf(arena, "no value of the %s is above %.6g, those of the %s are",
                                    device ? "device" : "benchmark", ladder->most,
                                    device ? "benchmark" : "device");
    else if (device)
        row->message = "the device's values are all zero, those of the benchmark are not";
    else if (ladder->which == COSINE_BENCH_ZERO)
        row->message = "the benchmark's values are all zero, those of the device are not";
    else
        row->message = arena_printf(arena, "cosine similarity %s is not above %g",
                                    number_brief(ladder->cosine, 6, number), ladder->rules->cosine);
    return row->message;
}

bool ladder_climb(const struct ladder *ladder, struct arena *arena, struct details_row *row,
                  enum ladder_step *end)
{
    *end = STEP_COSINE;
    if (ladder->which == COSINE_DEVICE_ZERO || ladder->which == COSINE_BENCH_ZERO ||
        (ladder->which == COSINE_GIVEN && !(ladder->cosine > ladder->rules->cosine)))
        return set_cosine(ladder, arena, row);

    if (ladder->max_abs < ladder->rules->max_abs) {
        *end = STEP_MAX_ABS;
        const char *first = note(ladder, arena);
        row->status = STATUS_PASS;
        row->message = first ? arena_printf(arena, "%smaximum absolute error %.6g is below %g",
                                            first, ladder->max_abs, ladder->rules->max_abs)
                             : NULL;
        return row->message;
    }

    /* The first ratio tells error from the rest, the second warning from pass. */
    int first = ladder->half ? DUAL_100 : DUAL_1000, second = first + 1;
    if (!passes(ladder, first)) {
        *end = ladder->half ? STEP_DUAL_100 : STEP_DUAL_1000;
        return set_dual(ladder, arena, row, first, STATUS_ERROR);
    }
    *end = ladder->half ? STEP_DUAL_1000 : STEP_DUAL_10000;
    return set_dual(ladder, arena, row, second,
                    passes(ladder, second) ? STATUS_PASS : STATUS_WARNING);
}
