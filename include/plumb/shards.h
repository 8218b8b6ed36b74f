/* Runs of several ranks as one: tensors that ranks hold in parts are put together.
 *
 * Two runs with different parallel layouts become two runs without ranks, which plumb_compare takes
 * as any others. How parts lie is taken from what the caller says, then from what the capture
 * recorded, and else found in the data: see docs/SHARDS.md. */
#ifndef PLUMB_SHARDS_H
#define PLUMB_SHARDS_H

#include "plumb/pair.h"
#include "plumb/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_shards_options {
    const char *const *dims; /* "PATTERN=b s h[tp] d", the first that matches counts */
    size_t dims_count;
    const char *file;            /* YAML of such layouts, or NULL */
    const char *const *parallel; /* "tp=2,pp=4", perhaps behind "target:" or "golden:" */
    size_t parallel_count;
    struct plumb_pair_options match; /* of the wholes; must be what plumb_compare is told then */
    unsigned threads;                /* 0: as many as there are processors */
    plumb_progress_fn *progress;     /* of tensors; NULL: none */
    void *progress_context;
};

/* Makes joined[0] and joined[1] of the target and the golden run, which must stay open as long.
 * A tensor whose layout cannot be found, or with a part that cannot be read, becomes a record with
 * an error. PLUMB_E_ARG and PLUMB_E_FORMAT for options that cannot be used. Free both with
 * plumb_run_free; they are set only on success. */
enum plumb_code plumb_shards_join(struct plumb_run *joined[2], const struct plumb_run *target,
                                  const struct plumb_run *golden,
                                  const struct plumb_shards_options *options,
                                  struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
