/* What plumb and its helper plumb-h5 say to each other. Both run on one machine and come from one
 * build, so the structs travel as they are; what comes from the helper is still treated as hostile,
 * because the file it reads may have taken it over.
 *
 *     plumb-h5 list FILE           to stdout: h5_hello, then a h5_dataset each, then one h5_dataset
 *                                  with path_length 0 as the end mark
 *     plumb-h5 read FILE DATASET   to stdout: the elements as stored, in C order, nothing else
 *     plumb-h5 write FILE G L NAME from stdin, a socket: a h5_tensor each; one with name_length 0
 *                                  is a mark (enum h5_mark in its step); G and L are the global and
 *                                  local rank, -1 to leave out
 *
 * After H5_SYNC, which is answered with one byte, the file has its NAME, is whole, and stays so
 * whatever becomes of the two processes: when the end of stdin comes without H5_END, all tensors
 * that came whole are kept, and without room on the disk at least those before the last H5_SYNC.
 * Without H5_SYNC the file keeps the name FILE, and is of no use without H5_END.
 *
 * A failure is one line on stderr and an exit code of enum h5_exit. */
#ifndef H5_PROTOCOL_H
#define H5_PROTOCOL_H

#include <stdint.h>

#define H5_MAGIC UINT64_C(0x31304c3548626c70) /* "plbH5L01" */
#define H5_MAX_RANK 32
#define H5_MAX_FILTERS 4
#define H5_MAX_PATH 4096 /* longer names are not listed */
#define H5_MAX_TEXT 256  /* dtype attribute, reason */

enum h5_exit { H5_EXIT_OK, H5_EXIT_DAMAGED, H5_EXIT_UNSUPPORTED, H5_EXIT_IO, H5_EXIT_USAGE };

/* How elements are stored. Sizes 1, 2, 4, 8 for integers. */
enum h5_class {
    H5_UINT,
    H5_INT,
    H5_FLOAT,    /* IEEE binary16, binary32, binary64 */
    H5_BFLOAT16, /* 8 bits of exponent, 7 of mantissa */
    H5_E4M3,
    H5_E5M2,
    H5_COMPLEX, /* two floats of half the size */
    H5_BOOLEAN, /* one byte, 0 or 1 */
    H5_CLASS_COUNT
};

enum h5_layout {
    H5_CONTIGUOUS, /* whole at offset */
    H5_CHUNKED,    /* as the chunk table says; what it leaves out is zero */
    H5_ASK,        /* only `plumb-h5 read` can tell */
    H5_LAYOUT_COUNT
};

enum h5_filter { H5_SHUFFLE = 1, H5_DEFLATE = 2 };

struct h5_hello {
    uint64_t magic;
    int64_t global_rank, local_rank; /* attributes of the root group; -1 when there is none */
};

/* Followed by shape (ndim uint64_t), chunk extents (ndim uint64_t when chunked), chunks (h5_chunk
 * each), path, dtype, reason. When there is a reason, the dataset cannot be read; status is then
 * the enum h5_exit it is worth, and everything but the path is without meaning. */
struct h5_dataset {
    uint8_t status;
    uint8_t type;       /* enum h5_class */
    uint8_t size;       /* bytes of an element */
    uint8_t big_endian; /* 1 or 0 */
    uint8_t layout;     /* enum h5_layout */
    uint8_t ndim;
    uint8_t filters[H5_MAX_FILTERS]; /* enum h5_filter in the order of writing, 0: none further */
    uint16_t path_call; /* 1 + the attribute of that name; 0: there is none, or too large a one */
    uint32_t path_length, dtype_length, reason_length;
    uint64_t offset, bytes; /* of the stored data when contiguous */
    uint64_t chunk_count;   /* entries of the table */
};

struct h5_chunk {
    uint64_t index; /* position in the grid of chunks, in C order */
    uint64_t offset;
    uint32_t bytes;
    uint32_t skipped; /* bit i: filter i was not applied to this chunk */
};

enum h5_mark { H5_END, H5_SYNC };

/* Followed by shape (ndim uint64_t), name, dtype, and `bytes` bytes of elements. */
struct h5_tensor {
    uint8_t type, size, big_endian, ndim; /* as in h5_dataset */
    uint32_t name_length, dtype_length;
    uint32_t path_call; /* 1 + which call of its module it is of; 0: not said */
    int64_t step;       /* -1: none; of a mark, which */
    uint64_t bytes;
};

#endif
