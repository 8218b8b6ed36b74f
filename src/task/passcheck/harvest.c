/* One run of a graph in float64, and what it came to. */
#include "task/passcheck/harvest.h"

#include <stdio.h>
#include <string.h>

static bool grow(struct harvest *h)
{
    if (h->n < h->room)
        return true;
    const size_t room = h->room ? 2 * h->room : 64;
    struct harvest_item *items = arena_array(&h->arena, room, sizeof *items);
    if (!items)
        return false;
    if (h->n)
        memcpy(items, h->items, h->n * sizeof *items);
    h->items = items;
    h->room = room;
    return true;
}

/* Room for n numbers under that name; NULL when out of memory. */
static double *add(struct harvest *h, enum plumb_passcheck_kind kind, const char *name, uint64_t n)
{
    char *key = arena_printf(&h->arena, "%u %s", (unsigned)kind, name);
    double *values = arena_array(&h->arena, (size_t)n + 1, sizeof *values);
    uint64_t *place = key && values && grow(h) ? map_put(&h->names, key, strlen(key), NULL) : NULL;
    if (!place)
        return NULL;
    *place = h->n;
    h->items[h->n++] = (struct harvest_item){values, n};
    h->bytes += n * sizeof *values;
    return values;
}

static bool add_tensor(struct harvest *h, enum plumb_passcheck_kind kind, const char *name,
                       const struct plumb_tensor *tensor)
{
    if (!tensor || plumb_dtype_info(tensor->dtype)->kind == PLUMB_KIND_COMPLEX)
        return true;
    double *values = add(h, kind, name, tensor->count);
    if (values)
        plumb_tensor_to_f64(tensor, 0, (size_t)tensor->count, values);
    return values != NULL;
}

static bool add_outputs(struct passcheck_side *side, struct harvest *h)
{
    bool fine = true;
    for (size_t k = 0; k < side->n_outputs && fine; k++) {
        char name[32];
        snprintf(name, sizeof name, "output.%zu", k);
        if (side->outputs[k].kind == PLUMB_ARG_TENSOR)
            fine = add_tensor(h, PLUMB_PASSCHECK_OUTPUT, name, side->outputs[k].tensor);
    }
    return fine;
}

static bool add_node(const char *name, const struct plumb_result *result, struct harvest *h)
{
    for (size_t k = 0; k < result->n_outputs; k++) {
        const struct plumb_tensor *tensor =
            result->outputs[k].kind == PLUMB_ARG_TENSOR ? result->outputs[k].tensor : NULL;
        const char *full = name;
        if (result->n_outputs > 1 && !(full = arena_printf(&h->arena, "%s.%zu", name, k)))
            return false;
        if (tensor && h->bytes + tensor->count * sizeof(double) > h->max_bytes)
            h->left_out++;
        else if (!add_tensor(h, PLUMB_PASSCHECK_NODE, full, tensor))
            return false;
    }
    return true;
}

static bool add_nodes(struct passcheck_side *side, const struct plumb_passcheck_graph *other,
                      struct harvest *h)
{
    bool fine = true;
    for (size_t k = 0; k < side->graph->n_nodes && fine; k++) {
        const char *name = side->graph->nodes[side->graph->order[k]].name;
        if (passcheck_find_node(other, name) != SIZE_MAX)
            fine = add_node(name, &side->results[side->graph->order[k]], h);
    }
    return fine;
}

static bool add_gradients(struct passcheck_side *side, enum plumb_passcheck_kind kind,
                          struct harvest *h)
{
    bool fine = true;
    for (size_t k = 0; k < side->graph->n_leaves && fine; k++)
        fine = add_tensor(h, kind, side->graph->leaves[k].name, side->leaf_grads[k]);
    return fine;
}

static bool add_steps(struct passcheck_side *side, const struct harvest_plan *plan,
                      struct harvest *h)
{
    enum { PIECE = 1024 };
    double grad[PIECE];
    for (size_t k = 0; k < side->graph->n_leaves; k++) {
        const struct plumb_tensor *t = &plan->start->leaves[k], *g = side->leaf_grads[k];
        if (side->graph->leaves[k].role != PASSCHECK_PARAMETER)
            continue;
        double *values = add(h, PLUMB_PASSCHECK_STEP, side->graph->leaves[k].name, t->count);
        if (!values)
            return false;
        plumb_tensor_to_f64(t, 0, (size_t)t->count, values);
        for (uint64_t first = 0; g && g->count == t->count && first < t->count; first += PIECE) {
            const size_t n = t->count - first < PIECE ? (size_t)(t->count - first) : PIECE;
            plumb_tensor_to_f64(g, first, n, grad);
            for (size_t i = 0; i < n; i++)
                values[first + i] -= plan->rate * grad[i];
        }
    }
    return true;
}

static enum plumb_code walk_back(struct passcheck_side *side, const struct harvest_plan *plan,
                                 struct harvest *h, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (plan->output != SIZE_MAX)
        code = passcheck_backward(side, plan->output, err);
    if (!code && plan->kinds & PLUMB_PASSCHECK_GRADIENT &&
        !add_gradients(side, PLUMB_PASSCHECK_GRADIENT, h))
        return plumb_no_memory(err);
    if (!code && plan->kinds & PLUMB_PASSCHECK_STEP && !add_steps(side, plan, h))
        return plumb_no_memory(err);
    if (code || !plan->chosen || !(plan->kinds & PLUMB_PASSCHECK_GRADIENT))
        return code;
    /* Where this fails the check itself says so, and there is nothing to judge. */
    if (!passcheck_backward_random(side, plan->chosen, plan->seed, NULL) &&
        !add_gradients(side, PLUMB_PASSCHECK_RANDOM_GRADIENT, h))
        return plumb_no_memory(err);
    return PLUMB_OK;
}

enum plumb_code harvest_run(struct passcheck_side *side, const struct harvest_plan *plan,
                            struct harvest *out, struct plumb_error *err)
{
    enum plumb_code code = passcheck_forward(side, err);
    if (code)
        return code;
    if (!add_outputs(side, out) ||
        (plan->kinds & PLUMB_PASSCHECK_NODE && !add_nodes(side, plan->other, out)))
        return plumb_no_memory(err);
    if (plan->kinds & (PLUMB_PASSCHECK_GRADIENT | PLUMB_PASSCHECK_STEP))
        code = walk_back(side, plan, out, err);
    return code;
}

void harvest_free(struct harvest *harvest)
{
    map_free(&harvest->names);
    arena_free(&harvest->arena);
    *harvest = (struct harvest){0};
}

const struct harvest_item *harvest_find(const struct harvest *harvest,
                                        enum plumb_passcheck_kind kind, const char *name)
{
    char key[600];
    const int length = snprintf(key, sizeof key, "%u %s", (unsigned)kind, name);
    if (length < 0 || (size_t)length >= sizeof key)
        return NULL;
    const uint64_t *place = map_get(&harvest->names, key, (size_t)length);
    return place ? &harvest->items[*place] : NULL;
}
