/* Who was first: the operator that made the first NaN or infinity, or the first difference, across
 * ranks that talk to each other. Both read dump.json trees: a step folder with rank folders (or one
 * proc folder) below it, a folder with a dump.json, or that file. */
#ifndef PLUMB_RANKS_H
#define PLUMB_RANKS_H

#include "plumb/general.h"
#include "plumb/profile.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_phase {
    PLUMB_PHASE_CLEAN, /* nothing was found */
    PLUMB_PHASE_BEFORE_COMMUNICATION,
    PLUMB_PHASE_COMMUNICATION,
    PLUMB_PHASE_AFTER_COMMUNICATION,
};

struct plumb_crew; /* the processes of plumb-mpi, in there only */

struct plumb_analyze_options {
    const struct plumb_profile *rules; /* where to look, and for what; NULL: plumb's own */
    const char *folder;                /* for compare_result files; NULL: none are written */
    const struct plumb_general_options *pairing; /* of rows of the two sides; NULL: equal names */
    struct plumb_crew *crew;     /* of overflow_check; NULL: this process does all */
    plumb_progress_fn *progress; /* of ranks; NULL: none */
    void *progress_context;
};

/* Fully zeroed it is empty. */
struct plumb_analysis {
    enum plumb_phase phase;
    struct plumb_table *table; /* the nodes that were found, a row an output */
    size_t found;              /* nodes */
    size_t ranks, nodes;       /* that were looked at */
    size_t incomplete;         /* ranks of which some or all could not be read, or tells nothing */
    char *report;              /* JSON; NULL when nothing was found */
    char *notes;               /* what was odd about the files, a line each; NULL: nothing */
    char *travelled;           /* of a NaN or infinity that went to other ranks: where it began and
                                  through which exchanges, a line each; NULL: none did */
    bool given;                /* the nodes that were found made nothing, but were given a NaN */
    char *written;             /* paths of files that were written, a line each; NULL: none */
};

/* The nodes that get no NaN or infinity but make one, the first of them. Columns: Rank, Node,
 * Output, Max, Min. A rank that cannot be read is a note; PLUMB_E_... when none can. */
enum plumb_code plumb_overflow_check(struct plumb_analysis *out, const char *path,
                                     const struct plumb_analyze_options *options,
                                     struct plumb_error *err);

/* The nodes whose recorded outputs differ by more than half, or have another checksum, the first of
 * them. Columns: Rank, Node, Output, Difference. With a folder, every pair of ranks leaves a
 * compare_result_{rank}_{time}.json there, which is never written over. */
enum plumb_code plumb_diff_analyze(struct plumb_analysis *out, const char *target_path,
                                   const char *golden_path,
                                   const struct plumb_analyze_options *options,
                                   struct plumb_error *err);

/* Writes the report as FOLDER/PREFIX_{ns}.json, and that path, which the caller frees, to *path.
 * PLUMB_E_ARG when there is no report. */
enum plumb_code plumb_analysis_save(const struct plumb_analysis *analysis, const char *folder,
                                    const char *prefix, char **path, struct plumb_error *err);

void plumb_analysis_free(struct plumb_analysis *analysis);

#ifdef __cplusplus
}
#endif
#endif
