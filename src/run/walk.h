/* The files of a folder tree, in natural order. */
#ifndef RUN_WALK_H
#define RUN_WALK_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

struct walk_entry {
    const char *path;                /* relative to the folder */
    const struct plumb_error *error; /* what cannot be read: why; else NULL */
};

struct walk {
    /* Does the name alone say that this should be read? Then it is never left out. */
    bool (*is_expected)(const char *path);
    struct arena *arena; /* holds everything below */
    struct walk_entry *entries;
    size_t count, capacity;
    size_t special;       /* sockets, pipes and the like, left out */
    size_t links_outside; /* symbolic links to folders or out of the folder, left out */
};

/* Fills walk, whose is_expected and arena are set and the rest zero. Hidden files and folders are
 * passed over. */
enum plumb_code walk_folder(struct walk *walk, const char *folder, struct plumb_error *err);

/* Orders paths by their parts, and runs of digits by their value: a/2 before a/10 before b. */
int walk_compare(const char *a, const char *b);

#endif
