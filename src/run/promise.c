/* What files promise: views that repeat an element, and compression, let a small file stand for any
 * amount of work. */
#include "base/map.h"
#include "run/run.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

enum { TIMES = 16 }; /* what is stored; more than dumps shrink by */
static const uint64_t beside = (uint64_t)64 << 30;

static uint64_t bytes_of(const struct plumb_record *record)
{
    const bool counts = !record->absent && !record->error && record->dtype < PLUMB_DTYPE_COUNT;
    const unsigned bits = counts ? plumb_dtype_info(record->dtype)->bits : 0;
    const uint64_t most = UINT64_MAX / 2;
    return record->count / 8 > most / (bits + 1) ? most : record->count / 8 * bits + bits;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Every file once. */
static enum plumb_code count_stored(const struct plumb_run *run, uint64_t *stored)
{
    struct map seen = {0};
    enum plumb_code code = PLUMB_OK;
    *stored = 0;
    for (size_t i = 0; i < run->listing.count && !code; i++) {
        const char *path = run->listing.records[i].path;
        bool added = false;
        struct stat info;
        if (path && !map_put(&seen, path, strlen(path), &added))
            code = PLUMB_E_NOMEM;
        if (added && stat(path, &info) == 0)
            *stored = add(*stored, (uint64_t)info.st_size);
    }
    map_free(&seen);
    return code;
}

enum plumb_code promise_keep(struct plumb_run *run)
{
    uint64_t total = 0, stored;
    for (size_t i = 0; i < run->listing.count; i++)
        total = add(total, bytes_of(&run->listing.records[i]));
    if (total <= beside)
        return PLUMB_OK;
    enum plumb_code code = count_stored(run, &stored);
    const uint64_t most =
        stored > (UINT64_MAX - beside) / TIMES ? UINT64_MAX : stored * TIMES + beside;
    total = 0;
    for (size_t i = 0; i < run->listing.count && !code; i++) {
        struct plumb_record *record = &run->listing.records[i];
        const uint64_t bytes = bytes_of(record);
        total = add(total, bytes);
        if (total <= most || !bytes)
            continue;
        total -= bytes; /* what fits behind it is still read */
        struct plumb_error why = {0};
        plumb_fail(&why, PLUMB_E_UNSUPPORTED,
                   "the tensors of this run would take more than %" PRIu64
                   " bytes, its files only %" PRIu64
                   ": views or compression promise more work than plumb takes on",
                   most, stored);
        code = listing_fail(&run->listing, record, &why);
    }
    return code;
}
