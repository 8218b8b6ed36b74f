/* What stands out along the steps of a run: plumb/steps.h has the rule. */
#include "task/compare/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool add(struct steps *s, const struct jump *jump)
{
    if (s->n_jumps == s->room) {
        const size_t room = s->room ? 2 * s->room : 64;
        struct jump *grown = realloc(s->jumps, room * sizeof *grown);
        if (!grown)
            return false;
        s->jumps = grown;
        s->room = room;
    }
    s->jumps[s->n_jumps++] = *jump;
    return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The norm, or the larger of |max| and |min|. */
static double value_at(const struct history *history, size_t cell, bool range)
{
    return range ? fmax(fabs(history->values[SERIES_MAX][cell]),
                        fabs(history->values[SERIES_MIN][cell]))
                 : history->values[SERIES_NORM][cell];
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Median and deviation of the finite values of the last steps before `at`. False: they are too
 * few. */
static bool usual_of(const struct history *history, size_t first, size_t at, bool range,
                     double *middle, double *deviation)
{
    double values[PLUMB_STEPS_HISTORY];
    size_t n = 0;
    for (size_t k = at; k-- && n < PLUMB_STEPS_HISTORY;) {
        const double value = value_at(history, first + k, range);
        if (isfinite(value))
            values[n++] = value;
    }
    if (n < PLUMB_STEPS_LEAST)
        return false;
    *middle = median(values, n);
    for (size_t k = 0; k < n; k++)
        values[k] = fabs(values[k] - *middle);
    *deviation = median(values, n);
    return true;
}

static double limit_of(double reference, double deviation)
{
    return PLUMB_STEPS_FACTOR * fmax(deviation, 0.01 * fabs(reference));
}

/* ---- Tensors --------------------------------------------------------------------------------- */

struct look {
    size_t tensor;
    bool range, earlier;
};

/* What a value is held against at a step. False: nothing. */
static bool reference_of(const struct steps *s, const struct look *look, size_t at, double *usual,
                         double *limit)
{
    const size_t first = look->tensor * s->n_steps;
    const struct history *from = look->earlier ? &s->before : &s->now;
    double deviation;
    if (!usual_of(from, first, at, look->range, usual, &deviation))
        return false;
    if (look->earlier)
        *usual = value_at(&s->before, first + at, look->range);
    *limit = limit_of(*usual, deviation);
    return isfinite(*usual);
}

/* Told where it begins: a new level is one jump, not one for each step until it is usual. */
static bool look_for_jumps(struct steps *s, const struct look *look)
{
    struct jump *open = NULL;
    double sign = 0;
    for (size_t at = 0; at < s->n_steps; at++) {
        double usual, limit;
        const double value = value_at(&s->now, look->tensor * s->n_steps + at, look->range);
        if (!isfinite(value) || !reference_of(s, look, at, &usual, &limit) ||
            fabs(value - usual) <= limit) {
            open = NULL;
            continue;
        }
        if (open && sign == copysign(1, value - usual)) {
            open->lasts++;
            continue;
        }
        sign = copysign(1, value - usual);
        if (!add(s, &(struct jump){.tensor = look->tensor,
                                   .at = at,
                                   .what = look->range ? "range" : "norm",
                                   .earlier = look->earlier,
                                   .value = value,
                                   .usual = usual,
                                   .limit = limit,
                                   .lasts = 1,
                                   .mood = PLUMB_MOOD_DOUBT}))
            return false;
        open = &s->jumps[s->n_jumps - 1];
    }
    return true;
}

static bool look_for_others(struct steps *s, size_t tensor, enum series which)
{
    struct jump *open = NULL;
    for (size_t at = 0; at < s->n_steps; at++) {
        const size_t cell = tensor * s->n_steps + at;
        if (!s->now.seen[cell] || s->now.values[which][cell] == 0) {
            open = NULL;
            continue;
        }
        if (open) {
            open->lasts++;
            continue;
        }
        /* What the earlier run has as well is no news. */
        const bool known =
            s->has_before && s->before.seen[cell] && s->before.values[which][cell] > 0;
        if (!add(s, &(struct jump){.tensor = tensor,
                                   .at = at,
                                   .what = which == SERIES_NAN ? "NaN" : "infinity",
                                   .value = s->now.values[which][cell],
                                   .usual = 0,
                                   .limit = NAN,
                                   .lasts = 1,
                                   .mood = known ? PLUMB_MOOD_DOUBT : PLUMB_MOOD_BAD}))
            return false;
        open = &s->jumps[s->n_jumps - 1];
    }
    return true;
}

static int compare_jumps(const void *a, const void *b)
{
    const struct jump *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    if (x->mood != y->mood)
        return x->mood < y->mood ? -1 : 1;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return strcmp(x->what, y->what) ? strcmp(x->what, y->what) : x->earlier - y->earlier;
}

bool steps_find_jumps(struct steps *s)
{
    for (size_t tensor = 0; tensor < s->n_names; tensor++) {
        for (int range = 0; range < 2; range++)
            for (int earlier = 0; earlier <= s->has_before; earlier++)
                if (!look_for_jumps(s, &(struct look){tensor, range, earlier}))
                    return false;
        if (!look_for_others(s, tensor, SERIES_NAN) || !look_for_others(s, tensor, SERIES_INF))
            return false;
    }
    if (s->n_jumps)
        qsort(s->jumps, s->n_jumps, sizeof *s->jumps, compare_jumps);
    return true;
}
