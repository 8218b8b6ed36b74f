/* Condensing a folder: what has changed, what has settled, one pass or many. */
#define _GNU_SOURCE
#include "plumb/condense.h"

#include "base/pool.h"
#include "run/walk.h"
#include "task/condense/file.h"
#include "task/condense/hosts.h"
#include "task/condense/scan.h"
#include "task/condense/spread.h"
#include "task/condense/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_DEFAULT 1.0
#define RESCAN_SECONDS 2.0 /* where inotify says nothing */
#define RETRY_SECONDS 5.0  /* after the system said no: a full disk may have room again */
#define SLICE_SECONDS 0.2  /* between looks at `stop` */
#define PAUSE_SECONDS 0.05 /* between scans, at least */

enum state {
    STATE_WAITING, /* not settled yet, or open for writing */
    STATE_DONE,    /* condensed (a dry run, where the file stays) */
    STATE_OTHER,
    STATE_SMALL,  /* condensed it would take as much room, or more */
    STATE_FAILED, /* not tried again before the file changes */
    STATE_RETRY,
};

/* What is known about file i of the scan. */
struct entry {
    enum state state;
    double since; /* when it was first seen as it is now */
    double tried;
};

struct session {
    const char *folder;
    struct plumb_condense_options options;
    struct plumb_condensed *result;
    struct scan scan;
    struct entry *entries;
    double changed;           /* when something last changed */
    size_t unreadable;        /* folders */
    bool folders_reported;    /* those of the first scan */
    size_t *work, work_count; /* numbers of the files to condense now */
    uint64_t work_done, work_bytes;
    pthread_mutex_t lock;
    struct arena arena;      /* of what follows */
    struct crew_hosts hosts; /* those that list and condense their own files; none: the folder is
                                the same for all */
    bool *lost;              /* by host: it does not answer */
    bool *named;             /* by host: that was said */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool must_stop(const struct session *session)
{
    return session->options.stop && session->options.stop(session->options.context);
}

static void tell(const struct session *session, const struct plumb_condense_event *event)
{
    if (session->options.event)
        session->options.event(session->options.context, event);
}

/* -- What has changed ----------------------------------------------------------------------- */

static bool is_same(const struct scan_file *a, const struct scan_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static int compare_files(const struct scan_file *a, const struct scan_file *b)
{
    const int order = walk_compare(a->path, b->path);
    return order ? order : a->host < b->host ? -1 : a->host > b->host;
}

/* Both lists are in the same order. */
static struct entry *carry_over(struct session *session, const struct scan *scan, double time)
{
    struct entry *entries = calloc(scan->file_count + 1, sizeof *entries);
    size_t old = 0;
    for (size_t i = 0; entries && i < scan->file_count; i++) {
        int order = -1;
        while (old < session->scan.file_count &&
               (order = compare_files(&session->scan.files[old], &scan->files[i])) < 0)
            old++;
        if (old < session->scan.file_count && order == 0 &&
            is_same(&session->scan.files[old], &scan->files[i])) {
            entries[i] = session->entries[old];
        } else {
            entries[i] = (struct entry){.state = STATE_WAITING, .since = time};
            session->changed = time;
        }
    }
    return entries;
}

/* Hosts that do not answer may have files that nobody else has. */
static void report_hosts(struct session *session)
{
    struct plumb_error error = {0};
    for (unsigned host = 0; host < session->hosts.count; host++) {
        if (!session->lost[host])
            continue;
        session->unreadable++;
        plumb_fail(&error, PLUMB_E_IO, "%s does not answer", session->hosts.names[host]);
        if (!session->named[host])
            tell(session, &(struct plumb_condense_event){
                              .outcome = PLUMB_CONDENSE_FAILED, .path = "", .error = &error});
        session->named[host] = true;
    }
    session->unreadable += session->hosts.unheard;
    plumb_fail(&error, PLUMB_E_IO, "what only the hosts of %u processes have, which do not answer",
               session->hosts.unheard);
    if (session->hosts.unheard && !session->folders_reported)
        tell(session, &(struct plumb_condense_event){
                          .outcome = PLUMB_CONDENSE_FAILED, .path = "", .error = &error});
}

static void report_folders(struct session *session)
{
    session->unreadable = 0;
    report_hosts(session);
    for (size_t i = 0; i < session->scan.folder_count; i++) {
        const struct scan_folder *folder = &session->scan.folders[i];
        if (!folder->error)
            continue;
        session->unreadable++;
        if (session->folders_reported)
            continue;
        struct plumb_error error;
        plumb_fail(&error, PLUMB_E_IO, "cannot read this folder: %s", strerror(folder->error));
        plumb_error_in_file(&error, folder->path);
        tell(session, &(struct plumb_condense_event){
                          .outcome = PLUMB_CONDENSE_FAILED, .path = folder->path, .error = &error});
    }
    session->folders_reported = true;
}

static enum plumb_code look(struct session *session, bool sweep, struct plumb_error *err)
{
    struct scan scan;
    struct entry *entries = NULL;
    enum plumb_code code = session->hosts.count
                               ? hosts_scan(&scan, session->options.crew, &session->hosts,
                                            session->folder, sweep, session->lost, err)
                               : scan_folder(&scan, session->folder, sweep, err);
    if (!code && !(entries = carry_over(session, &scan, now())))
        code = plumb_no_memory(err);
    if (code) {
        scan_free(&scan);
        return code;
    }
    scan_free(&session->scan);
    free(session->entries);
    session->scan = scan;
    session->entries = entries;
    report_folders(session);
    return PLUMB_OK;
}

/* -- Condensing what is ready --------------------------------------------------------------- */

static bool is_ready(const struct session *session, const struct entry *entry, double time)
{
    if (entry->state == STATE_RETRY)
        return time - entry->tried >= RETRY_SECONDS;
    return entry->state == STATE_WAITING && time - entry->since >= session->options.settle;
}

static void count_done(struct session *session, const struct file_result *file)
{
    struct plumb_condensed *result = session->result;
    result->files++;
    result->tensors += file->tensors;
    result->before += file->before;
    result->after += file->after;
    session->changed = now();
}

/* Under the lock. */
static void note(struct session *session, size_t number, const struct file_result *file)
{
    struct entry *entry = &session->entries[number];
    struct plumb_condense_event event = {.outcome = PLUMB_CONDENSE_DONE,
                                         .path = session->scan.files[number].path,
                                         .tensors = file->tensors,
                                         .before = file->before,
                                         .after = file->after};
    bool again = entry->state == STATE_RETRY;
    entry->tried = now();
    switch (file->outcome) {
    case FILE_BUSY:
        return;
    case FILE_OTHER:
    case FILE_GONE:
        entry->state = STATE_OTHER;
        return;
    case FILE_SMALL:
        entry->state = STATE_SMALL;
        return;
    case FILE_DONE:
        entry->state = STATE_DONE;
        count_done(session, file);
        break;
    case FILE_FAILED:
    case FILE_UNREMOVED:
        entry->state = file->error.code == PLUMB_E_IO || file->error.code == PLUMB_E_NOMEM
                           ? STATE_RETRY
                           : STATE_FAILED;
        event.outcome =
            file->outcome == FILE_FAILED ? PLUMB_CONDENSE_FAILED : PLUMB_CONDENSE_UNREMOVED;
        event.error = &file->error;
        if (again)
            return; /* it was said the first time */
        break;
    }
    tell(session, &event);
}

static void condense_one(void *context, size_t i, unsigned thread)
{
    struct session *session = context;
    (void)thread;
    size_t number = session->work[i];
    const struct scan_file *file = &session->scan.files[number];
    struct file_result result = {.outcome = FILE_BUSY};
    char *path = NULL;

    pthread_mutex_lock(&session->lock);
    bool stop = must_stop(session);
    pthread_mutex_unlock(&session->lock);
    if (stop)
        return;
    if (asprintf(&path, "%s/%s", session->folder, file->path) >= 0) {
        file_condense(&result, path, session->options.keep, session->options.dry_run);
        free(path);
    } else {
        result.outcome = FILE_FAILED;
        plumb_no_memory(&result.error);
        plumb_error_in_file(&result.error, file->path);
    }

    pthread_mutex_lock(&session->lock);
    note(session, number, &result);
    session->work_done += file->size;
    if (session->options.progress)
        session->options.progress(session->options.context, session->work_done,
                                  session->work_bytes);
    pthread_mutex_unlock(&session->lock);
}

/* The same with several processes; what became of the files is told in their order. */
static bool stop_work(void *context)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    const bool stop = must_stop(session);
    pthread_mutex_unlock(&session->lock);
    return stop;
}

static void count_bytes(void *context, uint64_t bytes)
{
    struct session *session = context;
    pthread_mutex_lock(&session->lock);
    session->work_done += bytes;
    if (session->options.progress)
        session->options.progress(session->options.context, session->work_done,
                                  session->work_bytes);
    pthread_mutex_unlock(&session->lock);
}

static enum plumb_code condense_spread(struct session *session, struct plumb_error *err)
{
    const size_t count = session->work_count;
    struct arena arena = {0};
    const char **paths = arena_array(&arena, count, sizeof *paths);
    uint64_t *sizes = arena_array(&arena, count, sizeof *sizes);
    const struct scan_file **where = arena_array(&arena, count, sizeof *where);
    struct file_result *results = calloc(count + 1, sizeof *results);
    bool ready = paths && sizes && where && results;
    for (size_t i = 0; i < count && ready; i++) {
        const struct scan_file *file = &session->scan.files[session->work[i]];
        paths[i] = arena_printf(&arena, "%s/%s", session->folder, file->path);
        sizes[i] = file->size;
        where[i] = file;
        results[i].outcome = FILE_BUSY;
        ready = paths[i];
    }
    const struct spread_files files = {.paths = paths,
                                       .sizes = sizes,
                                       .files = session->hosts.count ? where : NULL,
                                       .hosts = &session->hosts,
                                       .count = count,
                                       .keep = session->options.keep,
                                       .dry_run = session->options.dry_run,
                                       .results = results,
                                       .stop = stop_work,
                                       .progress = count_bytes,
                                       .context = session};
    enum plumb_code code =
        ready ? spread_condense(session->options.crew, &files, err) : plumb_no_memory(err);
    for (size_t i = 0; i < count && ready; i++)
        note(session, session->work[i], &results[i]);
    free(results);
    arena_free(&arena);
    return code;
}

static enum plumb_code condense_ready(struct session *session, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    double time = now();
    session->work = calloc(session->scan.file_count + 1, sizeof *session->work);
    if (!session->work)
        return plumb_no_memory(err);
    session->work_count = 0;
    session->work_done = session->work_bytes = 0;
    for (size_t i = 0; i < session->scan.file_count; i++)
        if (is_ready(session, &session->entries[i], time)) {
            session->work[session->work_count++] = i;
            session->work_bytes += session->scan.files[i].size;
        }
    if (session->work_count && session->options.crew)
        code = condense_spread(session, err);
    else if (session->work_count)
        pool_run(session->options.threads, session->work_count, condense_one, session);
    free(session->work);
    session->work = NULL;
    return code;
}

/* -- One pass, or many ---------------------------------------------------------------------- */

/* Seconds until the first of the waiting files has settled, or until the next scan. */
static double until_settled(const struct session *session, double time)
{
    double left = RESCAN_SECONDS;
    for (size_t i = 0; i < session->scan.file_count; i++) {
        const struct entry *entry = &session->entries[i];
        double rest = entry->since + session->options.settle - time;
        if (entry->state == STATE_WAITING && rest > 0 && rest < left)
            left = rest;
    }
    return left;
}

static bool is_idle(const struct session *session, double time)
{
    if (!(session->options.until_idle > 0) || time - session->changed < session->options.until_idle)
        return false;
    /* Whoever waits less than files need to settle wants these files too. */
    for (size_t i = 0; i < session->scan.file_count; i++)
        if (session->entries[i].state == STATE_WAITING &&
            time - session->entries[i].since < session->options.settle)
            return false;
    return true;
}

/* False when told to stop. */
static bool rest(struct session *session, struct watch *watch, double seconds, double pause)
{
    double begun = now();
    bool news = false;
    for (;;) {
        double left = seconds - (now() - begun);
        if (left <= 0)
            break;
        if (must_stop(session))
            return false;
        news |= watch_wait(watch, left < SLICE_SECONDS ? left : SLICE_SECONDS);
        if (news && now() - begun < pause)
            watch_wait(&(struct watch){.fd = -1}, pause - (now() - begun));
        if (news)
            break;
    }
    return !must_stop(session);
}

static enum plumb_code pass_once(struct session *session, struct plumb_error *err)
{
    enum plumb_code code = look(session, !session->options.dry_run, err);
    if (code)
        return code;
    struct watch none = {.fd = -1};
    if (session->scan.file_count && !rest(session, &none, session->options.settle, 0))
        return PLUMB_OK;
    /* What came or changed meanwhile is not settled. */
    code = look(session, false, err);
    return code ? code : condense_ready(session, err);
}

static enum plumb_code pass_many(struct session *session, struct plumb_error *err)
{
    struct watch watch;
    enum plumb_code code = PLUMB_OK;
    bool sweep = true;
    watch_open(&watch);
    for (;; sweep = false) {
        double begun = now();
        code = look(session, sweep, err);
        if (code)
            break;
        watch_add(&watch, session->folder, &session->scan);
        double cost = now() - begun;
        code = condense_ready(session, err);
        double time = now();
        if (code || must_stop(session) || is_idle(session, time))
            break;
        double wait = until_settled(session, time);
        double idle = session->changed + session->options.until_idle - time;
        if (session->options.until_idle > 0 && idle > 0 && idle < wait)
            wait = idle;
        /* A folder that is written to all the time must not be scanned all the time. */
        if (!rest(session, &watch, wait, cost * 4 > PAUSE_SECONDS ? cost * 4 : PAUSE_SECONDS))
            break;
    }
    watch_close(&watch);
    return code;
}

/* One plumb a folder, so that none takes the other's temporary files for leftovers. File systems
 * without locks go without. */
static enum plumb_code lock_folder(const char *folder, int *fd, struct plumb_error *err)
{
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        plumb_fail(err, PLUMB_E_IO, "cannot open this folder: %s", strerror(errno));
    else if (flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        plumb_fail(err, PLUMB_E_IO, "another plumb is condensing this folder");
    else
        return PLUMB_OK;
    plumb_error_in_file(err, folder);
    if (*fd >= 0)
        close(*fd);
    return PLUMB_E_IO;
}

/* Several hosts look for themselves, unless a map says where they find what process 0 sees. */
static enum plumb_code find_hosts(struct session *session, struct plumb_error *err)
{
    struct plumb_crew *crew = session->options.crew;
    if (!crew || crew_places_of(crew)->given)
        return PLUMB_OK;
    enum plumb_code code = crew_hosts(crew, &session->hosts, &session->arena, err);
    if (!code && session->hosts.count < 2 && !session->hosts.unheard)
        session->hosts = (struct crew_hosts){0};
    if (!code && session->hosts.count) {
        const unsigned count = session->hosts.count;
        session->lost = arena_array(&session->arena, count, sizeof *session->lost);
        session->named = arena_array(&session->arena, count, sizeof *session->named);
        code = session->lost && session->named ? PLUMB_OK : plumb_no_memory(err);
    }
    return code;
}

static void count_what_is_left(struct session *session)
{
    struct plumb_condensed *result = session->result;
    result->failed = session->unreadable;
    for (size_t i = 0; i < session->scan.file_count; i++) {
        enum state state = session->entries[i].state;
        result->failed += state == STATE_FAILED || state == STATE_RETRY;
        result->waiting += state == STATE_WAITING;
        result->other += state == STATE_OTHER;
        result->small += state == STATE_SMALL;
    }
    result->stopped = must_stop(session);
}

enum plumb_code plumb_condense(struct plumb_condensed *result, const char *folder,
                               const struct plumb_condense_options *options,
                               struct plumb_error *err)
{
    struct session session = {
        .folder = folder, .options = *options, .result = result, .changed = now()};
    *result = (struct plumb_condensed){0};
    if (!session.options.keep)
        session.options.keep = PLUMB_KEEP_ALL;
    if (!(session.options.settle > 0))
        session.options.settle = SETTLE_DEFAULT;
    if (!session.options.threads)
        session.options.threads = pool_default_threads();
    if (options->dry_run)
        session.options.threads = 1; /* the list is to be in order */
    if (options->dry_run && options->watch)
        return plumb_fail(err, PLUMB_E_ARG, "a dry run does not watch");

    int lock = -1;
    enum plumb_code code = find_hosts(&session, err);
    if (!code && (!session.hosts.count || access(folder, F_OK) == 0))
        code = lock_folder(folder, &lock, err);
    if (code) {
        arena_free(&session.arena);
        return code;
    }
    pthread_mutex_init(&session.lock, NULL);
    code = options->watch ? pass_many(&session, err) : pass_once(&session, err);
    count_what_is_left(&session);
    pthread_mutex_destroy(&session.lock);
    scan_free(&session.scan);
    free(session.entries);
    arena_free(&session.arena);
    if (lock >= 0)
        close(lock);
    return code;
}
