/* Inside of the matching: the state that the stages hand on, and the stages.
 *
 * Each stage pairs some of the records that are still free. The order of the stages is the order of
 * trust: the user's map, calls of modules by their turn, equal names, names that are alike. */
#ifndef PAIR_PARTS_H
#define PAIR_PARTS_H

#include "base/arena.h"
#include "plumb/pair.h"

enum { TARGET, GOLDEN };

/* The partner of a record that is free, but not for the stages at hand. */
#define MATCH_ASIDE (PLUMB_NO_RECORD - 1)

/* One run. */
struct match_side {
    const struct plumb_record *const *records;
    size_t count;
    size_t *partner;   /* by record: its number in the other run, or PLUMB_NO_RECORD while free */
    bool *covered;     /* by record: part of what the other run does in one piece */
    const char **keys; /* by record: what exact matching compares; NULL: as the records say */
};

/* What a stage decides by all records of a side, or of both. */
enum match_decision {
    MATCH_SHIFTED = 1,      /* numbers of some classes say nothing */
    MATCH_PARENTS = 2,      /* the target knows modules; next bit: the golden run */
    MATCH_COMMON_SCOPE = 8, /* most of its calls are in modules that the other has; next bit: the
                               golden run's */
};

struct matcher {
    struct match_side side[2];
    enum plumb_pair_how *how; /* by target record */
    bool by_step, by_rank;    /* must be equal */
    bool same_level;          /* both recorded the same kinds of calls */
    bool dumps;               /* both sides are: records may say what to compare, not their name */
    char *mapping;            /* what match_layers found, as a file; or NULL */
    unsigned decided;         /* enum match_decision */
    struct arena arena;       /* whatever lives as long as the matching */
};

/* A key for a record; no text: the record does not take part. */
struct match_key {
    const char *text;
    size_t length;
};

enum match_policy {
    MATCH_IN_ORDER,     /* the k-th of a key with the k-th, while there are some on both sides */
    MATCH_UNIQUE,       /* only keys that one free record of each side has */
    MATCH_EQUAL_COUNTS, /* the k-th with the k-th, where both sides have as many */
};

/* May this pair be made? */
typedef bool match_filter(const struct matcher *matcher, size_t target, size_t golden,
                          const void *context);

/* Pairs free records with equal keys; filter may be NULL. False when out of memory. */
bool match_by_keys(struct matcher *matcher, const struct match_key *target,
                   const struct match_key *golden, enum match_policy policy,
                   enum plumb_pair_how how, match_filter *filter, const void *context);

/* What record i of a side goes by; NULL: it does not take part. */
typedef const char *match_namer(const struct matcher *matcher, int which, size_t i,
                                const void *context);

/* Pairs free records: in each step and rank, the k-th of a name with the k-th. False when out of
 * memory. */
bool match_by_names(struct matcher *matcher, match_namer *name, const void *context,
                    enum plumb_pair_how how);

/* A run that was converted has its steps and ranks in the names, "rank1/2/name": where one side has
 * all of them so, and the other counts steps or ranks, they are taken from there. False when out of
 * memory. */
bool match_read_places(struct matcher *matcher);

/* What exact matching compares of record i. */
const char *match_name(const struct matcher *matcher, int which, size_t i);

/* "/STEP/RANK", as far as these must be equal, else ""; NULL when out of memory. */
const char *match_place(struct matcher *matcher, const struct plumb_record *record);

bool match_same_shape(const struct plumb_record *a, const struct plumb_record *b);

void match_pair(struct matcher *matcher, size_t target, size_t golden, enum plumb_pair_how how);

/* The stages. */
enum plumb_code match_map_file(struct matcher *matcher, const char *path, struct plumb_error *err);
bool match_fuzzy(struct matcher *matcher);    /* false when out of memory */
bool match_calls(struct matcher *matcher);    /* rows of dumps only; false when out of memory */
bool match_turns(struct matcher *matcher);    /* calls of modules; false when out of memory */
bool match_keywords(struct matcher *matcher); /* arguments; false when out of memory */
bool match_scopes(struct matcher *matcher);   /* calls by module; false when out of memory */
bool match_covered(struct matcher *matcher);  /* marks them; false when out of memory */
bool match_is_function(const struct plumb_record *record); /* in a dump, of no module */
enum plumb_code match_data_map(struct matcher *matcher, const char *file, struct plumb_error *err);
enum plumb_code match_layers(struct matcher *matcher, const char *file, struct plumb_error *err);

/* Rename modules or APIs in the keys of the target as a mapping file says; file "" has no names. */
enum plumb_code match_cells(struct matcher *matcher, const char *file, struct plumb_error *err);
enum plumb_code match_apis(struct matcher *matcher, const char *file, struct plumb_error *err);

/* plumb_match on arrays of records. */
enum plumb_code match_records(struct plumb_matching *out, const struct plumb_record *const *target,
                              size_t target_count, const struct plumb_record *const *golden,
                              size_t golden_count, const struct plumb_pair_options *options,
                              struct plumb_error *err);

#endif
