/* p-norms: (sum |x|^p)^(1/p), the number of nonzeros for 0, the extreme |x| for plus and minus
 * infinity. */
#ifndef OP_VECTOR_NORM_H
#define OP_VECTOR_NORM_H

#include "op/op.h"

/* The norm of n numbers. scratch has room for n. */
real p_norm(const real *x, int64_t n, double p, real *scratch);

/* Adds g times the gradient of the norm y of x to out, as torch takes it: 0 where it has none.
 * Equal extremes share it when `share`, else each gets all of it. */
void p_norm_add_gradient(const real *x, int64_t n, double p, real y, real g, bool share, real *out);

/* Over dims (0: all), as a value. */
struct val *v_vector_norm(struct op *o, struct val *x, double p, uint64_t dims, bool keepdim);

#endif
