/* Layers of two models that are built alike but not called alike.
 *
 * Every call of a dump has a scope: the path of the module that it is, or that it was made in, then
 * the function of the framework that made it, then its own name. A file says how the target's
 * modules are called on the golden side, by the class of the module that holds them:
 *
 *     TopLayer:                   what holds everything
 *       network: module
 *     ParallelMLP:
 *       mapping: dense_h_to_4h    a piece of the path, or several with dots; the longest that fits
 *
 * The n-th call of a scope and direction then belongs to the n-th of the other side. */
#ifndef PAIR_LAYER_H
#define PAIR_LAYER_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/error.h"

#include <stdint.h>

#define LAYER_NONE SIZE_MAX

struct layer_rules {
    struct arena arena;
    struct map names; /* "CLASS/piece.piece" to number of `to` */
    const char **to;
    size_t count, pieces; /* pieces of the longest name */
};

/* Reads a file; "" has no names. */
enum plumb_code layer_read(struct layer_rules *rules, const char *file, struct plumb_error *err);
void layer_free(struct layer_rules *rules);

/* A call of a dump. */
struct layer_call {
    const char *api;          /* "Mint.add.0.forward", "Cell.fc.Dense.forward.0" */
    const char *parent;       /* the call that it was made in, or NULL */
    const char *const *stack; /* lines, the innermost first, then NULL; or NULL */
    const char *place;        /* calls of different places never pair */
};

struct layer_calls {
    struct layer_call *calls;
    size_t count;
};

/* Sets partner, by target call, to the number of a golden call or LAYER_NONE. False when out of
 * memory. */
bool layer_pair(size_t *partner, const struct layer_calls *target, const struct layer_calls *golden,
                const struct layer_rules *rules);

/* What a row's name says after the name of its call: ".input.0". NULL: nothing. */
const char *layer_suffix(const char *api, const char *row);

#endif
