/* Gradients: from an output back over the nodes, each call giving those of its arguments. */
#include "task/passcheck/side.h"

#include <string.h>

/* Where the gradient of an edge's tensor is kept; NULL after a failure. */
static struct plumb_tensor **place_of(struct passcheck_side *side,
                                      const struct passcheck_edge *edge)
{
    if (!edge->is_node)
        return &side->leaf_grads[edge->target];
    struct plumb_tensor ***grads = &side->node_grads[edge->target];
    if (!*grads)
        *grads = arena_array(&side->scratch, side->results[edge->target].n_outputs, sizeof **grads);
    return *grads ? &(*grads)[edge->output] : NULL;
}

/* What arrives over several edges adds up, in the type of the gradient. */
static enum plumb_code add_grad(struct passcheck_side *side, const struct passcheck_edge *edge,
                                const struct plumb_tensor *grad, struct plumb_error *err)
{
    enum { PIECE = 1024 };
    double old[PIECE], more[PIECE];
    struct plumb_tensor **place = place_of(side, edge);
    void *data;
    if (!place)
        return plumb_no_memory(err);
    struct plumb_tensor *sum = passcheck_like(grad, &side->scratch, &data);
    if (!sum)
        return plumb_no_memory(err);
    const struct plumb_tensor *before = *place;
    /* What a parameter gets is judged as it comes; only what is read again was stored before. */
    const bool errs = side->noise && (edge->is_node || before);
    const enum plumb_dtype type = edge->is_node
                                      ? passcheck_node_type(side, edge->target, edge->output)
                                      : passcheck_leaf_type(side, edge->target);
    const uint64_t key = 4 * (uint64_t)edge->target + 2 * edge->is_node + 1;
    const size_t size = plumb_dtype_info(grad->dtype)->bits / 8;
    for (uint64_t first = 0; first < grad->count; first += PIECE) {
        const size_t n = grad->count - first < PIECE ? (size_t)(grad->count - first) : PIECE;
        plumb_tensor_to_f64(grad, first, n, more);
        if (before && before->count == grad->count) {
            plumb_tensor_to_f64(before, first, n, old);
            for (size_t k = 0; k < n; k++)
                more[k] += old[k];
        }
        if (errs)
            passcheck_noise_numbers(side, type, key, 1, first, n, more);
        plumb_from_f64(grad->dtype, more, n, (unsigned char *)data + first * size);
    }
    *place = sum;
    return PLUMB_OK;
}

static enum plumb_code walk_node(struct passcheck_side *side, size_t k, struct plumb_error *err)
{
    const struct passcheck_node *node = &side->graph->nodes[k];
    struct passcheck_call call;
    struct plumb_result result;
    enum plumb_code code = passcheck_prepare(side, node, &call, err);
    if (code)
        return code;
    call.call.grads = (const struct plumb_tensor *const *)side->node_grads[k];
    call.call.n_grads = side->results[k].n_outputs;
    struct plumb_noise noise;
    if (passcheck_noise_call(side, k, true, &noise))
        call.call.noise = &noise;
    code = passcheck_run_call(side, node, &call.call, &result, err);
    if (side->grad_terms && !code)
        side->grad_terms[k] = result.grad_terms;
    for (size_t e = 0; e < call.n_edges && e < result.n_grads && !code; e++)
        if (result.grads[e].kind == PLUMB_ARG_TENSOR &&
            passcheck_edge_needs_grad(side, &call.edges[e]))
            code = add_grad(side, &call.edges[e], result.grads[e].tensor, err);
    plumb_result_destroy(&result);
    return code;
}

bool passcheck_is_differentiable(const struct passcheck_side *side, size_t output)
{
    return output < side->n_outputs && side->outputs[output].kind == PLUMB_ARG_TENSOR &&
           side->outputs[output].requires_grad;
}

size_t passcheck_first_differentiable(const struct passcheck_side *side)
{
    for (size_t k = 0; k < side->n_outputs; k++)
        if (passcheck_is_differentiable(side, k))
            return k;
    return SIZE_MAX;
}

/* Between -1 and 1, by seed and counter alone. */
static double draw(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-52 - 1;
}

/* The gradient of a sum: ones; or, with a seed, of a sum with random weights. */
static enum plumb_code start(struct passcheck_side *side, size_t output, const uint64_t *seed,
                             struct plumb_error *err)
{
    const struct plumb_tensor *from = side->outputs[output].tensor;
    void *data;
    struct plumb_tensor *weights = passcheck_like(from, &side->scratch, &data);
    if (!weights)
        return plumb_no_memory(err);
    const size_t size = plumb_dtype_info(from->dtype)->bits / 8;
    const uint64_t stream = seed ? *seed ^ ((uint64_t)output << 48) : 0;
    const enum plumb_dtype type =
        side->typed ? side->typed->outputs[output].tensor->dtype : from->dtype;
    for (uint64_t k = 0; k < weights->count; k++) {
        const double weight = seed ? plumb_round_to(type, draw(stream, k)) : 1;
        plumb_from_f64(from->dtype, &weight, 1, (unsigned char *)data + k * size);
    }
    return add_grad(side, &side->output_edges[output], weights, err);
}

static enum plumb_code walk_nodes(struct passcheck_side *side, struct plumb_error *err)
{
    const struct plumb_passcheck_graph *graph = side->graph;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = graph->n_nodes; k-- > 0 && !code;) {
        const size_t node = graph->order[k];
        if (side->node_grads[node] && side->needs_grad[node])
            code = walk_node(side, node, err);
    }
    return code;
}

enum plumb_code passcheck_backward(struct passcheck_side *side, size_t output,
                                   struct plumb_error *err)
{
    enum plumb_code code = start(side, output, NULL, err);
    return code ? code : walk_nodes(side, err);
}

enum plumb_code passcheck_backward_random(struct passcheck_side *side, const bool *chosen,
                                          uint64_t seed, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    memset(side->leaf_grads, 0, side->graph->n_leaves * sizeof *side->leaf_grads);
    memset(side->node_grads, 0, side->graph->n_nodes * sizeof *side->node_grads);
    for (size_t k = 0; k < side->n_outputs && !code; k++)
        if (chosen[k])
            code = start(side, k, &seed, err);
    return code ? code : walk_nodes(side, err);
}

void passcheck_step(struct passcheck_side *side, double rate)
{
    enum { PIECE = 1024 };
    double value[PIECE], grad[PIECE];
    for (size_t k = 0; k < side->graph->n_leaves; k++) {
        struct plumb_tensor *t = &side->leaves[k];
        const struct plumb_tensor *g = side->leaf_grads[k];
        if (side->graph->leaves[k].role != PASSCHECK_PARAMETER || !g || g->count != t->count)
            continue;
        const size_t size = plumb_dtype_info(t->dtype)->bits / 8;
        for (uint64_t first = 0; first < t->count; first += PIECE) {
            const size_t n = t->count - first < PIECE ? (size_t)(t->count - first) : PIECE;
            plumb_tensor_to_f64(t, first, n, value);
            plumb_tensor_to_f64(g, first, n, grad);
            for (size_t e = 0; e < n; e++)
                value[e] -= rate * grad[e];
            plumb_from_f64(t->dtype, value, n, (unsigned char *)side->leaf_data[k] + first * size);
        }
    }
}
