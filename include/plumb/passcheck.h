/* The before/after check of a graph transformation, without PyTorch: graphs of plumb's operators,
 * read from JSON files, run forward and backward with a step of SGD, and compared tensor by tensor.
 * docs/PASSCHECK.md describes the files.
 *
 * Objects belong to one thread at a time; different ones are independent. */
#ifndef PLUMB_PASSCHECK_H
#define PLUMB_PASSCHECK_H

#include "plumb/device.h"
#include "plumb/expected.h"
#include "plumb/progress.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_passcheck_graph;

/* Reads a graph file: structure only, tensor files are opened by the check. Refused, with the byte:
 * damaged JSON, names that are given twice or stand for nothing, cycles (PLUMB_E_FORMAT), operators
 * that plumb does not have (PLUMB_E_UNSUPPORTED). *out is set only on success. */
enum plumb_code plumb_passcheck_graph_open(struct plumb_passcheck_graph **out, const char *path,
                                           struct plumb_error *err);

/* The same for bytes in memory, of which nothing is kept; path says where tensor files are. */
enum plumb_code plumb_passcheck_graph_parse(struct plumb_passcheck_graph **out, const void *bytes,
                                            size_t size, const char *path, struct plumb_error *err);
void plumb_passcheck_graph_free(struct plumb_passcheck_graph *graph); /* NULL is fine */

/* What is compared, as bits. */
enum plumb_passcheck_kind {
    PLUMB_PASSCHECK_PARAMETER = 1 << 0,
    PLUMB_PASSCHECK_NODE = 1 << 1, /* nodes of the same name on both sides */
    PLUMB_PASSCHECK_OUTPUT = 1 << 2,
    PLUMB_PASSCHECK_GRADIENT = 1 << 3, /* of the sum of the first output, and RANDOM_GRADIENT */
    PLUMB_PASSCHECK_STEP = 1 << 4,     /* parameters after a step of the optimizer */
    PLUMB_PASSCHECK_RANDOM_GRADIENT = 1 << 5, /* only of rows: of all outputs, weighted at random */
};

struct plumb_passcheck_options {
    unsigned iterations;
    double precision; /* rtol and atol */
    unsigned kinds;   /* of enum plumb_passcheck_kind; without STEP there is no optimizer */
    struct plumb_device *device; /* NULL: the float64 reference */
    uint64_t seed;               /* of generated tensors and of operators that draw */
    plumb_progress_fn *progress; /* of iterations; NULL: none */
    void *progress_context;
    /* Unless by rules, each pair of the first iteration has an opinion too: what right arithmetic
     * would show (docs/PASSCHECK.md). Expected: that iteration is the only one that is run. */
    enum plumb_deciding verdict;
    const char *arithmetic; /* cheaper arithmetic that is meant, as plumb_expected_options has it */
};

/* 10 iterations, 1e-4, everything but nodes, the reference, seed 1337, by rules. */
void plumb_passcheck_options_init(struct plumb_passcheck_options *options);

struct plumb_passcheck {
    size_t compared, failed; /* pairs of tensors; what only one side has counts as failed */
    int64_t first_iteration; /* the first one with a difference; -1: none */
    const char *first_node; /* in the first iteration that differs, the first node that does, in the
                                 order they ran; or NULL */
    const char *closing;    /* lines for people, each with its newline */
    size_t words[PLUMB_WORDS]; /* of the opinions, where there are any */
    size_t later;              /* pairs of later iterations, which have none */
    bool bad; /* what decides objects: a difference, a fault, or nothing that could be judged */
    struct plumb_passcheck_rows *at; /* the rows */
};

/* Runs both graphs. The inputs are those of `before`; `after` may leave some out. Fails for graphs
 * that cannot be run (the error then names file and byte of the node), whose inputs differ, or
 * that have nothing to compare. out is always safe to destroy. */
enum plumb_code plumb_passcheck_run(const struct plumb_passcheck_graph *before,
                                    const struct plumb_passcheck_graph *after,
                                    const struct plumb_passcheck_options *options,
                                    struct plumb_passcheck *out, struct plumb_error *err);
void plumb_passcheck_destroy(struct plumb_passcheck *check);

/* The rows as a table: of one iteration, or of all (iteration < 0); wide: with every metric there
 * is. NULL when out of memory. */
struct plumb_table *plumb_passcheck_table(const struct plumb_passcheck *check, int64_t iteration,
                                          bool wide);

#ifdef __cplusplus
}
#endif
#endif
