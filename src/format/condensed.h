/* What `plumb condense`, or the script it replaces, left of a file of tensors: records without
 * payloads, but with recorded statistics. */
#ifndef FORMAT_CONDENSED_H
#define FORMAT_CONDENSED_H

#include "base/json.h"
#include "format/format.h"

#define CONDENSED_ENDING ".condensed.json"

/* Of the form as a whole, and of the sketches that it may have. That of form 1 is skipped; form 2
 * has version 1, form 3 version 2, which form 4 has with fewer digits, as version 3; form 5 has
 * version 4. */
enum {
    CONDENSED_VERSION = 5,
    CONDENSED_SKETCH_OLD = 1,
    CONDENSED_SKETCH_WIDE = 2,
    CONDENSED_SKETCH_NARROW = 3,
    CONDENSED_SKETCH = 4,
};

/* record->detail of a condensed tensor. */
struct condensed_note {
    const char *format; /* of the original: "npy", "ge", ... */
};

/* Adds to what was recorded about a tensor what the condensed form of its data file says:
 * statistics where they are missing, and the checksum where there are none. path is that of the
 * data file. *found is false, without an error, when there is no such form, or it is damaged. */
enum plumb_code condensed_complete(struct plumb_recorded *recorded, const char *path,
                                   struct arena *arena, bool *found);

/* The same with what a record of a condensed file has. PLUMB_E_NOMEM at worst. */
enum plumb_code condensed_add(struct plumb_recorded *recorded, const struct plumb_record *kept,
                              struct arena *arena);

/* Beside a dump.json: what a capture kept of tensors in place of their files, under the names of
 * those. A condensed file like any other. */
#define CONDENSED_SKETCHES "sketches" CONDENSED_ENDING

/* A sketch as far as it can be read without the shape of its tensor. */
struct condensed_sketch {
    struct plumb_sketch *sketch; /* in the arena; NULL: none, or of a version that is not known */
    const char *text;            /* in the file: its sums, where the blocks follow from the shape */
    size_t length;
};

/* The value of the key "sketch", whose first event (not yet read) is an object. PLUMB_E_FORMAT,
 * without a message, when it is damaged. condensed_fit_sketch is to follow once the shape is
 * known. */
enum plumb_code condensed_read_sketch(struct json *json, struct arena *arena,
                                      struct condensed_sketch *out);

/* Completes it with what follows from type and shape; false when it is that of others. */
bool condensed_fit_sketch(struct condensed_sketch *read, enum plumb_dtype dtype, unsigned rank,
                          const int64_t *shape);

/* A number, with the text that Python has for it. False when out of memory. */
bool condensed_number(struct arena *arena, struct plumb_value *value, double number);

/* Does the name say that a script left it: NAME_min_max.npy or NAME_min_max.npz? */
bool condensed_is_reduced(const char *path);

/* The path of the original, into out (which may be NULL), when the name is that of a condensed file
 * of either kind and the result fits; else false. */
bool condensed_original(const char *path, char *out, size_t size);

/* Turns the records [first, ...) of such a file, as npy or npz listed them, into those of the
 * tensors it is about: [min, max] into one, "inputs" and "outputs" of n rows into 2n. Files that
 * hold anything else stay what they are. */
enum plumb_code condensed_list_reduced(struct listing *out, size_t first,
                                       const struct format *format, const struct plumb_file *file,
                                       struct plumb_error *err);

#endif
