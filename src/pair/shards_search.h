/* Inside of the inference: hypotheses and how they are tried. */
#ifndef PAIR_SHARDS_SEARCH_H
#define PAIR_SHARDS_SEARCH_H

#include "pair/shards_infer.h"

enum {
    MAX_CANDIDATES = 640,
    MAX_SLOTS = 4096,
    MAX_BLOCKS = 64,
};

/* A part that is farther off does not fit; unrelated numbers are at about 1.4. */
#define FITS 0.25
/* Sums that are replicas of each other are nearer than this. */
#define ALIKE_SUMS 1e-2
/* Differences of this size may come from rounding. */
#define ROUNDING 1e-4
/* Answers whose distances are within this factor cannot be told apart. */
#define CLEAR 4.0

struct candidate {
    struct shards_layout *layout;
    double residual;
    unsigned missed; /* parts, or sums of them, that do not fit */
    bool open;       /* ranks could change places */
    bool fits;
};

struct search {
    struct arena *arena;
    const struct plumb_tensor *whole;
    const struct plumb_tensor *const *parts;
    unsigned count;
    struct shards_sample *samples;
    struct candidate list[MAX_CANDIDATES];
    size_t candidates;
    bool no_memory;
};

/* Groups of parts that are added up; of one part each where nothing is. */
struct sums {
    unsigned groups, terms;
    bool strided; /* group g has parts g, g + groups, ...; else terms that follow each other */
    enum shards_reduce reduce;
    unsigned divisor; /* of all parts; 0: none */
};

/* As many groups as there are parts. */
static inline struct sums search_alone(const struct search *s)
{
    return (struct sums){.groups = s->count, .terms = 1};
}

/* A layout for the parts; NULL notes that memory ran out. */
struct shards_layout *search_layout(struct search *s);

/* Relative distance of a group from where the plan has `slot`. */
double search_distance(const struct search *s, const struct sums *sums, unsigned group,
                       const struct shards_plan *plan, unsigned slot);

/* Is an answer at `other` clearly worse than one at `best`? */
bool search_clear(double best, double other);

/* The lower median: a part that is wrong does not count. Sorts. */
double search_median(double *values, unsigned count);

bool search_any_fits(const struct search *s);

/* How far off an answer may be: of a few numbers, chance brings many near. */
double search_limit(const struct search *s);

/* Holds every group against every slot and sets what comes of it. */
void search_judge(struct search *s, struct candidate *c, const struct sums *sums,
                  const struct shards_plan *plan, unsigned slots);

/* Slices of different sizes along one axis; rows of numbers one behind the other. */
void search_uneven(struct search *s);
void search_flat(struct search *s);

#endif
