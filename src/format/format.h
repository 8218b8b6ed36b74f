/* What a file format is to the rest of plumb. To add one: write a file like npy.c, and put its name
 * into FORMAT_TABLE. Everything that depends on the format follows from its struct. */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/arena.h"
#include "base/held.h"
#include "plumb/record.h"
#include "plumb/write.h"

/* Records found so far. Formats append with listing_add; names and details live in the arena. */
struct listing {
    struct arena *arena;
    const char *path; /* of the file being listed; lives as long as the arena */
    struct plumb_record *records;
    size_t count, capacity;
};

struct format {
    const char *name;           /* "npy" */
    const char *endings;        /* of its files, ".pt .pth": such a file that is none is an error */
    const char *weight_endings; /* of checkpoints only: ".bin"; NULL: none */
    bool weights;  /* models are handed on in it: named where a checkpoint is asked for */
    bool unnamed;  /* one tensor per file, which has no name but that of the file */
    bool recorded; /* its records are statistics: nothing that a user would look for */

    /* Does the file start like one? head holds its first n (up to 512) bytes. */
    bool (*probe)(const uint8_t *head, size_t n);

    /* How many bytes at the start of the file list reads, told by the first n, with which it starts
     * like one; 0 when that takes more of it. NULL: any part of the file. */
    size_t (*listed_by)(const uint8_t *head, size_t n);

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

    /* Begins a file that plumb_writer_add fills (writer.h); NULL when plumb does not write it.
     * options is not NULL; *writer is set only on success. */
    enum plumb_code (*write)(struct plumb_writer **writer, const char *path,
                             const struct plumb_writer_options *options, struct plumb_error *err);
};

/* All formats, in the order of trial and of help. The two kinds of zip file look at their first
 * member to tell themselves apart. */
#define FORMAT_TABLE(X)                                                                            \
    X(npy)                                                                                         \
    X(npz)                                                                                         \
    X(pt)                                                                                          \
    X(condensed)                                                                                   \
    X(safetensors)                                                                                 \
    X(hdf5)                                                                                        \
    X(gguf)

#define FORMAT_DECLARE(NAME) extern const struct format format_##NAME;
FORMAT_TABLE(FORMAT_DECLARE)
#undef FORMAT_DECLARE

/* The format of that name, or NULL. */
const struct format *format_named(const char *name);

/* Does the name alone promise tensors? */
bool format_is_promised(const char *path);

/* The same of a part of a checkpoint: statistics do not count, more endings do. */
bool format_is_promised_weights(const char *path);

/* The format that the name asks for and that plumb writes, or NULL. */
const struct format *format_written(const char *path);

/* The endings that people are told, ".pt, .pth or .safetensors": of all formats, of those models
 * are handed on in, or of those plumb writes. `word` goes before the last. Returns text. */
enum format_choice { FORMAT_ALL, FORMAT_WEIGHTS, FORMAT_WRITTEN };
const char *format_endings(enum format_choice choice, const char *word, char *text, size_t size);
enum { FORMAT_ENDINGS_BYTES = 256 };

/* The format of a file by its first bytes, or NULL. */
const struct format *format_probe(const struct plumb_file *file);

/* Lists a file with the format and names the file in err. */
enum plumb_code format_list(const struct format *format, struct listing *out,
                            const struct plumb_file *file, struct plumb_error *err);

/* What a file was when it was listed. */
struct format_file {
    const struct format *format; /* NULL: its content is unknown, which is PLUMB_E_FORMAT */
    uint64_t size;
    int64_t mtime_ns;
};

/* Maps a file, recognises it and lists it; path lives as long as the arena. What a script reduced
 * to ranges is listed as the tensors it is about. err names the file. */
enum plumb_code format_list_file(struct listing *out, const char *path, struct format_file *found,
                                 struct plumb_error *err);

/* Appends a record with name (copied), path, defaults (no step, no rank, requires_grad unknown) and
 * nothing else. Returns NULL when out of memory. */
struct plumb_record *listing_add(struct listing *out, const char *name, size_t length);

/* The same with a name that lives as long as the arena: it is not copied. */
struct plumb_record *listing_lend(struct listing *out, const char *name);

/* The same for a tensor that has no name in the file: that of "dir/x.y.npy" is called "x.y". */
struct plumb_record *listing_add_unnamed(struct listing *out);

/* Sets dtype and shape after checking them as plumb_tensor_init does. */
enum plumb_code listing_set_shape(struct listing *out, struct plumb_record *record,
                                  enum plumb_dtype dtype, unsigned ndim, const int64_t *shape,
                                  struct plumb_error *err);

/* The same with a shape that lives as long as the arena: it is not copied. */
enum plumb_code listing_lend_shape(struct plumb_record *record, enum plumb_dtype dtype,
                                   unsigned ndim, const int64_t *shape, struct plumb_error *err);

/* After its shape: where in its storage the record begins, and its strides (copied; NULL: C order).
 * False when out of memory. */
bool listing_set_view(struct listing *out, struct plumb_record *record, uint64_t start,
                      const int64_t *stride);

/* Marks the record unreadable, with a copy of err. */
enum plumb_code listing_fail(struct listing *out, struct plumb_record *record,
                             const struct plumb_error *err);

/* PLUMB_E_FORMAT when the stored bytes of two of the records [first, ...) overlap: for formats
 * where no two tensors share bytes. Records with an error do not count. */
enum plumb_code listing_refuse_overlaps(const struct listing *out, size_t first,
                                        struct plumb_error *err);

/* Loads a listed record: maps or decodes, then checks that the view fits. With a holder (or NULL)
 * the file of a small one stays mapped for the next. */
enum plumb_code format_load(const struct format *format, const struct plumb_record *record,
                            uint64_t file_size, int64_t mtime_ns, struct holder *holder,
                            struct plumb_payload *payload, struct plumb_error *err);

#endif
