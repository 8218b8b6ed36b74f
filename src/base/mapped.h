/* A whole file, mapped and under guard while it is read.
 *
 *     struct mapped in;
 *     enum plumb_code code = mapped_open(&in, path, err);
 *     if (!code)
 *         code = mapped_close(&in, parse(in.file.data, in.file.size, err), err);
 */
#ifndef BASE_MAPPED_H
#define BASE_MAPPED_H

#include "plumb/file.h"

struct mapped {
    struct plumb_file file;
    struct plumb_file_guard guard;
    const char *path; /* the caller's */
};

/* Maps the file and enters its guard. err names the file; on failure there is nothing to close. The
 * struct must stay where it is until mapped_close. */
struct holder;

/* The same, from a holder (held.h) whose file it is; NULL: without one. */
enum plumb_code mapped_open_held(struct mapped *in, struct holder *holder, const char *path,
                                 struct plumb_error *err);

enum plumb_code mapped_open(struct mapped *in, const char *path, struct plumb_error *err);

/* Leaves the guard and unmaps. Returns code, with the file named in err when it is a failure; or
 * PLUMB_E_IO when the file shrank meanwhile, whatever came of reading it. */
enum plumb_code mapped_close(struct mapped *in, enum plumb_code code, struct plumb_error *err);

/* The first bytes of a regular file, up to size, without mapping it: returns how many, 0 when there
 * are none or it cannot be read. file gets the size and the time stamp, and no data. */
size_t file_peek(struct plumb_file *file, const char *path, void *head, size_t size);

/* What a guard that was hit means. Returns PLUMB_E_IO. */
enum plumb_code mapped_fail_shrank(struct plumb_error *err);

#endif
