/* One graph while it runs: its tensors, the results of its nodes, and gradients. */
#ifndef PASSCHECK_SIDE_H
#define PASSCHECK_SIDE_H

#include "task/passcheck/graph.h"

/* Where a tensor among a call's arguments came from; no edge for tensors that are literals, as
 * there are none. */
struct pgraph_edge {
    bool is_node;
    size_t target; /* leaf or node */
    size_t output; /* of the node */
};

struct pgraph_side {
    const struct plumb_graph *graph;
    const struct plumb_numeric_options *options;
    struct arena memory;               /* of the leaves */
    struct plumb_tensor *leaves;       /* parallel to the graph's */
    void **leaf_data;                  /* of parameters, to be changed by the step */
    enum plumb_dtype *declared;        /* types before the reference raised them */
    struct arena scratch;              /* of one iteration: gradients and what follows */
    struct plumb_result *results;      /* of the nodes */
    bool *needs_grad;                  /* of the nodes */
    struct plumb_tensor **leaf_grads;  /* NULL where there is none */
    struct plumb_tensor ***node_grads; /* of every output */
    struct plumb_arg *outputs;         /* flat: whole tuples are several */
    struct pgraph_edge *output_edges;  /* parallel; target SIZE_MAX: no tensor of the graph */
    size_t n_outputs, max_outputs;
    uint64_t bytes; /* of the results */
};

/* Makes or reads the graph's tensors. inputs: the side whose inputs are taken, or NULL. The side is
 * to be destroyed also after a failure. */
enum plumb_code pgraph_side_init(struct pgraph_side *side, const struct plumb_graph *graph,
                                 const struct plumb_numeric_options *options,
                                 const struct pgraph_side *inputs, struct plumb_error *err);
void pgraph_side_destroy(struct pgraph_side *side);

/* The values of leaf k, in memory of the side's own arena. */
enum plumb_code pgraph_make_leaf(struct pgraph_side *side, size_t k, uint64_t *bytes_left,
                                 struct plumb_error *err);

/* A copy of the one tensor of the leaf's file, or of the one that its key names. */
enum plumb_code pgraph_load_leaf(const struct plumb_graph *graph, const struct pgraph_leaf *leaf,
                                 uint64_t max_bytes, struct arena *arena, struct plumb_tensor *out,
                                 void **data, struct plumb_error *err);

/* A call with its arguments, and where their tensors came from, in the order of its gradients. All
 * memory is the side's scratch. */
struct pgraph_call {
    struct plumb_call call;
    struct pgraph_edge *edges;
    size_t n_edges;
    struct plumb_draws draws;
    uint64_t key, drawn;
};

enum plumb_code pgraph_prepare(struct pgraph_side *side, const struct pgraph_node *node,
                               struct pgraph_call *out, struct plumb_error *err);
enum plumb_code pgraph_run_call(struct pgraph_side *side, const struct pgraph_node *node,
                                const struct plumb_call *call, struct plumb_result *out,
                                struct plumb_error *err);

bool pgraph_edge_needs_grad(const struct pgraph_side *side, const struct pgraph_edge *edge);

/* Runs all nodes and collects the outputs; forgets what the last iteration left. */
enum plumb_code pgraph_forward(struct pgraph_side *side, struct plumb_error *err);

/* Gradients of the sum of one output. */
enum plumb_code pgraph_backward(struct pgraph_side *side, size_t output, struct plumb_error *err);
/* Gradients of the outputs that are chosen, each weighted by numbers between -1 and 1 drawn from
 * the seed, in the place of those that are there. */
enum plumb_code pgraph_backward_random(struct pgraph_side *side, const bool *chosen, uint64_t seed,
                                       struct plumb_error *err);
bool pgraph_is_differentiable(const struct pgraph_side *side, size_t output);
/* The first output that has a gradient; SIZE_MAX: none. */
size_t pgraph_first_differentiable(const struct pgraph_side *side);

/* SGD: parameter -= rate * gradient, rounded to the parameter's type. */
void pgraph_step(struct pgraph_side *side, double rate);

/* A zeroed tensor like another one, in the arena; *data is its memory. */
struct plumb_tensor *pgraph_like(const struct plumb_tensor *tensor, struct arena *arena,
                                 void **data);

#endif
