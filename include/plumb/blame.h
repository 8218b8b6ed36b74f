/* Blame: which calls of a run are wrong themselves, and which only pass on what came in.
 *
 * Every call whose inputs and results were recorded is computed again and judged
 * (plumb/expected.h). With a second run, what plumb cannot compute, modules above all, is judged
 * by its jump: how much further its outputs are from that run than its inputs were. */
#ifndef PLUMB_BLAME_H
#define PLUMB_BLAME_H

#include "plumb/baseline.h"
#include "plumb/expected.h"
#include "plumb/progress.h"
#include "plumb/report.h"

#ifdef __cplusplus
extern "C" {
#endif

struct plumb_blame_options {
    const char *target;         /* a dump, or anything that plumb_run_open takes */
    const char *golden;         /* another run of the same program; NULL: there is none */
    const char *const *repeats; /* runs of the same program as the target: what differs between
                                    them is its own noise */
    size_t n_repeats;
    const char *weights;     /* a file of the model's parameters by their names, for modules whose
                               own were not recorded; NULL: none */
    const char *arithmetic;  /* cheaper arithmetic that is allowed; NULL: none */
    uint64_t seed;           /* of the perturbations */
    unsigned threads;        /* 0: all processors */
    struct plumb_crew *crew; /* the processes of plumb-mpi, in there only; NULL: this one alone */
    uint64_t memory;         /* bytes that calls may take together; 0: three quarters of all */
    const struct plumb_baseline *accepted; /* deviations that do not fail; NULL: there are none */
    struct plumb_baseline *found;          /* gets what is found; NULL: not asked for */
    bool pages; /* plumb_blame_report is to have pages of the results that are wrong */
    plumb_progress_fn *progress; /* of calls, or tensors where there are none; or NULL */
    void *progress_context;
};

/* A call in one direction: "Functional.linear.3.forward". */
struct plumb_suspect {
    const char *call;
    const char *result;   /* which of its results: "output 0", "gradient 1"; "" by its jump */
    int64_t step, rank;   /* -1: not counted */
    enum plumb_word word; /* what it is */
    bool by_jump;         /* and that was seen by its jump */
    bool module;          /* a module, or a node of a graph: plumb_capsule_write knows none */
    bool unsteady;        /* rounding only since repeats of the program differ as much */
    enum plumb_standing standing; /* beside the baseline; PLUMB_STANDING_FINE without one */
    double worst;        /* excess in standard deviations, of struct plumb_opinion; or the jump */
    double limit;        /* for it; 0: there is none */
    const char *why;     /* one sentence */
    const char *pattern; /* what a fault looks like; "": nothing simple */
    const char *arithmetic;   /* what explains it; "": nothing */
    const char *equals;       /* which other tensor of the run a fault is equal to; "": none */
    const char *place;        /* of the worst element: "[0, 3]"; "": not known */
    double got, expected;     /* its two values */
    double differing;         /* share of elements that are not the correctly rounded ones */
    const char *dump;         /* the dump.json that it is in; NULL: the run has one only */
    const char *parent;       /* the module that it was called in, or NULL */
    const char *const *stack; /* lines, ended by NULL; or NULL */
    double in, out; /* largest relative distance of its inputs and outputs from the other run; NaN:
                       not known */
};

/* A difference from the other run that no recorded call makes: a parameter, a plain argument, or an
 * input that is far from the other run's when nothing before it is. */
struct plumb_source {
    const char *call;         /* that was given it */
    const char *place;        /* "input.1", "parameters.weight" */
    const char *parent;       /* the module that the call was made in, or NULL */
    const char *const *stack; /* lines, ended by NULL; or NULL */
    int64_t step, rank;       /* -1: not counted */
    double apart;             /* relative distance; NaN: of what is no tensor */
    const char *why;          /* one sentence */
};

/* An exchange through which something came to ranks that did not have it. */
struct plumb_hop {
    const char *call;  /* as the rank calls it that had it */
    int64_t from;      /* that rank */
    const int64_t *to; /* ascending */
    size_t n_to;
};

/* Something that began at one rank, though nothing of the kind could have reached it, and how it
 * went on from there. */
struct plumb_journey {
    const char *call; /* in which it began */
    int64_t step, rank;
    const char *place; /* of what is not finite: what the call was given it with, "input.1"; NULL:
                          it made it */
    const char *since; /* the call that made a NaN of an infinity; NULL: none did */
    bool nan;          /* it is a NaN, or became one */
    const struct plumb_hop *hops;
    size_t n_hops;
};

/* Tensors that all ranks of a group must have alike, and one has not. */
struct plumb_odd {
    int64_t rank;         /* the odd one; -1: nobody can say which it is */
    int64_t step;         /* of the first such tensor; -1: not counted */
    const char *name;     /* of that tensor */
    uint64_t tensors;     /* how many there are in that step */
    const int64_t *group; /* ranks that were compared */
    size_t n_group;
    double apart;    /* how far that tensor is from the others, relatively; NaN: not known */
    const char *why; /* one sentence */
    enum plumb_standing standing; /* to the baseline */
};

struct plumb_tally {
    const char *what;
    uint64_t count;
};

struct plumb_blame {
    uint64_t calls;                    /* both directions counted */
    uint64_t words[PLUMB_WORDS];       /* of them */
    uint64_t by_jump;                  /* of those that are judged: only by their jump */
    uint64_t unmatched;                /* records without a partner in the other run */
    uint64_t covered;                  /* others without one: the other run does that in other
                                          steps, or in one */
    uint64_t unreadable;               /* pairs of records that could not be compared */
    const struct plumb_tally *reasons; /* why calls are not judged, most frequent first */
    size_t n_reasons;
    const struct plumb_source *sources; /* in the order of the run; with another run only */
    size_t n_sources;
    /* What is far from the other run first, though what it was computed from is not; call NULL:
     * there is nothing. Where the call is no fault, the two were asked for different things. */
    struct plumb_source parting;
    const struct plumb_suspect *faults, *suspicious; /* worst first */
    size_t n_faults, n_suspicious;
    const struct plumb_suspect *amplifiers; /* where the difference grew most, in right calls */
    size_t n_amplifiers;
    const struct plumb_suspect
        *unsteady; /* right ones that differ between repeats of the program */
    size_t n_unsteady;
    struct plumb_baseline_diff *baseline; /* what is new, worse and gone; NULL: none was given */
    const struct plumb_tally *inherited;  /* modules with calls that only pass on, most first */
    size_t n_inherited;
    /* Of a step with several ranks: */
    uint64_t ranks;                    /* that were looked at; 0: there is one only */
    uint64_t exchanges;                /* between them */
    uint64_t replicas;                 /* tensors that several ranks have alike, or should */
    const struct plumb_journey *first; /* faults that no other fault could have led to */
    size_t n_first;
    bool followed; /* their hops were seen beside another run; else they are where they could have
                      gone at the earliest */
    const struct plumb_journey
        *not_finite; /* the first NaN; where there is none, an infinity that went to other ranks */
    size_t n_not_finite;
    const struct plumb_odd *odd; /* ranks that are not as the others of their group */
    size_t n_odd;
    struct plumb_suspect
        largest;       /* the result that is furthest from the other run; call NULL: none */
    double rounding;   /* how far the rounding of its type would put it */
    const char *since; /* the last call before it that is no further off than that; or NULL */
    void *memory;
};

/* Looks at a run. Single bad files cost their calls, which are counted as not judged. *out is to be
 * freed, and NULL on failure: a target that is unusable as a whole. */
enum plumb_code plumb_blame_run(const struct plumb_blame_options *options, struct plumb_blame **out,
                                struct plumb_error *err);
void plumb_blame_free(struct plumb_blame *blame);

/* The report for people, lines of at most width columns where words allow it, and for programs
 * (JSON). NULL when out of memory; to be freed with free. options are those it was made with. */
char *plumb_blame_text(const struct plumb_blame *blame, const struct plumb_blame_options *options,
                       unsigned width);
char *plumb_blame_json(const struct plumb_blame *blame, const struct plumb_blame_options *options);

/* All calls in the order of the run, a row each, with what is to be said of them. NULL when out of
 * memory. */
struct plumb_table *plumb_blame_table(const struct plumb_blame *blame);

/* JUnit XML: a case for each call, that fails when it is a fault, or where there is a baseline, new
 * or worse; calls that were not judged are skipped. seconds: that it took. The caller frees it.
 * NULL when out of memory. */
char *plumb_blame_junit(const struct plumb_blame *blame, double seconds);

/* Tells a report all that is known. */
enum plumb_code plumb_blame_report(struct plumb_report *report, const struct plumb_blame *blame,
                                   const struct plumb_blame_options *options,
                                   struct plumb_error *err);

/* Writes a call alone into a new folder: a dump.json tree of its own, with the tensors that it
 * names and where it was called from, which every command takes that takes a dump. call is a
 * name as in the dump, with or without direction. PLUMB_E_ARG: there is no such call, or
 * several, in different steps and ranks (the message names them); PLUMB_E_IO: the folder exists,
 * or cannot be written. *said (said may be NULL) becomes what is to be said of the call, a line
 * per direction, to be freed with free. */
enum plumb_code plumb_capsule_write(const char *target, const char *call, const char *folder,
                                    char **said, struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
