/* What to merge: a YAML file with two lists. */
#ifndef RANKS_CONFIG_H
#define RANKS_CONFIG_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

struct config_list {
    const char **items;
    size_t count, capacity;
};

struct config {
    struct config_list apis;    /* "Distributed.all_reduce"; empty: all */
    struct config_list indices; /* "Max diff"; empty: all */
};

/* Reads the lists api and compare_index; other keys are passed over. Errors name the line. */
enum plumb_code config_read(struct config *config, const char *path, struct arena *arena,
                            struct plumb_error *err);

/* Appends a copy of text, unless it is there; false when out of memory. */
bool config_add(struct config_list *list, const char *text, size_t length, struct arena *arena);

#endif
