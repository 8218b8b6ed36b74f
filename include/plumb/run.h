/* A run: the ordered tensors that one execution of a model left behind, whatever wrote them.
 *
 * A run is opened from a file (.npy .npz .pt .pth .safetensors .h5), from a folder tree of such
 * files, or from a dump: a dump.json, the folder that holds it, a step folder with rank* or proc*
 * below it, or a folder of step* folders. What a file is, is decided by its content. Opening reads
 * structure only; payloads are mapped or decoded one at a time by plumb_run_load. An open run does
 * not change: any number of threads may load from it at once. */
#ifndef PLUMB_RUN_H
#define PLUMB_RUN_H

#include "plumb/file.h"
#include "plumb/sketch.h"
#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_run;

/* A value that a capture wrote down. text is the value as it was written. */
enum plumb_value_kind { PLUMB_VALUE_NONE, PLUMB_VALUE_NUMBER, PLUMB_VALUE_WORD };
struct plumb_value {
    enum plumb_value_kind kind; /* NaN and infinities are numbers; True and False are words */
    double number;
    const char *text; /* NULL for NONE */
};

enum plumb_statistic {
    PLUMB_STATISTIC_MAX,
    PLUMB_STATISTIC_MIN,
    PLUMB_STATISTIC_MEAN,
    PLUMB_STATISTIC_NORM,
    PLUMB_STATISTICS
};

/* What plumb condense keeps of a tensor besides its statistics. */
struct plumb_kept {
    uint64_t nan, pos_inf, neg_inf;              /* how many values are not finite */
    struct plumb_value finite[PLUMB_STATISTICS]; /* of the others, where there are both kinds */
    enum plumb_dtype dtype;                      /* of the values as they were stored */
    const char *crc32; /* of the elements in C order and native byte order, 8 hex digits; or NULL */
    const struct plumb_sketch *sketch; /* or NULL */
};

/* What a capture wrote down about a tensor, or about an argument that is none. */
struct plumb_recorded {
    bool tensor;               /* else value is all there is */
    const char *api;           /* the call that it belongs to; the same pointer for all of a call */
    const char *type;          /* "torch.Tensor", "int", ...; NULL for a None */
    const char *dtype, *shape; /* as written: "torch.float32", "[4, 10]" */
    const char *value;         /* of what is no tensor, as written */
    struct plumb_value statistic[PLUMB_STATISTICS];
    struct plumb_value deviation; /* of the sample; captures do not write it, plumb condense does */
    bool exact; /* by plumb condense: not rounded to the tensor's type, and there for every type */
    const struct plumb_kept *kept; /* by plumb condense; or NULL */
    const char *checksum;          /* or NULL */
    const char *data_name;         /* of the payload's file, or NULL */
    const char *parent;            /* the call that this one was made in, or NULL */
    const char *const *stack;      /* lines, the last one followed by NULL; or NULL */
};

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
    uint64_t path_call;              /* 1 + which call of its module it is of; 0: not recorded */
    const void *detail;              /* the format's own notes on where the bytes are */
    const struct plumb_error *error; /* why this tensor cannot be read, or NULL */

    const char *key;                       /* what matching compares instead of the name, or NULL */
    const struct plumb_recorded *recorded; /* NULL for formats that hold nothing but tensors */
    bool absent; /* there is no payload and never was one: only `recorded`; loading it fails */
};

/* Opens path. A file that cannot be read inside a folder becomes one record with an error; a single
 * file that cannot be read is an error of the call. *run is set only on success. */
enum plumb_code plumb_run_open(struct plumb_run **run, const char *path, struct plumb_error *err);

void plumb_run_free(struct plumb_run *run); /* NULL is fine */

size_t plumb_run_count(const struct plumb_run *run);
const struct plumb_record *plumb_run_record(const struct plumb_run *run, size_t index);

const char *plumb_run_path(const struct plumb_run *run);

/* What plumb took it for: "npy", "npz", "pt", "safetensors", "hdf5", "folder",
 * or "dump". */
const char *plumb_run_kind(const struct plumb_run *run);

/* Files inside a folder that plumb does not read (their number). */
size_t plumb_run_ignored(const struct plumb_run *run);

/* What was odd but cost no record, a line each; NULL from the number of such lines on. */
const char *plumb_run_warning(const struct plumb_run *run, size_t index);

/* The bytes of one record, mapped where the format stores them whole, else decoded into memory. */
struct plumb_payload {
    struct plumb_tensor tensor;
    struct plumb_file file; /* the mapping under tensor.data, or all zero */
    void *owned;            /* the memory under tensor.data, or NULL */
};

/* Loads record `index`. On success the caller releases the payload; on failure there is nothing to
 * release. Touch mapped bytes only between plumb_file_guard_enter and plumb_file_guard_leave (file.h). */
enum plumb_code plumb_run_load(const struct plumb_run *run, size_t index,
                               struct plumb_payload *payload, struct plumb_error *err);
void plumb_payload_release(struct plumb_payload *payload);

#ifdef __cplusplus
}
#endif
#endif
