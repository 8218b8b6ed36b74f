/* A worker process: a Python that runs worker.py, behind a socket for messages. Whatever it does
 * (crash, hang, talk nonsense) is an error of the exchange, and the end of it. */
#ifndef DEVICE_PROCESS_H
#define DEVICE_PROCESS_H

#include "base/buf.h"
#include "exec/device/shared.h"

#include <sys/types.h>

struct process {
    pid_t pid;      /* -1: there is none */
    int control;    /* the socket */
    int err;        /* what it says on stderr */
    int life;       /* a pipe that it watches: it ends when this is closed */
    char said[512]; /* the last of it */
    size_t n_said;
    char *scratch; /* the only folder that it may write to; gone when it ends */
    struct shared memory;
};

#define PROCESS_NONE                                                                               \
    ((struct process){.pid = -1, .control = -1, .err = -1, .life = -1, .memory = {.fd = -1}})

/* Starts `python script`; python is looked for in PATH. On failure there is none. */
enum plumb_code process_start(struct process *process, const char *python, const char *script,
                              struct plumb_error *err);

/* False when it has ended although nobody asked it anything. */
bool process_is_there(struct process *process);

/* Sends a message and waits for the answer, `seconds` at most. On failure the process has ended,
 * and the error says how: the signal, the exit code, the last line that it wrote, the time. */
enum plumb_code process_exchange(struct process *process, const struct buf *message, double seconds,
                                 struct buf *answer, struct plumb_error *err);

/* Ends it; one that is idle goes by itself. */
void process_stop(struct process *process);

#endif
