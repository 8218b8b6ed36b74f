/* Steps and ranks that a conversion put into the names. */
#include "pair/parts.h"

#include <stdlib.h>
#include <string.h>

/* The number in "rank1/...", or in "2/..." with no word; moves *name behind it. -1 when the name
 * does not begin so. */
static int64_t take_number(const char **name, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*name, word, length) != 0)
        return -1;
    const char *digits = *name + length;
    size_t count = strspn(digits, "0123456789");
    if (!count || count > 18 || digits[count] != '/' || !digits[count + 1])
        return -1;
    *name = digits + count + 1;
    return strtoll(digits, NULL, 10);
}

struct place {
    int64_t rank, step;
    const char *name;
};

static struct place place_of(const struct plumb_record *record, bool ranks, bool steps)
{
    struct place place = {.rank = record->rank, .step = record->step, .name = record->name};
    if (ranks)
        place.rank = take_number(&place.name, "rank");
    if (steps)
        place.step = take_number(&place.name, "");
    return place;
}

/* Does the run count ranks, or steps? */
static bool counts(const struct match_side *side, bool ranks)
{
    for (size_t i = 0; i < side->count; i++)
        if ((ranks ? side->records[i]->rank : side->records[i]->step) >= 0)
            return true;
    return false;
}

/* Do all names of the side begin with a rank, with a step, or with both? */
static bool all_begin_so(const struct match_side *side, bool ranks, bool steps)
{
    for (size_t i = 0; i < side->count; i++) {
        struct place place = place_of(side->records[i], ranks, steps);
        if ((ranks && place.rank < 0) || (steps && place.step < 0))
            return false;
    }
    return side->count > 0;
}

static bool read_side(struct matcher *matcher, struct match_side *side, bool ranks, bool steps)
{
    struct plumb_record *records = arena_array(&matcher->arena, side->count, sizeof *records);
    const struct plumb_record **list = arena_array(&matcher->arena, side->count, sizeof *list);
    if (!records || !list)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        struct place place = place_of(side->records[i], ranks, steps);
        records[i] = *side->records[i];
        records[i].rank = place.rank;
        records[i].step = place.step;
        records[i].name = place.name;
        list[i] = &records[i];
    }
    side->records = list;
    return true;
}

/* Takes what the other side counts, or what both have in their names, out of those of a side. */
static bool read_names(struct matcher *matcher, struct match_side *side, bool ranks, bool steps)
{
    /* What the run has only one of is not in its names. */
    if (ranks && steps && all_begin_so(side, true, true))
        return read_side(matcher, side, true, true);
    if (ranks && all_begin_so(side, true, false))
        return read_side(matcher, side, true, false);
    if (steps && all_begin_so(side, false, true))
        return read_side(matcher, side, false, true);
    return true;
}

bool match_read_places(struct matcher *matcher)
{
    struct match_side *sides = matcher->side;
    /* Two conversions of a run: both have ranks in their names, and one has steps there, too. */
    bool ranked = counts(&sides[TARGET], false) != counts(&sides[GOLDEN], false);
    for (int which = TARGET; which <= GOLDEN; which++)
        ranked = ranked && (all_begin_so(&sides[which], true, false) ||
                            all_begin_so(&sides[which], true, true));
    for (int which = TARGET; which <= GOLDEN; which++) {
        struct match_side *side = &sides[which], *other = &sides[!which];
        bool ranks = !counts(side, true) && (counts(other, true) || ranked);
        bool steps = !counts(side, false) && counts(other, false);
        if (!read_names(matcher, side, ranks, steps))
            return false;
    }
    return true;
}
