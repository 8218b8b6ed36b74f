/* The thread that writes files, the room that waiting tensors may take, and kept failures. */
#define _GNU_SOURCE
#include "queue.h"

#include "core.h"
#include "h5names.h"

#include "plumb/write.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ERRORS = 1000 };

struct waiting {
    struct waiting *next;
    struct queue_job job;
    struct plumb_tensor tensor; /* dense; its bytes follow */
    uint64_t size;              /* of all of it, as the budget counts */
    _Alignas(16) unsigned char bytes[];
};

struct h5_file {
    int64_t number;
    char *path;
    struct plumb_writer *writer; /* NULL once it failed */
    size_t lost;                 /* tensors that came after that */
    struct h5names names;
};

struct queue {
    pid_t owner;
    uint64_t budget;
    int64_t first_file;
    pthread_t thread;

    pthread_mutex_t work; /* held while a job runs; guards the files */
    struct h5_file *files;
    size_t n_files;

    pthread_mutex_t lock; /* guards all below; taken after work when both are */
    pthread_cond_t more, less;
    struct waiting *first, **last;
    uint64_t waiting;   /* bytes, with the job at work */
    uint64_t put, done; /* jobs */
    bool threaded;      /* the thread takes what is put; false once it is asked to end */
    struct queue_error *errors;
    size_t n_errors, lost_errors;
};

pid_t queue_owner(const struct queue *queue)
{
    return queue->owner;
}

/* -- Errors ------------------------------------------------------------------------------------ */

static void note(struct queue *queue, const char *name, const char *message)
{
    pthread_mutex_lock(&queue->lock);
    if (!queue->errors)
        queue->errors = calloc(MAX_ERRORS, sizeof *queue->errors);
    struct queue_error error = {0};
    if (queue->errors && queue->n_errors < MAX_ERRORS - 1) {
        error.name = strdup(name);
        error.message = strdup(message);
    }
    if (error.name && error.message) {
        queue->errors[queue->n_errors++] = error;
    } else {
        free(error.name);
        free(error.message);
        queue->lost_errors++;
    }
    pthread_mutex_unlock(&queue->lock);
}

static void note_error(struct queue *queue, const char *name, const struct plumb_error *err)
{
    char text[sizeof err->file + sizeof err->message + 64];
    note(queue, name, plumb_error_text(err, text, sizeof text));
}

struct queue_error *queue_errors(struct queue *queue, size_t *count)
{
    pthread_mutex_lock(&queue->lock);
    struct queue_error *errors = queue->errors;
    *count = queue->n_errors;
    if (queue->lost_errors && errors) {
        char text[64];
        snprintf(text, sizeof text, "%zu more could not be written", queue->lost_errors);
        struct queue_error rest = {strdup("..."), strdup(text)};
        if (rest.name && rest.message) {
            errors[(*count)++] = rest;
        } else {
            free(rest.name);
            free(rest.message);
        }
    }
    queue->errors = NULL;
    queue->n_errors = queue->lost_errors = 0;
    pthread_mutex_unlock(&queue->lock);
    return errors;
}

void queue_errors_free(struct queue_error *errors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(errors[i].name);
        free(errors[i].message);
    }
    free(errors);
}

/* -- H5 files; all with work held -------------------------------------------------------------- */

static struct h5_file *find_file(struct queue *queue, int64_t number)
{
    for (size_t i = 0; i < queue->n_files; i++)
        if (queue->files[i].number == number)
            return &queue->files[i];
    return NULL;
}

bool queue_broken(struct queue *queue, int64_t number)
{
    pthread_mutex_lock(&queue->work);
    const struct h5_file *file = find_file(queue, number);
    const bool broken = file && !file->writer;
    pthread_mutex_unlock(&queue->work);
    return broken;
}

static void open_file(struct queue *queue, const struct queue_job *job)
{
    struct h5_file *files = realloc(queue->files, (queue->n_files + 1) * sizeof *files);
    if (files)
        queue->files = files;
    char *path = files ? strdup(job->name) : NULL;
    if (!path) {
        note(queue, job->name, "out of memory");
        return;
    }
    struct h5_file *file = &queue->files[queue->n_files++];
    *file = (struct h5_file){.number = job->file, .path = path};
    const struct plumb_writer_options options = {.global_rank = job->global_rank,
                                                 .local_rank = job->local_rank};
    struct plumb_error err;
    if (plumb_writer_open(&file->writer, path, &options, &err)) {
        file->writer = NULL;
        note_error(queue, path, &err);
    }
}

static void add_to_file(struct queue *queue, const struct queue_job *job)
{
    char text[64];
    struct h5_file *file = find_file(queue, job->file);
    if (job->file < queue->first_file) {
        note(queue, job->name, "its H5 file belongs to the process that this one was forked from");
        return;
    }
    if (!file) {
        snprintf(text, sizeof text, "there is no open H5 file %" PRId64, job->file);
        note(queue, job->name, text);
        return;
    }
    if (!file->writer) {
        file->lost++; /* why was said when it failed */
        return;
    }
    const char *why = h5names_take(&file->names, job->step, job->name);
    if (why) {
        note(queue, job->name, why);
        return;
    }
    struct plumb_error err;
    plumb_writer_call(file->writer, job->call);
    const enum plumb_code code =
        plumb_writer_add(file->writer, job->name, job->step, job->tensor, &err);
    if (!code)
        return;
    plumb_error_in_file(&err, file->path);
    note_error(queue, job->name, &err);
    if (code == PLUMB_E_ARG || code == PLUMB_E_UNSUPPORTED)
        return; /* this tensor only */
    plumb_writer_abort(file->writer);
    file->writer = NULL;
}

static void forget_file(struct queue *queue, struct h5_file *file)
{
    struct plumb_error err;
    char text[64];
    if (file->writer && plumb_writer_close(file->writer, &err))
        note_error(queue, file->path, &err);
    snprintf(text, sizeof text, "not written after that: %zu", file->lost);
    if (file->lost)
        note(queue, file->path, text);
    h5names_free(&file->names);
    free(file->path);
    *file = queue->files[--queue->n_files];
}

static void close_file(struct queue *queue, const struct queue_job *job)
{
    struct h5_file *file = find_file(queue, job->file);
    if (file)
        forget_file(queue, file);
}

static void sync_file(struct queue *queue, const struct queue_job *job)
{
    struct h5_file *file = find_file(queue, job->file);
    struct plumb_error err;
    if (!file || !file->writer || !plumb_writer_sync(file->writer, &err))
        return;
    note_error(queue, file->path, &err);
    plumb_writer_abort(file->writer);
    file->writer = NULL;
}

/* -- JSON files -------------------------------------------------------------------------------- */

static bool put_at(int fd, const char *bytes, size_t size, off_t at)
{
    while (size) {
        const ssize_t n = pwrite(fd, bytes, size, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* Puts an entry where the end of the file is, and the end behind it: the file is whole before and
 * after, and as it was when there is no room. */
static void add_entry(struct queue *queue, const struct queue_job *job)
{
    static const char end[] = QUEUE_ENTRY_END;
    const size_t end_length = sizeof end - 1, length = strlen(job->name);
    const int fd = (int)job->file;
    const off_t at = lseek(fd, 0, SEEK_END) - (off_t)end_length;
    char *text = malloc(length + end_length + 2);
    int error = at < job->step ? EIO : !text ? ENOMEM : 0;
    if (!error) {
        const int size = snprintf(text, length + end_length + 2, "%s%s%s",
                                  at > job->step ? "," : "", job->name, end);
        if (!put_at(fd, text, (size_t)size, at)) {
            error = errno ? errno : EIO;
            /* There was room for this much. */
            if (put_at(fd, end, end_length, at) && ftruncate(fd, at + (off_t)end_length) != 0)
                error = errno;
        }
    }
    free(text);
    if (error) {
        char name[160];
        const char *begin = job->name + strspn(job->name, "\n \""), *stop = strstr(begin, "\": ");
        const size_t longest = sizeof name - 1, size = stop ? (size_t)(stop - begin) : longest;
        snprintf(name, sizeof name, "%.*s", (int)(size < longest ? size : longest), begin);
        note(queue, name, strerror(error));
    }
}

static void run_job(struct queue *queue, const struct queue_job *job)
{
    struct plumb_error err;
    pthread_mutex_lock(&queue->work);
    switch (job->kind) {
    case QUEUE_SAVE:
        if (core_tensor_save(job->tensor, job->name, &err))
            note_error(queue, job->name, &err);
        break;
    case QUEUE_OPEN:
        open_file(queue, job);
        break;
    case QUEUE_ADD:
        add_to_file(queue, job);
        break;
    case QUEUE_SYNC:
        sync_file(queue, job);
        break;
    case QUEUE_CLOSE:
        close_file(queue, job);
        break;
    case QUEUE_ENTRY:
        add_entry(queue, job);
        break;
    }
    pthread_mutex_unlock(&queue->work);
}

/* -- The thread -------------------------------------------------------------------------------- */

static void *run_thread(void *argument)
{
    struct queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (!queue->first && queue->threaded)
            pthread_cond_wait(&queue->more, &queue->lock);
        struct waiting *entry = queue->first;
        if (!entry)
            break;
        queue->first = entry->next;
        if (!queue->first)
            queue->last = &queue->first;
        pthread_mutex_unlock(&queue->lock);
        run_job(queue, &entry->job);
        const uint64_t size = entry->size;
        free(entry->job.name);
        free(entry);
        pthread_mutex_lock(&queue->lock);
        queue->waiting -= size;
        queue->done++;
        pthread_cond_broadcast(&queue->less);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* Signals are for the threads that Python runs on; those of a fault cannot be put off. */
static bool start_thread(struct queue *queue)
{
    sigset_t all, before;
    sigfillset(&all);
    const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&queue->thread, NULL, run_thread, queue) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct queue *queue_new(uint64_t budget, bool threaded, int64_t first_file)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->owner = getpid();
    queue->budget = budget;
    queue->first_file = first_file;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->work, NULL);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->more, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->less, &steady);
    pthread_condattr_destroy(&steady);
    /* The thread looks at this, and so must not start before it is set. */
    queue->threaded = threaded;
    if (threaded && !start_thread(queue))
        queue->threaded = false;
    return queue;
}

static struct timespec after(int milliseconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += milliseconds / 1000;
    t.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

/* -- Putting ----------------------------------------------------------------------------------- */

static struct waiting *make_entry(const struct queue_job *job, uint64_t size)
{
    struct waiting *entry = malloc((size_t)size);
    if (!entry)
        return NULL;
    entry->next = NULL;
    entry->job = *job;
    entry->size = size;
    if (!job->tensor)
        return entry;
    struct plumb_tensor *copy = &entry->tensor;
    plumb_tensor_init(copy, job->tensor->dtype, job->tensor->rank, job->tensor->shape, NULL);
    plumb_tensor_gather(job->tensor, 0, (size_t)copy->count, entry->bytes);
    copy->data = entry->bytes;
    entry->job.tensor = copy;
    return entry;
}

/* Reserves room for size bytes; false when time is up. */
static bool take_room(struct queue *queue, uint64_t size, const struct timespec *until)
{
    bool room = true;
    pthread_mutex_lock(&queue->lock);
    while (queue->waiting && queue->waiting + size > queue->budget && room)
        room = pthread_cond_timedwait(&queue->less, &queue->lock, until) != ETIMEDOUT;
    if (room)
        queue->waiting += size;
    pthread_mutex_unlock(&queue->lock);
    return room;
}

/* Hands the entry to the thread, or, when there is none or no entry, gives its room back. */
static bool append(struct queue *queue, struct waiting *entry, uint64_t size)
{
    pthread_mutex_lock(&queue->lock);
    const bool taken = entry && queue->threaded;
    if (taken) {
        *queue->last = entry;
        queue->last = &entry->next;
        queue->put++;
        pthread_cond_signal(&queue->more);
    } else {
        queue->waiting -= size;
        pthread_cond_broadcast(&queue->less);
    }
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

static bool has_thread(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool threaded = queue->threaded;
    pthread_mutex_unlock(&queue->lock);
    return threaded;
}

bool queue_put(struct queue *queue, const struct queue_job *job, int milliseconds)
{
    const struct timespec until = after(milliseconds);
    const uint64_t size = sizeof(struct waiting) +
                          (job->tensor ? plumb_tensor_bytes(job->tensor) : 0) +
                          (job->kind == QUEUE_ENTRY ? strlen(job->name) : 0);
    /* What has no tensor always finds a place: a budget of nothing must not reorder files. */
    if (has_thread(queue) && (size <= queue->budget || !job->tensor)) {
        if (!take_room(queue, size, &until))
            return false;
        struct waiting *entry = make_entry(job, size);
        if (append(queue, entry, size))
            return true;
        free(entry);
    }
    /* After what was put before: an earlier tensor of the same file must not come later. */
    if (!queue_flush(queue, queue_ticket(queue), milliseconds))
        return false;
    run_job(queue, job);
    free(job->name);
    return true;
}

uint64_t queue_ticket(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const uint64_t ticket = queue->put;
    pthread_mutex_unlock(&queue->lock);
    return ticket;
}

bool queue_flush(struct queue *queue, uint64_t ticket, int milliseconds)
{
    const struct timespec until = after(milliseconds);
    bool in_time = true;
    pthread_mutex_lock(&queue->lock);
    while (queue->done < ticket && in_time)
        in_time = pthread_cond_timedwait(&queue->less, &queue->lock, &until) != ETIMEDOUT;
    const bool finished = queue->done >= ticket;
    pthread_mutex_unlock(&queue->lock);
    return finished;
}

/* -- The end ----------------------------------------------------------------------------------- */

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    const bool running = queue->threaded;
    queue->threaded = false;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
    if (running)
        pthread_join(queue->thread, NULL);
    pthread_mutex_lock(&queue->work);
    while (queue->n_files)
        forget_file(queue, &queue->files[queue->n_files - 1]);
    free(queue->files);
    queue->files = NULL;
    pthread_mutex_unlock(&queue->work);
}

void queue_free(struct queue *queue)
{
    size_t count;
    struct queue_error *errors = queue_errors(queue, &count);
    queue_errors_free(errors, count);
    pthread_cond_destroy(&queue->less);
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->work);
    free(queue);
}
