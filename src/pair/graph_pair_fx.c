/* A GE operator against the FX nodes that the graph text names for it. */
#define _GNU_SOURCE
#include "pair/fx_inputs.h"

#include <inttypes.h>
#include <string.h>

/* FX files in the places where a GE file has its tensors; NULL where there is none. */
struct slots {
    const struct air_fx_file **files;
    size_t count;
};

static const struct ge_tensor *tensor_at(const struct ge_file *ge, bool outputs, size_t i)
{
    if (outputs)
        return i < ge->output_count ? &ge->outputs[i] : NULL;
    return i < ge->input_count ? &ge->inputs[i] : NULL;
}

/* Rows of the inputs, and of what a node has besides. */
static void pair_inputs(struct pairing *pairing, struct air_op *op, const struct ge_file *ge,
                        const struct fx_places *places)
{
    for (size_t i = 0; i < places->count; i++) {
        const struct air_fx_file *file = places->files[i];
        struct air_side target = side_ge(op, &ge->inputs[i]);
        if (!file)
            pair_lone(pairing, AIR_ALONE, op->name, target, side_none(), places->why);
        else if (places->loose[i])
            pair_loosely(pairing, op->name, target, side_file(file->path));
        else
            pair_two(pairing, op->name, target, side_file(file->path));
    }
    for (size_t i = 0; i < places->left_count; i++)
        pair_lone(pairing, AIR_ALONE, op->name, side_none(), side_file(places->left[i]->path),
                  places->left[i]->kind == AIR_FX_TENSOR
                      ? "the GE file has no such tensor"
                      : "an argument of the FX node that is no tensor; GE has no input for it");
}

/* Is an earlier name of the same operator one of the same node? */
static bool is_repeated(const struct graph_op *graph_op, size_t which)
{
    for (size_t i = 0; i < which; i++)
        if (strcmp(graph_op->fx[i].key, graph_op->fx[which].key) == 0)
            return true;
    return false;
}

static size_t count_keys(const struct graph_op *graph_op)
{
    size_t keys = 0;
    for (size_t i = 0; i < graph_op->fx_count; i++)
        keys += !is_repeated(graph_op, i);
    return keys;
}

/* The output of the node that the graph text names for an output of the operator, or NULL. */
static const struct graph_fx *named_output(const struct graph_op *graph_op, const char *key,
                                           size_t output)
{
    for (size_t i = 0; i < graph_op->fx_count; i++) {
        const struct graph_fx *fx = &graph_op->fx[i];
        if (fx->output == output && fx->fx_output >= 0 && strcmp(fx->key, key) == 0)
            return fx;
    }
    return NULL;
}

/* An output without a file: an error where the graph text names one. What belongs to another node
 * of the same operator is not this node's to miss. */
static void miss_output(struct pairing *pairing, const struct air_op *op,
                        const struct graph_op *graph_op, const char *key,
                        const struct ge_tensor *tensor, size_t output)
{
    const struct graph_fx *fx = named_output(graph_op, key, output);
    if (fx)
        pair_lone(pairing, AIR_MISSING, op->name, side_ge(op, tensor), side_none(),
                  arena_printf(pairing->arena,
                               "the FX dump has no output %" PRId64 " of its node %s",
                               fx->fx_output, key));
    else if (count_keys(graph_op) == 1)
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, tensor), side_none(),
                  "the FX node has no such output");
}

/* Outputs of a node: where the graph says which GE output is which of the node's, that decides. */
static void pair_outputs(struct pairing *pairing, struct air_op *op, const struct ge_file *ge,
                         const struct graph_op *graph_op, size_t which, const struct air_node *node)
{
    const struct air_fx_list *list = &node->list[1];
    bool only = count_keys(graph_op) == 1;
    struct slots slots = {0};
    slots.count = ge->output_count + list->count;
    slots.files = arena_array(pairing->arena, slots.count, sizeof *slots.files);
    bool *placed = arena_array(pairing->arena, list->count, sizeof *placed);
    if (!slots.files || !placed) {
        pairing->failed = true;
        return;
    }
    for (size_t i = 0; i < graph_op->fx_count; i++) {
        const struct graph_fx *fx = &graph_op->fx[i];
        if (strcmp(fx->key, graph_op->fx[which].key) != 0 || fx->output >= ge->output_count)
            continue;
        for (size_t k = 0; k < list->count; k++)
            if (!placed[k] && fx->fx_output >= 0 &&
                list->files[k].index == (uint64_t)fx->fx_output && !slots.files[fx->output]) {
                slots.files[fx->output] = &list->files[k];
                placed[k] = true;
            }
    }
    size_t end = ge->output_count;
    for (size_t k = 0; k < list->count; k++) {
        uint64_t number = list->files[k].index;
        if (placed[k])
            continue;
        bool fits = number < ge->output_count && !slots.files[number] && only;
        slots.files[fits ? number : end++] = &list->files[k];
    }
    for (size_t i = 0; i < end; i++) {
        const struct ge_tensor *tensor = tensor_at(ge, true, i);
        const struct air_fx_file *file = slots.files[i];
        if (tensor && file)
            pair_two(pairing, op->name, side_ge(op, tensor), side_file(file->path));
        else if (tensor)
            miss_output(pairing, op, graph_op, graph_op->fx[which].key, tensor, i);
        else if (file)
            pair_lone(pairing, AIR_ALONE, op->name, side_none(), side_file(file->path),
                      "the GE file has no such output");
    }
}

static void say_missing(struct pairing *pairing, const struct air_op *op, const char *key)
{
    pair_lone(pairing, AIR_MISSING, op->name, side_ge(op, NULL), side_none(),
              arena_printf(pairing->arena, "the FX dump has nothing of its node %s", key));
}

static void say_unnamed(struct pairing *pairing, const struct air_op *op)
{
    pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
              "the graph text names no FX tensor for this operator");
}

static void pair_single(struct pairing *pairing, struct air_op *op, const struct graph_op *graph_op)
{
    const struct ge_file *ge = NULL;
    for (size_t i = 0; i < graph_op->fx_count && !pairing->failed; i++) {
        struct air_node *node = air_find_node(pairing->golden, graph_op->fx[i].key);
        if (is_repeated(graph_op, i))
            continue;
        if (!node) {
            say_missing(pairing, op, graph_op->fx[i].key);
            continue;
        }
        node->used = true;
        bool first = !ge;
        if (first)
            ge = pair_open(pairing, op, true);
        if (!ge)
            return;
        struct fx_places places = fx_place(pairing, graph_op, &node->list[0], ge);
        pair_inputs(pairing, op, ge, &places);
        pair_outputs(pairing, op, ge, graph_op, i, node);
    }
    if (!graph_op->fx_count)
        say_unnamed(pairing, op);
}

static void pair_fused(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts)
{
    const struct graph_op *last = parts->ops[parts->count - 1];
    const struct ge_file *ge = pair_open(pairing, op, true);
    if (!ge)
        return;
    struct fx_places inputs = fx_place_fused(pairing, parts, ge);
    const struct graph_op *first = parts->ops[0];
    if (first->fx_count && !air_find_node(pairing->golden, first->fx[0].key))
        say_missing(pairing, op, first->fx[0].key);
    pair_inputs(pairing, op, ge, &inputs);
    for (size_t i = 0; i < last->fx_count && !pairing->failed; i++) {
        struct air_node *node = air_find_node(pairing->golden, last->fx[i].key);
        if (is_repeated(last, i))
            continue;
        if (!node) {
            say_missing(pairing, op, last->fx[i].key);
            continue;
        }
        node->used = true;
        pair_outputs(pairing, op, ge, last, i, node);
    }
    if (!last->fx_count)
        say_unnamed(pairing, op);
}

/* What the compiler put in to move or convert data should give what it takes. */
static void pair_with_itself(struct pairing *pairing, struct air_op *op)
{
    const struct ge_file *ge = pair_open(pairing, op, true);
    for (size_t i = 0; ge && i < ge->input_count && i < ge->output_count; i++)
        pair_two(pairing, op->name, side_ge(op, &ge->outputs[i]), side_ge(op, &ge->inputs[i]));
}

/* "a_b" may be the file of "a.b" or of "a_b"; a file that is called "a.b" is not in doubt. */
static bool is_unclear(const struct air_op *op, const struct graph_op *graph_op)
{
    return graph_op->shared &&
           (strcmp(op->name, op->key) == 0 || strcmp(op->name, graph_op->name) != 0);
}

void pair_with_fx(struct pairing *pairing, struct air_op *op)
{
    struct pair_parts parts = pair_split(pairing, op);
    if (pairing->failed)
        return;
    if (parts.count && pairing->rules->pair_fx)
        pairing->rules->pair_fx(pairing, op, &parts);
    else if (parts.count == 1 && is_unclear(op, parts.ops[0]))
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
                  "several operators of the graph have this name in files");
    else if (parts.count == 1)
        pair_single(pairing, op, parts.ops[0]);
    else if (parts.count > 1)
        pair_fused(pairing, op, &parts);
    else if (strstr(op->type, "Cast") || strstr(op->type, "TransData"))
        pair_with_itself(pairing, op);
    else if (!pairing->rules->pairs_only)
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
                  "the graph text has no operator of this name");
}
