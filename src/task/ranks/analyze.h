/* What the two analyses share. */
#ifndef RANKS_ANALYZE_H
#define RANKS_ANALYZE_H

#include "dump/dump.h"
#include "plumb/ranks.h"
#include "ranks/graph.h"
#include "task/ranks/pretty.h"

/* The number of a rank folder: 7 for "rank7", 0 for every other name. */
int64_t analyze_rank(const char *name);

/* Tells how many ranks are done; options may be NULL. */
void analyze_progress(const struct plumb_analyze_options *options, size_t done, size_t total);

/* A line for the notes, with "rankN: " before it when there is a rank. */
void analyze_note(struct buf *notes, const char *rank, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void analyze_note_warnings(struct buf *notes, const char *rank, const struct dump_tree *tree);

/* The ancestors of a node, the outermost first, then the node itself, as a list. False when
 * construct.json is missing or damaged: the list is then as long as what could be read. */
bool analyze_put_ancestors(struct pretty *out, const char *folder, const char *name,
                           struct arena *arena);

/* The stack of an API as a list of lines, or `none` where it has none. */
void analyze_put_stack(struct pretty *out, const struct dump_tree *tree, const struct dump_api *api,
                       const char *none);

#endif
