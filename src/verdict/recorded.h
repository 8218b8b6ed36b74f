/* Judging what was written down about two tensors or arguments, where there are no values.
 *
 * Limits are the rules of the built-in standard `statistics`, which the caller loads once with
 * standard_load_task and may move with recorded_set_limit. */
#ifndef VERDICT_RECORDED_H
#define VERDICT_RECORDED_H

#include "plumb/run.h"
#include "plumb/verdict.h"

/* Of one statistic. */
struct recorded_difference {
    enum { DIFFERENCE_NONE, DIFFERENCE_NUMBER, DIFFERENCE_WORD } kind;
    double absolute, relative;
};

/* What is known about one side without its values. */
struct recorded_account {
    struct plumb_value statistic[PLUMB_STATISTICS];
    const struct plumb_value *deviation; /* of the sample; NULL: unknown */
    const struct plumb_kept *kept;       /* or NULL */
    const char *checksum;                /* of a capture, or as one would; or NULL */
    enum plumb_dtype dtype;              /* that it is of; PLUMB_DTYPE_COUNT: unknown */
    bool exact;                          /* by plumb condense */
};

struct recorded_evidence {
    struct recorded_account side[2]; /* target, golden */
    uint64_t count;                  /* elements; 0: unknown */
    bool integers;                   /* or bool */
};

/* What two sketches say; shares, not per cent. Standard errors are of the estimates. */
struct recorded_estimate {
    bool there;                      /* else the rest means nothing */
    double distance, error;          /* relative to the norm of golden */
    double scale, scale_error, left; /* the best factor, and the share of the distance it leaves */
    char where[120];                 /* "axis 1: 48-63 (1 of 16 blocks)"; "": everywhere */
};

struct recorded_judgement {
    struct plumb_verdict verdict;
    const char *problem;  /* why there is nothing to judge, a constant; NULL: there is a verdict */
    bool has_differences; /* at least one statistic is there on both sides */
    double distance;      /* relative, estimated: which row is worst */
    double max_rel;       /* what a jump is told by */
    struct recorded_difference difference[PLUMB_STATISTICS];
    struct recorded_estimate estimate;
};

/* Judges by all of the evidence: counts of NaN and infinities, statistics, sketches, checksums. */
void recorded_judge_statistics(const struct plumb_standard *standard,
                               const struct recorded_evidence *evidence,
                               struct recorded_judgement *out);

/* Judges by nothing but two checksums. */
void recorded_judge_checksums(const char *target, const char *golden,
                              struct recorded_judgement *out);

/* Whether two arguments may be the same, since of one of them only the address in memory was
 * recorded: "<ReduceOp object at 0x7f12>". Two of those must be of one class. */
bool recorded_hides(const char *a, const char *b);

/* Judges arguments that are no tensors by their values as they were written. */
void recorded_judge_argument(const struct plumb_standard *standard,
                             const struct plumb_recorded *target,
                             const struct plumb_recorded *golden, struct plumb_verdict *verdict);

/* A gradient that one side does not ask for will be missing later: makes what passes suspicious. */
void recorded_judge_gradient(const struct plumb_record *target, const struct plumb_record *golden,
                             struct plumb_verdict *verdict);

/* The limit of differences of statistics that fail, as a share. */
double recorded_limit(const struct plumb_standard *standard);

/* Moves that limit, and the one of suspicion in proportion; once, as built in. */
void recorded_set_limit(struct plumb_standard *standard, double limit);

/* Tells whether a checksum is of the kind that exclusive-ors words. */
bool recorded_is_xor(const char *checksum);

/* What can be said of two checksums without judging them. Sums and types may be unknown: NULL,
 * PLUMB_DTYPE_COUNT. Equal values of different types have different bits. */
enum recorded_checksums { CHECKSUMS_UNKNOWN, CHECKSUMS_EQUAL, CHECKSUMS_DIFFER };
enum recorded_checksums recorded_compare_checksums(const char *const sums[2],
                                                   const enum plumb_dtype dtypes[2]);

/* A value as a number where a capture wrote what is not finite as a word. */
struct plumb_value recorded_value(const struct plumb_value *written);

/* The difference of two values, neither of them such a word. */
struct recorded_difference recorded_difference(const struct plumb_value *target,
                                               const struct plumb_value *golden);

#endif
