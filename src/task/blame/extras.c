/* What lies beside a run and says more about its modules. */
#include "task/blame/units.h"

#include "run/run.h"

#include <stdlib.h>
#include <string.h>

/* Reads one file; where there is none, or none that can be read, defaults and usual values have to
 * do. False when out of memory. */
static bool read_one(struct extras *extras, size_t i, const char *path)
{
    struct plumb_error why;
    return path && settings_open(path, &extras->settings[i], &why) != PLUMB_E_NOMEM;
}

/* "dump/globalrank-0_localrank-0.h5" has "dump/globalrank-0_localrank-0_modules.json". */
static const char *beside_capture(const char *file, struct arena *arena)
{
    const size_t length = strlen(file);
    return length > 3 && strcmp(file + length - 3, ".h5") == 0
               ? arena_printf(arena, "%.*s_modules.json", (int)(length - 3), file)
               : arena_printf(arena, "%s_modules.json", file);
}

static bool read_all(struct extras *extras, const struct plumb_run *run)
{
    struct arena arena = {0};
    const size_t n = run->tree_count ? run->tree_count : run->source_count;
    bool fine = true;
    extras->settings = calloc(n + 1, sizeof *extras->settings);
    extras->files = calloc(n + 1, sizeof *extras->files);
    if (!extras->settings || !extras->files)
        return false;
    extras->count = n;
    for (size_t i = 0; i < n && fine; i++) {
        if (run->tree_count) {
            fine =
                read_one(extras, i, arena_printf(&arena, "%s/modules.json", run->trees[i].folder));
            continue;
        }
        extras->files[i] = run->listing.records[run->sources[i].first].path;
        if (strcmp(run->sources[i].like ? run->sources[i].like->name : "", "hdf5") == 0)
            fine = read_one(extras, i, beside_capture(extras->files[i], &arena));
    }
    arena_free(&arena);
    return fine;
}

enum plumb_code extras_open(struct extras *extras, const struct plumb_run *run, const char *weights,
                            struct plumb_error *err)
{
    if (!read_all(extras, run))
        return plumb_no_memory(err);
    return weights ? weights_open(weights, &extras->weights, err) : PLUMB_OK;
}

void extras_close(struct extras *extras)
{
    for (size_t i = 0; i < extras->count; i++)
        settings_close(extras->settings[i]);
    free(extras->settings);
    free(extras->files);
    weights_close(extras->weights);
}

/* Any record of the unit says which file it came from. */
static const char *file_of(const struct plumb_run *run, const struct unit *unit)
{
    for (int role = 0; role < PIECE_ROLES; role++)
        if (unit->of[role].count)
            return plumb_run_record(run, unit->of[role].list[0].record)->path;
    return "";
}

const struct settings *extras_settings(const struct extras *extras, const struct plumb_run *run,
                                       const struct unit *unit)
{
    for (size_t i = 0; i < extras->count; i++) {
        if (!extras->settings[i])
            continue;
        const bool here = run->tree_count
                              ? run->trees[i].step == unit->step && run->trees[i].rank == unit->rank
                              : strcmp(extras->files[i], file_of(run, unit)) == 0;
        if (here)
            return extras->settings[i];
    }
    return NULL;
}
