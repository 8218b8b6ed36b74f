/* Where the files of a dump are on this host: "HOST:FROM=TO" says that what the command line and
 * its dumps call FROM/x is TO/x on HOST ("*": on all). */
#ifndef CREW_PLACES_H
#define CREW_PLACES_H

#include "base/arena.h"
#include "plumb/error.h"

struct place_rule {
    const char *from, *to;
};

struct crew_places {
    struct place_rule *rules; /* of this host */
    size_t count;
    size_t given; /* with those of other hosts */
    struct arena arena;
};

/* Adds the rule, or those of a file with one on each line ("#" begins a comment). A word with a
 * "=" in it is a rule. host: this one. */
enum plumb_code crew_places_add(struct crew_places *places, const char *word, const char *host,
                                struct plumb_error *err);
void crew_places_free(struct crew_places *places);

/* The path to open in place of one; the longest FROM counts. places may be NULL. The text is in
 * the arena, or the path itself; NULL when out of memory. */
const char *crew_places_here(const struct crew_places *places, const char *path,
                             struct arena *arena);

/* Puts the name that everybody knows into an error about a file of this host. */
void crew_places_name(const struct crew_places *places, struct plumb_error *err);

#endif
