/* Which tensor of one side belongs to which of the other. Nothing is left out, unless the rules
 * want it so: what has no partner is a row that says so. */
#ifndef PAIR_GRAPH_PAIR_H
#define PAIR_GRAPH_PAIR_H

#include "pair/air.h"
#include "pair/graph_text.h"

/* One side of a row: a tensor of a GE file, an FX file, a whole file, or nothing. */
struct air_side {
    const struct air_op *op;
    const struct ge_tensor *tensor; /* of op; NULL: the file as a whole */
    const char *path;               /* of an FX file, or of any other */
    bool assumed;                   /* nothing is there, and that counts as an empty tensor */
};

enum air_kind {
    AIR_PAIR,  /* to be compared */
    AIR_ALONE, /* without a counterpart, as happens where all is well: folded, fused, an argument */
    AIR_MISSING, /* without a partner that should be there */
    AIR_BROKEN,  /* something is wrong with it */
};

struct air_row {
    enum air_kind kind;
    int64_t token;
    uint64_t id;      /* in the order of making, counting what was dropped */
    const char *name; /* of the operator */
    struct air_side target, golden;
    const char *why; /* of all but PAIR */
    bool loose;      /* an argument beside a constant: it need not mean the same */
};

struct air_rows {
    struct air_row *items; /* in the arena */
    size_t count, capacity;
    uint64_t next_id;
};

struct pairing {
    const struct graph *graph;
    const struct air_rules *rules;
    struct arena *arena;
    struct air_rows *rows;
    struct air_token *target, *golden;
    bool failed; /* out of memory */
};

/* Appends the rows of one token; fx: which sides are FX dumps, the target's only where the golden
 * side's is. PLUMB_E_NOMEM is the only error. */
enum plumb_code pair_token(struct pairing *pairing, const bool fx[2], struct plumb_error *err);

/* A row by itself. */
void pair_lone(struct pairing *pairing, enum air_kind kind, const char *name,
               struct air_side target, struct air_side golden, const char *why);

/* -- Between the files of this room ------------------------------------------------------------ */

void pair_two(struct pairing *pairing, const char *name, struct air_side target,
              struct air_side golden);
void pair_loosely(struct pairing *pairing, const char *name, struct air_side target,
                  struct air_side golden);

/* The parsed file, or NULL: then a row says why, or memory ran out. */
const struct ge_file *pair_open(struct pairing *pairing, struct air_op *op, bool is_target);

/* The operators that a fused name is made of: longest first from the left. None when a part of the
 * name is no operator of the graph: what only begins like one is something else. */
struct pair_parts {
    const struct graph_op **ops;
    size_t count;
};
struct pair_parts pair_split(struct pairing *pairing, const struct air_op *op);

/* Appends an operator; parts has room for one for each letter of the name. */
static inline void pair_add_part(struct pair_parts *parts, const struct graph_op *op)
{
    parts->ops[parts->count++] = op;
}

/* Which inputs of its parts a fused operator stores: those from outside, every one of them or each
 * source once, whichever are as many as the file has places. Writes their numbers to kept and
 * returns how many; SIZE_MAX when neither fits, or memory ran out. */
size_t pair_choose_inputs(struct pairing *pairing, const char *const *sources, size_t count,
                          size_t places, size_t *kept);
bool pair_is_part(const struct pair_parts *parts, const char *name);

/* A link that only orders operators carries nothing. */
bool pair_is_control(const char *source);

void pair_with_fx(struct pairing *pairing, struct air_op *op);
void pair_with_ge(struct pairing *pairing, struct air_op *op);
void pair_nodes(struct pairing *pairing); /* of two FX dumps, all of them */

static inline struct air_side side_ge(const struct air_op *op, const struct ge_tensor *tensor)
{
    return (struct air_side){.op = op, .tensor = tensor, .path = op->path};
}

static inline struct air_side side_file(const char *path)
{
    return (struct air_side){.path = path};
}

static inline struct air_side side_none(void)
{
    return (struct air_side){0};
}

#endif
