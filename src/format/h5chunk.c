/* Chunks of HDF5 datasets, inflated and put in place. */
#include "format/h5reply.h"

#include <libdeflate.h>
#include <stdbool.h>
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

/* To `to`, which has room for a chunk. */
static enum plumb_code inflate(struct decoder *decoder, const struct h5_chunk *chunk,
                               const uint8_t *from, size_t size, uint8_t *to,
                               struct plumb_error *err)
{
    if (decoder->bytes / H5_DEFLATE_RATIO > size)
        return plumb_fail_at(err, PLUMB_E_FORMAT, chunk->offset,
                             "a chunk too short for what it should inflate to");
    if (!decoder->inflater)
        decoder->inflater = libdeflate_alloc_decompressor();
    if (!decoder->inflater)
        return plumb_no_memory(err);
    size_t actual = 0;
    if (libdeflate_zlib_decompress(decoder->inflater, from, size, to, decoder->bytes, &actual) !=
            LIBDEFLATE_SUCCESS ||
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

/* Undoes the filters, last first. *decoded points into the file, into one of the buffers, or is
 * `home`, where the last step puts its bytes if that is given. */
static enum plumb_code decode(struct decoder *decoder, const struct h5_chunk *chunk,
                              const struct plumb_file *file, uint8_t *home, const uint8_t **decoded,
                              struct plumb_error *err)
{
    const struct h5_detail *detail = decoder->detail;
    const uint8_t *from = file->data + chunk->offset;
    uint64_t size = chunk->bytes;
    unsigned left = 0, inflated = 0, unshuffled = 0;
    for (unsigned i = 0; i < H5_MAX_FILTERS; i++)
        left += detail->filters[i] && !(chunk->skipped >> i & 1);
    for (unsigned i = H5_MAX_FILTERS; i-- > 0;) {
        const bool deflated = detail->filters[i] == H5_DEFLATE;
        if (!detail->filters[i] || chunk->skipped >> i & 1)
            continue;
        if (!deflated && size != decoder->bytes)
            break;
        if (deflated ? inflated++ : unshuffled++)
            return plumb_fail(err, PLUMB_E_UNSUPPORTED, "chunks %s twice",
                              deflated ? "compressed" : "shuffled");
        uint8_t **buffer = deflated ? &decoder->inflated : &decoder->unshuffled;
        const bool last = --left == 0 && home;
        enum plumb_code code = last ? PLUMB_OK : need(buffer, decoder->bytes, err);
        uint8_t *to = last ? home : *buffer;
        if (!code && deflated)
            code = inflate(decoder, chunk, from, (size_t)size, to, err);
        if (code)
            return code;
        if (!deflated)
            unshuffle(from, to, (size_t)(size / detail->element), detail->element);
        from = to;
        size = decoder->bytes;
    }
    if (size != decoder->bytes)
        return plumb_fail_at(err, PLUMB_E_FORMAT, chunk->offset,
                             "a chunk of %llu bytes that should have %llu",
                             (unsigned long long)size, (unsigned long long)decoder->bytes);
    *decoded = from;
    return PLUMB_OK;
}

/* Where the part of a chunk that lies inside the shape belongs: runs of bytes along the dimensions
 * up to `last`. */
struct spot {
    unsigned last;
    uint64_t run, extent[H5_MAX_RANK], from_stride[H5_MAX_RANK], to_stride[H5_MAX_RANK];
    uint8_t *to;
};

static struct spot find_spot(const struct plumb_record *record, const struct h5_detail *detail,
                             uint64_t index, uint8_t *array)
{
    struct spot spot = {.last = record->ndim - 1, .to = array};
    uint64_t from_size = detail->element, to_size = detail->element;
    for (unsigned i = record->ndim; i-- > 0;) {
        uint64_t size = (uint64_t)record->shape[i], chunk = detail->chunk_shape[i];
        uint64_t across = (size - 1) / chunk + 1, start = index % across * chunk;
        index /= across;
        spot.extent[i] = size - start < chunk ? size - start : chunk;
        spot.from_stride[i] = from_size;
        spot.to_stride[i] = to_size;
        spot.to += start * to_size;
        from_size *= chunk;
        to_size *= size;
    }
    /* Dimensions that both hold whole make longer runs. */
    unsigned last = spot.last;
    spot.run = spot.extent[last] * detail->element;
    while (last > 0 && spot.extent[last] == (uint64_t)record->shape[last] &&
           spot.extent[last] == detail->chunk_shape[last])
        spot.run *= spot.extent[--last];
    spot.last = last;
    return spot;
}

static void place(const struct spot *spot, const uint8_t *from)
{
    uint8_t *to = spot->to;
    uint64_t at[H5_MAX_RANK] = {0};
    for (;;) {
        memcpy(to, from, spot->run);
        unsigned i = spot->last;
        for (;;) {
            if (i-- == 0)
                return;
            from += spot->from_stride[i];
            to += spot->to_stride[i];
            if (++at[i] < spot->extent[i])
                break;
            from -= spot->from_stride[i] * spot->extent[i];
            to -= spot->to_stride[i] * spot->extent[i];
            at[i] = 0;
        }
    }
}

/* Chunks that were never written are zero. */
static void *new_array(const struct plumb_record *record, const struct h5_detail *detail)
{
    uint64_t grid = 1;
    for (unsigned i = 0; i < record->ndim; i++)
        grid *= ((uint64_t)record->shape[i] - 1) / detail->chunk_shape[i] + 1;
    bool written = detail->chunk_count == grid;
    for (size_t i = 0; i < detail->chunk_count && written; i++)
        written = detail->chunks[i].index == i;
    return written ? malloc(detail->bytes) : calloc(1, detail->bytes);
}

enum plumb_code h5chunk_read(const struct plumb_record *record, const struct plumb_file *file,
                             void **owned, uint64_t *bytes, struct plumb_error *err)
{
    const struct h5_detail *detail = record->detail;
    struct decoder decoder = {.detail = detail, .bytes = detail->element};
    for (unsigned i = 0; i < record->ndim; i++)
        decoder.bytes *= detail->chunk_shape[i];

    enum plumb_code code = PLUMB_OK;
    uint8_t *array = new_array(record, detail);
    if (!array)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory for %llu bytes",
                          (unsigned long long)detail->bytes);
    for (size_t i = 0; i < detail->chunk_count && !code; i++) {
        const struct h5_chunk *chunk = &detail->chunks[i];
        const struct spot spot = find_spot(record, detail, chunk->index, array);
        uint8_t *home = spot.run == decoder.bytes ? spot.to : NULL;
        const uint8_t *decoded = NULL;
        code = decode(&decoder, chunk, file, home, &decoded, err);
        if (!code && decoded != home)
            place(&spot, decoded);
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
