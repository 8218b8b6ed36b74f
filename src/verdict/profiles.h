/* Profiles: everything that can be done otherwise than plumb does it, job by job. A command chooses
 * one and hands it to its task, which asks for what it comes to, never whose profile it is. NULL,
 * for the whole or for a job, means plumb's own way; so does a member that is zero, unless it says
 * otherwise. All members are data or pure functions, so many threads may use a profile. */
#ifndef VERDICT_PROFILES_H
#define VERDICT_PROFILES_H

#include "verdict/graph_profile.h"

struct precheck_profile;

/* How the parts of checkpoints are joined, and their weights compared. */
struct checkpoint_profile {
    bool renames_all;    /* older names of weights are made new even where that name is taken */
    bool plain_cuts;     /* fused norms are cut like their layers, and the two matrices of a gated
                             layer like one */
    bool plain_experts;  /* only "experts.N." has a number; it counts through only where the
                             checkpoint says how many experts there are */
    bool even_chunks;    /* each has as many layers as the largest of the first stage */
    bool joins_some;     /* a weight that lacks parts is joined of those that are there */
    bool last_wins;      /* of several weights of a name; else they are copies, and compared */
    bool no_aliases;     /* what other layers call a weight is another weight */
    bool as_float32;     /* types that float32 does not hold, too */
    bool no_infinities;  /* masks of infinities never agree, not even when they are the same */
    bool judges_nothing; /* weights without elements are judged like others; else they agree */
    bool any_kind;       /* integers are judged like weights */
};

/* How ranks are searched for the one that was first: one set for NaN and infinity, one for
 * differences. */
struct ranks_rules {
    bool all_ties; /* of nodes that are equally early, all are found; else the lowest rank's */

    /* -- Who talks to whom -- */
    bool text_roles;  /* names of rows and their texts say roles and peers */
    bool plain_roles; /* else the arguments do: src, dst, group and all positional numbers, as they
                           stand; without: also what P2POp and groups say, as ranks of the world */
    bool exact_names; /* what is sent by isend is received by irecv only */
    bool begin_alike; /* the name of an operator need only begin like that of its counterpart */

    /* -- In which order -- */
    bool own_layers;  /* a layer is a node's place in its rank, handed on to those it talks to; else
                           an exchange comes after all that came before any of its members */
    bool growing;     /* and that of a node is higher than that of the node before it */
    bool rounds;      /* the next node of every rank is looked at, until one tells something */
    bool first_group; /* and of a round only the group of the first rank's */
    bool poisoned_only; /* what a member holds counts only where bad input may come from it */
    bool first_found;   /* of equally early nodes, the one that was found first */

    /* -- What is bad -- */
    bool direct_only;  /* NaN and infinity in direct arguments, not in lists inside lists */
    bool numbers_only; /* differences of numbers: no words, no shapes, and not those of inputs */
    bool
        same_ranks; /* both sides must have as many ranks; else those are compared that both have */
    bool p2p_by_place; /* the golden side's P2POp is that of the row at the same place */
};

struct ranks_profile {
    struct ranks_rules overflow, differences;
};

struct plumb_profile {
    const char *name;
    const struct precheck_profile *precheck; /* never NULL */
    const struct graph_profile *graph;
    const struct graph_columns *graph_columns; /* NULL: it has no table of its own */
    const struct checkpoint_profile *checkpoint;
    const struct ranks_profile *ranks;
};

/* All that there are, the documented one first, NULL at the end; and the parts of them that the
 * pre-check chooses from. A floor above fills them. */
extern const struct plumb_profile *const all_profiles[];
extern const struct precheck_profile *const precheck_profiles[];

#endif
