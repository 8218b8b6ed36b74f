/* The files below a folder, as they are at one moment. */
#ifndef CONDENSE_SCAN_H
#define CONDENSE_SCAN_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>
#include <sys/stat.h>

struct scan_file {
    const char *path; /* inside the folder */
    uint64_t device, inode, size;
    struct timespec changed; /* its mtime */
    unsigned host;           /* the first that has it, by its number among those of a crew */
    uint8_t *hosts;          /* a bit for each that has it; NULL: whoever asks has */
};

struct scan_folder {
    const char *path; /* inside the folder; "" is the folder itself */
    int error;        /* errno, when it could not be read */
};

struct scan {
    struct arena arena;
    struct scan_file *files; /* in the order of run/walk.h */
    size_t file_count, file_capacity;
    struct scan_folder *folders;
    size_t folder_count, folder_capacity;
};

/* Regular files that may hold tensors: hidden, temporary and already condensed ones are left out,
 * links are not followed. With sweep, temporary files that a killed plumb left are removed. Free
 * the scan in any case. Only the top folder can fail the call, with PLUMB_E_IO. */
enum plumb_code scan_folder(struct scan *scan, const char *folder, bool sweep,
                            struct plumb_error *err);
void scan_free(struct scan *scan);

#endif
