/* A folder tree in memory: names only, in string order. */
#ifndef PAIR_GRAPH_TREE_H
#define PAIR_GRAPH_TREE_H

#include "base/arena.h"
#include "plumb/error.h"

#include <stdbool.h>

struct tree_file {
    const char *path;    /* in full */
    const char *name;    /* its last part */
    const char *problem; /* it is no file that could be read; NULL: it is */
};

struct tree {
    const char *path, *name;
    struct tree *folders;
    size_t folder_count;
    struct tree_file *files;
    size_t file_count;
    const char *problem; /* why what is in it could not be listed; NULL: all is here */
};

/* Lists path and everything below it into the arena. Links to files are followed inside the tree
 * only, links to folders never; hidden names are passed over. A folder below that cannot be read
 * has a problem; only the top one fails the call. */
enum plumb_code tree_read(struct tree *tree, const char *path, struct arena *arena,
                          struct plumb_error *err);

/* The same, but no deeper than that many levels: 0 lists the folder itself. */
enum plumb_code tree_read_some(struct tree *tree, const char *path, unsigned levels,
                               struct arena *arena, struct plumb_error *err);

#endif
