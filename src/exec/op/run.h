/* Running one operator of the tables. Compiled once for each number type. */
#ifndef OP_RUN_H
#define OP_RUN_H

#include "exec/op/op.h"

/* Lists the tensors of the call's arguments. */
bool op_find_leaves(struct op *o);

/* A tensor that is no argument (the gradient), as a value. */
struct val *op_load_plain(struct op *o, const struct plumb_tensor *tensor);

/* A tensor of the result with x's shape and type (float64 when raised), elements from f or, when f
 * is NULL, from x->i. */
struct plumb_tensor *op_store(struct op *o, const struct val *x, const real *f);

/* Runs operator `def` of family `family`: binds, computes, and walks the tape back from the output
 * whose gradient the call gives. Values stay in o->outputs, gradients in o->leaves. */
bool op_execute(struct op *o, size_t family, size_t def);

/* Turns them into o->result. */
bool op_finish(struct op *o);

#endif
