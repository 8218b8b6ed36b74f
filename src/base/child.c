/* Programs that plumb starts, and how long it waits for them. */
#define _GNU_SOURCE
#include "base/child.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_FREE = 16 };

int child_start(pid_t *pid, const struct child *child)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error)
        goto out_actions;

    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    const int session = child->own_session ? POSIX_SPAWN_SETSID : 0;
    posix_spawnattr_setflags(&attributes,
                             (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | session));
    for (int i = 0; i < child->n_given && !error; i++)
        error = child->given[i] >= 0
                    ? posix_spawn_file_actions_adddup2(&actions, child->given[i], i)
                    : posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    /* posix_spawn does not write to the arguments. */
    char *const *argv = (char *const *)(uintptr_t)child->arguments;
    if (!error)
        error = (child->search ? posix_spawnp
                               : posix_spawn)(pid, child->file, &actions, &attributes, argv,
                                              child->environment ? child->environment : environ);
    posix_spawnattr_destroy(&attributes);
out_actions:
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool child_raise(int *fd)
{
    const int raised = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_FREE);
    child_close(fd);
    *fd = raised;
    return raised >= 0;
}

void child_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int64_t child_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int child_time_left(int64_t deadline)
{
    const int64_t left = deadline - child_now_ms();
    return left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}
