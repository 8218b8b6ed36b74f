/* Order and movement under the names of torch_npu. */
#include "exec/op/fused.h"
#include "exec/op/order.h"

/* ---- Order ----------------------------------------------------------------------------------- */

static void choose_sorted(const struct row *row, const struct chooser *self)
{
    sort_row(row, self->descending, self->order, self->scratch);
}

static void run_sort(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = NULL;
    if (!x)
        return;
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    struct chooser all = {.fn = choose_sorted,
                          .take = x->rank ? x->shape[dim] : 1,
                          .descending = arg_bool(o, "descending")};
    op_return(o, o->failed ? NULL : v_choose(o, x, dim, all, false, &index));
}

/* p = softmax(x); the k largest, which experts they are, and row_idx[i, j] = j rows + i. Rows that
 * are finished go to no expert, which has the number behind the last. */
static void run_gating(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *finished = arg_tensor(o, "finished"), *index = NULL;
    const int64_t k = arg_int(o, "k");
    if (!takes_floats(o, x))
        return;
    const int64_t experts = x->rank ? x->shape[x->rank - 1] : 0;
    const int64_t rows = experts ? x->count / experts : 0;
    if (x->rank < 2 || k < 1 || k > experts ||
        (finished && (finished->count != rows || finished->f))) {
        op_fail(o, PLUMB_E_ARG,
                "%s: k is %lld of %lld experts, and 'finished' must have one flag for each row",
                o->call->name, (long long)k, (long long)experts);
        return;
    }
    struct chooser top = {.fn = choose_sorted, .take = k, .descending = true};
    struct val *y = v_choose(o, v_softmax(o, x, x->rank - 1), x->rank - 1, top, false, &index);
    struct val *which = y ? val_like(o, y, PLUMB_I32) : NULL,
               *from = y ? val_like(o, y, PLUMB_I32) : NULL;
    if (!which || !from)
        return;
    for (int64_t e = 0; e < y->count; e++) {
        const int64_t row = e / k;
        which->i[e] = finished && finished->i[row] ? experts : index->i[e];
        from->i[e] = int_wrap(PLUMB_I32, e % k * rows + row);
    }
    op_return(o, y);
    op_return(o, which);
    op_return(o, from);
}

static void extreme(struct op *o,
                    struct val *pick(struct op *, struct val *, unsigned, bool, struct val **))
{
    struct val *x = arg_tensor(o, "input"), *index = NULL;
    if (!x)
        return;
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    op_return(o, o->failed ? NULL : pick(o, x, dim, arg_bool(o, "keepdim"), &index));
    op_return(o, v_cast(o, index, PLUMB_I32));
}

static void run_max(struct op *o)
{
    extreme(o, v_max_dim);
}

static void run_min(struct op *o)
{
    extreme(o, v_min_dim);
}

/* ---- Movement -------------------------------------------------------------------------------- */

/* A shape in which one size may be -1. */
static struct val *reshape(struct op *o, struct val *x, const int64_t *given, size_t n)
{
    if (!x || n > OP_RANK)
        return NULL;
    int64_t shape[OP_RANK], known = 1;
    int open = -1;
    for (size_t d = 0; d < n; d++) {
        shape[d] = given[d];
        if (given[d] == -1 && open < 0)
            open = (int)d;
        else if (given[d] < 0 || __builtin_mul_overflow(known, given[d], &known))
            return op_fail(o, PLUMB_E_ARG, "%s: a size of %lld", o->call->name,
                           (long long)given[d]);
    }
    if (open >= 0) {
        if (known == 0 || x->count % known)
            return op_fail(o, PLUMB_E_ARG, "%s: %lld elements do not fill the shape evenly",
                           o->call->name, (long long)x->count);
        shape[open] = x->count / known;
    }
    return v_reshape(o, x, (unsigned)n, shape);
}

static struct val *permute(struct op *o, struct val *x, const int64_t *perm, size_t n)
{
    if (!x)
        return NULL;
    unsigned dims[OP_RANK];
    uint64_t seen = 0;
    for (size_t d = 0; d < n && n == x->rank; d++) {
        dims[d] = val_dim(o, x, perm[d]);
        seen |= UINT64_C(1) << dims[d];
    }
    if (o->failed)
        return NULL;
    if (n != x->rank || (n < 64 && seen != (UINT64_C(1) << n) - 1))
        return op_fail(o, PLUMB_E_ARG, "%s: perm does not name each of %u dimensions once",
                       o->call->name, x->rank);
    return v_permute(o, x, dims);
}

static void run_confusion_transpose(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n_perm, n_shape;
    const int64_t *perm = arg_ints(o, "perm", &n_perm), *shape = arg_ints(o, "shape", &n_shape);
    if (arg_bool(o, "transpose_first"))
        op_return(o, reshape(o, permute(o, x, perm, n_perm), shape, n_shape));
    else
        op_return(o, permute(o, reshape(o, x, shape, n_shape), perm, n_perm));
}

static void run_transpose(struct op *o)
{
    size_t n;
    const int64_t *perm = arg_ints(o, "perm", &n);
    op_return(o, permute(o, arg_tensor(o, "input"), perm, n));
}

static void run_reshape(struct op *o)
{
    size_t n;
    const int64_t *shape = arg_ints(o, "shape", &n);
    op_return(o, reshape(o, arg_tensor(o, "input"), shape, n));
}

static void run_broadcast(struct op *o)
{
    size_t n;
    const int64_t *size = arg_ints(o, "size", &n);
    op_return(o, v_broadcast(o, arg_tensor(o, "input"), (unsigned)n, size));
}

static void run_slice(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n, m;
    const int64_t *offsets = arg_ints(o, "offsets", &n), *size = arg_ints(o, "size", &m);
    if (!x)
        return;
    if (n != x->rank || m != n) {
        op_fail(o, PLUMB_E_ARG, "%s: an offset and a size for each of %u dimensions are needed",
                o->call->name, x->rank);
        return;
    }
    for (unsigned d = 0; x && d < n; d++) {
        if (offsets[d] < 0 || size[d] < -1 || offsets[d] > x->shape[d] ||
            size[d] > x->shape[d] - offsets[d]) {
            op_fail(o, PLUMB_E_ARG, "%s: %lld elements from %lld of a dimension of %lld",
                    o->call->name, (long long)size[d], (long long)offsets[d],
                    (long long)x->shape[d]);
            return;
        }
        x = v_narrow(o, x, d, offsets[d], size[d] < 0 ? x->shape[d] - offsets[d] : size[d]);
    }
    op_return(o, x);
}

static void run_dtype_cast(struct op *o)
{
    op_return(o, v_cast(o, arg_tensor(o, "input"), arg_dtype(o, "dtype")));
}

/* How a tensor is stored is nobody's business here. */
static void run_format_cast(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, x ? v_cast(o, x, x->dtype) : NULL);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define X "(Tensor input|self|x"

const struct op_def op_fused_move[] = {
    {"npu_sort_v2", "npu_sort_v2" X ", int dim=-1, bool descending=False, any out=None)", run_sort,
     OP_DECISION, "sorted values; NaN counts as the largest"},
    {"npu_moe_gating_top_k_softmax",
     "npu_moe_gating_top_k_softmax" X ", Tensor? finished=None, int k=1)", run_gating, 0,
     "the k largest of softmax(x), their experts, and row_idx[i, j] = j rows + i"},
    {"npu_max", "npu_max" X ", int dim, bool keepdim=False)", run_max, OP_DECISION, NULL},
    {"npu_min", "npu_min" X ", int dim, bool keepdim=False)", run_min, OP_DECISION, NULL},
    {"npu_confusion_transpose",
     "npu_confusion_transpose" X ", int[] perm, int[] shape, bool transpose_first)",
     run_confusion_transpose, OP_EXACT, "permute and reshape, or the other way round"},
    {"npu_transpose", "npu_transpose" X ", int[] perm, bool require_contiguous=True)",
     run_transpose, OP_EXACT, NULL},
    {"npu_reshape", "npu_reshape" X ", int[] shape, bool can_refresh=False)", run_reshape, OP_EXACT,
     NULL},
    {"npu_broadcast", "npu_broadcast" X ", int[] size)", run_broadcast, OP_EXACT, NULL},
    {"npu_slice", "npu_slice" X ", int[] offsets, int[] size)", run_slice, OP_EXACT, NULL},
    {"npu_dtype_cast", "npu_dtype_cast" X ", dtype dtype)", run_dtype_cast, OP_EXACT, NULL},
    {"npu_format_cast npu_format_cast_", "npu_format_cast" X ", any acl_format)", run_format_cast,
     OP_EXACT, "x itself"},
    {0},
};
