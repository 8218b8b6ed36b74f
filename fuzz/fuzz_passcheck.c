#include "task/passcheck/graph.h"

#include <stdlib.h>

/* Whatever was parsed refers to what is there. */
static void walk(const struct plumb_passcheck_graph *graph, const struct passcheck_arg *args,
                 size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const struct passcheck_arg *arg = &args[k];
        if (arg->ref && arg->target >= (arg->is_node ? graph->n_nodes : graph->n_leaves))
            abort();
        walk(graph, arg->items, arg->n_items);
    }
}

/* Nodes come after what they refer to. */
static void check_order(const struct plumb_passcheck_graph *graph)
{
    unsigned char *seen = calloc(graph->n_nodes + 1, 1);
    for (size_t k = 0; seen && k < graph->n_nodes; k++) {
        const struct passcheck_node *node = &graph->nodes[graph->order[k]];
        if (seen[graph->order[k]]++ || !node->def || !node->name)
            abort();
        for (size_t a = 0; a < node->n_args; a++)
            if (node->args[a].ref && node->args[a].is_node && !seen[node->args[a].target])
                abort();
    }
    free(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plumb_passcheck_graph *graph;
    struct plumb_error err = {0};
    if (plumb_passcheck_graph_parse(&graph, data, size, "fuzz/graph.json", &err)) {
        if (graph || !err.message[0])
            abort();
        return 0;
    }
    for (size_t k = 0; k < graph->n_nodes; k++) {
        const struct passcheck_node *node = &graph->nodes[k];
        walk(graph, node->args, node->n_args);
        for (size_t a = 0; a < node->n_kwargs; a++)
            walk(graph, &node->kwargs[a].value, 1);
    }
    walk(graph, graph->outputs, graph->n_outputs);
    check_order(graph);
    plumb_passcheck_graph_free(graph);
    return 0;
}
