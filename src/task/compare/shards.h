/* Putting the parts of ranks together: what is known of each tensor, between the files. */
#ifndef COMPARE_SHARDS_H
#define COMPARE_SHARDS_H

#include "pair/shards_family.h"
#include "pair/shards_group.h"
#include "pair/shards_infer.h"
#include "plumb/shards.h"

/* Where a layout comes from. */
enum shards_source {
    SHARDS_NOWHERE,  /* it is not known */
    SHARDS_SINGLE,   /* one rank has it, whole */
    SHARDS_GIVEN,    /* by the user */
    SHARDS_RECORDED, /* by the capture */
    SHARDS_FOUND,    /* in the data */
    SHARDS_SAME,     /* both sides have the same parts: how they lie does not matter */
    SHARDS_ALIKE,    /* that of the same tensor in other layers, or steps */
    SHARDS_GROUPED,  /* slices in the order of recorded process groups; no value decides */
    SHARDS_SHAPE,    /* the only one that the shapes allow, or the first of several */
};

/* A replica that is not what the others are. */
struct shards_odd {
    unsigned part;
    double distance; /* relative, from the others */
};

/* What is known of one side of a tensor; of malloc. */
struct shards_choice {
    enum shards_source source;
    struct shards_layout *layout; /* NULL: none */
    struct shards_layout *rival;  /* fits as well, or NULL */
    const char *family;           /* recorded process groups that the slices follow, or NULL */
    double residual;
    bool open; /* the data do not determine it */
    bool *use; /* by part: others are replicas of these */
    struct shards_odd *odd;
    unsigned odds;
    unsigned ndim; /* of the whole */
    int64_t *shape;
    uint64_t count;
    enum plumb_dtype dtype;
    char *doubt;                      /* what is odd about it, or NULL */
    bool denied;                      /* so odd that the tensor does not pass */
    struct plumb_error *error;        /* why there is no layout, or NULL */
    const struct shards_layout *hint; /* of the same tensor in another layer, or NULL */
};

/* One side of the work. */
struct shards_run {
    const struct plumb_run *run;
    const struct plumb_record **records;
    size_t count;
    struct shards_groups groups;
    struct shards_families families;    /* of process groups */
    struct shards_choice *choices;      /* by group */
    struct plumb_record *heads;         /* by group: the whole, as far as it is known */
    const struct plumb_record **listed; /* pointers to them */
    bool *dropped;                      /* by group: not compared, and counted */
    const char *missing;                /* ranks without a tensor, "2,3"; NULL: none */
};

struct shards_work {
    const struct plumb_shards_options *options;
    struct arena arena;
    struct shards_rules rules;
    struct shards_run side[2];
    struct plumb_matching matching; /* of groups */
};

/* The parts of one side of a tensor, loaded. */
struct shards_parts {
    struct plumb_payload *payloads;
    struct plumb_file_guard *guards;
    const struct plumb_tensor **parts;
    unsigned count;
};

/* Loads the parts of a group; after a failure too, what was loaded is to be released. */
enum plumb_code shards_parts_load(struct shards_parts *out, const struct shards_run *side,
                                  const struct shards_group *group, struct arena *arena,
                                  struct plumb_error *err);
void shards_parts_enter(struct shards_parts *loaded); /* the guards of all files */
bool shards_parts_leave(struct shards_parts *loaded); /* true when a file shrank meanwhile */
void shards_parts_release(struct shards_parts *loaded);

/* Captures write no file for a shard without elements. */
bool shards_is_empty(const struct plumb_record *record);

/* Where a run's experts, which every rank counts from 0, are on an axis of its own, and the numbers
 * do not say on which ranks: tries both orders of ranks on a few of them, against the other run.
 * *mesh gets the one that fits, and true is returned. */
bool shards_try_experts(struct shards_mesh *mesh, const struct shards_work *work, int side,
                        const struct shards_numbers *other);

/* Decides how the two sides of pair `number` lie, on this thread. */
void shards_decide(struct shards_work *work, size_t number);

/* Decides those that no value decided by tensors of the same name in other layers, and gives those
 * an error that fit no layout. */
enum plumb_code shards_decide_alike(struct shards_work *work, struct plumb_error *err);

void shards_choice_free(struct shards_choice *choice);

/* Sets the shape, type and representatives of a choice from its layout. Where that does not fit,
 * the choice gets an error instead. */
enum plumb_code shards_settle(struct shards_choice *choice, const struct plumb_tensor *const *parts,
                              const int64_t *ranks, struct plumb_error *err);

/* Notes what is odd about a choice, unless something was noted before. Rows of such tensors are
 * suspicious; with `denied` they fail. False when out of memory. */
bool shards_doubt(struct shards_choice *choice, bool denied, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What is odd about the parts as such: terms that are copies of each other or nothing but zeros,
 * and slices of which some have more replicas. False when out of memory. */
bool shards_doubt_parts(struct shards_choice *choice, const struct plumb_tensor *const *parts,
                        const int64_t *ranks);

/* What is odd beside other tensors of the run: the order of the ranks, a factor, a layout unlike
 * that of the same tensor in other layers, ranks that are missing. False when out of memory. */
bool shards_doubt_all(struct shards_work *work);

/* A run of wholes, with a record for each group. */
enum plumb_code shards_make_run(struct plumb_run **out, struct shards_work *work, int side,
                                struct plumb_error *err);

/* Loads a record of such a run. */
enum plumb_code shards_load(const struct plumb_record *record, struct plumb_payload *payload,
                            struct plumb_error *err);

/* What a record of such a run is made of; NULL: of nothing, or of another kind of run. */
struct shards_whole {
    const struct plumb_run *run;
    const size_t *records;
    const int64_t *ranks;
    const struct shards_layout *layout;
    const bool *use; /* by part */
    unsigned only;   /* this part alone, or UINT_MAX */
    double odd; /* of a row for a replica that differs: how far it is from the others; else 0 */
    unsigned ndim;
    const int64_t *shape;
    enum plumb_dtype dtype;
    const char *doubt; /* as a choice has it */
    bool denied;
};
const char *compare_shards_note(const struct plumb_run *run); /* as compare.h has it */
const struct shards_whole *shards_whole_of(const struct plumb_run *run,
                                           const struct plumb_record *record);

#endif
