/* What operator families are written with: values, arguments, and differentiable building
 * blocks.
 *
 * A family file defines operators as functions of a running call `struct op`, in the shape
 *
 *     static void run_layer_norm(struct op *o)
 *     {
 *         struct val *x = arg_tensor(o, "input");
 *         ...
 *         op_return(o, v_add(o, v_mul(o, normed, weight), bias));
 *     }
 *
 *     const struct op_def op_norm[] = {
 *         {"layer_norm", "layer_norm(Tensor input, int[] normalized_shape, ...)", run_layer_norm},
 *         {0},
 *     };
 *
 * Errors stick: the first failure is kept in the op, every block given a NULL value returns
 * NULL, and an operator need not check in between unless it touches data itself. Values are
 * immutable once made, dense, and live until the call's result is destroyed. Building blocks
 * (v_...) record themselves on the tape when an input needs a gradient, so whatever is composed
 * of them has a backward; an operator that computes by hand gives its own with val_node(). */
#ifndef OP_OP_H
#define OP_OP_H

#include "base/arena.h"
#include "exec/op/def.h"
#include "exec/op/real.h"
#include "exec/op/symbols.h"
#include "plumb/op.h"

#include <stdbool.h>
#include <stdint.h>

#define OP_RANK PLUMB_MAX_RANK

/* ---- Values ---------------------------------------------------------------------------------- */

struct op;
struct val;

/* Adds to the gradients of out->in[...] what out->grad is worth to them. */
typedef void op_backward(struct op *o, struct val *out);

struct val {
    enum plumb_dtype dtype; /* what torch would call it; floats are all computed as real */
    unsigned rank;
    bool weak;       /* a Python number: it does not raise a tensor's type within its kind */
    bool needs_grad; /* see grad */
    bool moved;      /* elements of its inputs, none computed */
    bool is_complex; /* an argument or result of complex numbers: the last dimension, of 2, is their
                        real and imaginary parts. Blocks know nothing of it; see parts.h */
    int64_t shape[OP_RANK];
    int64_t count;
    real *f;    /* the elements of a float dtype, C order */
    int64_t *i; /* the elements of an integer or bool dtype; exactly one of f and i is set, but for
                   what is unread */
    const struct plumb_tensor *unread; /* where the elements are; see arg_unread() */

    real *grad;            /* allocated by val_grad() */
    op_backward *backward; /* NULL for inputs */
    struct val *in[4];
    const void *saved;   /* the backward's own, from op_alloc() */
    uint64_t disturbed;  /* what its elements were multiplied by; see noise.c. 0: nothing */
    struct val *earlier; /* the tape */
};

/* What an operator that knows real numbers only gets of an argument: see parts.h. */
enum op_part { PART_WHOLE, PART_REAL, PART_IMAGINARY, PART_SIZE, PART_ZERO, OP_PARTS };

/* A tensor among the arguments. */
struct op_leaf {
    const struct plumb_arg *arg;
    struct val *val;   /* once asked for */
    enum op_part part; /* which of these an operator gets that asks */
    struct val *parts[OP_PARTS];
    struct val *written; /* what the call leaves in it; NULL: what was there */

    /* On squares (squares.c): the product it is a factor of, from 1; 0: none. */
    unsigned term, factors; /* which, and of how many factors */
    int exponent;           /* it is divided by that power of two */
    bool first, minus;      /* of its product; and the product is subtracted */
};

/* What a run on squares needs to know of the whole. */
struct op_squares {
    unsigned factors; /* most that one product has */
    int exponent, grad_exponent;
    bool mean;
};

/* The running call. Families use the functions below, not the fields, but for `raised` and
 * `own`. */
struct op {
    const struct plumb_call *call;
    bool raised; /* the reference: no rounding to narrow types on the way */
    struct arena *arena;
    struct plumb_error *err;
    bool failed;
    size_t bytes, limit;    /* allocated so far; what a call may take */
    struct val *tape;       /* newest first */
    struct op_leaf *leaves; /* the tensors of args, depth first, then those of kwargs */
    size_t n_leaves, n_arg_leaves;
    const struct op_signature *signature;
    struct op_bound *bound; /* one for each parameter of the signature */
    struct plumb_result *result;
    struct val **outputs; /* parallel to result->outputs; NULL where that is no tensor */
    size_t max_outputs;
    uint64_t disturbances; /* so far; see noise.c */
    struct op_squares squares;
    bool in_parts; /* an operator of real numbers runs on the parts of complex ones */
};

/* A call about to run. err is filled on failure. */
void op_begin(struct op *o, const struct plumb_call *call, bool raised, struct arena *arena,
              struct plumb_result *result, struct plumb_error *err);

/* Records the first failure and returns NULL. PLUMB_E_ARG: arguments contradict each other;
 * PLUMB_E_UNSUPPORTED: plumb cannot do it. Say what, with the numbers. */
void *op_fail(struct op *o, enum plumb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed memory of the call for count elements; NULL (and failed) when there is none or the call
 * would take an absurd amount. */
void *op_alloc(struct op *o, int64_t count, size_t size);

/* The same, not zeroed: for what is filled anyway. */
void *op_room(struct op *o, int64_t count, size_t size);

/* A new value, elements zeroed, to be filled by the caller. Refuses absurd shapes. */
struct val *val_new(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape);
struct val *val_like(struct op *o, const struct val *x, enum plumb_dtype dtype); /* x's shape */
/* The same, elements not zeroed: the caller writes every one of them. */
struct val *val_room(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape);
struct val *val_room_like(struct op *o, const struct val *x, enum plumb_dtype dtype);
/* Another shape over the same elements, without tape: for reading only. */
struct val *val_alias(struct op *o, const struct val *x, unsigned rank, const int64_t *shape);

/* Puts out on the tape if any of up to four inputs (NULL: none) needs a gradient. saved is kept for
 * the backward. Returns out. Integer and bool values never get gradients. */
struct val *val_node(struct op *o, struct val *out, op_backward *backward, struct val *a,
                     struct val *b, struct val *c, const void *saved);

/* The same for a value whose elements are elements of its inputs, or constants: nothing is rounded
 * on the way to it. */
struct val *val_moved(struct op *o, struct val *out, op_backward *backward, struct val *a,
                      struct val *b, struct val *c, const void *saved);

/* What an operator that computes by hand has in hand between two steps, where a device may round:
 * disturbed or rounded if the call asks for it (plumb_noise), otherwise left as it is. */
void op_between(struct op *o, real *x, int64_t n);
void op_between_function(struct op *o, real *x, int64_t n); /* of a function such as erf */
void op_between_nodes(struct op *o, real *x, int64_t n);    /* what is a tensor of its own */
real op_between_one(struct op *o, real x);                  /* the sum, mean or scale of a row */

/* Partial sums that a device may keep in memory from one addition to the next: rounded if the call
 * asks for that; how they err otherwise follows from the number of terms. */
void op_accumulated(struct op *o, real *x, int64_t n);

/* n numbers are added up. gemm(), real_sum() and their kind say so themselves. */
void op_terms(int64_t n);
/* The same of n sums of what was added up before: a sum over one dimension after another. */
void op_terms_again(int64_t n);
/* The same of elements 0 to n - 1 that are added to places of a map (negative: none). */
void op_terms_map(struct op *o, const int64_t *map, int64_t n, int64_t places);

/* The gradient buffer of x to add to, or NULL when x needs none (or memory ran out). */
real *val_grad(struct op *o, struct val *x);
/* The same; *fresh: nothing was added to it yet, and its elements are whatever they are. The caller
 * writes every one of them then. */
real *val_grad_room(struct op *o, struct val *x, bool *fresh);

static inline bool dtype_is_float(enum plumb_dtype t)
{
    return plumb_dtype_info(t)->kind == PLUMB_KIND_FLOAT;
}
static inline bool val_is_float(const struct val *x)
{
    return x->f || x->unread;
}
/* Element k as real, whatever the kind. */
static inline real val_at(const struct val *x, int64_t k)
{
    return x->f ? x->f[k] : (real)x->i[k];
}
/* Wraps v to the integer dtype (bool: v != 0). */
int64_t int_wrap(enum plumb_dtype dtype, int64_t v);
/* Rounds to the float dtype when it is narrower than real and the call is not raised. */
real real_round(const struct op *o, enum plumb_dtype dtype, real v);

/* dim counted from the end when negative; fails when outside. rank 0 counts as 1. Returns 0
 * then. */
unsigned val_dim(struct op *o, const struct val *x, int64_t dim);
/* Elements before, of and after a dimension: x is [outer][length][inner]. */
struct span3 {
    int64_t outer, length, inner;
};
struct span3 val_span(const struct val *x, unsigned dim);
bool same_shape(const struct val *a, const struct val *b);

/* ---- Arguments, by the names of the signature ------------------------------------------------ */

bool arg_given(struct op *o, const char *name);          /* present and not None */
struct val *arg_tensor(struct op *o, const char *name);  /* NULL when None */
struct val *arg_operand(struct op *o, const char *name); /* tensor, or number as weak 0-d */
/* arg_tensor() for who reads floating-point numbers a piece at a time: they may be where they were
 * stored, in their own type, and the value have neither f nor i. No block of others takes it then;
 * val_piece() reads it, val_read() makes it like any other. */
struct val *arg_unread(struct op *o, const char *name);
bool val_read(struct op *o, struct val *x); /* false: the op has failed, or x is NULL */
/* Elements first to first + n: where they are, or copied into room. */
const real *val_piece(const struct val *x, int64_t first, int64_t n, real *room);
struct val **arg_tensors(struct op *o, const char *name, size_t *n); /* list; NULL items are None */
int64_t arg_int(struct op *o, const char *name);
double arg_number(struct op *o, const char *name); /* int, float, bool, or tensor of one element */
bool arg_bool(struct op *o, const char *name);
const char *arg_text(struct op *o, const char *name);       /* NULL when None */
enum plumb_dtype arg_dtype(struct op *o, const char *name); /* PLUMB_DTYPE_COUNT when None */
/* A list of integers (a lone integer is a list of one), at most OP_RANK of them. n is 0 for
 * None. */
const int64_t *arg_ints(struct op *o, const char *name, size_t *n);
const double *arg_numbers(struct op *o, const char *name, size_t *n);
/* The raw argument, for what fits none of these (indices with slices); NULL when absent. Its
 * tensors become values through arg_value(). */
const struct plumb_arg *arg_raw(struct op *o, const char *name);
struct val *arg_value(struct op *o, const struct plumb_arg *tensor);

/* ---- Results --------------------------------------------------------------------------------- */

void op_return(struct op *o, struct val *x); /* appends; NULL only after a failure */
void op_return_none(struct op *o);
void op_return_bool(struct op *o, bool value); /* a Python bool */
void op_return_int(struct op *o, int64_t value);
void op_return_tuple(struct op *o); /* the results are a tuple even if there is just one */

/* What the call leaves in the tensor that was given as `name`, which it does not return. */
void op_write(struct op *o, const char *name, struct val *x);

/* ---- Types ----------------------------------------------------------------------------------- */

/* torch's result type of two operands (dimensioned beats 0-d beats number within a kind). */
enum plumb_dtype promote(const struct val *a, const struct val *b);
enum plumb_dtype promote_dtypes(enum plumb_dtype a, enum plumb_dtype b); /* of two tensors */
/* The default float type for integers and bools, else the type itself. */
enum plumb_dtype float_dtype(enum plumb_dtype dtype);

/* ---- Building blocks: differentiable unless said otherwise ----------------------------------- */

struct val *v_number(struct op *o, double value); /* weak float, 0-d */
struct val *v_constant(struct op *o, real value); /* the same in the type: REAL_C(0.1) */
struct val *v_int(struct op *o, int64_t value);   /* weak int, 0-d */
struct val *v_full(struct op *o, enum plumb_dtype dtype, unsigned rank, const int64_t *shape,
                   double value);
struct val *v_cast(struct op *o, struct val *x, enum plumb_dtype dtype);
struct val *v_float(struct op *o, struct val *x);  /* v_cast to float_dtype */
struct val *v_detach(struct op *o, struct val *x); /* the same elements, no gradient */

/* Elementwise, one operand (unary.c). Integers are raised to float. */
struct val *v_exp(struct op *o, struct val *x);
struct val *v_log(struct op *o, struct val *x);
struct val *v_log1p(struct op *o, struct val *x);
struct val *v_expm1(struct op *o, struct val *x);
struct val *v_sqrt(struct op *o, struct val *x);
struct val *v_rsqrt(struct op *o, struct val *x);
struct val *v_sigmoid(struct op *o, struct val *x);
struct val *v_logsigmoid(struct op *o, struct val *x);
struct val *v_tanh(struct op *o, struct val *x);
struct val *v_softplus(struct op *o, struct val *x); /* log(1 + exp(x)) */
struct val *v_relu(struct op *o, struct val *x);
struct val *v_silu(struct op *o, struct val *x);
struct val *v_gelu(struct op *o, struct val *x);
struct val *v_abs(struct op *o, struct val *x);    /* keeps integers */
struct val *v_neg(struct op *o, struct val *x);    /* keeps integers */
struct val *v_square(struct op *o, struct val *x); /* keeps integers */
struct val *v_reciprocal(struct op *o, struct val *x);
struct val *v_sin(struct op *o, struct val *x);
struct val *v_cos(struct op *o, struct val *x);

/* Elementwise, two operands, broadcast and promoted as torch does (binary.c). */
struct val *v_add(struct op *o, struct val *a, struct val *b);
struct val *v_sub(struct op *o, struct val *a, struct val *b);
struct val *v_mul(struct op *o, struct val *a, struct val *b);
struct val *v_div(struct op *o, struct val *a, struct val *b); /* true division */
struct val *v_pow(struct op *o, struct val *a, struct val *b);
struct val *v_maximum(struct op *o, struct val *a, struct val *b);
struct val *v_minimum(struct op *o, struct val *a, struct val *b);
struct val *v_scale(struct op *o, struct val *x, double factor);        /* x * factor */
struct val *v_offset(struct op *o, struct val *x, double offset);       /* x + offset */
struct val *v_clamp(struct op *o, struct val *x, double lo, double hi); /* gradient inside only */
/* cond is bool (or integer); a and b are promoted and all three broadcast. */
struct val *v_where(struct op *o, struct val *cond, struct val *a, struct val *b);
/* Comparison: bool result, no gradient. */
enum compare { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };
struct val *v_compare(struct op *o, enum compare how, struct val *a, struct val *b);

/* Movement (move.c). The shape the broadcast of two operands has; false (and failed) when none. */
bool broadcast_shape(struct op *o, const struct val *a, const struct val *b, unsigned *rank,
                     int64_t *shape);
struct val *v_broadcast(struct op *o, struct val *x, unsigned rank, const int64_t *shape);
struct val *v_reshape(struct op *o, struct val *x, unsigned rank, const int64_t *shape); /* no -1 */
struct val *v_permute(struct op *o, struct val *x, const unsigned *dims);
struct val *v_transpose(struct op *o, struct val *x, unsigned a, unsigned b);
struct val *v_narrow(struct op *o, struct val *x, unsigned dim, int64_t start, int64_t length);
struct val *v_cat(struct op *o, struct val *const *xs, size_t n, unsigned dim); /* types promoted */
struct val *v_unsqueeze(struct op *o, struct val *x, unsigned dim);
struct val *v_squeeze(struct op *o, struct val *x, unsigned dim);
/* out[k] = x[map[k]], or 0 where map[k] < 0. The map (of op_alloc memory) must stay in bounds; the
 * gradient adds back along it. Every pure rearrangement can be written with this. */
struct val *v_map(struct op *o, struct val *x, unsigned rank, const int64_t *shape,
                  const int64_t *map);
/* A strided view of x as a map: element (i0, i1, ...) is x[offset + i0*stride[0] + ...]. */
struct val *v_strided(struct op *o, struct val *x, unsigned rank, const int64_t *shape,
                      const int64_t *stride, int64_t offset);

/* Reductions (reduce.c). dims: a bit for each dimension, 0 means all. Sums are compensated for
 * double and wider, pairwise for float; integers add exactly. */
struct val *v_sum(struct op *o, struct val *x, uint64_t dims, bool keepdim);
struct val *v_mean(struct op *o, struct val *x, uint64_t dims, bool keepdim);
/* Over one dimension, with the place of the extreme value (first one; NaN wins). index may be
 * NULL; it is int64 and not differentiable. The gradient goes to that place. */
struct val *v_max_dim(struct op *o, struct val *x, unsigned dim, bool keepdim, struct val **index);
struct val *v_min_dim(struct op *o, struct val *x, unsigned dim, bool keepdim, struct val **index);
uint64_t dims_mask(struct op *o, const struct val *x, const int64_t *dims, size_t n);
real real_sum(const real *x, int64_t n, int64_t stride);
real real_dot(const real *a, const real *b, int64_t n);

/* Linear algebra (matmul.c): torch.matmul, all ranks and batch broadcasting. */
struct val *v_matmul(struct op *o, struct val *a, struct val *b);
/* c = alpha * op(a) * op(b) + beta * c, row-major (gemm.c): OpenBLAS for float and double. */
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a, int64_t lda,
          const real *b, int64_t ldb, real beta, real *c, int64_t ldc);

/* Softmax family (softmax.c). */
struct val *v_softmax(struct op *o, struct val *x, unsigned dim);
struct val *v_log_softmax(struct op *o, struct val *x, unsigned dim);

#endif
