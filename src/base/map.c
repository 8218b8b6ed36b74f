/* A hash map from strings to numbers, with open addressing. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

/* Eight bytes a step; the upper half of the last product depends on all of the key. */
uint32_t map_hash(const char *key, size_t length)
{
    const uint64_t factor = 0x9e3779b97f4a7c15u;
    uint64_t hash = length, word;
    for (; length >= sizeof word; key += sizeof word, length -= sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = (hash ^ word) * factor;
        hash ^= hash >> 32;
    }
    word = 0;
    if (length)
        memcpy(&word, key, length);
    hash = (hash ^ word) * factor;
    return (uint32_t)(hash >> 32);
}

static struct map_slot *find(struct map_slot *slots, size_t capacity, const char *key,
                             size_t length, uint32_t hash)
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
    if (length > UINT32_MAX || (map->count >= map->capacity / 4 * 3 && !grow(map)))
        return NULL;
    uint32_t hash = map_hash(key, length);
    struct map_slot *slot = find(map->slots, map->capacity, key, length, hash);
    bool fresh = !slot->key;
    if (fresh) {
        *slot = (struct map_slot){.key = key, .length = (uint32_t)length, .hash = hash};
        map->count++;
    }
    if (added)
        *added = fresh;
    return &slot->value;
}

uint64_t *map_get(const struct map *map, const char *key, size_t length)
{
    if (!map->count || length > UINT32_MAX)
        return NULL;
    struct map_slot *slot = find(map->slots, map->capacity, key, length, map_hash(key, length));
    return slot->key ? &slot->value : NULL;
}

void map_free(struct map *map)
{
    free(map->slots);
    *map = (struct map){0};
}
