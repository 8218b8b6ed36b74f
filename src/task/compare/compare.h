/* The parts of a comparison, between its files. */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include "run/stock.h"
#include "task/compare/layout.h"
#include "task/compare/outcome.h"
#include "verdict/calls.h"
#include "verdict/recorded.h"

/* What a pair is compared by; what two runs are, by and large. */
enum basis { BY_NOTHING, BY_TENSOR, BY_STATISTICS, BY_CHECKSUM, BY_VALUE };
enum compare_mode { MODE_TENSORS, MODE_STATISTICS, MODE_CHECKSUMS };

/* What became of one pair. */
struct row {
    enum basis basis;
    bool compared;
    bool uninitialised;   /* one side holds whatever the memory held */
    bool has_differences; /* its place among the comparison's is filled */
    bool integers;        /* both sides: they have no ULPs */
    struct plumb_verdict verdict;
    double distance; /* relative Euclidean: which row is worst */
    double max_rel;  /* for jumps */
    uint32_t crc[2];
    char *histogram[3];                 /* malloc, or NULL */
    char *checksum[2];                  /* malloc, when compared by them */
    struct recorded_estimate *estimate; /* malloc: what sketches say; or NULL */
    char *parts;                        /* malloc: which ranks the error is in, or NULL */
    char *problem;                      /* malloc: why it was not compared, or NULL */
    enum plumb_trouble obstacle;        /* what kind of trouble that is */
};

/* What rows are judged by. */
struct compare_standards {
    struct plumb_standard *values;   /* those compared by their values */
    struct plumb_standard *recorded; /* the others */
};

/* What the call that gave a row has to say for itself. */
enum opinion_kind {
    OPINION_NONE,      /* nothing: the row is an input, which another call gave, or a None */
    OPINION_UNMATCHED, /* nothing: the target does not have it */
    OPINION_GIVEN,
};

struct opinion {
    enum opinion_kind kind;
    enum plumb_word word;
    const char *why;
    const struct local_verdict *result; /* of which it is; NULL: it was not judged */
};

/* A name of the other run that is near, and where it is. */
struct near_record {
    const char *name;
    int64_t step, rank;
};

/* Which rows of two runs that are one rank of several. */
enum part_rows { PART_PAIRS, PART_TARGET_ONLY, PART_GOLDEN_ONLY };

struct part {
    enum part_rows rows;
    /* With the pairs: takes what has no partner on a side. False when out of memory. */
    bool (*alone)(void *context, int side, const struct plumb_record *record);
    /* With what has none: the nearest of the other side, among all ranks. NULL: none is near. */
    const struct near_record *(*nearest)(void *context, const char *name);
    void *context;
    unsigned decided; /* set: plumb_matching.decided */
};

struct comparison {
    const struct plumb_run *run[2]; /* target, golden */
    const struct plumb_compare_options *options;
    struct part *part; /* NULL: all rows of both runs */
    struct plumb_matching matching;
    const struct near_record *
        *nearest; /* one a pair, of what is alone in a part; NULL: as matched */
    struct compare_standards standards;
    struct plumb_metric_spec spec;
    struct layout layout;
    enum compare_mode mode;
    struct row *rows;                        /* one a pair */
    double *values;                          /* layout.metric_count a pair */
    struct recorded_difference *differences; /* PLUMB_STATISTICS a pair */
    struct opinion *opinions;                /* one a pair; NULL: none are asked for */
    struct judged_calls calls;               /* the target's, for them */
    struct arena arena;                      /* of all these, and of texts of opinions */
    char judged_by[256];                     /* version and options */
};

/* Tensors where both have them, else checksums where both are dumps made for them, else statistics,
 * else checksums. */
enum compare_mode compare_choose_mode(struct stock target, struct stock golden);

/* Loads the standard of that name or file and the one of what was recorded, and changes them:
 * "stat_limit=0.02" is for the latter. Free them in any case. */
enum plumb_code compare_load_standards(struct compare_standards *standards, const char *name,
                                       const char *const *settings, size_t count,
                                       struct plumb_error *err);
void compare_free_standards(struct compare_standards *standards);

/* Whether a row fails by the rules: compared and beyond them, not comparable, or without a partner
 * and not part of what the other run does in one piece. */
bool compare_fails(const struct comparison *comparison, size_t pair);

/* The path of the module that a record is of, or that its call was made in; "": not known. */
const char *compare_module(const struct plumb_record *record, char *text, size_t size);

/* Decides what each pair is compared by, or why it cannot be. */
void compare_plan(struct comparison *comparison);

/* Compares and judges the pairs that are not compared by their tensors. */
enum plumb_code compare_recorded(struct comparison *comparison, struct plumb_error *err);

/* 'f', 'i' or 'b' or 'c': floats, integers, bool, complex; '?' is unknown. */
char compare_kind(const struct plumb_record *record);

/* "0:12 2^-20:3 not finite:1": the count of each bin that has any, by its power of two. malloc;
 * NULL when out of memory. */
char *compare_histogram(const struct plumb_histogram *histogram);

/* Its cell, absolute or relative. False when out of memory. */
bool compare_set_difference(struct plumb_table *table, size_t column,
                            const struct recorded_difference *difference, bool relative);

/* Do both types hold the same kind of number: reals, integers, booleans, complex numbers? */
bool compare_same_kind(enum plumb_dtype a, enum plumb_dtype b);

/* The type of a record as it is shown, or NULL. */
const char *compare_dtype(const struct plumb_record *record);

/* The shape of a record as it is shown, in text where it was not written down; or NULL. */
const char *compare_shape(const struct plumb_record *record, char *text, size_t size);

/* Of rows that fail or are suspicious and were put together from ranks: says which ranks have the
 * error, and lets a sum pass whose distance the rounding of its terms explains. */
void compare_shards(struct comparison *comparison);

/* What was put together from ranks, in lines for people; NULL: nothing. */
const char *compare_shards_note(const struct plumb_run *run);

/* Marks rows whose operator made errors grow by more than the standard allows. */
enum plumb_code compare_jumps(struct comparison *comparison, struct plumb_error *err);

/* Whether second opinions can be had, where they are asked for; before any work is done. */
enum plumb_code compare_opinions_ready(struct comparison *comparison, struct plumb_error *err);

/* Gives rows their second opinions, where they are asked for; for finished rows. */
enum plumb_code compare_opinions(struct comparison *comparison, struct plumb_error *err);

/* How bad a pair is, by what decides. */
enum plumb_severity compare_severity(const struct comparison *comparison, size_t pair);

/* What an opinion has against a pair; PLUMB_TROUBLE_NONE: nothing. */
enum plumb_trouble compare_opinion_trouble(const struct comparison *comparison, size_t pair);

/* "first fault: NAME (why)": what, then the pair and its opinion, or the gist of it, safe for a
 * terminal. */
void compare_put_opinion(struct buf *text, const char *what, const struct comparison *comparison,
                         size_t pair, bool brief);

/* Counts opinions, and puts the line about them first. */
enum plumb_code compare_opinion_lines(struct plumb_comparison *out, struct closing_parts *parts,
                                      const struct comparison *comparison, struct plumb_error *err);

bool compare_is_dump(const struct plumb_run *run);

/* The table, from finished rows. */
enum plumb_code compare_table(struct plumb_table **table, const struct comparison *comparison,
                              struct plumb_error *err);

/* What the closing line says besides counts: enough to say it of several comparisons together. */
struct closing_facts {
    enum compare_mode mode;
    size_t alike, groups;     /* pairs by similar names; ends of groups of calls */
    bool any;                 /* something was compared */
    double distance;          /* of the worst row */
    struct buf worst;         /* its name */
    struct buf difference;    /* "; first difference: NAME (why)", or nothing */
    struct buf failure, rule; /* "; first failure: NAME (why)", or nothing; "; standard: NAME\n" */
};

/* What is said where some records have no partner. */
struct advice {
    size_t matched, count[2]; /* pairs; records of each side */
    struct buf first[2];      /* names of its first records */
    struct buf nearest;       /* "TARGET ~ GOLDEN" of the first that has one */
    bool dumps;
    enum plumb_pair_mode mode;
};

void advice_free(struct advice *advice);

/* Adds the first names of a run, which has more records than those that are known already. */
void advice_add(struct advice *advice, int side, const struct plumb_run *run);
void advice_near(struct advice *advice, const char *target, const char *golden);

/* Counts and the closing line, from finished rows. The facts are the caller's to free. */
enum plumb_code compare_closing(struct plumb_comparison *out, struct closing_facts *facts,
                                const struct comparison *comparison, struct plumb_error *err);
void closing_facts_free(struct closing_facts *facts);

/* Adds a comparison whose rows follow, and takes over texts of its facts. */
void closing_add(struct plumb_comparison *sum, struct closing_facts *facts,
                 const struct plumb_comparison *next, struct closing_facts *more);

/* The closing line of a sum of comparisons without second opinions. */
enum plumb_code closing_end(struct plumb_comparison *sum, const struct closing_facts *facts,
                            const struct advice *advice, struct plumb_error *err);

/* As plumb_compare; part: the runs are one rank of several, the table says which, and has these
 * rows. NULL: all rows. The facts are the caller's to free. */
enum plumb_code compare_part(struct plumb_comparison *out, struct closing_facts *facts,
                             const struct plumb_run *target, const struct plumb_run *golden,
                             const struct plumb_compare_options *options, struct part *part,
                             struct plumb_error *err);

/* The record of a side of a pair, or NULL. */
const struct plumb_record *compare_record(const struct comparison *comparison, size_t pair,
                                          int side);

/* The name to show for a pair. */
const char *compare_name(const struct comparison *comparison, size_t pair);

/* What decided a pair: the rule, or why there was nothing to judge. Uses text where it has to. */
const char *compare_reason(const struct comparison *comparison, size_t pair, char *text,
                           size_t size);

#endif
