/* A hash map from strings to numbers. Keys are borrowed and must outlive the map; they are shorter
 * than 4 GiB. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    const char *key;
    uint64_t value;
    uint32_t length, hash;
};

struct map {
    struct map_slot *slots;
    size_t count, capacity;
};

/* The place of key's value, inserted as 0 when new (*added says so; added may be NULL). NULL when
 * out of memory, and for a longer key. The place is valid until the next insertion. */
uint64_t *map_put(struct map *map, const char *key, size_t length, bool *added);

/* The place of key's value, or NULL. */
uint64_t *map_get(const struct map *map, const char *key, size_t length);

void map_free(struct map *map);

/* What keys are told apart by, for tables of another form. */
uint32_t map_hash(const char *key, size_t length);

#endif
