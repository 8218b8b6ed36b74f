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

/* The member called folder + name below the archive's prefix, or NULL. */
const struct zip_entry *pt_find(const struct pt_archive *archive, const char *folder,
                                const char *name, size_t length);

/* Where byte `at` of data.pkl is in the file; when it is deflated, where data.pkl is. */
uint64_t pt_file_offset(const struct pt_archive *archive, uint64_t at);

/* Appends a record for each tensor below root, in the pickle's order. */
enum plumb_code pt_walk(struct listing *out, const struct pt_archive *archive,
                        struct pickle_value *root, struct plumb_error *err);

#endif
