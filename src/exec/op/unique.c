/* Distinct elements and slices, and looking elements up in sorted ones. */
#include "exec/op/order.h"

#include <string.h>

/* ---- Distinct -------------------------------------------------------------------------------- */

/* n slices of m elements each, one after the other. */
struct slices {
    const struct val *x;
    int64_t n, m;
};

static bool same_slice(const struct slices *s, int64_t a, int64_t b)
{
    for (int64_t k = 0; k < s->m; k++)
        if (s->x->f ? !(s->x->f[a * s->m + k] == s->x->f[b * s->m + k])
                    : s->x->i[a * s->m + k] != s->x->i[b * s->m + k])
            return false;
    return true;
}

/* The slices in order: sorted by the last element first, each time keeping the order so far. */
static int64_t *slices_in_order(struct op *o, const struct slices *s)
{
    int64_t *order = op_alloc(o, s->n, sizeof *order), *next = op_alloc(o, s->n, sizeof *next);
    int64_t *places = op_alloc(o, s->n, sizeof *places),
            *scratch = op_alloc(o, s->n, sizeof *scratch);
    real *keys = s->x->f ? op_alloc(o, s->n, sizeof *keys) : NULL;
    int64_t *int_keys = s->x->f ? NULL : op_alloc(o, s->n, sizeof *int_keys);
    if (o->failed)
        return NULL;
    for (int64_t k = 0; k < s->n; k++)
        order[k] = k;
    const struct row row = {.in = {keys}, .int_in = int_keys, .n = s->n};
    for (int64_t j = s->m - 1; j >= 0; j--) {
        for (int64_t k = 0; k < s->n; k++) {
            if (keys)
                keys[k] = s->x->f[order[k] * s->m + j];
            else
                int_keys[k] = s->x->i[order[k] * s->m + j];
        }
        sort_row(&row, false, places, scratch);
        for (int64_t k = 0; k < s->n; k++)
            next[k] = order[places[k]];
        int64_t *swap = order;
        order = next;
        next = swap;
    }
    return order;
}

struct groups {
    int64_t count;
    int64_t *first;                /* the slice that stands for each group */
    struct val *inverse, *members; /* the group of each slice; how many each has */
};

static bool find_groups(struct op *o, const struct slices *s, bool consecutive, struct groups *g)
{
    int64_t *order = consecutive ? NULL : slices_in_order(o, s);
    g->count = 0;
    g->first = op_alloc(o, s->n, sizeof *g->first);
    g->inverse = val_new(o, PLUMB_I64, 1, &s->n);
    if (!g->first || !g->inverse)
        return false;
    for (int64_t k = 0; k < s->n; k++) {
        const int64_t at = order ? order[k] : k, before = k == 0 ? 0 : order ? order[k - 1] : k - 1;
        if (k == 0 || !same_slice(s, before, at))
            g->first[g->count++] = at;
        g->inverse->i[at] = g->count - 1;
    }
    g->members = val_new(o, PLUMB_I64, 1, &g->count);
    for (int64_t k = 0; g->members && k < s->n; k++)
        g->members->i[g->inverse->i[k]]++;
    return g->members != NULL;
}

/* The groups of x along dim, or of all its elements, and the value that is left of x. */
static struct val *distinct(struct op *o, bool consecutive, struct groups *g)
{
    struct val *x = v_detach(o, arg_tensor(o, "input"));
    if (!x)
        return NULL;
    const bool whole = !arg_given(o, "dim");
    const unsigned dim = whole ? 0 : val_dim(o, x, arg_int(o, "dim"));
    struct slices s = {x, x->count, 1};
    if (!whole && x->rank > 0) {
        s.x = x = v_transpose(o, x, 0, dim);
        if (!x)
            return NULL;
        s.n = x->shape[0];
        s.m = s.n ? x->count / s.n : 0;
        if (s.m == 0 && s.n > 0)
            return op_fail(o, PLUMB_E_ARG, "%s of slices that are empty", o->call->name);
    }
    if (!find_groups(o, &s, consecutive, g))
        return NULL;
    int64_t *map = op_alloc(o, g->count * s.m, sizeof *map);
    for (int64_t k = 0; map && k < g->count * s.m; k++)
        map[k] = g->first[k / s.m] * s.m + k % s.m;
    int64_t shape[OP_RANK] = {g->count};
    for (unsigned d = 1; !whole && d < x->rank; d++)
        shape[d] = x->shape[d];
    const unsigned rank = whole || x->rank == 0 ? 1 : x->rank;
    struct val *out = map ? v_map(o, x, rank, shape, map) : NULL;
    if (whole && out)
        g->inverse = val_alias(o, g->inverse, x->rank, x->shape);
    return whole || x->rank == 0 ? out : v_transpose(o, out, 0, dim);
}

/* torch's functions return what was asked for, its internal operators always all, if empty. */
static void return_distinct(struct op *o, bool consecutive, size_t always)
{
    struct groups g;
    struct val *out = distinct(o, consecutive, &g);
    const int64_t none = 0;
    if (!out)
        return;
    const bool wanted[2] = {arg_bool(o, "return_inverse"), arg_bool(o, "return_counts")};
    struct val *extra[2] = {g.inverse, g.members};
    op_return(o, out);
    for (size_t k = 0; k < 2; k++) {
        if (wanted[k])
            op_return(o, extra[k]);
        else if (k < always)
            op_return(o, val_new(o, PLUMB_I64, 1, &none));
    }
}

static void run_unique(struct op *o)
{
    return_distinct(o, false, 0);
}

static void run_unique1(struct op *o)
{
    return_distinct(o, false, 1);
}

static void run_unique2(struct op *o)
{
    return_distinct(o, false, 2);
}

static void run_unique_consecutive(struct op *o)
{
    const bool internal = o->call->prefix && strcmp(o->call->prefix, "Aten") == 0;
    return_distinct(o, true, internal ? 2 : 0);
}

/* ---- Looking up ------------------------------------------------------------------------------ */

/* How many elements of a sorted row come before v: those less than v or, with right, not
 * greater. */
static int64_t find_place(const struct val *row, int64_t base, const int64_t *sorter, int64_t n,
                          const struct val *values, int64_t at, bool right)
{
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int64_t k = base + (sorter ? sorter[base + middle] : middle);
        bool beyond;
        if (row->i && values->i)
            beyond = right ? row->i[k] > values->i[at] : row->i[k] >= values->i[at];
        else
            beyond =
                right ? val_at(row, k) > val_at(values, at) : val_at(row, k) >= val_at(values, at);
        if (beyond)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool check_sorter(struct op *o, const struct val *sorter, const struct val *row)
{
    if (!sorter)
        return true;
    bool fits = same_shape(sorter, row) && sorter->i;
    const int64_t n = row->rank ? row->shape[row->rank - 1] : 0;
    for (int64_t k = 0; fits && k < sorter->count; k++)
        fits = sorter->i[k] >= 0 && sorter->i[k] < n;
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: the sorter is no order of the sequence", o->call->name);
    return fits;
}

static void search(struct op *o, const struct val *row, const struct val *values)
{
    const struct val *sorter = arg_tensor(o, "sorter");
    const char *side = arg_text(o, "side");
    if (!row || !values || !check_sorter(o, sorter, row))
        return;
    bool fits = row->rank == 1 || row->rank == values->rank;
    for (unsigned d = 0; row->rank > 1 && fits && d + 1 < row->rank; d++)
        fits = row->shape[d] == values->shape[d];
    if (!fits || row->rank == 0) {
        op_fail(o, PLUMB_E_ARG,
                "%s: the sorted sequence must be one row, or one for each row of "
                "values",
                o->call->name);
        return;
    }
    const bool right = arg_bool(o, "right") || (side && strcmp(side, "right") == 0);
    const int64_t n = row->shape[row->rank - 1];
    const int64_t per_row = row->rank == 1 ? values->count : values->shape[values->rank - 1];
    struct val *out = val_like(o, values, arg_bool(o, "out_int32") ? PLUMB_I32 : PLUMB_I64);
    for (int64_t k = 0; out && k < values->count; k++)
        out->i[k] =
            find_place(row, k / per_row * n, sorter ? sorter->i : NULL, n, values, k, right);
    op_return(o, out);
}

static void run_searchsorted(struct op *o)
{
    search(o, arg_tensor(o, "sorted_sequence"), arg_operand(o, "input"));
}

static void run_bucketize(struct op *o)
{
    struct val *row = arg_tensor(o, "boundaries");
    if (row && row->rank != 1)
        op_fail(o, PLUMB_E_ARG, "bucketize: the boundaries have %u dimensions, not 1", row->rank);
    search(o, row, arg_operand(o, "input"));
}

static void run_isin(struct op *o)
{
    struct val *x = arg_operand(o, "elements"), *tests = arg_operand(o, "test_elements");
    const bool invert = arg_bool(o, "invert");
    if (!x || !tests)
        return;
    const bool exact = x->i && tests->i;
    if (!exact)
        tests = v_cast(o, v_detach(o, tests), PLUMB_F64);
    struct val *out = val_like(o, x, PLUMB_BOOL);
    int64_t *order = op_alloc(o, tests ? tests->count : 0, sizeof *order);
    int64_t *scratch = op_alloc(o, tests ? tests->count : 0, sizeof *scratch);
    if (!out || !order || !scratch)
        return;
    sort_row(&(struct row){.in = {tests->f}, .int_in = tests->i, .n = tests->count}, false, order,
             scratch);
    for (int64_t k = 0; k < x->count; k++) {
        const int64_t at = find_place(tests, 0, order, tests->count, x, k, false);
        bool found = at < tests->count;
        if (found)
            found = exact ? tests->i[order[at]] == x->i[k] : tests->f[order[at]] == val_at(x, k);
        out->i[k] = found != invert;
    }
    op_return(o, out);
}

const struct op_def op_unique[] = {
    {"unique",
     "unique(Tensor input|self, bool sorted=True, bool return_inverse=False, "
     "bool return_counts=False, int? dim=None)",
     run_unique, OP_NO_GRAD, "sorted, whatever `sorted` says"},
    {"_unique", "_unique(Tensor input|self, bool sorted=True, bool return_inverse=False)",
     run_unique1, OP_NO_GRAD, NULL},
    {"_unique2",
     "_unique2(Tensor input|self, bool sorted=True, bool return_inverse=False, "
     "bool return_counts=False)",
     run_unique2, OP_NO_GRAD, NULL},
    {"unique_dim",
     "unique_dim(Tensor input|self, int dim, bool sorted=True, bool return_inverse=False, "
     "bool return_counts=False)",
     run_unique2, OP_NO_GRAD, NULL},
    {"unique_consecutive",
     "unique_consecutive(Tensor input|self, bool return_inverse=False, bool return_counts=False, "
     "int? dim=None)",
     run_unique_consecutive, OP_NO_GRAD, "one of each run of equal elements or slices"},
    {"searchsorted",
     "searchsorted(Tensor sorted_sequence, Operand input|self, *, bool out_int32=False, "
     "bool right=False, str? side=None, Tensor? sorter=None)",
     run_searchsorted, OP_NO_GRAD, "how many elements come before each value"},
    {"bucketize",
     "bucketize(Operand input|self, Tensor boundaries, *, bool out_int32=False, bool right=False)",
     run_bucketize, OP_NO_GRAD, "how many boundaries come before each value"},
    {"isin",
     "isin(Operand elements|element, Operand test_elements|test_element, *, "
     "bool assume_unique=False, bool invert=False)",
     run_isin, OP_NO_GRAD, NULL},
    {0},
};
