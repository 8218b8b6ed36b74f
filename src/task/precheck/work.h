/* One call of the dump, from its entry to its rows. */
#ifndef PRECHECK_WORK_H
#define PRECHECK_WORK_H

#include "dump/call.h"
#include "exec/values/values.h"
#include "plumb/device.h"
#include "task/precheck/journal.h"
#include "task/precheck/running.h"
#include "task/precheck/select.h"

/* What all calls of a run share. */
struct work_shared {
    const struct case_file *file;
    const struct selector *selector;
    struct generate_options inputs;
    struct judge_options judge;
    const char *error_data;        /* folder for what does not pass; NULL: nothing is saved */
    struct plumb_device *fallback; /* for calls that plumb cannot run itself, or NULL */
    struct plumb_device *stand_in; /* for such calls in place of plumb's own device, or NULL */
    const struct running *running;
    const char *judged_by;  /* version and options of second opinions; NULL: there are none */
    const char *arithmetic; /* what they allow */
};

/* What one call may take. */
struct work_room {
    uint64_t memory; /* bytes */
    bool all;        /* there is no more: a call that needs more is skipped */
    unsigned thread; /* that runs it */
};

/* Checks call i on the device. Everything in out lives in the arena. What goes wrong with the call
 * becomes a SKIP row that says so. PLUMB_E_NOMEM: the call needs more memory than this, and can be
 * tried again with all there is. Other errors end the run: no room for error data, and a name that
 * stops it where the profile has such. */
enum plumb_code work_case(const struct work_shared *shared, size_t i, struct plumb_device *device,
                          const struct work_room *room, struct arena *arena,
                          struct journal_entry *out, struct plumb_error *err);

/* The rows of call i when it is not to be run. */
enum plumb_code work_refuse(const struct work_shared *shared, size_t i, const char *why,
                            struct arena *arena, struct journal_entry *out,
                            struct plumb_error *err);

#endif
