/* dynamo_original_graph_*.txt: a graph as protobuf text, of which plumb needs little:
 *
 *     op {
 *       name: "Add"
 *       input: "MatMul:0"
 *       output_desc { attr { key: "_fx_tensor_name" value { s: "add-aten.add.Tensor.OUTPUT.0" } } }
 *     }
 *
 * one brace or value a line. A line that is neither is counted and stepped over. */
#ifndef PAIR_GRAPH_TEXT_H
#define PAIR_GRAPH_TEXT_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/error.h"

/* A name an output of an operator has in the FX graph. */
struct graph_fx {
    const char *key;   /* "add-aten.add.Tensor" */
    int64_t fx_output; /* the k of ".OUTPUT.k", or -1 when the name does not say */
    unsigned output;   /* number of the output_desc that carries it */
};

struct graph_op {
    const char *name;     /* as the text spells it */
    const char *key;      /* as files spell it: graph_spell_as_files */
    bool shared;          /* another operator has the same key */
    bool constant;        /* its type says that it computes nothing */
    const char **inputs;  /* names of the operators they come from */
    const char **sources; /* the same with the number of the output: "MatMul:0" */
    size_t input_count;
    struct graph_fx *fx;
    size_t fx_count;
    unsigned outputs;
};

struct graph {
    const char *name;     /* of the whole, or NULL */
    struct graph_op *ops; /* in the order of the file; those without a name are left out */
    size_t count;
    struct map by_name; /* the number of the last operator of a name, or of a key */
    size_t longest;     /* bytes of the longest key */
    size_t odd_lines;   /* stepped over */
    size_t first_odd;   /* the first of them, from 1; 0: none */
    bool cut;           /* the text ends inside an operator */
};

/* Parses text that need not end with NUL. Everything but the map lives in the arena. The only error
 * is PLUMB_E_NOMEM: odd lines cost themselves. Free with graph_free. */
enum plumb_code graph_parse(struct graph *graph, const char *text, size_t size, struct arena *arena,
                            struct plumb_error *err);

/* Maps the file and parses it; err names it. */
enum plumb_code graph_open(struct graph *graph, const char *path, struct arena *arena,
                           struct plumb_error *err);

/* From then on operators are found by the names that files have: without the escapes of the text,
 * and with '_' where '.', '/', '\\' and ' ' are. False when out of memory. */
bool graph_spell_as_files(struct graph *graph, struct arena *arena);

void graph_free(struct graph *graph);

/* The operator of a name, or NULL. */
const struct graph_op *graph_find(const struct graph *graph, const char *name, size_t length);

#endif
