/* A tensor in a file: what is known of it without its bytes, and its bytes once they are loaded.
 *
 * A record says name, type, shape and where the bytes lie; for a dump also, or only, what the
 * capture wrote down about the tensor. Records belong to the run that listed them (plumb/run.h). */
#ifndef PLUMB_RECORD_H
#define PLUMB_RECORD_H

#include "plumb/file.h"
#include "plumb/sketch.h"
#include "plumb/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value that a capture wrote down. text is the value as it was written; NULL for NONE, and for a
 * number that says as much. */
enum plumb_value_kind { PLUMB_VALUE_NONE, PLUMB_VALUE_NUMBER, PLUMB_VALUE_WORD };
struct plumb_value {
    enum plumb_value_kind kind; /* NaN and infinities are numbers; True and False are words */
    bool written; /* without a text: the shortest one that reads back as number was written */
    double number;
    const char *text;
};

enum plumb_statistic {
    PLUMB_STATISTIC_MAX,
    PLUMB_STATISTIC_MIN,
    PLUMB_STATISTIC_MEAN,
    PLUMB_STATISTIC_NORM,
    PLUMB_STATISTICS
};

/* What plumb condense, or a sketch capture, keeps of a tensor besides its statistics. */
struct plumb_kept {
    uint64_t nan, pos_inf, neg_inf;              /* how many values are not finite */
    struct plumb_value finite[PLUMB_STATISTICS]; /* of the others, where there are both kinds */
    struct plumb_value deviation;                /* of the sample; captures do not write it */
    enum plumb_dtype dtype;                      /* of the values as they were stored */
    const char *crc32; /* of the elements in C order and native byte order, 8 hex digits; or NULL */
    const char *hash;  /* 128 bits of the same bytes, 32 hex digits; or NULL */
    const struct plumb_sketch *sketch; /* or NULL */
};

/* Where a call was made. */
struct plumb_caller {
    const char *parent;       /* the call that this one was made in, or NULL */
    const char *const *stack; /* lines, the last one followed by NULL; or NULL */
};

/* What few tensors have. */
struct plumb_recorded_rest {
    const char *statistic_text[PLUMB_STATISTICS]; /* of those that need one */
    const struct plumb_kept *kept;                /* by plumb condense; or NULL */
    const char *dtensor;           /* how it is spread, as JSON: placements, mesh, shape; or NULL */
    const char *p2p_op, *p2p_peer; /* of a batch of sends and receives: which, and the other rank;
                                      or NULL */
};

/* What a capture wrote down about a tensor, or about an argument that is none. There are as many as
 * tensors, so it is kept small: callers are shared, and the functions below know what is not there.
 */
struct plumb_recorded {
    bool tensor;        /* else value is all there is */
    bool exact;         /* by plumb condense: not rounded to the tensor's type, for every type */
    bool uninitialised; /* nobody has written to it: its numbers mean nothing */
    bool spread;        /* a part of a tensor that several processes have */
    uint8_t statistic_kind[PLUMB_STATISTICS];  /* plumb_recorded_statistic knows how to read */
    double statistic_number[PLUMB_STATISTICS]; /* these two, with the rest */
    const char *api;           /* the call that it belongs to; the same pointer for all of a call */
    const char *type;          /* "torch.Tensor", "int", ...; NULL for a None */
    const char *dtype, *shape; /* as written: "torch.float32", "[4, 10]" */
    const char *value;         /* of what is no tensor, as written */
    const char *checksum;      /* or NULL */
    const char *data_name;     /* of the payload's file, or NULL */
    const struct plumb_caller *caller;      /* or NULL */
    const struct plumb_recorded_rest *rest; /* or NULL */
};

/* A member of the caller or of the rest; NULL where there is none, or nothing recorded at all. */
const char *plumb_recorded_parent(const struct plumb_recorded *recorded);
const char *const *plumb_recorded_stack(const struct plumb_recorded *recorded);
const struct plumb_kept *plumb_recorded_kept(const struct plumb_recorded *recorded);

struct plumb_value plumb_recorded_statistic(const struct plumb_recorded *recorded,
                                            enum plumb_statistic which);

/* Is at least one of them there? */
bool plumb_recorded_has_statistics(const struct plumb_recorded *recorded);

/* A tensor that is not all of its storage in C order. */
struct plumb_view {
    uint64_t start;        /* element of the decoded storage where it begins */
    const int64_t *stride; /* in elements; NULL: C order */
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
    bool absent; /* there is no payload and never was one: only `recorded`; loading it fails */
    uint32_t path_call; /* 1 + which call of its module it is of; 0: not recorded */
    unsigned ndim;
    const int64_t *shape;
    uint64_t count;                  /* elements */
    uint64_t offset, bytes;          /* the stored bytes in the file, before any decoding */
    const struct plumb_view *view;   /* NULL: all of the storage in C order */
    const void *detail;              /* the format's own notes on where the bytes are */
    const struct plumb_error *error; /* why this tensor cannot be read, or NULL */

    const char *key;                       /* what matching compares instead of the name, or NULL */
    const struct plumb_recorded *recorded; /* NULL for formats that hold nothing but tensors */
    const char
        *layout; /* how parts on several ranks were put together to it, for people; or NULL */
};

/* The bytes of one record, mapped where the format stores them whole, else decoded into memory. */
struct plumb_payload {
    struct plumb_tensor tensor;
    struct plumb_file file; /* the mapping under tensor.data, or all zero */
    void *owned;            /* the memory under tensor.data, or NULL */
};

/* Unmaps or frees the bytes; all zero is fine. */
void plumb_payload_release(struct plumb_payload *payload);

/* The endings of the files that plumb reads, for people: ".npy, .npz, ... and .h5". Returns text,
 * cut to size bytes with its NUL. Any thread may call it. */
const char *plumb_format_endings(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
