/* Tables whose rows are taken by index. */
#ifndef OP_EMBEDDING_H
#define OP_EMBEDDING_H

#include "exec/op/place.h"

/* Whether the weight is a matrix of floats that has all rows of the index; failed if not. */
bool table_check(struct op *o, const struct val *index, const struct val *weight);

/* padding_idx counted from the end when negative; -1 for none. aten writes -1 for none. */
int64_t table_padding(struct op *o, const struct val *weight, bool aten);

/* How much of the gradient of index k its row gets: 0 for padding; by frequency, a share. NULL
 * after a failure. */
real *table_shares(struct op *o, const struct val *index, int64_t rows, int64_t padding);

/* The table with the rows of the index cut to a norm of at most max_norm; the gradient does not see
 * it. */
struct val *table_renormed(struct op *o, struct val *weight, const struct val *index);

#endif
