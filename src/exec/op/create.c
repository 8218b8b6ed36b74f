/* Tensors from nothing: full, arange, linspace, eye, index triangles, vander. */
#include "exec/op/place.h"

#include <string.h>

static enum plumb_dtype dtype_or(struct op *o, enum plumb_dtype otherwise)
{
    enum plumb_dtype dtype = arg_dtype(o, "dtype");
    return dtype == PLUMB_DTYPE_COUNT ? otherwise : dtype;
}

/* ---- One value ------------------------------------------------------------------------------- */

static struct val *filled(struct op *o, enum plumb_dtype dtype, size_t n, const int64_t *shape,
                          struct val *value)
{
    if (o->failed || !value || shape_count(o, (unsigned)n, shape) < 0)
        return NULL;
    if (value->count != 1)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld fill values", o->call->name,
                       (long long)value->count);
    value = v_reshape(o, v_cast(o, v_detach(o, value), dtype), 0, NULL);
    struct val *out = v_broadcast(o, value, (unsigned)n, shape);
    if (out)
        out->weak = false;
    return out;
}

static void run_full(struct op *o)
{
    size_t n;
    const int64_t *size = arg_ints(o, "size", &n);
    struct val *value = arg_operand(o, "fill_value");
    op_return(o, value ? filled(o, dtype_or(o, value->dtype), n, size, value) : NULL);
}

static void run_full_like(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "fill_value");
    op_return(o, x ? filled(o, dtype_or(o, x->dtype), x->rank, x->shape, value) : NULL);
}

static void run_new_full(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *value = arg_operand(o, "fill_value");
    size_t n;
    const int64_t *size = arg_ints(o, "size", &n);
    op_return(o, x ? filled(o, dtype_or(o, x->dtype), n, size, value) : NULL);
}

/* zeros(size), zeros_like(x) and x.new_zeros(size) in one. */
static void constant(struct op *o, int64_t value)
{
    struct val *x = arg_tensor(o, "input");
    size_t n = x ? x->rank : 0;
    const int64_t *size = arg_raw(o, "size") ? arg_ints(o, "size", &n) : x ? x->shape : NULL;
    if (!o->failed)
        op_return(o, filled(o, dtype_or(o, x ? x->dtype : PLUMB_F32), n, size, v_int(o, value)));
}

static void run_zeros(struct op *o)
{
    constant(o, 0);
}

static void run_ones(struct op *o)
{
    constant(o, 1);
}

static void run_scalar_tensor(struct op *o)
{
    struct val *s = arg_operand(o, "s");
    op_return(o, filled(o, dtype_or(o, PLUMB_F32), 0, NULL, s));
}

/* ---- Sequences ------------------------------------------------------------------------------- */

static struct val *sequence(struct op *o, int64_t n, enum plumb_dtype dtype)
{
    return n < 0 ? op_fail(o, PLUMB_E_ARG, "%s: %lld elements", o->call->name, (long long)n)
                 : val_new(o, dtype, 1, &n);
}

static void put(const struct op *o, struct val *x, int64_t k, real value)
{
    const bool fits = value >= -R(0x1p63) && value < R(0x1p63);
    if (x->f)
        x->f[k] = real_round(o, x->dtype, value);
    else
        x->i[k] = x->dtype == PLUMB_BOOL ? value != 0
                                         : int_wrap(x->dtype, fits ? (int64_t)value : INT64_MIN);
}

/* How many steps lead from a to below b; -1 when none do or there are absurdly many. */
static int64_t whole_steps(int64_t a, int64_t b, int64_t step)
{
    int64_t way;
    if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(b, a, &way) ||
        (way != 0 && (way < 0) != (step < 0)))
        return -1;
    return way / step + (way % step != 0);
}

static int64_t real_steps(double a, double b, double step)
{
    const double n = ceil((b - a) / step);
    return isfinite(a) && isfinite(b) && step != 0 && n >= 0 && n < 0x1p48 ? (int64_t)n : -1;
}

/* The integer that a limit is to a sequence of integers, which cuts it off. */
static int64_t cut_off(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v > -0x1p63 ? (int64_t)v : INT64_MIN;
}

static bool is_whole(enum plumb_dtype dtype)
{
    const enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    return kind == PLUMB_KIND_INT || kind == PLUMB_KIND_UINT;
}

/* start + k step in integers of that type. */
static void return_whole_steps(struct op *o, int64_t n, enum plumb_dtype dtype, int64_t start,
                               int64_t step)
{
    struct val *out = sequence(o, n, dtype);
    for (int64_t k = 0; out && k < n; k++)
        out->i[k] = int_wrap(dtype, (int64_t)((uint64_t)start + (uint64_t)k * (uint64_t)step));
    op_return(o, out);
}

static void run_arange(struct op *o)
{
    struct val *start = arg_raw(o, "start") ? arg_operand(o, "start") : v_int(o, 0);
    struct val *end = arg_operand(o, "end");
    struct val *step = arg_raw(o, "step") ? arg_operand(o, "step") : v_int(o, 1);
    if (!start || !end || !step || o->failed)
        return;
    const bool whole = start->i && end->i && step->i;
    const enum plumb_dtype dtype = dtype_or(o, whole ? PLUMB_I64 : PLUMB_F32);
    /* Steps are counted in double whatever the number type, so that all agree. */
    const double a = arg_raw(o, "start") ? arg_number(o, "start") : 0, b = arg_number(o, "end");
    const double by = arg_raw(o, "step") ? arg_number(o, "step") : 1;
    const int64_t first = start->i ? start->i[0] : cut_off(a),
                  last = end->i ? end->i[0] : cut_off(b);
    const int64_t stride = step->i ? step->i[0] : cut_off(by);
    const int64_t n = whole ? whole_steps(first, last, stride) : real_steps(a, b, by);
    /* PyTorch up to 2.6 cuts the limits off before it counts int64, 2.14 does not. */
    if (!whole && dtype == PLUMB_I64 && n != whole_steps(first, last, stride)) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "arange from %g to %g by %g in int64: its length depends on the version of PyTorch",
                a, b, by);
        return;
    }
    if (n < 0) {
        op_fail(o, PLUMB_E_ARG, "arange from %g to %g by %g", a, b, by);
        return;
    }
    if (is_whole(dtype)) {
        return_whole_steps(o, n, dtype, first, stride);
        return;
    }
    struct val *out = sequence(o, n, dtype);
    for (int64_t k = 0; out && k < n; k++)
        put(o, out, k, (real)(a + (double)k * by));
    op_return(o, out);
}

/* Both ends included. */
static void run_range(struct op *o)
{
    double a = arg_number(o, "start"), b = arg_number(o, "end"), by = arg_number(o, "step");
    double n = floor((b - a) / by) + 1;
    if (!isfinite(a) || !isfinite(b) || by == 0 || !(n >= 1) || n > 0x1p48) {
        op_fail(o, PLUMB_E_ARG, "range from %g to %g by %g", a, b, by);
        return;
    }
    struct val *out = sequence(o, (int64_t)n, dtype_or(o, PLUMB_F32));
    for (int64_t k = 0; out && k < out->count; k++)
        put(o, out, k, (real)(a + (double)k * by));
    op_return(o, out);
}

/* Point k of n from a to b, from the nearer end, so that both ends are met. */
static real point_between(real a, real b, int64_t k, int64_t n)
{
    if (n == 1)
        return a;
    real step = (b - a) / (real)(n - 1);
    return k < n / 2 ? a + step * (real)k : b - step * (real)(n - 1 - k);
}

/* The same for integers: between whole ends, and in double whatever the number type, since the
 * fraction that is cut off must be the same in all. */
static double whole_point_between(double a, double b, int64_t k, int64_t n)
{
    const double first = (double)cut_off(a), last = (double)cut_off(b);
    if (n == 1)
        return first;
    const double step = (last - first) / (double)(n - 1);
    return k < n / 2 ? first + step * (double)k : last - step * (double)(n - 1 - k);
}

static void run_linspace(struct op *o)
{
    const double a = arg_number(o, "start"), b = arg_number(o, "end");
    struct val *out = sequence(o, arg_int(o, "steps"), dtype_or(o, PLUMB_F32));
    for (int64_t k = 0; out && k < out->count; k++)
        put(o, out, k,
            is_whole(out->dtype) ? (real)whole_point_between(a, b, k, out->count)
                                 : point_between((real)a, (real)b, k, out->count));
    op_return(o, out);
}

static void run_logspace(struct op *o)
{
    const double a = arg_number(o, "start"), b = arg_number(o, "end"), base = arg_number(o, "base");
    struct val *out = sequence(o, arg_int(o, "steps"), dtype_or(o, PLUMB_F32));
    for (int64_t k = 0; out && k < out->count; k++)
        put(o, out, k,
            is_whole(out->dtype) && out->count > 1 /* one point is no way between two */
                ? (real)pow(base, whole_point_between(a, b, k, out->count))
                : pow((real)base, point_between((real)a, (real)b, k, out->count)));
    op_return(o, out);
}

/* ---- Matrices -------------------------------------------------------------------------------- */

static void run_eye(struct op *o)
{
    int64_t n = arg_int(o, "n"), shape[2] = {n, arg_given(o, "m") ? arg_int(o, "m") : n};
    if (shape_count(o, 2, shape) < 0)
        return;
    struct val *out = val_new(o, dtype_or(o, PLUMB_F32), 2, shape);
    for (int64_t k = 0; out && k < shape[0] && k < shape[1]; k++)
        put(o, out, k * shape[1] + k, 1);
    op_return(o, out);
}

/* Columns [*from, *to) of row r that lie in the triangle. */
static void row_of_triangle(bool upper, int64_t r, int64_t columns, int64_t offset, int64_t *from,
                            int64_t *to)
{
    int64_t edge = r + offset + !upper;
    edge = edge < 0 ? 0 : edge > columns ? columns : edge;
    *from = upper ? edge : 0;
    *to = upper ? columns : edge;
}

/* How many elements of rows x columns lie left of an edge that starts at column `edge` of the first
 * row and moves right by one a row. */
static int64_t left_of_edge(int64_t rows, int64_t columns, int64_t edge)
{
    const int64_t low = -edge < 0 ? 0 : -edge > rows ? rows : -edge;
    const int64_t reach = columns - edge;
    const int64_t high = reach < low ? low : reach > rows ? rows : reach;
    return (high - low) * (2 * edge + low + high - 1) / 2 + (rows - high) * columns;
}

static void triangle_indices(struct op *o, bool upper)
{
    int64_t rows = arg_int(o, "row"), columns = arg_int(o, "col"), offset = arg_int(o, "offset");
    int64_t shape[2] = {rows, columns}, from, to;
    const int64_t all = shape_count(o, 2, shape);
    if (all < 0)
        return;
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    shape[0] = 2;
    shape[1] = all == 0 ? 0 : left_of_edge(rows, columns, offset + !upper);
    shape[1] = upper ? all - shape[1] : shape[1];
    struct val *out = val_new(o, dtype_or(o, PLUMB_I64), 2, shape);
    for (int64_t r = 0, k = 0; out && r < rows && k < shape[1]; r++) {
        row_of_triangle(upper, r, columns, offset, &from, &to);
        for (int64_t c = from; c < to; c++, k++) {
            put(o, out, k, (real)r);
            put(o, out, shape[1] + k, (real)c);
        }
    }
    op_return(o, out);
}

static void run_tril_indices(struct op *o)
{
    triangle_indices(o, false);
}

static void run_triu_indices(struct op *o)
{
    triangle_indices(o, true);
}

/* Powers 0, 1, ... of x in a new last dimension. */
static void vandermonde(struct op *o, bool increasing)
{
    struct val *x = arg_tensor(o, "input");
    if (!x)
        return;
    if (x->rank == 0 || x->rank == OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "vander of a tensor with %u dimensions", x->rank);
        return;
    }
    int64_t n = arg_given(o, "N") ? arg_int(o, "N") : x->shape[x->rank - 1];
    int64_t shape[OP_RANK], count;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank] = n;
    count = shape_count(o, x->rank + 1, shape);
    if (count < 0)
        return;
    if (!x->f)
        x = v_cast(o, x, PLUMB_I64);
    struct val **columns = op_alloc(o, n + 1, sizeof *columns);
    if (!columns || !x || n == 0) {
        op_return(o, x ? val_new(o, x->dtype, x->rank + 1, shape) : NULL);
        return;
    }
    struct val *power = v_full(o, x->dtype, x->rank, x->shape, 1);
    for (int64_t k = 0; k < n; k++) {
        columns[increasing ? k : n - 1 - k] = v_unsqueeze(o, power, x->rank);
        power = k + 1 < n ? v_mul(o, power, x) : power;
    }
    op_return(o, o->failed ? NULL : v_cat(o, columns, (size_t)n, x->rank));
}

static void run_vander(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank != 1)
        op_fail(o, PLUMB_E_ARG, "vander of a tensor with %u dimensions", x->rank);
    vandermonde(o, arg_bool(o, "increasing"));
}

static void run_linalg_vander(struct op *o)
{
    vandermonde(o, true);
}

const struct op_def op_create[] = {
    {"full", "full(int[] size, Operand fill_value, *, dtype? dtype=None)", run_full,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"full_like", "full_like(Tensor input|self, Operand fill_value, *, dtype? dtype=None)",
     run_full_like, OP_NO_GRAD | OP_EXACT, NULL},
    {"new_full",
     "new_full(Tensor input|self, int[] size, Operand fill_value, *, dtype? dtype=None)",
     run_new_full, OP_NO_GRAD | OP_EXACT, NULL},
    {"zeros _efficientzerotensor", "zeros(int[]... size, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"zeros_like", "zeros_like(Tensor input|self, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"new_zeros", "new_zeros(Tensor input|self, int[]... size, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"ones", "ones(int[]... size, *, dtype? dtype=None)", run_ones, OP_NO_GRAD | OP_EXACT, NULL},
    {"ones_like", "ones_like(Tensor input|self, *, dtype? dtype=None)", run_ones,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"new_ones", "new_ones(Tensor input|self, int[]... size, *, dtype? dtype=None)", run_ones,
     OP_NO_GRAD | OP_EXACT, NULL},
    {"empty", "empty(int[]... size, *, dtype? dtype=None)", run_zeros, OP_NO_GRAD | OP_RANDOM,
     "whatever was in memory; here zeros"},
    {"empty_like", "empty_like(Tensor input|self, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_RANDOM, "whatever was in memory; here zeros"},
    {"new_empty", "new_empty(Tensor input|self, int[]... size, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_RANDOM, "whatever was in memory; here zeros"},
    {"empty_strided", "empty_strided(int[] size, int[] stride, *, dtype? dtype=None)", run_zeros,
     OP_NO_GRAD | OP_RANDOM, "whatever was in memory; here zeros"},
    {"empty_permuted", "empty_permuted(int[] size, int[] physical_layout, *, dtype? dtype=None)",
     run_zeros, OP_NO_GRAD | OP_RANDOM, "whatever was in memory; here zeros"},
    {"new_empty_strided",
     "new_empty_strided(Tensor input|self, int[] size, int[] stride, *, dtype? dtype=None)",
     run_zeros, OP_NO_GRAD | OP_RANDOM, "whatever was in memory; here zeros"},
    {"scalar_tensor", "scalar_tensor(Operand s, *, dtype? dtype=None)", run_scalar_tensor,
     OP_NO_GRAD, NULL},
    {"arange",
     "arange(number end, *, dtype? dtype=None)\n"
     "arange(number start, number end, number step=1, *, dtype? dtype=None)",
     run_arange, OP_NO_GRAD, "start + k * step below end"},
    {"range", "range(number start, number end, number step=1, *, dtype? dtype=None)", run_range,
     OP_NO_GRAD, "start + k * step up to end, which is included"},
    {"linspace", "linspace(number start, number end, int steps=100, *, dtype? dtype=None)",
     run_linspace, OP_NO_GRAD, NULL},
    {"logspace",
     "logspace(number start, number end, int steps=100, float base=10.0, *, dtype? dtype=None)",
     run_logspace, OP_NO_GRAD, "base^x for x evenly from start to end"},
    {"eye", "eye(int n, int? m=None, *, dtype? dtype=None)", run_eye, OP_NO_GRAD | OP_EXACT, NULL},
    {"tril_indices", "tril_indices(int row, int col, int offset=0, *, dtype? dtype=None)",
     run_tril_indices, OP_NO_GRAD | OP_EXACT, NULL},
    {"triu_indices", "triu_indices(int row, int col, int offset=0, *, dtype? dtype=None)",
     run_triu_indices, OP_NO_GRAD | OP_EXACT, NULL},
    {"vander", "vander(Tensor input|x, int? N=None, bool increasing=False)", run_vander, 0, NULL},
    {"linalg.vander linalg_vander", "vander(Tensor input|A|x, *, int? N=None)", run_linalg_vander,
     0, NULL},
    {0},
};
