/* Keeping dumps small: each file of tensors in a folder is replaced by what a comparison in
 * statistics mode needs of it, a small file NAME.condensed.json beside where NAME was.
 *
 * Nothing is lost to a kill, a crash or a full disk: an original is removed only after its
 * condensed form is on the disk. Nothing is taken from a writer: a file counts as complete when
 * nobody has it open for writing and it has not changed for a while. What cannot be read as a whole
 * is left alone, and so is what would not become smaller. */
#ifndef PLUMB_CONDENSE_H
#define PLUMB_CONDENSE_H

#include "plumb/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is kept of a tensor, besides type, shape, and how many of its values are not finite.
 * Statistics of complex numbers are those of their sizes; an empty tensor has none. */
enum plumb_keep {
    PLUMB_KEEP_MINMAX = 1 << 0,
    PLUMB_KEEP_MEAN = 1 << 1, /* and the sample deviation */
    PLUMB_KEEP_NORM = 1 << 2,
    PLUMB_KEEP_CRC32 = 1 << 3,  /* of the elements in C order and native byte order */
    PLUMB_KEEP_SKETCH = 1 << 4, /* struct plumb_sketch */
    PLUMB_KEEP_HASH = 1 << 5,   /* 128 bits of the same bytes */
    PLUMB_KEEP_ALL = (1 << 6) - 1,
};

/* "minmax,mean,norm,crc32,hash,sketch", any of them in any order. PLUMB_E_ARG names what is
 * none. */
enum plumb_code plumb_keep_parse(unsigned *keep, const char *text, struct plumb_error *err);

enum plumb_condense_outcome {
    PLUMB_CONDENSE_DONE,      /* replaced; in a dry run: would be */
    PLUMB_CONDENSE_FAILED,    /* left alone: error says why */
    PLUMB_CONDENSE_UNREMOVED, /* condensed, but the original could not be removed */
};

struct plumb_condense_event {
    enum plumb_condense_outcome outcome;
    const char *path; /* inside the folder */
    size_t tensors;
    uint64_t before, after;          /* bytes */
    const struct plumb_error *error; /* NULL when done */
};

struct plumb_crew; /* the processes of plumb-mpi, in there only */

struct plumb_condense_options {
    unsigned keep;     /* of enum plumb_keep; 0: all */
    bool watch;        /* go on until told to stop, or until idle */
    double until_idle; /* with watch: end after so many seconds without a change; 0: never */
    double settle;     /* a file is left alone until it was unchanged for so many seconds; 0: 1 */
    bool dry_run;      /* measure everything, change nothing */
    unsigned threads;  /* files at once; 0: as many as there are processors */
    struct plumb_crew *crew; /* NULL: this process does all */

    /* All may be NULL. Called from one thread at a time. */
    void (*event)(void *context, const struct plumb_condense_event *event);
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes of the files at hand */
    bool (*stop)(void *context); /* true: finish the files at hand and return */
    void *context;
};

struct plumb_condensed {
    size_t files, tensors;  /* condensed */
    uint64_t before, after; /* bytes of these files, and of what they became */
    size_t failed;          /* left alone because of an error, or not removed */
    size_t waiting;         /* left alone because they are open for writing or still change */
    size_t small;           /* left alone because condensed they would take as much room, or more */
    size_t other;           /* not tensors */
    bool stopped;           /* by `stop`, before the end */
};

/* Condenses the files below folder. Trouble with single files is told to `event` and counted; the
 * call fails only when the folder cannot be read or another plumb is condensing it. result is
 * filled in any case. */
enum plumb_code plumb_condense(struct plumb_condensed *result, const char *folder,
                               const struct plumb_condense_options *options,
                               struct plumb_error *err);

#ifdef __cplusplus
}
#endif
#endif
