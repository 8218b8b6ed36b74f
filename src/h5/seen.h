/* Which groups were visited: hard links may form circles. */
#ifndef H5_SEEN_H
#define H5_SEEN_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen {
    uint64_t (*slots)[2];
    size_t count, capacity;
};

/* Adds the object. False when it was there already, when it cannot be told, or out of memory: in
 * each case it is not to be visited. */
bool seen_first_time(struct seen *seen, hid_t object);

void seen_free(struct seen *seen);

#endif
