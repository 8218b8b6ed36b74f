/* A hostile HDF5 file, listed without libhdf5. What is said about it must be understood. */
#include "format/h5plain.h"
#include "format/h5reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf reply = {0};
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "fuzz.h5"};
    uint8_t *copy = malloc(size ? size : 1); /* so that the sanitizer sees a step over its end */
    if (copy) {
        memcpy(copy, data, size);
        if (h5plain_list(&reply, copy, size) &&
            h5reply_parse(&listing, reply.data, reply.size, size, NULL) == PLUMB_E_FORMAT)
            abort();
    }
    arena_free(&arena);
    buf_free(&reply);
    free(copy);
    return 0;
}
