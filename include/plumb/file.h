/* Mapped files, and a guard against files that shrink while they are mapped. */
#ifndef PLUMB_FILE_H
#define PLUMB_FILE_H

#include "plumb/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_held;

struct plumb_file {
    const uint8_t *data; /* size bytes; NULL when size is 0 */
    uint64_t size;       /* of the mapped part */
    uint64_t file_size;  /* of the whole file */
    int64_t mtime_ns;
    void *map; /* what munmap needs */
    size_t map_size;
    struct plumb_held *held; /* a part of a mapping that several have (a run's small tensors); or
                                NULL: it is the only one */
};

/* Maps bytes [offset, offset+size) of a regular file, read-only; size UINT64_MAX means to the end.
 * Fails (PLUMB_E_FORMAT) when the file is shorter than that. The file name is put into err. */
enum plumb_code plumb_file_map(struct plumb_file *file, const char *path, uint64_t offset,
                               uint64_t size, struct plumb_error *err);
void plumb_file_unmap(struct plumb_file *file); /* all zero is fine */

/* While a guard is entered, a page of the file that is gone (the file was cut short behind our
 * back) reads as zeros instead of killing the process; plumb_file_guard_leave then returns true,
 * and whatever was computed meanwhile is worthless. So it does for whoever has another part of the
 * same mapping: its pages may be those zeros. Guards nest, and belong to the thread that
 * entered them. */
struct plumb_file_guard {
    const struct plumb_file *file;
    bool hit;
    struct plumb_file_guard *outer;
};
void plumb_file_guard_enter(struct plumb_file_guard *guard, const struct plumb_file *file);
bool plumb_file_guard_leave(struct plumb_file_guard *guard);

#ifdef __cplusplus
}
#endif
#endif
