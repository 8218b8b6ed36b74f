/* GE dump files: what one operator of a graph read and wrote on the device, as CANN stores it.
 *
 *     u64 H | header of H bytes (protobuf, or the "nano" container) | the bytes of all tensors
 *
 * Parsing reads the header only; tensors are mapped one at a time by ge_load. */
#ifndef FORMAT_GE_FILE_H
#define FORMAT_GE_FILE_H

#include "base/arena.h"
#include "plumb/record.h"

enum ge_part { GE_INPUT, GE_OUTPUT, GE_BUFFER, GE_SPACE };

/* Numbers that plumb does something with; ge_format_name knows them all. */
enum ge_format {
    GE_NCHW = 0,
    GE_NHWC = 1,
    GE_ND = 2,
    GE_NC1HWC0 = 3,
    GE_FRACTAL_Z = 4,
    GE_HWCN = 16,
    GE_FRACTAL_NZ = 29,
    GE_NCDHW = 30,
    GE_NDC1HWC0 = 32,
};

struct ge_dims {
    unsigned rank;
    const uint64_t *dim;
};

struct ge_tensor {
    enum ge_part part;
    unsigned index; /* among those of its part */
    int32_t type;   /* of ge_type.h, for both containers */
    int32_t format, sub_format;
    struct ge_dims shape, original;
    uint64_t offset, size;                 /* in the file */
    const struct plumb_error *error;       /* its bytes are not all there; else NULL */
    const struct plumb_recorded *recorded; /* all that is left of a condensed one; else NULL */
};

struct ge_file {
    const char *path;
    bool nano;
    const char *version, *op_name; /* "" when the header does not say */
    uint64_t dump_time;            /* microseconds */
    struct ge_tensor *inputs, *outputs;
    size_t input_count, output_count;
    uint64_t size; /* of the file, when it was parsed */
    int64_t mtime_ns;
};

/* Does it begin like a GE dump file? head holds the first n bytes of a file of that size. */
bool ge_probe(const uint8_t *head, size_t n, uint64_t size);

/* The same of a mapped file, which the caller guards. */
static inline bool ge_probe_file(const struct plumb_file *file)
{
    return file->size &&
           ge_probe(file->data, file->size < 64 ? (size_t)file->size : 64, file->size);
}

/* Parses bytes that somebody else has mapped (and guards); everything lives in the arena. A tensor
 * whose bytes run past the end gets an error of its own; only a header that cannot be read fails
 * the call. */
enum plumb_code ge_parse(struct ge_file *ge, const struct plumb_file *file, const char *path,
                         struct arena *arena, struct plumb_error *err);

/* Maps, parses and lets go again. err names the file. */
enum plumb_code ge_open(struct ge_file *ge, const char *path, struct arena *arena,
                        struct plumb_error *err);

/* The "nano" header: records in a tag-length-value list. Used by ge_parse. */
enum plumb_code ge_parse_nano(struct ge_file *ge, const struct plumb_file *file,
                              uint64_t header_size, struct arena *arena, struct plumb_error *err);

/* Sets offsets, and errors where bytes are missing; *position moves on. Used by both parsers. */
enum plumb_code ge_place(struct ge_tensor *tensors, size_t count, uint64_t file_size,
                         uint64_t *position, const char *path, struct arena *arena,
                         struct plumb_error *err);

/* The same for a file that was condensed, which ge_open does where the name says so. */
enum plumb_code ge_open_condensed(struct ge_file *ge, const char *path, struct arena *arena,
                                  struct plumb_error *err);
bool ge_is_condensed(const char *path);

struct ge_order;

/* How tensors are read; all zero: as this room does it. The functions are pure. */
struct ge_reading {
    /* Undoes a format, false: it is not to be undone. What is not is taken as it lies, and what is
     * keeps the shape that it gets. NULL: all formats that plumb knows are, others are refused. */
    bool (*undo)(struct ge_order *order, const struct ge_tensor *tensor, int32_t format);
    /* Another name for the type of its values, or NULL. NULL: the type that they have. */
    const char *(*shown)(const struct ge_tensor *tensor);
};

/* The values of a tensor in the order of the original shape: mapped where they lie that way in the
 * file, else decoded. The caller releases the payload. Touch mapped bytes only under a guard. */
enum plumb_code ge_load(const struct ge_file *ge, const struct ge_tensor *tensor,
                        const struct ge_reading *reading, struct plumb_payload *payload,
                        struct plumb_error *err);

/* The name of its type to people: "float16", "int4", "DT_STRING". */
const char *ge_dtype_shown(const struct ge_tensor *tensor, const struct ge_reading *reading);

const char *ge_format_name(int32_t format); /* "FRACTAL_NZ", or "unknown" */

#endif
