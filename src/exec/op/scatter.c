/* Elements written by index: scatter, index_add, masked_scatter, fill, copy, ... */
#include "exec/op/place.h"

#include <string.h>

/* ---- Reductions at the places ---------------------------------------------------------------- */

enum reduction { RED_NONE, RED_SUM, RED_PROD, RED_MEAN, RED_MAX, RED_MIN };

static enum reduction reduction_named(struct op *o, const char *name)
{
    static const struct {
        const char *name;
        enum reduction how;
    } names[] = {{"sum", RED_SUM},   {"add", RED_SUM},  {"prod", RED_PROD}, {"multiply", RED_PROD},
                 {"mean", RED_MEAN}, {"amax", RED_MAX}, {"amin", RED_MIN}};
    for (size_t k = 0; name && k < sizeof names / sizeof *names; k++)
        if (strcmp(name, names[k].name) == 0)
            return names[k].how;
    op_fail(o, PLUMB_E_ARG, "%s: there is no reduction '%s'", o->call->name, name ? name : "None");
    return RED_NONE;
}

struct reduced {
    enum reduction how;
    bool with_self;
    const int64_t *map;
    const int64_t *hits; /* for each place of the result, how many sources it has */
};

/* Whether x's own element counts at place p. */
static bool keeps_own(const struct reduced *r, int64_t p)
{
    return r->with_self || r->hits[p] == 0;
}

static real combine(enum reduction how, real a, real b)
{
    switch (how) {
    case RED_PROD:
        return a * b;
    case RED_MAX:
        return isnan(a) || a > b ? a : b;
    case RED_MIN:
        return isnan(a) || a < b ? a : b;
    default:
        return a + b;
    }
}

static int64_t combine_ints(enum reduction how, int64_t a, int64_t b)
{
    switch (how) {
    case RED_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case RED_MAX:
        return a > b ? a : b;
    case RED_MIN:
        return a < b ? a : b;
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

static void mean_backward(struct op *o, struct val *out)
{
    const struct reduced *r = out->saved;
    real *gx = val_grad(o, out->in[0]), *gs = val_grad(o, out->in[1]);
    for (int64_t p = 0; gx && p < out->count; p++)
        if (keeps_own(r, p))
            gx[p] += out->grad[p] / (real)(r->hits[p] + 1);
    for (int64_t k = 0; gs && k < out->in[1]->count; k++) {
        int64_t p = r->map[k];
        gs[k] += out->grad[p] / (real)(r->hits[p] + r->with_self);
    }
}

/* The gradient of an extreme value is shared by all that are equal to it. */
static void extreme_backward(struct op *o, struct val *out)
{
    const struct reduced *r = out->saved;
    const struct val *x = out->in[0], *s = out->in[1];
    int64_t *equal = op_alloc(o, out->count + 1, sizeof *equal);
    real *gx = val_grad(o, out->in[0]), *gs = val_grad(o, out->in[1]);
    if (!equal)
        return;
    for (int64_t p = 0; p < out->count; p++)
        equal[p] = keeps_own(r, p) && x->f[p] == out->f[p];
    for (int64_t k = 0; k < s->count; k++)
        equal[r->map[k]] += s->f[k] == out->f[r->map[k]];
    for (int64_t p = 0; gx && p < out->count; p++)
        if (keeps_own(r, p) && x->f[p] == out->f[p])
            gx[p] += out->grad[p] / (real)equal[p];
    for (int64_t k = 0; gs && k < s->count; k++) {
        int64_t p = r->map[k];
        if (s->f[k] == out->f[p])
            gs[k] += out->grad[p] / (real)equal[p];
    }
}

/* Each factor gets the product of the others: of all of them but the zeros, if it is the only
 * zero. */
static real others(real factor, real product, int64_t zeros)
{
    if (zeros == 0)
        return product / factor;
    return zeros == 1 && factor == 0 ? product : 0;
}

static void product_backward(struct op *o, struct val *out)
{
    const struct reduced *r = out->saved;
    const struct val *x = out->in[0], *s = out->in[1];
    int64_t *zeros = op_alloc(o, out->count + 1, sizeof *zeros);
    real *product = op_alloc(o, out->count + 1, sizeof *product);
    real *gx = val_grad(o, out->in[0]), *gs = val_grad(o, out->in[1]);
    if (!product || !zeros)
        return;
    for (int64_t p = 0; p < out->count; p++) {
        zeros[p] = keeps_own(r, p) && x->f[p] == 0;
        product[p] = keeps_own(r, p) && x->f[p] != 0 ? x->f[p] : 1;
    }
    for (int64_t k = 0; k < s->count; k++) {
        zeros[r->map[k]] += s->f[k] == 0;
        product[r->map[k]] *= s->f[k] == 0 ? 1 : s->f[k];
    }
    for (int64_t p = 0; gx && p < out->count; p++)
        if (keeps_own(r, p))
            gx[p] += out->grad[p] * others(x->f[p], product[p], zeros[p]);
    for (int64_t k = 0; gs && k < s->count; k++) {
        int64_t p = r->map[k];
        gs[k] += out->grad[p] * others(s->f[k], product[p], zeros[p]);
    }
}

static void sum_backward(struct op *o, struct val *out)
{
    const struct reduced *r = out->saved;
    real *gx = val_grad(o, out->in[0]), *gs = val_grad(o, out->in[1]);
    for (int64_t p = 0; gx && p < out->count; p++)
        if (keeps_own(r, p))
            gx[p] += out->grad[p];
    for (int64_t k = 0; gs && k < out->in[1]->count; k++)
        gs[k] += out->grad[r->map[k]];
}

/* x with all sources of a place reduced into it, x's own element with them or replaced by them. */
static struct val *reduce_into(struct op *o, struct val *x, struct val *source, const int64_t *map,
                               enum reduction how, bool with_self)
{
    if (!x || !source || !map || o->failed)
        return NULL;
    struct val *out = val_like(o, x, x->dtype);
    struct reduced *r = op_alloc(o, 1, sizeof *r);
    int64_t *hits = op_alloc(o, x->count + 1, sizeof *hits);
    if (!out || !r || !hits)
        return NULL;
    *r = (struct reduced){how, with_self, map, hits};
    for (int64_t p = 0; with_self && p < x->count; p++) {
        if (x->f)
            out->f[p] = x->f[p];
        else
            out->i[p] = x->i[p];
    }
    for (int64_t k = 0; k < source->count; k++) {
        int64_t p = map[k];
        bool first = !with_self && hits[p] == 0;
        if (x->f)
            out->f[p] = first ? source->f[k] : combine(how, out->f[p], source->f[k]);
        else
            out->i[p] = first ? source->i[k]
                              : int_wrap(x->dtype, combine_ints(how, out->i[p], source->i[k]));
        if (x->f)
            op_accumulated(o, &out->f[p], 1);
        hits[p]++;
    }
    for (int64_t p = 0; p < x->count; p++) {
        int64_t n = hits[p] + with_self;
        op_terms(n);
        if (hits[p] == 0 && x->f)
            out->f[p] = x->f[p];
        else if (hits[p] == 0)
            out->i[p] = x->i[p];
        else if (how == RED_MEAN && x->f)
            out->f[p] /= (real)n;
        else if (how == RED_MEAN)
            out->i[p] = floor_divide(out->i[p], n);
    }
    static op_backward *const backwards[] = {
        [RED_SUM] = sum_backward,     [RED_PROD] = product_backward, [RED_MEAN] = mean_backward,
        [RED_MAX] = extreme_backward, [RED_MIN] = extreme_backward,
    };
    return val_node(o, out, backwards[how], x, source, NULL, r);
}

/* ---- scatter: a place for every element of the index ----------------------------------------- */

static bool index_fits(const struct val *x, const struct val *index, unsigned dim, bool along)
{
    if ((x->rank ? x->rank : 1) != (index->rank ? index->rank : 1))
        return false;
    for (unsigned d = 0; d < x->rank && d < index->rank; d++)
        if ((d != dim || along) && index->shape[d] > x->shape[d])
            return false;
    return true;
}

/* The corner of x that has the shape of index; along dim, where the index says. */
static int64_t *corner(struct op *o, const struct val *x, const struct val *index, unsigned dim,
                       bool by_index)
{
    int64_t *map = op_alloc(o, index->count + 1, sizeof *map), stride[OP_RANK] = {1};
    int64_t size = x->rank ? x->shape[dim] : 1, at[OP_RANK] = {0};
    shape_strides(x->rank, x->shape, stride);
    for (int64_t k = 0; map && k < index->count; k++) {
        int64_t place = by_index ? index->i[k] : at[dim];
        if (place < 0 || place >= size)
            return op_fail(o, PLUMB_E_ARG, "%s: index %lld is outside a dimension of size %lld",
                           o->call->name, (long long)place, (long long)size);
        map[k] = place * stride[dim];
        for (unsigned d = 0; d < x->rank; d++)
            map[k] += d == dim ? 0 : at[d] * stride[d];
        for (unsigned d = index->rank; d-- > 0;) {
            if (++at[d] < index->shape[d])
                break;
            at[d] = 0;
        }
    }
    return map;
}

/* The places of the index argument, and for each the element of the source in x's type. */
static const int64_t *scatter_places(struct op *o, struct val *x, struct val **source)
{
    struct val *index = arg_index(o, "index"), *s = arg_operand(o, "src");
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || !index || !s || o->failed)
        return NULL;
    const bool number = s->weak;
    if (!number && s->dtype != x->dtype)
        return op_fail(o, PLUMB_E_ARG, "%s: a source of %s for a tensor of %s", o->call->name,
                       plumb_dtype_info(s->dtype)->name, plumb_dtype_info(x->dtype)->name);
    if (index->count &&
        (!index_fits(x, index, dim, false) || (!number && !index_fits(s, index, dim, true))))
        return op_fail(o, PLUMB_E_ARG, "%s: the index does not fit into the tensor or the source",
                       o->call->name);
    if (number)
        *source = v_broadcast(o, v_cast(o, s, x->dtype), index->rank, index->shape);
    else
        *source = v_map(o, s, index->rank, index->shape, corner(o, s, index, dim, false));
    return o->failed ? NULL : corner(o, x, index, dim, true);
}

static void run_scatter(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *source;
    const int64_t *map = scatter_places(o, x, &source);
    if (!map)
        return;
    if (!arg_given(o, "reduce"))
        op_return(o, v_place(o, x, source, map));
    else
        op_return(o,
                  reduce_into(o, x, source, map, reduction_named(o, arg_text(o, "reduce")), true));
}

static void run_scatter_add(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *source;
    const int64_t *map = scatter_places(o, x, &source);
    if (map)
        op_return(o, v_place_add(o, x, source, map));
}

static void run_scatter_reduce(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *source;
    enum reduction how = reduction_named(o, arg_text(o, "reduce"));
    const int64_t *map = scatter_places(o, x, &source);
    if (map)
        op_return(o, reduce_into(o, x, source, map, how, arg_bool(o, "include_self")));
}

/* ---- index_...: whole slices along a dimension ----------------------------------------------- */

/* The places of the slices that the index names, in the order of a source of that many slices. */
static const int64_t *slice_places(struct op *o, struct val *x, bool from_end, unsigned *rank,
                                   int64_t *shape)
{
    struct val *index = arg_index(o, "index");
    unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || !index || o->failed)
        return NULL;
    if (index->rank > 1)
        return op_fail(o, PLUMB_E_ARG, "%s: an index of %u dimensions", o->call->name, index->rank);
    struct val *row = x->rank ? x : val_alias(o, x, 1, &x->count);
    int64_t *at = row ? op_alloc(o, index->count + 1, sizeof *at) : NULL;
    if (!at)
        return NULL;
    for (int64_t k = 0; k < index->count; k++) {
        if (index->i[k] < 0 && !from_end)
            return op_fail(o, PLUMB_E_ARG, "%s: index %lld is negative", o->call->name,
                           (long long)index->i[k]);
        at[k] = index_wrap(o, index->i[k], row->shape[dim]);
        if (at[k] < 0)
            return NULL;
    }
    const int64_t *all[OP_RANK] = {0};
    all[dim] = at;
    shape[dim] = index->count;
    *rank = x->rank;
    return pick_map(o, row, shape, all);
}

/* The source argument, which has the shape of the slices. */
static struct val *slice_source(struct op *o, const struct val *x, unsigned rank,
                                const int64_t *shape)
{
    struct val *source = arg_tensor(o, "source");
    if (!source)
        return NULL;
    if (source->dtype != x->dtype)
        return op_fail(o, PLUMB_E_ARG, "%s: a source of %s for a tensor of %s", o->call->name,
                       plumb_dtype_info(source->dtype)->name, plumb_dtype_info(x->dtype)->name);
    bool fits = source->rank == rank || (source->rank <= 1 && rank <= 1);
    for (unsigned d = 0; fits && d < rank; d++)
        fits = (source->rank ? source->shape[d] : 1) == shape[d];
    if (!fits || (rank == 0 && source->count != 1))
        return op_fail(o, PLUMB_E_ARG, "%s: the source does not have the shape of the slices",
                       o->call->name);
    return source;
}

static void run_index_add(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned rank;
    int64_t shape[OP_RANK];
    const int64_t *map = slice_places(o, x, false, &rank, shape);
    struct val *source = map ? slice_source(o, x, rank, shape) : NULL;
    if (source)
        source = v_cast(o, v_mul(o, source, arg_operand(o, "alpha")), x->dtype);
    op_return(o, v_place_add(o, x, source, map));
}

static void run_index_copy(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    unsigned rank;
    int64_t shape[OP_RANK];
    const int64_t *map = slice_places(o, x, false, &rank, shape);
    op_return(o, map ? v_place(o, x, slice_source(o, x, rank, shape), map) : NULL);
}

static void run_index_reduce(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    enum reduction how = reduction_named(o, arg_text(o, "reduce"));
    unsigned rank;
    int64_t shape[OP_RANK];
    const int64_t *map = slice_places(o, x, false, &rank, shape);
    if (map)
        op_return(o, reduce_into(o, x, slice_source(o, x, rank, shape), map, how,
                                 arg_bool(o, "include_self")));
}

static void run_index_fill(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "value");
    unsigned rank;
    int64_t shape[OP_RANK];
    const int64_t *map = slice_places(o, x, true, &rank, shape);
    if (!map || !value)
        return;
    if (value->rank)
        op_fail(o, PLUMB_E_ARG, "index_fill with a tensor of %u dimensions", value->rank);
    value = v_cast(o, value, x->dtype);
    op_return(o, v_place(o, x, v_broadcast(o, value, rank, shape), map));
}

/* ---- Masks, flat places, everything ---------------------------------------------------------- */

/* The mask, broadcast with x to a common shape; x is replaced by its broadcast. */
static struct val *common_mask(struct op *o, struct val **x)
{
    struct val *mask = arg_tensor(o, "mask");
    unsigned rank;
    int64_t shape[OP_RANK];
    if (!broadcast_shape(o, *x, mask, &rank, shape))
        return NULL;
    if (mask->dtype != PLUMB_BOOL && mask->dtype != PLUMB_U8)
        return op_fail(o, PLUMB_E_ARG, "%s: a mask of %s", o->call->name,
                       plumb_dtype_info(mask->dtype)->name);
    *x = v_broadcast(o, *x, rank, shape);
    return v_broadcast(o, mask, rank, shape);
}

static void run_masked_fill(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "value");
    struct val *mask = common_mask(o, &x);
    if (!mask || !value)
        return;
    if (value->rank)
        op_fail(o, PLUMB_E_ARG, "masked_fill with a tensor of %u dimensions", value->rank);
    op_return(o, v_where(o, v_cast(o, mask, PLUMB_BOOL), v_cast(o, value, x->dtype), x));
}

static void run_masked_scatter(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *source = arg_tensor(o, "source");
    struct val *mask = common_mask(o, &x);
    if (!mask || !source)
        return;
    int64_t n = 0, k = 0;
    for (int64_t j = 0; j < mask->count; j++)
        n += mask->i[j] != 0;
    if (source->dtype != x->dtype || source->count < n) {
        op_fail(o, PLUMB_E_ARG, "masked_scatter: %lld places of %s and %lld elements of %s",
                (long long)n, plumb_dtype_info(x->dtype)->name, (long long)source->count,
                plumb_dtype_info(source->dtype)->name);
        return;
    }
    int64_t *map = op_alloc(o, n + 1, sizeof *map);
    for (int64_t j = 0; map && j < mask->count; j++)
        if (mask->i[j])
            map[k++] = j;
    source = v_narrow(o, v_reshape(o, source, 1, &source->count), 0, 0, n);
    op_return(o, v_place(o, x, source, map));
}

static void run_put(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = arg_index(o, "index");
    struct val *source = arg_tensor(o, "source");
    if (!x || !index || !source)
        return;
    if (source->dtype != x->dtype || source->count != index->count) {
        op_fail(o, PLUMB_E_ARG, "put_: %lld places of %s and %lld elements of %s",
                (long long)index->count, plumb_dtype_info(x->dtype)->name, (long long)source->count,
                plumb_dtype_info(source->dtype)->name);
        return;
    }
    int64_t *map = op_alloc(o, index->count + 1, sizeof *map);
    for (int64_t k = 0; map && k < index->count; k++) {
        map[k] = index_wrap(o, index->i[k], x->count);
        if (map[k] < 0)
            return;
    }
    op_return(o, arg_bool(o, "accumulate") ? v_place_add(o, x, source, map)
                                           : v_place(o, x, source, map));
}

static void run_copy(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *source = arg_operand(o, "src");
    if (x && source)
        op_return(o, v_broadcast(o, v_cast(o, source, x->dtype), x->rank, x->shape));
}

static void run_fill(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "value");
    if (!x || !value)
        return;
    if (value->count != 1) {
        op_fail(o, PLUMB_E_ARG, "fill_ with %lld numbers", (long long)value->count);
        return;
    }
    value = v_reshape(o, v_cast(o, value, x->dtype), 0, NULL);
    op_return(o, v_broadcast(o, value, x->rank, x->shape));
}

static void run_zero(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, x ? v_full(o, x->dtype, x->rank, x->shape, 0) : NULL);
}

static void run_fill_diagonal(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "fill_value");
    if (!x || !value)
        return;
    int64_t least = x->rank ? x->shape[0] : 0, step = 0, stride[OP_RANK];
    shape_strides(x->rank, x->shape, stride);
    bool cube = true;
    for (unsigned d = 0; d < x->rank; d++) {
        cube &= x->shape[d] == x->shape[0];
        least = x->shape[d] < least ? x->shape[d] : least;
        step += stride[d];
    }
    if (x->rank < 2 || (x->rank > 2 && !cube)) {
        op_fail(o, PLUMB_E_ARG, "fill_diagonal_ of a tensor that is neither matrix nor cube");
        return;
    }
    /* With wrap, a tall matrix gets a further diagonal below each, one row apart. */
    int64_t n = least;
    if (arg_bool(o, "wrap") && x->rank == 2 && x->shape[0] > x->shape[1] + 1)
        n = x->shape[1] ? (x->count + step - 1) / step : 0;
    int64_t *map = op_alloc(o, n + 1, sizeof *map);
    for (int64_t k = 0; map && k < n; k++)
        map[k] = k * step;
    op_return(o, v_place(o, x, v_broadcast(o, v_cast(o, value, x->dtype), 1, &n), map));
}

const struct op_def op_scatter[] = {
    {"scatter scatter_",
     "scatter(Tensor input|self, int dim, Tensor index, Operand src|value, *, str? reduce=None)",
     run_scatter, 0, "out[index[i][j]][j] = src[i][j] for dim 0; the last one stays"},
    {"scatter_add scatter_add_",
     "scatter_add(Tensor input|self, int dim, Tensor index, Tensor src)", run_scatter_add,
     OP_LINEAR, NULL},
    {"scatter_reduce scatter_reduce_",
     "scatter_reduce(Tensor input|self, int dim, Tensor index, Tensor src, str reduce, *, bool "
     "include_self=True)",
     run_scatter_reduce, 0, "sum, prod, mean, amax or amin at each place"},
    {"index_add index_add_",
     "index_add(Tensor input|self, int dim, Tensor index, Tensor source, *, number alpha=1)",
     run_index_add, OP_LINEAR, NULL},
    {"index_copy index_copy_",
     "index_copy(Tensor input|self, int dim, Tensor index, Tensor source)", run_index_copy,
     OP_EXACT, NULL},
    {"index_fill index_fill_",
     "index_fill(Tensor input|self, int dim, Tensor index, Operand value)", run_index_fill,
     OP_EXACT, NULL},
    {"index_reduce index_reduce_",
     "index_reduce(Tensor input|self, int dim, Tensor index, Tensor source, str reduce, *, bool "
     "include_self=True)",
     run_index_reduce, 0, NULL},
    {"masked_fill masked_fill_", "masked_fill(Tensor input|self, Tensor mask, Operand value)",
     run_masked_fill, OP_EXACT, NULL},
    {"masked_scatter masked_scatter_",
     "masked_scatter(Tensor input|self, Tensor mask, Tensor source)", run_masked_scatter, OP_EXACT,
     NULL},
    {"put_ put", "put_(Tensor input|self, Tensor index, Tensor source, bool accumulate=False)",
     run_put, 0, NULL},
    {"copy_ copy", "copy_(Tensor input|self, Operand src|other, bool non_blocking=False)", run_copy,
     OP_EXACT, NULL},
    {"fill_ fill", "fill_(Tensor input|self, Operand value)", run_fill, OP_EXACT, NULL},
    {"zero_ zero", "zero_(Tensor input|self)", run_zero, OP_EXACT, NULL},
    {"fill_diagonal_", "fill_diagonal_(Tensor input|self, Operand fill_value, bool wrap=False)",
     run_fill_diagonal, OP_EXACT, NULL},
    {0},
};
