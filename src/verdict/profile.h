/* How the pre-check and api_precision_compare go about it: which calls, with which values, run and
 * judged how, and the dialect of their files. A command chooses one profile and hands it on; what
 * it comes to is asked here, member by member, never whose profile it is.
 *
 * All members are data or pure functions, so many threads may use a profile. Where a function may
 * be NULL, its comment says what that means. */
#ifndef VERDICT_PROFILE_H
#define VERDICT_PROFILE_H

#include "exec/values/values.h"
#include "verdict/precheck_parts.h"
#include "verdict/precision.h"

enum select_outcome {
    SELECT_RUN,
    SELECT_SKIP,    /* not checked: a row that says why */
    SELECT_REFUSED, /* the same, found out when the inputs are made already */
    SELECT_UNRUN,   /* counts as passed without being run, inputs made or not */
    SELECT_ABORT,   /* the run ends here */
};

/* Which calls are checked. */
struct precheck_selecting {
    /* Whether a name may be on the white_list and the black_list; NULL: any may. */
    bool (*knows)(const char *api);
    /* What becomes of a call that no list excludes, with the reason unless it runs; NULL: all run.
     * "Torch" and "linalg.inv" of "Torch.linalg.inv.0". */
    enum select_outcome (*choose)(struct csv_cell prefix, struct csv_cell api, const char **reason);
    enum select_outcome formula; /* what becomes of a name that a spreadsheet would run */
    bool repeats_by_objects;     /* -f: see task/precheck/filter.h */
};

/* How a call is run on both sides. */
struct precheck_running {
    bool widened;         /* the reference gets widened arguments and computes in their types; else
                             what was recorded, in plumb's raised precision */
    bool benchmark_forms; /* of struct plumb_call */
    bool first_gradient;  /* the backward gets the first of the recorded gradients only, and there
                             must be something to take it; else all of them */
    bool all_or_nothing;  /* a backward that cannot be run costs the call; else only itself */
    /* Why an API has no backward, or NULL; asked even where none was recorded. NULL: nothing to
     * say. */
    const char *(*no_backward)(const char *api);
    bool (*tuple_has_backward)(const char *api); /* of several results; NULL: always */
};

/* What of a call is compared, besides its outputs and gradients one by one. */
struct precheck_comparing {
    bool outputs_only; /* no more than these, as they came, and no gradients of keywords; else also
                          types, ties, the signs of vectors, what is left over and what was written
                          into arguments */
    bool needs_all_outputs; /* a device that returns fewer results than the reference is skipped */
    size_t (*n_compared)(const char *api, size_t n_outputs); /* the first ones; NULL: all */
    bool dropout_by_zeros; /* dropout: the shares of zeros alone, and no rows */
    bool skip_speaks;      /* a skipped backward gives the message whatever the forward was */
};

/* The kinds of outputs that can be compared with their like. */
enum type_class { CLASS_NONE, CLASS_FLOAT, CLASS_BOOL, CLASS_INT, CLASS_COMPLEX };

/* How an output is judged. */
struct precheck_judging {
    /* Sets status and message of a pair that needs no comparison; NULL: there are none. */
    bool (*settle)(const struct judge_options *options, const struct plumb_arg *bench,
                   const struct plumb_arg *device, struct details_row *row);
    bool (*equal_floats)(double bench, double device); /* Python's numbers */
    /* The binary consistency of two such values, as text. */
    const char *(*scalar_cell)(const struct judge_options *options, bool equal,
                               struct arena *arena);
    enum type_class (*class_of)(enum plumb_dtype dtype);
    enum plumb_code (*floats)(const struct judge_pair *pair); /* and complex numbers */
    /* Integers that may differ by one; rate is their binary consistency. */
    void (*quantized)(const struct judge_pair *pair, const struct plumb_metrics *metrics,
                      const char *rate);
    enum check_status (*combine)(enum check_status so_far, enum check_status next);
    bool floats_by_benchmark; /* ordinary floats are held to the benchmark standard, whatever the
                                 lists say */
    int (*compare_level)(const char *a, const char *b); /* names on the lists of levels */
};

/* The text of the files that are written, and of those that are read back. */
struct precheck_dialect {
    const char *mark;             /* before everything */
    const char *end;              /* of a row */
    const char *blank;            /* what api_precision_compare puts where there is nothing */
    bool guards_formulas;         /* names that a spreadsheet would run get an apostrophe */
    bool message_if_skipped;      /* the fourth cell of a result row; else always */
    const char *const *details;   /* titles of accuracy_checking_details: CELL_COUNT and 6 more */
    const char *const *columns;   /* those that are read back, by enum precision_column */
    const char *const *fields;    /* titles of api_precision_compare_details */
    const char *const *results;   /* the four of api_precision_compare_result */
    const char *const *standards; /* names of standards there */
};

/* How two details files are read and compared. */
struct precision_profile {
    bool typed_columns; /* files in the own dialect are read with the types of whole columns, and
                           files of either may have short rows, any names, and names twice */
    bool needs_status;  /* the column has to be there */
    bool any_direction; /* of a name: not only forward and backward */
    bool by_stretch;    /* an API ends where another begins, and what cannot be evaluated is written
                           at once; else an API's outputs belong together wherever they stand */
    bool stop_keeps;    /* a name that ends the comparison leaves what came before it */
    bool sums_gradients; /* gradients that are sums are not held to equality */
    bool blank_is_zero;  /* in the ratios of the benchmark standard; else such a one is left out */
    bool copies_rate;    /* the binary consistency is shown as it was read */
    bool thousandth_reached; /* a dual-1000 share that is just the limit passes */
    void (*judge)(const struct metrics *metrics, const struct route *route, struct judged *judged);
    bool (*unsupported)(struct csv_cell dtype); /* a type that makes its API a SKIP; NULL: none */
    /* What is said of an API in place of its message, or NULL. NULL: nothing. */
    const char *(*remark)(struct csv_cell api, enum verdict forward);
};

struct precheck_profile {
    const char *name; /* for --rules, and as the base of a file of rules */
    const struct standard_set *standards;
    const struct value_profile *values;
    const struct precheck_selecting *select;
    const struct precheck_running *run;
    const struct precheck_comparing *compare;
    const struct precheck_judging *judge;
    const struct precheck_dialect *files;
    const struct precision_profile *precision;
};

/* What the documentation of plumb says; and the parts of it that have files of their own. */
extern const struct precheck_profile profile_documented;
extern const struct precheck_judging judging_documented;
extern const struct precheck_dialect dialect_documented;
extern const struct precision_profile precision_documented;

/* The one of that name in a list that ends with NULL, or NULL; a NULL name means the first. */
const struct precheck_profile *profile_named(const struct precheck_profile *const *profiles,
                                             const char *name);

#endif
