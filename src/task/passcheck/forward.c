/* Running the nodes of a graph. */
#include "base/memory.h"
#include "exec/values/parts.h"
#include "task/passcheck/side.h"

#include <stdio.h>
#include <string.h>

/* An error of one node, with its name, byte and file. */
static enum plumb_code blame(const struct passcheck_side *side, const char *name, uint64_t at,
                             const struct plumb_error *why, struct plumb_error *err)
{
    plumb_fail_at(err, why->code, at, "'%.80s': %.400s", name, why->message);
    plumb_error_in_file(err, side->graph->path);
    return why->code;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

bool passcheck_edge_needs_grad(const struct passcheck_side *side, const struct passcheck_edge *edge)
{
    if (edge->target == SIZE_MAX)
        return false;
    if (edge->is_node)
        return side->needs_grad[edge->target];
    return side->graph->leaves[edge->target].requires_grad &&
           plumb_dtype_info(side->leaves[edge->target].dtype)->kind == PLUMB_KIND_FLOAT;
}

/* Arguments on their way from the file into a call. */
struct builder {
    struct passcheck_side *side;
    struct passcheck_edge *edges;
    size_t n_edges, max_edges;
    struct plumb_error *err;
};

static enum plumb_code add_edge(struct builder *b, struct passcheck_edge edge)
{
    if (b->n_edges == b->max_edges) {
        const size_t room = b->max_edges ? 2 * b->max_edges : 8;
        struct passcheck_edge *edges = arena_array(&b->side->scratch, room, sizeof *edges);
        if (!edges)
            return plumb_no_memory(b->err);
        if (b->n_edges)
            memcpy(edges, b->edges, b->n_edges * sizeof *edges);
        b->edges = edges;
        b->max_edges = room;
    }
    b->edges[b->n_edges++] = edge;
    return PLUMB_OK;
}

/* One result of a node or leaf; only tensors have edges. */
static enum plumb_code add_value(struct builder *b, const struct plumb_arg *value,
                                 struct passcheck_edge edge, struct plumb_arg *out)
{
    *out = *value;
    if (value->kind != PLUMB_ARG_TENSOR)
        return PLUMB_OK;
    const enum plumb_kind kind = plumb_dtype_info(value->tensor->dtype)->kind;
    out->requires_grad = kind == PLUMB_KIND_FLOAT && passcheck_edge_needs_grad(b->side, &edge);
    return add_edge(b, edge);
}

static enum plumb_code add_ref(struct builder *b, const struct passcheck_arg *from,
                               struct plumb_arg *out)
{
    struct passcheck_side *side = b->side;
    struct passcheck_edge edge = {.is_node = from->is_node, .target = from->target};
    if (!from->is_node) {
        const struct plumb_arg leaf = {.kind = PLUMB_ARG_TENSOR,
                                       .tensor = &side->leaves[from->target]};
        if (from->index != PASSCHECK_WHOLE)
            return plumb_fail(b->err, PLUMB_E_FORMAT,
                              "'%.80s' is a tensor: an \"index\" is for nodes with several results",
                              from->ref);
        return add_value(b, &leaf, edge, out);
    }
    const struct plumb_result *result = &side->results[from->target];
    const struct plumb_arg *stored =
        side->stored && !side->collecting ? side->stored[from->target] : result->outputs;
    const int64_t n = (int64_t)result->n_outputs;
    if (from->index == PASSCHECK_WHOLE && !result->tuple)
        return add_value(b, &stored[0], edge, out);
    if (from->index != PASSCHECK_WHOLE) {
        const int64_t index = from->index < 0 ? from->index + n : from->index;
        if (index < 0 || index >= n || !result->tuple)
            return plumb_fail(b->err, PLUMB_E_FORMAT, "'%.80s' has no result %lld; it has %lld%s",
                              from->ref, (long long)from->index, (long long)n,
                              result->tuple ? "" : ", which needs no \"index\"");
        edge.output = (size_t)index;
        return add_value(b, &stored[index], edge, out);
    }
    struct plumb_arg *items = arena_array(&side->scratch, result->n_outputs, sizeof *items);
    if (!items)
        return plumb_no_memory(b->err);
    *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = result->n_outputs};
    enum plumb_code code = PLUMB_OK;
    for (edge.output = 0; edge.output < result->n_outputs && !code; edge.output++)
        code = add_value(b, &stored[edge.output], edge, &items[edge.output]);
    return code;
}

static enum plumb_code add_arg(struct builder *b, const struct passcheck_arg *from,
                               struct plumb_arg *out)
{
    if (from->ref)
        return add_ref(b, from, out);
    *out = from->value;
    if (from->value.kind != PLUMB_ARG_LIST && from->value.kind != PLUMB_ARG_SLICE)
        return PLUMB_OK;
    struct plumb_arg *items = arena_array(&b->side->scratch, from->n_items, sizeof *items);
    if (!items)
        return plumb_no_memory(b->err);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < from->n_items && !code; k++)
        code = add_arg(b, &from->items[k], &items[k]);
    out->items = items;
    out->n_items = from->n_items;
    return code;
}

static uint32_t next_draw(void *state)
{
    struct passcheck_call *call = state;
    return (uint32_t)(value_bits(call->key, call->drawn++) >> 32);
}

enum plumb_code passcheck_prepare(struct passcheck_side *side, const struct passcheck_node *node,
                                  struct passcheck_call *out, struct plumb_error *err)
{
    char place[32];
    struct plumb_error why = {0};
    struct builder b = {.side = side, .err = &why};
    struct plumb_arg *args = arena_array(&side->scratch, node->n_args, sizeof *args);
    struct plumb_kwarg *kwargs = arena_array(&side->scratch, node->n_kwargs, sizeof *kwargs);
    if (!args || !kwargs)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < node->n_args && !code; k++)
        code = add_arg(&b, &node->args[k], &args[k]);
    for (size_t k = 0; k < node->n_kwargs && !code; k++) {
        kwargs[k].name = node->kwargs[k].name;
        code = add_arg(&b, &node->kwargs[k].value, &kwargs[k].value);
    }
    if (code)
        return blame(side, node->name, node->at, &why, err);
    snprintf(place, sizeof place, "%llu", (unsigned long long)node->draws);
    *out = (struct passcheck_call){
        .call = {.prefix = node->prefix,
                 .name = node->op,
                 .args = args,
                 .n_args = node->n_args,
                 .kwargs = kwargs,
                 .n_kwargs = node->n_kwargs},
        .edges = b.edges,
        .n_edges = b.n_edges,
        .key = value_key(side->options->seed, "draws", place),
    };
    out->draws = (struct plumb_draws){next_draw, out};
    out->call.draws = &out->draws;
    return PLUMB_OK;
}

/* ---- Running --------------------------------------------------------------------------------- */

enum plumb_code passcheck_run_call(struct passcheck_side *side, const struct passcheck_node *node,
                                   const struct plumb_call *call, struct plumb_result *out,
                                   struct plumb_error *err)
{
    struct plumb_device *device = side->options->device;
    struct plumb_error why = {0};
    enum plumb_code code = PLUMB_OK;
    char reason[256] = "";
    *out = (struct plumb_result){0};
    if (!device)
        code = plumb_op_run(call, PLUMB_RAISED, out, &why);
    else if (device->supports && !device->supports(device, call, reason, sizeof reason))
        code = plumb_fail(&why, PLUMB_E_UNSUPPORTED, "%s", reason);
    else
        code = device->run(device, call, out, &why);
    return code ? blame(side, node->name, node->at, &why, err) : PLUMB_OK;
}

static enum plumb_code count_bytes(struct passcheck_side *side, const struct passcheck_node *node,
                                   const struct plumb_result *result, struct plumb_error *err)
{
    for (size_t k = 0; k < result->n_outputs; k++)
        if (result->outputs[k].kind == PLUMB_ARG_TENSOR)
            side->bytes += plumb_tensor_bytes(result->outputs[k].tensor);
    if (side->bytes <= memory_total() / 4)
        return PLUMB_OK;
    const struct plumb_error why = {
        .code = PLUMB_E_UNSUPPORTED,
        .message = "with this node the results of the graph take more than a quarter of this "
                   "machine's memory"};
    return blame(side, node->name, node->at, &why, err);
}

/* What a call leaves behind holds tens of kilobytes even for a scalar: small results are copied and
 * it is let go, so that a graph of very many nodes stays small. */
static enum plumb_code compact(struct passcheck_side *side, struct plumb_result *result,
                               struct plumb_error *err)
{
    enum { SMALL = 1 << 16 };
    uint64_t bytes = 0;
    for (size_t k = 0; k < result->n_outputs; k++) {
        const struct plumb_arg *output = &result->outputs[k];
        if (output->kind == PLUMB_ARG_TENSOR)
            bytes += plumb_tensor_bytes(output->tensor);
        else if (output->kind > PLUMB_ARG_FLOAT)
            return PLUMB_OK; /* holds more than itself */
    }
    if (bytes > SMALL)
        return PLUMB_OK;
    struct plumb_arg *outputs = arena_array(&side->scratch, result->n_outputs, sizeof *outputs);
    if (!outputs)
        return plumb_no_memory(err);
    for (size_t k = 0; k < result->n_outputs; k++) {
        void *data;
        outputs[k] = result->outputs[k];
        if (outputs[k].kind != PLUMB_ARG_TENSOR)
            continue;
        const struct plumb_tensor *from = outputs[k].tensor;
        outputs[k].tensor = passcheck_like(from, &side->scratch, &data);
        if (!outputs[k].tensor)
            return plumb_no_memory(err);
        plumb_tensor_gather(from, 0, (size_t)from->count, data);
    }
    const struct plumb_result copy = {
        .outputs = outputs, .n_outputs = result->n_outputs, .tuple = result->tuple};
    plumb_result_destroy(result);
    *result = copy;
    return PLUMB_OK;
}

static enum plumb_code run_node(struct passcheck_side *side, size_t k, struct plumb_error *err)
{
    const struct passcheck_node *node = &side->graph->nodes[k];
    struct passcheck_call call;
    enum plumb_code code = passcheck_prepare(side, node, &call, err);
    if (code)
        return code;
    bool needs = false;
    for (size_t e = 0; e < call.n_edges; e++)
        needs |= passcheck_edge_needs_grad(side, &call.edges[e]);
    side->needs_grad[k] = needs && node->def->backward;
    struct plumb_noise noise;
    if (passcheck_noise_call(side, k, false, &noise))
        call.call.noise = &noise;
    code = passcheck_run_call(side, node, &call.call, &side->results[k], err);
    if (!code)
        code = count_bytes(side, node, &side->results[k], err);
    if (code)
        return code;
    if (side->terms)
        side->terms[k] = side->results[k].terms;
    code = compact(side, &side->results[k], err);
    return code || !side->noise ? code : passcheck_noise_store(side, k, err);
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static enum plumb_code add_output(struct passcheck_side *side, const struct plumb_arg *value,
                                  struct passcheck_edge edge, struct plumb_error *err)
{
    if (side->n_outputs == side->max_outputs) {
        const size_t room = side->max_outputs ? 2 * side->max_outputs : 8;
        struct plumb_arg *outputs = arena_array(&side->scratch, room, sizeof *outputs);
        struct passcheck_edge *edges = arena_array(&side->scratch, room, sizeof *edges);
        if (!outputs || !edges)
            return plumb_no_memory(err);
        if (side->n_outputs) {
            memcpy(outputs, side->outputs, side->n_outputs * sizeof *outputs);
            memcpy(edges, side->output_edges, side->n_outputs * sizeof *edges);
        }
        side->outputs = outputs;
        side->output_edges = edges;
        side->max_outputs = room;
    }
    side->outputs[side->n_outputs] = *value;
    side->output_edges[side->n_outputs++] = edge;
    return PLUMB_OK;
}

/* Lists are laid flat; their tensors come in the order of their edges. */
static enum plumb_code flatten(struct passcheck_side *side, const struct plumb_arg *value,
                               const struct passcheck_edge **edge, struct plumb_error *err)
{
    static const struct passcheck_edge none = {.target = SIZE_MAX};
    enum plumb_code code = PLUMB_OK;
    if (value->kind == PLUMB_ARG_LIST) {
        for (size_t k = 0; k < value->n_items && !code; k++)
            code = flatten(side, &value->items[k], edge, err);
        return code;
    }
    return add_output(side, value, value->kind == PLUMB_ARG_TENSOR ? *(*edge)++ : none, err);
}

static enum plumb_code collect_outputs(struct passcheck_side *side, struct plumb_error *err)
{
    const struct plumb_passcheck_graph *graph = side->graph;
    side->outputs = NULL;
    side->output_edges = NULL;
    side->n_outputs = side->max_outputs = 0;
    side->collecting = true;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < graph->n_outputs && !code; k++) {
        struct plumb_error why = {0};
        struct builder b = {.side = side, .err = &why};
        struct plumb_arg value;
        code = add_arg(&b, &graph->outputs[k], &value);
        if (code)
            return blame(side, "outputs", graph->outputs[k].at, &why, err);
        const struct passcheck_edge *edge = b.edges;
        code = flatten(side, &value, &edge, err);
    }
    side->collecting = false;
    return code;
}

enum plumb_code passcheck_forward(struct passcheck_side *side, struct plumb_error *err)
{
    const struct plumb_passcheck_graph *graph = side->graph;
    for (size_t k = 0; k < graph->n_nodes; k++)
        plumb_result_destroy(&side->results[k]);
    arena_free(&side->scratch);
    side->scratch = (struct arena){0};
    side->bytes = 0;
    memset(side->leaf_grads, 0, graph->n_leaves * sizeof *side->leaf_grads);
    memset(side->node_grads, 0, graph->n_nodes * sizeof *side->node_grads);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < graph->n_nodes && !code; k++)
        code = run_node(side, graph->order[k], err);
    return code ? code : collect_outputs(side, err);
}
