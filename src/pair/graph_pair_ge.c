/* A GE operator against the file, or the files, of a run without fusion. */
#define _GNU_SOURCE
#include "pair/graph_pair.h"

#include <string.h>

/* The golden tensors that belong to the inputs or outputs of a target file. */
struct partners {
    struct air_side *sides;
    const char **why;     /* NULL, or why there is no tensor */
    const char **sources; /* of inputs of a fusion: where the graph says they come from */
    bool unclear;         /* none of them has a partner, since nothing says which */
    size_t count;
};

static bool make_room(struct pairing *pairing, struct partners *partners, size_t most)
{
    *partners = (struct partners){0};
    partners->sides = arena_array(pairing->arena, most, sizeof *partners->sides);
    partners->why = arena_array(pairing->arena, most, sizeof *partners->why);
    partners->sources = arena_array(pairing->arena, most, sizeof *partners->sources);
    if (!partners->sides || !partners->why || !partners->sources)
        pairing->failed = true;
    return !pairing->failed;
}

static void add(struct partners *partners, struct air_side side, const char *why)
{
    partners->sides[partners->count] = side;
    partners->why[partners->count++] = why;
}

static void pair_up(struct pairing *pairing, struct air_op *op, const struct ge_tensor *tensors,
                    size_t count, const struct partners *partners)
{
    size_t longest = count > partners->count ? count : partners->count;
    for (size_t i = 0; i < longest; i++) {
        struct air_side target = i < count ? side_ge(op, &tensors[i]) : side_none();
        struct air_side golden = i < partners->count ? partners->sides[i] : side_none();
        const char *why = i < partners->count ? partners->why[i] : NULL;
        if (i < count && i < partners->count && !why)
            pair_two(pairing, op->name, target, golden);
        else
            pair_lone(pairing, partners->unclear ? AIR_ALONE : AIR_MISSING, op->name, target,
                      golden,
                      why ? why
                          : (i < count ? "the golden run has no such tensor of this operator"
                                       : "the target run has no such tensor of this operator"));
    }
}

static struct air_op *golden_of(const struct pairing *pairing, const char *key)
{
    return air_find_op(pairing->golden, key, strlen(key));
}

/* Adds the inputs of one part that come from outside the fusion. */
static void add_inputs(struct pairing *pairing, const struct pair_parts *parts,
                       const struct graph_op *part, struct air_op *golden, const struct ge_file *ge,
                       struct partners *inputs)
{
    size_t number = 0;
    for (size_t i = 0; i < part->input_count; i++) {
        if (pair_is_control(part->sources[i]))
            continue;
        size_t place = number++;
        bool there = ge && place < ge->input_count;
        if (pair_is_part(parts, part->inputs[i]))
            continue;
        inputs->sources[inputs->count] = part->sources[i];
        if (there)
            add(inputs, side_ge(golden, &ge->inputs[place]), NULL);
        else
            add(inputs, side_none(),
                arena_printf(pairing->arena,
                             "the golden run has no %s of %s, which is part of this fusion",
                             ge ? "such input" : "readable file", part->name));
    }
}

/* Leaves as many as the fused operator has, or says that nobody knows which those are. */
static void choose_inputs(struct pairing *pairing, struct partners *inputs, size_t places)
{
    size_t *kept = arena_array(pairing->arena, inputs->count, sizeof *kept);
    size_t count =
        kept ? pair_choose_inputs(pairing, inputs->sources, inputs->count, places, kept) : SIZE_MAX;
    if (!kept || pairing->failed) {
        pairing->failed = true;
        return;
    }
    if (count != SIZE_MAX) {
        for (size_t i = 0; i < count; i++) {
            inputs->sides[i] = inputs->sides[kept[i]];
            inputs->why[i] = inputs->why[kept[i]];
        }
        inputs->count = count;
        return;
    }
    const char *why = arena_printf(pairing->arena,
                                   "the parts of this fusion take %zu inputs from outside, its "
                                   "file has %zu: nothing says which is which",
                                   inputs->count, places);
    if (!make_room(pairing, inputs, places))
        return;
    inputs->unclear = true;
    for (size_t i = 0; i < places; i++)
        add(inputs, side_none(), why);
}

static void pair_fused(struct pairing *pairing, struct air_op *op, const struct pair_parts *parts)
{
    struct partners inputs, outputs = {0};
    struct air_op *last = NULL;
    const struct ge_file *last_ge = NULL;
    size_t most = 0;
    for (size_t i = 0; i < parts->count; i++)
        most += parts->ops[i]->input_count;
    if (!make_room(pairing, &inputs, most))
        return;
    for (size_t i = 0; i < parts->count && !pairing->failed; i++) {
        struct air_op *golden = golden_of(pairing, parts->ops[i]->key);
        const struct ge_file *ge = golden ? pair_open(pairing, golden, false) : NULL;
        if (golden)
            golden->used = true;
        add_inputs(pairing, parts, parts->ops[i], golden, ge, &inputs);
        last = golden;
        last_ge = ge;
    }
    const struct ge_file *ge = pairing->failed ? NULL : pair_open(pairing, op, true);
    if (!ge || !make_room(pairing, &outputs, last_ge ? last_ge->output_count : ge->output_count))
        return;
    for (size_t i = 0; last_ge && i < last_ge->output_count; i++)
        add(&outputs, side_ge(last, &last_ge->outputs[i]), NULL);
    for (size_t i = 0; !last_ge && i < ge->output_count; i++)
        add(&outputs, side_none(),
            arena_printf(pairing->arena,
                         "the golden run has no readable file of %s, the last operator of this "
                         "fusion",
                         parts->ops[parts->count - 1]->name));
    choose_inputs(pairing, &inputs, ge->input_count);
    if (pairing->failed)
        return;
    pair_up(pairing, op, ge->inputs, ge->input_count, &inputs);
    pair_up(pairing, op, ge->outputs, ge->output_count, &outputs);
}

static void pair_plain(struct pairing *pairing, struct air_op *op, struct air_op *golden)
{
    struct partners partners;
    golden->used = true;
    const struct ge_file *theirs = pair_open(pairing, golden, false);
    const struct ge_file *ours = theirs ? pair_open(pairing, op, true) : NULL;
    if (!ours)
        return;
    for (int outputs = 0; outputs < 2; outputs++) {
        const struct ge_tensor *tensors = outputs ? theirs->outputs : theirs->inputs;
        size_t count = outputs ? theirs->output_count : theirs->input_count;
        if (!make_room(pairing, &partners, count))
            return;
        for (size_t i = 0; i < count; i++)
            add(&partners, side_ge(golden, &tensors[i]), NULL);
        pair_up(pairing, op, outputs ? ours->outputs : ours->inputs,
                outputs ? ours->output_count : ours->input_count, &partners);
    }
}

void pair_with_ge(struct pairing *pairing, struct air_op *op)
{
    struct air_op *golden = golden_of(pairing, op->key);
    struct pair_parts parts = {0};
    if (!golden)
        parts = pair_split(pairing, op);
    if (pairing->failed)
        return;
    if (parts.count > 1)
        pair_fused(pairing, op, &parts);
    else if (golden)
        pair_plain(pairing, op, golden);
    else
        pair_lone(pairing, AIR_ALONE, op->name, side_ge(op, NULL), side_none(),
                  "the golden run has no file of this operator");
}
