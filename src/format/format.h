/* What a file format is to the rest of plumb. To add one: write a file like npy.c, declare its
 * struct here, and put it into the table of format.c. */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/arena.h"
#include "plumb/run.h"

/* Records found so far. Formats append with listing_add; names and details live in the arena. */
struct listing {
    struct arena *arena;
    const char *path; /* of the file being listed; lives as long as the arena */
    struct plumb_record *records;
    size_t count, capacity;
};

struct format {
    const char *name; /* "npy" */

    /* Does the file start like one? head holds its first n (up to 512) bytes. */
    bool (*probe)(const uint8_t *head, size_t n);

    /* Appends a record for each tensor, in the file's own order. A tensor that cannot be read gets
     * a record with an error (listing_fail) and the others follow; only damage that leaves nothing
     * to list is an error of the call. Never reads outside file, never allocates by a promised
     * size. */
    enum plumb_code (*list)(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err);

    /* Decodes the record's storage into *owned (malloc), dense elements in storage order, *bytes
     * long. file is the whole mapped file. read is called only for records with a detail; the
     * others are stored whole at record->offset, and mapped. NULL when all of them are. */
    enum plumb_code (*read)(const struct plumb_record *record, const struct plumb_file *file,
                            void **owned, uint64_t *bytes, struct plumb_error *err);
};

extern const struct format format_npy, format_npz, format_pt, format_safetensors, format_hdf5,
    format_condensed;

/* The format of that name, or NULL. */
const struct format *format_named(const char *name);

/* The format of a file by its first bytes, or NULL. */
const struct format *format_probe(const struct plumb_file *file);

/* Lists a file with the format and names the file in err. */
enum plumb_code format_list(const struct format *format, struct listing *out,
                            const struct plumb_file *file, struct plumb_error *err);

/* Appends a record with name (copied), path, defaults (no step, no rank, requires_grad unknown) and
 * nothing else. Returns NULL when out of memory. */
struct plumb_record *listing_add(struct listing *out, const char *name, size_t length);

/* Sets dtype and shape after checking them as plumb_tensor_init does. */
enum plumb_code listing_set_shape(struct listing *out, struct plumb_record *record,
                                  enum plumb_dtype dtype, unsigned ndim, const int64_t *shape,
                                  struct plumb_error *err);

/* Marks the record unreadable, with a copy of err. */
enum plumb_code listing_fail(struct listing *out, struct plumb_record *record,
                             const struct plumb_error *err);

/* Loads a listed record: maps or decodes, then checks that the view fits. */
enum plumb_code format_load(const struct format *format, const struct plumb_record *record,
                            uint64_t file_size, int64_t mtime_ns, struct plumb_payload *payload,
                            struct plumb_error *err);

#endif
