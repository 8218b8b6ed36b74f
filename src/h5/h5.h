/* plumb-h5: the only part of plumb that links libhdf5, run as a process of its own because libhdf5
 * may crash or hang on a damaged file. protocol.h says how it is called. */
#ifndef H5_H5_H
#define H5_H5_H

#include "h5/protocol.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

/* The command's outcome: an exit code and, unless it is H5_EXIT_OK, one line. */
struct outcome {
    enum h5_exit code;
    char text[512];
};

/* Records a failure and returns false. */
bool fail(struct outcome *outcome, enum h5_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with libhdf5's own words for the cause appended, if it has any. */
bool fail_hdf5(struct outcome *outcome, enum h5_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

bool list_file(const char *path, struct outcome *outcome);
bool read_dataset(const char *path, const char *name, struct outcome *outcome);

struct write_request {
    const char *path, *name; /* where it is made, and what it is called from the first H5_SYNC on */
    int64_t global_rank, local_rank;
};
bool write_file(const struct write_request *request, struct outcome *outcome);

/* Opens a file for reading. Negative on failure, with the outcome set. */
hid_t open_file(const char *path, struct outcome *outcome);

/* An access property list (of class H5P_LINK_ACCESS or H5P_DATASET_ACCESS) that refuses to be led
 * into another file by an external link. */
hid_t inside_only(hid_t plist_class);

/* Sets type, size and big_endian. Types that are no numbers fail with H5_EXIT_UNSUPPORTED. */
bool type_describe(hid_t type, struct h5_dataset *out, struct outcome *outcome);

/* The type to store such elements as: the inverse. Negative when there is none. */
hid_t type_make(enum h5_class class, unsigned size, bool big_endian);

/* False, with the outcome set, for a dataset whose elements lie in other files, which plumb does
 * not follow: whoever made the file may have named any file there. */
bool dataset_is_inside(hid_t create_plist, struct outcome *outcome);

/* Calls use(context, slab) for pieces of a dataspace of at least one element, in C order, each of
 * about limit bytes at most. align: rows of a chunk, or 1. Stops when use returns false. */
struct slab {
    hid_t space; /* of the file, with the piece selected */
    hid_t memory_space;
    size_t bytes;
};
bool slab_each(hid_t space, size_t element, uint64_t align, size_t limit,
               bool (*use)(void *context, const struct slab *slab), void *context);

/* Whole transfers; false on failure or, for reading, at the end of the stream. */
bool put_bytes(const void *data, size_t size);
bool get_bytes(void *data, size_t size);

/* From here on get_bytes ends as well when the process that started this one is gone, though its
 * other children may hold the stream open. */
void watch_parent(void);

#endif
