/* A hash map from strings to numbers, with open addressing. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a with a final mix, so that the low bits depend on all of the key. */
static uint64_t hash_of(const char *key, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)key[i]) * 0x100000001b3u;
    return hash ^ (hash >> 29);
}

static struct map_slot *find(struct map_slot *slots, size_t capacity, const char *key,
                             size_t length, uint64_t hash)
{
    size_t i = hash & (capacity - 1);
    while (slots[i].key && (slots[i].hash != hash || slots[i].length != length ||
                            memcmp(slots[i].key, key, length) != 0))
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static bool grow(struct map *map)
{
    size_t capacity = map->capacity ? map->capacity * 2 : 64;
    struct map_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct map_slot *old = &map->slots[i];
        if (old->key)
            *find(slots, capacity, old->key, old->length, old->hash) = *old;
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

uint64_t *map_put(struct map *map, const char *key, size_t length, bool *added)
{
    if (map->count * 2 >= map->capacity && !grow(map))
        return NULL;
    uint64_t hash = hash_of(key, length);
    struct map_slot *slot = find(map->slots, map->capacity, key, length, hash);
    bool fresh = !slot->key;
    if (fresh) {
        *slot = (struct map_slot){.key = key, .length = length, .hash = hash};
        map->count++;
    }
    if (added)
        *added = fresh;
    return &slot->value;
}

uint64_t *map_get(const struct map *map, const char *key, size_t length)
{
    if (!map->count)
        return NULL;
    struct map_slot *slot = find(map->slots, map->capacity, key, length, hash_of(key, length));
    return slot->key ? &slot->value : NULL;
}

void map_free(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}
