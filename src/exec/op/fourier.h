/* Discrete Fourier transforms of any length, along one dimension. */
#ifndef OP_FOURIER_H
#define OP_FOURIER_H

#include "exec/op/parts.h"

/* What transforms of one length share: its factors, and the roots of unity. */
struct fourier_plan;

/* NULL when memory ran out. n > 0. */
const struct fourier_plan *fourier_plan(struct op *o, int64_t n);

/* out[k] = sum over j of in[j] exp(-+ 2 pi i j k / n), the upper sign forward; n complex numbers in
 * pairs. in and out are different. */
void fourier_run(const struct fourier_plan *plan, const real *in, real *out, bool forward);

/* As many terms as the error of such a transform is worth: one for each time that its length is
 * halved. */
int64_t fourier_steps(int64_t n);

/* The same along dimension `dim` of z, whose last dimension is that of parts, times scale. Its
 * gradient is the transform the other way. */
struct val *v_fourier(struct op *o, struct val *z, unsigned dim, bool forward, real scale);

/* Of real x, forward: the first n / 2 + 1 along dimension `dim`, which determine the others. */
struct val *v_fourier_half(struct op *o, struct val *x, unsigned dim, real scale);

/* The other way: n real numbers from those, backward. Imaginary parts that cannot be are taken for
 * 0: that of the first, and of the last when n is even. */
struct val *v_fourier_real(struct op *o, struct val *z, unsigned dim, int64_t n, real scale);

#endif
