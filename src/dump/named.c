/* APIs by their names. A slot is half of one of base/map.h: there are as many as calls. */
#include "dump/reader.h"

#include <stdlib.h>
#include <string.h>

/* Where that name is, or the free slot where it would be. */
static struct dump_slot *find(const struct dump_tree *tree, const char *name, size_t length)
{
    const struct dump_names *names = &tree->names;
    const uint32_t hash = map_hash(name, length);
    for (size_t i = hash & (names->capacity - 1);; i = (i + 1) & (names->capacity - 1)) {
        struct dump_slot *slot = &names->slots[i];
        if (!slot->number)
            return slot;
        const char *known = tree->apis[slot->number - 1].name;
        if (slot->hash == hash && strlen(known) == length && memcmp(known, name, length) == 0)
            return slot;
    }
}

static bool grow(struct dump_names *names)
{
    const size_t capacity = names->capacity ? names->capacity * 2 : 64;
    struct dump_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const struct dump_slot *old = &names->slots[i];
        size_t at = old->hash & (capacity - 1);
        if (!old->number)
            continue;
        while (slots[at].number)
            at = (at + 1) & (capacity - 1);
        slots[at] = *old;
    }
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    return true;
}

enum plumb_code dump_name_last(struct dump_tree *tree, bool *twice)
{
    struct dump_names *names = &tree->names;
    if (tree->api_count > UINT32_MAX || (names->count >= names->capacity / 4 * 3 && !grow(names)))
        return PLUMB_E_NOMEM;
    const char *name = tree->apis[tree->api_count - 1].name;
    const size_t length = strlen(name);
    struct dump_slot *slot = find(tree, name, length);
    *twice = slot->number;
    names->count += !slot->number;
    *slot = (struct dump_slot){map_hash(name, length), (uint32_t)tree->api_count};
    return PLUMB_OK;
}

struct dump_api *dump_named(const struct dump_tree *tree, const char *name, size_t length)
{
    const struct dump_slot *slot = tree->names.count ? find(tree, name, length) : NULL;
    return slot && slot->number ? &tree->apis[slot->number - 1] : NULL;
}
