/* Ranks of two dumps that several processes compare, a table each: whoever gets a rank lists it,
 * pairs it and compares it, so no process holds more than one. Process 0 writes the tables in the
 * order of the ranks. */
#ifndef CLI_COMPARE_UNITS_H
#define CLI_COMPARE_UNITS_H

#include "base/buf.h"
#include "run/run.h"
#include "run/seen.h"

/* A rank of two dumps. */
struct unit {
    int64_t rank;
    struct run_part side[2]; /* target and golden */
    bool whole;              /* process 0 does not see it, and cannot share it tensor by tensor */
};

/* What came of a rank. */
struct unit_result {
    const char *missing; /* it could not be compared, and the others are; why */
    bool none;           /* neither side has a tensor of it */
    bool
        large; /* it is too large for one process: it has to be compared by all, tensor by tensor */
    size_t unreadable;          /* pairs; another host may see their files */
    size_t bad, broken, judged; /* of struct found */
    size_t rows;
    const char *mapping, *closing; /* of struct plumb_comparison, or NULL */
    const void *table;             /* the file, as bytes */
    size_t table_size;
};

struct units {
    const struct seen *seen; /* process 0: target and golden */
    void *context;
    /* Compares a rank in this process. Texts and bytes live in the arena. One at a time. */
    enum plumb_code (*compare)(void *context, const struct unit *unit, struct unit_result *out,
                               struct arena *arena, struct plumb_error *err);
    /* Process 0: writes what came of a rank, in the order of the ranks. */
    enum plumb_code (*deliver)(void *context, int64_t rank, const struct unit_result *result,
                               struct plumb_error *err);
    void (*progress)(void *context, size_t done);
};

/* Compares all, each on a host that has it. Those that are too large are left to `finish`, which
 * compares and delivers one with all processes; that is called after the loop, and what comes
 * behind them waits. */
enum plumb_code units_run(struct plumb_crew *crew, const struct units *units,
                          enum plumb_code (*finish)(void *context, int64_t rank,
                                                    struct plumb_error *err),
                          struct plumb_error *err);

/* Another process: the handler for it, which keeps units. */
struct crew_handler units_handler(const struct units *units);

#endif
