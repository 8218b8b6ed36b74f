/* Layers and experts that ranks number from 0, counted through. */
#define _GNU_SOURCE
#include "pair/shards_number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[NUMBER_KINDS][8] = {
    [NUMBER_LAYERS] = {"layers", "layer", "blocks", "block", "h", "Module"},
    [NUMBER_EXPERTS] = {"experts", "local_experts"},
};

static bool is_word(enum numbering_kind kind, const char *text, size_t length)
{
    for (size_t k = 0; words[kind][k]; k++)
        if (strlen(words[kind][k]) == length && memcmp(words[kind][k], text, length) == 0)
            return true;
    return false;
}

/* Where the first number behind such a word stands; false: there is none. "Module.0.Linear" has a
 * layer only as its first part. */
static bool find_number(enum numbering_kind kind, const char *name, size_t *at, size_t *length)
{
    for (const char *p = name; *p;) {
        const size_t word = strcspn(p, "."),
                     digits = p[word] ? strspn(p + word + 1, "0123456789") : 0;
        if (digits && digits < 10 && p[word + 1 + digits] == '.' && is_word(kind, p, word)) {
            *at = (size_t)(p + word + 1 - name);
            *length = digits;
            return true;
        }
        p += word + (p[word] == '.');
    }
    return false;
}

bool numbering_layer(const char *name, size_t *at, size_t *length)
{
    static const char top[] = "Module."; /* what is numbered there may be of any kind */
    return find_number(NUMBER_LAYERS, name, at, length) &&
           !(*at >= sizeof top - 1 &&
             memcmp(name + *at - (sizeof top - 1), top, sizeof top - 1) == 0);
}

/* "rank3/", "rank_3.", "rank=3___": the number, and how much of the name it takes. */
static int64_t rank_in(const char *name, size_t *length)
{
    if (strncmp(name, "rank", 4) != 0)
        return -1;
    const char *p = name + 4 + (name[4] == '_' || name[4] == '=' || name[4] == '-');
    const size_t digits = strspn(p, "0123456789");
    const size_t gap = strspn(p + digits, "/._");
    if (!digits || digits > 9 || !gap || !p[digits + gap])
        return -1;
    *length = (size_t)(p - name) + digits + gap;
    return strtol(p, NULL, 10);
}

int64_t shards_rank_of_folder(const char *name)
{
    if (strncmp(name, "rank", 4) != 0)
        return -1;
    const char *p = name + 4 + (name[4] == '_' || name[4] == '=' || name[4] == '-');
    const size_t digits = strspn(p, "0123456789");
    return digits && digits < 10 && !p[digits] ? strtol(p, NULL, 10) : -1;
}

int64_t numbering_rank(const struct plumb_record *record, const char **name)
{
    size_t length;
    if (record->rank >= 0)
        return record->rank;
    const int64_t rank = rank_in(*name, &length);
    if (rank >= 0)
        *name += length;
    return rank;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

bool numbering_ranks(struct arena *arena, const struct plumb_record *const *records, size_t count,
                     int64_t **ranks, unsigned *rank_count)
{
    int64_t *list = arena_room(arena, count + 1, sizeof *list);
    if (!list)
        return false;
    size_t used = 0, distinct = 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = records[i]->name;
        const int64_t rank = numbering_rank(records[i], &name);
        if (!used || list[used - 1] != rank)
            list[used++] = rank;
    }
    qsort(list, used, sizeof *list, by_value);
    for (size_t i = 0; i < used; i++)
        if (!distinct || list[distinct - 1] != list[i])
            list[distinct++] = list[i];
    /* Files beside those of ranks are none. */
    const bool strays = distinct > 1 && list[0] < 0;
    *ranks = list + strays;
    *rank_count = (unsigned)(distinct - strays);
    return true;
}

static unsigned index_of(const int64_t *ranks, unsigned count, int64_t rank)
{
    unsigned i = 0;
    while (i + 1 < count && ranks[i] != rank)
        i++;
    return i;
}

/* What a rank has of one kind. */
struct range {
    int64_t least, most; /* most < least: none */
};

static bool read_ranges(struct range *ranges, enum numbering_kind kind,
                        const struct plumb_record *const *records, size_t count,
                        const int64_t *ranks, unsigned rank_count)
{
    bool any = false;
    for (unsigned i = 0; i < rank_count; i++)
        ranges[i] = (struct range){INT64_MAX, -1};
    for (size_t i = 0; i < count; i++) {
        const char *name = records[i]->name;
        size_t at, length;
        const int64_t rank = numbering_rank(records[i], &name);
        if (rank < ranks[0] || !find_number(kind, name, &at, &length))
            continue;
        const int64_t number = strtol(name + at, NULL, 10);
        struct range *range = &ranges[index_of(ranks, rank_count, rank)];
        range->least = number < range->least ? number : range->least;
        range->most = number > range->most ? number : range->most;
        any = true;
    }
    return any;
}

struct shards_numbers shards_count_numbers(const struct plumb_record *const *records, size_t count)
{
    int64_t most[NUMBER_KINDS] = {0};
    for (size_t i = 0; i < count; i++)
        for (int kind = 0; kind < NUMBER_KINDS; kind++) {
            const char *name = records[i]->name;
            size_t at, length;
            numbering_rank(records[i], &name);
            if (!find_number((enum numbering_kind)kind, name, &at, &length))
                continue;
            const int64_t number = strtol(name + at, NULL, 10) + 1;
            most[kind] = number > most[kind] ? number : most[kind];
        }
    return (struct shards_numbers){most[NUMBER_LAYERS], most[NUMBER_EXPERTS]};
}

/* How many times more the other run has than each rank of this one, which all count from 0; 1: that
 * is not so. */
static unsigned count_times(const struct range *ranges, unsigned rank_count, int64_t all)
{
    const int64_t own = ranges[0].most + 1;
    if (own < 1 || all <= own || all % own || (int64_t)rank_count % (all / own))
        return 1;
    for (unsigned i = 0; i < rank_count; i++)
        if (ranges[i].least != 0 || ranges[i].most + 1 != own)
            return 1;
    return (unsigned)(all / own);
}

bool shards_expert_places(struct arena *arena, const struct plumb_record *const *records,
                          size_t count, const struct shards_numbers *other, unsigned *places)
{
    int64_t *ranks;
    unsigned rank_count;
    *places = 1;
    if (!numbering_ranks(arena, records, count, &ranks, &rank_count))
        return false;
    struct range *ranges = arena_array(arena, rank_count + 1, sizeof *ranges);
    if (!ranges)
        return false;
    if (rank_count > 1 && read_ranges(ranges, NUMBER_EXPERTS, records, count, ranks, rank_count))
        *places = count_times(ranges, rank_count, other->experts);
    return true;
}

int64_t shards_expert(const char *name)
{
    size_t at, length;
    return find_number(NUMBER_EXPERTS, name, &at, &length) ? strtol(name + at, NULL, 10) : -1;
}

/* How many places share the layers: as the mesh says, or as the other run suggests. */
static unsigned count_places(enum numbering_kind kind, const struct shards_mesh_axis *axis,
                             const struct range *ranges, unsigned rank_count,
                             const struct shards_numbers *other)
{
    if (axis)
        return axis->size;
    const unsigned times =
        count_times(ranges, rank_count, kind == NUMBER_LAYERS ? other->layers : other->experts);
    /* Stages lie on blocks of ranks; experts may lie otherwise, which numbers do not tell. */
    return kind == NUMBER_EXPERTS && times != rank_count ? 1 : times;
}

static bool number_kind(struct numbering *numbering, enum numbering_kind kind, struct arena *arena,
                        const struct range *ranges, const struct shards_mesh *mesh,
                        const struct shards_numbers *other)
{
    struct numbered *of = &numbering->kind[kind];
    const struct shards_mesh_axis *axis =
        mesh ? shards_mesh_find(mesh, kind == NUMBER_LAYERS ? "pp" : "ep") : NULL;
    of->places = count_places(kind, axis, ranges, of->ranks, other);
    of->before = arena_array(arena, of->places + 1, sizeof *of->before);
    of->place = arena_array(arena, of->ranks, sizeof *of->place);
    if (!of->before || !of->place)
        return false;
    bool own = of->places > 1; /* does everybody begin with 0? */
    for (unsigned i = 0; i < of->ranks; i++) {
        of->place[i] = axis ? shards_mesh_place(mesh, axis, numbering->known[i])
                            : i / (of->ranks / of->places);
        own = own && (ranges[i].most < 0 || ranges[i].least == 0);
    }
    for (unsigned p = 0; p < of->places && own; p++) {
        int64_t most = 0;
        for (unsigned i = 0; i < of->ranks; i++)
            if (of->place[i] == p && ranges[i].most + 1 > most)
                most = ranges[i].most + 1;
        of->before[p + 1] = of->before[p] + most;
    }
    return true;
}

bool numbering_init(struct numbering *numbering, struct arena *arena,
                    const struct plumb_record *const *records, size_t count, const int64_t *ranks,
                    unsigned rank_count, const struct shards_mesh *mesh,
                    const struct shards_numbers *other)
{
    *numbering = (struct numbering){.known = ranks};
    struct range *ranges = arena_array(arena, rank_count + 1, sizeof *ranges);
    if (!ranges)
        return false;
    for (int kind = 0; kind < NUMBER_KINDS; kind++) {
        numbering->kind[kind] = (struct numbered){.places = 1, .ranks = rank_count};
        if (rank_count < 2 ||
            !read_ranges(ranges, (enum numbering_kind)kind, records, count, ranks, rank_count))
            continue;
        if (!number_kind(numbering, (enum numbering_kind)kind, arena, ranges, mesh, other))
            return false;
    }
    return true;
}

const char *numbering_whole(const struct numbering *numbering, struct arena *arena,
                            const char *name, int64_t rank)
{
    for (int kind = 0; kind < NUMBER_KINDS && name; kind++) {
        const struct numbered *of = &numbering->kind[kind];
        size_t at, length;
        if (of->places < 2 || !find_number((enum numbering_kind)kind, name, &at, &length))
            continue;
        const int64_t before = of->before[of->place[index_of(numbering->known, of->ranks, rank)]];
        if (before)
            name = arena_printf(arena, "%.*s%" PRId64 "%s", (int)at, name,
                                strtol(name + at, NULL, 10) + before, name + at + length);
    }
    return name;
}
