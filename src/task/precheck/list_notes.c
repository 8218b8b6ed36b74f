/* Notes on keys and list entries that fit nothing, with the nearest that would. */
#include "task/precheck/list_notes.h"

#include "base/map.h"
#include "base/nearest.h"
#include "task/precheck/select.h"

#include <stdio.h>
#include <string.h>

enum { NOTES_SHOWN = 10 };

/* The bare names of the dump's calls, each once. False when out of memory. */
static bool collect(const struct case_file *file, struct map *apis)
{
    for (size_t k = 0; k < case_count(file); k++) {
        const char *api;
        const size_t length = select_api(case_place(file, k)->call, &api);
        if (length && !map_put(apis, api, length, NULL))
            return false;
    }
    return true;
}

static void tell(const struct map *apis, const char *list, const char *name,
                 void (*note)(void *context, const char *text), void *context)
{
    struct nearest nearest;
    char text[256];
    nearest_init(&nearest, name);
    for (size_t k = 0; k < apis->capacity; k++)
        if (apis->slots[k].key)
            nearest_try(&nearest, apis->slots[k].key, apis->slots[k].length);
    if (nearest_is_close(&nearest))
        snprintf(text, sizeof text, "%s: no call of the dump is of '%.80s'; did you mean '%s'?",
                 list, name, nearest.name);
    else
        snprintf(text, sizeof text, "%s: no call of the dump is of '%.80s'", list, name);
    note(context, text);
}

void list_notes(const struct case_file *file, const char *list, const struct check_names *names,
                void (*note)(void *context, const char *text), void *context)
{
    struct map apis = {0};
    size_t unfit = 0;
    if (names->count && collect(file, &apis)) {
        for (size_t k = 0; k < names->count; k++)
            if (!map_get(&apis, names->names[k], strlen(names->names[k])) && unfit++ < NOTES_SHOWN)
                tell(&apis, list, names->names[k], note, context);
    }
    if (unfit > NOTES_SHOWN) {
        char text[128];
        snprintf(text, sizeof text, "%s: %zu further entries are of no call of the dump either",
                 list, unfit - NOTES_SHOWN);
        note(context, text);
    }
    map_free(&apis);
}

void key_notes(const struct check_config *config, void (*note)(void *context, const char *text),
               void *context)
{
    static const char *const settings[] = {"white_list", "black_list", "error_data_path",
                                           "precision", "quantization_api_list"};
    for (size_t k = 0; k < config->n_unknown; k++) {
        struct nearest nearest;
        char text[256];
        nearest_init(&nearest, config->unknown[k]);
        for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
            nearest_try(&nearest, settings[i], strlen(settings[i]));
        if (nearest_is_close(&nearest))
            snprintf(text, sizeof text, "-config: there is no setting '%.80s'; did you mean '%s'?",
                     config->unknown[k], nearest.name);
        else
            snprintf(text, sizeof text, "-config: '%.80s' is no setting of the pre-check",
                     config->unknown[k]);
        note(context, text);
    }
}
