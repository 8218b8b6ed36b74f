/* From the values of a pickle to records: every tensor, under the path of keys that leads to it. */
#ifndef FORMAT_PT_WALK_H
#define FORMAT_PT_WALK_H

#include "format/format.h"
#include "format/pickle.h"
#include "format/zip.h"

/* The members of an archive as torch.save writes it. */
struct pt_archive {
    struct zip zip;
    const char *prefix; /* of all its members: "archive/"; not NUL-terminated */
    size_t prefix_length;
    const struct zip_entry *pickle; /* data.pkl */
    size_t pickle_size;
    bool swap; /* the storages are in the other byte order */
};

/* An archive that was read as far as its pickle. Values borrow from the file it was opened with. */
struct pt_pickle {
    struct arena arena;
    struct pt_archive archive;
    uint8_t *owned; /* data.pkl, where it had to be unpacked */
    struct pickle_value *root;
};

/* Reads the directory and the pickle. pt_close is needed only on success. */
enum plumb_code pt_open(struct pt_pickle *pt, const struct plumb_file *file,
                        struct plumb_error *err);
void pt_close(struct pt_pickle *pt);

/* The member called folder + name below the archive's prefix, or NULL. */
const struct zip_entry *pt_find(const struct pt_archive *archive, const char *folder,
                                const char *name, size_t length);

/* Where byte `at` of data.pkl is in the file; when it is deflated, where data.pkl is. */
uint64_t pt_file_offset(const struct pt_archive *archive, uint64_t at);

/* Appends a record for each tensor below root, in the pickle's order. */
enum plumb_code pt_walk(struct listing *out, const struct pt_archive *archive,
                        struct pickle_value *root, struct plumb_error *err);

#endif
