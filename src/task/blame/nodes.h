/* What the parts of judging a node of a graph share. */
#ifndef BLAME_NODES_H
#define BLAME_NODES_H

#include "task/blame/pieces.h"

enum { NODE_MAX_ARGS = 24, NODE_MAX_TRIES = 16, NODE_FX_WAYS = 3 };

/* One way in which the call may have been made. */
struct node_try {
    const char *op;
    struct plumb_arg args[NODE_MAX_ARGS];
    size_t n_args;
    struct plumb_kwarg kwargs[2];
    size_t n_kwargs;
    const char *assumed; /* what is not recorded, when only that makes it right */
};

struct node {
    const struct unit_options *options;
    const struct unit *unit;
    struct arena *arena; /* of texts that stay */
    struct loader loader;
    const char *prefix;
    struct list inputs, outputs;
    bool objects;        /* some arguments are neither tensors nor numbers */
    const char *unknown; /* what the tries leave open, or NULL */
    struct node_try tries[NODE_MAX_TRIES];
    size_t n_tries;
    struct local_verdict *out;
};

/* One more way to call it; NULL when there is no room. */
struct node_try *node_add_try(struct node *n, const char *op);
void node_add_keyword(struct node_try *try, const char *name, struct plumb_arg value);
struct plumb_arg node_integer(int64_t value);

/* A number that was stored as a tensor without dimensions, a list of whole ones; else itself. False
 * when out of memory. */
bool node_plainly(struct node *n, const struct plumb_arg *from, bool lists, struct plumb_arg *out);

/* Fill tries, or say why there are none (loader.refused); the first NODE_FX_WAYS of FX are those
 * with usual keywords. False when out of memory. */
bool node_list_fx(struct node *n);
bool node_list_ge(struct node *n);

#endif
