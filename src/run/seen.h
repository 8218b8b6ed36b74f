/* What the hosts of a crew see of dumps: which ranks lie where.
 *
 * Every host looks below the same paths, under the names that its map has for them. Process 0 takes
 * them together: a rank that one host has is there. Hosts that have the same rank have to have the
 * same: names and sizes of dump.json, and where these are copies (their times differ) what they
 * say, and names and sizes of all files beside them. */
#ifndef RUN_SEEN_H
#define RUN_SEEN_H

#include "crew/crew.h"
#include "run/look.h"

enum { SEEN_NOBODY = UINT32_MAX };

/* A rank of one of the paths. */
struct seen_side {
    const char *json;     /* its first dump.json; NULL: nobody has the rank */
    size_t files;         /* those of all steps; 0: only folders without one */
    uint64_t form, stamp; /* of their names and sizes; of their times */
    uint8_t *hosts;       /* a bit for each that has it */
    unsigned first;       /* one of them */
    unsigned other;       /* one that has something else by that name; or SEEN_NOBODY */
    bool copies;
};

struct seen_rank {
    int64_t rank;
    struct seen_side side[LOOK_SIDES];
};

struct seen {
    struct arena arena;
    struct crew_hosts hosts;
    const char *paths[LOOK_SIDES];
    size_t sides;
    struct seen_rank *ranks; /* ascending, without those of paths that are no dump */
    size_t count, capacity;
};

/* Asks every host. PLUMB_E_IO when one of them does not answer, unless several do and see the same
 * without exception. Free it in any case. */
enum plumb_code seen_look(struct seen *seen, struct plumb_crew *crew, const char *const *paths,
                          size_t sides, struct plumb_error *err);
void seen_free(struct seen *seen);

/* Of a process that does not lead; places may be NULL, and is kept. */
struct crew_handler seen_handler(const struct crew_places *places);

/* How many ranks a path has. */
size_t seen_ranks(const struct seen *seen, size_t side);

/* Whether a host has all that there is of ranks[i]. */
bool seen_has(const struct seen *seen, size_t i, unsigned host);

/* Why no host can work on ranks[i], in the arena; NULL: one can, or out of memory. */
const char *seen_trouble(const struct seen *seen, size_t i, struct arena *arena);

/* Says that nobody who has ranks[i] has done something about it. */
const char *seen_lost(const struct seen *seen, size_t i, struct arena *arena);

/* Whether process 0 sees everything; else PLUMB_E_IO, which says what is where. */
enum plumb_code seen_here(const struct seen *seen, struct plumb_error *err);

#endif
