/* MPI as the transport of a crew: all that plumb asks of MPI is in this file.
 *
 * Waiting is sleeping: a receive of MPI would keep a processor busy that others can use. */
#define _GNU_SOURCE
#include "cli/mpi_transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between looks; the pause grows while nothing comes. */
enum { TAG = 1, SHORTEST_NS = 50000, LONGEST_NS = 2000000 };

/* A message that is on its way: MPI wants its bytes until it has arrived. */
struct sending {
    struct sending *next;
    MPI_Request request;
    unsigned to;
    char bytes[];
};

struct mpi {
    struct sending *sending;
    bool *dead;
    unsigned count;
    bool each;  /* a process died: MPI no longer hears "anybody" */
    long pause; /* nanoseconds until the next look */
};

static struct mpi mpi;

/* Forgets what has arrived, and finds out who cannot be reached. */
static void reap(void)
{
    for (struct sending **at = &mpi.sending; *at;) {
        struct sending *sending = *at;
        int done = 0;
        if (MPI_Test(&sending->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
            mpi.dead[sending->to] = true;
            done = 1;
        }
        if (!done) {
            at = &sending->next;
            continue;
        }
        *at = sending->next;
        free(sending);
    }
}

static bool send_bytes(void *context, unsigned to, const void *bytes, size_t size)
{
    (void)context;
    if (size > INT_MAX || mpi.dead[to])
        return false;
    reap();
    struct sending *sending = malloc(sizeof *sending + size);
    if (!sending)
        return false;
    sending->to = to;
    memcpy(sending->bytes, bytes, size);
    if (MPI_Isend(sending->bytes, (int)size, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD,
                  &sending->request) != MPI_SUCCESS) {
        free(sending);
        mpi.dead[to] = true;
        return false;
    }
    sending->next = mpi.sending;
    mpi.sending = sending;
    return true;
}

/* One look from one process, or from any. */
static bool look(int source, MPI_Message *message, MPI_Status *status)
{
    int found = 0;
    if (MPI_Improbe(source, TAG, MPI_COMM_WORLD, &found, message, status) == MPI_SUCCESS)
        return found;
    if (source == MPI_ANY_SOURCE)
        mpi.each = true;
    else
        mpi.dead[source] = true;
    return false;
}

static bool look_around(MPI_Message *message, MPI_Status *status)
{
    if (!mpi.each && look(MPI_ANY_SOURCE, message, status))
        return true;
    for (unsigned i = 0; i < mpi.count && mpi.each; i++)
        if (!mpi.dead[i] && look((int)i, message, status))
            return true;
    return false;
}

static bool take(MPI_Message *message, const MPI_Status *status, struct buf *out)
{
    int size = 0;
    if (MPI_Get_count(status, MPI_BYTE, &size) != MPI_SUCCESS || size < 0)
        return false;
    buf_repeat(out, 0, (size_t)size);
    return !out->failed &&
           MPI_Mrecv(out->data, size, MPI_BYTE, message, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum crew_received receive(void *context, unsigned *from, struct buf *out,
                                  unsigned milliseconds)
{
    (void)context;
    const int64_t end = now_ns() + (int64_t)milliseconds * 1000000;
    for (;;) {
        MPI_Message message;
        MPI_Status status;
        reap();
        if (look_around(&message, &status)) {
            mpi.pause = SHORTEST_NS;
            *from = (unsigned)status.MPI_SOURCE;
            return take(&message, &status, out) ? CREW_MESSAGE : CREW_NOTHING;
        }
        if (mpi.dead[0])
            return CREW_BROKEN;
        if (now_ns() >= end)
            return CREW_NOTHING;
        nanosleep(&(struct timespec){.tv_nsec = mpi.pause}, NULL);
        mpi.pause = mpi.pause * 2 < LONGEST_NS ? mpi.pause * 2 : LONGEST_NS;
    }
}

bool mpi_begin(struct crew_transport *transport)
{
    int provided, me, count;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &me) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &count) != MPI_SUCCESS || provided < MPI_THREAD_SERIALIZED) {
        fputs("plumb-mpi: MPI cannot be started\n", stderr);
        return false;
    }
    mpi.count = (unsigned)count;
    mpi.pause = SHORTEST_NS;
    mpi.dead = calloc(mpi.count, sizeof *mpi.dead);
    *transport = (struct crew_transport){
        .me = (unsigned)me, .count = mpi.count, .send = send_bytes, .receive = receive};
    return mpi.dead;
}

/* MPICH before 4.2 hangs in MPI_Finalize, now and then with two processes that have spoken with
 * each other over a network and always with more: one waits there for another to read, which waits
 * for the launcher and reads no more. */
static bool hangs_at_the_end(bool hosts)
{
#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40200000
    return hosts;
#else
    (void)hosts;
    return false;
#endif
}

void mpi_end(bool clean, bool hosts, int status)
{
    if (!clean || hangs_at_the_end(hosts)) {
        fflush(NULL);
        MPI_Abort(MPI_COMM_WORLD, status);
        _Exit(status);
    }
    while (mpi.sending) {
        reap();
        nanosleep(&(struct timespec){.tv_nsec = SHORTEST_NS}, NULL);
    }
    MPI_Finalize();
    free(mpi.dead);
}
