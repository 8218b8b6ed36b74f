/* Baselines: deviations that a user knows of and accepts, so that only what is new or worse fails.
 *
 * A task adds what it found to one baseline; another is read from a file; the two are compared:
 *
 *     plumb_baseline_new(&options, &found, err);
 *     plumb_baseline_add(found, &deviation, err);                 for every result
 *     plumb_baseline_read("baseline.json", &options, &accepted, err);
 *     plumb_baseline_compare(accepted, found, &diff, err);
 *     plumb_baseline_write(found, "baseline.json", err);
 *
 * A deviation is a fault or cheaper arithmetic. Results of other words may be added as well: they
 * are not written, and only say what became of what is gone.
 *
 * An object belongs to one thread. */
#ifndef PLUMB_BASELINE_H
#define PLUMB_BASELINE_H

#include "plumb/expected.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the verdicts: a file that was made with others is refused, since words may mean others. */
struct plumb_baseline_options {
    uint64_t seed;
    const char *arithmetic; /* that is allowed; NULL: none */
};

/* What was said of one result. The first four are its key. */
struct plumb_deviation {
    const char *call;       /* "Functional.linear.3.forward", or the name of a row */
    const char *result;     /* which of its results: "output 0"; "": the call as a whole */
    int64_t step, rank;     /* -1: not counted */
    enum plumb_word word;   /* what is allowed is PLUMB_WORD_ROUNDING */
    double worst;           /* of struct plumb_opinion */
    const char *arithmetic; /* what explains it; "": nothing */
    const char *pattern;    /* what a fault looks like; "": nothing simple */
};

struct plumb_baseline;

/* An empty one. *out is to be freed, and NULL on failure. */
enum plumb_code plumb_baseline_new(const struct plumb_baseline_options *options,
                                   struct plumb_baseline **out, struct plumb_error *err);
void plumb_baseline_free(struct plumb_baseline *baseline);

/* Texts are copied; NULL counts as "". Of two with the same key the more severe is kept. Fails only
 * when memory runs out. */
enum plumb_code plumb_baseline_add(struct plumb_baseline *baseline,
                                   const struct plumb_deviation *deviation,
                                   struct plumb_error *err);

/* Reads a file of any origin. PLUMB_E_FORMAT: it is no baseline; PLUMB_E_UNSUPPORTED: it was made
 * by another version of the verdicts, or with other options, and the message says which. */
enum plumb_code plumb_baseline_read(const char *path, const struct plumb_baseline_options *options,
                                    struct plumb_baseline **out, struct plumb_error *err);

/* Writes its deviations, one line each, sorted; the file is whole or not there. */
enum plumb_code plumb_baseline_write(const struct plumb_baseline *baseline, const char *path,
                                     struct plumb_error *err);

/* How many deviations there are. */
size_t plumb_baseline_count(const struct plumb_baseline *baseline);

enum plumb_standing {
    PLUMB_STANDING_FINE,     /* it is no deviation */
    PLUMB_STANDING_ACCEPTED, /* it is in the baseline */
    PLUMB_STANDING_NEW,      /* it is not */
    PLUMB_STANDING_WORSE,    /* a worse word, twice the excess, another pattern or arithmetic */
    PLUMB_STANDING_GONE,     /* it is in the baseline, and is no deviation now */
    PLUMB_STANDINGS
};

/* "fine", "accepted", "new", "worse", "gone". */
const char *plumb_standing_text(enum plumb_standing standing);

/* What a baseline says of one result: never GONE. */
enum plumb_standing plumb_baseline_ask(const struct plumb_baseline *accepted,
                                       const struct plumb_deviation *now);

/* One result that is not as the baseline has it. */
struct plumb_baseline_change {
    enum plumb_standing standing; /* NEW, WORSE or GONE */
    struct plumb_deviation is;    /* as it is now; GONE: as it was */
    char why[256];                /* "cheaper arithmetic before", "now rounding", "not there now" */
};

struct plumb_baseline_diff {
    uint64_t count[PLUMB_STANDINGS];
    const struct plumb_baseline_change *changes; /* new, worse, gone; each sorted by its key */
    size_t n_changes;
    void *memory;
};

/* Texts belong to the two baselines, which must outlive the diff. *out is to be freed, and NULL on
 * failure: when memory runs out. */
enum plumb_code plumb_baseline_compare(const struct plumb_baseline *accepted,
                                       const struct plumb_baseline *found,
                                       struct plumb_baseline_diff **out, struct plumb_error *err);
void plumb_baseline_diff_free(struct plumb_baseline_diff *diff);

/* "baseline: accepted: 20, new: 1, worse: 0, gone: 2", and a line for each that is named; at most
 * so many of a kind, 0: all. NULL when out of memory; to be freed with free. */
char *plumb_baseline_diff_text(const struct plumb_baseline_diff *diff, size_t most);

#ifdef __cplusplus
}
#endif
#endif
