/* Parameters from a file of their own, by the names that they have in the model. */
#include "task/blame/units.h"

#include "plumb/run.h"

#include <stdlib.h>
#include <string.h>

struct weights {
    struct plumb_run *run;
    struct map names; /* to number + 1 */
};

enum plumb_code weights_open(const char *path, struct weights **out, struct plumb_error *err)
{
    *out = NULL;
    struct weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return plumb_no_memory(err);
    enum plumb_code code = plumb_run_open(&weights->run, path, err);
    for (size_t i = 0; !code && i < plumb_run_count(weights->run); i++) {
        const char *name = plumb_run_record(weights->run, i)->name;
        uint64_t *place = map_put(&weights->names, name, strlen(name), NULL);
        if (place)
            *place = i + 1;
        else
            code = plumb_no_memory(err);
    }
    if (code)
        weights_close(weights);
    else
        *out = weights;
    return code;
}

void weights_close(struct weights *weights)
{
    if (!weights)
        return;
    plumb_run_free(weights->run);
    map_free(&weights->names);
    free(weights);
}

const struct plumb_run *weights_run(const struct weights *weights)
{
    return weights->run;
}

/* Files put "model." or "module." before the names. */
static bool find_ending(const struct weights *weights, const char *name, size_t *record)
{
    const size_t length = strlen(name);
    size_t found = 0;
    for (size_t i = 0; i < plumb_run_count(weights->run); i++) {
        const char *other = plumb_run_record(weights->run, i)->name;
        const size_t size = strlen(other);
        if (size > length && other[size - length - 1] == '.' &&
            strcmp(other + size - length, name) == 0) {
            found++;
            *record = i;
        }
    }
    return found == 1;
}

/* A capture of several models, or of a wrapped one, puts a number or a word before its paths. */
static const char *without_wrapper(const char *path)
{
    static const char *const words[] = {"module.", "model.", "_orig_mod."};
    const size_t digits = strspn(path, "0123456789");
    if (digits && path[digits] == '.')
        return path + digits + 1;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strncmp(path, words[k], strlen(words[k])) == 0)
            return path + strlen(words[k]);
    return NULL;
}

bool weights_find(const struct weights *weights, const char *module, const char *parameter,
                  size_t *record)
{
    struct arena arena = {0};
    bool found = false;
    for (const char *path = module; path && !found; path = without_wrapper(path)) {
        const char *name = *path ? arena_printf(&arena, "%s.%s", path, parameter) : parameter;
        const uint64_t *place = name ? map_get(&weights->names, name, strlen(name)) : NULL;
        if (place)
            *record = (size_t)*place - 1;
        found = place || (name && *path && find_ending(weights, name, record));
    }
    arena_free(&arena);
    return found;
}
