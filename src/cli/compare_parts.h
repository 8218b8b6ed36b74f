/* The parts of the command compare, between its files. */
#ifndef CLI_COMPARE_PARTS_H
#define CLI_COMPARE_PARTS_H

#include "cli/baseline.h"
#include "cli/compare_options.h"
#include "crew/crew.h"
#include "plumb/compare.h"

/* What was found, over all ranks. */
struct found {
    size_t bad;    /* rows that fail by what decides */
    size_t broken; /* by the documented rules, where these do */
    size_t judged; /* results with a second opinion */
    struct cli_baseline baseline;
};

struct seen;
struct unit;

/* Which words are which, once the options have had their say. */
struct sides {
    const char *target, *golden, *result;
    bool as_options;         /* paths given as options: a result file is expected */
    const struct unit *unit; /* a rank that this process compares while others compare others */
};

/* Opens both sides, of one rank or of all (NULL). Free them in any case. */
enum plumb_code compare_open(struct plumb_run *runs[2], const struct sides *sides,
                             const int64_t *rank, struct plumb_error *err);

/* Compares by the options of the library. */
typedef enum plumb_code compare_fn(void *context, struct plumb_comparison *comparison,
                                   struct plumb_compare_options *options, struct plumb_error *err);

/* Calls it with what the command's options say; rank NULL: all of them, report may be NULL. */
enum plumb_code compare_with(compare_fn *compare, void *context,
                             struct plumb_comparison *comparison,
                             const struct compare_options *options, const struct sides *sides,
                             const int64_t *rank, const struct found *found,
                             struct plumb_report *report, struct plumb_error *err);

/* Compares two runs as the options say. */
enum plumb_code compare_two(struct plumb_comparison *comparison,
                            const struct compare_options *options, const struct sides *sides,
                            struct plumb_run *const runs[2], const int64_t *rank,
                            const struct found *found, struct plumb_report *report,
                            struct plumb_error *err);

/* ---- What the options say -------------------------------------------------------------------- */

/* The columns of a profile; NULL: plumb's own. */
const struct plumb_profile *compare_columns(const struct compare_options *options);

/* Does the table go to a file? */
bool compare_to_file(const struct compare_options *options, const struct sides *sides);

/* Who asks for certain rows, or for an order of them, gets the table. */
bool compare_may_digest(const struct compare_options *options);

/* Assignments for the standard, in the arena; NULL when out of memory. */
const char **compare_settings(const struct compare_options *options, struct arena *arena,
                              size_t *count);
uint64_t compare_seed(const struct compare_options *options);
bool compare_wants_shards(const struct compare_options *options);

extern const char *const compare_verdict_words[]; /* by enum plumb_deciding */

/* CLI_OK, or what cli_usage returned for options that do not go together or would be listened to by
 * nobody (compare_checks.c). */
int compare_check_verdict(const struct compare_options *options);
int compare_check_junit(const struct compare_options *options);
int compare_refuse_profile(const struct compare_options *options);
int compare_refuse_graphs(const struct compare_options *options);

/* ---- Comparing ------------------------------------------------------------------------------- */

/* PLUMB_E_ARG for what only the comparison of one step under the rules of a profile can do. */
enum plumb_code compare_check_dumps(const struct compare_options *options, struct plumb_error *err);

/* All of it, and shows or writes the table. Of a rank that neither side has a tensor of there is
 * no table. */
enum plumb_code compare_opened(const struct compare_options *options, const struct sides *sides,
                               const int64_t *rank, struct found *found, struct plumb_error *err);

/* Both dumps in one table, one rank after the other (compare_stream.c). *done stays false,
 * without an error, when only a look at all of them together can tell. */
enum plumb_code compare_stream(const struct compare_options *options, const struct sides *sides,
                               struct found *found, bool *done, struct plumb_error *err);

/* Both runs in one table, or in one for each rank (compare_runs.c). */
enum plumb_code compare_runs(const struct compare_options *options, const struct sides *sides,
                             struct found *found, struct plumb_error *err);

/* "compare_result_rank3": what the file of a rank is called before the time. */
const char *compare_stem(const int64_t *rank, char *stem, size_t size);

/* Compares ranks with the processes of cli_crew, a table for each, where they are
 * (compare_ranks.c). */
enum plumb_code compare_ranks(const struct compare_options *options, const struct sides *sides,
                              const struct seen *seen, struct found *found,
                              struct plumb_error *err);

/* Another process than the first: it knows its words, and does what it is asked for. Returns the
 * exit code. */
int compare_help(const struct compare_options *options, const struct sides *sides);

#endif
