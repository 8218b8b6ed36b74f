/* Condensing one file. */
#ifndef CONDENSE_FILE_H
#define CONDENSE_FILE_H

#include "plumb/condense.h"

enum file_outcome {
    FILE_DONE,
    FILE_OTHER, /* no tensors, and nothing that says it should have some */
    FILE_SMALL, /* condensed it would take as much room, or more: left alone */
    FILE_BUSY,  /* open for writing, or changed while it was read */
    FILE_GONE,
    FILE_FAILED,    /* left alone */
    FILE_UNREMOVED, /* condensed, but still there */
};

struct file_result {
    enum file_outcome outcome;
    size_t tensors;
    uint64_t before, after;   /* bytes */
    struct plumb_error error; /* of FILE_FAILED and FILE_UNREMOVED */
};

/* path is complete. With dry_run nothing is written or removed. */
void file_condense(struct file_result *out, const char *path, unsigned keep, bool dry_run);

#endif
