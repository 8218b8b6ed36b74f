/* Whole comparisons and summaries: from runs to a table. */
#ifndef PLUMB_COMPARE_H
#define PLUMB_COMPARE_H

#include "plumb/baseline.h"
#include "plumb/pair.h"
#include "plumb/progress.h"
#include "plumb/report.h"
#include "plumb/table.h"
#include "plumb/verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_crew; /* the processes of plumb-mpi, in there only */

enum plumb_columns {
    PLUMB_COLUMNS_AUTO, /* XRAY when both runs are HDF5 module dumps, else TORCHAIR */
    PLUMB_COLUMNS_XRAY, /* Index, Status, Module (Bench/Target), Cosine, RMSE, IsClose (%), ... */
    PLUMB_COLUMNS_TORCHAIR, /* API Name, Stack Info, Data Name, Cosine, EucDist, MaxAbsErr, ... */
};

struct plumb_compare_options {
    struct plumb_pair_options match;
    enum plumb_columns columns;
    const char *standard;        /* name or file; NULL: the one that fits the columns */
    const char *const *settings; /* assignments for plumb_standard_override, in order */
    size_t settings_count;
    const char *metrics; /* further columns: "all", or names separated by commas; NULL: none */
    bool modules;        /* adds Module, where it is known what called whom */
    bool wide;           /* the same, and Step, Rank, Min Err, dtypes, shapes and both paths */
    bool reasons; /* adds the rule that decided each row, to columns that have no place for it */
    unsigned threads;            /* 0: as many as there are processors */
    struct plumb_crew *crew;     /* NULL: this process does all */
    plumb_progress_fn *progress; /* of bytes; NULL: none */
    void *progress_context;

    /* Second opinions: other than PLUMB_BY_RULES, every result of the target that a recorded call
     * gave is held against that call, computed again from the target's own inputs. Adds the columns
     * Verdict and Why, and Judged by where reasons or wide are asked for. Not with the xray
     * columns. */
    enum plumb_deciding verdict;
    const char *arithmetic;       /* cheaper arithmetic that is allowed; NULL: none */
    uint64_t seed;                /* of the perturbations */
    uint64_t memory;              /* bytes that calls may take together; 0: three quarters of all */
    struct plumb_baseline *found; /* what is said of each result is added there; NULL: nowhere */
    plumb_progress_fn *judging;   /* of calls; NULL: none */
    void *judging_context;

    /* Gets what needs the tensors: the curve along the network, ranks, steps, and a page for each
     * of the worst 200. plumb_comparison_report tells it the rest. NULL: none is made. */
    struct plumb_report *report;
};

/* What keeps a row from passing plainly, the worst first. */
enum plumb_trouble {
    PLUMB_TROUBLE_FAULT,        /* the call that gave it is wrong by itself */
    PLUMB_TROUBLE_NONFINITE,    /* fails: a NaN or infinity that the other side does not have */
    PLUMB_TROUBLE_LIMIT,        /* fails by any other rule */
    PLUMB_TROUBLE_SHAPE,        /* the shapes differ */
    PLUMB_TROUBLE_TYPE,         /* the types are of different kinds */
    PLUMB_TROUBLE_UNREADABLE,   /* a file is damaged or missing */
    PLUMB_TROUBLE_INCOMPARABLE, /* there is nothing that both sides could be compared by */
    PLUMB_TROUBLE_ONLY_TARGET,  /* the golden run does not have it */
    PLUMB_TROUBLE_ONLY_GOLDEN,  /* the target run does not have it */
    PLUMB_TROUBLE_UNJUDGED,     /* neither passes nor fails */
    PLUMB_TROUBLE_CHEAPER,      /* cheaper arithmetic explains it, which is not allowed */
    PLUMB_TROUBLE_SUSPICIOUS,   /* passes */
    PLUMB_TROUBLE_NO_OPINION,   /* a second opinion was asked for, and there is none */
    PLUMB_TROUBLE_ALONE,        /* graph dumps: need not have a counterpart, and has none */
    PLUMB_TROUBLE_NONE,
    PLUMB_TROUBLES = PLUMB_TROUBLE_NONE
};

/* How such a row is to be looked at. */
enum plumb_mood plumb_trouble_mood(enum plumb_trouble trouble);

/* What became of a row. */
struct plumb_outcome {
    enum plumb_trouble trouble;
    double distance; /* relative Euclidean, or an estimate of it; 0 when nothing was compared */
};

/* All rows with one kind of trouble. */
struct plumb_trouble_rows {
    size_t count;
    size_t first; /* row of the unsorted table; only when count is not 0 */
    char *text;   /* that row as "name (reason)", safe for a terminal */
};

enum { PLUMB_SPARE = 255 };

struct plumb_comparison {
    struct plumb_table *table;
    struct plumb_table *full; /* the same with modules and reasons, for a report; NULL: there is
                                 none */
    size_t compared;          /* pairs whose values were compared */
    size_t passed, suspicious, failed; /* of the compared; suspicious ones passed too */
    size_t unjudged; /* of the compared, too: neither passed nor failed, since what is known about
                       * them, NaN on both sides for one, tells nothing */
    size_t uninitialised; /* of these: nobody had written to one of the two */
    size_t unmatched;     /* records without a partner */
    size_t covered; /* records without a partner that are part of what the other run does in other
                       steps, or in one; these are compared where they begin and end */
    size_t unreadable; /* pairs that could not be compared: unreadable, shapes differ, ... */
    size_t bad;        /* rows that fail by what decides: for PLUMB_BY_RULES failed, unmatched and
                        * unreadable, for PLUMB_BY_EXPECTED faults */
    enum plumb_deciding verdict;         /* what that is */
    uint64_t words[PLUMB_WORDS];         /* of the target's results */
    size_t first_fault_row;              /* as the next two */
    size_t worst_row, first_failing_row; /* rows of the unsorted table, or PLUMB_NO_RECORD */
    char *closing; /* the closing line(s) for people: counts, worst, first failure, advice */
    char *mapping; /* of the rows that a layer_map paired, as a data_map file; or NULL */
    char *advice;  /* the first lines of `closing`, those before the counts; may be "" */
    char *counts;  /* the rest of it without the rows that it names: a line */
    struct plumb_outcome *outcomes; /* one per row of the unsorted table; NULL: a profile's table */
    unsigned char *spare; /* one per column, together with outcomes: how well a digest can do
                           * without it. 0: not at all; PLUMB_SPARE: always; else the larger go
                           * first where a terminal is narrow */
    struct plumb_trouble_rows troubles[PLUMB_TROUBLES];
    int32_t *pages; /* one per row of the unsorted table: its page in the report, or -1; NULL: there
                     * is no report */
};

/* Compares two runs. Damage to single tensors is a row; only unusable options fail the call. Free
 * the result with plumb_comparison_free. */
enum plumb_code plumb_compare(struct plumb_comparison *out, const struct plumb_run *target,
                              const struct plumb_run *golden,
                              const struct plumb_compare_options *options, struct plumb_error *err);
void plumb_comparison_free(struct plumb_comparison *comparison);

/* The answer, what was found how often, and the table; while that is unsorted and whole. */
void plumb_comparison_report(struct plumb_report *report,
                             const struct plumb_comparison *comparison);

/* The same for several tables under their names, with one answer. */
void plumb_comparisons_report(struct plumb_report *report,
                              const struct plumb_comparison *const *comparisons,
                              const char *const *names, size_t count);

struct plumb_summary_options {
    bool
        wide; /* full names are the table look's business; this adds dtype, shape, NaN/Inf counts */
    unsigned threads;
    struct plumb_crew *crew; /* NULL: this process does all */
    plumb_progress_fn *progress;
    void *progress_context;
    size_t first; /* the number of the first row, where the run is a part of what is summed up */
};

/* Index, Step, Rank, Module, Min, Max, Mean, Std: a row a tensor. *unreadable counts rows that have
 * an error instead of numbers. */
enum plumb_code plumb_summary(struct plumb_table **table, size_t *unreadable,
                              const struct plumb_run *run,
                              const struct plumb_summary_options *options, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
