/* How the processes of a crew speak with each other: all that the crew wants of MPI.
 *
 * One thread of a process uses its transport. Messages between two processes keep their order. */
#ifndef CREW_TRANSPORT_H
#define CREW_TRANSPORT_H

#include "base/buf.h"

enum crew_received { CREW_NOTHING, CREW_MESSAGE, CREW_BROKEN };

struct crew_transport {
    unsigned me, count; /* process 0 leads */
    void *context;

    /* Copies the bytes and does not wait for the other. False: it cannot be reached any more. */
    bool (*send)(void *context, unsigned to, const void *bytes, size_t size);

    /* Puts one message into an empty buf, waiting so long at most. CREW_BROKEN: no process can be
     * heard any more. */
    enum crew_received (*receive)(void *context, unsigned *from, struct buf *message,
                                  unsigned milliseconds);
};

#endif
