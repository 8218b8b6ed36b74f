/* The thread pool. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MAX_THREADS = 256 };

struct job {
    atomic_size_t next;
    size_t count;
    void (*work)(void *context, size_t i, unsigned thread);
    void *context;
};

struct worker {
    struct job *job;
    unsigned number;
    pthread_t handle;
};

static void *run_worker(void *argument)
{
    struct worker *self = argument;
    struct job *job = self->job;
    for (;;) {
        size_t i = atomic_fetch_add(&job->next, 1);
        if (i >= job->count)
            return NULL;
        job->work(job->context, i, self->number);
    }
}

void pool_run(unsigned threads, size_t count,
              void (*work)(void *context, size_t i, unsigned thread), void *context)
{
    struct job job = {.count = count, .work = work, .context = context};
    struct worker workers[MAX_THREADS];

    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > count)
        threads = (unsigned)count;

    unsigned started = 1;
    for (; started < threads; started++) {
        workers[started] = (struct worker){.job = &job, .number = started};
        if (pthread_create(&workers[started].handle, NULL, run_worker, &workers[started]) != 0)
            break;
    }
    workers[0] = (struct worker){.job = &job, .number = 0};
    run_worker(&workers[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(workers[i].handle, NULL);
}

unsigned pool_default_threads(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : (unsigned)count;
}
