/* A pair of tensors looked at closely: where the errors are, how large, and which elements. */
#ifndef PLUMB_DETAIL_H
#define PLUMB_DETAIL_H

#include "plumb/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PLUMB_DETAIL_BINS = 64,     /* of the values */
    PLUMB_DETAIL_CELLS = 64,    /* of a map, along an axis, at most */
    PLUMB_DETAIL_MAPS = 6,      /* at most */
    PLUMB_DETAIL_AXES = 8,      /* with a profile, at most */
    PLUMB_DETAIL_PROFILE = 256, /* cells of a profile, at most */
    PLUMB_DETAIL_WORST = 20,    /* elements, at most */
    PLUMB_DETAIL_WINDOW = 16,   /* elements along an axis, at most */
};

/* The largest absolute error in each cell over two axes; the other axes are maximised over. */
struct plumb_error_map {
    int axes[2];       /* down, across; -1: there is no such axis, the extent is 1 */
    int64_t extent[2]; /* elements */
    unsigned size[2];  /* cells: element i of n is in cell i * size / n */
    double *largest;   /* row by row; infinite where exactly one side is not finite */
};

/* Along one axis, cells as in a map. */
struct plumb_error_profile {
    int axis;
    int64_t extent;
    unsigned size;
    double *largest, *mean; /* mean: of the finite errors */
};

struct plumb_worst_element {
    uint64_t index; /* in C order */
    double target, golden, error;
    double ulps; /* NaN: of a type that has none */
};

/* Single elements round the worst one. */
struct plumb_error_window {
    int axes[2]; /* as in a map */
    int64_t origin[2];
    unsigned size[2];        /* 0: there is none */
    double *target, *golden; /* row by row */
};

struct plumb_detail {
    unsigned rank; /* complex numbers are two along one axis more, the last */
    int64_t shape[PLUMB_MAX_RANK + 1];
    struct plumb_metrics metrics; /* with histograms of the errors, and statistics */
    double low, high;             /* of the values: from the least finite one to the largest */
    uint64_t values[2][PLUMB_DETAIL_BINS]; /* finite ones of the target, of the golden side */
    struct plumb_error_map maps[PLUMB_DETAIL_MAPS];
    size_t n_maps;
    struct plumb_error_profile profiles[PLUMB_DETAIL_AXES];
    size_t n_profiles;
    struct plumb_worst_element worst[PLUMB_DETAIL_WORST]; /* the worst first, then in order */
    size_t n_worst;
    struct plumb_error_window window;
    void *memory;
};

/* Shapes that are equal but for dimensions of size 1 are equal; the target's is told. PLUMB_E_ARG:
 * they are not. On one thread. */
enum plumb_code plumb_detail_measure(struct plumb_detail *out, const struct plumb_tensor *target,
                                     const struct plumb_tensor *golden, struct plumb_error *err);
void plumb_detail_free(struct plumb_detail *detail);

/* Where an element is: rank numbers. */
void plumb_detail_place(const struct plumb_detail *detail, uint64_t index, int64_t *place);

#ifdef __cplusplus
}
#endif
#endif
