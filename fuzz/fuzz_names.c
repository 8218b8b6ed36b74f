#include "base/names.h"

#include <stdlib.h>
#include <string.h>

/* A mapping file: every name that it maps can be found, and an error says something. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct names map;
    struct plumb_error err = {0};
    if (names_parse(&map, data, size, &err)) {
        if (!err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < map.count; i++) {
        const uint64_t *place = map_get(&map.index, map.from[i], strlen(map.from[i]));
        if (!place || *place != i || !map.to[i])
            abort();
    }
    names_free(&map);
    return 0;
}
