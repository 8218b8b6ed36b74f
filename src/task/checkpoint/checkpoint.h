/* A checkpoint as the comparison sees it: named weights, each in one or several parts. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/run.h"
#include "verdict/profiles.h"

/* How the parts of a weight make one tensor. */
enum checkpoint_join {
    CKPT_WHOLE, /* there is but one part */
    CKPT_AXIS0, /* one after the other */
    CKPT_AXIS1, /* side by side */
    CKPT_GATED, /* each part is half of one matrix above half of another: first all upper halves */
};

struct checkpoint_part {
    const struct plumb_run *run;
    size_t record;
    const char *where; /* what people call the part: "mp_rank_00_001", a file name */
};

struct checkpoint_weight {
    const char *name;
    enum checkpoint_join join;
    struct checkpoint_part *parts;
    size_t count;
    const char *problem; /* why it cannot be compared, or NULL */
    unsigned ndim;       /* of the joined tensor, when there is no problem */
    int64_t *shape;
    uint64_t elements;
    struct checkpoint_weight *copy; /* the same weight as other parts hold it, or NULL */
};

/* A part that could not be read, or is not there. */
struct checkpoint_fault {
    const char *name, *what;
};

struct checkpoint {
    struct arena arena;
    const char *path;
    const struct checkpoint_profile *rules;
    struct plumb_run **runs;
    size_t run_count, run_capacity;
    struct checkpoint_weight **weights;
    size_t count, capacity;
    struct map names; /* of the weights -> index */
    struct checkpoint_fault *faults;
    size_t fault_count, fault_capacity;
};

/* Opens whatever path is. checkpoint_close is needed only on success. */
enum plumb_code checkpoint_open(struct checkpoint *ckpt, const char *path,
                                const struct checkpoint_profile *rules, struct plumb_error *err);
void checkpoint_close(struct checkpoint *ckpt);

/* The Megatron checkpoint in folder, which has parts mp_rank_*. */
enum plumb_code checkpoint_open_megatron(struct checkpoint *ckpt, const char *folder,
                                         struct plumb_error *err);

/* The folder below (or at) path that holds parts mp_rank_*; *folder stays NULL when path is no
 * Megatron checkpoint. */
enum plumb_code checkpoint_find_megatron(struct checkpoint *ckpt, const char *path,
                                         const char **folder, struct plumb_error *err);

/* Building blocks of the openers; PLUMB_E_NOMEM is the only error of those without err. */
enum plumb_code checkpoint_add_run(struct checkpoint *ckpt,
                                   struct plumb_run *run); /* frees it on failure */
enum plumb_code checkpoint_add_fault(struct checkpoint *ckpt, const char *name, const char *what);
enum plumb_code checkpoint_add_weight(struct checkpoint *ckpt, struct checkpoint_weight *weight);

/* Finds out shape and number of elements of the joined tensor, or sets weight->problem. */
enum plumb_code checkpoint_shape(struct checkpoint *ckpt, struct checkpoint_weight *weight);

#endif
