/* What run.c, load.c and attend.c need of noise.c; operators use op_between() and op_terms(). */
#ifndef OP_NOISE_H
#define OP_NOISE_H

#include "exec/op/op.h"

#define noise_rough OP_SYM(noise_rough)

/* An input, in memory of the call's own. */
void noise_input(struct op *o, real *x, int64_t n);

/* An output that is a node: its last step is the rounding to its type, which is no noise. */
void noise_take_back(const struct op *o, struct val *x);

/* A sum of exponentials that devices take to about 14 bits where 11 or fewer of them are stored. */
real noise_rough(struct op *o, real x);

/* The longest sum of this thread since the last question. */
int64_t noise_take_terms(void);

/* How many significant bits sums of this thread keep from one addition to the next; 0: all. */
void noise_set_sum_bits(unsigned bits);
unsigned noise_sum_bits(void);

/* Whether this thread is on the way back, from outputs to gradients. */
void noise_set_back(bool back);

#endif
