/* APIs of one framework as those of another: names, and which argument and output is which.
 *
 * The file is YAML: lines NAME: NAME, or one or a list of
 *
 *     ms_api: Functional.abs      the target's API
 *     pt_api: Torch.abs           the golden run's
 *     ms_args: [0, 2]             these arguments of the one
 *     pt_args: [0, 1]             belong to these of the other; so do ms_outputs and pt_outputs
 *
 * Without the lists, positions stay as they are. */
#ifndef PAIR_API_H
#define PAIR_API_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/error.h"

struct api_positions {
    const unsigned *from, *to;
    size_t count;
    bool given; /* else all positions stay */
};

struct api_entry {
    const char *to;
    struct api_positions arguments, outputs;
};

struct api_rules {
    struct arena arena;
    struct api_entry *entries;
    size_t count, capacity;
    struct map index; /* of the target's APIs */
};

/* Reads a file; "" has no entries. */
enum plumb_code api_read(struct api_rules *rules, const char *file, struct plumb_error *err);
void api_free(struct api_rules *rules);

/* The name of a row, such as "Mint.add.3.forward.input.0", as the golden run has it: by the rules,
 * or else by what the two frameworks call the same set of functions. A row that the rules leave out
 * keeps its name. NULL when out of memory. */
const char *api_rename(struct arena *arena, const struct api_rules *rules, const char *name);

#endif
