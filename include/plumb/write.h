/* Writing tensors to files. */
#ifndef PLUMB_WRITE_H
#define PLUMB_WRITE_H

#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes one .npy file (version 1.0 unless the header needs more), replacing any of that name.
 * Types numpy lacks are refused with PLUMB_E_UNSUPPORTED. */
enum plumb_code plumb_npy_write(const char *path, const struct plumb_tensor *tensor,
                                struct plumb_error *err);

/* The same where nothing may have the name: PLUMB_E_ARG when something has. */
enum plumb_code plumb_npy_write_new(const char *path, const struct plumb_tensor *tensor,
                                    struct plumb_error *err);

/* Writes one tensor to a .pt file, as torch.save does. Types torch 1.13 lacks are refused with
 * PLUMB_E_UNSUPPORTED. */
enum plumb_code plumb_pt_write(const char *path, const struct plumb_tensor *tensor,
                               struct plumb_error *err);

struct plumb_writer;

struct plumb_writer_options {
    int64_t global_rank, local_rank; /* HDF5 root attributes; -1: left out */
    bool keep; /* a file that has the name is not replaced: PLUMB_E_ARG when it is closed */
};

/* Opens a container by the ending of path: .safetensors or .h5. The file appears under its name
 * only when plumb_writer_close succeeds, and replaces one of that name (where the name is a link,
 * the one it points to). options may be NULL. */
enum plumb_code plumb_writer_open(struct plumb_writer **writer, const char *path,
                                  const struct plumb_writer_options *options,
                                  struct plumb_error *err);

/* Appends a tensor; its bytes are written before the call returns. step -1: no step. HDF5 puts
 * tensors of a step into the group /STEP, keeps creation order, and stores types it lacks
 * (bfloat16, 8-bit floats) as unsigned integers of the same width; every dataset has the attribute
 * dtype. */
enum plumb_code plumb_writer_add(struct plumb_writer *writer, const char *name, int64_t step,
                                 const struct plumb_tensor *tensor, struct plumb_error *err);

/* Says of the tensors that are added from now on which call of their module they are of, from 0;
 * -1: nothing. HDF5 keeps it as the attribute path_call; comparisons pair calls by it. */
void plumb_writer_call(struct plumb_writer *writer, int64_t call);

/* Puts all tensors so far into a whole file under its name and goes on. From here on an HDF5 file
 * is whole when this process is killed or the disk is full. Without it, or with another format,
 * there is no file before plumb_writer_close. */
enum plumb_code plumb_writer_sync(struct plumb_writer *writer, struct plumb_error *err);

/* Finishes the file and frees the writer, whatever happens. */
enum plumb_code plumb_writer_close(struct plumb_writer *writer, struct plumb_error *err);

/* Throws the unfinished file away, but for what plumb_writer_sync has kept. */
void plumb_writer_abort(struct plumb_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
