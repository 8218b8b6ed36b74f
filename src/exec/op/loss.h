/* What the losses share. */
#ifndef OP_LOSS_H
#define OP_LOSS_H

#include "exec/op/op.h"

#define loss_reduction OP_SYM(loss_reduction)
#define loss_reduce OP_SYM(loss_reduce)
#define loss_cross_entropy OP_SYM(loss_cross_entropy)

enum reduction { REDUCE_NONE, REDUCE_MEAN, REDUCE_SUM };

/* From `reduction` (a word or aten's number) and the old `size_average` and `reduce`. */
enum reduction loss_reduction(struct op *o);

struct val *loss_reduce(struct op *o, struct val *loss, enum reduction how);

/* cross_entropy from the logarithms of probabilities on; takes the call's target, weight,
 * ignore_index, label_smoothing and reduction. */
struct val *loss_cross_entropy(struct op *o, struct val *logp);

#endif
