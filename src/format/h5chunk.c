/* Chunks of HDF5 datasets, inflated and put in place. */
#include "format/h5reply.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* What it takes to decode the chunks of one dataset. */
struct decoder {
    const struct h5_detail *detail;
    struct libdeflate_decompressor *inflater;
    uint64_t bytes;    /* of a decoded chunk */
    uint8_t *inflated; /* each of that many bytes, made when first needed */
    uint8_t *unshuffled;
};

static enum plumb_code need(uint8_t **buffer, uint64_t bytes, struct plumb_error *err)
{
    if (!*buffer)
        *buffer = malloc(bytes);
    return *buffer ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code inflate(struct decoder *decoder, const struct h5_chunk *chunk,
                               const uint8_t *from, size_t size, struct plumb_error *err)
{
    if (decoder->bytes / H5_DEFLATE_RATIO > size)
        return plumb_fail_at(err, PLUMB_E_FORMAT, chunk->offset,
                             "a chunk too short for what it should inflate to");
    enum plumb_code code = need(&decoder->inflated, decoder->bytes, err);
    if (code)
        return code;
    if (!decoder->inflater)
        decoder->inflater = libdeflate_alloc_decompressor();
    if (!decoder->inflater)
        return plumb_no_memory(err);
    size_t actual = 0;
    if (libdeflate_zlib_decompress(decoder->inflater, from, size, decoder->inflated, decoder->bytes,
                                   &actual) != LIBDEFLATE_SUCCESS ||
        actual != decoder->bytes)
        return plumb_fail_at(err, PLUMB_E_FORMAT, chunk->offset,
                             "a compressed chunk that is damaged");
    return PLUMB_OK;
}

/* Bytes were sorted by their place in the element. Inlined with constant sizes, so that the inner
 * loop is unrolled. */
static inline void unshuffle_sized(const uint8_t *from, uint8_t *to, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            to[i * size + b] = from[b * count + i];
}

static void unshuffle(const uint8_t *from, uint8_t *to, size_t count, size_t size)
{
    switch (size) {
    case 2:
        unshuffle_sized(from, to, count, 2);
        break;
    case 4:
        unshuffle_sized(from, to, count, 4);
        break;
    case 8:
        unshuffle_sized(from, to, count, 8);
        break;
    default:
        unshuffle_sized(from, to, count, size);
    }
}

/* Undoes the filters, last first. *decoded points into the file or into one of the buffers. */
static enum plumb_code decode(struct decoder *decoder, const struct h5_chunk *chunk,
                              const struct plumb_file *file, const uint8_t **decoded,
                              struct plumb_error *err)
{
    const struct h5_detail *detail = decoder->detail;
    const uint8_t *from = file->data + chunk->offset;
    uint64_t size = chunk->bytes;
    for (unsigned i = H5_MAX_FILTERS; i-- > 0;) {
        uint8_t filter = detail->filters[i];
        if (!filter || chunk->skipped >> i & 1)
            continue;
        enum plumb_code code;
        if (filter == H5_DEFLATE) {
            if (from == decoder->inflated)
                return plumb_fail(err, PLUMB_E_UNSUPPORTED, "chunks compressed twice");
            code = inflate(decoder, chunk, from, (size_t)size, err);
            if (code)
                return code;
            from = decoder->inflated;
            size = decoder->bytes;
        } else {
            if (size != decoder->bytes)
                break;
            if (from == decoder->unshuffled)
                return plumb_fail(err, PLUMB_E_UNSUPPORTED, "chunks shuffled twice");
            code = need(&decoder->unshuffled, decoder->bytes, err);
            if (code)
                return code;
            unshuffle(from, decoder->unshuffled, (size_t)(size / detail->element), detail->element);
            from = decoder->unshuffled;
        }
    }
    if (size != decoder->bytes)
        return plumb_fail_at(err, PLUMB_E_FORMAT, chunk->offset,
                             "a chunk of %llu bytes that should have %llu",
                             (unsigned long long)size, (unsigned long long)decoder->bytes);
    *decoded = from;
    return PLUMB_OK;
}

/* Copies the part of a chunk that lies inside the shape to its place. */
static void place(const struct plumb_record *record, const struct h5_detail *detail, uint64_t index,
                  const uint8_t *from, uint8_t *to)
{
    unsigned last = record->ndim - 1;
    uint64_t extent[H5_MAX_RANK] = {0}, from_stride[H5_MAX_RANK], to_stride[H5_MAX_RANK];
    uint64_t from_size = detail->element, to_size = detail->element;
    for (unsigned i = record->ndim; i-- > 0;) {
        uint64_t size = (uint64_t)record->shape[i], chunk = detail->chunk_shape[i];
        uint64_t across = (size - 1) / chunk + 1, start = index % across * chunk;
        index /= across;
        extent[i] = size - start < chunk ? size - start : chunk;
        from_stride[i] = from_size;
        to_stride[i] = to_size;
        to += start * to_size;
        from_size *= chunk;
        to_size *= size;
    }
    /* Dimensions that both hold whole make longer runs. */
    uint64_t run = extent[last] * detail->element;
    while (last > 0 && extent[last] == (uint64_t)record->shape[last] &&
           extent[last] == detail->chunk_shape[last])
        run *= extent[--last];

    uint64_t at[H5_MAX_RANK] = {0};
    for (;;) {
        memcpy(to, from, run);
        unsigned i = last;
        for (;;) {
            if (i-- == 0)
                return;
            from += from_stride[i];
            to += to_stride[i];
            if (++at[i] < extent[i])
                break;
            from -= from_stride[i] * extent[i];
            to -= to_stride[i] * extent[i];
            at[i] = 0;
        }
    }
}

enum plumb_code h5chunk_read(const struct plumb_record *record, const struct plumb_file *file,
                             void **owned, uint64_t *bytes, struct plumb_error *err)
{
    const struct h5_detail *detail = record->detail;
    struct decoder decoder = {.detail = detail, .bytes = detail->element};
    for (unsigned i = 0; i < record->ndim; i++)
        decoder.bytes *= detail->chunk_shape[i];

    /* Chunks that were never written are zero. */
    enum plumb_code code = PLUMB_OK;
    uint8_t *array = calloc(1, detail->bytes);
    if (!array)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory for %llu bytes",
                          (unsigned long long)detail->bytes);
    for (size_t i = 0; i < detail->chunk_count && !code; i++) {
        const struct h5_chunk *chunk = &detail->chunks[i];
        const uint8_t *decoded = NULL;
        code = decode(&decoder, chunk, file, &decoded, err);
        if (!code)
            place(record, detail, chunk->index, decoded, array);
    }
    libdeflate_free_decompressor(decoder.inflater);
    free(decoder.inflated);
    free(decoder.unshuffled);
    if (code) {
        free(array);
        return code;
    }
    *owned = array;
    *bytes = detail->bytes;
    return PLUMB_OK;
}
