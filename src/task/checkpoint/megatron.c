/* Megatron checkpoints: a part a tensor, pipeline and expert parallel rank, each with its own
 * layers and experts counted from 0. */
#define _GNU_SOURCE
#include "task/checkpoint/names.h"
#include "task/checkpoint/parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CHUNKS = 64, /* pieces of the model that one pipeline stage holds */
    MAX_PREFIXES = 32,
};

/* The layers of one prefix, "decoder.layers.". Chunk v of stage p comes at v * pp + p in the
 * model. */
struct layers {
    int64_t *count; /* in each chunk */
    int64_t *first; /* the number that the first layer of each chunk has in the whole model */
};

struct model {
    struct checkpoint *ckpt;
    struct parts parts;
    size_t chunks; /* of each stage */
    struct layers layers[MAX_PREFIXES];
    size_t prefixes;
    struct map by_prefix;
    int64_t most_experts; /* that any part holds */
};

/* The name inside the model, and in which chunk of it; NULL for what is not the model's, such as
 * the state of the optimizer. A part has "model", or "model0", "model1", ... */
static const char *model_name(const char *name, bool single, size_t *chunk)
{
    *chunk = 0;
    if (strncmp(name, "model", 5) != 0)
        return NULL;
    name += 5;
    if (single)
        return *name == '.' ? name + 1 : NULL;
    char *end;
    if (*name < '0' || *name > '9')
        return NULL;
    unsigned long number = strtoul(name, &end, 10);
    if (*end != '.' || number >= MAX_CHUNKS)
        return NULL;
    *chunk = number;
    return end + 1;
}

/* Today's name, unless the part has another weight that is called so. */
static const char *core_name(struct model *model, const char *name, const struct map *own)
{
    const char *core = names_to_core(&model->ckpt->arena, name);
    bool taken = core && core != name && map_get(own, core, strlen(core));
    return taken && !model->ckpt->rules->renames_all ? name : core;
}

static enum plumb_code name_record(struct model *model, struct part *part, size_t i,
                                   const struct map *own)
{
    struct names_index index;
    part->names[i] = core_name(model, part->names[i], own);
    if (!part->names[i])
        return PLUMB_E_NOMEM;
    if (part->chunks[i] >= model->chunks)
        model->chunks = part->chunks[i] + 1;
    if (names_expert(part->names[i], model->ckpt->rules, &index) &&
        index.value >= model->most_experts)
        model->most_experts = index.value + 1;
    return PLUMB_OK;
}

/* Which records are weights, and what they are called today. */
static enum plumb_code name_records(struct model *model, struct part *part)
{
    struct arena *arena = &model->ckpt->arena;
    struct map own = {0};
    size_t count = plumb_run_count(part->run), chunk;
    part->names = arena_array(arena, count, sizeof *part->names);
    part->chunks = arena_array(arena, count, sizeof *part->chunks);
    if (!part->names || !part->chunks)
        return PLUMB_E_NOMEM;
    bool single = false;
    for (size_t i = 0; i < count && !single; i++)
        single = model_name(plumb_run_record(part->run, i)->name, true, &chunk);
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const char *name =
            model_name(plumb_run_record(part->run, i)->name, single, &part->chunks[i]);
        part->names[i] = name;
        if (name && !map_put(&own, name, strlen(name), NULL))
            code = PLUMB_E_NOMEM;
    }
    for (size_t i = 0; i < count && !code; i++)
        if (part->names[i])
            code = name_record(model, part, i, &own);
    map_free(&own);
    return code;
}

static size_t chunks_in_all(const struct model *model)
{
    return model->chunks * model->parts.sizes.pp;
}

/* *layers is NULL for what is beyond the prefixes that any model has. */
static enum plumb_code find_layers(struct model *model, const char *name,
                                   const struct names_index *index, struct layers **layers)
{
    bool added;
    uint64_t *place = map_put(&model->by_prefix, name, index->at, &added);
    if (!place)
        return PLUMB_E_NOMEM;
    if (added)
        *place = model->prefixes < MAX_PREFIXES ? model->prefixes++ : MAX_PREFIXES;
    *layers = *place < MAX_PREFIXES ? &model->layers[*place] : NULL;
    if (!added || !*layers)
        return PLUMB_OK;
    struct arena *arena = &model->ckpt->arena;
    (*layers)->count = arena_array(arena, chunks_in_all(model), sizeof *(*layers)->count);
    (*layers)->first = arena_array(arena, chunks_in_all(model), sizeof *(*layers)->first);
    return (*layers)->count && (*layers)->first ? PLUMB_OK : PLUMB_E_NOMEM;
}

static enum plumb_code count_layers(struct model *model, const struct part *part)
{
    for (size_t i = 0; i < plumb_run_count(part->run); i++) {
        struct names_index index;
        struct layers *layers;
        if (!part->names[i] || !names_layer(part->names[i], &index))
            continue;
        if (find_layers(model, part->names[i], &index, &layers))
            return PLUMB_E_NOMEM;
        if (!layers)
            continue;
        int64_t *count = &layers->count[part->chunks[i] * model->parts.sizes.pp + part->pp];
        if (index.value >= *count)
            *count = index.value + 1;
    }
    return PLUMB_OK;
}

/* As many as the largest chunk of the first stage has, whatever its prefix. */
static int64_t even_layers(const struct model *model)
{
    int64_t most = 0;
    for (size_t p = 0; p < model->parts.sizes.pp && !most; p++)
        for (size_t i = 0; i < model->prefixes; i++)
            for (size_t v = 0; v < model->chunks; v++) {
                int64_t count = model->layers[i].count[v * model->parts.sizes.pp + p];
                most = count > most ? count : most;
            }
    return most ? most : 1;
}

/* Numbers the layers through. Stages of which nothing could be read are taken to be as large as the
 * largest. */
static enum plumb_code number_layers(struct model *model)
{
    const struct sizes *sizes = &model->parts.sizes;
    bool *known = arena_array(&model->ckpt->arena, sizes->pp, sizeof *known);
    if (!known)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < model->parts.count; i++)
        if (model->parts.list[i].run)
            known[model->parts.list[i].pp] = true;
    int64_t even = model->ckpt->rules->even_chunks ? even_layers(model) : 0;
    for (size_t i = 0; i < model->prefixes; i++) {
        struct layers *layers = &model->layers[i];
        int64_t most = 0, next = 0;
        for (size_t c = 0; c < chunks_in_all(model); c++)
            most = layers->count[c] > most ? layers->count[c] : most;
        for (size_t c = 0; c < chunks_in_all(model); c++) {
            layers->first[c] = next;
            next += even ? even : known[c % sizes->pp] ? layers->count[c] : most;
        }
    }
    return PLUMB_OK;
}

/* Layers that come before the chunk's own. */
static int64_t layers_before(const struct model *model, const char *name,
                             const struct names_index *index, size_t chunk)
{
    const uint64_t *place = map_get(&model->by_prefix, name, index->at);
    return place && *place < MAX_PREFIXES ? model->layers[*place].first[chunk] : 0;
}

/* The name in the whole model of what a part calls name. */
static const char *whole_name(struct model *model, const char *name, size_t chunk,
                              const struct part *part)
{
    const struct sizes *sizes = &model->parts.sizes;
    struct names_index index;
    if (names_layer(name, &index)) {
        int64_t before = layers_before(model, name, &index, chunk * sizes->pp + part->pp);
        name = names_renumber(&model->ckpt->arena, name, &index, index.value + before);
    }
    int64_t experts = sizes->experts ? sizes->experts / (int64_t)sizes->ep : model->most_experts;
    if (model->ckpt->rules->plain_experts && !sizes->experts)
        return name;
    if (name && names_expert(name, model->ckpt->rules, &index))
        name = names_renumber(&model->ckpt->arena, name, &index,
                              index.value + (int64_t)part->ep * experts);
    return name;
}

/* The weights of one stage (of one expert rank), before they are joined. */
struct stage {
    struct part *parts; /* of its tensor parallel ranks */
    struct checkpoint_weight **weights;
    size_t count, capacity;
    struct map names; /* "NAME/CHUNK" -> weight */
};

static struct checkpoint_weight *new_weight(struct model *model, const char *name, size_t room)
{
    struct checkpoint_weight *weight = arena_alloc(&model->ckpt->arena, sizeof *weight);
    if (!weight)
        return NULL;
    weight->name = name;
    weight->parts = arena_array(&model->ckpt->arena, room, sizeof *weight->parts);
    return weight->parts ? weight : NULL;
}

static struct checkpoint_weight *stage_weight(struct model *model, struct stage *stage,
                                              const char *name, size_t chunk)
{
    bool added;
    const char *key = arena_printf(&model->ckpt->arena, "%s/%zu", name, chunk);
    uint64_t *place = key ? map_put(&stage->names, key, strlen(key), &added) : NULL;
    if (!place)
        return NULL;
    if (!added)
        return stage->weights[*place];
    if (stage->count == stage->capacity) {
        size_t capacity = stage->capacity ? stage->capacity * 2 : 64;
        struct checkpoint_weight **weights = realloc(stage->weights, capacity * sizeof(*weights));
        if (!weights)
            return NULL;
        stage->weights = weights;
        stage->capacity = capacity;
    }
    struct checkpoint_weight *weight = new_weight(model, name, model->parts.sizes.tp);
    *place = stage->count;
    if (weight)
        stage->weights[stage->count++] = weight;
    return weight;
}

static bool has_part(const struct checkpoint_weight *weight, const struct part *part)
{
    return weight->count && weight->parts[weight->count - 1].run == part->run;
}

/* Puts the records of a part where they belong. Two names that became one keep their own. */
static enum plumb_code sort_records(struct model *model, struct stage *stage, struct part *part)
{
    for (size_t i = 0; part->run && i < plumb_run_count(part->run); i++) {
        if (!part->names[i])
            continue;
        size_t chunk = part->chunks[i], ignored;
        struct checkpoint_weight *weight = stage_weight(model, stage, part->names[i], chunk);
        if (weight && has_part(weight, part)) {
            const char *own = plumb_run_record(part->run, i)->name;
            const char *inside = model_name(own, strncmp(own, "model.", 6) == 0, &ignored);
            weight = stage_weight(model, stage, inside ? inside : own, chunk);
            if (weight && has_part(weight, part)) {
                const char *what = arena_printf(&model->ckpt->arena,
                                                "%s has two tensors of this name", part->where);
                if (!what || checkpoint_add_fault(model->ckpt, own, what))
                    return PLUMB_E_NOMEM;
                continue;
            }
        }
        if (!weight)
            return PLUMB_E_NOMEM;
        weight->parts[weight->count++] =
            (struct checkpoint_part){.run = part->run, .record = i, .where = part->where};
    }
    return PLUMB_OK;
}

/* Each part has all of it: the first counts, the others are copies of it. */
static enum plumb_code part_copies(struct model *model, struct checkpoint_weight *weight)
{
    struct checkpoint_weight *last = weight;
    for (size_t i = 1; i < weight->count; i++) {
        struct checkpoint_weight *copy = new_weight(model, weight->name, 1);
        if (!copy)
            return PLUMB_E_NOMEM;
        copy->parts[copy->count++] = weight->parts[i];
        if (checkpoint_shape(model->ckpt, copy))
            return PLUMB_E_NOMEM;
        last->copy = copy;
        last = copy;
    }
    weight->count = 1;
    return PLUMB_OK;
}

/* A weight that lacks the share of a rank cannot be joined. */
static enum plumb_code check_complete(struct model *model, const struct stage *stage,
                                      struct checkpoint_weight *weight)
{
    size_t tp = model->parts.sizes.tp;
    if (weight->count == tp || model->ckpt->rules->joins_some)
        return PLUMB_OK;
    size_t lacking = 0, next = 0;
    for (size_t t = 0; t < tp; t++) {
        bool there = next < weight->count && weight->parts[next].run == stage->parts[t].run;
        next += there;
        if (!there) {
            lacking = t;
            break;
        }
    }
    weight->problem = arena_printf(&model->ckpt->arena,
                                   "cannot be joined: %zu of its %zu parts are there, that of %s "
                                   "is not",
                                   weight->count, tp, stage->parts[lacking].where);
    return weight->problem ? PLUMB_OK : PLUMB_E_NOMEM;
}

static enum plumb_code finish_weight(struct model *model, const struct stage *stage,
                                     struct checkpoint_weight *weight, size_t chunk)
{
    bool gated = model->parts.sizes.gated;
    weight->join = names_join(weight->name, gated, model->ckpt->rules);
    weight->name = whole_name(model, weight->name, chunk, stage->parts);
    if (!weight->name)
        return PLUMB_E_NOMEM;
    enum plumb_code code = weight->join == CKPT_WHOLE ? part_copies(model, weight)
                                                      : check_complete(model, stage, weight);
    if (weight->count == 1)
        weight->join = CKPT_WHOLE;
    if (!code && !weight->problem)
        code = checkpoint_shape(model->ckpt, weight);
    return code ? code : checkpoint_add_weight(model->ckpt, weight);
}

static enum plumb_code add_stage(struct model *model, struct part *parts)
{
    struct stage stage = {.parts = parts};
    enum plumb_code code = PLUMB_OK;
    for (size_t t = 0; t < model->parts.sizes.tp && !code; t++)
        code = sort_records(model, &stage, &parts[t]);
    for (size_t i = 0; i < stage.count && !code; i++) {
        const struct checkpoint_part *part = &stage.weights[i]->parts[0];
        size_t chunk = 0;
        for (size_t t = 0; t < model->parts.sizes.tp; t++)
            if (parts[t].run == part->run)
                chunk = parts[t].chunks[part->record];
        code = finish_weight(model, &stage, stage.weights[i], chunk);
    }
    map_free(&stage.names);
    free(stage.weights);
    return code;
}

static enum plumb_code build(struct model *model)
{
    enum plumb_code code = PLUMB_OK;
    struct parts *parts = &model->parts;
    model->chunks = 1;
    for (size_t i = 0; i < parts->count && !code; i++)
        if (parts->list[i].run)
            code = name_records(model, &parts->list[i]);
    for (size_t i = 0; i < parts->count && !code; i++)
        if (parts->list[i].run)
            code = count_layers(model, &parts->list[i]);
    if (!code)
        code = number_layers(model);
    for (size_t i = 0; i < parts->count && !code; i += parts->sizes.tp)
        code = add_stage(model, &parts->list[i]);
    return code;
}

enum plumb_code checkpoint_open_megatron(struct checkpoint *ckpt, const char *folder,
                                         struct plumb_error *err)
{
    struct model model = {.ckpt = ckpt};
    enum plumb_code code = parts_open(&model.parts, ckpt, folder, err);
    if (!code && build(&model))
        code = plumb_no_memory(err);
    map_free(&model.by_prefix);
    return code;
}
