/* Faults that kernels really have. Each spoils a matrix: the first output of a call, or the
 * gradient of its first argument. */
#ifndef FAULTS_H
#define FAULTS_H

#include "plumb/device.h"

enum direction { FORWARD, BACKWARD };

/* A matrix that a fault spoils, and the call that it came from. */
struct target {
    struct plumb_device *cpu;
    const struct plumb_call *call;
    enum direction direction;
    int64_t rows, columns;
    double *x;
};

void fault_scale(const struct target *t);      /* 1 % too large */
void fault_wrong_tile(const struct target *t); /* 8 x 8 values that belong elsewhere */
void fault_stale_row(const struct target *t);  /* a row holds the one before it */
void fault_one_nan(const struct target *t);
void fault_zero_sign(const struct target *t);    /* every zero has the other sign */
void fault_dropped_tail(const struct target *t); /* the end of the sums is left out */
void fault_wrong_axis(const struct target *t);   /* along the dimension before the right one */
void fault_bf16_sums(const struct target *t);    /* rounded to bfloat16 at each addition */

/* The values of a tensor, to be freed. */
double *fault_values(const struct plumb_tensor *tensor);

#endif
