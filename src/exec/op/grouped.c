/* Products of groups of rows (or columns) with a matrix each, as mixtures of experts compute
 * them. */
#include "exec/op/grouped.h"

enum { MAX_GROUPS = 1 << 16 };

/* Where group g of `size` rows begins and how many it has, from the ends of groups. */
struct groups {
    const struct val *ends;
    int64_t n, size;
};

static bool read_groups(struct op *o, struct groups *g, const struct val *ends, int64_t size)
{
    *g = (struct groups){ends, ends ? ends->count : 0, size};
    if (!ends || !ends->i || ends->rank != 1 || g->n > MAX_GROUPS) {
        op_fail(o, PLUMB_E_ARG, "%s: offs must be the ends of the groups, as integers",
                o->call->name);
        return false;
    }
    for (int64_t k = 0, before = 0; k < g->n; before = ends->i[k++])
        if (ends->i[k] < before || ends->i[k] > size) {
            op_fail(o, PLUMB_E_ARG, "%s: group %lld ends at %lld, after %lld and within %lld",
                    o->call->name, (long long)k, (long long)ends->i[k], (long long)before,
                    (long long)size);
            return false;
        }
    if (g->n == 0 ? size != 0 : ends->i[g->n - 1] != size)
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: the groups end at %lld of %lld; what is behind them is not defined",
                o->call->name, (long long)(g->n ? ends->i[g->n - 1] : 0), (long long)size);
    return !o->failed;
}

static struct val *part(struct op *o, struct val *x, unsigned dim, const struct groups *g,
                        int64_t k)
{
    const int64_t from = k ? g->ends->i[k - 1] : 0;
    return v_narrow(o, x, dim, from, g->ends->i[k] - from);
}

/* Matrix k of a stack. */
static struct val *layer(struct op *o, struct val *x, int64_t k)
{
    return v_squeeze(o, v_narrow(o, x, 0, k, 1), 0);
}

static bool stack_fits(struct op *o, const struct val *stack, const struct groups *g)
{
    if (stack->shape[0] != g->n)
        op_fail(o, PLUMB_E_ARG, "%s: %lld matrices for %lld groups", o->call->name,
                (long long)stack->shape[0], (long long)g->n);
    return !o->failed;
}

struct val *v_grouped(struct op *o, struct val *a, struct val *b, const struct val *ends)
{
    struct groups g;
    if (!a || !b)
        return NULL;
    if (a->rank < 2 || a->rank > 3 || b->rank < 2 || b->rank > 3)
        return op_fail(o, PLUMB_E_ARG, "%s: matrices, or stacks of them, are needed",
                       o->call->name);
    if (a->rank == 3 && b->rank == 3)
        return v_matmul(o, a, b);
    const bool rows = b->rank == 3, columns = a->rank == 3;
    const int64_t size = rows ? a->shape[0] : b->shape[columns ? 1 : 0];
    if (!read_groups(o, &g, ends, size) || (rows && !stack_fits(o, b, &g)) ||
        (columns && !stack_fits(o, a, &g)))
        return NULL;
    struct val **parts = op_alloc(o, g.n + 1, sizeof *parts);
    for (int64_t k = 0; parts && k < g.n && !o->failed; k++) {
        struct val *left = rows      ? part(o, a, 0, &g, k)
                           : columns ? layer(o, a, k)
                                     : part(o, a, 1, &g, k);
        struct val *right = rows ? layer(o, b, k) : part(o, b, columns ? 1 : 0, &g, k);
        parts[k] = v_matmul(o, left, right);
        if (!rows && !columns)
            parts[k] = v_unsqueeze(o, parts[k], 0);
    }
    if (o->failed)
        return NULL;
    if (g.n == 0)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: there is no group", o->call->name);
    return v_cat(o, parts, (size_t)g.n, columns ? 1 : 0);
}

static void run_grouped(struct op *o)
{
    struct val *a = arg_tensor(o, "input"), *b = arg_tensor(o, "mat2");
    if (arg_given(o, "bias")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: a bias is not known", o->call->name);
        return;
    }
    const enum plumb_dtype dtype = arg_dtype(o, "out_dtype");
    if (dtype != PLUMB_DTYPE_COUNT && (!a || dtype != a->dtype)) {
        a = v_cast(o, a, dtype);
        b = v_cast(o, b, dtype);
    }
    op_return(o, v_grouped(o, a, b, arg_tensor(o, "offs")));
}

const struct op_def op_grouped[] = {
    {"_grouped_mm grouped_mm grouped_mm_fallback",
     "_grouped_mm(Tensor input|self|mat_a, Tensor mat2|mat_b|weight, Tensor? offs=None, Tensor? "
     "bias=None, dtype? out_dtype=None)",
     run_grouped, OP_BILINEAR, "each group of rows of input times its own matrix of mat2"},
    {0},
};
