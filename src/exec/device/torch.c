/* A device of PyTorch: calls go to worker processes, of which there are at most as many as callers
 * at one time. A worker that is lost costs the call at hand; the next call starts another. */
#define _GNU_SOURCE
#include "exec/device/torch.h"

#include "base/memory.h"
#include "base/pool.h"
#include "exec/device/find.h"
#include "exec/device/message.h"
#include "exec/device/process.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MAX_WORKERS = 64,      /* of a processor's device */
    MAX_ACCELERATOR = 8,   /* whose memory they share */
    MAX_FAILED_STARTS = 3, /* in a row, before no further ones are tried */
};
static const double start_seconds = 180, bytes_a_second = 16 << 20;

struct torch {
    struct arena arena; /* of the texts */
    const char *name;   /* "torch:cuda:0" */
    double timeout;
    struct message_setup setup;
    char script[PATH_MAX];

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t freed; /* a worker is idle, or none could be started */
    struct process workers[MAX_WORKERS];
    bool busy[MAX_WORKERS];
    size_t max;
    double start_cost;  /* seconds that starting the last one took */
    double waited;      /* seconds that callers have waited since then, all together */
    const char *python; /* that has PyTorch; NULL: not known yet */
    unsigned failed_starts;
    struct plumb_error start_error; /* of the last of them */

    pthread_mutex_t starting; /* held while python is not known */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* One Python. kind is "torch" when it has no PyTorch. */
static enum plumb_code start_with(const struct torch *t, const char *python, struct process *worker,
                                  char kind[16], struct plumb_error *err)
{
    struct buf setup = {0}, answer = {0};
    *kind = '\0';
    enum plumb_code code = message_put_setup(&setup, &t->setup)
                               ? process_start(worker, python, t->script, err)
                               : plumb_no_memory(err);
    if (!code)
        code = process_exchange(worker, &setup, t->timeout + start_seconds, &answer, err);
    if (!code) {
        code = message_get_ready(answer.data, answer.size, kind, err);
        if (code)
            process_stop(worker);
    }
    buf_free(&setup);
    buf_free(&answer);
    return code;
}

/* The first Python that has PyTorch; the error names all that were tried. */
static enum plumb_code start_any(struct torch *t, struct process *worker, const char **python,
                                 struct plumb_error *err)
{
    char tried[400] = "", kind[16];
    for (size_t k = 0; (*python = find_python(k)); k++) {
        struct plumb_error why = {0};
        const enum plumb_code code = start_with(t, *python, worker, kind, &why);
        if (!code)
            return PLUMB_OK;
        if (strcmp(kind, "setup") == 0) /* it has; another would not do better */
            return plumb_fail(err, code, "%s", why.message);
        const size_t used = strlen(tried);
        snprintf(tried + used, sizeof tried - used, "%s%s: %.120s", used ? "; " : "", *python,
                 why.message);
    }
    return plumb_fail(err, PLUMB_E_IO,
                      "no Python with PyTorch (%s); install it, or set PLUMB_PYTHON to a Python "
                      "that has it",
                      tried);
}

/* Nobody knows yet which Python it is; when none will do, that does not change. */
static enum plumb_code start_first(struct torch *t, struct process *worker, struct plumb_error *err)
{
    const char *python = NULL;
    if (!t->failed_starts) {
        t->start_error = (struct plumb_error){0};
        t->failed_starts = start_any(t, worker, &python, &t->start_error) != PLUMB_OK;
    }
    if (python && !t->failed_starts)
        t->python = arena_copy(&t->arena, python, strlen(python));
    if (t->failed_starts && err)
        *err = t->start_error;
    return t->failed_starts ? t->start_error.code : PLUMB_OK;
}

static enum plumb_code start_again(struct torch *t, struct process *worker, struct plumb_error *err)
{
    struct plumb_error why = {0};
    char kind[16];
    pthread_mutex_lock(&t->lock);
    const bool hopeless = t->failed_starts >= MAX_FAILED_STARTS;
    if (hopeless)
        why = t->start_error;
    pthread_mutex_unlock(&t->lock);
    if (!hopeless) {
        const bool failed = start_with(t, t->python, worker, kind, &why) != PLUMB_OK;
        pthread_mutex_lock(&t->lock);
        t->failed_starts = failed ? t->failed_starts + 1 : 0;
        t->start_error = why;
        pthread_mutex_unlock(&t->lock);
    }
    if (why.code && err)
        *err = why;
    return why.code;
}

static enum plumb_code start(struct torch *t, struct process *worker, struct plumb_error *err)
{
    const double begin = now();
    pthread_mutex_lock(&t->starting);
    const bool first = !t->python;
    enum plumb_code code = first ? start_first(t, worker, err) : PLUMB_OK;
    pthread_mutex_unlock(&t->starting);
    if (!first)
        code = start_again(t, worker, err);
    pthread_mutex_lock(&t->lock);
    if (!code)
        t->start_cost = now() - begin;
    pthread_mutex_unlock(&t->lock);
    return code;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* An idle worker that runs, else, if need be, the place of one that does not; max: none. */
static size_t find_idle(const struct torch *t, bool run)
{
    size_t busy = 0, place = t->max;
    for (size_t k = t->max; k-- > 0;) {
        busy += t->busy[k];
        if (!t->busy[k] && (place == t->max || t->workers[k].pid >= 0))
            place = k;
    }
    const bool runs = place < t->max && t->workers[place].pid >= 0;
    return runs || busy == 0 || run ? place : t->max;
}

/* Waits until a worker is idle, or until waiting is not worth it any more. */
static void wait_idle(struct torch *t)
{
    if (t->waited >= t->start_cost) { /* there is no place for another */
        pthread_cond_wait(&t->freed, &t->lock);
        return;
    }
    const double start = now(), end = start + t->start_cost - t->waited;
    struct timespec until = {.tv_sec = (time_t)end};
    until.tv_nsec = (long)((end - (double)until.tv_sec) * 1e9);
    pthread_cond_timedwait(&t->freed, &t->lock, &until);
    t->waited += now() - start;
}

/* A worker of one's own. Importing PyTorch takes longer than most calls: a further one is started
 * when callers have waited for those there are for as long as starting it takes. */
static size_t acquire(struct torch *t)
{
    pthread_mutex_lock(&t->lock);
    for (;;) {
        const size_t found = find_idle(t, t->waited >= t->start_cost);
        if (found < t->max) {
            t->busy[found] = true;
            if (t->workers[found].pid < 0)
                t->waited = 0;
            pthread_mutex_unlock(&t->lock);
            return found;
        }
        wait_idle(t);
    }
}

static void release(struct torch *t, size_t k)
{
    pthread_mutex_lock(&t->lock);
    t->busy[k] = false;
    pthread_cond_signal(&t->freed);
    pthread_mutex_unlock(&t->lock);
}

/* What a worker keeps of its shared memory between calls: an eighth of what a call may take, so
 * that all of them keep an eighth of what the run may. */
static uint64_t kept_bytes(uint64_t memory)
{
    const uint64_t most = 256 << 20, least = 16 << 20;
    const uint64_t kept = memory / 8 / least * least;
    return kept < least ? least : kept > most ? most : kept;
}

static enum plumb_code exchange(const struct torch *t, struct process *worker,
                                const struct message_call *request, uint64_t memory,
                                struct plumb_result *out, struct plumb_error *err)
{
    struct buf answer = {0};
    enum plumb_code code = shared_reach(&worker->memory, request->bytes, err);
    if (code)
        return code;
    message_put_tensors(request, worker->memory.base);
    const double seconds = t->timeout + (double)request->bytes / bytes_a_second;
    code = process_exchange(worker, &request->text, seconds, &answer, err);
    if (!code)
        code = shared_map(&worker->memory, 2 * memory_total(), err);
    if (!code)
        code = message_get_result(answer.data, answer.size, request, worker->memory.base,
                                  worker->memory.mapped, out, err);
    if (code == PLUMB_E_FORMAT)
        process_stop(worker); /* who talks nonsense once is not asked again */
    if (worker->pid >= 0)
        shared_trim(&worker->memory, kept_bytes(memory));
    buf_free(&answer);
    return code;
}

static enum plumb_code run(struct torch *t, const struct plumb_call *call, bool raised,
                           struct plumb_result *out, struct plumb_error *err)
{
    *out = (struct plumb_result){0};
    struct message_call request;
    const uint64_t memory = call->memory ? call->memory : memory_default();
    enum plumb_code code = message_put_call(&request, call, raised, memory, err);
    if (code)
        return code;
    const size_t k = acquire(t);
    struct process *worker = &t->workers[k];
    if (!process_is_there(worker)) {
        process_stop(worker);
        code = start(t, worker, err);
    }
    if (!code)
        code = exchange(t, worker, &request, memory, out, err);
    release(t, k);
    message_call_destroy(&request);
    return code;
}

static enum plumb_code torch_run(struct plumb_device *device, const struct plumb_call *call,
                                 struct plumb_result *out, struct plumb_error *err)
{
    return run(device->state, call, false, out, err);
}

static enum plumb_code torch_run_raised(struct plumb_device *device, const struct plumb_call *call,
                                        struct plumb_result *out, struct plumb_error *err)
{
    return run(device->state, call, true, out, err);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void torch_close(struct plumb_device *device)
{
    struct torch *t = device->state;
    for (size_t k = 0; k < t->max; k++)
        process_stop(&t->workers[k]);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->starting);
    pthread_cond_destroy(&t->freed);
    arena_free(&t->arena);
    free(t);
    free(device);
}

static bool is_device_name(const char *name)
{
    return *name && name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789_:")] == '\0';
}

static bool copy_options(struct torch *t, const char *name,
                         const struct plumb_device_options *options)
{
    const char **imports = arena_array(&t->arena, options->n_imports + 1, sizeof *imports);
    t->name = arena_copy(&t->arena, name, strlen(name));
    if (!imports || !t->name)
        return false;
    for (size_t k = 0; k < options->n_imports; k++)
        if (!(imports[k] = arena_copy(&t->arena, options->imports[k], strlen(options->imports[k]))))
            return false;
    t->timeout = options->timeout > 0 ? options->timeout : 60;
    t->setup = (struct message_setup){.device = t->name + strlen("torch:"),
                                      .threads = options->threads ? options->threads : 1,
                                      .imports = imports,
                                      .n_imports = options->n_imports,
                                      .jit = options->jit};
    return true;
}

static struct plumb_device *make(const char *name, const struct plumb_device_options *options)
{
    struct plumb_device *device = calloc(1, sizeof *device);
    struct torch *t = calloc(1, sizeof *t);
    if (!device || !t) {
        free(device);
        free(t);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->starting, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&t->freed, &steady);
    pthread_condattr_destroy(&steady);
    t->start_cost = 1; /* until it is known */
    t->max = strncmp(name, "torch:cpu", 9) == 0 ? MAX_WORKERS : MAX_ACCELERATOR;
    for (size_t k = 0; k < t->max; k++)
        t->workers[k] = PROCESS_NONE;
    *device = (struct plumb_device){.api_version = PLUMB_DEVICE_API,
                                    .state = t,
                                    .run = torch_run,
                                    .run_raised = torch_run_raised,
                                    .close = torch_close};
    if (copy_options(t, name, options)) {
        device->name = t->name;
        return device;
    }
    torch_close(device);
    return NULL;
}

enum plumb_code torch_device_open(const char *name, const struct plumb_device_options *options,
                                  struct plumb_device **out, struct plumb_error *err)
{
    if (!is_device_name(name + strlen("torch:")))
        return plumb_fail(err, PLUMB_E_ARG,
                          "'%s' is no device of PyTorch; torch:cpu and torch:cuda:0 would be",
                          name);
    struct plumb_device *device = make(name, options);
    if (!device)
        return plumb_no_memory(err);
    struct torch *t = device->state;
    struct plumb_error why = {0};
    enum plumb_code code = find_worker(t->script, sizeof t->script, &why);
    if (!code && !options->lazy)
        code = start(t, &t->workers[0], &why);
    if (code && !options->lazy) {
        torch_close(device);
        return plumb_fail(err, code, "%s: %s", name, why.message);
    }
    if (code) { /* to be told when it matters */
        t->failed_starts = 1;
        t->start_error = why;
    }
    *out = device;
    return PLUMB_OK;
}
