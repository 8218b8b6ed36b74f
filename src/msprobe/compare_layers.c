/* Rows of two trees by the layers that they belong to. */
#include "base/names.h"
#include "msprobe/compare.h"
#include "pair/layer.h"

#include <string.h>

static bool list_calls(struct layer_calls *calls, const struct dump_tree *tree, struct arena *arena)
{
    calls->calls = arena_array(arena, tree->api_count, sizeof *calls->calls);
    if (!calls->calls)
        return false;
    calls->count = tree->api_count;
    for (size_t i = 0; i < tree->api_count; i++) {
        const struct dump_api *api = &tree->apis[i];
        calls->calls[i] =
            (struct layer_call){.api = api->name,
                                .parent = api->parent,
                                .stack = api->stack ? tree->stacks[api->stack - 1] : NULL,
                                .place = ""};
    }
    return true;
}

/* Golden rows by path, to their number on that side. */
static bool index_rows(struct map *index, const struct general_side *golden)
{
    for (size_t i = 0; i < golden->count; i++) {
        const char *path = golden->tree->rows[golden->rows[i]].path_name;
        uint64_t *place = map_put(index, path, strlen(path), NULL);
        if (!place)
            return false;
        *place = i;
    }
    return true;
}

static bool pair_rows(struct general *general, struct general_side *target,
                      const struct general_side *golden, const struct layer_rules *rules,
                      struct names *mapping)
{
    struct arena *arena = &general->arena;
    struct layer_calls calls[2] = {{0}};
    struct map index = {0};
    size_t *partner = arena_array(arena, target->tree->api_count, sizeof *partner);
    bool done = partner && list_calls(&calls[0], target->tree, arena) &&
                list_calls(&calls[1], golden->tree, arena) && index_rows(&index, golden) &&
                layer_pair(partner, &calls[0], &calls[1], rules);
    for (size_t i = 0; done && i < target->count; i++) {
        const struct dump_row *row = &target->tree->rows[target->rows[i]];
        const char *to = "N/A";
        target->keys[i] = "N/A";
        if (partner[row->api] != LAYER_NONE) {
            const char *path =
                arena_printf(arena, "%s%s", golden->tree->apis[partner[row->api]].name,
                             row->path_name + strlen(target->tree->apis[row->api].name));
            const uint64_t *place = path ? map_get(&index, path, strlen(path)) : NULL;
            done = path != NULL;
            if (place) {
                to = golden->tree->rows[golden->rows[*place]].name;
                target->keys[i] = golden->keys[*place];
            }
        }
        done = done && names_add(mapping, row->name, to);
    }
    map_free(&index);
    return done;
}

enum plumb_code general_layers(struct general *general, struct general_side *target,
                               const struct general_side *golden, struct plumb_error *err)
{
    struct layer_rules rules;
    struct names mapping = {0};
    enum plumb_code code = layer_read(&rules, general->options->layer_map, err);
    if (code)
        return code;
    if (pair_rows(general, target, golden, &rules, &mapping))
        general->mapping = names_text(&mapping);
    names_free(&mapping);
    layer_free(&rules);
    return general->mapping ? PLUMB_OK : plumb_no_memory(err);
}
