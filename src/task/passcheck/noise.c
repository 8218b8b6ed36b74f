/* Errors made on purpose in a run in float64: each tensor is off by what storing it in its type may
 * cost, each call by what adding up in float32 may. */
#include "task/passcheck/side.h"

#include "exec/values/parts.h"

#include <math.h>

enum plumb_dtype passcheck_node_type(const struct passcheck_side *side, size_t node, size_t k)
{
    const struct plumb_result *result = side->typed ? &side->typed->results[node] : NULL;
    return result && k < result->n_outputs && result->outputs[k].kind == PLUMB_ARG_TENSOR
               ? result->outputs[k].tensor->dtype
               : PLUMB_F64;
}

enum plumb_dtype passcheck_leaf_type(const struct passcheck_side *side, size_t leaf)
{
    return side->declared[leaf];
}

/* Half the spacing of a type around 1, as that of the arithmetic it is computed with. */
static double unit(enum plumb_dtype dtype)
{
    return dtype == PLUMB_F64 ? 0x1p-51 : 0x1p-24; /* float64 rounds in these runs as well */
}

static bool is_float(const struct plumb_tensor *tensor)
{
    return plumb_dtype_info(tensor->dtype)->kind == PLUMB_KIND_FLOAT;
}

/* Between -1 and 1. */
static double uniform(uint64_t key, uint64_t index)
{
    return (double)(value_bits(key, index) >> 11) * 0x1p-52 - 1;
}

/* Half a unit in the last place of a number of that type. */
static double half_unit(enum plumb_dtype dtype, double x)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    int exponent;
    if (!isfinite(x) || info->kind != PLUMB_KIND_FLOAT)
        return 0;
    if (dtype == PLUMB_F64)
        return unit(dtype) * fabs(x);
    frexp(x, &exponent);
    exponent = x == 0 || exponent - 1 < info->emin ? info->emin : exponent - 1;
    return x == 0 ? 0 : ldexp(1, exponent - info->precision - 1);
}

void passcheck_noise_numbers(const struct passcheck_side *side, enum plumb_dtype dtype,
                             uint64_t key, int64_t terms, uint64_t first, size_t n, double *values)
{
    const struct passcheck_noise *noise = side->noise;
    const uint64_t stream = value_bits(noise->seed, key), other = value_bits(stream, UINT64_MAX);
    const double sum = unit(dtype) * sqrt((double)(terms > 1 ? terms : 1) / 3);
    if (noise->fine && plumb_dtype_info(dtype)->bits < 32)
        dtype = PLUMB_F32;
    for (size_t i = 0; i < n; i++)
        values[i] += uniform(stream, first + i) * half_unit(dtype, values[i]) +
                     uniform(other, first + i) * sum * values[i];
}

/* A copy with errors, in the side's scratch or, for leaves, in its memory. */
static const struct plumb_tensor *copy_with_errors(struct passcheck_side *side, struct arena *arena,
                                                   const struct plumb_tensor *from,
                                                   enum plumb_dtype dtype, uint64_t key,
                                                   int64_t terms, void **data)
{
    struct plumb_tensor *copy = passcheck_like(from, arena, data);
    if (!copy)
        return NULL;
    plumb_tensor_to_f64(from, 0, (size_t)from->count, *data);
    passcheck_noise_numbers(side, dtype, key, terms, 0, (size_t)from->count, *data);
    return copy;
}

enum plumb_code passcheck_noise_leaves(struct passcheck_side *side, struct plumb_error *err)
{
    const bool *only = side->noise->only;
    for (size_t k = 0; k < side->graph->n_leaves; k++) {
        struct plumb_tensor *leaf = &side->leaves[k];
        const enum plumb_dtype dtype = side->declared[k];
        if (leaf->dtype != PLUMB_F64 || !leaf->count || (only && !only[k]))
            continue;
        const double *clean = leaf->data;
        const struct plumb_tensor *copy = copy_with_errors(side, &side->memory, leaf, dtype,
                                                           4 * (uint64_t)k, 1, &side->leaf_data[k]);
        if (!copy)
            return plumb_no_memory(err);
        /* A constant that was folded is the end of several steps. */
        double *values = side->leaf_data[k];
        for (uint64_t i = 0; only && i < leaf->count; i++)
            values[i] += values[i] - clean[i];
        leaf->data = values;
    }
    return PLUMB_OK;
}

bool passcheck_noise_call(const struct passcheck_side *side, size_t node, bool backward,
                          struct plumb_noise *out)
{
    const struct passcheck_noise *noise = side->noise;
    const struct plumb_op *op = side->graph->nodes[node].def;
    if (!noise || noise->only || op->random || (op->results == PLUMB_OP_EXACT && !backward))
        return false;
    const int64_t terms = (backward ? noise->reference->grad_terms : noise->reference->terms)[node];
    const double relative =
        unit(passcheck_node_type(side, node, 0)) * sqrt((double)(terms > 1 ? terms : 1));
    *out = (struct plumb_noise){.relative = relative < 0x1p-10 ? relative : 0x1p-10,
                                .seed = value_bits(noise->seed, 4 * (uint64_t)node + 3) + backward,
                                .store = PLUMB_DTYPE_COUNT};
    return true;
}

static int precision(enum plumb_dtype dtype)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    return info->kind == PLUMB_KIND_FLOAT ? info->precision : 0;
}

/* Whether a node that only moves numbers stores them in a narrower type than it gets them in. */
static bool is_cast(const struct passcheck_side *side, size_t node)
{
    const struct passcheck_node *at = &side->graph->nodes[node];
    const int own = precision(passcheck_node_type(side, node, 0));
    bool narrower = false;
    for (size_t k = 0; k < at->n_args && own; k++) {
        const struct passcheck_arg *arg = &at->args[k];
        const size_t output = arg->index > 0 ? (size_t)arg->index : 0;
        if (arg->ref)
            narrower |=
                own < precision(arg->is_node ? passcheck_node_type(side, arg->target, output)
                                             : passcheck_leaf_type(side, arg->target));
    }
    return narrower;
}

enum plumb_code passcheck_noise_store(struct passcheck_side *side, size_t node,
                                      struct plumb_error *err)
{
    const struct plumb_result *result = &side->results[node];
    const struct plumb_op *op = side->graph->nodes[node].def;
    side->stored[node] = result->outputs;
    if (side->noise->only || op->random || (op->results == PLUMB_OP_EXACT && !is_cast(side, node)))
        return PLUMB_OK;
    struct plumb_arg *stored = arena_array(&side->scratch, result->n_outputs, sizeof *stored);
    if (!stored)
        return plumb_no_memory(err);
    for (size_t k = 0; k < result->n_outputs; k++) {
        void *data;
        stored[k] = result->outputs[k];
        if (stored[k].kind != PLUMB_ARG_TENSOR || !is_float(stored[k].tensor) ||
            stored[k].tensor->dtype != PLUMB_F64)
            continue;
        stored[k].tensor = copy_with_errors(side, &side->scratch, stored[k].tensor,
                                            passcheck_node_type(side, node, k),
                                            4 * (uint64_t)node + 2 + ((uint64_t)k << 40),
                                            side->noise->reference->terms[node], &data);
        if (!stored[k].tensor)
            return plumb_no_memory(err);
    }
    side->stored[node] = stored;
    return PLUMB_OK;
}
