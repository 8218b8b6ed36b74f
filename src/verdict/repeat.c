/* Repeats of the same program: their calls, found by name. */
#include "verdict/repeat.h"

#include "base/map.h"
#include "run/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct place {
    const struct case_file *file;
    size_t call;
};

struct repeat {
    struct plumb_run *run;
    struct case_file **files; /* by tree; NULL: not readable */
    struct place *places;
    struct map index; /* "call/step/rank" to place */
    struct arena arena;
};

struct repeats {
    struct repeat *list;
    size_t n;
};

/* The step of all trees; INT64_MIN when there are several. */
static int64_t only_step(const struct plumb_run *run)
{
    for (size_t t = 1; t < run->tree_count; t++)
        if (run->trees[t].step != run->trees[0].step)
            return INT64_MIN;
    return run->tree_count ? run->trees[0].step : INT64_MIN;
}

static char *key_of(struct arena *arena, const char *name, int64_t step, int64_t rank)
{
    return arena_printf(arena, "%s/%" PRId64 "/%" PRId64, name, step, rank);
}

/* Where target and repeat have one step each, that is the same one whatever it is called. */
static enum plumb_code list_calls(struct repeat *r, int64_t target_step, struct plumb_error *err)
{
    const bool one = target_step != INT64_MIN && only_step(r->run) != INT64_MIN;
    size_t n = 0;
    r->files = calloc(r->run->tree_count + 1, sizeof *r->files);
    if (!r->files)
        return plumb_no_memory(err);
    for (size_t t = 0; t < r->run->tree_count; t++) {
        struct plumb_error why;
        if (!r->run->trees[t].debug && !case_file_open(r->run->trees[t].path, &r->files[t], &why))
            n += case_count(r->files[t]);
    }
    r->places = calloc(n + 1, sizeof *r->places);
    if (!r->places)
        return plumb_no_memory(err);
    n = 0;
    for (size_t t = 0; t < r->run->tree_count; t++)
        for (size_t i = 0; r->files[t] && i < case_count(r->files[t]); i++) {
            const struct dump_tree *tree = &r->run->trees[t];
            const char *key = key_of(&r->arena, case_place(r->files[t], i)->name,
                                     one ? target_step : tree->step, tree->rank);
            uint64_t *place = key ? map_put(&r->index, key, strlen(key), NULL) : NULL;
            if (!place)
                return plumb_no_memory(err);
            r->places[n] = (struct place){r->files[t], i};
            *place = n++;
        }
    return PLUMB_OK;
}

enum plumb_code repeats_open(const char *const *paths, size_t n, const struct plumb_run *target,
                             struct repeats **out, struct plumb_error *err)
{
    *out = NULL;
    if (!n)
        return PLUMB_OK;
    struct repeats *all = calloc(1, sizeof *all);
    if (!all || !(all->list = calloc(n, sizeof *all->list))) {
        free(all);
        return plumb_no_memory(err);
    }
    all->n = n;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code; k++) {
        code = plumb_run_open(&all->list[k].run, paths[k], err);
        if (!code)
            code = list_calls(&all->list[k], only_step(target), err);
    }
    if (code)
        repeats_free(all);
    else
        *out = all;
    return code;
}

void repeats_free(struct repeats *repeats)
{
    for (size_t k = 0; k < repeats_count(repeats); k++) {
        struct repeat *r = &repeats->list[k];
        for (size_t t = 0; r->files && t < r->run->tree_count; t++)
            case_file_close(r->files[t]);
        free(r->files);
        free(r->places);
        map_free(&r->index);
        arena_free(&r->arena);
        plumb_run_free(r->run);
    }
    if (repeats)
        free(repeats->list);
    free(repeats);
}

size_t repeats_count(const struct repeats *repeats)
{
    return repeats ? repeats->n : 0;
}

const struct plumb_run *repeats_run(const struct repeats *repeats, size_t k)
{
    return repeats->list[k].run;
}

const struct case_file *repeats_find(const struct repeats *repeats, size_t k, const char *name,
                                     int64_t step, int64_t rank, size_t *call)
{
    const struct repeat *r = &repeats->list[k];
    struct arena arena = {0};
    const char *key = key_of(&arena, name, step, rank);
    const uint64_t *place = key ? map_get(&r->index, key, strlen(key)) : NULL;
    arena_free(&arena);
    if (!place)
        return NULL;
    *call = r->places[*place].call;
    return r->places[*place].file;
}
