/* Lists fuzz input as a file of one format, and checks what every listing promises. */
#ifndef FUZZ_LIST_H
#define FUZZ_LIST_H

#include "format/format.h"

#include <stdlib.h>

static inline void fuzz_list(const struct format *format, const uint8_t *data, size_t size)
{
    struct plumb_file file = {.data = data, .size = size, .file_size = size};
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "input"};
    struct plumb_error err;
    if (format_list(format, &listing, &file, &err)) {
        if (listing.count || !err.message[0])
            abort();
        arena_free(&arena);
        return;
    }
    for (size_t i = 0; i < listing.count; i++) {
        const struct plumb_record *record = &listing.records[i];
        if (record->error)
            continue;
        if (record->offset > size || record->bytes > size - record->offset)
            abort();
        struct plumb_tensor tensor;
        if (plumb_tensor_init(&tensor, record->dtype, record->ndim, record->shape, &err) ||
            tensor.count != record->count)
            abort();
        /* A dense view of elements that are stored whole must fit into what is stored. */
        bool whole = !format->read || !record->detail;
        if (whole && !(record->view && record->view->stride) &&
            plumb_tensor_bytes(&tensor) > record->bytes)
            abort();
    }
    arena_free(&arena);
}

#endif
