/* The threads that compute with the process's tensors. */
#define _GNU_SOURCE
#include "team.h"

#include "base/pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* -- OpenMP ------------------------------------------------------------------------------------ */

/* What GCC's libgomp has for compiled code, and LLVM's and Intel's OpenMP too. */
static struct {
    void (*parallel)(void (*work)(void *), void *data, unsigned threads, unsigned flags);
    int (*number)(void);
    int (*most)(void);
} openmp;

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards openmp until it is found, and every pace */
static atomic_bool found;
static atomic_bool forked; /* the team stayed with the parent */

static void after_fork(void)
{
    atomic_store(&forked, true);
}

static bool find_openmp(void)
{
    void *library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        library = RTLD_DEFAULT;
    *(void **)&openmp.parallel = dlsym(library, "GOMP_parallel");
    *(void **)&openmp.number = dlsym(library, "omp_get_thread_num");
    *(void **)&openmp.most = dlsym(library, "omp_get_max_threads");
    return openmp.parallel && openmp.number && openmp.most &&
           pthread_atfork(NULL, NULL, after_fork) == 0;
}

/* Looks again until there is one: PyTorch may be imported later. */
static bool has_openmp(void)
{
    if (atomic_load(&found))
        return true;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&found))
        atomic_store(&found, find_openmp());
    pthread_mutex_unlock(&lock);
    return atomic_load(&found);
}

/* -- Threads ----------------------------------------------------------------------------------- */

struct job {
    atomic_size_t next;
    size_t count;
    void (*work)(void *context, size_t i, unsigned thread);
    void *context;
};

static void run_member(void *argument)
{
    struct job *job = argument;
    const unsigned thread = (unsigned)openmp.number();
    for (size_t i; (i = atomic_fetch_add(&job->next, 1)) < job->count;)
        job->work(job->context, i, thread);
}

static unsigned size_of_team(unsigned most)
{
    unsigned size = pool_default_threads();
    if (has_openmp())
        size = atomic_load(&forked) || openmp.most() < 1 ? 1 : (unsigned)openmp.most();
    return size < most ? size : most;
}

static void run_on(unsigned threads, struct job *job)
{
    if (threads > 1 && has_openmp())
        openmp.parallel(run_member, job, threads, 0);
    else
        pool_run(threads, job->count, job->work, job->context);
}

/* -- Alone or together ------------------------------------------------------------------------- */

enum {
    LOOK_AGAIN = 64
}; /* every so many runs the slower way is tried: other work has its phases */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool choose_together(struct team_pace *pace)
{
    pthread_mutex_lock(&lock);
    bool together = pace->together < pace->alone;
    if (++pace->runs % LOOK_AGAIN == 0 || (together ? pace->alone : pace->together) == 0)
        together = !together;
    pthread_mutex_unlock(&lock);
    return together;
}

static void learn(double *pace, double seconds)
{
    pthread_mutex_lock(&lock);
    *pace = *pace > 0 ? 0.75 * *pace + 0.25 * seconds : seconds;
    pthread_mutex_unlock(&lock);
}

unsigned team_run(struct team_pace *pace, unsigned most, size_t count,
                  void (*work)(void *context, size_t i, unsigned thread), void *context)
{
    struct job job = {.count = count, .work = work, .context = context};
    const unsigned size = most > 1 && count > 1 ? size_of_team(most) : 1;
    if (size < 2) {
        run_on(1, &job);
        return 1;
    }
    const bool together = choose_together(pace);
    const unsigned threads = together ? size : 1;
    const double start = now();
    run_on(threads, &job);
    learn(together ? &pace->together : &pace->alone, (now() - start) / (double)count);
    return threads;
}
