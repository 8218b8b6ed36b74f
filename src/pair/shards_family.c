/* Families of process groups, and layouts whose slices follow one. */
#define _GNU_SOURCE
#include "pair/shards_family.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"
#include "pair/shards_dims.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 16384, MOST_FAMILIES = 16, TEXT = 200 };

struct group {
    int64_t *ranks; /* as they were written: their order counts */
    unsigned count;
    bool used;
};

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Reads "[0, 1]": false when it is none of more ranks than one and fewer than `most`, each once, or
 * (with *failed) out of memory. */
static bool read_group(struct group *group, struct arena *arena, const char *text, unsigned most,
                       bool *failed)
{
    struct json json;
    int64_t rank;
    enum json_event event;
    size_t commas = 0;
    for (const char *p = text; *p; p++)
        commas += *p == ',';
    group->ranks = arena_array(arena, (commas < most ? commas : most) + 1, sizeof *group->ranks);
    if (!group->ranks) {
        *failed = true;
        return false;
    }
    json_init(&json, text, strlen(text));
    if (json_next(&json) != JSON_ARRAY)
        return false;
    while ((event = json_next(&json)) == JSON_NUMBER && group->count <= commas &&
           group->count < most && json_int64(&json, &rank)) {
        for (unsigned i = 0; i < group->count; i++)
            if (group->ranks[i] == rank)
                return false;
        group->ranks[group->count++] = rank;
    }
    return event == JSON_ARRAY_END && group->count > 1 && group->count < most;
}

static unsigned index_of(const struct shards_families *f, int64_t rank)
{
    unsigned low = 0, high = f->rank_count;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (f->ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < f->rank_count && f->ranks[low] == rank ? low : f->rank_count;
}

/* Have two groups the same size and spacing? */
static bool same_kind(const struct group *a, const struct group *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 1; i < a->count; i++)
        if (a->ranks[i] - a->ranks[0] != b->ranks[i] - b->ranks[0])
            return false;
    return true;
}

/* The family of a group: all of its kind, if they have every rank once. -1 when out of memory, 1
 * when it is one. */
static int make_family(struct shards_family *family, struct shards_families *out,
                       struct arena *arena, struct group *groups, size_t count, size_t first)
{
    unsigned *place = arena_array(arena, out->rank_count, sizeof *place);
    unsigned *number = arena_array(arena, out->rank_count, sizeof *number);
    unsigned covered = 0, made = 0;
    struct buf text = {0};
    bool good = place && number;
    if (!good)
        return -1;
    for (size_t i = first; i < count && good; i++) {
        if (groups[i].used || !same_kind(&groups[first], &groups[i]))
            continue;
        groups[i].used = true;
        made++;
        if (text.size < TEXT)
            buf_text(&text, text.size ? " " : "");
        for (unsigned k = 0; k < groups[i].count && good; k++) {
            const unsigned at = index_of(out, groups[i].ranks[k]);
            good = at < out->rank_count && !number[at];
            if (!good)
                break;
            place[at] = k;
            number[at] = made;
            covered++;
            if (text.size < TEXT)
                buf_printf(&text, "%s%" PRId64, k ? "," : "", groups[i].ranks[k]);
        }
    }
    good = good && covered == out->rank_count;
    if (text.size >= TEXT)
        buf_text(&text, " ...");
    *family = (struct shards_family){.size = groups[first].count, .place = place, .group = number};
    family->text = text.failed ? NULL : arena_copy(arena, text.data, text.size);
    buf_free(&text);
    return !family->text ? -1 : good;
}

bool shards_families(struct shards_families *out, struct arena *arena, const char *const *texts,
                     size_t count, const int64_t *ranks, unsigned rank_count)
{
    struct map seen = {0};
    bool failed = false;
    *out = (struct shards_families){.ranks = ranks, .rank_count = rank_count};
    if (rank_count < 3)
        return true;
    struct group *groups = NULL;
    size_t used = 0, room = 0;
    out->list = arena_array(arena, MOST_FAMILIES, sizeof *out->list);
    for (size_t i = 0; i < count && out->list && !failed && used < MOST_GROUPS; i++) {
        bool added = false;
        if (!map_put(&seen, texts[i], strlen(texts[i]), &added))
            failed = true;
        if (!added)
            continue;
        if (used == room) {
            room = room ? room * 2 : 16;
            struct group *more = realloc(groups, room * sizeof *more);
            failed = !more;
            groups = more ? more : groups;
        }
        if (failed)
            break;
        groups[used] = (struct group){0};
        used += read_group(&groups[used], arena, texts[i], rank_count, &failed);
    }
    for (size_t i = 0; i < used && !failed && out->list && out->count < MOST_FAMILIES; i++) {
        size_t before = 0, behind = 0;
        if (groups[i].used)
            continue;
        for (size_t k = 0; k < used; k++)
            before += groups[k].used;
        const int good = make_family(&out->list[out->count], out, arena, groups, used, i);
        for (size_t k = 0; k < used; k++)
            behind += groups[k].used;
        failed = good < 0;
        out->count += good > 0;
        out->left += good > 0 ? 0 : behind - before;
    }
    free(groups);
    map_free(&seen);
    return out->list && !failed;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* Where the parts of a side are in their groups; NULL: they are not all of some groups (or, with
 * *failed, out of memory). */
static const unsigned *places(struct arena *arena, const struct shards_side *side,
                              const struct shards_family *family, bool *failed)
{
    const struct shards_families *f = side->families;
    unsigned *place = arena_array(arena, side->count, sizeof *place);
    unsigned *members = arena_array(arena, f->rank_count + 1, sizeof *members);
    *failed = !place || !members;
    for (unsigned p = 0; p < side->count && !*failed; p++) {
        const unsigned at = index_of(f, side->ranks[p]);
        if (at == f->rank_count)
            return NULL;
        place[p] = family->place[at];
        members[family->group[at]]++;
    }
    for (unsigned g = 0; g <= f->rank_count && !*failed; g++)
        if (members[g] && members[g] != family->size)
            return NULL;
    return *failed ? NULL : place;
}

/* Is the whole `times` times as large as the parts along an axis, and as large along the others? */
static bool is_cut(const struct plumb_tensor *whole, const struct shards_side *side, unsigned axis,
                   unsigned times)
{
    for (unsigned p = 0; p < side->count; p++) {
        const struct plumb_tensor *part = side->parts[p];
        if (part->rank != whole->rank || part->dtype != whole->dtype)
            return false;
        for (unsigned i = 0; i < whole->rank; i++)
            if (part->shape[i] > INT64_MAX / times ||
                part->shape[i] * (i == axis ? (int64_t)times : 1) != whole->shape[i])
                return false;
    }
    return true;
}

/* Does a layout put the parts where the family has them? */
static bool follows(const struct shards_layout *layout, const struct shards_family *family,
                    const unsigned *place)
{
    const bool cut = layout->splits == 1 && !layout->flat && layout->reduce == SHARDS_ONE &&
                     layout->split[0].count == family->size;
    const bool added =
        !layout->splits && layout->reduce != SHARDS_ONE && layout->terms == family->size;
    for (unsigned p = 0; p < layout->parts; p++)
        if ((cut ? layout->slot[p] : layout->term[p]) != place[p])
            return false;
    return cut || added;
}

/* How far the parts, put together, are from the whole; infinity where they do not fit. */
static double misfit(struct arena *arena, const struct shards_layout *layout,
                     const struct shards_side *side, const struct plumb_tensor *whole)
{
    struct shards_plan plan;
    double sum = 0;
    if (shards_plan(&plan, arena, layout, side->parts, NULL) || plan.count != whole->count)
        return INFINITY;
    for (unsigned p = 0; p < layout->parts; p++) {
        struct shards_sample sample;
        if (!shards_sample(&sample, arena, side->parts[p], 1))
            return INFINITY;
        const struct shards_sum one = {&sample, 0, 1, 1, 1.0};
        sum = fmax(sum, shards_distance(&one, side->parts[p], &plan, p, whole));
    }
    return sum;
}

/* The family whose slices the shapes allow, alone and along one axis; NULL: none, or several. */
static enum plumb_code find_cut(struct shards_layout **layout, const struct shards_family **found,
                                struct arena *arena, const struct shards_side *side,
                                const struct plumb_tensor *whole, struct plumb_error *err)
{
    unsigned fits = 0;
    for (size_t i = 0; i < side->families->count; i++) {
        const struct shards_family *family = &side->families->list[i];
        bool failed;
        const unsigned *place = places(arena, side, family, &failed);
        if (failed)
            return plumb_no_memory(err);
        for (unsigned axis = 0; place && axis < whole->rank; axis++) {
            if (!is_cut(whole, side, axis, family->size))
                continue;
            const struct shards_use use = {.action = SHARDS_SPLIT,
                                           .split = {.axis = axis},
                                           .count = family->size,
                                           .place = place};
            const enum plumb_code code = shards_from_uses(layout, arena, &use, 1, side->count, err);
            if (code)
                return code;
            *found = family;
            fits++;
        }
    }
    if (fits != 1)
        *found = NULL;
    return PLUMB_OK;
}

/* Notes the family that a layout agrees with. */
static enum plumb_code note_family(struct shards_found *found, struct arena *arena,
                                   const struct shards_side *side, struct plumb_error *err)
{
    for (size_t i = 0; i < side->families->count && !found->family; i++) {
        bool failed;
        const struct shards_family *family = &side->families->list[i];
        const unsigned *place = places(arena, side, family, &failed);
        if (failed)
            return plumb_no_memory(err);
        if (place && follows(found->layout, family, place))
            found->family = family;
    }
    return PLUMB_OK;
}

enum plumb_code shards_by_families(struct shards_found *found, struct arena *arena,
                                   const struct shards_side *side, const struct plumb_tensor *whole,
                                   struct plumb_error *err)
{
    struct shards_layout *layout = NULL;
    const struct shards_family *family = NULL;
    if (!side->families || !side->families->count || side->count < 2)
        return PLUMB_OK;
    const bool decided = found->basis == SHARDS_BY_VALUES;
    if (decided && !found->open)
        return note_family(found, arena, side, err);
    enum plumb_code code = find_cut(&layout, &family, arena, side, whole, err);
    if (code || !family)
        return code;
    /* What the data allow, the groups may decide; they may not overrule the data. */
    if (decided && misfit(arena, layout, side, whole) > fmax(1.01 * found->residual, 1e-7))
        return PLUMB_OK;
    found->layout = layout;
    found->family = family;
    found->rival = NULL;
    found->open = !decided;
    if (!decided)
        found->basis = SHARDS_BY_SHAPE;
    return PLUMB_OK;
}
