/* What plumb-h5 says about a file, turned into records. */
#ifndef FORMAT_H5REPLY_H
#define FORMAT_H5REPLY_H

#include "format/format.h"
#include "h5/protocol.h"

#define H5_DEFLATE_RATIO 1032 /* deflate cannot shrink further */

/* plumb_record.detail of a dataset that is not stored whole. */
struct h5_detail {
    enum h5_layout layout; /* H5_CHUNKED or H5_ASK */
    const char *dataset;   /* its path in the file */
    uint64_t bytes;        /* when decoded */
    unsigned element;      /* bytes of one */
    const uint64_t *chunk_shape;
    uint8_t filters[H5_MAX_FILTERS];
    const struct h5_chunk *chunks;
    size_t chunk_count;
};

/* Appends a record for each dataset of the answer to `list`, which is not trusted: afterwards all
 * offsets lie in a file of file_size bytes, all sizes agree with the shapes, and no dataset decodes
 * to more than such a file can hold. */
enum plumb_code h5reply_parse(struct listing *out, const void *reply, size_t size,
                              uint64_t file_size, struct plumb_error *err);

/* Puts a chunked dataset together from the mapped file; as format->read. */
enum plumb_code h5chunk_read(const struct plumb_record *record, const struct plumb_file *file,
                             void **owned, uint64_t *bytes, struct plumb_error *err);

#endif
