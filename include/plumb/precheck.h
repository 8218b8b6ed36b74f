/* The pre-check: every operator of a dump run on a device and on the reference, and judged. */
#ifndef PLUMB_PRECHECK_H
#define PLUMB_PRECHECK_H

#include "plumb/baseline.h"
#include "plumb/device.h"
#include "plumb/expected.h"

#ifdef __cplusplus
extern "C" {
#endif

enum plumb_precheck_inputs { PLUMB_INPUTS_UNIFORM, PLUMB_INPUTS_NORMAL, PLUMB_INPUTS_ADVERSARIAL };

/* How far a check is; names are valid during the call only. */
struct plumb_precheck_progress {
    uint64_t done, total;           /* APIs, those that an earlier run finished not counted */
    const char *name;               /* the API whose rows were just written */
    const char *forward, *backward; /* its statuses */
    const char *verdict, *why;      /* the worst second opinion of its results; NULL: not asked */
    enum plumb_word word;
};

struct plumb_precheck_options {
    const char *dump;   /* dump.json */
    const char *folder; /* where results go; made when it is missing; NULL: the current one */
    const char *resume; /* an accuracy_checking_result_TIME.csv to go on with, or NULL */
    const char *config; /* config.json or config.yaml, or NULL */
    const char *rules;  /* "documented" (NULL too), the other that `plumb standard` lists with it,
                           or the path of a file of rules */
    enum plumb_deciding verdict; /* only with rules that let columns be added */
    const char *arithmetic;      /* cheaper arithmetic that is allowed, of plumb_expected_options */
    struct plumb_baseline *found; /* gets the second opinion about every row, by its name in the
                                     details; not of what an earlier run finished. NULL: not asked
                                     for */
    enum plumb_precheck_inputs inputs;
    const char *rng; /* of the inputs: "counter" (NULL too), or the name of rules that have one
                        generator of their own, which means one thread, in file order */
    uint64_t seed;
    bool filter;                         /* leave out calls that repeat an earlier one */
    bool save_error_data;                /* keep inputs and outputs of what does not pass */
    struct plumb_device *const *devices; /* work is spread over them */
    size_t n_devices;
    struct plumb_device *fallback; /* for calls that plumb has no operator for, or not with such
                                      arguments (complex numbers): their reference, by run_raised.
                                      NULL: such calls are skipped. Nothing of what is checked may
                                      run on it, or faults would judge themselves */
    struct plumb_device *stand_in; /* runs such calls in place of devices that are plumb's own, with
                                      the user's operators; NULL: fallback, there are none */
    unsigned threads;              /* 0: all processors */
    struct plumb_crew *crew; /* the processes of plumb-mpi, in there only; NULL: this one alone.
                                      With its own generator, or saved data, this one alone too */
    struct plumb_helping *helping; /* the same: this process writes nothing and does calls for the
                                      first one; NULL: it does not */
    uint64_t memory; /* bytes that the calls may take, all threads together; 0: three quarters of
                        what the machine, or the container, has. A call that needs more than its
                        thread's part runs alone; one that needs more than all is skipped */

    /* Optional: called once an API, never by two threads at once. Returning false stops the check
     * after what is written; it can be resumed. */
    bool (*progress)(void *context, const struct plumb_precheck_progress *progress);

    /* Optional: told, before anything is run, what is no error and may be a mistake, and which call
     * is skipped because the run to be resumed was killed by it. */
    void (*note)(void *context, const char *text);
    void *context; /* of both */
};

enum plumb_precheck_status {
    PLUMB_PRECHECK_PASS,
    PLUMB_PRECHECK_WARNING,
    PLUMB_PRECHECK_ERROR,
    PLUMB_PRECHECK_SKIP,
    PLUMB_PRECHECK_STATUSES
};

struct plumb_precheck_summary {
    uint64_t apis[PLUMB_PRECHECK_STATUSES]; /* by the worse of forward and backward; skip: not run;
                                            those of an earlier run included */
    uint64_t
        words[PLUMB_WORDS]; /* APIs by their worst second opinion, where those were asked for */
    uint64_t no_backward; /* of those that ran: a backward was recorded and could not be checked */
    uint64_t resumed;     /* APIs that an earlier run had finished */
    uint64_t repeated;    /* left out by the filter */
    bool stopped;         /* by the progress function */
    char result[4096], details[4096]; /* paths of the two tables; empty when there are none */
    char error_data[4096];            /* folder of saved data; empty when nothing was saved */
};

/* Runs the check. Rows stand in the tables in the order of the dump, whatever the number of
 * threads; a details row is written before the result row of its API, and an API that was not
 * finished leaves nothing that a resumed run would not redo. Fails only for what concerns the whole
 * run: an unusable dump, configuration or folder, a full disk. */
enum plumb_code plumb_precheck_run(const struct plumb_precheck_options *options,
                                   struct plumb_precheck_summary *summary, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
