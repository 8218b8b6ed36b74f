/* Hypotheses about parts whose whole is known.
 *
 * The shapes say which axes may be cut and into how many slices. For each way of cutting, every
 * part is held against every slot and goes where it fits best: that finds the order of the ranks,
 * replicas, and a part that is wrong (the slot that nobody else fills). Few elements are looked at
 * first; when these leave more than one answer, more, then all. */
#include "pair/shards_search.h"

#include <math.h>
#include <string.h>

/* A way of cutting, with parts of equal shapes, as they are or added up. */
static void try_cut(struct search *s, const struct shards_split *splits, unsigned count,
                    const struct sums *sums)
{
    unsigned slots = 1;
    struct shards_layout *layout = search_layout(s);
    for (unsigned k = 0; k < count && layout; k++) {
        layout->split[layout->splits++] = splits[k];
        slots *= splits[k].count;
    }
    if (!layout || s->candidates == MAX_CANDIDATES || slots > MAX_SLOTS || sums->groups < slots)
        return;
    /* Where each slot is: as if every slot had a part of its own. */
    struct shards_layout *each = shards_replica(s->arena, slots);
    const struct plumb_tensor **same = arena_array(s->arena, slots, sizeof *same);
    struct shards_plan plan;
    if (!each || !same) {
        s->no_memory = true;
        return;
    }
    memcpy(each->split, layout->split, sizeof each->split);
    each->splits = layout->splits;
    for (unsigned k = 0; k < slots; k++) {
        each->slot[k] = k;
        same[k] = s->parts[0];
    }
    struct candidate c = {.layout = layout, .residual = INFINITY};
    if (shards_plan(&plan, s->arena, each, same, NULL) || plan.count != s->whole->count)
        return;
    search_judge(s, &c, sums, &plan, slots);
    s->list[s->candidates++] = c;
}

static void try_sums(struct search *s, const struct shards_split *splits, unsigned count,
                     unsigned slots)
{
    for (unsigned terms = 2; terms <= s->count; terms++) {
        if (s->count % terms || s->count / terms < slots)
            continue;
        for (int way = 0; way < 4; way++) {
            const struct sums sums = {.groups = s->count / terms,
                                      .terms = terms,
                                      .strided = way & 1,
                                      .reduce = way & 2 ? SHARDS_MEAN : SHARDS_SUM};
            if (!(sums.strided && sums.groups == 1))
                try_cut(s, splits, count, &sums);
        }
    }
}

static void try_segments(struct search *s, const struct shards_split *splits, unsigned count,
                         unsigned which, const struct shards_split *as, const struct sums *sums)
{
    struct shards_split changed[SHARDS_SPLITS];
    memcpy(changed, splits, count * sizeof *splits);
    changed[which].how = as->how;
    changed[which].segments = as->segments;
    memcpy(changed[which].weight, as->weight, sizeof as->weight);
    try_cut(s, changed, count, sums);
}

static void try_fused(struct search *s, const struct shards_split *splits, unsigned count,
                      unsigned which, unsigned segments, uint32_t first)
{
    struct shards_split as = {.how = SHARDS_FUSED, .segments = segments};
    const struct sums sums = search_alone(s);
    for (unsigned k = 0; k < segments; k++)
        as.weight[k] = k ? 1 : first;
    try_segments(s, splits, count, which, &as, &sums);
}

/* An axis that was two: every sequence of a batch is cut, and the batch then laid out as one. */
static void try_blocks(struct search *s, const struct shards_split *splits, unsigned count,
                       const struct sums *sums)
{
    for (unsigned which = 0; which < count && !search_any_fits(s); which++)
        for (unsigned blocks = 2; blocks <= MAX_BLOCKS && !search_any_fits(s); blocks++) {
            struct shards_split as = {.how = SHARDS_FUSED, .segments = blocks};
            if (s->parts[0]->shape[splits[which].axis] % blocks)
                continue;
            try_segments(s, splits, count, which, &as, sums);
            as.how = SHARDS_ZIGZAG;
            try_segments(s, splits, count, which, &as, sums);
        }
}

/* The loss of each rank is the mean over what it has, not over all: over all slots, or over those
 * of one axis of ranks. */
static void try_scaled(struct search *s, const struct shards_split *splits, unsigned count,
                       unsigned slots)
{
    for (unsigned k = 0; k <= count && count && !search_any_fits(s); k++) {
        const struct sums scaled = {
            .groups = s->count, .terms = 1, .divisor = k < count ? splits[k].count : slots};
        for (unsigned zigzag = 0; zigzag <= count; zigzag++) {
            struct shards_split changed[SHARDS_SPLITS];
            memcpy(changed, splits, count * sizeof *splits);
            if (zigzag)
                changed[zigzag - 1].how = SHARDS_ZIGZAG;
            try_cut(s, changed, count, &scaled);
        }
        try_blocks(s, splits, count, &scaled);
    }
}

/* Parts of one shape, which fits a number of times along some axes. */
static void try_grid(struct search *s)
{
    const struct plumb_tensor *part = s->parts[0];
    struct shards_split splits[SHARDS_SPLITS] = {{0}};
    const struct sums sums = search_alone(s);
    unsigned count = 0, slots = 1;
    for (unsigned a = 0; a < part->rank; a++) {
        const int64_t size = part->shape[a], all = s->whole->shape[a];
        if (size == all)
            continue;
        if (!size || !all || all % size || all / size > s->count || count == SHARDS_SPLITS)
            return;
        splits[count] = (struct shards_split){.axis = a, .count = (unsigned)(all / size)};
        slots *= splits[count++].count;
        if (slots > s->count)
            return;
    }
    try_cut(s, splits, count, &sums);
    for (unsigned k = 0; k < count; k++) {
        struct shards_split changed[SHARDS_SPLITS];
        memcpy(changed, splits, sizeof splits);
        changed[k].how = SHARDS_ZIGZAG;
        try_cut(s, changed, count, &sums);
        try_fused(s, splits, count, k, 2, 1);
        try_fused(s, splits, count, k, 3, 1);
    }
    for (unsigned k = 0; k < count && !search_any_fits(s); k++)
        for (uint32_t heads = 2; heads <= 16; heads++)
            try_fused(s, splits, count, k, 3, heads);
    if (slots < s->count)
        try_sums(s, splits, count, slots);
    try_blocks(s, splits, count, &sums);
    if (plumb_dtype_info(part->dtype)->kind == PLUMB_KIND_FLOAT)
        try_scaled(s, splits, count, slots);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static bool same_shapes(const struct search *s, unsigned rank)
{
    for (unsigned p = 0; p < s->count; p++) {
        if (s->parts[p]->rank != rank)
            return false;
        for (unsigned a = 0; a < rank; a++)
            if (s->parts[p]->shape[a] != s->parts[0]->shape[a])
                return false;
    }
    return true;
}

static void try_all(struct search *s)
{
    bool ranks = true;
    for (unsigned p = 0; p < s->count; p++)
        ranks = ranks && s->parts[p]->rank == s->whole->rank;
    s->candidates = 0;
    if (same_shapes(s, s->whole->rank))
        try_grid(s);
    if (!s->candidates && ranks && s->whole->rank)
        search_uneven(s);
    if (!s->candidates)
        search_flat(s);
}

/* What is implied by replicas is no rival: their mean is what they are. */
static bool is_implied(const struct candidate *best, const struct candidate *other)
{
    return other->layout->reduce == SHARDS_MEAN &&
           (best->layout->reduce == SHARDS_ONE ||
            (best->layout->reduce == SHARDS_MEAN && other->layout->terms > best->layout->terms));
}

bool shards_better(const struct shards_found *a, const struct shards_found *b)
{
    if (a->missed == b->missed)
        return search_clear(a->residual, b->residual);
    if (a->missed > b->missed)
        return !shards_better(b, a);
    return a->residual <= ROUNDING || !search_clear(b->residual, a->residual);
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    const struct shards_found one = {.residual = a->residual, .missed = a->missed};
    const struct shards_found other = {.residual = b->residual, .missed = b->missed};
    return shards_better(&one, &other);
}

static void choose(const struct search *s, struct shards_found *found)
{
    const struct candidate *best = NULL, *rival = NULL;
    for (size_t i = 0; i < s->candidates; i++) {
        const struct candidate *c = &s->list[i];
        if (c->fits && (!best || is_better(c, best)))
            best = c;
    }
    *found = (struct shards_found){.residual = INFINITY};
    /* That rows of numbers are long enough says nothing. */
    if (!best && s->candidates && !s->list[0].layout->flat) {
        found->basis = SHARDS_BY_SHAPE;
        found->layout = s->list[0].layout;
        found->open = s->candidates > 1;
        return;
    }
    for (size_t i = 0; best && i < s->candidates && !rival; i++) {
        const struct candidate *c = &s->list[i];
        if (c != best && c->fits && c->missed == best->missed &&
            !search_clear(best->residual, c->residual) && !is_implied(best, c))
            rival = c;
    }
    if (best)
        *found = (struct shards_found){.basis = SHARDS_BY_VALUES,
                                       .layout = best->layout,
                                       .residual = best->residual,
                                       .missed = best->missed,
                                       .open = best->open || rival,
                                       .rival = rival ? rival->layout : NULL};
}

enum plumb_code shards_infer(struct shards_found *found, struct arena *arena,
                             const struct plumb_tensor *whole,
                             const struct plumb_tensor *const *parts, unsigned count,
                             struct plumb_error *err)
{
    *found = (struct shards_found){.residual = INFINITY};
    struct search *s = arena_alloc(arena, sizeof *s);
    struct shards_sample *samples = arena_array(arena, count, sizeof *samples);
    if (!s || !samples)
        return plumb_no_memory(err);
    *s = (struct search){
        .arena = arena, .whole = whole, .parts = parts, .count = count, .samples = samples};
    for (unsigned stage = 0; stage < SHARDS_STAGES; stage++) {
        bool all = true;
        for (unsigned p = 0; p < count; p++) {
            if (!shards_sample(&samples[p], arena, parts[p], stage))
                return plumb_no_memory(err);
            all = all && samples[p].all;
        }
        try_all(s);
        if (s->no_memory)
            return plumb_no_memory(err);
        choose(s, found);
        if (all || (found->basis == SHARDS_BY_VALUES && !found->open) ||
            found->basis == SHARDS_UNKNOWN)
            break;
    }
    return PLUMB_OK;
}
