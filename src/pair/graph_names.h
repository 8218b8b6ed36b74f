/* What the names of dump files say. */
#ifndef PAIR_GRAPH_NAMES_H
#define PAIR_GRAPH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "Add.layers_0_Add.21.6.1740800000002877": pieces of the name, not copies. */
struct ge_name {
    size_t type_length; /* the type begins the name */
    const char *op;     /* the operator's name */
    size_t op_length;
    const char *timestamp; /* digits */
    size_t timestamp_length;
};

/* Takes a GE file name apart: with and without stream id, with the four fields that FFTS+ adds.
 * False when the name is none. */
bool ge_name_parse(const char *name, struct ge_name *parts);

/* "add-aten.add.Tensor.INPUT.0.2.20250301120000000274.npy" */
struct fx_name {
    size_t key_length; /* what comes before .INPUT. or .OUTPUT. */
    bool input;
    uint64_t index, inner; /* of the argument, and inside a list argument (else 0) */
    const char *stamp;     /* what comes last: "20250301120000000274.npy" */
    bool timed;            /* which is a time indeed */
};

bool fx_name_parse(const char *name, struct fx_name *parts);

/* The rank of "worldsize2_global_rank1", or -1. */
int64_t rank_of_folder(const char *name);

/* The id of "dynamo_original_graph_1_rank_0_pid_4_ts_5.txt"; false for any other name. With rank >=
 * 0, only of that rank. */
bool graph_name_parse(const char *name, int64_t rank, uint64_t *id);

/* The rank that such a name says, or -1. */
int64_t rank_of_graph(const char *name);

/* Are two names the same to those who write files? They put '_' where '.', '/', '\\' and ' '
 * are. */
bool ge_name_same(const char *a, const char *b);
void ge_name_spell(char *name); /* as they do */

/* A number of digits only, and at most 18 of them; -1 for anything else. */
int64_t number_of(const char *text, size_t length);

#endif
