/* Which record of one run belongs to which of the other. */
#ifndef PLUMB_PAIR_H
#define PLUMB_PAIR_H

#include "plumb/run.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_pair_mode {
    PLUMB_PAIR_AUTO,  /* exact, then fuzzy for what is left, unless both runs are dumps */
    PLUMB_PAIR_EXACT, /* equal names only */
    PLUMB_PAIR_FUZZY, /* exact, then fuzzy; calls of dumps by their order, not by their numbers */
    PLUMB_PAIR_ORDER, /* the n-th with the n-th; refuses when the numbers differ */
};

enum plumb_pair_how {
    PLUMB_BY_NAME,
    PLUMB_BY_LIKENESS,
    PLUMB_BY_ORDER,
    PLUMB_BY_MAP,
    PLUMB_BY_GROUP, /* first input and last output of calls that do the same, fused or not */
    PLUMB_UNMATCHED
};

#define PLUMB_NO_RECORD SIZE_MAX

struct plumb_pair {
    size_t target, golden; /* record numbers; one of them PLUMB_NO_RECORD when unmatched */
    enum plumb_pair_how how;
    bool covered;   /* unmatched: part of what the other run does in one piece, which is compared */
    size_t nearest; /* unmatched: the record of the other run whose name is nearest, or NO_RECORD */
};

struct plumb_pair_options {
    enum plumb_pair_mode mode;
    const char *map_file; /* pairs of names that come first, or NULL */
    const char *data_map; /* YAML file of such pairs; names that are not there are fine; or NULL */
    const char *cell_map; /* YAML file of module names; "": Cell counts as Module; or NULL */
    const char *api_map;  /* YAML: API names; "": MindSpore's prefixes become PyTorch's; or NULL */
    /* YAML: names of modules by the class that holds them; "": all names stay; or NULL. Dumps only:
     * calls pair by the module that they are in and their turn there. */
    const char *layer_map;
    const int64_t *rank; /* records of this rank only, or NULL */
};

struct plumb_matching {
    struct plumb_pair *pairs; /* matched ones in target order, then target-only, then golden-only */
    size_t count, matched;
    char *mapping; /* what layer_map said, as a data_map file; or NULL */
    /* What was decided by a look at all records together, in bits: where the ranks of two runs
     * agree about it, their pairs are those of the runs as a whole. */
    unsigned decided;
};

/* Pairs the records of two runs. Every record of both appears exactly once. Ranks and steps must be
 * equal too, unless each run has a single one; two runs of one record each always match. Errors:
 * PLUMB_E_ARG for mode ORDER with differing numbers, PLUMB_E_IO / PLUMB_E_FORMAT for the map file
 * (with the line that is wrong). */
enum plumb_code plumb_match(struct plumb_matching *out, const struct plumb_run *target,
                            const struct plumb_run *golden,
                            const struct plumb_pair_options *options, struct plumb_error *err);
void plumb_matching_free(struct plumb_matching *matching);

#ifdef __cplusplus
}
#endif
#endif
