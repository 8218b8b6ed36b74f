/* Elements in another order or several times: repeat, roll, flip. */
#include "exec/op/place.h"

#include <string.h>

/* ---- Repetition ------------------------------------------------------------------------------ */

/* x of rank n, leading dimensions of size 1 added. */
static struct val *led_by_ones(struct op *o, struct val *x, unsigned n)
{
    if (!x || x->rank >= n)
        return x;
    int64_t shape[OP_RANK] = {0};
    for (unsigned d = 0; d < n; d++)
        shape[d] = d + x->rank < n ? 1 : x->shape[d + x->rank - n];
    return v_reshape(o, x, n, shape);
}

static struct val *repeated(struct op *o, struct val *x, unsigned n, const int64_t *times)
{
    x = led_by_ones(o, x, n);
    if (!x)
        return NULL;
    const int64_t *index[OP_RANK] = {0};
    int64_t shape[OP_RANK], total = 1;
    for (unsigned d = 0; d < n; d++) {
        if (times[d] < 0 || __builtin_mul_overflow(x->shape[d], times[d], &shape[d]) ||
            __builtin_mul_overflow(total, shape[d] ? shape[d] : 1, &total) || /* each on its own */
            total > (int64_t)(o->limit / sizeof(real)))
            return op_fail(o, PLUMB_E_ARG, "%s: %lld times dimension %u is more than memory holds",
                           o->call->name, (long long)times[d], d);
    }
    for (unsigned d = 0; d < n; d++) {
        if (times[d] == 1)
            continue;
        int64_t *at = op_alloc(o, shape[d] + 1, sizeof *at);
        if (!at)
            return NULL;
        for (int64_t j = 0; j < shape[d]; j++)
            at[j] = j % x->shape[d];
        index[d] = at;
    }
    return v_pick(o, x, shape, index);
}

static void run_repeat(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *times = arg_ints(o, "repeats", &n);
    if (x && !o->failed && n < x->rank)
        op_fail(o, PLUMB_E_ARG, "repeat: %zu counts for %u dimensions", n, x->rank);
    op_return(o, o->failed ? NULL : repeated(o, x, (unsigned)n, times));
}

static void run_tile(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dims", &n);
    if (!x || o->failed)
        return;
    int64_t times[OP_RANK];
    unsigned rank = n > x->rank ? (unsigned)n : x->rank;
    for (unsigned d = 0; d < rank; d++)
        times[d] = d + n < rank ? 1 : dims[d + n - rank];
    op_return(o, repeated(o, x, rank, times));
}

/* Place k of `count` (or of all, with one repeat for everything), repeat[k] times each. */
static int64_t *interleave(struct op *o, const struct val *repeats, int64_t count, int64_t *length)
{
    bool one = repeats->count == 1;
    if (!repeats->i || repeats->rank > 1 || (!one && repeats->count != count))
        return op_fail(o, PLUMB_E_ARG,
                       "repeat_interleave: repeats must be one integer or %lld of them",
                       (long long)count);
    *length = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t times = repeats->i[one ? 0 : k];
        if (times < 0 || __builtin_add_overflow(*length, times, length))
            return op_fail(o, PLUMB_E_ARG, "repeat_interleave: %lld times", (long long)times);
    }
    int64_t *at = op_alloc(o, *length == INT64_MAX ? -1 : *length + 1, sizeof *at), j = 0;
    for (int64_t k = 0; at && k < count; k++)
        for (int64_t r = 0; r < repeats->i[one ? 0 : k]; r++)
            at[j++] = k;
    return at;
}

static void run_repeat_interleave(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *repeats = arg_operand(o, "repeats");
    if (!repeats || o->failed)
        return;
    int64_t length = 0;
    if (!x) {
        int64_t *at = repeats->rank == 1 ? interleave(o, repeats, repeats->count, &length) : NULL;
        struct val *out = at ? val_new(o, repeats->dtype, 1, &length) : NULL;
        if (out && length)
            memcpy(out->i, at, (size_t)length * sizeof *at);
        op_return(o, out);
        return;
    }
    unsigned dim = 0;
    if (arg_given(o, "dim"))
        dim = val_dim(o, x, arg_int(o, "dim"));
    if (!arg_given(o, "dim") || x->rank == 0)
        x = v_reshape(o, x, 1, &x->count);
    if (o->failed)
        return;
    int64_t *at = interleave(o, repeats, x->shape[dim], &length);
    op_return(o, v_pick_dim(o, x, dim, length, at));
}

/* ---- Order ----------------------------------------------------------------------------------- */

static struct val *rolled(struct op *o, struct val *x, unsigned dim, int64_t shift)
{
    int64_t n = x ? x->shape[dim] : 0;
    if (n == 0)
        return x;
    int64_t *at = op_alloc(o, n, sizeof *at);
    int64_t first = (n - shift % n) % n;
    for (int64_t j = 0; at && j < n; j++)
        at[j] = (first + j) % n;
    return v_pick_dim(o, x, dim, n, at);
}

static void run_roll(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n, m;
    const int64_t *shifts = arg_ints(o, "shifts", &n), *dims = arg_ints(o, "dims", &m);
    if (!x || o->failed)
        return;
    if (n == 0 || (m == 0 ? n != 1 : n != m)) {
        op_fail(o, PLUMB_E_ARG, "roll: %zu shifts for %zu dimensions", n, m);
        return;
    }
    if (m == 0) {
        struct val *row = rolled(o, v_reshape(o, x, 1, &x->count), 0, shifts[0]);
        op_return(o, v_reshape(o, row, x->rank, x->shape));
        return;
    }
    struct val *out = x;
    for (size_t k = 0; k < n; k++) {
        unsigned dim = val_dim(o, x, dims[k]);
        out = o->failed ? NULL : x->rank ? rolled(o, out, dim, shifts[k]) : out;
    }
    op_return(o, out);
}

static struct val *flipped(struct op *o, struct val *x, uint64_t dims)
{
    if (!x || o->failed)
        return NULL;
    const int64_t *index[OP_RANK] = {0};
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++) {
        if (!(dims >> d & 1))
            continue;
        int64_t n = shape[d] = x->shape[d];
        int64_t *at = op_alloc(o, n + 1, sizeof *at);
        for (int64_t j = 0; at && j < n; j++)
            at[j] = n - 1 - j;
        index[d] = at;
    }
    return v_pick(o, x, shape, index);
}

static void run_flip(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dims", &n);
    uint64_t mask = 0;
    for (size_t k = 0; k < n; k++) {
        uint64_t bit = UINT64_C(1) << val_dim(o, x, dims[k]);
        if (mask & bit)
            op_fail(o, PLUMB_E_ARG, "flip: dimension %lld is named twice", (long long)dims[k]);
        mask |= bit;
    }
    op_return(o, flipped(o, x, mask));
}

static void flip_one(struct op *o, unsigned dim)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank <= dim)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions", o->call->name, x->rank);
    op_return(o, flipped(o, x, UINT64_C(1) << dim));
}

static void run_flipud(struct op *o)
{
    flip_one(o, 0);
}

static void run_fliplr(struct op *o)
{
    flip_one(o, 1);
}

static void run_rot90(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t k = arg_int(o, "k");
    size_t n;
    const int64_t *dims = arg_ints(o, "dims", &n);
    if (!x || o->failed)
        return;
    if (n != 2 || x->rank < 2) {
        op_fail(o, PLUMB_E_ARG, "rot90 in %zu of %u dimensions", n, x->rank);
        return;
    }
    unsigned a = val_dim(o, x, dims[0]), b = val_dim(o, x, dims[1]);
    if (a == b)
        op_fail(o, PLUMB_E_ARG, "rot90: dimension %u is named twice", a);
    if (o->failed)
        return;
    uint64_t first = UINT64_C(1) << a, second = UINT64_C(1) << b;
    switch ((k % 4 + 4) % 4) {
    case 1:
        x = v_transpose(o, flipped(o, x, second), a, b);
        break;
    case 2:
        x = flipped(o, x, first | second);
        break;
    case 3:
        x = v_transpose(o, flipped(o, x, first), a, b);
        break;
    default:
        break;
    }
    op_return(o, x);
}

const struct op_def op_arrange[] = {
    {"repeat", "repeat(Tensor input|self, int[]... repeats|sizes|size)", run_repeat, 0, NULL},
    {"tile", "tile(Tensor input|self, int[]... dims|reps)", run_tile, 0, NULL},
    {"repeat_interleave",
     "repeat_interleave(Tensor input|self, Operand repeats, int? dim=None, *, int? "
     "output_size=None)\n"
     "repeat_interleave(Tensor repeats, *, int? output_size=None)",
     run_repeat_interleave, 0, NULL},
    {"roll", "roll(Tensor input|self, int[] shifts, int[]? dims=None)", run_roll, 0, NULL},
    {"flip", "flip(Tensor input|self, int[]... dims)", run_flip, 0, NULL},
    {"fliplr", "fliplr(Tensor input|self)", run_fliplr, 0, NULL},
    {"flipud", "flipud(Tensor input|self)", run_flipud, 0, NULL},
    {"rot90", "rot90(Tensor input|self, int k=1, int[] dims=[0, 1])", run_rot90, 0, NULL},
    {0},
};
