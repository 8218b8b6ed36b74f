/* From real numbers to complex ones and back: parts, conjugates, sizes and angles. */
#include "exec/op/complex_math.h"

#include <string.h>

static struct val *complex_arg(struct op *o, const char *name)
{
    struct val *z = arg_tensor(o, name);
    if (z && !z->is_complex)
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' is not complex", o->call->name, name);
    return z;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void run_view_as_real(struct op *o)
{
    struct val *z = complex_arg(o, "input");
    op_return(o, z ? v_reshape(o, z, z->rank, z->shape) : NULL);
}

static void run_view_as_complex(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (!x || o->failed)
        return;
    const bool wide = x->dtype == PLUMB_F32 || x->dtype == PLUMB_F64;
    if (x->is_complex || !x->rank || x->shape[x->rank - 1] != 2 || !wide) {
        op_fail(o, x->f && !wide && !x->is_complex ? PLUMB_E_UNSUPPORTED : PLUMB_E_ARG,
                "%s: a tensor of float32 or float64 with a last dimension of 2 is wanted",
                o->call->name);
        return;
    }
    op_return_complex(o, v_reshape(o, x, x->rank, x->shape));
}

static void run_real(struct op *o)
{
    op_return(o, v_part(o, complex_arg(o, "input"), 0));
}

static void run_imag(struct op *o)
{
    op_return(o, v_part(o, complex_arg(o, "input"), 1));
}

/* Two operands of one type, broadcast. */
static bool arg_pair(struct op *o, const char *first, const char *second, struct val **a,
                     struct val **b)
{
    unsigned rank;
    int64_t shape[OP_RANK];
    *a = arg_tensor(o, first);
    *b = arg_tensor(o, second);
    if (!*a || !*b || !broadcast_shape(o, *a, *b, &rank, shape))
        return false;
    if ((*a)->dtype != (*b)->dtype || (*a)->is_complex || (*b)->is_complex ||
        ((*a)->dtype != PLUMB_F32 && (*a)->dtype != PLUMB_F64)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: two tensors of float32 or of float64 are wanted",
                o->call->name);
        return false;
    }
    *a = v_broadcast(o, *a, rank, shape);
    *b = v_broadcast(o, *b, rank, shape);
    return !o->failed;
}

static void run_complex(struct op *o)
{
    struct val *re, *im;
    if (arg_pair(o, "real", "imag", &re, &im))
        op_return_complex(o, v_join(o, re, im));
}

static void run_polar(struct op *o)
{
    struct val *size, *angle;
    if (arg_pair(o, "abs", "angle", &size, &angle))
        op_return_complex(
            o, v_join(o, v_mul(o, size, v_cos(o, angle)), v_mul(o, size, v_sin(o, angle))));
}

static struct val *conjugate(struct op *o, struct val *z)
{
    return v_join(o, v_part(o, z, 0), v_neg(o, v_part(o, z, 1)));
}

static void run_conj(struct op *o)
{
    op_return_complex(o, conjugate(o, complex_arg(o, "input")));
}

/* The conjugate of a matrix, or of each of a batch, transposed. */
static void run_adjoint(struct op *o)
{
    struct val *z = conjugate(o, complex_arg(o, "input"));
    if (z && z->rank == 2) {
        op_fail(o, PLUMB_E_ARG, "%s: a vector has no adjoint", o->call->name);
        return;
    }
    op_return_complex(o, z && z->rank > 2 ? v_transpose(o, z, z->rank - 3, z->rank - 2) : z);
}

static void run_is_complex(struct op *o)
{
    op_return_bool(o, complex_arg(o, "input") != NULL);
}

/* Complex numbers into a real tensor: their real parts. */
static void run_copy(struct op *o)
{
    struct val *to = arg_tensor(o, "input"), *from = arg_tensor(o, "src");
    if (!to || !from)
        return;
    struct val *z = to->is_complex ? v_complex(o, from) : v_part(o, from, 0);
    z = v_broadcast(o, v_cast(o, z, to->dtype), to->rank, to->shape);
    if (to->is_complex)
        op_return_complex(o, z);
    else
        op_return(o, z);
}

/* ---- Sizes and angles ------------------------------------------------------------------------ */

static void run_abs(struct op *o)
{
    op_return(o, v_size(o, complex_arg(o, "input")));
}

static void angle_backward(struct op *o, struct val *out)
{
    const struct val *z = out->in[0];
    real *to = val_grad(o, out->in[0]);
    for (int64_t k = 0; to && k < out->count; k++) {
        const struct cx at = {z->f[2 * k], z->f[2 * k + 1]};
        const real size = cx_size(at), g = size != 0 ? out->grad[k] / size : 0;
        to[2 * k] -= size != 0 ? g * (at.im / size) : 0;
        to[2 * k + 1] += size != 0 ? g * (at.re / size) : 0;
    }
}

static void run_angle(struct op *o)
{
    struct val *z = complex_arg(o, "input");
    struct val *y = z ? val_new(o, z->dtype, z->rank - 1, z->shape) : NULL;
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = atan2(z->f[2 * k + 1], z->f[2 * k]);
    if (y)
        op_between_function(o, y->f, y->count);
    op_return(o, val_node(o, y, angle_backward, z, NULL, NULL, NULL));
}

/* With s = z / |z|: (g - s Re(conj(s) g)) / |z|. */
static void sgn_backward(struct op *o, struct val *out)
{
    const struct val *z = out->in[0];
    real *to = val_grad(o, out->in[0]), *signs = op_alloc(o, z->count, sizeof *signs);
    if (!to || !signs)
        return;
    memcpy(signs, out->f, (size_t)z->count * sizeof *signs);
    op_between_sizes(o, signs, z->count / 2, NULL);
    for (int64_t k = 0; k < z->count / 2; k++) {
        const struct cx s = {signs[2 * k], signs[2 * k + 1]};
        const struct cx g = {out->grad[2 * k], out->grad[2 * k + 1]};
        const real size = hypot(z->f[2 * k], z->f[2 * k + 1]), along = s.re * g.re + s.im * g.im;
        to[2 * k] += size != 0 ? (g.re - s.re * along) / size : 0;
        to[2 * k + 1] += size != 0 ? (g.im - s.im * along) / size : 0;
    }
}

static void run_sgn(struct op *o)
{
    struct val *z = complex_arg(o, "input"), *y = z ? val_like(o, z, z->dtype) : NULL;
    for (int64_t k = 0; y && k < z->count; k++) {
        const real size = hypot(z->f[k & ~1], z->f[k | 1]);
        y->f[k] = size != 0 ? z->f[k] / size : 0;
    }
    op_return_complex(o, val_node(o, y, sgn_backward, z, NULL, NULL, NULL));
}

/* ---- Products -------------------------------------------------------------------------------- */

/* First against last half, and again, until one is left along the dimension. */
static struct val *product_along(struct op *o, struct val *z, unsigned dim)
{
    while (z && z->shape[dim] > 1) {
        const int64_t n = z->shape[dim], half = n / 2;
        struct val *y =
            v_complex_mul(o, v_narrow(o, z, dim, 0, half), v_narrow(o, z, dim, half, half));
        struct val *both[2] = {y, n % 2 ? v_narrow(o, z, dim, n - 1, 1) : NULL};
        z = n % 2 ? v_cat(o, both, 2, dim) : y;
    }
    return z;
}

static void run_prod(struct op *o)
{
    struct val *z = complex_arg(o, "input");
    const enum plumb_dtype dtype = arg_dtype(o, "dtype");
    if (z && dtype != PLUMB_DTYPE_COUNT)
        z = v_cast(o, z, part_dtype(dtype));
    if (!z)
        return;
    const unsigned rank = z->rank - 1;
    const bool one = arg_given(o, "dim") && rank, keep = one && arg_bool(o, "keepdim");
    const int64_t shape[2] = {z->count / 2, 2};
    if (!one)
        z = v_reshape(o, z, 2, shape);
    int64_t dim = one ? arg_int(o, "dim") : 0;
    if (one && (dim < -(int64_t)rank || dim >= (int64_t)rank)) {
        op_fail(o, PLUMB_E_ARG, "prod: dimension %lld of a tensor with %u", (long long)dim, rank);
        return;
    }
    dim += dim < 0 ? rank : 0;
    if (z && z->shape[dim] == 0) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "prod: of no complex numbers");
        return;
    }
    if (z)
        op_terms(z->shape[dim]);
    z = product_along(o, z, (unsigned)dim);
    op_return_complex(o, keep ? z : v_squeeze(o, z, (unsigned)dim));
}

/* The sum of products with the conjugate of the first, over the last dimension or another. */
static void inner_product(struct op *o, const char *first, const char *second, int64_t dim)
{
    struct val *a = v_complex(o, arg_tensor(o, first)), *b = v_complex(o, arg_tensor(o, second));
    struct val *y = a && b ? v_complex_mul(o, conjugate(o, a), b) : NULL;
    if (!y)
        return;
    const int64_t rank = y->rank - 1;
    if (dim < -rank || dim >= rank) {
        op_fail(o, PLUMB_E_ARG, "%s: dimension %lld of tensors with %lld", o->call->name,
                (long long)dim, (long long)rank);
        return;
    }
    op_return_complex(o, v_sum(o, y, UINT64_C(1) << (dim < 0 ? dim + rank : dim), false));
}

static void run_vdot(struct op *o)
{
    inner_product(o, "input", "other", -1);
}

static void run_vecdot(struct op *o)
{
    inner_product(o, "input", "other", arg_int(o, "dim"));
}

#define ONE "(Tensor input|self)"

const struct op_def op_complex[] = {
    {"view_as_real view_as_real_copy", "view_as_real" ONE, run_view_as_real, OP_COMPLEX,
     "the parts as a last dimension of 2"},
    {"view_as_complex view_as_complex_copy", "view_as_complex" ONE, run_view_as_complex, OP_COMPLEX,
     "a last dimension of 2 as parts"},
    {"Complex.real", "real" ONE, run_real, OP_COMPLEX, "the real part"},
    {"imag", "imag" ONE, run_imag, OP_COMPLEX, "the imaginary part"},
    {"complex", "complex(Tensor real, Tensor imag)", run_complex, OP_COMPLEX, "real + i imag"},
    {"polar", "polar(Tensor abs, Tensor angle)", run_polar, OP_COMPLEX | OP_ELEMENTWISE,
     "abs (cos angle + i sin angle)"},
    {"Complex.conj Complex._conj Complex.conj_physical Complex.conj_physical_ "
     "Complex._conj_physical Complex._conj_copy",
     "conj" ONE, run_conj, OP_COMPLEX, "real - i imag"},
    {"Complex.adjoint Complex.mH Complex.H", "adjoint" ONE, run_adjoint, OP_COMPLEX,
     "the conjugate, transposed"},
    {"Complex.is_complex", "is_complex" ONE, run_is_complex, OP_COMPLEX | OP_NO_GRAD, NULL},
    {"Complex.copy_ Complex.copy",
     "copy_(Tensor input|self, Tensor src|other, bool non_blocking=False)", run_copy, OP_COMPLEX,
     "src in the shape and type of input"},
    {"Complex.abs Complex.abs_ Complex.absolute Complex.absolute_ Complex.__abs__", "abs" ONE,
     run_abs, OP_COMPLEX | OP_ELEMENTWISE, "sqrt(real^2 + imag^2)"},
    {"Complex.angle", "angle" ONE, run_angle, OP_COMPLEX | OP_ELEMENTWISE, "atan2(imag, real)"},
    {"Complex.sgn Complex.sgn_", "sgn" ONE, run_sgn, OP_COMPLEX | OP_ELEMENTWISE,
     "z / |z|, and 0 for 0"},
    {"Complex.prod",
     "prod(Tensor input|self, int? dim|axis=None, bool keepdim|keepdims=False, *, dtype? "
     "dtype=None)",
     run_prod, OP_COMPLEX | OP_COMPOSITE, NULL},
    {"Complex.vdot", "vdot(Tensor input|self, Tensor other)", run_vdot, OP_COMPLEX | OP_BILINEAR,
     "sum of conj(input) other"},
    {"Complex.linalg.vecdot Complex.linalg_vecdot",
     "linalg.vecdot(Tensor input|self|x, Tensor other|y, *, int dim=-1)", run_vecdot,
     OP_COMPLEX | OP_BILINEAR, "sum of conj(input) other along a dimension"},
    {0},
};
