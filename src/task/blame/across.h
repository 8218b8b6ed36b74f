/* The ranks of a run beside each other, and what they exchange. */
#ifndef BLAME_ACROSS_H
#define BLAME_ACROSS_H

#include "ranks/graph.h"
#include "task/blame/kept.h"

/* How far from finite: a NaN is worse than an infinity, which masks are made of. */
enum level { FINITE, INFINITE, NOT_A_NUMBER };

/* The worst of what a node got, and of what it gave. */
struct finite {
    enum level in, out;
    const char *place; /* of what it got: "input.1"; NULL: that is finite */
};

/* A step of several ranks. Nodes are the entries of a rank's dump.json, in their order. */
struct across_step {
    int64_t step;
    struct graph_rank *ranks;       /* by number */
    const struct dump_tree **trees; /* of the run, one for each rank */
    size_t **sites;                 /* of each rank, for each node: number + 1; 0: there is none */
    struct finite **finite;         /* the same: what is not finite about it */
    size_t count;
};

struct across {
    struct across_step *steps; /* those with several ranks */
    size_t count;
    struct map records; /* the address of an exchange's name to its first record */
    struct arena arena;
};

/* Reads which calls of the run communicate, and what of them is not finite. A rank that cannot
 * be read again is left out, and the exchanges that it took part in are not judged. across_close
 * in any case. */
enum plumb_code across_open(struct across *across, const struct plumb_run *run,
                            const struct sites *sites, struct plumb_error *err);
void across_close(struct across *across);

/* The records of an exchange: number of the first, and how many. */
size_t across_records(const struct across *across, const struct plumb_run *run, const char *api,
                      size_t *count);

/* Judges what came out of exchanges by what all ranks put in. */
enum plumb_code across_judge(struct across *across, struct kept *kept, struct plumb_error *err);

/* Notes for every call of an exchange how far from the other run what all ranks put in is. */
enum plumb_code across_note_saved(struct across *across, struct sites *sites,
                                  struct plumb_error *err);

/* Where faults and what is not finite began, and how they went on; into blame. */
enum plumb_code across_follow(struct across *across, struct kept *kept, struct plumb_error *err);

/* Ranks whose tensors differ where those of all ranks must agree; into blame. */
enum plumb_code odd_find(struct across *across, struct kept *kept, struct plumb_error *err);

#endif
