#include "check/ties.h"

#include <math.h>
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
                              struct arena *arena, uint64_t *settled)
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
    if (memcmp(t->bench, t->device, n * sizeof *t->bench) == 0)
        return PLUMB_OK;
    for (uint64_t o = 0; o < t->outer; o++)
        for (uint64_t i = 0; i < t->inner; i++)
            *settled += settle_row(t, o, i);
    if (!*settled)
        return PLUMB_OK;
    *tensor = *out->tensor;
    tensor->data = t->bench;
    tensor->dense = true;
    out->tensor = tensor;
    return move_gradient(t, call, bench, arena);
}

enum plumb_code ties_settle(const struct plumb_call *call, const struct plumb_result *device,
                            struct plumb_result *bench, struct arena *arena, uint64_t *settled)
{
    struct ties t = {.decision = decision_of(call->name)};
    const struct plumb_arg *stable = keyword(call, "stable");
    *settled = 0;
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
    return settle(&t, call, d, bench, arena, settled);
}
