/* A call on its way through the check: what the files work*.c share. */
#ifndef PRECHECK_WORK_PARTS_H
#define PRECHECK_WORK_PARTS_H

#include "task/precheck/work.h"

/* Draws that were made once, to be made again. */
struct replay {
    const struct plumb_draws *source;
    uint32_t *values;
    size_t n, room, next;
    struct arena *arena;
};

struct work {
    const struct work_shared *shared;
    struct plumb_device *device;
    const struct work_room *room;
    struct generate_options inputs;
    struct arena *arena;  /* of the rows, which outlive the work */
    struct arena scratch; /* of the arguments */
    struct check_case from;
    struct plumb_call call;   /* as the device gets it */
    struct plumb_call raised; /* as the reference gets it */
    struct plumb_result bench, actual;
    const struct precheck_profile *profile;
    bool fp8_input, complex_input;
    bool by_fallback;        /* the reference: plumb cannot run the call itself */
    const char *no_backward; /* why there is none although one was recorded, or NULL */
    const char *note;        /* what is to be said of every row besides, or NULL */
    const char *fault;       /* why the first output is an error whatever its values are, or NULL */
    const struct plumb_draws *source;
    struct replay replays[2];    /* of the two sides */
    struct plumb_draws draws[2]; /* from them */
    struct details_row *rows;
    size_t n_rows, max_rows;
    struct plumb_expected *expected; /* of second opinions; made when the first is asked for */
    bool ties;                       /* some of its decisions were settled */
};

enum plumb_code work_no_memory(struct plumb_error *err);

/* Whether some tensor of the call is to get a gradient. */
bool work_wants_grad(const struct plumb_call *call);

/* Runs the reference, again if need be. */
enum plumb_code work_run_reference(struct work *w, struct plumb_error *err);

/* A new row, blank, for output k of "forward" or "backward"; NULL when out of memory. */
struct details_row *work_add_row(struct work *w, const char *direction, size_t k);

/* A row for output k that says why there is nothing to judge. */
enum plumb_code work_skip_row(struct work *w, const char *direction, size_t k, const char *why,
                              struct plumb_error *err);

/* What is left of the call's memory, in bytes. */
size_t work_memory_left(const struct work *w);

/* Fills the second opinion of a row, where such are asked for. */
enum plumb_code work_opine(struct work *w, enum plumb_expected_part part, size_t k,
                           const struct plumb_arg *got, struct details_row *row,
                           struct plumb_error *err);

/* The same when there is nothing to judge; and the worst of the rows, for the call. */
void work_no_opinion(const struct work *w, const char *why, struct details_row *row);
void work_worst_opinion(const struct work *w, struct journal_entry *out);

/* Judges what both sides gave: rows, statuses and message of the result. */
enum plumb_code work_compare(struct work *w, struct journal_entry *out, struct plumb_error *err);

/* The same for operators that drop elements at random. */
enum plumb_code work_compare_dropout(struct work *w, struct journal_entry *out,
                                     struct plumb_error *err);

#endif
