/* A line with a clock, for work that cannot say how far it is. */
#define _GNU_SOURCE
#include "cli/progress.h"

#include "cli/terminal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct waiting {
    const char *what;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool ended;
};

static void draw(const struct waiting *waiting, unsigned seconds)
{
    char line[256];
    const unsigned columns = terminal_width(STDERR_FILENO);
    snprintf(line, sizeof line, "%s: %u s", waiting->what, seconds);
    fprintf(stderr, "\r%.*s\033[K", columns ? (int)columns - 1 : (int)sizeof line, line);
    fflush(stderr);
}

static void *tick(void *context)
{
    struct waiting *waiting = context;
    struct timespec at;
    unsigned seconds = 0;
    clock_gettime(CLOCK_MONOTONIC, &at);
    pthread_mutex_lock(&waiting->lock);
    while (!waiting->ended) {
        at.tv_sec++;
        while (!waiting->ended &&
               pthread_cond_clockwait(&waiting->done, &waiting->lock, CLOCK_MONOTONIC, &at) == 0)
            ;
        if (!waiting->ended)
            draw(waiting, ++seconds);
    }
    pthread_mutex_unlock(&waiting->lock);
    if (seconds)
        fputs("\r\033[K", stderr);
    return NULL;
}

struct waiting *waiting_begin(const char *what)
{
    struct waiting *waiting = isatty(STDERR_FILENO) ? calloc(1, sizeof *waiting) : NULL;
    if (!waiting)
        return NULL;
    waiting->what = what;
    pthread_mutex_init(&waiting->lock, NULL);
    pthread_cond_init(&waiting->done, NULL);
    if (pthread_create(&waiting->thread, NULL, tick, waiting) == 0)
        return waiting;
    free(waiting);
    return NULL;
}

void waiting_end(struct waiting *waiting)
{
    if (!waiting)
        return;
    pthread_mutex_lock(&waiting->lock);
    waiting->ended = true;
    pthread_cond_signal(&waiting->done);
    pthread_mutex_unlock(&waiting->lock);
    pthread_join(waiting->thread, NULL);
    pthread_cond_destroy(&waiting->done);
    pthread_mutex_destroy(&waiting->lock);
    free(waiting);
}
