#include "dump/settings.h"
#include "task/blame/modules.h"

#include <stdlib.h>
#include <string.h>

/* Whatever the settings are, the ways in which a module may be set up can be walked. */
static void try_class(const char *name, const struct setting_list *settings)
{
    unsigned dimensions;
    struct plumb_tensor x, w;
    struct arena arena = {0};
    struct module_tries tries;
    struct plumb_error err = {0};
    if (plumb_tensor_init(&x, PLUMB_F32, 3, (const int64_t[]){2, 8, 9}, NULL) ||
        plumb_tensor_init(&w, PLUMB_F32, 3, (const int64_t[]){8, 4, 3}, NULL))
        abort();
    const struct module_facts facts = {.class = modules_find(name, &dimensions),
                                       .dimensions = 1,
                                       .settings = settings,
                                       .input = &x,
                                       .output = &x,
                                       .weight = &w};
    if (!facts.class)
        abort();
    if (modules_tries(&facts, &arena, &tries, &err)) {
        if (!err.message[0])
            abort();
    } else {
        if (!tries.count)
            abort();
        for (size_t k = 0; k < tries.count; k++)
            for (size_t i = 0; i < tries.list[k].count; i++)
                if (!strlen(tries.list[k].kwargs[i].name))
                    abort();
    }
    arena_free(&arena);
}

/* A modules.json, of which the call "m" is looked at. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Conv1d",        "LayerNorm", "BatchNorm1d", "Softmax2d",
                                        "AvgPool1d",     "RMSNorm",   "Dropout",     "Embedding",
                                        "Threshold",     "GroupNorm", "Flatten",     "T5LayerNorm",
                                        "InstanceNorm1d"};
    struct settings *settings;
    struct setting_list list;
    struct arena arena = {0};
    struct plumb_error err = {0};
    bool found;
    if (settings_parse(data, size, &settings, &err)) {
        if (!err.message[0])
            abort();
        return 0;
    }
    if (!settings_of(settings, "m", &arena, &list, &found, &err))
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            try_class(names[k], &list);
    else if (!err.message[0])
        abort();
    arena_free(&arena);
    settings_close(settings);
    return 0;
}
