/* One output of a call against its reference: the cells of a details row, and a verdict. */
#ifndef VERDICT_PRECHECK_H
#define VERDICT_PRECHECK_H

#include "base/arena.h"
#include "plumb/expected.h"
#include "verdict/ladder_limits.h"

enum check_status { STATUS_PASS, STATUS_WARNING, STATUS_ERROR, STATUS_SKIP, STATUS_BLANK };

const char *
check_status_text(enum check_status status); /* "pass", "warning", "error", "SKIP", " " */

/* The columns of a details row between "Shape" and "Status", in file order. */
enum details_cell {
    CELL_COSINE,
    CELL_MAX_ABS,
    CELL_DUAL_100,
    CELL_DUAL_1000,
    CELL_DUAL_10000,
    CELL_BINARY,
    CELL_BALANCE,
    CELL_RMSE,
    CELL_SMALL,
    CELL_MAX_REL,
    CELL_MEAN_REL,
    CELL_INF_NAN,
    CELL_REL_RATE,
    CELL_ABS_RATE,
    CELL_ULP_MAX,
    CELL_ULP_MEAN,
    CELL_ULP_RATE,
    CELL_COUNT
};

struct details_row {
    const char *name; /* "Torch.cat.0.forward.output.0"; set by the caller */
    const char *bench_dtype, *device_dtype, *shape;
    const char *cell[CELL_COUNT]; /* " " where there is nothing to say */
    enum check_status status;
    const char *message;
    const char *verdict, *why; /* the second opinion (plumb/expected.h); NULL: none was asked for */
    const char *judged_by;     /* its version and options */
    enum plumb_word word;
    bool allowed; /* cheaper arithmetic that the user allows */
    double worst; /* of struct plumb_opinion */
    const char *arithmetic, *pattern;
};

struct judge_options {
    const struct standard_set *rules;
    unsigned precision;           /* decimals of a float64: 14 */
    const char *const *quantized; /* usually standard_quantized; NULL: none */
    bool gradient;                /* the outputs are gradients; see standard_adds_gradients() */
    bool complex_input;           /* some input was complex; see standard_rounds_complex() */
};

/* Compares one output. api is the bare name ("matmul"). Texts live in the arena. fp8_input: some
 * input of the call was an 8-bit float. Never fails but for memory (PLUMB_E_NOMEM): what cannot be
 * compared is an error or SKIP row that says why. */
enum plumb_code judge_output(const struct judge_options *options, const char *api, bool fp8_input,
                             const struct plumb_arg *bench, const struct plumb_arg *device,
                             struct arena *arena, struct details_row *row);

/* The API's status from its rows: how errors and warnings add up is the profile's. SKIP rows count
 * as pass; no rows give STATUS_BLANK. */
enum check_status judge_rows(const struct precheck_profile *profile, const struct details_row *rows,
                             size_t n);

/* dropout: the share of zeros decides; there are no metrics. */
enum check_status judge_dropout(const struct standard_set *rules, const struct plumb_arg *bench,
                                const struct plumb_arg *device);

#endif
