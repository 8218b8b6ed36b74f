/* A crew of forked processes over sockets: what mpirun is to plumb-mpi. Include after cmocka.h. */
#ifndef CREW_SOCKETS_H
#define CREW_SOCKETS_H

#include "crew/crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKETS_MOST = 16, SOCKETS_BYTES = 1 << 16 };

struct sockets {
    unsigned count;
    int fds[SOCKETS_MOST]; /* to each process; of a process that serves, to process 0 at 0 */
    pid_t pids[SOCKETS_MOST];
};

static inline bool sockets_send(void *context, unsigned to, const void *bytes, size_t size)
{
    const struct sockets *sockets = context;
    const ssize_t sent = send(sockets->fds[to], bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent == (ssize_t)size || (sent < 0 && errno == EAGAIN);
}

static inline enum crew_received sockets_receive(void *context, unsigned *from, struct buf *out,
                                                 unsigned milliseconds)
{
    struct sockets *sockets = context;
    struct pollfd polled[SOCKETS_MOST];
    static char bytes[SOCKETS_BYTES];
    for (unsigned i = 0; i < sockets->count; i++)
        polled[i] = (struct pollfd){.fd = sockets->fds[i], .events = POLLIN};
    if (poll(polled, sockets->count, (int)milliseconds) <= 0)
        return CREW_NOTHING;
    for (unsigned i = 0; i < sockets->count; i++) {
        if (polled[i].fd < 0 || !(polled[i].revents & (POLLIN | POLLHUP)))
            continue;
        const ssize_t got = recv(polled[i].fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got > 0) {
            *from = i;
            buf_append(out, bytes, (size_t)got);
            return CREW_MESSAGE;
        }
        if (got == 0 && sockets->pids[0]) { /* it is gone, and sending to it fails from now on */
            polled[i].fd = -1;
            close(sockets->fds[i]);
            sockets->fds[i] = -1;
        } else if (got == 0) {
            return CREW_BROKEN;
        }
    }
    return CREW_NOTHING;
}

/* Starts count - 1 processes that run serve(number) until they end; the caller is process 0. */
static inline struct crew_transport
sockets_start(struct sockets *sockets, unsigned count,
              void (*serve)(const struct crew_transport *transport))
{
    *sockets = (struct sockets){.count = count};
    sockets->fds[0] = -1;
    sockets->pids[0] = getpid();
    for (unsigned i = 1; i < count; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        sockets->pids[i] = fork();
        assert_true(sockets->pids[i] >= 0);
        if (sockets->pids[i] == 0) {
            for (unsigned k = 1; k < i; k++)
                close(sockets->fds[k]);
            close(pair[0]);
            struct sockets own = {.count = 1, .fds = {pair[1]}};
            const struct crew_transport transport = {i, count, &own, sockets_send, sockets_receive};
            serve(&transport);
            _exit(0);
        }
        close(pair[1]);
        sockets->fds[i] = pair[0];
    }
    return (struct crew_transport){0, count, sockets, sockets_send, sockets_receive};
}

static inline void sockets_end(struct sockets *sockets)
{
    for (unsigned i = 1; i < sockets->count; i++) {
        kill(sockets->pids[i], SIGKILL);
        waitpid(sockets->pids[i], NULL, 0);
        if (sockets->fds[i] >= 0)
            close(sockets->fds[i]);
    }
}

#endif
