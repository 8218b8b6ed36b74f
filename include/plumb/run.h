/* A run: the ordered tensors that one execution of a model left behind, whatever wrote them.
 *
 * A run is opened from a file (.npy .npz .pt .pth .safetensors .h5) or from a folder tree of such
 * files; what a file is, is decided by its content. Opening reads structure only; payloads are
 * mapped or decoded one at a time by plumb_run_load. An open run does not change: any number of
 * threads may load from it at once. */
#ifndef PLUMB_RUN_H
#define PLUMB_RUN_H

#include "plumb/file.h"
#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_run;

/* One tensor of a run. All pointers belong to the run. */
struct plumb_record {
    const char *name; /* as the run calls it; unique within (step, rank) for well-formed runs */
    const char *path; /* the file that holds it */
    int64_t step;     /* -1 when the run does not count steps */
    int64_t rank;     /* -1 when the run does not know ranks */
    enum plumb_dtype dtype;
    bool swap;
    int8_t requires_grad; /* 1, 0, or -1 when the format does not say */
    unsigned ndim;
    const int64_t *shape;
    const int64_t *stride;           /* in elements; NULL: C order */
    uint64_t count;                  /* elements */
    uint64_t offset, bytes;          /* the stored bytes in the file, before any decoding */
    uint64_t start;                  /* element of the decoded storage where the view begins */
    const void *detail;              /* the format's own notes on where the bytes are */
    const struct plumb_error *error; /* why this tensor cannot be read, or NULL */
};

/* Opens path. A file that cannot be read inside a folder becomes one record with an error; a single
 * file that cannot be read is an error of the call. *run is set only on success. */
enum plumb_code plumb_run_open(struct plumb_run **run, const char *path, struct plumb_error *err);

void plumb_run_free(struct plumb_run *run); /* NULL is fine */

size_t plumb_run_count(const struct plumb_run *run);
const struct plumb_record *plumb_run_record(const struct plumb_run *run, size_t index);

const char *plumb_run_path(const struct plumb_run *run);

/* What plumb took it for: "npy", "npz", "pt", "safetensors", "hdf5", or "folder". */
const char *plumb_run_kind(const struct plumb_run *run);

/* Files inside a folder that plumb does not read (their number). */
size_t plumb_run_ignored(const struct plumb_run *run);

/* The bytes of one record, mapped where the format stores them whole, else decoded into memory. */
struct plumb_payload {
    struct plumb_tensor tensor;
    struct plumb_file file; /* the mapping under tensor.data, or all zero */
    void *owned;            /* the memory under tensor.data, or NULL */
};

/* Loads record `index`. On success the caller releases the payload; on failure there is nothing to
 * release. Touch mapped bytes only between plumb_guard_enter and plumb_guard_leave (file.h). */
enum plumb_code plumb_run_load(const struct plumb_run *run, size_t index,
                               struct plumb_payload *payload, struct plumb_error *err);
void plumb_payload_release(struct plumb_payload *payload);

#ifdef __cplusplus
}
#endif
#endif
