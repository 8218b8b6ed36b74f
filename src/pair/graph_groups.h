/* The graphs of a rank: which text and which data of both sides are of the same one.
 *
 * A graph has a name, "graph_1": the text says it, as do the folder of its model (GE) and the
 * folder of its tokens (FX). Where a side's folders have other names altogether, as those of older
 * FX dumps, its graphs are taken in their order, if there are as many of them. */
#ifndef PAIR_GRAPH_GROUPS_H
#define PAIR_GRAPH_GROUPS_H

#include "base/buf.h"
#include "pair/air.h"
#include "pair/graph_text.h"

/* dynamo_original_graph_1_rank_0_pid_4_ts_5.txt */
struct graph_file {
    const char *path;
    uint64_t id;
    int64_t rank;        /* that its name says, or -1 */
    struct graph graph;  /* empty when there is a problem */
    const char *problem; /* why it cannot be read, or NULL */
};

struct graph_files {
    struct graph_file *items;
    size_t count, capacity;
    bool failed;
};

/* Collects the texts below a folder: all of them, or with rank >= 0 those of that rank. */
void graphs_find(struct graph_files *files, const struct tree *tree, int64_t rank);

/* Whether there is one. */
bool graphs_has_text(const struct tree *tree);

/* Whether a path is a folder that looks like a GE dump, with a graph text in it or right below; or
 * like an FX dump, without one. */
bool graphs_recognise(const char *path);
bool graphs_recognise_fx(const char *path);

/* Orders them by their number, and reads them; their operators are found by the names that files
 * have, unless names are literal. PLUMB_E_NOMEM is the only error. */
enum plumb_code graphs_read(struct graph_files *files, const struct air_rules *rules,
                            struct arena *arena, struct plumb_error *err);
void graphs_free(struct graph_files *files);

/* One graph; whatever is NULL was not found. */
struct graph_set {
    const char *name;
    int64_t id; /* the number in its name, or its place */
    const struct graph_file *text;
    const struct air_group *groups[2]; /* target, golden */
};

struct graph_sets {
    struct graph_set *items; /* in the arena */
    size_t count;
};

/* Puts together what is of one graph, in the order of the texts; what has no text comes last.
 * Notes say where names did not help. */
enum plumb_code groups_match(struct graph_sets *sets, const struct graph_files *files,
                             const struct air_dump dumps[2], const struct air_rules *rules,
                             struct buf *notes, struct arena *arena, struct plumb_error *err);

#endif
