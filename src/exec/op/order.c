/* Sorting: a stable merge of places, so that ties keep their order. */
#include "exec/op/order.h"
#include "exec/op/fold.h"

enum { RUN = 16 };

static void sort_run(const struct row *row, bool descending, int64_t *order, int64_t from,
                     int64_t to)
{
    for (int64_t k = from; k < to; k++) {
        int64_t j = k;
        for (; j > from && comes_before(row, k, order[j - 1], descending); j--)
            order[j] = order[j - 1];
        order[j] = k;
    }
}

static void merge(const struct row *row, bool descending, const int64_t *from, int64_t low,
                  int64_t middle, int64_t high, int64_t *to)
{
    int64_t a = low, b = middle;
    for (int64_t k = low; k < high; k++) {
        const bool left =
            a < middle && (b == high || comes_before(row, from[a], from[b], descending));
        to[k] = left ? from[a++] : from[b++];
    }
}

void sort_row(const struct row *row, bool descending, int64_t *order, int64_t *scratch)
{
    const int64_t n = row->n;
    for (int64_t k = 0; k < n; k += RUN)
        sort_run(row, descending, order, k, k + RUN < n ? k + RUN : n);
    int64_t *from = order, *to = scratch;
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t low = 0; low < n; low += 2 * width) {
            const int64_t middle = low + width < n ? low + width : n;
            const int64_t high = low + 2 * width < n ? low + 2 * width : n;
            merge(row, descending, from, low, middle, high, to);
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    for (int64_t k = 0; from != order && k < n; k++)
        order[k] = from[k];
}

/* ---- Choosing -------------------------------------------------------------------------------- */

struct choice {
    struct chooser chooser;
    struct span3 span;
    int64_t *index, *map;
};

static void choose_row(const struct row *row, void *context)
{
    const struct choice *c = context;
    const int64_t inner = c->span.inner, block = row->at / inner, column = row->at % inner;
    c->chooser.fn(row, &c->chooser);
    for (int64_t k = 0; k < c->chooser.take; k++) {
        const int64_t to = (block * c->chooser.take + k) * inner + column;
        c->index[to] = c->chooser.order[k];
        c->map[to] = (block * c->span.length + c->chooser.order[k]) * inner + column;
    }
}

struct val *v_choose(struct op *o, struct val *x, unsigned dim, struct chooser chooser, bool drop,
                     struct val **index)
{
    struct fold fold;
    if (!fold_begin(o, x, (uint64_t)1 << dim, !drop, &fold))
        return NULL;
    if (!drop && fold.rank > 0)
        fold.shape[dim] = chooser.take;
    struct val *at = fold_new(o, &fold, PLUMB_I64);
    int64_t *map = at ? op_alloc(o, at->count, sizeof *map) : NULL;
    chooser.order = op_alloc(o, fold.span.length, sizeof(int64_t));
    chooser.scratch = op_alloc(o, fold.span.length, sizeof(int64_t));
    if (!map || o->failed)
        return NULL;
    struct choice choice = {chooser, fold.span, at->i, map};
    if (at->count > 0)
        each_row(o, fold.span, &(struct row){.in = {x->f}, .int_in = x->i}, choose_row, &choice);
    *index = at;
    return v_map(o, x, fold.rank, fold.shape, map);
}

/* ---- Operators ------------------------------------------------------------------------------- */

static void choose_all(const struct row *row, const struct chooser *self)
{
    sort_row(row, self->descending, self->order, self->scratch);
}

static struct val *sorted(struct op *o, struct val *x, int64_t dim, bool descending,
                          struct val **index)
{
    if (!x)
        return NULL;
    const unsigned d = val_dim(o, x, dim);
    struct chooser all = {
        .fn = choose_all, .take = x->rank ? x->shape[d] : 1, .descending = descending};
    return v_choose(o, x, d, all, false, index);
}

static void run_sort(struct op *o)
{
    struct val *index = NULL;
    op_return(
        o, sorted(o, arg_tensor(o, "input"), arg_int(o, "dim"), arg_bool(o, "descending"), &index));
    op_return(o, index);
}

static void run_argsort(struct op *o)
{
    struct val *index = NULL;
    sorted(o, v_detach(o, arg_tensor(o, "input")), arg_int(o, "dim"), arg_bool(o, "descending"),
           &index);
    op_return(o, index);
}

static void run_msort(struct op *o)
{
    struct val *index = NULL;
    op_return(o, sorted(o, arg_tensor(o, "input"), 0, false, &index));
}

/* Sinks the element at the root of a heap whose root is the last in order. */
static void sink(const struct row *row, bool descending, int64_t *heap, int64_t n, int64_t at)
{
    for (;;) {
        int64_t last = at, left = 2 * at + 1;
        for (int64_t child = left; child < left + 2 && child < n; child++)
            if (comes_before(row, heap[last], heap[child], descending))
                last = child;
        if (last == at)
            return;
        const int64_t swap = heap[at];
        heap[at] = heap[last];
        heap[last] = swap;
        at = last;
    }
}

/* The first few in order: a heap of the best so far, which most elements never enter. */
static void choose_top(const struct row *row, const struct chooser *self)
{
    const int64_t k = self->take;
    if (k > row->n / 4) {
        choose_all(row, self);
        return;
    }
    if (k == 0)
        return;
    int64_t *heap = self->order;
    for (int64_t j = 0; j < k; j++)
        heap[j] = j;
    for (int64_t j = k / 2; j-- > 0;)
        sink(row, self->descending, heap, k, j);
    for (int64_t j = k; j < row->n; j++)
        if (comes_before(row, j, heap[0], self->descending)) {
            heap[0] = j;
            sink(row, self->descending, heap, k, 0);
        }
    for (int64_t n = k - 1; n > 0; n--) {
        const int64_t swap = heap[0];
        heap[0] = heap[n];
        heap[n] = swap;
        sink(row, self->descending, heap, n, 0);
    }
}

static void run_topk(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *index = NULL;
    const int64_t k = arg_int(o, "k");
    const unsigned dim = val_dim(o, x, arg_int(o, "dim"));
    if (!x || o->failed)
        return;
    const int64_t n = x->rank ? x->shape[dim] : 1;
    if (k < 0 || k > n) {
        op_fail(o, PLUMB_E_ARG, "topk: k is %lld, the dimension has %lld elements", (long long)k,
                (long long)n);
        return;
    }
    struct chooser top = {.fn = choose_top, .take = k, .descending = arg_bool(o, "largest")};
    op_return(o, v_choose(o, x, dim, top, false, &index));
    op_return(o, index);
}

const struct op_def op_order[] = {
    {"sort",
     "sort(Tensor input|self, int dim|axis=-1, bool descending=False, bool? stable=None)\n"
     "sort(Tensor input|self, *, bool? stable, int dim|axis=-1, bool descending=False)",
     run_sort, 0, "(values, indices), stable; NaN counts as the largest"},
    {"argsort",
     "argsort(Tensor input|self, int dim|axis=-1, bool descending=False, bool? stable=None)",
     run_argsort, OP_NO_GRAD, "stable; NaN counts as the largest"},
    {"msort", "msort(Tensor input|self)", run_msort, 0, "sort along the first dimension"},
    {"topk", "topk(Tensor input|self, int k, int dim|axis=-1, bool largest=True, bool sorted=True)",
     run_topk, 0, "(values, indices) in order; of equal values the first ones"},
    {0},
};
