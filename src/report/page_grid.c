/* Ranks or steps down, calls across. */
#include "base/arena.h"
#include "base/map.h"
#include "report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_numbers(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The different ranks or steps, ascending. */
static size_t find_lines(const struct plumb_report_call *calls, size_t count, bool steps,
                         int32_t *lines)
{
    for (size_t k = 0; k < count; k++)
        lines[k] = steps ? calls[k].step : calls[k].rank;
    qsort(lines, count, sizeof *lines, compare_numbers);
    size_t n = 0;
    for (size_t k = 0; k < count; k++)
        if (!k || lines[k] != lines[k - 1])
            lines[n++] = lines[k];
    return n;
}

struct grid_room {
    struct map columns;
    const char **across, **down;
    unsigned char *moods;
    float *values;
    int32_t *rows;
};

static double value_of(const struct plumb_report_call *call, enum plumb_grid_value value)
{
    return value == PLUMB_GRID_DISTANCE ? call->total : call->local;
}

static bool fill_grid(struct grid_room *g, const struct plumb_report_call *calls, size_t count,
                      bool steps, enum plumb_grid_value value, const int32_t *lines, size_t n_lines)
{
    const size_t across = g->columns.count;
    g->moods = malloc(n_lines * across + 1);
    g->values = malloc((n_lines * across + 1) * sizeof *g->values);
    g->rows = malloc((n_lines * across + 1) * sizeof *g->rows);
    if (!g->moods || !g->values || !g->rows)
        return false;
    memset(g->moods, 255, n_lines * across);
    for (size_t k = 0; k < n_lines * across; k++) {
        g->values[k] = NAN;
        g->rows[k] = -1;
    }
    for (size_t k = 0; k < count; k++) {
        const int32_t line = steps ? calls[k].step : calls[k].rank;
        const int32_t *at = bsearch(&line, lines, n_lines, sizeof *lines, compare_numbers);
        const size_t cell = (size_t)(at - lines) * across +
                            (size_t)*map_get(&g->columns, calls[k].name, strlen(calls[k].name));
        if (calls[k].mood < g->moods[cell]) {
            g->moods[cell] = (unsigned char)calls[k].mood;
            g->rows[cell] = calls[k].row;
        }
        const double one = value_of(&calls[k], value);
        if (!(g->values[cell] >= one) && !isnan(one))
            g->values[cell] = (float)one;
    }
    return true;
}

void plumb_report_call_grid(struct plumb_report *report, const struct plumb_report_call *calls,
                            size_t count, enum plumb_grid_lines down, enum plumb_grid_value value)
{
    const bool steps = down == PLUMB_GRID_STEPS;
    struct grid_room g = {0};
    struct arena arena = {0};
    int32_t *lines = malloc((count + 1) * sizeof *lines);
    const size_t n = lines ? find_lines(calls, count, steps, lines) : 0;
    bool fine = lines != NULL;
    if (fine && n > 1) {
        g.across = calloc(count + 1, sizeof *g.across);
        g.down = calloc(n + 1, sizeof *g.down);
        fine = g.across && g.down;
        for (size_t k = 0; k < count && fine; k++) {
            bool added;
            uint64_t *place = map_put(&g.columns, calls[k].name, strlen(calls[k].name), &added);
            fine = place != NULL;
            if (fine && added) {
                *place = g.columns.count - 1;
                g.across[*place] = calls[k].name;
            }
        }
        for (size_t k = 0; k < n && fine; k++) {
            g.down[k] = arena_printf(&arena, "%s %" PRId32, steps ? "step" : "rank", lines[k]);
            fine = g.down[k] != NULL;
        }
        fine = fine && fill_grid(&g, calls, count, steps, value, lines, n);
        if (fine)
            plumb_report_grid(report,
                              &(struct plumb_report_grid){.title = steps ? "steps" : "ranks",
                                                          .unit = value == PLUMB_GRID_DISTANCE
                                                                      ? "relative distance"
                                                                      : "standard deviations",
                                                          .down = g.down,
                                                          .across = g.across,
                                                          .down_count = n,
                                                          .across_count = g.columns.count,
                                                          .moods = g.moods,
                                                          .values = g.values,
                                                          .rows = g.rows});
    }
    map_free(&g.columns);
    free(g.across);
    free(g.down);
    free(g.moods);
    free(g.values);
    free(g.rows);
    free(lines);
    arena_free(&arena);
    report->grids.failed |= !fine;
}
