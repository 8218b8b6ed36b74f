/* Programs that plumb starts, and how long it waits for them. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    const char *file; /* with search: a name to look for in PATH */
    bool search;
    bool own_session;             /* a terminal's Ctrl-C does not reach it, nor it the terminal */
    const char *const *arguments; /* file first, NULL last */
    char *const *environment;     /* NULL: ours */
    const int *given; /* its descriptors 0, 1, ...; -1: /dev/null. None of them below n_given */
    int n_given;
};

/* Starts it with no signal blocked and none caught, whatever our caller does. 0, or an errno. */
int child_start(pid_t *pid, const struct child *child);

/* Puts a descriptor out of the way of the numbers that children expect. False when there is no
 * room; it is closed then. */
bool child_raise(int *fd);

/* Closes it, if it is open, and forgets it. */
void child_close(int *fd);

/* A clock for deadlines, and what poll may wait until one: 0 when it has passed. */
int64_t child_now_ms(void);
int child_time_left(int64_t deadline);

#endif
