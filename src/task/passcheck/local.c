/* One node of the graph after, on its own inputs, against the same node of the graph before. */
#include "task/passcheck/opinion.h"

#include <math.h>
#include <string.h>

/* Float32 is what constants may be rounded to; sums make more of it. */
static const double ENOUGH = 0x1p-19;

/* Puts what `after` has under the name of what the argument refers to into the places of the
 * hybrid; false when it has nothing of that name. */
static bool borrow(const struct passcheck_side *after, struct passcheck_side *hybrid,
                   const struct passcheck_arg *arg)
{
    bool found = true;
    for (size_t k = 0; k < arg->n_items && found; k++)
        found = borrow(after, hybrid, &arg->items[k]);
    if (!arg->ref || !found)
        return found;
    const size_t other = arg->is_node ? passcheck_find_node(after->graph, arg->ref)
                                      : passcheck_find_leaf(after->graph, arg->ref);
    if (other == SIZE_MAX)
        return false;
    if (arg->is_node)
        hybrid->results[arg->target] = after->results[other];
    else
        hybrid->leaves[arg->target] = after->leaves[other];
    return true;
}

static bool close_enough(const struct plumb_tensor *a, const struct plumb_tensor *b, int64_t terms)
{
    enum { PIECE = 512 };
    double x[PIECE], y[PIECE], most = 0, size = 0;
    if (a->count != b->count || plumb_dtype_parts(a->dtype) != 1 ||
        plumb_dtype_parts(b->dtype) != 1)
        return false;
    for (uint64_t first = 0; first < a->count; first += PIECE) {
        const size_t n = a->count - first < PIECE ? (size_t)(a->count - first) : PIECE;
        plumb_tensor_to_f64(a, first, n, x);
        plumb_tensor_to_f64(b, first, n, y);
        for (size_t i = 0; i < n; i++) {
            most = fmax(most, isfinite(x[i]) && isfinite(y[i])               ? fabs(x[i] - y[i])
                              : x[i] == y[i] || (isnan(x[i]) && isnan(y[i])) ? 0
                                                                             : INFINITY);
            size = fmax(size, isfinite(x[i]) ? fabs(x[i]) : 0);
        }
    }
    return most <= ENOUGH * sqrt((double)(terms > 1 ? terms : 1)) * size;
}

static bool same_results(const struct plumb_result *a, const struct plumb_result *b)
{
    bool same = a->n_outputs == b->n_outputs;
    for (size_t k = 0; k < a->n_outputs && same; k++)
        same = a->outputs[k].kind == PLUMB_ARG_TENSOR && b->outputs[k].kind == PLUMB_ARG_TENSOR &&
               close_enough(a->outputs[k].tensor, b->outputs[k].tensor, a->terms);
    return same;
}

bool local_is_right(struct passcheck_side *before, const struct passcheck_side *after,
                    size_t before_node, size_t after_node)
{
    const struct passcheck_node *node = &before->graph->nodes[before_node];
    struct passcheck_side hybrid = *before;
    struct arena memory = {0};
    bool fine = true, right = false;
    hybrid.scratch = (struct arena){0};
    hybrid.results = arena_array(&memory, before->graph->n_nodes + 1, sizeof *hybrid.results);
    hybrid.leaves = arena_array(&memory, before->graph->n_leaves + 1, sizeof *hybrid.leaves);
    if (hybrid.results && hybrid.leaves) {
        for (size_t k = 0; k < node->n_args && fine; k++)
            fine = borrow(after, &hybrid, &node->args[k]);
        for (size_t k = 0; k < node->n_kwargs && fine; k++)
            fine = borrow(after, &hybrid, &node->kwargs[k].value);
        struct passcheck_call call;
        struct plumb_result result = {0};
        if (fine && !passcheck_prepare(&hybrid, node, &call, NULL) &&
            !passcheck_run_call(&hybrid, node, &call.call, &result, NULL))
            right = same_results(&result, &after->results[after_node]);
        plumb_result_destroy(&result);
    }
    arena_free(&hybrid.scratch);
    arena_free(&memory);
    return right;
}
