/* What references mean, and an order in which the nodes can run. */
#include "base/buf.h"
#include "base/nearest.h"
#include "task/passcheck/graph.h"

#include <stdlib.h>
#include <string.h>

const struct plumb_op *passcheck_find_op(const char *text, const char **prefix, const char **name)
{
    static const char *const prefixes[] = {"Functional", "Tensor", "Torch", "Aten", "NPU", "VF"};
    const size_t n = sizeof prefixes / sizeof *prefixes;
    *prefix = NULL;
    *name = text;
    for (size_t k = 0; k < n; k++) {
        const size_t length = strlen(prefixes[k]);
        if (strncmp(text, prefixes[k], length) == 0 && text[length] == '.') {
            *prefix = prefixes[k];
            *name = text + length + 1;
            return plumb_op_find(*prefix, *name);
        }
    }
    const struct plumb_op *op = plumb_op_find(NULL, text);
    for (size_t k = 0; !op && k < n; k++) { /* names that mean one thing under one prefix only */
        *prefix = prefixes[k];
        op = plumb_op_find(prefixes[k], text);
    }
    return op;
}

static size_t find(const struct plumb_passcheck_graph *graph, const char *name, bool node)
{
    const uint64_t *place = map_get(&graph->names, name, strlen(name));
    return place && (*place & 1) == node ? (size_t)(*place / 2) : SIZE_MAX;
}

size_t passcheck_find_leaf(const struct plumb_passcheck_graph *graph, const char *name)
{
    return find(graph, name, false);
}

size_t passcheck_find_node(const struct plumb_passcheck_graph *graph, const char *name)
{
    return find(graph, name, true);
}

struct resolver {
    struct plumb_passcheck_graph *graph;
    struct plumb_error *err;
    size_t *deps, n_deps; /* nodes that nodes refer to, one node after another */
    size_t *first;        /* of each node in deps; n_nodes + 1 of them */
};

static enum plumb_code add_name(struct resolver *r, const char *name, uint64_t at, uint64_t value)
{
    bool added;
    uint64_t *place = map_put(&r->graph->names, name, strlen(name), &added);
    if (!place)
        return plumb_no_memory(r->err);
    if (!added)
        return plumb_fail_at(r->err, PLUMB_E_FORMAT, at,
                             "the name '%.80s' is given twice; inputs, parameters, buffers and "
                             "nodes share their names",
                             name);
    *place = value;
    return PLUMB_OK;
}

static enum plumb_code add_names(struct resolver *r)
{
    const struct plumb_passcheck_graph *graph = r->graph;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < graph->n_leaves && !code; k++)
        code = add_name(r, graph->leaves[k].name, graph->leaves[k].at, 2 * (uint64_t)k);
    for (size_t k = 0; k < graph->n_nodes && !code; k++)
        code = add_name(r, graph->nodes[k].name, graph->nodes[k].at, 2 * (uint64_t)k + 1);
    return code;
}

static enum plumb_code unknown_name(const struct resolver *r, const struct passcheck_arg *arg)
{
    const struct plumb_passcheck_graph *graph = r->graph;
    struct nearest near;
    nearest_init(&near, arg->ref);
    for (size_t k = 0; k < graph->n_leaves; k++)
        nearest_try(&near, graph->leaves[k].name, strlen(graph->leaves[k].name));
    for (size_t k = 0; k < graph->n_nodes; k++)
        nearest_try(&near, graph->nodes[k].name, strlen(graph->nodes[k].name));
    const bool close = nearest_is_close(&near);
    return plumb_fail_at(r->err, PLUMB_E_FORMAT, arg->at, "nothing is named '%.80s'%s%s%s",
                         arg->ref, close ? "; is it '" : "", close ? near.name : "",
                         close ? "'?" : "");
}

static enum plumb_code resolve_arg(struct resolver *r, struct passcheck_arg *arg, size_t *room)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < arg->n_items && !code; k++)
        code = resolve_arg(r, &arg->items[k], room);
    if (code || !arg->ref)
        return code;
    const uint64_t *place = map_get(&r->graph->names, arg->ref, strlen(arg->ref));
    if (!place)
        return unknown_name(r, arg);
    arg->is_node = *place & 1;
    arg->target = (size_t)(*place / 2);
    if (!arg->is_node)
        return PLUMB_OK;
    if (r->n_deps == *room) {
        *room = *room ? 2 * *room : 64;
        size_t *deps = realloc(r->deps, *room * sizeof *deps);
        if (!deps)
            return plumb_no_memory(r->err);
        r->deps = deps;
    }
    r->deps[r->n_deps++] = arg->target;
    return PLUMB_OK;
}

static enum plumb_code resolve_refs(struct resolver *r)
{
    struct plumb_passcheck_graph *graph = r->graph;
    enum plumb_code code = PLUMB_OK;
    size_t room = 0;
    r->first = calloc(graph->n_nodes + 1, sizeof *r->first);
    if (!r->first)
        return plumb_no_memory(r->err);
    for (size_t k = 0; k < graph->n_nodes && !code; k++) {
        struct passcheck_node *node = &graph->nodes[k];
        r->first[k] = r->n_deps;
        for (size_t a = 0; a < node->n_args && !code; a++)
            code = resolve_arg(r, &node->args[a], &room);
        for (size_t a = 0; a < node->n_kwargs && !code; a++)
            code = resolve_arg(r, &node->kwargs[a].value, &room);
    }
    r->first[graph->n_nodes] = r->n_deps;
    for (size_t k = 0; k < graph->n_outputs && !code; k++)
        code = resolve_arg(r, &graph->outputs[k], &room);
    return code;
}

/* stack[from] .. stack[depth - 1] and back. */
static enum plumb_code cycle(const struct resolver *r, const size_t *stack, size_t from,
                             size_t depth)
{
    const struct passcheck_node *nodes = r->graph->nodes;
    struct buf text = {0};
    for (size_t k = from; k < depth && text.size < 300; k++)
        buf_printf(&text, "'%.60s' needs ", nodes[stack[k]].name);
    buf_printf(&text, "'%.60s'", nodes[stack[from]].name);
    enum plumb_code code =
        plumb_fail_at(r->err, PLUMB_E_FORMAT, nodes[stack[from]].at, "a cycle: %s",
                      text.failed ? nodes[stack[from]].name : text.data);
    buf_free(&text);
    return code;
}

/* Depth first without recursion: a chain may be as long as the file. */
static enum plumb_code sort_nodes(struct resolver *r)
{
    enum { NEW, OPEN, DONE };
    struct plumb_passcheck_graph *graph = r->graph;
    const size_t n = graph->n_nodes;
    enum plumb_code code = PLUMB_OK;
    unsigned char *state = calloc(n + 1, 1);
    size_t *stack = calloc(n + 1, sizeof *stack), *next = calloc(n + 1, sizeof *next);
    graph->order = arena_array(&graph->arena, n, sizeof *graph->order);
    size_t placed = 0;
    if (!state || !stack || !next || !graph->order) {
        code = plumb_no_memory(r->err);
        goto out;
    }
    for (size_t root = 0; root < n; root++) {
        size_t depth = 0;
        if (state[root] == NEW) {
            state[root] = OPEN;
            next[root] = r->first[root];
            stack[depth++] = root;
        }
        while (depth) {
            const size_t at = stack[depth - 1];
            if (next[at] == r->first[at + 1]) {
                state[at] = DONE;
                graph->order[placed++] = at;
                depth--;
                continue;
            }
            const size_t dep = r->deps[next[at]++];
            if (state[dep] == OPEN) {
                size_t from = depth - 1;
                while (stack[from] != dep)
                    from--;
                code = cycle(r, stack, from, depth);
                goto out;
            }
            if (state[dep] == NEW) {
                state[dep] = OPEN;
                next[dep] = r->first[dep];
                stack[depth++] = dep;
            }
        }
    }
    uint64_t draws = 0;
    for (size_t k = 0; k < n; k++)
        if (graph->nodes[graph->order[k]].def->random)
            graph->nodes[graph->order[k]].draws = draws++;
out:
    free(state);
    free(stack);
    free(next);
    return code;
}

enum plumb_code passcheck_resolve(struct plumb_passcheck_graph *graph, struct plumb_error *err)
{
    struct resolver r = {.graph = graph, .err = err};
    enum plumb_code code = add_names(&r);
    if (!code)
        code = resolve_refs(&r);
    if (!code)
        code = sort_nodes(&r);
    free(r.deps);
    free(r.first);
    return code;
}
