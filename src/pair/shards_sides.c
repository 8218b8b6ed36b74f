/* Layouts of two sides at once, of which each may be in parts.
 *
 * Where a side is whole, known, or all replicas, the other is held against it. Else the golden side
 * is put together in the ways that its shapes allow, and the target held against each. */
#include "pair/shards_family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Replicas may differ by rounding. */
#define ALIKE 1e-2

struct whole {
    struct plumb_tensor tensor;
    void *owned;
};

/* Puts parts together. PLUMB_E_ARG where they do not fit. */
static enum plumb_code make_whole(struct whole *out, struct arena *arena,
                                  const struct shards_layout *layout,
                                  const struct plumb_tensor *const *parts, struct plumb_error *err)
{
    struct shards_plan plan;
    uint64_t bytes;
    enum plumb_code code = shards_plan(&plan, arena, layout, parts, err);
    if (code)
        return code;
    const enum plumb_dtype dtype = shards_dtype(layout, parts[0]->dtype);
    if (shards_slots(layout) * layout->terms == 1 && layout->divisor < 2) {
        out->tensor = *parts[shards_first(layout, 0, 0)];
        return PLUMB_OK;
    }
    code = plumb_tensor_init(&out->tensor, dtype, plan.ndim, plan.shape, err);
    if (code || !plumb_dtype_bytes(dtype, plan.count, &bytes))
        return code ? code : plumb_no_memory(err);
    out->owned = calloc(bytes + 1, 1);
    if (!out->owned)
        return plumb_no_memory(err);
    out->tensor.data = out->owned;
    out->tensor.swap = layout->reduce == SHARDS_ONE && layout->divisor < 2 && parts[0]->swap;
    for (unsigned p = 0; p < layout->parts && !code; p++)
        if (shards_first(layout, layout->slot[p], layout->term[p]) == p)
            code = shards_put(&plan, layout, p, parts[p], out->owned, err);
    return code;
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && a->dtype == b->dtype &&
           memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Does a part agree with another, as far as a few of its elements tell? 1 for yes, 0 for no, -1
 * when out of memory. */
static int agree(struct arena *arena, const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    struct shards_sample sample;
    struct shards_plan plan;
    struct shards_layout *one = shards_replica(arena, 1);
    if (!one || !shards_sample(&sample, arena, a, 1))
        return -1;
    const struct shards_sum sum = {&sample, 0, 1, 1, 1.0};
    if (a->rank != b->rank || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0 ||
        shards_plan(&plan, arena, one, &a, NULL))
        return 0;
    return shards_distance(&sum, a, &plan, 0, b) <= ALIKE;
}

/* Are most parts of a side the same? 1 + one of them; 0: no; -1 when out of memory. */
static int are_replicas(struct arena *arena, const struct shards_side *side)
{
    for (unsigned p = 1; p < side->count; p++)
        if (!same_shape(side->parts[0], side->parts[p]))
            return 0;
    /* Among any three of a majority of equals, two are; the first two decide for most. */
    for (unsigned like = 0; like < side->count && like < 3; like++) {
        unsigned alike = 0;
        for (unsigned p = 0; p < side->count; p++) {
            const int same = agree(arena, side->parts[p], side->parts[like]);
            if (same < 0)
                return -1;
            alike += (unsigned)same;
        }
        if (alike * 2 > side->count)
            return (int)like + 1;
    }
    return 0;
}

/* Are all numbers the same? Then they fit everywhere. */
static bool is_constant(const struct plumb_tensor *tensor)
{
    struct arena arena = {0};
    struct shards_sample sample = {0};
    bool same = tensor->count > 1 && shards_sample(&sample, &arena, tensor, 1);
    for (size_t i = sample.width; same && i < sample.count * sample.width; i++)
        same = sample.value[i] == sample.value[i % sample.width];
    arena_free(&arena);
    return same;
}

/* Are most parts the same as those of the other side, rank by rank? */
static int are_same(struct arena *arena, const struct shards_side sides[2])
{
    unsigned alike = 0;
    if (sides[0].count != sides[1].count)
        return 0;
    for (unsigned p = 0; p < sides[0].count; p++) {
        const int same = agree(arena, sides[0].parts[p], sides[1].parts[p]);
        if (same < 0)
            return -1;
        alike += (unsigned)same;
    }
    return alike * 2 > sides[0].count;
}

static struct shards_layout *flat(struct arena *arena, unsigned parts)
{
    struct shards_layout *layout = shards_replica(arena, parts);
    if (!layout)
        return NULL;
    layout->flat = true;
    layout->splits = 1;
    layout->split[0].count = parts;
    for (unsigned p = 0; p < parts; p++)
        layout->slot[p] = p;
    return layout;
}

static struct shards_found settled(struct shards_layout *layout)
{
    return (struct shards_found){.basis = SHARDS_BY_VALUES, .layout = layout};
}

/* ---- The ways in which shapes allow a side to be put together -------------------------------- */

struct ways {
    struct arena *arena;
    const struct shards_side *sides; /* the one that is searched, and the one that is tried */
    struct shards_found best[2];
    struct shards_layout *rival; /* of the tried side */
    struct plumb_error *err;
    enum plumb_code code;
};

/* Are parts that a layout takes for replicas alike? A few may be wrong; what most of the values
 * deny is no layout. 1 for yes, 0 for no, -1 when out of memory. */
static int replicas_agree(struct arena *arena, const struct shards_layout *layout,
                          const struct plumb_tensor *const *parts)
{
    enum { FEW = 4 }; /* one of so many */
    unsigned odd = 0;
    for (unsigned p = 0; p < layout->parts; p++) {
        const unsigned first = shards_first(layout, layout->slot[p], layout->term[p]);
        const int same = first == p ? 1 : agree(arena, parts[first], parts[p]);
        if (same < 0)
            return -1;
        odd += !same;
    }
    return odd * FEW <= layout->parts;
}

static void try_way(struct ways *w, struct shards_layout *layout)
{
    struct whole whole = {.owned = NULL};
    struct shards_found found;
    const struct shards_side *other = &w->sides[0];
    uint64_t sum = 0, most = 0;
    if (w->code || !layout) {
        w->code = w->code ? w->code : plumb_no_memory(w->err);
        return;
    }
    for (unsigned p = 0; p < other->count; p++) {
        sum += other->parts[p]->count;
        most = other->parts[p]->count > most ? other->parts[p]->count : most;
    }
    struct shards_plan plan;
    if (shards_plan(&plan, w->arena, layout, w->sides[1].parts, NULL) || plan.count > sum ||
        plan.count < most)
        return;
    const int alike = replicas_agree(w->arena, layout, w->sides[1].parts);
    if (alike < 1) {
        w->code = alike < 0 ? plumb_no_memory(w->err) : PLUMB_OK;
        return;
    }
    enum plumb_code code = make_whole(&whole, w->arena, layout, w->sides[1].parts, w->err);
    if (!code)
        code = shards_infer(&found, w->arena, &whole.tensor, other->parts, other->count, w->err);
    free(whole.owned);
    w->code = code == PLUMB_E_NOMEM ? code : PLUMB_OK;
    if (code || found.basis != SHARDS_BY_VALUES)
        return;
    struct shards_found *best = &w->best[0];
    if (best->basis == SHARDS_BY_VALUES && !shards_better(&found, best)) {
        if (!shards_better(best, &found))
            w->rival = layout;
        return;
    }
    w->rival = NULL;
    w->best[0] = found;
    w->best[1] = settled(layout);
}

static struct shards_layout *cut(struct arena *arena, unsigned parts, unsigned axis,
                                 enum shards_how how, unsigned segments, unsigned slots,
                                 bool cyclic)
{
    struct shards_layout *layout = shards_replica(arena, parts);
    if (!layout)
        return NULL;
    layout->splits = 1;
    layout->split[0] =
        (struct shards_split){.axis = axis, .how = how, .count = slots, .segments = segments};
    for (unsigned k = 0; k < segments; k++)
        layout->split[0].weight[k] = 1;
    for (unsigned p = 0; p < parts; p++)
        layout->slot[p] = cyclic ? p % slots : p / (parts / slots);
    return layout;
}

static struct shards_layout *sum_of(struct arena *arena, unsigned parts, enum shards_reduce reduce)
{
    struct shards_layout *layout = shards_replica(arena, parts);
    for (unsigned p = 0; layout && p < parts; p++)
        layout->term[p] = p;
    if (layout) {
        layout->reduce = reduce;
        layout->terms = parts;
    }
    return layout;
}

static void try_ways(struct ways *w)
{
    const struct shards_side *side = &w->sides[1];
    const unsigned n = side->count;
    for (unsigned axis = 0; axis < side->parts[0]->rank; axis++)
        for (unsigned slots = n; slots > 1; slots--) {
            if (n % slots)
                continue;
            for (int cyclic = 1; cyclic >= (slots == n); cyclic--) {
                try_way(w, cut(w->arena, n, axis, SHARDS_CONCAT, 0, slots, cyclic));
                try_way(w, cut(w->arena, n, axis, SHARDS_ZIGZAG, 0, slots, cyclic));
                try_way(w, cut(w->arena, n, axis, SHARDS_FUSED, 2, slots, cyclic));
                try_way(w, cut(w->arena, n, axis, SHARDS_FUSED, 3, slots, cyclic));
            }
        }
    try_way(w, sum_of(w->arena, n, SHARDS_SUM));
    try_way(w, sum_of(w->arena, n, SHARDS_MEAN));
    /* Gradients of a loss that each rank took the mean of over its own share. */
    for (unsigned axis = 0; axis < side->parts[0]->rank; axis++)
        for (int how = SHARDS_CONCAT; how <= SHARDS_ZIGZAG; how++) {
            if (w->best[0].basis == SHARDS_BY_VALUES ||
                plumb_dtype_info(side->parts[0]->dtype)->kind != PLUMB_KIND_FLOAT)
                return;
            struct shards_layout *layout = cut(w->arena, n, axis, (enum shards_how)how, 0, n, true);
            if (layout)
                layout->divisor = n;
            try_way(w, layout);
        }
}

/* ---- Both ------------------------------------------------------------------------------------ */

static enum plumb_code infer_both(struct shards_found found[2], bool *same, struct arena *arena,
                                  const struct shards_side sides[2], struct plumb_error *err)
{
    const int target = are_replicas(arena, &sides[0]), golden = are_replicas(arena, &sides[1]);
    const int equal = target >= 0 && golden >= 0 ? are_same(arena, sides) : -1;
    if (equal < 0)
        return plumb_no_memory(err);
    if (target && golden && same_shape(sides[0].parts[0], sides[1].parts[0])) {
        for (int k = 0; k < 2; k++) {
            found[k] = settled(shards_replica(arena, sides[k].count));
            found[k].open = equal && is_constant(sides[k].parts[0]);
            found[k].rival = found[k].open ? flat(arena, sides[k].count) : NULL;
        }
        return found[0].layout && found[1].layout ? PLUMB_OK : plumb_no_memory(err);
    }
    if (equal) {
        *same = true;
        for (int k = 0; k < 2; k++)
            found[k] = settled(flat(arena, sides[k].count));
        return found[0].layout && found[1].layout ? PLUMB_OK : plumb_no_memory(err);
    }
    for (int k = 0; k < 2; k++) {
        /* Replicas are as good as a whole, unless the other side shows that they are slices. */
        const int like = k ? golden : target;
        if (!like)
            continue;
        const struct plumb_tensor *whole = sides[k].parts[like - 1];
        enum plumb_code code =
            shards_infer(&found[!k], arena, whole, sides[!k].parts, sides[!k].count, err);
        if (code || found[!k].basis == SHARDS_BY_VALUES) {
            found[k] = settled(shards_replica(arena, sides[k].count));
            return code || found[k].layout ? code : plumb_no_memory(err);
        }
    }
    struct ways ways = {.arena = arena, .sides = sides, .err = err};
    try_ways(&ways);
    found[0] = ways.best[0];
    found[1] = ways.best[1];
    found[1].residual = found[0].residual;
    found[1].rival = ways.rival;
    found[1].open = ways.rival != NULL;
    return ways.code;
}

enum plumb_code shards_infer_sides(struct shards_found found[2], bool *same, struct arena *arena,
                                   const struct shards_side sides[2], struct plumb_error *err)
{
    struct whole wholes[2] = {{.owned = NULL}, {.owned = NULL}};
    bool has[2];
    enum plumb_code code = PLUMB_OK;
    *same = false;
    found[0] = found[1] = (struct shards_found){.residual = INFINITY};
    for (int k = 0; k < 2; k++) {
        has[k] = sides[k].known || sides[k].count == 1;
        if (sides[k].known)
            found[k].layout = (struct shards_layout *)sides[k].known;
        else if (sides[k].count == 1)
            found[k] = settled(shards_replica(arena, 1));
        if (has[k] && !found[k].layout)
            return plumb_no_memory(err);
    }
    if (!has[0] && !has[1])
        return infer_both(found, same, arena, sides, err);
    for (int k = 0; k < 2 && !code; k++) {
        if (has[k] || !has[!k])
            continue;
        code = make_whole(&wholes[!k], arena, found[!k].layout, sides[!k].parts, err);
        if (!code)
            code = shards_infer(&found[k], arena, &wholes[!k].tensor, sides[k].parts,
                                sides[k].count, err);
        if (!code)
            code = shards_by_families(&found[k], arena, &sides[k], &wholes[!k].tensor, err);
    }
    free(wholes[0].owned);
    free(wholes[1].owned);
    return code;
}
