/* Condensing files by several processes. */
#ifndef CONDENSE_SPREAD_H
#define CONDENSE_SPREAD_H

#include "crew/crew.h"
#include "task/condense/file.h"
#include "task/condense/scan.h"

/* Files to condense, and what became of them. */
struct spread_files {
    const char *const *paths; /* complete */
    const uint64_t *sizes;
    const struct scan_file *const
        *files; /* the same, where they are; NULL: whoever asks has them */
    const struct crew_hosts *hosts;
    size_t count;
    unsigned keep;
    bool dry_run;
    struct file_result *results; /* FILE_BUSY for those that `stop` came before */
    bool (*stop)(void *context);
    void (*progress)(void *context, uint64_t bytes); /* of one that is finished */
    void *context;
};

enum plumb_code spread_condense(struct plumb_crew *crew, const struct spread_files *files,
                                struct plumb_error *err);

/* Of a process that does not lead; places may be NULL, and is kept. */
struct crew_handler condense_handler(const struct crew_places *places);

#endif
