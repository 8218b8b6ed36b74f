/* exp of a row at a time, which the softmaxes and attention spend their time in. */
#ifndef OP_EXP_ROW_H
#define OP_EXP_ROW_H

#include "exec/op/real.h"
#include "exec/op/symbols.h"

#include <stdint.h>

/* The largest number, NaN aside; -inf when there is none. */
real row_max(const real *x, int64_t n);

/* y = exp(x - shift), each as fast_exp() of the difference; y may be x. */
void exp_row(const real *x, int64_t n, real shift, real *y);

#endif
