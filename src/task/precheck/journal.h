/* The two tables of a check as journals: what is finished is on disk, and what is not can be redone
 * without a trace. */
#ifndef PRECHECK_JOURNAL_H
#define PRECHECK_JOURNAL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/stamp.h"
#include "verdict/profile.h"

struct journal {
    int result, details; /* file descriptors */
    char result_path[4096], details_path[4096];
    char stamp[STAMP_BYTES];
    int64_t synced;  /* milliseconds */
    size_t finished; /* calls, from the first on, of an earlier run */
    struct map done; /* their names as they are written */
    struct arena names;
    uint64_t earlier[STATUS_BLANK + 1][STATUS_BLANK + 1]; /* those, by forward and backward */
    uint64_t earlier_words[PLUMB_WORDS];                  /* those that have one */
    const struct precheck_dialect *dialect;
    const char *judged_by; /* version and options of the second opinions; NULL: there are none */
    const struct precheck_profile *const *others; /* of journal_resume */
};

/* A finished API. */
struct journal_entry {
    const char *name; /* "Torch.cat.0" */
    enum check_status forward, backward;
    const char *message; /* of the result row; NULL or "" for none */
    const struct details_row *rows;
    size_t n_rows;
    const char *verdict, *why; /* the worst second opinion of its rows; NULL: none */
    enum plumb_word word;
};

/* Makes the two files in folder, named after the time, with their headers. Never touches files that
 * are there already, and leaves none when it fails. */
enum plumb_code journal_create(struct journal *journal, const char *folder,
                               const struct precheck_dialect *dialect, const char *judged_by,
                               struct plumb_error *err);

/* The names of the calls to check, in order. */
struct journal_calls {
    const char *const *names;
    size_t count;
};

/* Goes on with the files of an earlier run of these calls: cuts off a torn last line, details
 * rows of APIs that have no result row, and result rows whose details may have been lost with
 * the power; fills finished and earlier. Files that are not a pair of this dialect, not judged
 * by that, not of these calls, or that somebody writes at the moment, are refused and left
 * alone. others, which end with NULL, are the profiles whose files are known as such. */
enum plumb_code journal_resume(struct journal *journal, const char *result_path,
                               const struct precheck_profile *const *others,
                               const struct precheck_dialect *dialect, const char *judged_by,
                               const struct journal_calls *calls, struct plumb_error *err);

/* Writes all of text. */
enum plumb_code journal_write(int fd, const char *path, const struct buf *text,
                              struct plumb_error *err);

/* Keeps other runs from going on with the same files while this one writes them. */
enum plumb_code journal_lock(const struct journal *journal, struct plumb_error *err);

/* Appends the rows: details first. Syncs now and then. */
enum plumb_code journal_add(struct journal *journal, const struct journal_entry *entry,
                            struct plumb_error *err);

/* Syncs and closes. */
enum plumb_code journal_close(struct journal *journal, struct plumb_error *err);

#endif
