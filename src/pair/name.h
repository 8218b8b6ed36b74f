/* What a tensor's name says, whatever dialect it is written in. */
#ifndef PAIR_NAME_H
#define PAIR_NAME_H

#include "base/arena.h"

#include <stdbool.h>

enum { NAME_MAX_TOKENS = 64, NAME_NONE = -1 };

/* blocks.0.mlp.linear_fc1.ColumnParallelLinear.0.forward_params.bias
 * '------- path --------' '----- class ------' ^ '----- role ------'
 *                                              call
 * Tokens are in lower case; wrappers that only add a level (module, _orig_mod, ...) are gone. */
struct name {
    const char **tokens; /* all before the role */
    int count;
    int path;         /* tokens of the module path: tokens[0] to tokens[path - 1] */
    int class, call;  /* token numbers, or NAME_NONE */
    const char *role; /* in one spelling: "input.0", "weight", "backward.output.1"; never empty */
    const char *kind; /* "input", "output", "param"; NULL when no word of a call says so */
    bool backward;
};

/* False when out of memory. A name that is too long or has no token gets count NAME_NONE. */
bool name_parse(struct name *name, struct arena *arena, const char *text);

bool name_is_number(const char *token);

/* Is it a level that a wrapper puts into a path: module, _orig_mod, ...? */
bool name_is_wrapper(const char *token, size_t length);

/* Whether the two classes may be one. A class without a call index may in truth be the last module
 * of the path, as in Mixed_5b and Mixed_6a: then its digits count. */
bool name_classes_agree(const struct name *a, const struct name *b);

#endif
