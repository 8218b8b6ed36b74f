/* torch.matmul: products of vectors, matrices and batches of them. Batches that are broadcast are
 * walked with a step of 0, never copied. */
#include "exec/op/matmul.h"

/* out[batch] is m x n, a[batch] m x k, b[batch] k x n (or n x k when transposed); a_step and
 * b_step say how far a and b go on when a batch dimension is counted up. */
struct product {
    int64_t m, n, k;
    bool transposed;
    unsigned rank;
    int64_t batches, shape[OP_RANK], a_step[OP_RANK], b_step[OP_RANK];
};

/* Where a batch begins in a and b. */
struct place {
    int64_t at[OP_RANK], a, b;
};

static void place_next(const struct product *p, struct place *place)
{
    for (unsigned d = p->rank; d-- > 0;) {
        place->a += p->a_step[d];
        place->b += p->b_step[d];
        if (++place->at[d] < p->shape[d])
            return;
        place->a -= p->a_step[d] * p->shape[d];
        place->b -= p->b_step[d] * p->shape[d];
        place->at[d] = 0;
    }
}

enum plumb_dtype matmul_dtype(const struct val *a, const struct val *b)
{
    if (a->dtype == b->dtype)
        return a->dtype;
    if (!val_is_float(a) || !val_is_float(b))
        return promote_dtypes(a->dtype, b->dtype);
    static const enum plumb_dtype lowest_first[] = {PLUMB_BF16, PLUMB_F16, PLUMB_F32};
    for (size_t i = 0; i < sizeof lowest_first / sizeof *lowest_first; i++)
        if (a->dtype == lowest_first[i] || b->dtype == lowest_first[i])
            return lowest_first[i];
    return promote_dtypes(a->dtype, b->dtype);
}

struct val *matmul_operand(struct op *o, struct val *x, enum plumb_dtype dtype)
{
    return !x || x->dtype == dtype ? x : v_cast(o, x, dtype);
}

/* The batch dimensions of a and b, which have that many dimensions after them. */
static bool plan_batches(struct op *o, const struct val *a, unsigned a_rank, const struct val *b,
                         unsigned b_rank, struct product *p)
{
    p->rank = a_rank > b_rank ? a_rank : b_rank;
    p->batches = 1;
    int64_t a_next = p->m * p->k, b_next = p->k * p->n;
    for (unsigned d = p->rank; d-- > 0;) {
        unsigned missing_a = p->rank - a_rank, missing_b = p->rank - b_rank;
        int64_t in_a = d < missing_a ? 1 : a->shape[d - missing_a];
        int64_t in_b = d < missing_b ? 1 : b->shape[d - missing_b];
        if (in_a != in_b && in_a != 1 && in_b != 1) {
            op_fail(o, PLUMB_E_ARG,
                    "batch dimensions of the factors do not broadcast: %lld and %lld",
                    (long long)in_a, (long long)in_b);
            return false;
        }
        p->shape[d] = in_a == 1 ? in_b : in_a;
        p->a_step[d] = in_a == 1 ? 0 : a_next;
        p->b_step[d] = in_b == 1 ? 0 : b_next;
        a_next *= in_a;
        b_next *= in_b;
        if (__builtin_mul_overflow(p->batches, p->shape[d], &p->batches)) {
            op_fail(o, PLUMB_E_ARG, "the product has too many elements");
            return false;
        }
    }
    return true;
}

/* One factor for all batches of the other: the batches are just more rows. */
static void merge_batches(struct product *p)
{
    for (unsigned d = 0; d < p->rank; d++)
        if (p->b_step[d] != 0 || (p->a_step[d] == 0 && p->shape[d] != 1))
            return;
    p->m *= p->batches;
    p->batches = 1;
    p->rank = 0;
}

/* The gradient of a factor of which all batches together take `count` elements. It may be fresh
 * where each of them has its own, and is written by one product. */
static real *grad_of_factor(struct op *o, struct val *x, int64_t count, bool *fresh)
{
    *fresh = false;
    return x->count == count ? val_grad_room(o, x, fresh) : val_grad(o, x);
}

static void backward(struct op *o, struct val *out)
{
    const struct product *p = out->saved;
    const real *a = out->in[0]->f, *b = out->in[1]->f;
    bool fresh_a, fresh_b;
    real *da = grad_of_factor(o, out->in[0], p->batches * p->m * p->k, &fresh_a);
    real *db = grad_of_factor(o, out->in[1], p->batches * p->k * p->n, &fresh_b);
    const real beta_a = fresh_a ? 0 : 1, beta_b = fresh_b ? 0 : 1;
    struct place at = {0};
    if (da && out->in[0]->count) /* a matrix that several others were multiplied with */
        op_terms(p->batches * p->m * p->k / out->in[0]->count * p->n);
    if (db && out->in[1]->count)
        op_terms(p->batches * p->k * p->n / out->in[1]->count * p->m);
    for (int64_t i = 0; i < p->batches; i++, place_next(p, &at)) {
        const real *g = out->grad + i * p->m * p->n;
        if (da)
            gemm(false, !p->transposed, p->m, p->k, p->n, 1, g, p->n, b + at.b,
                 p->transposed ? p->k : p->n, beta_a, da + at.a, p->k);
        if (db && p->transposed)
            gemm(true, false, p->n, p->k, p->m, 1, g, p->n, a + at.a, p->k, beta_b, db + at.b,
                 p->k);
        else if (db)
            gemm(true, false, p->k, p->n, p->m, 1, a + at.a, p->k, g, p->n, beta_b, db + at.b,
                 p->n);
    }
}

/* Integers multiply exactly, modulo 2^64, and are wrapped to their type at the end. */
static void multiply_integers(const struct product *p, enum plumb_dtype dtype, const int64_t *a,
                              const int64_t *b, int64_t *c)
{
    const int64_t row = p->transposed ? 1 : p->n, column = p->transposed ? p->k : 1;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t l = 0; l < p->k; l++)
            for (int64_t j = 0; j < p->n; j++)
                c[i * p->n + j] =
                    (int64_t)((uint64_t)c[i * p->n + j] +
                              (uint64_t)a[i * p->k + l] * (uint64_t)b[l * row + j * column]);
        for (int64_t j = 0; j < p->n; j++)
            c[i * p->n + j] = int_wrap(dtype, c[i * p->n + j]);
    }
}

static void multiply(const struct product *p, const struct val *a, const struct val *b,
                     struct val *out)
{
    struct place at = {0};
    for (int64_t i = 0; i < p->batches; i++, place_next(p, &at)) {
        int64_t c = i * p->m * p->n;
        if (!out->f)
            multiply_integers(p, out->dtype, a->i + at.a, b->i + at.b, out->i + c);
        else if (p->m == 1 && p->n == 1)
            out->f[c] = real_dot(a->f + at.a, b->f + at.b, p->k);
        else
            gemm(false, p->transposed, p->m, p->n, p->k, 1, a->f + at.a, p->k, b->f + at.b,
                 p->transposed ? p->k : p->n, 0, out->f + c, p->n);
    }
}

static struct val *product(struct op *o, struct val *a, struct val *b, bool transposed)
{
    if (!a || !b)
        return NULL;
    if (a->rank == 0 || b->rank == 0)
        return op_fail(o, PLUMB_E_ARG, "a matrix product needs vectors or matrices, not scalars");
    enum plumb_dtype dtype = matmul_dtype(a, b);
    if (dtype == PLUMB_BOOL)
        return op_fail(o, PLUMB_E_ARG, "there is no matrix product of bools");
    a = matmul_operand(o, a, dtype);
    b = matmul_operand(o, b, dtype);
    struct product *p = op_alloc(o, 1, sizeof *p);
    if (!a || !b || !p)
        return NULL;

    unsigned a_own = a->rank < 2 ? a->rank : 2, b_own = b->rank < 2 ? b->rank : 2;
    p->m = a_own == 2 ? a->shape[a->rank - 2] : 1;
    p->k = a->shape[a->rank - 1];
    p->n = b_own == 2 ? b->shape[b->rank - (transposed ? 2 : 1)] : 1;
    p->transposed = transposed;
    int64_t b_rows = b->shape[b->rank - (transposed ? 1 : b_own)];
    if (p->k != b_rows)
        return op_fail(o, PLUMB_E_ARG,
                       "a matrix product of %lld x %lld and %lld x %lld: the inner sizes differ",
                       (long long)p->m, (long long)p->k, (long long)b_rows, (long long)p->n);
    if (!plan_batches(o, a, a->rank - a_own, b, b->rank - b_own, p))
        return NULL;

    int64_t shape[OP_RANK + 2];
    unsigned rank = 0;
    for (; rank < p->rank; rank++)
        shape[rank] = p->shape[rank];
    if (a_own == 2)
        shape[rank++] = p->m;
    if (b_own == 2)
        shape[rank++] = p->n;
    if (rank > OP_RANK)
        return op_fail(o, PLUMB_E_ARG, "the product has more than %d dimensions", OP_RANK);
    /* Integers are added to what is there. */
    struct val *out = (dtype_is_float(dtype) ? val_room : val_new)(o, dtype, rank, shape);
    if (!out)
        return NULL;
    merge_batches(p);
    multiply(p, a, b, out);
    return val_node(o, out, backward, a, b, NULL, p);
}

struct val *v_matmul(struct op *o, struct val *a, struct val *b)
{
    return product(o, a, b, false);
}

struct val *v_matmul_t(struct op *o, struct val *a, struct val *b)
{
    return product(o, a, b, true);
}
