/* Gradients as values: what operators named X_backward return, by the tape of X itself.
 *
 *     struct pullback p;
 *     pull_begin(o, &p, 2, (struct val *[]){x, weight});
 *     struct val *y = ... of x and weight ...;
 *     pull_end(o, &p, 1, &y, &grad, to);
 *
 * leaves in to[0] and to[1] what grad, a gradient of y, is worth to x and weight. The results have
 * no gradient themselves. */
#ifndef OP_PULLBACK_H
#define OP_PULLBACK_H

#include "exec/op/op.h"

#define pull_begin OP_SYM(pull_begin)
#define pull_end OP_SYM(pull_end)

enum { PULL_INPUTS = 8 };

struct pullback {
    struct val *start; /* of the tape */
    unsigned n;
    struct val *in[PULL_INPUTS];
    bool needed[PULL_INPUTS];
};

/* At most PULL_INPUTS inputs; NULL among them stays NULL in the results. False (and failed) when
 * one holds no floating-point numbers. */
bool pull_begin(struct op *o, struct pullback *p, unsigned n, struct val *const *in);

/* Takes off the tape what was put there since pull_begin. Outputs or gradients that are NULL do
 * not count; the others must have as many elements as their gradients. */
bool pull_end(struct op *o, struct pullback *p, unsigned n_outputs, struct val *const *outputs,
              struct val *const *grads, struct val **to);

#endif
