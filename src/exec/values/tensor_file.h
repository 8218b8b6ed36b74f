/* A tensor of a file, found and copied: recorded values of a call, tensors beside a graph. */
#ifndef VALUES_TENSOR_FILE_H
#define VALUES_TENSOR_FILE_H

#include "base/arena.h"
#include "plumb/run.h"

struct tensor_file {
    struct plumb_run *run;
    bool loaded;
    struct plumb_payload payload;
};

/* Whether the file, links followed, is in the folder or below. A file that is not there is. */
bool tensor_file_is_inside(const char *folder, const char *path);

/* Says which tensor of the file is meant, or fails. */
typedef enum plumb_code tensor_chooser(const struct plumb_run *run, const void *context,
                                       size_t *index, struct plumb_error *err);

/* Loads the chosen tensor. The file is to be closed also after a failure. */
enum plumb_code tensor_file_load(struct tensor_file *file, const char *path, tensor_chooser *choose,
                                 const void *context, struct plumb_error *err);
void tensor_file_close(struct tensor_file *file);

/* A copy in the arena: dense, in this machine's byte order. *data is its memory. */
enum plumb_code tensor_file_copy(const struct tensor_file *file, struct arena *arena,
                                 struct plumb_tensor *out, void **data, struct plumb_error *err);

#endif
