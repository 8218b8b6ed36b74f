/* A GE operator against the FX nodes that the graph text names for it. */
#define _GNU_SOURCE
#include "torchair/pair.h"

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

/* Numbers place the files unless they name more places than there are: then nodes have arguments
 * that GE does not, such as None, and the position counts. A single list argument is numbered
 * inside. */
static bool numbers_fit(const struct air_fx_list *list, size_t places, bool *inner)
{
    bool one = true;
    for (size_t i = 0; i < list->count; i++) {
        one = one && list->files[i].index == list->files[0].index;
    }
    *inner = list->count > 1 && one;
    uint64_t last = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t number = *inner ? list->files[i].inner : list->files[i].index;
        if (!*inner && list->files[i].inner)
            return false;
        if (i && number == last)
            return false;
        if (number >= places)
            return false;
        last = number;
    }
    return true;
}

static struct slots arrange(struct pairing *pairing, const struct air_fx_list *list, size_t places)
{
    size_t count = list->count > places ? list->count : places;
    struct slots slots = {arena_array(pairing->arena, count, sizeof *slots.files), count};
    bool inner;
    if (!slots.files) {
        pairing->failed = true;
        return (struct slots){0};
    }
    bool by_number = numbers_fit(list, places, &inner);
    for (size_t i = 0; i < list->count; i++) {
        const struct air_fx_file *file = &list->files[i];
        slots.files[!by_number ? i : inner ? file->inner : file->index] = file;
    }
    return slots;
}

static void pair_slots(struct pairing *pairing, struct air_op *op, const struct ge_file *ge,
                       bool outputs, const struct slots *slots)
{
    for (size_t i = 0; i < slots->count; i++) {
        const struct ge_tensor *tensor = tensor_at(ge, outputs, i);
        const struct air_fx_file *file = slots->files[i];
        if (tensor && file)
            pair_two(pairing, op->name, side_ge(op, tensor), side_file(file->path));
        else if (tensor)
            pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, tensor), side_none(),
                      outputs ? "the FX node has no such output" : "the FX node has no such input");
        else if (file)
            pair_lone(pairing, AIR_ALONE, op->name, side_none(), side_file(file->path),
                      "the GE file has no such tensor");
    }
}

/* Pairs by position, as far as both go. */
static void pair_zip(struct pairing *pairing, struct air_op *op, const struct ge_file *ge,
                     bool outputs, const struct air_fx_list *list)
{
    for (size_t i = 0; i < list->count && tensor_at(ge, outputs, i); i++)
        pair_two(pairing, op->name, side_ge(op, tensor_at(ge, outputs, i)),
                 side_file(list->files[i].path));
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
    /* Outputs that belong to another node of the same operator are not this node's to miss. */
    for (size_t i = 0; i < end; i++) {
        const struct ge_tensor *tensor = tensor_at(ge, true, i);
        const struct air_fx_file *file = slots.files[i];
        if (tensor && file)
            pair_two(pairing, op->name, side_ge(op, tensor), side_file(file->path));
        else if (tensor && only)
            pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, tensor), side_none(),
                      "the FX node has no such output");
        else if (file)
            pair_lone(pairing, AIR_ALONE, op->name, side_none(), side_file(file->path),
                      "the GE file has no such output");
    }
}

static void say_missing(struct pairing *pairing, const struct air_op *op, const char *key)
{
    pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
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
        struct slots slots = arrange(pairing, &node->list[0], ge->input_count);
        pair_slots(pairing, op, ge, false, &slots);
        pair_outputs(pairing, op, ge, graph_op, i, node);
    }
    if (!graph_op->fx_count)
        say_unnamed(pairing, op);
}

/* Only the rows of the last name remain, but all have taken numbers. */
static void pair_single_as_origin(struct pairing *pairing, struct air_op *op,
                                  const struct graph_op *graph_op)
{
    size_t start = pairing->rows->count;
    for (size_t i = 0; i < graph_op->fx_count; i++) {
        struct air_node *node = air_find_node(pairing->golden, graph_op->fx[i].key);
        const struct ge_file *ge = node ? pair_open(pairing, op, true) : NULL;
        if (node && !ge)
            return;
        if (!node)
            continue;
        pairing->rows->count = start;
        pair_zip(pairing, op, ge, false, &node->list[0]);
        pair_zip(pairing, op, ge, true, &node->list[1]);
    }
}

static void pair_fused_as_origin(struct pairing *pairing, struct air_op *op,
                                 const struct pair_parts *parts)
{
    for (int outputs = 0; outputs < 2; outputs++) {
        const struct graph_op *graph_op = parts->ops[outputs ? parts->count - 1 : 0];
        for (size_t i = 0; i < graph_op->fx_count; i++) {
            struct air_node *node = air_find_node(pairing->golden, graph_op->fx[i].key);
            const struct ge_file *ge = node ? pair_open(pairing, op, true) : NULL;
            if (node && !ge)
                return;
            if (node)
                pair_zip(pairing, op, ge, outputs, &node->list[outputs]);
        }
    }
}

static bool is_part(const struct pair_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->ops[i]->name, name) == 0)
            return true;
    return false;
}

/* The inputs of a fusion: those of its first operator, then what further ones take from outside, as
 * long as FX and the graph agree on what their inputs are. */
static struct slots fused_inputs(struct pairing *pairing, const struct pair_parts *parts)
{
    struct slots slots = {0};
    size_t room = 0;
    for (int fill = 0; fill < 2; fill++) {
        slots.count = 0;
        for (size_t i = 0; i < parts->count; i++) {
            const struct graph_op *part = parts->ops[i];
            struct air_node *node =
                part->fx_count ? air_find_node(pairing->golden, part->fx[0].key) : NULL;
            if (node)
                node->used = true;
            if (!node || (i && node->list[0].count != part->input_count)) {
                if (i)
                    continue;
                break;
            }
            for (size_t k = 0; k < node->list[0].count; k++) {
                if (i && is_part(parts, part->inputs[k]))
                    continue;
                if (fill)
                    slots.files[slots.count] = &node->list[0].files[k];
                slots.count++;
            }
        }
        if (!fill) {
            room = slots.count;
            slots.files = arena_array(pairing->arena, room, sizeof *slots.files);
            if (!slots.files) {
                pairing->failed = true;
                return (struct slots){0};
            }
        }
    }
    return slots;
}

/* As many places as the GE file has inputs: what lacks is a row, too. */
static struct slots widen(struct pairing *pairing, struct slots slots, size_t places)
{
    if (slots.count >= places)
        return slots;
    const struct air_fx_file **files = arena_array(pairing->arena, places, sizeof *files);
    if (!files) {
        pairing->failed = true;
        return slots;
    }
    if (slots.count)
        memcpy(files, slots.files, slots.count * sizeof *files);
    return (struct slots){files, places};
}

static void pair_fused(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts)
{
    const struct graph_op *last = parts->ops[parts->count - 1];
    struct slots inputs = fused_inputs(pairing, parts);
    const struct ge_file *ge = pairing->failed ? NULL : pair_open(pairing, op, true);
    if (!ge)
        return;
    const struct graph_op *first = parts->ops[0];
    if (first->fx_count && !air_find_node(pairing->golden, first->fx[0].key))
        say_missing(pairing, op, first->fx[0].key);
    inputs = widen(pairing, inputs, ge->input_count);
    if (!pairing->failed)
        pair_slots(pairing, op, ge, false, &inputs);
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
    if (parts.count == 1 && pairing->origin)
        pair_single_as_origin(pairing, op, parts.ops[0]);
    else if (parts.count == 1 && is_unclear(op, parts.ops[0]))
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
                  "several operators of the graph have this name in files");
    else if (parts.count == 1)
        pair_single(pairing, op, parts.ops[0]);
    else if (parts.count > 1 && pairing->origin)
        pair_fused_as_origin(pairing, op, &parts);
    else if (parts.count > 1)
        pair_fused(pairing, op, &parts);
    else if (strstr(op->type, "Cast") || strstr(op->type, "TransData"))
        pair_with_itself(pairing, op);
    else if (!pairing->origin)
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
                  "the graph text has no operator of this name");
}
