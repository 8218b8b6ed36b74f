/* Tensors that several ranks should have alike: which of them are equal. */
#ifndef BLAME_ODD_H
#define BLAME_ODD_H

#include "task/blame/across.h"

/* What is known of a tensor without keeping it. */
struct print {
    uint64_t bits[2];
    bool known, constant;
};

/* Of its values, else of its checksum, else of its statistics. */
void print_of(struct print *out, const struct plumb_run *run, size_t record);

/* How far apart two tensors of one shape are, relative to the first, and how they at least go
 * together about their means, -1 to 1; NaN: not known. By statistics where there are no values. */
void print_compare(const struct plumb_run *run, size_t a, size_t b, double *apart,
                   double *together);

/* ---- Sets of tensors that belong together ---------------------------------------------------- */

struct replica {
    size_t record, rank; /* rank: place in the list of the step */
    struct print print;
};

/* The tensors that all ranks call the same, or got from the same exchange. */
struct replicas {
    const char *name;
    struct replica *list; /* by rank */
    size_t count;
    bool exchanged; /* what an exchange gives to everybody: nothing else has to be known */
    bool distinct;  /* no two of several ranks are equal */
};

struct replica_sets {
    struct replicas *list; /* in the order of the run */
    size_t count, capacity;
    struct map index;  /* by name */
    uint64_t elements; /* of the parameters of a rank */
    bool arguments;    /* there are no parameters: these are what functions were given */
    struct arena arena;
};

/* Parameters and reduced gradients by their names (without parameters: what functions are given
 * that has a gradient, and that no call has made), and what exchanges gave to all of their ranks
 * where only statistics of it were kept. With their prints, which takes reading them. */
enum plumb_code sets_find(struct replica_sets *sets, const struct across *across,
                          const struct across_step *step, const struct plumb_run *run,
                          unsigned threads);
void sets_close(struct replica_sets *sets);

#endif
