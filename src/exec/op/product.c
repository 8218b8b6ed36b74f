/* Products of more than two matrices, of tensors along chosen dimensions, and products that make
 * something larger. */
#include "exec/op/linalg.h"
#include "exec/op/matmul.h"

#include <string.h>

/* ---- Chains ---------------------------------------------------------------------------------- */

enum { MAX_CHAIN = 64 };

struct chain {
    struct val *const *xs;
    unsigned split[MAX_CHAIN][MAX_CHAIN];
};

/* Where to cut xs[i..j] so that the number of multiplications is least. */
static void chain_plan(struct chain *c, size_t n, const double *size)
{
    double cost[MAX_CHAIN][MAX_CHAIN] = {{0}};
    for (size_t length = 1; length < n; length++)
        for (size_t i = 0; i + length < n; i++) {
            size_t j = i + length;
            cost[i][j] = HUGE_VAL;
            for (size_t k = i; k < j; k++) {
                double total = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
                if (total < cost[i][j]) {
                    cost[i][j] = total;
                    c->split[i][j] = (unsigned)k;
                }
            }
        }
}

static struct val *chain_multiply(struct op *o, const struct chain *c, size_t i, size_t j)
{
    if (i == j)
        return c->xs[i];
    size_t k = c->split[i][j];
    return v_matmul(o, chain_multiply(o, c, i, k), chain_multiply(o, c, k + 1, j));
}

/* Matrices; the first and last may be vectors where `vectors` says so. */
static struct val *chain_product(struct op *o, struct val **xs, size_t n, bool vectors)
{
    if (n == 0 || n > MAX_CHAIN)
        return op_fail(o, PLUMB_E_ARG, "%s: %zu factors (1 to %d can be multiplied)", o->call->name,
                       n, MAX_CHAIN);
    double size[MAX_CHAIN + 1];
    for (size_t k = 0; k < n; k++) {
        bool end = vectors && (k == 0 || k == n - 1);
        if (!xs[k] || (xs[k]->rank != 2 && !(end && xs[k]->rank == 1)))
            return op_fail(o, PLUMB_E_ARG, "%s: factor %zu is not a matrix", o->call->name, k);
        bool row = xs[k]->rank == 1 && k == 0;
        size[k] = row ? 1 : (double)xs[k]->shape[0];
        size[k + 1] = xs[k]->rank == 2 ? (double)xs[k]->shape[1]
                      : row            ? (double)xs[k]->shape[0]
                                       : 1;
    }
    struct chain *c = op_alloc(o, 1, sizeof *c);
    if (!c)
        return NULL;
    c->xs = xs;
    chain_plan(c, n, size);
    return chain_multiply(o, c, 0, n - 1);
}

static void run_chain_matmul(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "matrices", &n);
    op_return(o, chain_product(o, xs, n, false));
}

static void run_multi_dot(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    op_return(o, chain_product(o, xs, n, true));
}

static void run_matrix_power(struct op *o)
{
    struct val *x = square_matrices(o, arg_tensor(o, "input"));
    int64_t n = arg_int(o, "n");
    if (!x)
        return;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    struct val *power = n < 0 ? v_inverse(o, x) : x, *result = NULL;
    for (; left && !o->failed; left >>= 1) {
        if (left & 1)
            result = result ? v_matmul(o, result, power) : power;
        if (left > 1)
            power = v_matmul(o, power, power);
    }
    op_return(o, n == 0 ? v_identity_like(o, x) : result);
}

/* ---- Along chosen dimensions ----------------------------------------------------------------- */

static struct val *vecdot(struct op *o, struct val *a, struct val *b, int64_t dim)
{
    struct val *product = v_mul(o, a, b);
    if (!product)
        return NULL;
    unsigned d = val_dim(o, product, dim);
    return v_sum(o, product, (uint64_t)1 << d, false);
}

static void run_vecdot(struct op *o)
{
    op_return(o, vecdot(o, arg_tensor(o, "input"), arg_tensor(o, "other"), arg_int(o, "dim")));
}

static int64_t count_of(unsigned rank, const int64_t *shape)
{
    int64_t count = 1;
    for (unsigned d = 0; d < rank; d++)
        count *= shape[d];
    return count;
}

/* One operand of a contraction: kept dimensions first (or last), contracted ones together. */
struct side {
    unsigned n_kept;
    int64_t kept[OP_RANK];
    struct val *matrix;
};

static bool prepare(struct op *o, struct val *x, const unsigned *dims, unsigned n, bool last,
                    struct side *side)
{
    unsigned order[OP_RANK], at = 0;
    bool used[OP_RANK] = {false};
    for (unsigned k = 0; k < n; k++) {
        if (used[dims[k]])
            return op_fail(o, PLUMB_E_ARG, "%s: dimension %u is contracted twice", o->call->name,
                           dims[k]) != NULL;
        used[dims[k]] = true;
    }
    side->n_kept = 0;
    for (unsigned k = 0; !last && k < n; k++)
        order[at++] = dims[k];
    for (unsigned d = 0; d < x->rank; d++)
        if (!used[d]) {
            order[at++] = d;
            side->kept[side->n_kept++] = x->shape[d];
        }
    for (unsigned k = 0; last && k < n; k++)
        order[at++] = dims[k];
    int64_t inner = 1;
    for (unsigned k = 0; k < n; k++)
        inner *= x->shape[dims[k]];
    int64_t outer = count_of(side->n_kept, side->kept);
    const int64_t shape[2] = {last ? outer : inner, last ? inner : outer};
    side->matrix = v_reshape(o, v_permute(o, x, order), 2, shape);
    return side->matrix != NULL;
}

static struct val *contract(struct op *o, struct val *a, const unsigned *a_dims, struct val *b,
                            const unsigned *b_dims, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (a->shape[a_dims[k]] != b->shape[b_dims[k]])
            return op_fail(o, PLUMB_E_ARG, "%s: dimensions of %lld and %lld cannot be contracted",
                           o->call->name, (long long)a->shape[a_dims[k]],
                           (long long)b->shape[b_dims[k]]);
    struct side left, right;
    if (!prepare(o, a, a_dims, n, true, &left) || !prepare(o, b, b_dims, n, false, &right))
        return NULL;
    if (left.n_kept + right.n_kept > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "%s: the result has too many dimensions", o->call->name);
    int64_t shape[OP_RANK];
    memcpy(shape, left.kept, left.n_kept * sizeof *shape);
    memcpy(shape + left.n_kept, right.kept, right.n_kept * sizeof *shape);
    return v_reshape(o, v_matmul(o, left.matrix, right.matrix), left.n_kept + right.n_kept, shape);
}

static unsigned dims_of(struct op *o, const struct val *x, const struct plumb_arg *list,
                        unsigned *dims)
{
    size_t n = list->kind == PLUMB_ARG_LIST ? list->n_items : 1;
    const struct plumb_arg *items = list->kind == PLUMB_ARG_LIST ? list->items : list;
    if (n > x->rank) {
        op_fail(o, PLUMB_E_ARG, "%s: %zu dimensions of a tensor with %u", o->call->name, n,
                x->rank);
        return 0;
    }
    for (size_t k = 0; k < n; k++)
        dims[k] = val_dim(o, x, items[k].integer);
    return (unsigned)n;
}

static void run_tensordot(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    const struct plumb_arg *dims = arg_raw(o, "dims_self"), *others = arg_raw(o, "dims_other");
    if (!a || !b)
        return;
    unsigned a_dims[OP_RANK] = {0}, b_dims[OP_RANK] = {0}, n = 0;
    if (!others || others->kind == PLUMB_ARG_NONE) {
        if (dims->kind == PLUMB_ARG_LIST && dims->n_items == 2) {
            others = &dims->items[1];
            dims = &dims->items[0];
        } else if (dims->kind == PLUMB_ARG_INT && dims->integer >= 0 && dims->integer <= a->rank &&
                   dims->integer <= b->rank) {
            for (; n < dims->integer; n++) {
                a_dims[n] = a->rank - (unsigned)dims->integer + n;
                b_dims[n] = n;
            }
            op_return(o, contract(o, a, a_dims, b, b_dims, n));
            return;
        } else {
            op_fail(o, PLUMB_E_ARG,
                    "tensordot: 'dims' must be a number of dimensions that both "
                    "tensors have, or two lists of dimensions");
            return;
        }
    }
    n = dims_of(o, a, dims, a_dims);
    if (dims_of(o, b, others, b_dims) != n)
        op_fail(o, PLUMB_E_ARG, "tensordot: the lists of dimensions are not equally long");
    if (!o->failed)
        op_return(o, contract(o, a, a_dims, b, b_dims, n));
}

static void run_inner(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    if (!a || !b)
        return;
    if (a->rank == 0 || b->rank == 0) {
        op_return(o, v_mul(o, a, b));
        return;
    }
    const unsigned a_last = a->rank - 1, b_last = b->rank - 1;
    op_return(o, contract(o, a, &a_last, b, &b_last, 1));
}

/* out[n, o] = sum over i, j of x1[n, i] w[o, i, j] x2[n, j] + bias[o]. */
/* x with a dimension of 1 put in at each of the places named. */
static struct val *expanded(struct op *o, struct val *x, const char *name)
{
    size_t n;
    const int64_t *dims = arg_ints(o, name, &n);
    uint64_t mask = 0;
    for (size_t k = 0; x && k < n; k++) {
        const int64_t rank = (int64_t)(x->rank + n), dim = dims[k] < 0 ? dims[k] + rank : dims[k];
        if (rank > OP_RANK || dim < 0 || dim >= rank)
            return op_fail(o, PLUMB_E_ARG, "%s: dimension %lld of %lld", o->call->name,
                           (long long)dims[k], (long long)rank);
        mask |= UINT64_C(1) << dim;
    }
    for (unsigned d = 0; d < OP_RANK; d++)
        if (mask >> d & 1)
            x = v_unsqueeze(o, x, d);
    return x;
}

/* The product of three tensors with new dimensions, summed over some. */
static void run_trilinear(struct op *o)
{
    struct val *a = expanded(o, arg_tensor(o, "i1"), "expand1"),
               *b = expanded(o, arg_tensor(o, "i2"), "expand2"),
               *c = expanded(o, arg_tensor(o, "i3"), "expand3");
    size_t n;
    const int64_t *dims = arg_ints(o, "sumdim", &n);
    struct val *y = v_mul(o, v_mul(o, a, b), c);
    op_return(o, y && n ? v_sum(o, y, dims_mask(o, y, dims, n), false) : y);
}

static void run_bilinear(struct op *o)
{
    struct val *x1 = arg_tensor(o, "input1"), *x2 = arg_tensor(o, "input2"),
               *w = arg_tensor(o, "weight"), *bias = arg_tensor(o, "bias");
    if (!x1 || !x2 || !w)
        return;
    bool fits = w->rank == 3 && x1->rank >= 1 && x1->rank == x2->rank &&
                x1->shape[x1->rank - 1] == w->shape[1] && x2->shape[x2->rank - 1] == w->shape[2];
    for (unsigned d = 0; fits && d + 1 < x1->rank; d++)
        fits = x1->shape[d] == x2->shape[d];
    if (!fits) {
        op_fail(o, PLUMB_E_ARG, "bilinear: inputs [.., I], [.., J] and weight [O, I, J] expected");
        return;
    }
    const unsigned last = x1->rank - 1;
    int64_t rows = count_of(last, x1->shape), out = w->shape[0], n2 = w->shape[2];
    struct val *half = contract(o, x1, &last, w, (const unsigned[]){1}, 1); /* [.., O, J] */
    half = v_reshape(o, half, 3, (const int64_t[]){rows, out, n2});
    struct val *y = v_matmul(o, half, v_reshape(o, x2, 3, (const int64_t[]){rows, n2, 1}));
    int64_t shape[OP_RANK];
    memcpy(shape, x1->shape, last * sizeof *shape);
    shape[last] = out;
    y = v_reshape(o, y, x1->rank, shape);
    op_return(o, y && bias ? v_add(o, y, matmul_operand(o, bias, y->dtype)) : y);
}

/* ---- Something larger ------------------------------------------------------------------------ */

/* a gets a dimension of 1 after each of its own, b before: multiplied they interleave. */
static void run_kron(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    if (!a || !b)
        return;
    const unsigned rank = a->rank > b->rank ? a->rank : b->rank;
    if (2 * rank > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "kron: tensors of more than %d dimensions", OP_RANK / 2);
        return;
    }
    int64_t a_shape[OP_RANK], b_shape[OP_RANK], shape[OP_RANK];
    for (unsigned d = 0; d < rank; d++) {
        const unsigned a_missing = rank - a->rank, b_missing = rank - b->rank;
        a_shape[2 * d] = d < a_missing ? 1 : a->shape[d - a_missing];
        b_shape[2 * d + 1] = d < b_missing ? 1 : b->shape[d - b_missing];
        a_shape[2 * d + 1] = b_shape[2 * d] = 1;
        if (__builtin_mul_overflow(a_shape[2 * d], b_shape[2 * d + 1], &shape[d])) {
            op_fail(o, PLUMB_E_ARG, "kron: the result is absurdly large");
            return;
        }
    }
    struct val *product =
        v_mul(o, v_reshape(o, a, 2 * rank, a_shape), v_reshape(o, b, 2 * rank, b_shape));
    op_return(o, v_reshape(o, product, rank, shape));
}

/* All elements in a row, then put where they belong. */
static void run_block_diag(struct op *o)
{
    size_t n;
    struct val **xs = arg_tensors(o, "tensors", &n);
    if (n == 0) {
        op_return(o, val_new(o, PLUMB_F32, 2, (const int64_t[]){1, 0}));
        return;
    }
    int64_t shape[2] = {0, 0};
    struct val **flat = op_alloc(o, (int64_t)n, sizeof(struct val *));
    for (size_t k = 0; flat && k < n; k++) {
        if (!xs[k] || xs[k]->rank > 2) {
            op_fail(o, PLUMB_E_ARG, "block_diag: tensor %zu has more than two dimensions", k);
            return;
        }
        int64_t rows = xs[k]->rank == 2 ? xs[k]->shape[0] : 1;
        int64_t columns = xs[k]->rank ? xs[k]->shape[xs[k]->rank - 1] : 1;
        if (__builtin_add_overflow(shape[0], rows, &shape[0]) ||
            __builtin_add_overflow(shape[1], columns, &shape[1])) {
            op_fail(o, PLUMB_E_ARG, "block_diag: the result is absurdly large");
            return;
        }
        flat[k] = v_reshape(o, xs[k], 1, &xs[k]->count);
    }
    int64_t count;
    if (__builtin_mul_overflow(shape[0], shape[1], &count)) {
        op_fail(o, PLUMB_E_ARG, "block_diag: the result is absurdly large");
        return;
    }
    int64_t *map = op_alloc(o, count + 1, sizeof *map);
    if (!flat || !map)
        return;
    for (int64_t k = 0; k < count; k++)
        map[k] = -1;
    int64_t row = 0, column = 0, from = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t rows = xs[k]->rank == 2 ? xs[k]->shape[0] : 1;
        int64_t columns = xs[k]->rank ? xs[k]->shape[xs[k]->rank - 1] : 1;
        for (int64_t i = 0; i < rows; i++, row++)
            for (int64_t j = 0; j < columns; j++)
                map[row * shape[1] + column + j] = from++;
        column += columns;
    }
    op_return(o, v_map(o, v_cat(o, flat, n, 0), 2, shape, map));
}

static struct val *cross(struct op *o, struct val *a, struct val *b, unsigned dim)
{
    struct val *parts[3];
    for (int64_t k = 0; k < 3; k++) {
        int64_t p = (k + 1) % 3, q = (k + 2) % 3;
        struct val *plus = v_mul(o, v_narrow(o, a, dim, p, 1), v_narrow(o, b, dim, q, 1));
        struct val *minus = v_mul(o, v_narrow(o, a, dim, q, 1), v_narrow(o, b, dim, p, 1));
        parts[k] = v_sub(o, plus, minus);
    }
    return o->failed ? NULL : v_cat(o, parts, 3, dim);
}

/* dim None: the first dimension of 3. */
static void run_cross(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "other");
    unsigned rank, dim = 0;
    int64_t shape[OP_RANK];
    if (!a || !b || !broadcast_shape(o, a, b, &rank, shape))
        return;
    a = v_broadcast(o, a, rank, shape);
    b = v_broadcast(o, b, rank, shape);
    if (!a || !b)
        return;
    if (arg_given(o, "dim"))
        dim = val_dim(o, a, arg_int(o, "dim"));
    else
        while (dim < rank && shape[dim] != 3)
            dim++;
    if (o->failed)
        return;
    if (dim >= rank || shape[dim] != 3)
        op_fail(o, PLUMB_E_ARG, "%s: there is no dimension of 3 elements", o->call->name);
    else
        op_return(o, cross(o, a, b, dim));
}

const struct op_def op_product[] = {
    {"chain_matmul", "chain_matmul(Tensor[]... matrices)", run_chain_matmul, 0, NULL},
    {"linalg.multi_dot linalg_multi_dot", "multi_dot(Tensor[] tensors)", run_multi_dot, 0, NULL},
    {"matrix_power linalg.matrix_power linalg_matrix_power",
     "matrix_power(Tensor input|self|A, int n)", run_matrix_power, OP_COMPOSITE, NULL},
    {"linalg.vecdot linalg_vecdot", "vecdot(Tensor input|x, Tensor other|y, *, int dim=-1)",
     run_vecdot, 0, NULL},
    {"tensordot",
     "tensordot(Tensor input|self|a, Tensor other|b, any dims_self|dims=2, any dims_other=None)",
     run_tensordot, 0, "sum over pairs of dimensions"},
    {"inner", "inner(Tensor input|self, Tensor other)", run_inner, 0,
     "sum over the last dimension of both"},
    {"bilinear", "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)",
     run_bilinear, 0, "input1^T weight[o] input2 + bias[o]"},
    {"_trilinear",
     "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
     "int[] sumdim, int unroll_dim=1)",
     run_trilinear, 0, "i1 * i2 * i3, expanded and summed"},
    {"kron", "kron(Tensor input|self, Tensor other)", run_kron, 0, NULL},
    {"block_diag", "block_diag(Tensor[]... tensors)", run_block_diag, OP_EXACT, NULL},
    {"cross", "cross(Tensor input|self, Tensor other, int? dim=None)", run_cross, 0, NULL},
    {"linalg.cross linalg_cross", "cross(Tensor input|self, Tensor other, *, int dim=-1)",
     run_cross, 0, NULL},
    {0},
};
