/* The layout of a DTensor, as a capture wrote it down. */
#define _GNU_SOURCE
#include "base/json.h"
#include "pair/shards_dims.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MESH = 65536 };

struct mesh {
    int64_t *ranks; /* in C order */
    size_t count, room;
    size_t size[SHARDS_AXES]; /* of each axis */
    unsigned axes;
};

struct placement {
    enum { REPLICA, SHARD, STRIDED, PARTIAL, AVERAGE } kind;
    unsigned axis;
};

struct dtensor {
    struct mesh mesh;
    struct placement placement[SHARDS_AXES];
    unsigned placements;
    bool bad;
};

static bool add_rank(struct mesh *mesh, struct arena *arena, int64_t rank)
{
    if (mesh->count == mesh->room) {
        mesh->room = mesh->room ? mesh->room * 2 : 16;
        int64_t *ranks = arena_array(arena, mesh->room, sizeof *ranks);
        if (!ranks || mesh->room > MAX_MESH)
            return false;
        if (mesh->count)
            memcpy(ranks, mesh->ranks, mesh->count * sizeof *ranks);
        mesh->ranks = ranks;
    }
    mesh->ranks[mesh->count++] = rank;
    return true;
}

/* Lists of lists of ranks, all of one length at each depth. */
static bool read_mesh(struct mesh *mesh, struct arena *arena, struct json *json)
{
    size_t items[SHARDS_AXES] = {0}, depth = 0;
    enum json_event event = json_next(json);
    do {
        int64_t rank;
        if (event == JSON_ARRAY && depth < SHARDS_AXES) {
            if (depth)
                items[depth - 1]++;
            items[depth++] = 0;
            mesh->axes = depth > mesh->axes ? (unsigned)depth : mesh->axes;
        } else if (event == JSON_ARRAY_END && depth) {
            depth--;
            if (mesh->size[depth] && mesh->size[depth] != items[depth])
                return false;
            mesh->size[depth] = items[depth];
        } else if (event == JSON_NUMBER && depth && json_int64(json, &rank)) {
            items[depth - 1]++;
            if (!add_rank(mesh, arena, rank))
                return false;
        } else {
            return false;
        }
    } while (depth && (event = json_next(json)) > JSON_END);
    size_t all = 1;
    for (unsigned a = 0; a < mesh->axes; a++)
        all *= mesh->size[a];
    return depth == 0 && all == mesh->count;
}

/* "R", "S(1)", "_S(0, 2)", "P", "P(sum)", "P(avg)"; the long words of repr() as well. */
static bool read_placement(struct placement *placement, const char *text, size_t length)
{
    static const struct {
        const char *word;
        int kind;
    } words[] = {{"R", REPLICA},           {"P", PARTIAL},           {"P(sum)", PARTIAL},
                 {"P(avg)", AVERAGE},      {"Replicate()", REPLICA}, {"Partial(sum)", PARTIAL},
                 {"Partial(avg)", AVERAGE}};
    static const struct {
        const char *begin;
        int kind;
    } shards[] = {{"S(", SHARD}, {"_S(", STRIDED}, {"Shard(dim=", SHARD}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == length && memcmp(text, words[i].word, length) == 0) {
            placement->kind = words[i].kind;
            return true;
        }
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        const size_t begin = strlen(shards[i].begin);
        if (length <= begin + 1 || memcmp(text, shards[i].begin, begin) != 0 || text[begin] < '0' ||
            text[begin] > '9')
            continue;
        placement->kind = shards[i].kind;
        placement->axis = (unsigned)(text[begin] - '0');
        return text[begin + 1] == ')' || text[begin + 1] == ',';
    }
    return false;
}

static bool read_placements(struct dtensor *d, struct json *json)
{
    enum json_event event = json_next(json);
    if (event != JSON_ARRAY)
        return false;
    while ((event = json_next(json)) == JSON_STRING)
        if (d->placements == SHARDS_AXES ||
            !read_placement(&d->placement[d->placements++], json->text, json->length))
            return false;
    return event == JSON_ARRAY_END;
}

static bool read(struct dtensor *d, struct arena *arena, const char *text)
{
    struct json json;
    const char *brace = strchr(text, '{');
    if (!brace)
        return false;
    json_init(&json, brace, strlen(brace));
    if (json_next(&json) != JSON_OBJECT)
        return false;
    while (json_next(&json) == JSON_KEY) {
        const bool good = json_is(&json, "placements") ? read_placements(d, &json)
                          : json_is(&json, "mesh")     ? read_mesh(&d->mesh, arena, &json)
                                                       : json_skip(&json, JSON_KEY);
        if (!good)
            return false;
    }
    return !json.error && d->mesh.axes && d->placements == d->mesh.axes;
}

/* Where each part is on an axis of the mesh; NULL: a rank is not in it, or out of memory. */
static unsigned *places(const struct mesh *mesh, struct arena *arena, unsigned axis,
                        const int64_t *ranks, unsigned parts)
{
    unsigned *place = arena_array(arena, parts, sizeof *place);
    size_t below = 1;
    for (unsigned a = axis + 1; a < mesh->axes; a++)
        below *= mesh->size[a];
    for (unsigned p = 0; place && p < parts; p++) {
        size_t at = 0;
        while (at < mesh->count && mesh->ranks[at] != ranks[p])
            at++;
        if (at == mesh->count)
            return NULL;
        place[p] = (unsigned)(at / below % mesh->size[axis]);
    }
    return place;
}

enum plumb_code shards_recorded(struct shards_layout **layout, struct arena *arena,
                                const char *dtensor, const int64_t *ranks, unsigned parts,
                                struct plumb_error *err)
{
    struct dtensor d = {0};
    struct shards_use uses[SHARDS_AXES] = {{0}};
    size_t count = 0;
    if (!read(&d, arena, dtensor))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "what was recorded of its placements is not understood: %.100s", dtensor);
    /* A strided shard is one that an axis before it cuts after those behind it. */
    for (int strided = 0; strided < 2; strided++)
        for (unsigned a = 0; a < d.mesh.axes; a++) {
            const struct placement *placement = &d.placement[a];
            if ((placement->kind == STRIDED) != strided)
                continue;
            const unsigned *place = places(&d.mesh, arena, a, ranks, parts);
            if (!place)
                return plumb_fail(err, PLUMB_E_ARG,
                                  "the recorded mesh does not have all of its %u ranks", parts);
            if (placement->kind == REPLICA)
                continue;
            uses[count++] = (struct shards_use){
                .action = placement->kind == PARTIAL   ? SHARDS_ADD
                          : placement->kind == AVERAGE ? SHARDS_AVERAGE
                                                       : SHARDS_SPLIT,
                .split = {.axis = placement->axis},
                .count = (unsigned)d.mesh.size[a],
                .place = place,
            };
        }
    return shards_from_uses(layout, arena, uses, count, parts, err);
}
