/* Holding a file that must not change meanwhile, or noticing that it did. */
#ifndef CONDENSE_HOLD_H
#define CONDENSE_HOLD_H

#include "plumb/error.h"

#include <stdbool.h>
#include <sys/stat.h>

struct hold {
    const char *path;
    int fd;
    bool leased; /* who wants to write has to wait for us, and we are told */
    struct stat st;
};

enum hold_state {
    HOLD_FREE,   /* nobody writes it; release it later */
    HOLD_BUSY,   /* somebody has it open for writing */
    HOLD_GONE,   /* there is no such regular file (any more) */
    HOLD_FAILED, /* err says why */
};

/* Opens path, which must outlive the hold, without following links. Only HOLD_FREE needs a
 * release. */
enum hold_state hold_take(struct hold *hold, const char *path, struct plumb_error *err);

/* Did somebody ask for it meanwhile? Cheap; for long loops. */
bool hold_is_wanted(const struct hold *hold);

/* Is it still what was taken: the same file under the same name, unchanged, and without writers? */
bool hold_is_intact(const struct hold *hold);

void hold_release(struct hold *hold);

#endif
