/* The names in an H5 file that is being written. A name that HDF5 refuses costs the whole file, so
 * such tensors are turned away before it sees them. */
#ifndef CORE_H5NAMES_H
#define CORE_H5NAMES_H

#include "base/arena.h"
#include "base/map.h"

/* All zero is a file without names. */
struct h5names {
    struct map taken;
    struct arena arena;
};

/* Takes a name of a step (-1: none). NULL, or why it cannot be had. */
const char *h5names_take(struct h5names *names, int64_t step, const char *name);

void h5names_free(struct h5names *names);

#endif
