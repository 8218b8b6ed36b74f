/* What a host sees of dumps below some paths: which ranks, and of what form. */
#ifndef RUN_LOOK_H
#define RUN_LOOK_H

#include "base/pack.h"
#include "crew/places.h"

enum { LOOK_SIDES = 2 };

/* All dump.json of a rank below a path. */
struct look {
    int64_t rank;
    const char *json;
    size_t files;
    uint64_t form, stamp;
};

struct looks {
    struct look *list; /* ascending */
    size_t count, capacity;
};

/* A rank that several hosts have: is it the same? */
struct look_wanted {
    size_t side;
    int64_t rank;
};

/* What a host is asked. */
struct look_request {
    const char *paths[LOOK_SIDES];
    size_t sides;
    const struct look_wanted *wanted; /* NULL: which ranks there are */
    size_t count;
};

void look_pack_request(struct pack *pack, struct look_request *request, struct arena *arena);
void look_pack(struct pack *pack, struct looks *looks, struct arena *arena);

/* Looks, on this host: writes the looks of every side, or a number for everything that is wanted.
 * False when that cannot be done. */
bool look_answer(const struct crew_places *places, const void *request, size_t size,
                 struct buf *reply);

/* The place of a rank in an ascending list of elements that begin with one. */
size_t look_place(const void *list, size_t count, size_t size, int64_t rank);

/* Makes room for one more at a place; NULL when out of memory. */
void *look_make_room(struct arena *arena, void *list, size_t *count, size_t *capacity, size_t at,
                     size_t size);

#endif
