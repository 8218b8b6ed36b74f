/* All recorded calls of a run, each judged by what it made of its own inputs. */
#ifndef VERDICT_CALLS_H
#define VERDICT_CALLS_H

#include "plumb/progress.h"
#include "plumb/run.h"
#include "verdict/local.h"

/* Judges job number i in so many bytes. False: it needs more, and is to come again; last: there is
 * no more. */
typedef bool calls_job(void *context, size_t i, uint64_t memory, bool last);

/* Runs jobs on threads, each with its part of the memory; those that need more come again one at a
 * time, with all of it. threads, memory: 0 is the default. */
void calls_pool(unsigned threads, uint64_t memory, size_t count, calls_job *job, void *context);

/* Why a job that came last is not judged. */
extern const char calls_too_large[];

struct judged_call;
struct plumb_crew;

/* Told of a call whose verdicts were just found, by the thread that found them; expected has the
 * reference. */
typedef void calls_watch(void *context, const struct judged_call *call,
                         struct plumb_expected *expected, const struct known_call *known);

struct calls_options {
    struct plumb_crew *crew;       /* processes that share the work; NULL: this one alone */
    const struct repeats *repeats; /* of the same program; NULL: none */
    const char *arithmetic;        /* cheaper arithmetic that is allowed; NULL: none */
    uint64_t seed;                 /* of the perturbations */
    unsigned threads;              /* 0: all processors */
    uint64_t memory;             /* bytes that calls may take together; 0: three quarters of all */
    const int64_t *rank;         /* only of this one; NULL: of all */
    plumb_progress_fn *progress; /* of calls; NULL: none */
    void *progress_context;
    calls_watch *watch; /* or NULL */
    void *watch_context;
};

struct judged_call {
    size_t dump, number; /* which dump.json of the run, and which call in there */
    int64_t step, rank;  /* -1: not counted */
    const char *name;    /* "Functional.linear.0", or an operator's "00004-aten" */
    struct local_verdict verdicts[LOCAL_DIRECTIONS];
    struct arena arena; /* of their texts */
};

struct judged_calls {
    struct judged_call *list; /* in the order of the run */
    size_t count;
    struct judged_dump {
        int64_t step, rank;
        const char *path;
        const char *unreadable; /* why its calls cannot be read; NULL: they can */
        struct case_file *file;
    } * dumps;
    size_t n_dumps;
    struct arena arena;
};

/* Judges all calls of the dumps of a run on several threads; a run that is no dump has none.
 * Damage to a dump or a call is a text or a verdict here; fails when memory runs out. calls_free
 * in any case. */
enum plumb_code calls_judge(struct judged_calls *calls, const struct plumb_run *run,
                            const struct calls_options *options, struct plumb_error *err);
void calls_free(struct judged_calls *calls);

/* The relative distance that rounding to a type makes between two right results that are sums of so
 * many numbers. */
double calls_floor(enum plumb_dtype dtype, int64_t terms);

#endif
