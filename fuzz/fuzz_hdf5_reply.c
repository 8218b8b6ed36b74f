/* A hostile answer of the HDF5 helper about a small file: two bytes of length, the file, the
 * answer. */
#include "format/h5reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger arrays only cost time. */
enum { MOST_BYTES = 1 << 22 };

static void use(const struct plumb_record *record, const struct plumb_file *file)
{
    const struct h5_detail *detail = record->detail;
    if (record->error)
        return;
    if (!detail) {
        volatile uint8_t sum = 0;
        for (uint64_t i = 0; i < record->bytes; i++)
            sum = (uint8_t)(sum + file->data[record->offset + i]);
        return;
    }
    void *owned;
    uint64_t bytes;
    if (detail->layout == H5_CHUNKED && detail->bytes <= MOST_BYTES &&
        h5chunk_read(record, file, &owned, &bytes, NULL) == PLUMB_OK) {
        if (bytes != detail->bytes)
            abort();
        free(owned);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t length = (size_t)(data[0] | data[1] << 8);
    data += 2;
    size -= 2;
    if (length > size)
        length = size;

    /* Copies, so that the sanitizer sees a step over either end. */
    uint8_t *content = malloc(length ? length : 1);
    uint8_t *reply = malloc(size - length ? size - length : 1);
    if (content && reply) {
        memcpy(content, data, length);
        memcpy(reply, data + length, size - length);
        struct plumb_file file = {.data = content, .size = length, .file_size = length};
        struct arena arena = {0};
        struct listing listing = {.arena = &arena, .path = "fuzz.h5"};
        if (h5reply_parse(&listing, reply, size - length, length, NULL) == PLUMB_OK)
            for (size_t i = 0; i < listing.count; i++)
                use(&listing.records[i], &file);
        arena_free(&arena);
    }
    free(content);
    free(reply);
    return 0;
}
