/* Where the parts of a tensor lie in the whole: along each axis, then as boxes. */
#include "pair/shards.h"

#include <string.h>

/* An axis and the splits that cut it, the outermost first. */
struct axis {
    const struct shards_split *split[SHARDS_SPLITS];
    unsigned place[SHARDS_SPLITS]; /* of each among all splits */
    unsigned depth;
    size_t leaves;
    int64_t *extent; /* by leaf; -1: no part has it */
};

unsigned shards_slots(const struct shards_layout *layout)
{
    unsigned slots = 1;
    for (unsigned s = 0; s < layout->splits; s++)
        slots *= layout->split[s].count;
    return slots;
}

static unsigned digit(const struct shards_layout *layout, unsigned slot, unsigned place)
{
    for (unsigned s = layout->splits - 1; s > place; s--)
        slot /= layout->split[s].count;
    return slot % layout->split[place].count;
}

static size_t leaf_of(const struct shards_layout *layout, const struct axis *axis, unsigned slot)
{
    size_t leaf = 0;
    for (unsigned d = 0; d < axis->depth; d++)
        leaf = leaf * axis->split[d]->count + digit(layout, slot, axis->place[d]);
    return leaf;
}

/* How long the slices below a node are together. */
static int64_t extent_of(const struct axis *axis, unsigned depth, size_t node)
{
    if (depth == axis->depth)
        return axis->extent[node];
    int64_t sum = 0;
    for (unsigned c = 0; c < axis->split[depth]->count; c++)
        sum += extent_of(axis, depth + 1, node * axis->split[depth]->count + c);
    return sum;
}

static int64_t extent_of_child(const struct axis *axis, unsigned depth, size_t node, unsigned child)
{
    return extent_of(axis, depth + 1, node * axis->split[depth]->count + child);
}

static bool add(struct shards_spans *spans, struct arena *arena, size_t *room,
                struct shards_span span)
{
    if (span.length <= 0)
        return true;
    if (spans->count == *room) {
        *room = *room ? *room * 2 : 4;
        struct shards_span *list = arena_array(arena, *room, sizeof *list);
        if (!list)
            return false;
        if (spans->count)
            memcpy(list, spans->list, spans->count * sizeof *list);
        spans->list = list;
    }
    spans->list[spans->count++] = span;
    return true;
}

static int64_t weight_of(const struct shards_split *split, unsigned segment)
{
    return split->how == SHARDS_FUSED && split->weight[0] ? split->weight[segment] : 1;
}

static unsigned segments_of(const struct shards_split *split)
{
    return split->how != SHARDS_CONCAT && split->segments ? split->segments : 1;
}

static int64_t weights(const struct shards_split *split)
{
    int64_t sum = 0;
    for (unsigned k = 0; k < segments_of(split); k++)
        sum += weight_of(split, k);
    return sum;
}

/* Where a slice lies in what its split makes of it and its siblings. False: it cannot be. */
static bool slice_fits(const struct axis *axis, unsigned depth, size_t node)
{
    const struct shards_split *split = axis->split[depth];
    const int64_t first = extent_of_child(axis, depth, node, 0);
    for (unsigned c = 0; c < split->count; c++) {
        const int64_t extent = extent_of_child(axis, depth, node, c);
        if (split->how == SHARDS_ZIGZAG &&
            (extent != first || extent % (2 * (int64_t)segments_of(split))))
            return false;
        if (split->how == SHARDS_FUSED && extent % weights(split))
            return false;
    }
    return true;
}

static bool slice_spans(struct shards_spans *out, struct arena *arena, const struct axis *axis,
                        unsigned depth, size_t node, unsigned child)
{
    const struct shards_split *split = axis->split[depth];
    const int64_t own = extent_of_child(axis, depth, node, child);
    size_t room = 0;
    const unsigned segments = segments_of(split);
    const int64_t sum = weights(split);
    if (split->how == SHARDS_ZIGZAG) {
        const int64_t half = own / segments / 2, all = 2 * (int64_t)split->count;
        for (unsigned k = 0; k < segments; k++) {
            const int64_t from = 2 * half * k, to = all * half * k;
            if (!add(out, arena, &room, (struct shards_span){from, to + child * half, half}) ||
                !add(out, arena, &room,
                     (struct shards_span){from + half, to + (all - 1 - child) * half, half}))
                return false;
        }
        return true;
    }
    int64_t from = 0, to = 0;
    for (unsigned k = 0; k < segments; k++) {
        const int64_t weight = weight_of(split, k);
        int64_t before = 0, all = 0;
        for (unsigned c = 0; c < split->count; c++) {
            const int64_t share = extent_of_child(axis, depth, node, c) / sum * weight;
            before += c < child ? share : 0;
            all += share;
        }
        const int64_t length = own / sum * weight;
        if (!add(out, arena, &room, (struct shards_span){from, to + before, length}))
            return false;
        from += length;
        to += all;
    }
    return true;
}

/* Sends the spans of a slice through the split above it. */
static bool compose(struct shards_spans *spans, struct arena *arena,
                    const struct shards_spans *outer)
{
    struct shards_spans made = {0};
    size_t room = 0;
    for (size_t i = 0; i < spans->count; i++)
        for (size_t k = 0; k < outer->count; k++) {
            const struct shards_span *in = &spans->list[i], *out = &outer->list[k];
            const int64_t begin = in->to > out->from ? in->to : out->from;
            const int64_t in_end = in->to + in->length, out_end = out->from + out->length;
            const int64_t end = in_end < out_end ? in_end : out_end;
            if (!add(&made, arena, &room,
                     (struct shards_span){in->from + begin - in->to, out->to + begin - out->from,
                                          end - begin}))
                return false;
        }
    *spans = made;
    return true;
}

static bool spans_of(struct shards_spans *out, struct arena *arena, const struct axis *axis,
                     size_t leaf)
{
    size_t room = 0;
    *out = (struct shards_spans){0};
    if (!add(out, arena, &room, (struct shards_span){0, 0, axis->extent[leaf]}))
        return false;
    size_t node = leaf;
    for (unsigned d = axis->depth; d-- > 0;) {
        const unsigned count = axis->split[d]->count, child = (unsigned)(node % count);
        struct shards_spans outer = {0};
        node /= count;
        if (!slice_spans(&outer, arena, axis, d, node, child) || !compose(out, arena, &outer))
            return false;
    }
    return true;
}

/* ---- All axes -------------------------------------------------------------------------------- */

static int64_t size_of(const struct shards_layout *layout, const struct plumb_tensor *part,
                       unsigned axis)
{
    return layout->flat ? (int64_t)part->count : part->shape[axis];
}

static enum plumb_code refuse(struct plumb_error *err, const struct plumb_tensor *a,
                              const struct plumb_tensor *b)
{
    char one[160], other[160];
    return plumb_fail(err, PLUMB_E_ARG, "parts of the shapes %s and %s do not fit this layout",
                      plumb_shape_text(a, one, sizeof one),
                      plumb_shape_text(b, other, sizeof other));
}

static enum plumb_code read_axis(struct axis *axis, unsigned number, struct arena *arena,
                                 const struct shards_layout *layout,
                                 const struct plumb_tensor *const *parts, struct plumb_error *err)
{
    *axis = (struct axis){.leaves = 1};
    for (unsigned s = 0; s < layout->splits; s++)
        if (layout->split[s].axis == number) {
            axis->split[axis->depth] = &layout->split[s];
            axis->place[axis->depth++] = s;
            axis->leaves *= layout->split[s].count;
        }
    axis->extent = arena_array(arena, axis->leaves, sizeof *axis->extent);
    if (!axis->extent)
        return plumb_no_memory(err);
    for (size_t k = 0; k < axis->leaves; k++)
        axis->extent[k] = -1;
    for (unsigned p = 0; p < layout->parts; p++) {
        int64_t *extent = &axis->extent[leaf_of(layout, axis, layout->slot[p])];
        const int64_t size = size_of(layout, parts[p], number);
        if (*extent >= 0 && *extent != size)
            return refuse(err, parts[0], parts[p]);
        *extent = size;
    }
    for (size_t k = 0; k < axis->leaves; k++)
        if (axis->extent[k] < 0)
            return plumb_fail(err, PLUMB_E_ARG, "no rank has part %zu of %zu of axis %u", k + 1,
                              axis->leaves, number);
    size_t nodes = 1;
    for (unsigned d = 0; d < axis->depth; nodes *= axis->split[d++]->count)
        for (size_t node = 0; node < nodes; node++)
            if (!slice_fits(axis, d, node))
                return plumb_fail(err, PLUMB_E_ARG,
                                  "axis %u of the parts cannot be cut as the layout says", number);
    return PLUMB_OK;
}

static enum plumb_code check(const struct shards_layout *layout,
                             const struct plumb_tensor *const *parts, struct plumb_error *err)
{
    const unsigned ndim = layout->flat ? 1 : parts[0]->rank;
    for (unsigned p = 1; p < layout->parts; p++)
        if ((!layout->flat && parts[p]->rank != ndim) || parts[p]->dtype != parts[0]->dtype)
            return refuse(err, parts[0], parts[p]);
    for (unsigned s = 0; s < layout->splits; s++)
        if (layout->split[s].axis >= ndim)
            return plumb_fail(err, PLUMB_E_ARG, "the layout cuts axis %u of a tensor with %u axes",
                              layout->split[s].axis, ndim);
    const unsigned slots = shards_slots(layout);
    for (unsigned slot = 0; slot < slots; slot++)
        for (unsigned term = 0; term < layout->terms; term++)
            if (shards_first(layout, slot, term) == layout->parts)
                return plumb_fail(err, PLUMB_E_ARG, "no rank has part %u of %u", slot + 1, slots);
    return PLUMB_OK;
}

/* What is behind the end of a flat whole is padding. */
static void cut(struct shards_plan *plan, uint64_t total)
{
    if (!total || total >= plan->count)
        return;
    plan->shape[0] = (int64_t)total;
    plan->count = total;
    for (unsigned p = 0; p < plan->parts; p++)
        for (size_t k = 0; k < plan->spans[p].count; k++) {
            struct shards_span *span = &plan->spans[p].list[k];
            const int64_t left = (int64_t)total - span->to;
            if (span->length > left)
                span->length = left > 0 ? left : 0;
        }
}

enum plumb_code shards_plan(struct shards_plan *plan, struct arena *arena,
                            const struct shards_layout *layout,
                            const struct plumb_tensor *const *parts, struct plumb_error *err)
{
    enum plumb_code code = check(layout, parts, err);
    if (code)
        return code;
    *plan = (struct shards_plan){.ndim = layout->flat ? 1 : parts[0]->rank, .parts = layout->parts};
    plan->shape = arena_array(arena, plan->ndim + 1, sizeof *plan->shape);
    plan->spans = arena_array(arena, (size_t)plan->parts * plan->ndim + 1, sizeof *plan->spans);
    if (!plan->shape || !plan->spans)
        return plumb_no_memory(err);
    for (unsigned a = 0; a < plan->ndim; a++) {
        struct axis axis;
        code = read_axis(&axis, a, arena, layout, parts, err);
        if (code)
            return code;
        plan->shape[a] = extent_of(&axis, 0, 0);
        for (unsigned p = 0; p < plan->parts; p++)
            if (!spans_of(&plan->spans[(size_t)p * plan->ndim + a], arena, &axis,
                          leaf_of(layout, &axis, layout->slot[p])))
                return plumb_no_memory(err);
    }
    struct plumb_tensor whole;
    code = plumb_tensor_init(&whole, parts[0]->dtype, plan->ndim, plan->shape, err);
    plan->count = whole.count;
    if (!code && layout->flat)
        cut(plan, layout->total);
    return code;
}

/* ---- Elements and boxes ---------------------------------------------------------------------- */

uint64_t shards_element(const struct shards_plan *plan, unsigned part,
                        const struct plumb_tensor *shape, uint64_t index)
{
    const bool flat = plan->ndim == 1 && shape->rank != 1;
    uint64_t stride = 1, element = 0;
    for (unsigned a = plan->ndim; a-- > 0;) {
        const uint64_t size = flat ? shape->count : (uint64_t)shape->shape[a];
        const int64_t at = (int64_t)(index % size);
        index /= size;
        const struct shards_spans *spans = &plan->spans[(size_t)part * plan->ndim + a];
        size_t k = 0;
        while (k < spans->count &&
               (at < spans->list[k].from || at >= spans->list[k].from + spans->list[k].length))
            k++;
        if (k == spans->count)
            return UINT64_MAX;
        element += (uint64_t)(spans->list[k].to + at - spans->list[k].from) * stride;
        stride *= (uint64_t)plan->shape[a];
    }
    return element;
}

/* One span of each axis. */
struct corner {
    const struct shards_span *span[PLUMB_MAX_RANK];
    int64_t size[PLUMB_MAX_RANK]; /* of the part */
};

static void walk_corner(const struct shards_plan *plan, const struct corner *corner,
                        void (*visit)(void *context, const struct shards_box *box), void *context)
{
    /* Axes that part and whole have in full follow each other without a gap. */
    unsigned inner = plan->ndim;
    uint64_t count = 1;
    while (inner > 0) {
        const struct shards_span *span = corner->span[--inner];
        count *= (uint64_t)span->length;
        if (span->length != corner->size[inner] || span->length != plan->shape[inner])
            break;
    }
    int64_t at[PLUMB_MAX_RANK] = {0};
    for (;;) {
        struct shards_box box = {.count = (size_t)count};
        for (unsigned a = 0; a < plan->ndim; a++) {
            const int64_t offset = a < inner ? at[a] : 0;
            box.from =
                box.from * (uint64_t)corner->size[a] + (uint64_t)(corner->span[a]->from + offset);
            box.to = box.to * (uint64_t)plan->shape[a] + (uint64_t)(corner->span[a]->to + offset);
        }
        visit(context, &box);
        unsigned a = inner;
        while (a > 0 && ++at[a - 1] == corner->span[a - 1]->length)
            at[--a] = 0;
        if (a == 0)
            return;
    }
}

void shards_boxes(const struct shards_plan *plan, unsigned part, const struct plumb_tensor *shape,
                  void (*visit)(void *context, const struct shards_box *box), void *context)
{
    struct corner corner;
    size_t at[PLUMB_MAX_RANK] = {0};
    const struct shards_spans *spans = &plan->spans[(size_t)part * plan->ndim];
    for (unsigned a = 0; a < plan->ndim; a++) {
        if (!spans[a].count)
            return; /* an empty part */
        corner.size[a] = plan->ndim == 1 ? (int64_t)shape->count : shape->shape[a];
    }
    for (;;) {
        bool empty = false;
        for (unsigned a = 0; a < plan->ndim; a++) {
            corner.span[a] = &spans[a].list[at[a]];
            empty = empty || !corner.span[a]->length;
        }
        if (!empty)
            walk_corner(plan, &corner, visit, context);
        unsigned a = plan->ndim;
        while (a > 0 && ++at[a - 1] == spans[a - 1].count)
            at[--a] = 0;
        if (a == 0)
            return;
    }
}
