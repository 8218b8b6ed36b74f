/* Graph dumps as msProbe reads and pairs them: by position, as far as both sides go. */
#define _GNU_SOURCE
#include "msprobe/graph.h"
#include "pair/graph_names.h"

#include <math.h>
#include <string.h>

/* The operator is all but the first and the last three fields. */
static bool parse_name(const char *name, struct ge_name *parts)
{
    const char *first = strchr(name, '.'), *behind = name + strlen(name), *last = NULL;
    for (int i = 0; i < 3 && behind; i++) {
        behind = memrchr(name, '.', (size_t)(behind - name));
        if (!last)
            last = behind;
    }
    if (!first || !behind || behind <= first)
        return false;
    *parts = (struct ge_name){.type_length = (size_t)(first - name),
                              .op = first + 1,
                              .op_length = (size_t)(behind - first - 1),
                              .timestamp = last + 1,
                              .timestamp_length = strlen(last + 1)};
    return true;
}

/* Files this short are operators without tensors. */
static bool is_nothing(const char *path)
{
    struct plumb_file file;
    if (plumb_file_map(&file, path, 0, UINT64_MAX, NULL))
        return false;
    bool nothing = file.size > 0 && file.size <= 8;
    plumb_file_unmap(&file);
    return nothing;
}

static bool is_dumped(const struct pairing *pairing, const char *name, size_t length)
{
    return air_find_op(pairing->target, name, length) ||
           (pairing->golden->op_count && air_find_op(pairing->golden, name, length));
}

static void split(struct pairing *pairing, const char *name, struct pair_parts *parts)
{
    size_t left = strlen(name);
    while (left) {
        const struct graph_op *found = NULL;
        size_t length = left;
        for (; length && !found; length--) {
            found = graph_find(pairing->graph, name, length);
            /* A dumped operator that the graph does not know: what follows cannot be told apart. */
            if (!found && length < left && is_dumped(pairing, name, length))
                return;
        }
        if (!found)
            return;
        length++;
        pair_add_part(parts, found);
        name += length;
        left -= length;
    }
}

/* -- GE against FX ----------------------------------------------------------------------------- */

static void pair_files(struct pairing *pairing, const struct air_op *op,
                       const struct ge_tensor *tensors, size_t count,
                       const struct air_fx_list *list)
{
    for (size_t i = 0; i < list->count && i < count; i++)
        pair_two(pairing, op->name, side_ge(op, &tensors[i]), side_file(list->files[i].path));
}

static void pair_node(struct pairing *pairing, const struct air_op *op, const struct ge_file *ge,
                      bool outputs, const struct air_node *node)
{
    pair_files(pairing, op, outputs ? ge->outputs : ge->inputs,
               outputs ? ge->output_count : ge->input_count, &node->list[outputs]);
}

/* Only the rows of the last name remain, but all have taken numbers. */
static void pair_single(struct pairing *pairing, struct air_op *op, const struct graph_op *graph_op)
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
        pair_node(pairing, op, ge, false, node);
        pair_node(pairing, op, ge, true, node);
    }
}

/* The inputs of the first part, the outputs of the last. */
static void pair_fx(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts)
{
    if (parts->count == 1) {
        pair_single(pairing, op, parts->ops[0]);
        return;
    }
    for (int outputs = 0; outputs < 2; outputs++) {
        const struct graph_op *graph_op = parts->ops[outputs ? parts->count - 1 : 0];
        for (size_t i = 0; i < graph_op->fx_count; i++) {
            struct air_node *node = air_find_node(pairing->golden, graph_op->fx[i].key);
            const struct ge_file *ge = node ? pair_open(pairing, op, true) : NULL;
            if (node && !ge)
                return;
            if (node)
                pair_node(pairing, op, ge, outputs, node);
        }
    }
}

/* -- GE against GE ----------------------------------------------------------------------------- */

static void pair_tensors(struct pairing *pairing, const struct air_op *op,
                         const struct ge_tensor *tensors, size_t count,
                         const struct air_side *partners, size_t partner_count)
{
    for (size_t i = 0; i < count && i < partner_count; i++)
        pair_two(pairing, op->name, side_ge(op, &tensors[i]), partners[i]);
}

static struct air_side *sides_of(struct pairing *pairing, const struct air_op *op,
                                 const struct ge_tensor *tensors, size_t count)
{
    struct air_side *sides = arena_array(pairing->arena, count, sizeof *sides);
    pairing->failed = pairing->failed || !sides;
    for (size_t i = 0; sides && i < count; i++)
        sides[i] = side_ge(op, &tensors[i]);
    return sides;
}

/* Appends the inputs of one part that come from outside the fusion; those of a part without a file
 * count as empty. Returns how many there are now. */
static size_t add_inputs(struct air_side *inputs, size_t count, const struct pair_parts *parts,
                         const struct graph_op *part, const struct air_op *golden,
                         const struct ge_file *ge)
{
    for (size_t i = 0; i < part->input_count; i++) {
        if (ge && i >= ge->input_count)
            break;
        if (pair_is_part(parts, part->inputs[i]))
            continue;
        inputs[count++] = ge ? side_ge(golden, &ge->inputs[i]) : (struct air_side){.assumed = true};
    }
    return count;
}

static void pair_fused(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts)
{
    const struct air_op *last = NULL;
    const struct ge_file *last_ge = NULL;
    size_t most = 0, count = 0;
    for (size_t i = 0; i < parts->count; i++)
        most += parts->ops[i]->input_count;
    struct air_side *inputs = arena_array(pairing->arena, most, sizeof *inputs), *outputs = NULL;
    pairing->failed = pairing->failed || !inputs;
    for (size_t i = 0; i < parts->count && !pairing->failed; i++) {
        const char *key = parts->ops[i]->key;
        struct air_op *golden = air_find_op(pairing->golden, key, strlen(key));
        const struct ge_file *ge = golden ? pair_open(pairing, golden, false) : NULL;
        if (golden)
            golden->used = true;
        count = add_inputs(inputs, count, parts, parts->ops[i], golden, ge);
        if (ge) {
            last = golden;
            last_ge = ge;
        }
    }
    const struct ge_file *ge = pairing->failed ? NULL : pair_open(pairing, op, true);
    if (ge && last_ge)
        outputs = sides_of(pairing, last, last_ge->outputs, last_ge->output_count);
    if (!ge || pairing->failed)
        return;
    pair_tensors(pairing, op, ge->inputs, ge->input_count, inputs, count);
    pair_tensors(pairing, op, ge->outputs, ge->output_count, outputs,
                 last_ge ? last_ge->output_count : 0);
}

static void pair_plain(struct pairing *pairing, struct air_op *op, struct air_op *golden)
{
    golden->used = true;
    const struct ge_file *theirs = pair_open(pairing, golden, false);
    const struct ge_file *ours = theirs ? pair_open(pairing, op, true) : NULL;
    if (!ours)
        return;
    const struct air_side *inputs = sides_of(pairing, golden, theirs->inputs, theirs->input_count);
    const struct air_side *outputs =
        sides_of(pairing, golden, theirs->outputs, theirs->output_count);
    if (pairing->failed)
        return;
    pair_tensors(pairing, op, ours->inputs, ours->input_count, inputs, theirs->input_count);
    pair_tensors(pairing, op, ours->outputs, ours->output_count, outputs, theirs->output_count);
}

/* The name of the file says whether an operator is fused. */
static void pair_ge(struct pairing *pairing, struct air_op *op)
{
    static const char fusion[] = "AutomaticBufferFusionOp";
    struct air_op *golden = air_find_op(pairing->golden, op->key, strlen(op->key));
    if (strncmp(op->file, fusion, sizeof fusion - 1) != 0) {
        if (golden)
            pair_plain(pairing, op, golden);
        return;
    }
    struct pair_parts parts = pair_split(pairing, op);
    if (!pairing->failed)
        pair_fused(pairing, op, &parts);
}

/* -- Judging ----------------------------------------------------------------------------------- */

static bool is_finite(const struct air_shown *shown)
{
    return !shown->counted || (isfinite(shown->max) && isfinite(shown->min));
}

static bool is_int8(const struct air_shown *shown)
{
    return shown->dtype && strcmp(shown->dtype, "int8") == 0;
}

/* Only two finite vectors of the same length have metrics. */
static bool settle(double metric[AIR_METRICS], const struct air_shown shown[2], bool same_count,
                   uint64_t count)
{
    bool finite = is_finite(&shown[0]) && is_finite(&shown[1]);
    for (int i = 0; i < AIR_METRICS && (!same_count || !finite || !count); i++)
        metric[i] = NAN;
    return (!same_count && finite) || is_int8(&shown[0]) != is_int8(&shown[1]);
}

const struct graph_profile msprobe_graph = {
    .rules =
        {
            .reading = &msprobe_ge_reading,
            .parse_name = parse_name,
            .literal = true,
            .leaves = true,
            .in_place = true,
            .all_files = true,
            .by_target = true,
            .pairs_only = true,
            .graph_order = true,
            .is_nothing = is_nothing,
            .split = split,
            .pair_fx = pair_fx,
            .pair_ge = pair_ge,
        },
    .relative = PLUMB_REL_TORCHAIR,
    .real_parts = true,
    .settle = settle,
};
