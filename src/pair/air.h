/* A TorchAir dump: groups of tokens of files, whichever way the folders are laid out.
 *
 * A group is what one graph left behind (groups.h says which). A token is one execution of the
 * graph. */
#ifndef PAIR_AIR_H
#define PAIR_AIR_H

#include "base/map.h"
#include "format/ge_file.h"
#include "pair/air_rules.h"
#include "pair/graph_tree.h"

/* A GE file and the operator it is of. */
struct air_op {
    const char *name;   /* of the operator */
    const char *key;    /* the same as files spell it, or the name itself where names are literal */
    const char *type;   /* "AutomaticBufferFusionOp" */
    const char *path;   /* in full */
    const char *file;   /* the last part of path */
    uint64_t time;      /* that its name says, in microseconds */
    struct ge_file *ge; /* once somebody opened it; else NULL */
    bool unreadable;    /* it cannot be, and a row says so */
    bool doubled;       /* a larger file of the same operator is the one to compare */
    bool used;          /* some row is about it */
};

/* What an FX file holds; nodes leave their arguments that are no tensors behind, too. */
enum air_fx_kind {
    AIR_FX_UNSEEN,
    AIR_FX_TENSOR,
    AIR_FX_PLAIN,  /* a number, or a list of whole ones: an argument, or a small tensor */
    AIR_FX_OBJECT, /* text or a Python object */
};

struct air_fx_file {
    const char *path;
    const char *name; /* the last part of path; so much of it says which tensor it is: */
    size_t length;
    bool timed; /* a time follows */
    uint64_t index, inner;
    enum air_fx_kind kind;
    uint64_t count; /* of elements, once it was seen; UINT64_MAX: unknown */
};

struct air_fx_list {
    struct air_fx_file *files;
    size_t count;
};

/* Are both about the same tensor of a node? */
bool air_fx_same(const struct air_fx_file *a, const struct air_fx_file *b);

/* What one FX node read and wrote. */
struct air_node {
    const char *key;
    const char *stamp;          /* the last part of a file's name: the time */
    struct air_fx_list list[2]; /* inputs, outputs */
    bool used;
};

struct air_token {
    int64_t id;
    struct air_op *ops; /* GE, in the order of their paths */
    size_t op_count;
    struct air_node *nodes; /* FX, in the order of their paths */
    size_t node_count;
    struct map by_name; /* ops that are not doubled, or nodes, by their keys */
    struct {
        const char *path, *why;
        bool older; /* a later file of the same tensor is the one to compare */
    } * odd;        /* files that are neither */
    size_t odd_count;
};

struct air_group {
    const char *name; /* of the folder that should be named for the graph, or NULL */
    int64_t device;   /* of GE; -1: FX */
    struct air_token *tokens;
    size_t token_count;
};

struct air_dump {
    bool fx;
    const char *root; /* the folder it was read from */
    struct air_group *groups;
    size_t count;
};

/* Finds groups, tokens and files below a folder. Everything lives in the arena but the maps: free
 * with air_dump_free, also after failure. */
enum plumb_code air_read_ge(struct air_dump *dump, const struct tree *tree,
                            const struct air_rules *rules, struct arena *arena,
                            struct plumb_error *err);
enum plumb_code air_read_fx(struct air_dump *dump, const struct tree *tree, bool ranked,
                            const struct air_rules *rules, struct arena *arena,
                            struct plumb_error *err);
void air_dump_free(struct air_dump *dump);

struct air_token *air_find_token(const struct air_group *group, int64_t id);
struct air_op *air_find_op(const struct air_token *token, const char *key, size_t length);
struct air_node *air_find_node(const struct air_token *token, const char *key);

/* Does the tree hold FX files? With timed, only files count whose name ends in a time. */
bool air_has_fx(const struct tree *tree, bool timed);

/* Loads the tensor of a file of an FX dump. */
enum plumb_code air_load_fx(const char *path, struct plumb_payload *payload,
                            struct plumb_error *err);

#endif
