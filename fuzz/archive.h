/* Lists an archive from memory and decodes every record that is not merely mapped. */
#ifndef FUZZ_ARCHIVE_H
#define FUZZ_ARCHIVE_H

#include "format/format.h"

#include <stdlib.h>

static inline void fuzz_archive(const struct format *format, const uint8_t *data, size_t size)
{
    struct plumb_file file = {.data = data, .size = size, .file_size = size};
    struct arena arena = {0};
    struct listing listing = {.arena = &arena, .path = "fuzz"};
    struct plumb_error err = {0};
    format->probe(data, size < 512 ? size : 512);
    enum plumb_code code = format->list(&listing, &file, &err);
    if (code && (code != err.code || !err.message[0]))
        abort();
    for (size_t i = 0; !code && i < listing.count; i++) {
        const struct plumb_record *record = &listing.records[i];
        if (record->error)
            continue;
        if (!record->detail) {
            if (record->bytes > size || record->offset > size - record->bytes)
                abort();
            continue;
        }
        void *owned = NULL;
        uint64_t bytes = 0;
        if (!format->read(record, &file, &owned, &bytes, &err)) {
            static volatile uint8_t sink;
            for (uint64_t at = 0; at < bytes; at++)
                sink = ((const uint8_t *)owned)[at];
            (void)sink;
        }
        free(owned);
    }
    arena_free(&arena);
}

#endif
