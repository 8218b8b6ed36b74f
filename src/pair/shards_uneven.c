/* Parts of different sizes, and parts that are rows of numbers. */
#include "pair/shards_search.h"

#include <math.h>
#include <string.h>

/* Are all numbers behind the first `total` of all parts, one behind the other, zeros? Others would
 * be left out of the comparison. */
static bool is_padded(const struct search *s, uint64_t total)
{
    for (unsigned p = 0; p < s->count; p++) {
        const struct plumb_tensor *part = s->parts[p];
        const uint64_t taken = total < part->count ? total : part->count;
        total -= taken;
        if (!plumb_tensor_is_zero(part, taken))
            return false;
    }
    return true;
}

/* Tries the parts in an order, one behind the other along an axis or as flat rows of numbers. */
static bool try_order(struct search *s, const unsigned *slot, unsigned slots, unsigned axis,
                      bool flat)
{
    struct shards_layout *layout = search_layout(s);
    struct shards_plan plan;
    double *distances = arena_array(s->arena, s->count, sizeof *distances);
    if (!layout || !distances || s->candidates == MAX_CANDIDATES) {
        s->no_memory = s->no_memory || !distances;
        return false;
    }
    layout->flat = flat;
    layout->total = flat ? s->whole->count : 0;
    for (unsigned p = 0; p < s->count && flat; p++)
        layout->padding += s->parts[p]->count;
    layout->padding -= layout->total;
    layout->splits = 1;
    layout->split[0] = (struct shards_split){.axis = axis, .count = slots};
    memcpy(layout->slot, slot, s->count * sizeof *slot);
    if (shards_plan(&plan, s->arena, layout, s->parts, NULL) || plan.count != s->whole->count)
        return false;
    struct candidate c = {.layout = layout};
    const struct sums sums = search_alone(s);
    unsigned used = 0;
    for (unsigned p = 0; p < s->count; p++)
        if (s->parts[p]->count) {
            const double d = search_distance(s, &sums, p, &plan, p);
            distances[used++] = d;
            c.missed += !(d <= FITS);
        }
    c.residual = used ? search_median(distances, used) : 0;
    c.fits = used && c.residual <= search_limit(s) && c.missed * 2 <= used;
    s->list[s->candidates++] = c;
    return c.fits && !c.missed;
}

/* Is the part what the whole has behind `offset` of an axis? */
static double at_offset(struct search *s, unsigned part, unsigned axis, int64_t offset)
{
    const struct plumb_tensor *t = s->parts[part];
    const struct sums sums = search_alone(s);
    struct shards_span *spans = arena_array(s->arena, t->rank, sizeof *spans);
    struct shards_spans *lists = arena_array(s->arena, t->rank, sizeof *lists);
    if (!spans || !lists) {
        s->no_memory = true;
        return INFINITY;
    }
    for (unsigned a = 0; a < t->rank; a++) {
        spans[a] = (struct shards_span){0, a == axis ? offset : 0, t->shape[a]};
        lists[a] = (struct shards_spans){&spans[a], 1};
    }
    const struct shards_plan plan = {.ndim = t->rank,
                                     .shape = (int64_t *)s->whole->shape,
                                     .count = s->whole->count,
                                     .parts = 1,
                                     .spans = lists};
    return search_distance(s, &sums, part, &plan, 0);
}

/* Which part comes next, from what is there: the order of parts that are not alike in size. */
static bool find_order(struct search *s, unsigned axis, unsigned *slot)
{
    int64_t offset = 0;
    bool *used = arena_array(s->arena, s->count, sizeof *used);
    s->no_memory = s->no_memory || !used;
    for (unsigned place = 0; used && place < s->count; place++) {
        unsigned best = s->count;
        double least = FITS;
        for (unsigned p = 0; p < s->count; p++) {
            const int64_t size = s->parts[p]->shape[axis];
            if (used[p] || offset + size > s->whole->shape[axis])
                continue;
            const double d = s->parts[p]->count ? at_offset(s, p, axis, offset) : 0;
            if (d <= least && (best == s->count || d < least)) {
                best = p;
                least = d;
            }
        }
        if (best == s->count)
            return false;
        used[best] = true;
        slot[best] = place;
        offset += s->parts[best]->shape[axis];
    }
    return used != NULL;
}

static bool same_but(const struct search *s, unsigned axis)
{
    for (unsigned p = 0; p < s->count; p++)
        for (unsigned a = 0; a < s->whole->rank; a++)
            if (a != axis && s->parts[p]->shape[a] != s->whole->shape[a])
                return false;
    return true;
}

/* Slices of different sizes along one axis. */
void search_uneven(struct search *s)
{
    unsigned *slot = arena_array(s->arena, s->count, sizeof *slot);
    s->no_memory = s->no_memory || !slot;
    for (unsigned axis = 0; slot && axis < s->whole->rank; axis++) {
        int64_t sum = 0;
        for (unsigned p = 0; p < s->count; p++)
            sum += s->parts[p]->shape[axis];
        const int64_t all = s->whole->shape[axis];
        if (!same_but(s, axis) || !all || !sum || sum % all || (int64_t)s->count % (sum / all))
            continue;
        const unsigned slots = (unsigned)((int64_t)s->count / (sum / all));
        if (slots < 2)
            continue;
        for (int cyclic = 1; cyclic >= 0; cyclic--) {
            for (unsigned p = 0; p < s->count; p++)
                slot[p] = cyclic ? p % slots : p / (s->count / slots);
            if (try_order(s, slot, slots, axis, false) || slots == s->count)
                break;
        }
        if (slots == s->count && !search_any_fits(s) && find_order(s, axis, slot))
            try_order(s, slot, slots, axis, false);
    }
}

/* One behind the other as rows of numbers, with zeros at the end. */
void search_flat(struct search *s)
{
    uint64_t sum = 0, most = 0;
    unsigned *slot = arena_array(s->arena, s->count, sizeof *slot);
    s->no_memory = s->no_memory || !slot;
    for (unsigned p = 0; slot && p < s->count; p++) {
        slot[p] = p;
        sum += s->parts[p]->count;
        most = s->parts[p]->count > most ? s->parts[p]->count : most;
    }
    most = most < s->count ? s->count : most;
    if (slot && s->count > 1 && sum >= s->whole->count && sum - s->whole->count < most &&
        is_padded(s, s->whole->count))
        try_order(s, slot, s->count, 0, true);
}
