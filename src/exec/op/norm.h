/* Normalisation of rows: y = (x - mean) / sqrt(variance + eps) * weight + bias, which layer, group,
 * instance, batch and RMS normalisation all are, with different ideas of what a row is. */
#ifndef OP_NORM_H
#define OP_NORM_H

#include "exec/op/op.h"

/* How rows lie in a tensor, and which weight an element has. */
struct norm_layout {
    int64_t batch, rows, place; /* [batch][rows][place]: a row is all that has its middle index; one
                                   in one piece has batch == 1 */
    int64_t period;             /* rows until the weights repeat */
    int64_t per_row;            /* weights of a row, each for as many neighbouring elements */
};

struct norm {
    struct norm_layout layout;
    real eps;
    bool centred;      /* false: mean taken as 0 (RMS) */
    bool given;        /* mean and rstd are constants, not computed from x */
    real *mean, *rstd; /* of each row */
};

/* Where the gradients of one normalisation go; NULL: not wanted. All are added to. */
struct norm_grads {
    real *x, *weight, *bias;
    bool fresh_x; /* see val_grad_room() */
};

/* Fills y, and norm's mean and rstd unless they are given. weight and bias may be NULL, x
 * unread. */
bool norm_forward(struct op *o, const struct norm *norm, struct val *x, const real *weight,
                  const real *bias, real *y);
bool norm_gradient(struct op *o, const struct norm *norm, struct val *x, const real *weight,
                   const real *grad, struct norm_grads to);

/* The same as a value, differentiable in x, which may be unread, weight and bias. norm's mean and
 * rstd are allocated when they are NULL. */
struct val *v_norm_rows(struct op *o, struct norm *norm, struct val *x, struct val *weight,
                        struct val *bias);

/* Running statistics, where they are given, after a forward that computed its own: each moves by
 * `momentum` towards the mean and the unbiased variance of a channel (of its rows, averaged). */
void norm_write_running(struct op *o, const struct norm *norm, const struct val *x,
                        double momentum);

#endif
