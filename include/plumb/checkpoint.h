/* Checkpoints: two sets of weights, compared by name, however they are cut into files.
 *
 * A checkpoint is a file with tensors (.pt .pth .safetensors ...), a folder of such files as big
 * models are stored in (model-00001-of-00003.safetensors), or a Megatron checkpoint: a folder with
 * latest_checkpointed_iteration.txt, or one of its iteration folders with the parts
 * mp_rank_TT[_PPP][_EEE]/model_optim_rng.pt. The parts of a Megatron checkpoint are joined again,
 * and its layers and experts numbered through, so that checkpoints of other tensor, pipeline and
 * expert parallel sizes can be compared. */
#ifndef PLUMB_CHECKPOINT_H
#define PLUMB_CHECKPOINT_H

#include "plumb/profile.h"
#include "plumb/progress.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_checkpoint_options {
    /* A weight passes when its cosine is not below the one, and |a-b| is not above that share of
     * |b|. NaN: as the built-in standard `checkpoint` says (plumb_standard_text). */
    double min_cosine, max_distance;
    const struct plumb_profile
        *rules;                  /* how parts are joined, numbered and chosen; NULL: plumb's */
    unsigned threads;            /* 0: as many as there are processors */
    plumb_progress_fn *progress; /* NULL: none */
    void *progress_context;
};

/* The limits of the standard (cosine 0.99, distance 0.01), and plumb's own rules. */
void plumb_checkpoint_options_init(struct plumb_checkpoint_options *options);

struct plumb_checkpoint_comparison {
    struct plumb_table *table; /* Name, Shape, Numel, l2, cos, Result, Err_message */
    size_t compared;           /* weights whose values were compared */
    size_t passed, failed;     /* of the compared */
    size_t suspicious;         /* of the passed: copies in several parts differ */
    size_t alone;              /* names that only one side has */
    size_t unreadable;         /* rows of parts or weights that could not be compared */
    char *closing;             /* the closing line for people */
    char *json;                /* {name: {"l2", "cos", "numel", "shape"}} of the names both have */
};

/* Compares two checkpoints. Values are compared as float32. A part or tensor that cannot be read is
 * a row; only a side with nothing to read fails the call. Free the result with
 * plumb_checkpoint_free. */
enum plumb_code plumb_checkpoint_compare(struct plumb_checkpoint_comparison *out, const char *first,
                                         const char *second,
                                         const struct plumb_checkpoint_options *options,
                                         struct plumb_error *err);
void plumb_checkpoint_free(struct plumb_checkpoint_comparison *comparison);

/* Writes the JSON: complete under a temporary name, then renamed over path. */
enum plumb_code plumb_checkpoint_save(const struct plumb_checkpoint_comparison *comparison,
                                      const char *path, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
