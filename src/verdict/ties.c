/* Settling ties: the reference takes the device's choice among equal elements. */
#include "verdict/ties.h"

#include "verdict/ties_window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    ANY,      /* an index of the dimension */
    DISTINCT, /* the indices of a row are not twice the same */
    SO_FAR,   /* none behind its own place */
};

static const struct decision {
    const char *name;
    int values, index; /* which results they are; values -1: none */
    unsigned dim;      /* position of that argument */
    bool flat;         /* without dim: over all elements; else over the last dimension */
    enum kind kind;
} decisions[] = {
    {"argmax", -1, 0, 1, true, ANY},        {"argmin", -1, 0, 1, true, ANY},
    {"argsort", -1, 0, 1, false, DISTINCT}, {"cummax", 0, 1, 1, false, SO_FAR},
    {"cummin", 0, 1, 1, false, SO_FAR},     {"kthvalue", 0, 1, 2, false, ANY},
    {"max", 0, 1, 1, false, ANY},           {"median", 0, 1, 1, false, ANY},
    {"min", 0, 1, 1, false, ANY},           {"mode", 0, 1, 1, false, ANY},
    {"nanmedian", 0, 1, 1, false, ANY},     {"sort", 0, 1, 1, false, DISTINCT},
    {"topk", 0, 1, 2, false, DISTINCT},
};

/* One call: x is [outer][length][inner], the indices [outer][m][inner]. */
struct ties {
    const struct decision *decision;
    const struct plumb_arg *input;
    size_t leaf; /* number of the input among the tensors of the call */
    uint64_t outer, length, inner, m;
    int64_t *bench, *device; /* the indices */
    uint32_t *seen;          /* by index: in which row it was last */
};

static const struct decision *decision_of(const char *name)
{
    const size_t length = strcspn(name, "."); /* without the overload */
    for (size_t k = 0; k < sizeof decisions / sizeof *decisions; k++)
        if (strlen(decisions[k].name) == length && memcmp(decisions[k].name, name, length) == 0)
            return &decisions[k];
    return NULL;
}

static const struct plumb_arg *keyword(const struct plumb_call *call, const char *name)
{
    for (size_t k = 0; k < call->n_kwargs; k++)
        if (strcmp(call->kwargs[k].name, name) == 0)
            return &call->kwargs[k].value;
    return NULL;
}

/* The tensor that is looked through, which leaf it is, and how it lies. */
static bool find_input(struct ties *t, const struct plumb_call *call)
{
    const struct plumb_arg *first = call->n_args ? &call->args[0] : NULL;
    t->input = first ? first : keyword(call, "input");
    if (!t->input || t->input->kind != PLUMB_ARG_TENSOR)
        return false;
    for (size_t k = 0; !first && &call->kwargs[k].value != t->input; k++) {
        if (call->kwargs[k].value.kind == PLUMB_ARG_LIST)
            return false;
        t->leaf += call->kwargs[k].value.kind == PLUMB_ARG_TENSOR;
    }
    const struct plumb_tensor *x = t->input->tensor;
    const struct plumb_arg *dim = call->n_args > t->decision->dim ? &call->args[t->decision->dim]
                                  : keyword(call, "dim")          ? keyword(call, "dim")
                                                                  : keyword(call, "axis");
    const bool given = dim && dim->kind == PLUMB_ARG_INT;
    t->outer = t->inner = 1;
    t->length = x->count;
    if (x->rank == 0 || (!given && t->decision->flat))
        return true;
    const int64_t at = given ? dim->integer + (dim->integer < 0 ? x->rank : 0) : x->rank - 1;
    if (at < 0 || at >= x->rank)
        return false;
    for (unsigned d = 0; d < x->rank; d++)
        *(d < at   ? &t->outer
          : d > at ? &t->inner
                   : &t->length) *= d == at ? 1 : (uint64_t)x->shape[d];
    t->length = (uint64_t)x->shape[at];
    return true;
}

static const struct plumb_tensor *indices_of(const struct plumb_result *result, int k)
{
    const struct plumb_arg *arg =
        k >= 0 && (size_t)k < result->n_outputs ? &result->outputs[k] : NULL;
    return arg && arg->kind == PLUMB_ARG_TENSOR && arg->tensor->dtype == PLUMB_I64 ? arg->tensor
                                                                                   : NULL;
}

static bool equal_elements(const struct plumb_tensor *x, uint64_t a, uint64_t b)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(x->dtype);
    if (info->kind == PLUMB_KIND_FLOAT) {
        double values[2];
        plumb_tensor_to_f64(x, a, 1, &values[0]);
        plumb_tensor_to_f64(x, b, 1, &values[1]);
        return values[0] == values[1] || (isnan(values[0]) && isnan(values[1]));
    }
    unsigned char bytes[2][16] = {{0}};
    plumb_tensor_gather(x, a, 1, bytes[0]);
    plumb_tensor_gather(x, b, 1, bytes[1]);
    return memcmp(bytes[0], bytes[1], sizeof bytes[0]) == 0;
}

/* Whether the device's indices of a row may be taken at all. */
static bool row_is_sound(struct ties *t, uint64_t o, uint64_t i)
{
    const uint32_t stamp = (uint32_t)(o * t->inner + i) + 1;
    for (uint64_t j = 0; j < t->m; j++) {
        const int64_t at = t->device[(o * t->m + j) * t->inner + i];
        if (at < 0 || (uint64_t)at >= t->length)
            return false;
        if (t->decision->kind == SO_FAR && (uint64_t)at > j)
            return false;
        if (t->decision->kind == DISTINCT && t->seen[at] == stamp)
            return false;
        t->seen[at] = stamp;
    }
    return true;
}

static uint64_t settle_row(struct ties *t, uint64_t o, uint64_t i)
{
    const struct plumb_tensor *x = t->input->tensor;
    uint64_t count = 0;
    if (!row_is_sound(t, o, i))
        return 0;
    for (uint64_t j = 0; j < t->m; j++) {
        const uint64_t k = (o * t->m + j) * t->inner + i;
        const uint64_t base = o * t->length * t->inner + i;
        if (t->bench[k] == t->device[k] || t->bench[k] < 0 || (uint64_t)t->bench[k] >= t->length ||
            !equal_elements(x, base + (uint64_t)t->bench[k] * t->inner,
                            base + (uint64_t)t->device[k] * t->inner))
            continue;
        t->bench[k] = t->device[k];
        count++;
    }
    return count;
}

/* ---- Without order --------------------------------------------------------------------------- */

struct placed {
    double value;
    uint64_t at;
};

/* NaN behind everything else; equal ones as they come. */
static int by_value(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    const bool nan[2] = {isnan(x->value), isnan(y->value)};
    if (nan[0] != nan[1])
        return nan[0] ? 1 : -1;
    if (!nan[0] && x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static struct placed *sorted_values(const struct plumb_tensor *x, struct arena *arena)
{
    struct placed *values = arena_array(arena, x->count + 1, sizeof *values);
    for (uint64_t k = 0; values && k < x->count; k++) {
        plumb_tensor_to_f64(x, k, 1, &values[k].value);
        values[k].at = k;
    }
    if (values)
        qsort(values, x->count, sizeof *values, by_value);
    return values;
}

static bool flag(const struct plumb_call *call, const char *name, size_t position, bool otherwise)
{
    const struct plumb_arg *arg =
        position < call->n_args ? &call->args[position] : keyword(call, name);
    return arg && arg->kind == PLUMB_ARG_BOOL ? arg->integer != 0 : otherwise;
}

/* A copy of x whose element k is that of x at from[k]. */
static bool permuted(const struct plumb_tensor *x, const uint64_t *from, struct arena *arena,
                     const struct plumb_tensor **out)
{
    const size_t size = plumb_dtype_info(x->dtype)->bits / 8;
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    unsigned char *bytes = arena_array(arena, x->count + 1, size);
    if (!tensor || !bytes)
        return false;
    for (uint64_t k = 0; k < x->count; k++)
        plumb_tensor_gather(x, from[k], 1, bytes + k * size);
    *tensor = *x;
    tensor->data = bytes;
    tensor->dense = true;
    *out = tensor;
    return true;
}

/* topk(sorted=False) may give a row in any order; the reference follows the device's. */
static enum plumb_code follow_order(const struct ties *t, const struct plumb_result *device,
                                    struct plumb_result *bench, struct arena *arena, bool *moved)
{
    const uint64_t n = t->outer * t->m * t->inner;
    struct placed *rows = arena_array(arena, 2 * t->m + 1, sizeof *rows);
    uint64_t *from = arena_array(arena, n + 1, sizeof *from);
    if (!rows || !from)
        return PLUMB_E_NOMEM;
    for (uint64_t row = 0; row < t->outer * t->inner; row++) {
        const uint64_t first = row / t->inner * t->m * t->inner + row % t->inner;
        for (uint64_t j = 0; j < t->m; j++) {
            const uint64_t at = first + j * t->inner;
            rows[j].at = rows[t->m + j].at = at;
            plumb_tensor_to_f64(bench->outputs[0].tensor, at, 1, &rows[j].value);
            plumb_tensor_to_f64(device->outputs[0].tensor, at, 1, &rows[t->m + j].value);
        }
        qsort(rows, t->m, sizeof *rows, by_value);
        qsort(rows + t->m, t->m, sizeof *rows, by_value);
        for (uint64_t j = 0; j < t->m; j++) {
            from[rows[t->m + j].at] = rows[j].at;
            *moved |= rows[t->m + j].at != rows[j].at;
        }
    }
    for (int k = 0; k < 2 && *moved; k++)
        if (!permuted(bench->outputs[k].tensor, from, arena, &bench->outputs[k].tensor))
            return PLUMB_E_NOMEM;
    return PLUMB_OK;
}

/* ---- Settling -------------------------------------------------------------------------------- */

/* What came back for the chosen elements goes where they were. */
static enum plumb_code move_gradient(const struct ties *t, const struct plumb_call *call,
                                     struct plumb_result *bench, struct arena *arena)
{
    const int values = t->decision->values;
    struct plumb_arg *grad = t->leaf < bench->n_grads ? &bench->grads[t->leaf] : NULL;
    if (values < 0 || (size_t)values >= call->n_grads || !call->grads[values] || !grad ||
        grad->kind != PLUMB_ARG_TENSOR || grad->tensor->dtype != PLUMB_F64 ||
        call->grads[values]->count != t->outer * t->m * t->inner ||
        plumb_dtype_info(call->grads[values]->dtype)->kind != PLUMB_KIND_FLOAT)
        return PLUMB_OK;
    const uint64_t n = t->outer * t->length * t->inner;
    double *moved = arena_array(arena, n, sizeof *moved);
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    if (!moved || !tensor)
        return PLUMB_E_NOMEM;
    memset(moved, 0, n * sizeof *moved);
    for (uint64_t k = 0; k < t->outer * t->m * t->inner; k++) {
        const uint64_t o = k / (t->m * t->inner), i = k % t->inner;
        double value;
        plumb_tensor_to_f64(call->grads[values], k, 1, &value);
        if (t->bench[k] >= 0 && (uint64_t)t->bench[k] < t->length)
            moved[(o * t->length + (uint64_t)t->bench[k]) * t->inner + i] += value;
    }
    *tensor = *grad->tensor;
    tensor->data = moved;
    tensor->dense = true;
    grad->tensor = tensor;
    return PLUMB_OK;
}

static enum plumb_code settle(struct ties *t, const struct plumb_call *call,
                              const struct plumb_tensor *device, struct plumb_result *bench,
                              bool moved, struct arena *arena, uint64_t *settled)
{
    struct plumb_arg *out = &bench->outputs[t->decision->index];
    const uint64_t n = out->tensor->count;
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    t->bench = arena_array(arena, n, sizeof *t->bench);
    t->device = arena_array(arena, n, sizeof *t->device);
    t->seen = arena_array(arena, t->length, sizeof *t->seen);
    if (!tensor || !t->bench || !t->device || !t->seen)
        return PLUMB_E_NOMEM;
    memset(t->seen, 0, t->length * sizeof *t->seen);
    plumb_tensor_gather(out->tensor, 0, n, t->bench);
    plumb_tensor_gather(device, 0, n, t->device);
    if (!moved && memcmp(t->bench, t->device, n * sizeof *t->bench) == 0)
        return PLUMB_OK;
    for (uint64_t o = 0; o < t->outer; o++)
        for (uint64_t i = 0; i < t->inner; i++)
            *settled += settle_row(t, o, i);
    if (!*settled && !moved)
        return PLUMB_OK;
    *tensor = *out->tensor;
    tensor->data = t->bench;
    tensor->dense = true;
    out->tensor = tensor;
    return move_gradient(t, call, bench, arena);
}

/* ---- unique without order -------------------------------------------------------------------- */

/* Where the elements of the reference went: to[old place] = new place. */
static bool renumbered(const struct plumb_tensor *x, const uint64_t *to, uint64_t n,
                       struct arena *arena, const struct plumb_tensor **out)
{
    struct plumb_tensor *tensor = arena_alloc(arena, sizeof *tensor);
    int64_t *indices = arena_array(arena, x->count + 1, sizeof *indices);
    if (!tensor || !indices)
        return false;
    plumb_tensor_gather(x, 0, x->count, indices);
    for (uint64_t k = 0; k < x->count; k++)
        if (indices[k] >= 0 && (uint64_t)indices[k] < n)
            indices[k] = (int64_t)to[indices[k]];
    *tensor = *x;
    tensor->data = indices;
    tensor->dense = true;
    *out = tensor;
    return true;
}

/* unique(sorted=False) may give its values in any order; the reference follows the device's. */
static enum plumb_code settle_unique(const struct plumb_call *call,
                                     const struct plumb_result *device, struct plumb_result *bench,
                                     struct arena *arena, uint64_t *settled)
{
    const struct plumb_arg *d = device->n_outputs ? &device->outputs[0] : NULL;
    struct plumb_arg *b = bench->n_outputs ? &bench->outputs[0] : NULL;
    if (flag(call, "sorted", 1, true) || !d || !b || d->kind != PLUMB_ARG_TENSOR ||
        b->kind != PLUMB_ARG_TENSOR || d->tensor->count != b->tensor->count ||
        b->tensor->rank != 1 || plumb_dtype_parts(b->tensor->dtype) != 1)
        return PLUMB_OK;
    const uint64_t n = b->tensor->count;
    const struct placed *theirs = sorted_values(d->tensor, arena);
    const struct placed *ours = sorted_values(b->tensor, arena);
    uint64_t *from = arena_array(arena, n + 1, sizeof *from);
    uint64_t *to = arena_array(arena, n + 1, sizeof *to);
    if (!theirs || !ours || !from || !to)
        return PLUMB_E_NOMEM;
    for (uint64_t k = 0; k < n; k++) {
        from[theirs[k].at] = ours[k].at;
        to[ours[k].at] = theirs[k].at;
        *settled += theirs[k].at != ours[k].at;
    }
    if (!*settled)
        return PLUMB_OK;
    bool good = permuted(b->tensor, from, arena, &b->tensor);
    size_t next = 1;
    if (flag(call, "return_inverse", 2, false) && indices_of(bench, (int)next)) {
        struct plumb_arg *out = &bench->outputs[next++];
        good = good && renumbered(out->tensor, to, n, arena, &out->tensor);
    }
    if (flag(call, "return_counts", 3, false) && indices_of(bench, (int)next) &&
        bench->outputs[next].tensor->count == n)
        good = good &&
               permuted(bench->outputs[next].tensor, from, arena, &bench->outputs[next].tensor);
    return good ? PLUMB_OK : PLUMB_E_NOMEM;
}

static enum plumb_code settle_rows(const struct plumb_call *call, const struct plumb_result *device,
                                   struct plumb_result *bench, struct arena *arena,
                                   uint64_t *settled)
{
    struct ties t = {.decision = decision_of(call->name)};
    const struct plumb_arg *stable = keyword(call, "stable");
    if (!t.decision || (stable && stable->kind == PLUMB_ARG_BOOL && stable->integer))
        return PLUMB_OK;
    const struct plumb_tensor *b = indices_of(bench, t.decision->index);
    const struct plumb_tensor *d = indices_of(device, t.decision->index);
    if (!b || !d || b->count != d->count || b->count == 0 || !find_input(&t, call))
        return PLUMB_OK;
    const uint64_t rows = t.outer * t.inner;
    if (!rows || !t.length || b->count % rows || rows >= UINT32_MAX)
        return PLUMB_OK;
    t.m = b->count / rows;
    bool moved = false;
    if (strcmp(t.decision->name, "topk") == 0 && !flag(call, "sorted", 4, true) &&
        bench->outputs[0].kind == PLUMB_ARG_TENSOR && device->outputs[0].kind == PLUMB_ARG_TENSOR &&
        bench->outputs[0].tensor->count == b->count &&
        device->outputs[0].tensor->count == b->count &&
        follow_order(&t, device, bench, arena, &moved))
        return PLUMB_E_NOMEM;
    return settle(&t, call, d, bench, moved, arena, settled);
}

enum plumb_code ties_settle(const struct plumb_call *call, const struct plumb_result *device,
                            struct plumb_result *bench, struct arena *arena, uint64_t *settled)
{
    *settled = 0;
    if (strcmp(call->name, "unique") == 0)
        return settle_unique(call, device, bench, arena, settled);
    const enum plumb_code code = settle_rows(call, device, bench, arena, settled);
    return code ? code : ties_settle_windows(call, device, bench, arena, settled);
}
