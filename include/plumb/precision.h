/* Pre-check results of two devices against each other: api_precision_compare. */
#ifndef PLUMB_PRECISION_H
#define PLUMB_PRECISION_H

#include "plumb/expected.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_precision_options {
    const char *npu, *gpu;       /* accuracy_checking_details files, with either header language */
    const char *folder;          /* where the two files go; must be there */
    const char *rules;           /* as in struct plumb_precheck_options */
    enum plumb_deciding verdict; /* other than PLUMB_BY_RULES: both files have the columns of
                                    acc_check's second opinion, which are joined and written, too */
};

struct plumb_precision_result {
    char *details_path, *result_path; /* NULL when nothing was written */
    size_t outputs;                   /* rows compared */
    size_t apis; /* rows of the result file, by the worse of both directions: */
    size_t pass, warning, error, skip;
    size_t only_npu, only_gpu; /* rows without a partner, which are left out */
    char first_only_npu[128];  /* one of them, cut; "" when there is none */
    char first_only_gpu[128];
    uint64_t words[PLUMB_WORDS]; /* of the outputs of the device under test */
    uint64_t shared;             /* faults that the trusted device has, too */
    char judges[2][128]; /* versions and options of the opinions in both files; "" without them */
};

/* Compares and writes api_precision_compare_details_TIME.csv and
 * api_precision_compare_result_TIME.csv into the folder, both whole or none. An existing file is
 * never touched: the time is that of the next second without such files. Errors name file and line.
 *
 * Under some rules a name that is twice in the GPU file, or that a spreadsheet would run, ends the
 * comparison there: the call fails, but both files are written with what came before, and
 * the paths are set. Else such files are refused before anything is written.
 *
 * Release result with plumb_precision_free, also after a failure. Thread-safe. */
enum plumb_code plumb_precision_compare(struct plumb_precision_result *result,
                                        const struct plumb_precision_options *options,
                                        struct plumb_error *err);
void plumb_precision_free(struct plumb_precision_result *result);

#ifdef __cplusplus
}
#endif
#endif
