/* How functions that exchange tensors are called: where what goes in and comes out is. */
#ifndef BLAME_EXCHANGED_FORM_H
#define BLAME_EXCHANGED_FORM_H

#include "task/blame/exchanged.h"

enum form_kind {
    REDUCED,        /* everybody's tensor, over all ranks */
    SENT_FROM_ONE,  /* the tensor of the source */
    DEALT_FROM_ONE, /* the list of the source, one for each rank */
    GATHERED,       /* everybody's tensor, one after the other: a list, or one tensor */
    REDUCED_DEALT,  /* everybody's list, or tensor in equal pieces, over all ranks, one for each */
    EXCHANGED_ALL,  /* everybody's list, or tensor in pieces: the n-th goes to rank n */
    POINT_TO_POINT,
    BATCH,
};

/* Where the arguments of a function are, by place and by name; place -1: it returns a result. */
struct form {
    const char *op;
    enum form_kind kind;
    int in;
    const char *in_name;
    const char *out_name;
    int out;
    int how; /* the operation, or (EXCHANGED_ALL) the first of two lists of sizes */
    const char *how_name;
};

enum { RETURNED = -1, NO_PLACE = -2 };

/* NULL: plumb does not compute it. */
const struct form *form_of(const struct graph_node *node);

/* Who works out an exchange. Lists come from the arena; failed: out of memory. */
struct plan {
    struct exchanged *x;
    const struct plumb_run *run;
    struct arena *arena;
    struct exchanged_term *whole; /* one for each member: all of the tensor that it put in. Results
                                     made of the same share them, and are judged together */
    bool failed;
};

/* Records of tensors that a rank put in, or got. */
struct given {
    size_t *records;
    size_t count;
    bool list; /* they are items of a list */
};

struct given inputs_of(struct plan *p, const struct exchanged_member *m, const struct form *form);

/* *number: which output of the call it is; -1: it has none. */
struct given outputs_of(struct plan *p, const struct exchanged_member *m, const struct form *form,
                        int *number);

/* The operation that a member asked for. Returns why it is not known here; NULL: it is. */
const char *form_op(const struct plan *p, const struct exchanged_member *m, const struct form *form,
                    enum exchanged_op *op);

/* Which argument it is, as arguments are counted among outputs: places first, then names. -1: there
 * is none. *name, *length: as the input calls it. */
int form_argument(const struct plan *p, const struct exchanged_member *m, int place,
                  const char *wanted, const char **name, size_t *length);

/* What stands behind the call in a record's name: "input.0.1", "output.0". */
const char *form_below(const struct plumb_record *record);

/* Whether a text begins so, and what comes then. */
bool form_begins(const char *text, const char *word, const char **rest);

#endif
