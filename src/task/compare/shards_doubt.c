/* What is odd about how parts were put together: layouts that fit the values, and that a run which
 * is right would hardly have.
 *
 * Values alone explain too much: copies that are four times too small are a sum, shards that two
 * ranks exchanged are another order. Such tensors pass, and are suspicious. */
#define _GNU_SOURCE
#include "base/map.h"
#include "pair/shards_number.h"
#include "task/compare/shards.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool shards_doubt(struct shards_choice *choice, bool denied, const char *format, ...)
{
    if (choice->doubt && (choice->denied || !denied))
        return true;
    va_list args;
    char *text = NULL;
    va_start(args, format);
    const bool made = vasprintf(&text, format, args) >= 0;
    va_end(args);
    if (!made)
        return false;
    free(choice->doubt);
    choice->doubt = text;
    choice->denied = denied;
    return true;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Sums of which the terms are copies, or all but one are zeros. Single numbers may well be so:
 * counts of tokens, losses that one rank has. */
static bool doubt_terms(struct shards_choice *choice, const struct plumb_tensor *const *parts,
                        const int64_t *ranks)
{
    const struct shards_layout *layout = choice->layout;
    const unsigned slots = shards_slots(layout);
    bool copies = true;
    unsigned filled = 0, only = 0;
    if (layout->reduce == SHARDS_ONE || choice->source != SHARDS_FOUND || choice->count < 2)
        return true;
    for (unsigned slot = 0; slot < slots; slot++) {
        const struct plumb_tensor *first = parts[shards_first(layout, slot, 0)];
        for (unsigned term = 0; term < layout->terms; term++) {
            const unsigned p = shards_first(layout, slot, term);
            if (plumb_tensor_is_zero(parts[p], 0))
                continue;
            only = filled++ ? only : p;
            copies = copies && (!term || shards_apart(first, parts[p]) == 0);
        }
        copies = copies && !plumb_tensor_is_zero(first, 0);
    }
    if (filled == 1 && slots == 1)
        return shards_doubt(
            choice, false, "a %s of %u terms, of which only that of rank %" PRId64 " is not zero",
            layout->reduce == SHARDS_SUM ? "sum" : "mean", layout->terms, ranks[only]);
    if (filled == slots * layout->terms && copies)
        return shards_doubt(choice, false,
                            "a sum of %u terms that have the same bits: copies, too small?",
                            layout->terms);
    return true;
}

static bool doubt_counts(struct shards_choice *choice)
{
    const struct shards_layout *layout = choice->layout;
    unsigned least = layout->parts, most = 0;
    if (layout->flat)
        return true;
    for (unsigned slot = 0; slot < shards_slots(layout); slot++)
        for (unsigned term = 0; term < layout->terms; term++) {
            unsigned count = 0;
            for (unsigned p = 0; p < layout->parts; p++)
                count += layout->slot[p] == slot && layout->term[p] == term;
            least = count < least ? count : least;
            most = count > most ? count : most;
        }
    return least == most ||
           shards_doubt(choice, false, "some slices are on %u rank%s and others on %u", least,
                        least == 1 ? "" : "s", most);
}

bool shards_doubt_parts(struct shards_choice *choice, const struct plumb_tensor *const *parts,
                        const int64_t *ranks)
{
    return doubt_counts(choice) && doubt_terms(choice, parts, ranks);
}

/* ---- The order of the ranks ------------------------------------------------------------------ */

static bool is_cut(const struct shards_choice *choice)
{
    return choice->layout && choice->layout->splits && !choice->layout->flat &&
           choice->source == SHARDS_FOUND;
}

/* Do the slices of a split follow an axis of ranks: is its digit of part p (p / stride) % count? */
static bool follows_axis(const struct shards_layout *layout, unsigned split)
{
    unsigned below = 1;
    const unsigned count = layout->split[split].count;
    for (unsigned s = split + 1; s < layout->splits; s++)
        below *= layout->split[s].count;
    for (unsigned stride = 1; stride <= layout->parts; stride++) {
        unsigned p = 0;
        while (p < layout->parts && layout->slot[p] / below % count == p / stride % count)
            p++;
        if (p == layout->parts)
            return true;
    }
    return false;
}

static bool follows_axes(const struct shards_layout *layout)
{
    for (unsigned s = 0; s < layout->splits; s++)
        if (!follows_axis(layout, s))
            return false;
    return true;
}

/* How often an order of ranks came: "4 parts, 4 slots", and behind it the slots of the parts. */
static uint64_t *count_of(struct map *orders, struct arena *arena,
                          const struct shards_layout *layout, bool slots)
{
    const size_t size = (slots ? layout->parts : 0) * sizeof *layout->slot;
    unsigned *key = arena_array(arena, layout->parts + 2, sizeof *key);
    if (!key)
        return NULL;
    key[0] = layout->parts;
    key[1] = shards_slots(layout);
    memcpy(key + 2, layout->slot, size);
    return map_put(orders, (const char *)key, 2 * sizeof *key + size, NULL);
}

static bool count_orders(struct map *orders, struct arena *arena, const struct shards_run *side)
{
    for (size_t i = 0; i < side->groups.count; i++) {
        const struct shards_choice *choice = &side->choices[i];
        if (!is_cut(choice) || choice->open)
            continue;
        for (int slots = 0; slots < 2; slots++) {
            uint64_t *count = count_of(orders, arena, choice->layout, slots);
            if (!count)
                return false;
            ++*count;
        }
    }
    return true;
}

/* An order that is none of axes of ranks is believed when most tensors with as many slices have
 * it, and several. */
static bool doubt_order(struct map *orders, struct arena *arena, struct shards_choice *choice)
{
    enum { SEVERAL = 3 };
    if (!is_cut(choice) || choice->family || follows_axes(choice->layout))
        return true;
    const uint64_t *all = count_of(orders, arena, choice->layout, false);
    const size_t cut = all ? (size_t)*all : 0;
    const uint64_t *same = all ? count_of(orders, arena, choice->layout, true) : NULL;
    if (!same)
        return false;
    const size_t alike = (size_t)*same, others = cut - alike;
    if (alike >= SEVERAL && alike > others)
        return true;
    if (others)
        return shards_doubt(choice, false,
                            "the order of the ranks is unlike that of %zu other tensor%s", others,
                            others > 1 ? "s" : "");
    return shards_doubt(choice, false, "the slices are not in the order of the ranks");
}

/* ---- Factors --------------------------------------------------------------------------------- */

static bool is_gradient(const struct shards_group *group)
{
    return strstr(group->name, "backward") || strstr(group->name, "grad");
}

/* A factor is what gradients of a mean over a share have, and then most of them. */
static bool doubt_factor(struct shards_run *side, size_t number, const size_t gradients[2])
{
    struct shards_choice *choice = &side->choices[number];
    if (!is_cut(choice) || choice->layout->divisor < 2)
        return true;
    if (!is_gradient(&side->groups.list[number]))
        return shards_doubt(choice, false, "each part is %u times too large, and no gradient",
                            choice->layout->divisor);
    return gradients[1] >= gradients[0] ||
           shards_doubt(choice, false,
                        "each part is %u times too large, and that of %zu other gradients is not",
                        choice->layout->divisor, gradients[0]);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

/* A name with its module, and without the number of the layer; NULL: it has none. *failed when out
 * of memory. */
static const char *layer_kind(struct arena *arena, const struct shards_group *group, bool *failed)
{
    const char *parent = group->parent ? group->parent : "";
    size_t at[2], length[2];
    const bool has[2] = {numbering_layer(parent, &at[0], &length[0]),
                         numbering_layer(group->name, &at[1], &length[1])};
    if (!has[0] && !has[1])
        return NULL;
    const char *text[2] = {parent, group->name};
    for (int i = 0; i < 2; i++)
        if (has[i] && text[i])
            text[i] =
                arena_printf(arena, "%.*s#%s", (int)at[i], text[i], text[i] + at[i] + length[i]);
    const char *kind = text[0] && text[1] ? arena_printf(arena, "%s|%s", text[0], text[1]) : NULL;
    *failed = *failed || !kind;
    return kind;
}

/* A tensor in all layers: how often each way to put it together was found. */
struct kin {
    size_t count, most;
    const char *usual; /* the layout that `most` have */
};

/* A layout as text, with ranks counted from 0 in each tensor; NULL when out of memory. */
static const char *layout_key(struct arena *arena, const struct shards_layout *layout)
{
    char text[SHARDS_TEXT];
    int64_t *ranks = arena_array(arena, layout->parts, sizeof *ranks);
    for (unsigned p = 0; ranks && p < layout->parts; p++)
        ranks[p] = p;
    if (!ranks)
        return NULL;
    shards_text(layout, ranks, text, sizeof text);
    return arena_copy(arena, text, strlen(text));
}

static bool is_decided(const struct shards_choice *choice)
{
    return choice->layout && choice->source == SHARDS_FOUND && !choice->open;
}

/* Two walks over the tensors: the first counts, the second judges. */
static bool doubt_layers(struct shards_work *work, struct shards_run *side)
{
    struct map kinds = {0}, ways = {0};
    bool failed = false;
    for (int pass = 0; pass < 2 && !failed; pass++)
        for (size_t i = 0; i < side->groups.count && !failed; i++) {
            struct shards_choice *choice = &side->choices[i];
            const char *kind = is_decided(choice)
                                   ? layer_kind(&work->arena, &side->groups.list[i], &failed)
                                   : NULL;
            if (!kind)
                continue;
            const char *layout = layout_key(&work->arena, choice->layout);
            const char *way = layout ? arena_printf(&work->arena, "%s|%s", kind, layout) : NULL;
            uint64_t *place = way ? map_put(&kinds, kind, strlen(kind), NULL) : NULL;
            uint64_t *times = place ? map_put(&ways, way, strlen(way), NULL) : NULL;
            if (place && !*place)
                *place = (uint64_t)(uintptr_t)arena_alloc(&work->arena, sizeof(struct kin));
            struct kin *kin = place ? (struct kin *)(uintptr_t)*place : NULL;
            failed = !kin || !times;
            if (failed)
                break;
            if (!pass) {
                kin->count++;
                if (++*times > kin->most) {
                    kin->most = *times;
                    kin->usual = layout;
                }
            } else if (kin->most >= 3 && kin->most * 4 >= kin->count * 3 &&
                       strcmp(kin->usual, layout) != 0) {
                failed = !shards_doubt(choice, false, "unlike %zu of %zu layers: %.80s there",
                                       kin->most, kin->count, kin->usual);
            }
        }
    map_free(&kinds);
    map_free(&ways);
    return !failed;
}

/* ---- Ranks that are missing ------------------------------------------------------------------ */

/* Do most tensors lie on all ranks? Then the run is no pipeline, and one that some rank lacks is
 * odd. */
static bool is_everywhere(const struct shards_run *side)
{
    size_t whole = 0;
    for (size_t i = 0; i < side->groups.count; i++)
        whole += side->groups.list[i].parts == side->groups.rank_count;
    return whole * 2 > side->groups.count;
}

static int64_t first_missing(const struct shards_run *side, const struct shards_group *group)
{
    unsigned p = 0;
    while (p < group->parts && group->ranks[p] == side->groups.ranks[p])
        p++;
    return side->groups.ranks[p];
}

static bool doubt_missing(const struct shards_run *side, size_t number, bool everywhere)
{
    struct shards_choice *choice = &side->choices[number];
    const struct shards_group *group = &side->groups.list[number];
    const unsigned ranks = side->groups.rank_count;
    if (!choice->layout || ranks < 2)
        return true;
    if (side->missing && !shards_doubt(choice, false, "the run lacks rank%s %s",
                                       strchr(side->missing, ',') ? "s" : "", side->missing))
        return false;
    if (everywhere && group->parts < ranks && group->parts * 2 > ranks)
        return shards_doubt(choice, false,
                            "%u of %u ranks have it; the first that lacks it is %" PRId64,
                            group->parts, ranks, first_missing(side, group));
    return true;
}

/* Axes of ranks that a layout names, and that --parallel does not have. */
static bool doubt_axes(struct shards_work *work, int k, size_t number)
{
    const struct shards_run *side = &work->side[k];
    struct shards_choice *choice = &side->choices[number];
    const struct shards_mesh *mesh = &work->rules.mesh[k];
    if (choice->source != SHARDS_GIVEN || !mesh->axes)
        return true;
    const char *axis = shards_dims_stranger(
        shards_rules_find(&work->rules, k, side->groups.list[number].name), mesh);
    return !axis || shards_doubt(choice, false,
                                 "its layout has the axis %s, which --parallel has not; write %s=1 "
                                 "there for one of a single rank",
                                 axis, axis);
}

bool shards_doubt_all(struct shards_work *work)
{
    for (int k = 0; k < 2; k++) {
        struct shards_run *side = &work->side[k];
        const bool everywhere = is_everywhere(side);
        struct map orders = {0};
        size_t gradients[2] = {0, 0}; /* without a factor, and with one */
        bool good = count_orders(&orders, &work->arena, side);
        for (size_t i = 0; i < side->groups.count; i++)
            if (is_cut(&side->choices[i]) && is_gradient(&side->groups.list[i]))
                gradients[side->choices[i].layout->divisor > 1]++;
        for (size_t i = 0; i < side->groups.count && good; i++)
            good = doubt_missing(side, i, everywhere) && doubt_axes(work, k, i) &&
                   doubt_order(&orders, &work->arena, &side->choices[i]) &&
                   doubt_factor(side, i, gradients);
        map_free(&orders);
        if (!good || !doubt_layers(work, side))
            return false;
    }
    return true;
}
