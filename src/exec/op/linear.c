/* Products of matrices and vectors, and beta * input + alpha * product. */
#include "exec/op/matmul.h"

static void run_linear(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *w = arg_tensor(o, "weight"),
               *bias = arg_tensor(o, "bias");
    if (!x || !w)
        return;
    if (x->rank == 0 || w->rank == 0 || w->rank > 2) {
        op_fail(o, PLUMB_E_ARG,
                "linear: the weight must be a matrix or a vector, not %u-dimensional", w->rank);
        return;
    }
    struct val *y = w->rank == 1 ? v_matmul(o, x, w) : v_matmul_t(o, x, w);
    if (y && bias)
        y = v_add(o, y, matmul_operand(o, bias, y->dtype));
    op_return(o, y);
}

static void run_matmul(struct op *o)
{
    op_return(o, v_matmul(o, arg_tensor(o, "input"), arg_tensor(o, "other")));
}

static void run_rmatmul(struct op *o)
{
    op_return(o, v_matmul(o, arg_tensor(o, "other"), arg_tensor(o, "input")));
}

/* The product of two operands that must have just these ranks; batches are not broadcast. */
static struct val *strict(struct op *o, const char *first, unsigned a_rank, const char *second,
                          unsigned b_rank)
{
    struct val *a = arg_tensor(o, first), *b = arg_tensor(o, second);
    if (!a || !b)
        return NULL;
    if (a->rank != a_rank || b->rank != b_rank)
        return op_fail(o, PLUMB_E_ARG,
                       "%s: '%s' must have %u dimension(s) and '%s' %u; they have %u and %u",
                       o->call->name, first, a_rank, second, b_rank, a->rank, b->rank);
    if (a_rank == 3 && a->shape[0] != b->shape[0])
        return op_fail(o, PLUMB_E_ARG, "%s: batches of %lld and %lld matrices", o->call->name,
                       (long long)a->shape[0], (long long)b->shape[0]);
    return v_matmul(o, a, b);
}

static void run_mm(struct op *o)
{
    op_return(o, strict(o, "input", 2, "mat2", 2));
}

static void run_bmm(struct op *o)
{
    op_return(o, strict(o, "input", 3, "mat2", 3));
}

static void run_mv(struct op *o)
{
    op_return(o, strict(o, "input", 2, "vec", 1));
}

static void run_dot(struct op *o)
{
    op_return(o, strict(o, "input", 1, "other", 1));
}

static struct val *outer(struct op *o, struct val *a, struct val *b)
{
    if (!a || !b)
        return NULL;
    if (a->rank != 1 || b->rank != 1)
        return op_fail(o, PLUMB_E_ARG, "%s: an outer product is one of two vectors", o->call->name);
    return v_mul(o, v_unsqueeze(o, a, 1), v_unsqueeze(o, b, 0));
}

static void run_outer(struct op *o)
{
    op_return(o, outer(o, arg_tensor(o, "input"), arg_tensor(o, "vec2")));
}

/* ---- beta * input + alpha * product ---------------------------------------------------------- */

static void ignored_backward(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    for (int64_t k = 0; g && k < out->count; k++)
        g[k] += out->grad[k];
    val_grad(o, out->in[1]);
}

/* x, with a gradient of zeros for what beta = 0 took out of the sum. */
static struct val *with_ignored(struct op *o, struct val *x, struct val *ignored)
{
    return x ? val_moved(o, val_alias(o, x, x->rank, x->shape), ignored_backward, x, ignored, NULL,
                         NULL)
             : NULL;
}

/* Integers take of a factor what is whole. */
static struct val *scaled(struct op *o, struct val *x, const char *factor)
{
    if (!x || arg_number(o, factor) == 1)
        return x;
    struct val *by = arg_operand(o, factor);
    return v_mul(o, x, x->i ? v_cast(o, by, x->dtype) : by);
}

static void return_sum(struct op *o, struct val *product)
{
    struct val *input = arg_tensor(o, "input");
    if (!product || !input)
        return;
    enum plumb_dtype dtype = matmul_dtype(product, input);
    product = scaled(o, matmul_operand(o, product, dtype), "alpha");
    input = matmul_operand(o, input, dtype);
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!product || !input || !broadcast_shape(o, product, input, &rank, shape))
        return;
    bool fits = rank == product->rank;
    for (unsigned d = 0; fits && d < rank; d++)
        fits = shape[d] == product->shape[d];
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: 'input' does not broadcast to the shape of the product",
                o->call->name);
    else if (arg_number(o, "beta") == 0)
        op_return(o, with_ignored(o, product, input));
    else
        op_return(o, v_add(o, scaled(o, input, "beta"), product));
}

static void run_addmm(struct op *o)
{
    return_sum(o, strict(o, "mat1", 2, "mat2", 2));
}

/* The sum, then relu or gelu. */
static void run_addmm_activation(struct op *o)
{
    run_addmm(o);
    if (o->failed)
        return;
    struct val *x = o->outputs[0];
    o->outputs[0] = arg_bool(o, "use_gelu") ? v_gelu(o, x) : v_relu(o, x);
}

static void run_addmv(struct op *o)
{
    return_sum(o, strict(o, "mat", 2, "vec", 1));
}

static void run_baddbmm(struct op *o)
{
    return_sum(o, strict(o, "batch1", 3, "batch2", 3));
}

static void run_addr(struct op *o)
{
    return_sum(o, outer(o, arg_tensor(o, "vec1"), arg_tensor(o, "vec2")));
}

/* The sum over batches of n x m times m x p is one product: n x (b m) times (b m) x p. */
static void run_addbmm(struct op *o)
{
    struct val *a = arg_tensor(o, "batch1"), *b = arg_tensor(o, "batch2");
    if (!a || !b)
        return;
    if (a->rank != 3 || b->rank != 3 || a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1]) {
        op_fail(o, PLUMB_E_ARG, "addbmm: the batches of matrices do not fit each other");
        return;
    }
    int64_t count = a->shape[0], n = a->shape[1], m = a->shape[2], p = b->shape[2];
    struct val *wide = v_permute(o, a, (const unsigned[]){1, 0, 2});
    wide = v_reshape(o, wide, 2, (const int64_t[]){n, count * m});
    struct val *tall = v_reshape(o, b, 2, (const int64_t[]){count * m, p});
    return_sum(o, v_matmul(o, wide, tall));
}

/* 8-bit integers multiplied and added up as 32-bit ones. */
static void run_int_mm(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "mat2");
    if (!a || !b)
        return;
    if (a->dtype != PLUMB_I8 || b->dtype != PLUMB_I8 || a->rank != 2 || b->rank != 2)
        op_fail(o, PLUMB_E_ARG, "%s: matrices of int8 are needed", o->call->name);
    else
        op_return(o, v_matmul(o, v_cast(o, a, PLUMB_I32), v_cast(o, b, PLUMB_I32)));
}

const struct op_def op_linear[] = {
    {"linear", "linear(Tensor input, Tensor weight, Tensor? bias=None)", run_linear, 0,
     "input @ weight^T + bias"},
    {"matmul __matmul__ linalg.matmul linalg_matmul", "matmul(Tensor input|self, Tensor other)",
     run_matmul, 0, NULL},
    {"__rmatmul__", "__rmatmul__(Tensor input|self, Tensor other)", run_rmatmul, 0,
     "other @ input"},
    {"mm", "mm(Tensor input|self, Tensor mat2)", run_mm, 0, NULL},
    {"hspmm smm dsmm spmm hsmm", "hspmm(Tensor input|self|mat1|mat, Tensor mat2)", run_mm, 0,
     "mat1 @ mat2; sparse matrices are taken as the dense ones they stand for"},
    {"bmm", "bmm(Tensor input|self, Tensor mat2)", run_bmm, 0, NULL},
    {"mv", "mv(Tensor input|self, Tensor vec)", run_mv, 0, NULL},
    {"dot vdot", "dot(Tensor input|self, Tensor other|tensor)", run_dot, 0, NULL},
    {"outer ger", "outer(Tensor input|self, Tensor vec2)", run_outer, 0, NULL},
    {"addmm addmm_",
     "addmm(Tensor input|self, Tensor mat1, Tensor mat2, *, number beta=1, number alpha=1)",
     run_addmm, 0, "beta * input + alpha * (mat1 @ mat2)"},
    {"sspaddmm saddmm",
     "sspaddmm(Tensor input|self, Tensor mat1, Tensor mat2, *, number beta=1, number alpha=1)",
     run_addmm, 0, "beta * input + alpha * (mat1 @ mat2), of dense arguments"},
    {"_addmm_activation",
     "_addmm_activation(Tensor input|self, Tensor mat1, Tensor mat2, *, number beta=1, number "
     "alpha=1, bool use_gelu=False)",
     run_addmm_activation, OP_COMPOSITE, "relu or gelu of beta * input + alpha * (mat1 @ mat2)"},
    {"addmv addmv_",
     "addmv(Tensor input|self, Tensor mat, Tensor vec, *, number beta=1, number alpha=1)",
     run_addmv, 0, "beta * input + alpha * (mat @ vec)"},
    {"addr addr_",
     "addr(Tensor input|self, Tensor vec1, Tensor vec2, *, number beta=1, number alpha=1)",
     run_addr, 0, "beta * input + alpha * outer(vec1, vec2)"},
    {"addbmm addbmm_",
     "addbmm(Tensor input|self, Tensor batch1, Tensor batch2, *, number beta=1, number alpha=1)",
     run_addbmm, 0, "beta * input + alpha * sum over batches of (batch1 @ batch2)"},
    {"baddbmm baddbmm_",
     "baddbmm(Tensor input|self, Tensor batch1, Tensor batch2, *, number beta=1, number alpha=1)",
     run_baddbmm, 0, "beta * input + alpha * (batch1 @ batch2)"},
    {"_int_mm", "_int_mm(Tensor input|self, Tensor mat2)", run_int_mm, OP_NO_GRAD | OP_EXACT,
     "int8 @ int8 as int32"},
    {0},
};
