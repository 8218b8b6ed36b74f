/* Statistics of a run along its steps, put in order. */
#include "task/compare/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_steps(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool has_statistics(const struct plumb_record *record)
{
    return record->step >= 0 && record->recorded && record->recorded->tensor &&
           !record->recorded->uninitialised &&
           record->recorded->statistic_kind[PLUMB_STATISTIC_MAX] == PLUMB_VALUE_NUMBER;
}

static enum plumb_code find_steps(struct steps *s, const struct plumb_run *run,
                                  struct plumb_error *err)
{
    const size_t count = plumb_run_count(run);
    s->steps = arena_array(&s->arena, count + 1, sizeof *s->steps);
    if (!s->steps)
        return plumb_no_memory(err);
    size_t all = 0;
    for (size_t k = 0; k < count; k++) {
        const struct plumb_record *record = plumb_run_record(run, k);
        if (has_statistics(record))
            s->steps[all++] = record->step;
        else
            s->without += record->step >= 0 && (!record->recorded || record->recorded->tensor);
    }
    if (!all)
        return plumb_fail(err, PLUMB_E_ARG,
                          "%s has no steps with recorded statistics; a folder of step0, step1, ... "
                          "that a capture at task statistics or tensor wrote has",
                          plumb_run_path(run));
    qsort(s->steps, all, sizeof *s->steps, compare_steps);
    for (size_t k = 0; k < all; k++)
        if (!k || s->steps[k] != s->steps[k - 1])
            s->steps[s->n_steps++] = s->steps[k];
    return PLUMB_OK;
}

/* A tensor of a rank is a tensor of its own. */
static const char *name_of(struct arena *arena, const struct plumb_record *record)
{
    return record->rank >= 0 ? arena_printf(arena, "%s, rank %" PRId64, record->name, record->rank)
                             : record->name;
}

static bool find_names(struct steps *s, const struct plumb_run *run)
{
    const size_t count = plumb_run_count(run);
    s->names = arena_array(&s->arena, count + 1, sizeof *s->names);
    for (size_t k = 0; s->names && k < count; k++) {
        const struct plumb_record *record = plumb_run_record(run, k);
        if (!has_statistics(record))
            continue;
        const char *name = name_of(&s->arena, record);
        bool added;
        uint64_t *place = name ? map_put(&s->places, name, strlen(name), &added) : NULL;
        if (!place)
            return false;
        if (added) {
            *place = s->n_names;
            s->names[s->n_names++] = name;
        }
    }
    return s->names != NULL;
}

static double number_of(const struct plumb_recorded *recorded, enum plumb_statistic which)
{
    const struct plumb_value value = plumb_recorded_statistic(recorded, which);
    return value.kind == PLUMB_VALUE_NUMBER ? value.number : NAN;
}

/* How many are not finite; where only statistics tell, one at least. */
static void count_others(const struct plumb_recorded *recorded, double *nan, double *inf)
{
    *nan = *inf = 0;
    const struct plumb_kept *kept = plumb_recorded_kept(recorded);
    if (kept) {
        *nan = (double)kept->nan;
        *inf = (double)(kept->pos_inf + kept->neg_inf);
        return;
    }
    for (unsigned k = 0; k < PLUMB_STATISTICS; k++)
        if (recorded->statistic_kind[k] == PLUMB_VALUE_NUMBER) {
            const double number = plumb_recorded_statistic(recorded, k).number;
            *nan = isnan(number) ? 1 : *nan;
            /* The norm of finite numbers may overflow, and the mean with it. */
            *inf =
                isinf(number) && (k == PLUMB_STATISTIC_MAX || k == PLUMB_STATISTIC_MIN) ? 1 : *inf;
        }
}

static bool fill(struct steps *s, struct history *history, const struct plumb_run *run)
{
    const size_t cells = s->n_names * s->n_steps;
    history->seen = arena_array(&s->arena, cells + 1, 1);
    for (int k = 0; k < SERIES; k++)
        if (!(history->values[k] = arena_array(&s->arena, cells + 1, sizeof(double))))
            return false;
    if (!history->seen)
        return false;
    for (int k = 0; k < SERIES; k++)
        for (size_t i = 0; i < cells; i++)
            history->values[k][i] = NAN;
    for (size_t k = 0; k < plumb_run_count(run); k++) {
        const struct plumb_record *record = plumb_run_record(run, k);
        if (!has_statistics(record))
            continue;
        const int64_t *step =
            bsearch(&record->step, s->steps, s->n_steps, sizeof *s->steps, compare_steps);
        const char *name = name_of(&s->arena, record);
        if (!name)
            return false;
        const uint64_t *place = step ? map_get(&s->places, name, strlen(name)) : NULL;
        if (!place)
            continue;
        const size_t cell = (size_t)*place * s->n_steps + (size_t)(step - s->steps);
        history->seen[cell] = 1;
        history->values[SERIES_NORM][cell] = number_of(record->recorded, PLUMB_STATISTIC_NORM);
        history->values[SERIES_MAX][cell] = number_of(record->recorded, PLUMB_STATISTIC_MAX);
        history->values[SERIES_MIN][cell] = number_of(record->recorded, PLUMB_STATISTIC_MIN);
        history->values[SERIES_MEAN][cell] = number_of(record->recorded, PLUMB_STATISTIC_MEAN);
        count_others(record->recorded, &history->values[SERIES_NAN][cell],
                     &history->values[SERIES_INF][cell]);
    }
    return true;
}

enum plumb_code steps_collect(struct steps *s, const struct plumb_run *run,
                              const struct plumb_run *earlier, struct plumb_error *err)
{
    *s = (struct steps){.has_before = earlier != NULL};
    enum plumb_code code = find_steps(s, run, err);
    if (code)
        return code;
    return find_names(s, run) && fill(s, &s->now, run) && (!earlier || fill(s, &s->before, earlier))
               ? PLUMB_OK
               : plumb_no_memory(err);
}

void steps_release(struct steps *s)
{
    map_free(&s->places);
    arena_free(&s->arena);
    free(s->jumps);
}
