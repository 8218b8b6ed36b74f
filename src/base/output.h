/* A file in the making: it has a hidden temporary name until output_commit gives it its own. */
#ifndef BASE_OUTPUT_H
#define BASE_OUTPUT_H

#include "plumb/error.h"

#include <stdbool.h>

struct output {
    char *path, *temp; /* temp is NULL when nothing is on disk under it */
    int fd;
    uint64_t size; /* bytes written */
    bool fresh;    /* a file that has the name by then is not replaced: PLUMB_E_ARG */
};

/* Creates an empty temporary file beside path. On failure there is nothing to release. */
enum plumb_code output_open(struct output *out, const char *path, struct plumb_error *err);

enum plumb_code output_bytes(struct output *out, const void *bytes, uint64_t size,
                             struct plumb_error *err);

/* Appends all that was written to from. */
enum plumb_code output_copy(struct output *out, const struct output *from, struct plumb_error *err);

/* Closes the file, with sync not before its bytes are on the disk; it still has its temporary
 * name. */
enum plumb_code output_end(struct output *out, bool sync, struct plumb_error *err);

/* Ends it and gives it its name, replacing any file of that name unless out->fresh. Releases out in
 * any case, and removes the temporary file on failure. */
enum plumb_code output_commit(struct output *out, bool sync, struct plumb_error *err);

/* All of these in one: a file of these bytes, whole or not at all. */
enum plumb_code output_whole(const char *path, const void *bytes, uint64_t size, bool sync,
                             struct plumb_error *err);

/* Puts the folder of path on the disk: only then does the name of a file survive a crash. False
 * with errno set. */
bool output_sync_folder(const char *path);

/* Gives a file another name, which nobody may have: false with errno EEXIST when it is taken. */
bool output_claim(const char *from, const char *to);

/* Somebody else has given the file its name: output_commit will not, output_discard keeps it. */
void output_named(struct output *out);

/* Removes the temporary file and releases out; all zero is fine. */
void output_discard(struct output *out);

#endif
