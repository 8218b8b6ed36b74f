/* Writing the two tables. */
#define _GNU_SOURCE
#include "task/precheck/journal.h"

#include "task/precheck/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static enum plumb_code io_error(struct plumb_error *err, const char *what, const char *path)
{
    plumb_fail(err, PLUMB_E_IO, "cannot %s: %s", what, strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum plumb_code journal_write(int fd, const char *path, const struct buf *text,
                              struct plumb_error *err)
{
    if (text->failed)
        return plumb_no_memory(err);
    for (size_t at = 0; at < text->size;) {
        const ssize_t n = write(fd, text->data + at, text->size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_error(err, "write", path);
        at += (size_t)n;
    }
    return PLUMB_OK;
}

static enum plumb_code sync_both(struct journal *journal, struct plumb_error *err)
{
    journal->synced = now_ms();
    /* Some file systems cannot sync; that is no reason to stop. */
    if (fdatasync(journal->details) && errno != EINVAL && errno != EROFS)
        return io_error(err, "sync", journal->details_path);
    if (fdatasync(journal->result) && errno != EINVAL && errno != EROFS)
        return io_error(err, "sync", journal->result_path);
    return PLUMB_OK;
}

static enum plumb_code write_header(struct journal *journal, struct plumb_error *err)
{
    struct buf text = {0};
    rows_details_header(&text, journal->dialect, journal->judged_by != NULL);
    enum plumb_code code = journal_write(journal->details, journal->details_path, &text, err);
    text.size = 0;
    rows_result_header(&text, journal->dialect, journal->judged_by != NULL);
    if (!code)
        code = journal_write(journal->result, journal->result_path, &text, err);
    buf_free(&text);
    return code;
}

enum plumb_code journal_lock(const struct journal *journal, struct plumb_error *err)
{
    /* Some file systems cannot lock; that is no reason to stop. */
    if (flock(journal->result, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_IO, "another check is writing it");
    plumb_error_in_file(err, journal->result_path);
    return PLUMB_E_IO;
}

static void set_paths(struct journal *journal, const char *folder)
{
    const char *slash = *folder && folder[strlen(folder) - 1] == '/' ? "" : "/";
    snprintf(journal->result_path, sizeof journal->result_path,
             "%s%saccuracy_checking_result_%s.csv", folder, slash, journal->stamp);
    snprintf(journal->details_path, sizeof journal->details_path,
             "%s%saccuracy_checking_details_%s.csv", folder, slash, journal->stamp);
}

static enum plumb_code begin_files(struct journal *journal, struct plumb_error *err)
{
    enum plumb_code code = journal_lock(journal, err);
    if (code)
        return code;
    code = write_header(journal, err);
    if (code) {
        unlink(journal->result_path);
        unlink(journal->details_path);
    }
    return code;
}

/* Takes the first second from now on whose two names are free. */
enum plumb_code journal_create(struct journal *journal, const char *folder,
                               const struct precheck_dialect *dialect, const char *judged_by,
                               struct plumb_error *err)
{
    *journal = (struct journal){.result = -1,
                                .details = -1,
                                .dialect = dialect,
                                .judged_by = judged_by,
                                .synced = now_ms()};
    if (strlen(folder) > sizeof journal->result_path - 64)
        return plumb_fail(err, PLUMB_E_ARG, "the path of the result folder is too long");
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC;
    const time_t start = time(NULL);
    for (time_t ahead = 0; ahead < 3600; ahead++) {
        enum plumb_code code = stamp_write(start + ahead, false, journal->stamp, err);
        if (code)
            return code;
        set_paths(journal, folder);
        journal->details = open(journal->details_path, flags, 0644);
        if (journal->details < 0 && errno == EEXIST)
            continue;
        if (journal->details < 0)
            return io_error(err, "create", journal->details_path);
        /* Second, so that whoever finds a result to resume finds its details too. */
        journal->result = open(journal->result_path, flags, 0644);
        if (journal->result >= 0)
            return begin_files(journal, err);
        const int reason = errno;
        close(journal->details);
        unlink(journal->details_path);
        journal->details = -1;
        errno = reason;
        if (reason != EEXIST)
            return io_error(err, "create", journal->result_path);
    }
    return plumb_fail(err, PLUMB_E_IO, "no free name for results in %s", folder);
}

enum plumb_code journal_add(struct journal *journal, const struct journal_entry *entry,
                            struct plumb_error *err)
{
    struct buf text = {0};
    for (size_t k = 0; k < entry->n_rows; k++)
        rows_details(&text, journal->dialect, &entry->rows[k]);
    enum plumb_code code = journal_write(journal->details, journal->details_path, &text, err);
    text.size = 0;
    rows_result(&text, journal->dialect, entry);
    if (!code)
        code = journal_write(journal->result, journal->result_path, &text, err);
    buf_free(&text);
    if (!code && now_ms() - journal->synced >= 1000)
        code = sync_both(journal, err);
    return code;
}

enum plumb_code journal_close(struct journal *journal, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (journal->result >= 0 && journal->details >= 0)
        code = sync_both(journal, err);
    if (journal->result >= 0)
        close(journal->result);
    if (journal->details >= 0)
        close(journal->details);
    journal->result = journal->details = -1;
    map_free(&journal->done);
    arena_free(&journal->names);
    return code;
}
