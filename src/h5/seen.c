/* A hash set of the groups that were visited. */
#include "h5/seen.h"

#include <stdlib.h>
#include <string.h>

/* A number for the object within its file, never all zero: zero marks an empty slot. */
static bool identify(hid_t object, uint64_t id[2])
{
    H5O_info_t info;
    id[0] = id[1] = 0;
#if H5_VERSION_GE(1, 12, 0)
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0)
        return false;
    memcpy(id, &info.token, sizeof info.token);
    id[1] = ~id[1];
#else
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return false;
    id[0] = info.addr;
    id[1] = 1;
#endif
    return true;
}

static uint64_t (*find(const struct seen *seen, const uint64_t id[2]))[2]
{
    uint64_t hash = (id[0] ^ id[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    for (size_t at = (hash >> 20) & (seen->capacity - 1);; at = (at + 1) & (seen->capacity - 1)) {
        uint64_t(*slot)[2] = &seen->slots[at];
        if ((!(*slot)[0] && !(*slot)[1]) || memcmp(slot, id, sizeof *slot) == 0)
            return slot;
    }
}

static bool grow(struct seen *seen)
{
    struct seen bigger = {.capacity = seen->capacity ? 2 * seen->capacity : 64};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < seen->capacity; i++)
        if (seen->slots[i][0] || seen->slots[i][1])
            memcpy(find(&bigger, seen->slots[i]), seen->slots[i], sizeof *seen->slots);
    bigger.count = seen->count;
    free(seen->slots);
    *seen = bigger;
    return true;
}

bool seen_first_time(struct seen *seen, hid_t object)
{
    uint64_t id[2];
    if (!identify(object, id) || (2 * seen->count >= seen->capacity && !grow(seen)))
        return false;
    uint64_t(*slot)[2] = find(seen, id);
    if ((*slot)[0] || (*slot)[1])
        return false;
    memcpy(slot, id, sizeof *slot);
    seen->count++;
    return true;
}

void seen_free(struct seen *seen)
{
    free(seen->slots);
    *seen = (struct seen){0};
}
