/* All that plumb wants to know of one dataset. */
#ifndef H5_DATASET_H
#define H5_DATASET_H

#include "h5/h5.h"

struct dataset {
    struct h5_dataset head; /* lengths are left to the caller */
    uint64_t shape[H5_MAX_RANK];
    uint64_t chunk_shape[H5_MAX_RANK];
    struct h5_chunk *chunks; /* head.chunk_count, to be freed by the caller even on failure */
    char dtype[H5_MAX_TEXT]; /* the attribute, empty when there is none */
};

/* shifted: the file begins with a user block, so that addresses are no offsets. steps counts the
 * work spent on chunk tables of this file so far. */
bool dataset_describe(struct dataset *out, hid_t dataset, bool shifted, uint64_t *steps,
                      struct outcome *outcome);

#endif
