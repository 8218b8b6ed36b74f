/* Finding out how parts make up a whole: hypotheses, tested by shapes and then by values. */
#ifndef PAIR_SHARDS_INFER_H
#define PAIR_SHARDS_INFER_H

#include "pair/shards.h"

/* What a layout rests on. */
enum shards_basis {
    SHARDS_UNKNOWN,   /* nothing fits the shapes */
    SHARDS_BY_SHAPE,  /* no value agrees; the shapes allow it */
    SHARDS_BY_VALUES, /* most parts agree with the whole there */
};

struct shards_family;
struct shards_families;

struct shards_found {
    enum shards_basis basis;
    struct shards_layout *layout;
    double residual; /* relative distance of the parts from the whole, without those that are off */
    unsigned missed; /* parts, or sums of them, that are off */
    bool open;       /* the data allow others: `rival`, or another order of the ranks */
    struct shards_layout *rival; /* or NULL */
    const struct shards_family
        *family; /* that the slices follow, where one was recorded; or NULL */
};

/* Is an answer better? One that leaves fewer parts over is, unless it fits the others clearly
 * worse; what is as near as rounding is not worse. */
bool shards_better(const struct shards_found *a, const struct shards_found *b);

/* One side: its parts, or what is known of how they lie. */
struct shards_side {
    const struct plumb_tensor *const *parts;
    unsigned count;
    const struct shards_layout *known;      /* or NULL */
    const int64_t *ranks;                   /* by part */
    const struct shards_families *families; /* of the run, or NULL */
};

/* Finds the layout of parts whose whole is known. Call it under the guards of all files. */
enum plumb_code shards_infer(struct shards_found *found, struct arena *arena,
                             const struct plumb_tensor *whole,
                             const struct plumb_tensor *const *parts, unsigned count,
                             struct plumb_error *err);

/* Finds the layouts of two sides, both of which may be in parts. A side that is known stays as it
 * is. Where all parts of both sides agree one by one, how they lie does not matter: *same is set,
 * and both layouts are flat. PLUMB_E_NOMEM. */
enum plumb_code shards_infer_sides(struct shards_found found[2], bool *same, struct arena *arena,
                                   const struct shards_side sides[2], struct plumb_error *err);

/* ---- Samples --------------------------------------------------------------------------------- */

enum { SHARDS_STAGES = 3 };

/* Elements of a part that are looked at. */
struct shards_sample {
    uint64_t *index;
    double *value; /* width numbers each */
    size_t count;
    unsigned width;
    bool all; /* of them */
};

/* Stage 0 takes a few elements, the last one all (of a large tensor, four million). NULL tensor
 * values when out of memory. The same elements of equal shapes. */
bool shards_sample(struct shards_sample *sample, struct arena *arena,
                   const struct plumb_tensor *tensor, unsigned stage);

/* Relative distance of sums of samples (parts `from`, `from`+`step`, ...: count of them, times
 * scale) from the whole, where the plan puts part `place`. */
struct shards_sum {
    const struct shards_sample *samples;
    unsigned from, step, count;
    double scale;
};
double shards_distance(const struct shards_sum *sum, const struct plumb_tensor *part,
                       const struct shards_plan *plan, unsigned place,
                       const struct plumb_tensor *whole);

/* How far two tensors with the same number of elements are apart, all elements; 0: the same bits,
 * or nothing but NaNs with other bits. */
double shards_apart(const struct plumb_tensor *a, const struct plumb_tensor *b);

#endif
