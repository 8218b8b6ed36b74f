/* One graph while it runs: its tensors, the results of its nodes, and gradients. */
#ifndef PASSCHECK_SIDE_H
#define PASSCHECK_SIDE_H

#include "task/passcheck/graph.h"

/* Where a tensor among a call's arguments came from; no edge for tensors that are literals, as
 * there are none. */
struct passcheck_edge {
    bool is_node;
    size_t target; /* leaf or node */
    size_t output; /* of the node */
};

/* Errors made on purpose in a run in float64, to see how far right arithmetic may be off. */
struct passcheck_noise {
    uint64_t seed;
    bool fine;        /* 16-bit types count as float32 */
    const bool *only; /* of the leaves: these have errors, and nothing else; NULL: everything has */
    const struct passcheck_side *reference; /* the same run without errors */
};

struct passcheck_side {
    const struct plumb_passcheck_graph *graph;
    const struct plumb_passcheck_options *options;
    struct arena memory;                 /* of the leaves */
    struct plumb_tensor *leaves;         /* parallel to the graph's */
    void **leaf_data;                    /* of parameters, to be changed by the step */
    enum plumb_dtype *declared;          /* types before the reference raised them */
    struct arena scratch;                /* of one iteration: gradients and what follows */
    struct plumb_result *results;        /* of the nodes */
    bool *needs_grad;                    /* of the nodes */
    struct plumb_tensor **leaf_grads;    /* NULL where there is none */
    struct plumb_tensor ***node_grads;   /* of every output */
    struct plumb_arg *outputs;           /* flat: whole tuples are several */
    struct passcheck_edge *output_edges; /* parallel; target SIZE_MAX: no tensor of the graph */
    size_t n_outputs, max_outputs;
    uint64_t bytes; /* of the results */
    /* Only of runs beside the ones that are compared: */
    const struct passcheck_side *typed;  /* the run of the same graph in its own types, or NULL */
    const struct passcheck_noise *noise; /* or NULL */
    struct plumb_arg **stored;   /* of the nodes: what others read of them, where there is noise */
    bool collecting;             /* outputs are taken as computed, not as stored */
    int64_t *terms, *grad_terms; /* of the nodes: in the longest sum */
};

/* Makes or reads the graph's tensors. inputs: the side whose inputs are taken, or NULL. The side is
 * to be destroyed also after a failure. */
enum plumb_code passcheck_side_init(struct passcheck_side *side,
                                    const struct plumb_passcheck_graph *graph,
                                    const struct plumb_passcheck_options *options,
                                    const struct passcheck_side *inputs, struct plumb_error *err);
void passcheck_side_destroy(struct passcheck_side *side);

/* The values of leaf k, in memory of the side's own arena. */
enum plumb_code passcheck_make_leaf(struct passcheck_side *side, size_t k, uint64_t *bytes_left,
                                    struct plumb_error *err);

/* A copy of the one tensor of the leaf's file, or of the one that its key names. */
enum plumb_code passcheck_load_leaf(const struct plumb_passcheck_graph *graph,
                                    const struct passcheck_leaf *leaf, uint64_t max_bytes,
                                    struct arena *arena, struct plumb_tensor *out, void **data,
                                    struct plumb_error *err);

/* A call with its arguments, and where their tensors came from, in the order of its gradients. All
 * memory is the side's scratch. */
struct passcheck_call {
    struct plumb_call call;
    struct passcheck_edge *edges;
    size_t n_edges;
    struct plumb_draws draws;
    uint64_t key, drawn;
};

enum plumb_code passcheck_prepare(struct passcheck_side *side, const struct passcheck_node *node,
                                  struct passcheck_call *out, struct plumb_error *err);
enum plumb_code passcheck_run_call(struct passcheck_side *side, const struct passcheck_node *node,
                                   const struct plumb_call *call, struct plumb_result *out,
                                   struct plumb_error *err);

bool passcheck_edge_needs_grad(const struct passcheck_side *side,
                               const struct passcheck_edge *edge);

/* Runs all nodes and collects the outputs; forgets what the last iteration left. */
enum plumb_code passcheck_forward(struct passcheck_side *side, struct plumb_error *err);

/* Gradients of the sum of one output. */
enum plumb_code passcheck_backward(struct passcheck_side *side, size_t output,
                                   struct plumb_error *err);
/* Gradients of the outputs that are chosen, each weighted by numbers between -1 and 1 drawn from
 * the seed, in the place of those that are there. */
enum plumb_code passcheck_backward_random(struct passcheck_side *side, const bool *chosen,
                                          uint64_t seed, struct plumb_error *err);
bool passcheck_is_differentiable(const struct passcheck_side *side, size_t output);
/* The first output that has a gradient; SIZE_MAX: none. */
size_t passcheck_first_differentiable(const struct passcheck_side *side);

/* SGD: parameter -= rate * gradient, rounded to the parameter's type. */
void passcheck_step(struct passcheck_side *side, double rate);

/* The type that output k of a node has in the run in the graph's own types; float64 where there is
 * none. Likewise of a leaf. */
enum plumb_dtype passcheck_node_type(const struct passcheck_side *side, size_t node, size_t k);
enum plumb_dtype passcheck_leaf_type(const struct passcheck_side *side, size_t leaf);

/* Gives the leaves errors, as the side's noise says. Once, before it runs. */
enum plumb_code passcheck_noise_leaves(struct passcheck_side *side, struct plumb_error *err);
/* What a call of that node is to be run with; false: no errors of its own. backward: the call that
 * gives gradients. */
bool passcheck_noise_call(const struct passcheck_side *side, size_t node, bool backward,
                          struct plumb_noise *out);
/* Makes what others read of a node: its results with the errors of being stored. */
enum plumb_code passcheck_noise_store(struct passcheck_side *side, size_t node,
                                      struct plumb_error *err);
/* The errors of storing n numbers of that type, from the first on, of the tensor called key. */
void passcheck_noise_numbers(const struct passcheck_side *side, enum plumb_dtype dtype,
                             uint64_t key, int64_t terms, uint64_t first, size_t n, double *values);

/* A zeroed tensor like another one, in the arena; *data is its memory. */
struct plumb_tensor *passcheck_like(const struct plumb_tensor *tensor, struct arena *arena,
                                    void **data);

#endif
