/* Which FX file belongs to which input of a GE file. */
#define _GNU_SOURCE
#include "pair/fx_inputs.h"

#include "base/mapped.h"
#include "plumb/run.h"

#include <string.h>

/* Text and Python objects, by the header of the .npy file. */
static bool holds_objects(const char *path)
{
    struct mapped in;
    char head[160] = "";
    if (mapped_open(&in, path, NULL))
        return false;
    size_t size = in.file.size < sizeof head - 1 ? (size_t)in.file.size : sizeof head - 1;
    if (size)
        memcpy(head, in.file.data, size);
    mapped_close(&in, PLUMB_OK, NULL);
    const char *descr = memmem(head, size, "'descr': '", 10);
    if (!descr)
        return false;
    descr += 10;
    descr += *descr && strchr("<>|=", *descr);
    return *descr && strchr("OSaU", *descr);
}

void fx_look(struct air_fx_file *file)
{
    struct plumb_run *run;
    if (file->kind != AIR_FX_UNSEEN)
        return;
    file->kind = AIR_FX_TENSOR;
    file->count = UINT64_MAX;
    if (plumb_run_open(&run, file->path, NULL)) {
        if (holds_objects(file->path))
            file->kind = AIR_FX_OBJECT;
        return;
    }
    const struct plumb_record *record = plumb_run_count(run) ? plumb_run_record(run, 0) : NULL;
    if (record && !record->error) {
        enum plumb_kind kind = plumb_dtype_info(record->dtype)->kind;
        bool whole = kind == PLUMB_KIND_BOOL || kind == PLUMB_KIND_INT;
        file->count = record->count;
        if (record->ndim == 0 || (record->ndim == 1 && (whole || !record->count)))
            file->kind = AIR_FX_PLAIN;
    }
    plumb_run_free(run);
}

static uint64_t count_of(const struct ge_tensor *tensor)
{
    const struct ge_dims *dims = tensor->original.rank ? &tensor->original : &tensor->shape;
    uint64_t count = 1;
    for (unsigned i = 0; i < dims->rank; i++)
        count *= dims->dim[i];
    return count;
}

static bool make_room(struct pairing *pairing, struct fx_places *places, size_t inputs,
                      size_t files)
{
    *places = (struct fx_places){
        .files = arena_array(pairing->arena, inputs, sizeof *places->files),
        .loose = arena_array(pairing->arena, inputs, sizeof *places->loose),
        .left = arena_array(pairing->arena, files, sizeof *places->left),
        .count = inputs,
        .why = "the FX node has no such input",
    };
    if (!places->files || !places->loose || !places->left)
        pairing->failed = true;
    return !pairing->failed;
}

/* Those of a list that may be tensors; the others are left. */
static const struct air_fx_file **possible(struct pairing *pairing, struct air_fx_list *list,
                                           struct fx_places *places, size_t *count)
{
    const struct air_fx_file **files = arena_array(pairing->arena, list->count, sizeof *files);
    *count = 0;
    if (!files) {
        pairing->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++) {
        fx_look(&list->files[i]);
        if (list->files[i].kind == AIR_FX_OBJECT)
            places->left[places->left_count++] = &list->files[i];
        else
            files[(*count)++] = &list->files[i];
    }
    return files;
}

static size_t count_tensors(const struct air_fx_file **files, size_t count)
{
    size_t tensors = 0;
    for (size_t i = 0; i < count; i++)
        tensors += files[i]->kind == AIR_FX_TENSOR;
    return tensors;
}

/* Numbers place the files unless they name more places than there are. A single list argument is
 * numbered inside. */
static bool numbers_fit(const struct air_fx_file **files, size_t count, size_t places, bool *inner)
{
    bool one = true;
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++)
        one = one && files[i]->index == files[0]->index;
    *inner = count > 1 && one;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = *inner ? files[i]->inner : files[i]->index;
        if ((!*inner && files[i]->inner) || (i && number == last) || number >= places)
            return false;
        last = number;
    }
    return true;
}

/* In order; what may be no tensor is passed over where it has another size than the input. */
static void place_in_order(struct fx_places *places, const struct air_fx_file **files, size_t count,
                           const struct ge_file *ge)
{
    bool only_tensors = count_tensors(files, count) == places->count;
    size_t next = 0;
    for (size_t i = 0; i < count; i++) {
        bool plain = files[i]->kind == AIR_FX_PLAIN;
        bool fits = next < places->count &&
                    (!plain || (!only_tensors && files[i]->count == count_of(&ge->inputs[next])));
        if (fits)
            places->files[next++] = files[i];
        else
            places->left[places->left_count++] = files[i];
    }
}

/* The operator that the n-th input comes from; *known: the graph says how many inputs there are. */
static const struct graph_op *source_of(const struct pairing *pairing,
                                        const struct graph_op *graph_op, size_t n, bool *known)
{
    size_t seen = 0;
    for (size_t i = 0; i < graph_op->input_count; i++) {
        const char *name = graph_op->inputs[i];
        if (pair_is_control(graph_op->sources[i]))
            continue;
        if (seen++ == n)
            return graph_find(pairing->graph, name, strlen(name));
    }
    *known = seen > 0;
    return NULL;
}

static bool is_loose(const struct pairing *pairing, const struct graph_op *graph_op, size_t input,
                     const struct air_fx_file *file)
{
    bool beyond = false;
    if (!file || file->kind != AIR_FX_PLAIN)
        return false;
    const struct graph_op *source = source_of(pairing, graph_op, input, &beyond);
    return beyond || (source && source->constant);
}

struct fx_places fx_place(struct pairing *pairing, const struct graph_op *graph_op,
                          struct air_fx_list *list, const struct ge_file *ge)
{
    struct fx_places places;
    size_t count;
    bool inner;
    if (!make_room(pairing, &places, ge->input_count, list->count))
        return (struct fx_places){0};
    const struct air_fx_file **files = possible(pairing, list, &places, &count);
    if (!files)
        return (struct fx_places){0};
    if (numbers_fit(files, count, places.count, &inner)) {
        for (size_t i = 0; i < count; i++)
            places.files[inner ? files[i]->inner : files[i]->index] = files[i];
    } else {
        place_in_order(&places, files, count, ge);
    }
    for (size_t i = 0; i < places.count; i++)
        places.loose[i] = is_loose(pairing, graph_op, i, places.files[i]);
    return places;
}

/* What parts take from outside: from where, and the FX file of it, if there is one. */
struct outside {
    const char **sources;
    const struct air_fx_file **files;
    bool *loose;
    size_t count;
};

static bool make_outside(struct pairing *pairing, const struct pair_parts *parts,
                         struct outside *outside, size_t *files)
{
    size_t most = 0;
    *files = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct graph_op *part = parts->ops[i];
        const struct air_node *node =
            part->fx_count ? air_find_node(pairing->golden, part->fx[0].key) : NULL;
        most += part->input_count;
        *files += node ? node->list[0].count : 0;
    }
    *outside = (struct outside){
        .sources = arena_array(pairing->arena, most, sizeof *outside->sources),
        .files = arena_array(pairing->arena, most, sizeof *outside->files),
        .loose = arena_array(pairing->arena, most, sizeof *outside->loose),
    };
    if (!outside->sources || !outside->files || !outside->loose)
        pairing->failed = true;
    return !pairing->failed;
}

/* The files of a part, if they are as many as its inputs: all of them, or those that are tensors
 * for sure. */
static const struct air_fx_file **files_of(struct pairing *pairing, struct air_node *node,
                                           size_t inputs, struct fx_places *places)
{
    size_t count, kept = 0;
    if (!node)
        return NULL;
    node->used = true;
    const struct air_fx_file **files = possible(pairing, &node->list[0], places, &count);
    if (!files || count == inputs)
        return files;
    if (count_tensors(files, count) != inputs)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (files[i]->kind == AIR_FX_TENSOR)
            files[kept++] = files[i];
        else
            places->left[places->left_count++] = files[i];
    }
    return files;
}

static void add_part(struct pairing *pairing, const struct pair_parts *parts,
                     const struct graph_op *part, struct fx_places *places, struct outside *outside)
{
    struct air_node *node = part->fx_count ? air_find_node(pairing->golden, part->fx[0].key) : NULL;
    size_t inputs = 0, number = 0;
    for (size_t i = 0; i < part->input_count; i++)
        inputs += !pair_is_control(part->sources[i]);
    const struct air_fx_file **files = files_of(pairing, node, inputs, places);
    for (size_t i = 0; i < part->input_count; i++) {
        if (pair_is_control(part->sources[i]))
            continue;
        const struct air_fx_file *file = files ? files[number] : NULL;
        number++;
        if (pair_is_part(parts, part->inputs[i]))
            continue;
        outside->sources[outside->count] = part->sources[i];
        outside->loose[outside->count] = is_loose(pairing, part, number - 1, file);
        outside->files[outside->count++] = file;
    }
}

struct fx_places fx_place_fused(struct pairing *pairing, const struct pair_parts *parts,
                                const struct ge_file *ge)
{
    struct fx_places places;
    struct outside outside;
    size_t files;
    if (!make_outside(pairing, parts, &outside, &files) ||
        !make_room(pairing, &places, ge->input_count, files))
        return (struct fx_places){0};
    for (size_t i = 0; i < parts->count && !pairing->failed; i++)
        add_part(pairing, parts, parts->ops[i], &places, &outside);
    size_t *kept = arena_array(pairing->arena, outside.count, sizeof *kept);
    if (!kept || pairing->failed) {
        pairing->failed = true;
        return (struct fx_places){0};
    }
    size_t count = pair_choose_inputs(pairing, outside.sources, outside.count, places.count, kept);
    if (count == SIZE_MAX) {
        places.why = arena_printf(pairing->arena,
                                  "the parts of this fusion take %zu inputs from outside, its file "
                                  "has %zu: nothing says which is which",
                                  outside.count, places.count);
        return places;
    }
    places.why = "the FX nodes have no file of this input";
    for (size_t i = 0; i < count; i++) {
        places.files[i] = outside.files[kept[i]];
        places.loose[i] = outside.loose[kept[i]];
    }
    return places;
}
