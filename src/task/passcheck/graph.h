/* A graph as its file says it: what it starts from, its nodes, and the order they can run in. */
#ifndef PASSCHECK_GRAPH_H
#define PASSCHECK_GRAPH_H

#include "base/arena.h"
#include "base/map.h"
#include "dump/call.h"
#include "plumb/passcheck.h"

/* A hostile file may list more than this; nobody's graph does. */
enum { PASSCHECK_MAX_NAMES = 1 << 20 };

#define PASSCHECK_WHOLE INT64_MIN

/* A literal, a list, or a reference to what something else resulted in. */
struct passcheck_arg {
    struct plumb_arg value;      /* of a literal; items are not set there */
    struct passcheck_arg *items; /* list, slice */
    size_t n_items;
    const char *ref; /* a name, or NULL */
    int64_t
        index;    /* which result of it, from the end when negative; PASSCHECK_WHOLE: all of them */
    uint64_t at;  /* of the reference in the file */
    bool is_node; /* else a leaf */
    size_t target; /* index of the node or leaf */
};

struct passcheck_kwarg {
    const char *name;
    struct passcheck_arg value;
};

enum passcheck_role { PASSCHECK_INPUT, PASSCHECK_PARAMETER, PASSCHECK_BUFFER };
enum passcheck_fill { PASSCHECK_UNIFORM, PASSCHECK_NORMAL, PASSCHECK_VALUES, PASSCHECK_FILE };

/* A tensor that the graph starts from. */
struct passcheck_leaf {
    const char *name;
    enum passcheck_role role;
    bool requires_grad;
    uint64_t at;
    bool has_dtype, has_shape, has_fill;
    enum plumb_dtype dtype;
    unsigned rank;
    int64_t shape[PLUMB_MAX_RANK];
    enum passcheck_fill fill;
    struct case_limit from, to; /* uniform: the ends; normal: mean and deviation */
    double *values;             /* in C order */
    size_t n_values;
    bool one_for_all;       /* of the values: there is one */
    const char *file, *key; /* key: which tensor of the file, or NULL */
};

struct passcheck_node {
    const char *name;
    uint64_t at;
    const char *prefix, *op; /* prefix may be NULL */
    const struct plumb_op *def;
    struct passcheck_arg *args;
    size_t n_args;
    struct passcheck_kwarg *kwargs;
    size_t n_kwargs;
    uint64_t draws; /* of a random operator: which one it is in the order of running */
};

struct plumb_passcheck_graph {
    struct arena arena;
    const char *path;
    struct passcheck_leaf *leaves;
    size_t n_leaves;
    struct passcheck_node *nodes;
    size_t n_nodes;
    size_t *order; /* of nodes: each after those that it refers to, else as in the file */
    struct passcheck_arg *outputs;
    size_t n_outputs;
    struct map names; /* to twice the index, plus 1 for nodes */
};

/* Finds what every reference means and in which order the nodes can run. */
enum plumb_code passcheck_resolve(struct plumb_passcheck_graph *graph, struct plumb_error *err);

/* The prefix ("Tensor", or NULL) and name of an operator as somebody wrote it; NULL when plumb has
 * no such operator. */
const struct plumb_op *passcheck_find_op(const char *text, const char **prefix, const char **name);

/* The leaf or node of that name, or SIZE_MAX. */
size_t passcheck_find_leaf(const struct plumb_passcheck_graph *graph, const char *name);
size_t passcheck_find_node(const struct plumb_passcheck_graph *graph, const char *name);

#endif
