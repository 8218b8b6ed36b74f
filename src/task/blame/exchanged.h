/* One exchange: what each rank put in, and what each should have got. */
#ifndef BLAME_EXCHANGED_H
#define BLAME_EXCHANGED_H

#include "task/blame/across.h"

enum exchanged_op {
    EXCHANGED_COPY,
    EXCHANGED_SUM,
    EXCHANGED_MEAN,
    EXCHANGED_PRODUCT,
    EXCHANGED_MIN,
    EXCHANGED_MAX
};

/* Elements of a record that went into a result. */
struct exchanged_term {
    size_t record;
    uint64_t at;
    int64_t rank; /* that gave it */
};

/* A stretch of a result, and what it is made of. */
struct exchanged_part {
    size_t record; /* of the result */
    uint64_t at, count;
    const struct exchanged_term *terms;
    size_t n;
};

/* What one rank got. */
struct exchanged_result {
    size_t member;     /* which of the exchange */
    const char *place; /* "output 0" */
    struct exchanged_part *parts;
    size_t n;
};

/* A call of the exchange. */
struct exchanged_member {
    const struct graph_node *node;
    int64_t rank;
    size_t site;         /* number + 1 */
    size_t first, count; /* records */
    const char *refused; /* why nothing can be said of it, or NULL */
};

struct exchanged {
    struct exchanged_member *members; /* by rank */
    size_t count;
    bool known_group; /* the capture says which ranks took part */
    enum exchanged_op op;
    struct exchanged_result *results;
    size_t n_results;
    const char *refused; /* why nothing can be said of any, or NULL */
    bool planned;        /* op and results are set already */
    bool reduced;        /* no call, but gradients before and after they were reduced */
};

/* A new exchange of so many members, zeroed, and the arena that its lists live in; valid until the
 * next. NULL when out of memory. */
typedef struct exchanged *exchanged_add_fn(void *context, size_t members, struct arena **arena);

/* Adds an exchange, planned, for each module whose gradients DistributedDataParallel reduced.
 * PLUMB_E_NOMEM. */
enum plumb_code across_find_reduced(const struct across *across, const struct kept *kept,
                                    exchanged_add_fn *add, void *context);

/* Finds out what the results of an exchange should be made of. Members are set. Lists live in the
 * arena; PLUMB_E_NOMEM is the only failure. */
enum plumb_code exchanged_plan(struct exchanged *x, const struct plumb_run *run,
                               struct arena *arena);

/* What became of one result. */
struct exchanged_verdict {
    bool unreadable; /* why: the reason */
    const char *why;
    double excess;      /* of the worst element, in units of which EXCHANGED_LIMIT are allowed */
    uint64_t off, seen; /* elements beyond the limit, and all that were looked at */
    bool exact;         /* every element is the correctly rounded one */
    uint64_t place;     /* of the worst element */
    size_t record;      /* that it is in */
    double got, expected;
    const char *pattern; /* what it looks like, or "" */
};

#define EXCHANGED_LIMIT 8.0

/* The pattern of a rank that got what it put in. */
#define EXCHANGED_OWN "it is what the rank itself put in: nothing was exchanged"

/* Computes the results of an exchange again, and holds what was recorded against them: a verdict
 * for each. Texts live in the arena; PLUMB_E_NOMEM is the only failure. */
enum plumb_code exchanged_judge(const struct exchanged *x, const struct plumb_run *run,
                                struct arena *arena, struct exchanged_verdict *verdicts);

#endif
