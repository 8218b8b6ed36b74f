/* Products of groups of rows with a matrix each. */
#ifndef OP_GROUPED_H
#define OP_GROUPED_H

#include "exec/op/op.h"

#define v_grouped OP_SYM(v_grouped)

/* a and b are matrices or stacks of them. Two stacks go pair by pair; otherwise ends (integers)
 * says where groups end: of the rows of a matrix a, of the columns of a matrix b, or, of two
 * matrices, of what is summed over. Differentiable. */
struct val *v_grouped(struct op *o, struct val *a, struct val *b, const struct val *ends);

#endif
