/* Dimensions with the axes of ranks that cut them, and meshes. The words are those of SGLang's dump
 * comparator: axis[:qualifier[+qualifier]], with fused=1:1:1, mean and scaled besides. */
#define _GNU_SOURCE
#include "pair/shards_dims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 1000000 };

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!(text[i] == '_' || (text[i] >= '0' && text[i] <= '9') ||
              (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')))
            return false;
    return length > 0 && length < SHARDS_WORD;
}

enum plumb_code shards_mesh_parse(struct shards_mesh *mesh, const char *text,
                                  struct plumb_error *err)
{
    *mesh = (struct shards_mesh){0};
    unsigned long all = 1;
    for (const char *p = text; *p;) {
        const size_t length = strcspn(p, ","), name = strcspn(p, "=,");
        char *end = NULL;
        const unsigned long size = p[name] == '=' ? strtoul(p + name + 1, &end, 10) : 0;
        all = size && size <= MAX_RANKS ? all * size : 0;
        if (!is_name(p, name) || !all || all > MAX_RANKS || end != p + length ||
            mesh->axes == SHARDS_AXES)
            return plumb_fail(err, PLUMB_E_ARG,
                              "'%s' is no list of parallel sizes; write tp=2,pp=4, the axis whose "
                              "ranks follow each other first",
                              text);
        struct shards_mesh_axis *axis = &mesh->axis[mesh->axes++];
        snprintf(axis->name, sizeof axis->name, "%.*s", (int)name, p);
        axis->size = (unsigned)size;
        p += length + (p[length] == ',');
    }
    return PLUMB_OK;
}

unsigned shards_mesh_ranks(const struct shards_mesh *mesh)
{
    unsigned ranks = 1;
    for (unsigned i = 0; i < mesh->axes; i++)
        ranks *= mesh->axis[i].size;
    return ranks;
}

const struct shards_mesh_axis *shards_mesh_find(const struct shards_mesh *mesh, const char *name)
{
    for (unsigned i = 0; i < mesh->axes; i++)
        if (strcmp(mesh->axis[i].name, name) == 0)
            return &mesh->axis[i];
    return NULL;
}

unsigned shards_mesh_place(const struct shards_mesh *mesh, const struct shards_mesh_axis *axis,
                           int64_t rank)
{
    uint64_t left = rank > 0 ? (uint64_t)rank : 0;
    for (const struct shards_mesh_axis *a = mesh->axis; a < axis; a++)
        left /= a->size;
    return (unsigned)(left % axis->size);
}

enum plumb_code shards_from_uses(struct shards_layout **out, struct arena *arena,
                                 const struct shards_use *uses, size_t count, unsigned parts,
                                 struct plumb_error *err)
{
    struct shards_layout *layout = *out = shards_replica(arena, parts);
    if (!layout)
        return plumb_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct shards_use *use = &uses[i];
        if (use->count < 2)
            continue;
        if (use->scaled)
            layout->divisor = (layout->divisor ? layout->divisor : 1) * use->count;
        if (use->action == SHARDS_SPLIT) {
            if (layout->splits == SHARDS_SPLITS)
                return plumb_fail(err, PLUMB_E_ARG, "a tensor that is cut more than %d times",
                                  SHARDS_SPLITS);
            layout->split[layout->splits] = use->split;
            layout->split[layout->splits++].count = use->count;
            for (unsigned p = 0; p < parts; p++)
                layout->slot[p] = layout->slot[p] * use->count + use->place[p];
        } else {
            layout->reduce = use->action == SHARDS_ADD ? SHARDS_SUM : SHARDS_MEAN;
            layout->terms *= use->count;
            for (unsigned p = 0; p < parts; p++)
                layout->term[p] = layout->term[p] * use->count + use->place[p];
        }
    }
    return PLUMB_OK;
}

/* ---- Dimensions ------------------------------------------------------------------------------ */

static bool read_weights(struct shards_split *split, const char *text, size_t length)
{
    const char *end = text + length;
    split->segments = 0;
    while (text < end) {
        char *stop;
        const unsigned long weight = strtoul(text, &stop, 10);
        if (stop == text || !weight || weight > 65536 || split->segments == SHARDS_SEGMENTS ||
            stop > end || (stop < end && *stop != ':'))
            return false;
        split->weight[split->segments++] = (uint32_t)weight;
        text = stop < end ? stop + 1 : stop;
    }
    return split->segments > 1;
}

static bool read_qualifier(struct shards_modifier *modifier, const char *text, size_t length)
{
    static const struct {
        const char *word;
        enum shards_action action;
        enum shards_how how;
    } words[] = {{"zigzag", SHARDS_SPLIT, SHARDS_ZIGZAG},
                 {"natural", SHARDS_SPLIT, SHARDS_CONCAT},
                 {"sharded", SHARDS_SPLIT, SHARDS_CONCAT},
                 {"partial", SHARDS_ADD, SHARDS_CONCAT},
                 {"mean", SHARDS_AVERAGE, SHARDS_CONCAT}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(text, words[i].word, length) == 0) {
            if (words[i].action != SHARDS_SPLIT)
                modifier->action = words[i].action;
            else if (words[i].how != SHARDS_CONCAT)
                modifier->split.how = words[i].how;
            return true;
        }
    if (length == 6 && memcmp(text, "scaled", 6) == 0)
        return modifier->scaled = true;
    if (length < 6 || memcmp(text, "fused=", 6) != 0)
        return false;
    modifier->split.how = SHARDS_FUSED;
    return read_weights(&modifier->split, text + 6, length - 6);
}

/* "cp:zigzag+partial", with blanks around it. */
static bool read_modifier(struct shards_modifier *modifier, const char *text, size_t length)
{
    for (; length && *text == ' '; length--)
        text++;
    while (length && text[length - 1] == ' ')
        length--;
    const char *colon = memchr(text, ':', length);
    const size_t name = colon ? (size_t)(colon - text) : length;
    *modifier = (struct shards_modifier){0};
    if (!is_name(text, name))
        return false;
    memcpy(modifier->axis, text, name);
    for (size_t at = name; at < length;) {
        const char *word = text + ++at, *plus = memchr(word, '+', length - at);
        const size_t size = plus ? (size_t)(plus - word) : length - at;
        if (!read_qualifier(modifier, word, size))
            return false;
        at += size;
    }
    return true;
}

static bool read_dim(struct shards_dim *dim, const char *text, size_t length)
{
    const char *open = memchr(text, '[', length);
    size_t name = open ? (size_t)(open - text) : length;
    *dim = (struct shards_dim){.none = name == 0};
    if (name >= 2 && text[0] == '(' && text[name - 1] == ')') {
        text++; /* (h*d): two dimensions that are one in the tensor */
        length--;
        name -= 2;
        for (size_t i = 0, from = 0; i <= name; i++)
            if (i == name || text[i] == '*') {
                if (!is_name(text + from, i - from))
                    return false;
                from = i + 1;
            }
    } else if (name && !is_name(text, name)) {
        return false;
    }
    if (!open)
        return true;
    const char *at = open + 1, *end = text + length - 1;
    if (*end != ']' || at >= end)
        return false;
    while (at < end) {
        size_t size = strcspn(at, ",]");
        if (dim->modifiers == SHARDS_MODIFIERS ||
            !read_modifier(&dim->modifier[dim->modifiers++], at, size))
            return false;
        at += size + 1;
    }
    return at == end + 1;
}

/* Does an axis of ranks come twice? */
static bool repeats(const struct shards_dims *dims)
{
    const char *seen[SHARDS_DIMS * SHARDS_MODIFIERS];
    size_t count = 0;
    for (unsigned d = 0; d < dims->count; d++)
        for (unsigned m = 0; m < dims->dim[d].modifiers; m++) {
            const char *axis = dims->dim[d].modifier[m].axis;
            for (size_t i = 0; i < count; i++)
                if (strcmp(seen[i], axis) == 0)
                    return true;
            seen[count++] = axis;
        }
    return false;
}

/* "ep:replicated", "dp:=moe_dp": what is not cut is a replica anyway. */
static bool is_declaration(const char *text, size_t length)
{
    static const char word[] = ":replicated";
    const size_t tail = sizeof word - 1;
    if (length > tail && memcmp(text + length - tail, word, tail) == 0)
        return is_name(text, length - tail);
    return length > 4 && memcmp(text, "dp:=", 4) == 0 && is_name(text + 4, length - 4);
}

enum plumb_code shards_dims_parse(struct shards_dims *dims, const char *text,
                                  struct plumb_error *err)
{
    bool behind = false;
    *dims = (struct shards_dims){0};
    for (const char *p = text; *(p += strspn(p, " \t"));) {
        size_t length = strcspn(p, " \t");
        if (*p == '#') {
            behind = true;
            p++;
            continue;
        }
        if (memchr(p, '[', length)) { /* blanks inside of brackets */
            const char *close = strchr(p, ']');
            length = close ? (size_t)(close - p) + 1 : length;
        }
        const bool good =
            behind ? is_declaration(p, length)
                   : dims->count < SHARDS_DIMS && read_dim(&dims->dim[dims->count], p, length);
        if (!good)
            return plumb_fail(
                err, PLUMB_E_ARG,
                "'%.*s' in '%s' is no dimension; write names, as in 'b s[cp:zigzag] "
                "h[tp] d', with zigzag, partial, mean, scaled or fused=1:1:1 behind an axis",
                (int)length, p, text);
        if (!behind)
            dims->ndim += !dims->dim[dims->count++].none;
        p += length;
    }
    if (repeats(dims))
        return plumb_fail(err, PLUMB_E_ARG, "an axis of ranks comes twice in '%s'", text);
    return dims->count ? PLUMB_OK : plumb_fail(err, PLUMB_E_ARG, "'%s' names no dimension", text);
}

/* The mesh that dimensions without sizes mean: all ranks on the only axis. */
static enum plumb_code only_axis(struct shards_mesh *mesh, const struct shards_dims *dims,
                                 unsigned parts, struct plumb_error *err)
{
    *mesh = (struct shards_mesh){0};
    for (unsigned d = 0; d < dims->count; d++)
        for (unsigned m = 0; m < dims->dim[d].modifiers; m++) {
            if (mesh->axes)
                return plumb_fail(err, PLUMB_E_ARG,
                                  "the axes %s and %s of %u ranks: say how many each has, as in "
                                  "--parallel tp=2,cp=2",
                                  mesh->axis[0].name, dims->dim[d].modifier[m].axis, parts);
            mesh->axes = 1;
            memcpy(mesh->axis[0].name, dims->dim[d].modifier[m].axis, SHARDS_WORD);
            mesh->axis[0].size = parts;
        }
    return PLUMB_OK;
}

const char *shards_dims_stranger(const struct shards_dims *dims, const struct shards_mesh *mesh)
{
    for (unsigned d = 0; d < dims->count; d++)
        for (unsigned m = 0; m < dims->dim[d].modifiers; m++)
            if (!shards_mesh_find(mesh, dims->dim[d].modifier[m].axis))
                return dims->dim[d].modifier[m].axis;
    return NULL;
}

enum plumb_code shards_dims_layout(struct shards_layout **layout, struct arena *arena,
                                   const struct shards_dims *dims, const struct shards_mesh *mesh,
                                   const int64_t *ranks, unsigned parts, unsigned ndim,
                                   struct plumb_error *err)
{
    struct shards_mesh own;
    struct shards_use uses[SHARDS_DIMS * SHARDS_MODIFIERS] = {{0}};
    size_t count = 0;
    const bool sized = mesh && mesh->axes;
    enum plumb_code code = sized ? PLUMB_OK : only_axis(&own, dims, parts, err);
    if (code)
        return code;
    if (dims->ndim != ndim)
        return plumb_fail(err, PLUMB_E_ARG, "%u dimensions are named, and the tensor has %u",
                          dims->ndim, ndim);
    const struct shards_mesh *used = sized ? mesh : &own;
    unsigned number = 0;
    for (unsigned d = 0; d < dims->count; number += !dims->dim[d++].none)
        for (unsigned m = 0; m < dims->dim[d].modifiers; m++) {
            const struct shards_modifier *modifier = &dims->dim[d].modifier[m];
            const struct shards_mesh_axis *axis = shards_mesh_find(used, modifier->axis);
            if (!axis || axis->size < 2)
                continue;
            if (dims->dim[d].none && modifier->action == SHARDS_SPLIT)
                return plumb_fail(err, PLUMB_E_ARG, "[%s] without a dimension cuts nothing",
                                  modifier->axis);
            unsigned *place = arena_array(arena, parts, sizeof *place);
            if (!place)
                return plumb_no_memory(err);
            for (unsigned p = 0; p < parts; p++)
                place[p] = sized ? shards_mesh_place(used, axis, ranks[p]) : p;
            uses[count] = (struct shards_use){modifier->action, modifier->split, axis->size, place,
                                              modifier->scaled};
            uses[count++].split.axis = number;
        }
    return shards_from_uses(layout, arena, uses, count, parts, err);
}
