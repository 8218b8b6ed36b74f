/* Layouts that somebody wrote down: "b s[cp:zigzag] h[tp] d" and how many ranks an axis has. */
#ifndef PAIR_SHARDS_DIMS_H
#define PAIR_SHARDS_DIMS_H

#include "pair/shards.h"

#include <regex.h>

enum {
    SHARDS_AXES = 8,      /* of a mesh of ranks */
    SHARDS_MODIFIERS = 4, /* of a dimension */
    SHARDS_DIMS = 16,
    SHARDS_WORD = 24,
};

/* The axes of a run's ranks: of "tp=2,pp=4", rank = tp + 2 * pp. */
struct shards_mesh {
    struct shards_mesh_axis {
        char name[SHARDS_WORD];
        unsigned size;
    } axis[SHARDS_AXES];
    unsigned axes;
};

/* Reads "tp=2,pp=4". PLUMB_E_ARG. */
enum plumb_code shards_mesh_parse(struct shards_mesh *mesh, const char *text,
                                  struct plumb_error *err);

/* Ranks of the mesh. */
unsigned shards_mesh_ranks(const struct shards_mesh *mesh);

/* The axis of that name, or NULL. */
const struct shards_mesh_axis *shards_mesh_find(const struct shards_mesh *mesh, const char *name);

/* Where a rank is on an axis of the mesh. */
unsigned shards_mesh_place(const struct shards_mesh *mesh, const struct shards_mesh_axis *axis,
                           int64_t rank);

/* What an axis of ranks does with a tensor. */
enum shards_action { SHARDS_SPLIT, SHARDS_ADD, SHARDS_AVERAGE };

struct shards_use {
    enum shards_action action;
    struct shards_split split; /* of SHARDS_SPLIT, with its count */
    unsigned count;            /* ranks on the axis */
    const unsigned *place;     /* by part: where it is on the axis */
    bool scaled;               /* parts are `count` times too large */
};

/* The layout of parts from what each axis of ranks does, the outermost first. Axes that are not
 * named hold replicas. PLUMB_E_ARG for more than there is room for. */
enum plumb_code shards_from_uses(struct shards_layout **layout, struct arena *arena,
                                 const struct shards_use *uses, size_t count, unsigned parts,
                                 struct plumb_error *err);

/* The layout of parts from what a capture wrote down of a DTensor: {"placements": ["S(0)", "R"],
 * "mesh": [[0, 1], [2, 3]], ...}. PLUMB_E_FORMAT for what is no such text or has a placement that
 * is neither a shard, nor a replica, nor a sum; PLUMB_E_ARG when the mesh has only some of the
 * ranks. */
enum plumb_code shards_recorded(struct shards_layout **layout, struct arena *arena,
                                const char *dtensor, const int64_t *ranks, unsigned parts,
                                struct plumb_error *err);

/* ---- Dimensions ------------------------------------------------------------------------------ */

struct shards_modifier {
    char axis[SHARDS_WORD]; /* of the mesh */
    enum shards_action action;
    struct shards_split split; /* without axis and count */
    bool scaled;
};

struct shards_dims {
    struct shards_dim {
        bool none; /* "[tp:partial]" without a name: no dimension */
        struct shards_modifier modifier[SHARDS_MODIFIERS]; /* the outermost first */
        unsigned modifiers;
    } dim[SHARDS_DIMS];
    unsigned count; /* of entries */
    unsigned ndim;  /* of them dimensions */
};

/* Reads "b s[cp:zigzag,sp] (h*d)[tp:partial] 1 # ep:replicated". PLUMB_E_ARG names the word that is
 * wrong. */
enum plumb_code shards_dims_parse(struct shards_dims *dims, const char *text,
                                  struct plumb_error *err);

/* The layout of parts on these ranks. Axes that the mesh does not have are of one rank; a mesh
 * without axes takes all ranks for the only axis that is named. */
enum plumb_code shards_dims_layout(struct shards_layout **layout, struct arena *arena,
                                   const struct shards_dims *dims, const struct shards_mesh *mesh,
                                   const int64_t *ranks, unsigned parts, unsigned ndim,
                                   struct plumb_error *err);

/* The first axis that dimensions name and the mesh does not have; NULL: it has all. */
const char *shards_dims_stranger(const struct shards_dims *dims, const struct shards_mesh *mesh);

/* ---- Rules ----------------------------------------------------------------------------------- */

struct shards_rule {
    const char *pattern;
    bool regular; /* a regular expression that is found anywhere; else a pattern with * and ? */
    regex_t compiled;
    bool side[2]; /* target, golden */
    struct shards_dims dims;
};

struct shards_rules {
    struct shards_rule *list; /* the first that matches counts */
    size_t count, room;
    struct shards_mesh mesh[2];
    bool given[2]; /* the meshes */
};

/* "PATTERN=DIMS". */
enum plumb_code shards_rules_add(struct shards_rules *rules, struct arena *arena, const char *text,
                                 struct plumb_error *err);

/* "tp=2,pp=4", for a single side behind "target:" or "golden:". */
enum plumb_code shards_rules_parallel(struct shards_rules *rules, const char *text,
                                      struct plumb_error *err);

/* Reads YAML: parallel, layouts (pattern: dims), overrides (list of match, dims, side). Errors name
 * the line. */
enum plumb_code shards_rules_parse(struct shards_rules *rules, struct arena *arena,
                                   const void *bytes, size_t size, struct plumb_error *err);
enum plumb_code shards_rules_read(struct shards_rules *rules, struct arena *arena, const char *path,
                                  struct plumb_error *err);

/* The dimensions that a name has on a side, or NULL. */
const struct shards_dims *shards_rules_find(const struct shards_rules *rules, int side,
                                            const char *name);

/* Does a rule match a name on a side? */
bool shards_rule_matches(const struct shards_rule *rule, int side, const char *name);

void shards_rules_free(struct shards_rules *rules);

#endif
