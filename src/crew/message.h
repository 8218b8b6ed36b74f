/* What the processes of a crew say to each other. */
#ifndef CREW_MESSAGE_H
#define CREW_MESSAGE_H

#include "base/pack.h"

#include <time.h>

enum message_kind {
    MESSAGE_HELLO,  /* to process 0: version, host and lanes */
    MESSAGE_PIECE,  /* from it: job, piece, kind and request */
    MESSAGE_REPLY,  /* to it: job, piece and reply */
    MESSAGE_CANNOT, /* to it: job and piece, which has to go elsewhere */
    MESSAGE_PING,   /* from it, now and then */
    MESSAGE_END,    /* from it: no more will come */
    MESSAGE_BYE,    /* to it, the last word */
    MESSAGE_KINDS
};

enum { MESSAGE_HOST = 64, MESSAGE_LANES = 256 };
#define MESSAGE_PING_SECONDS 2.0
#define MESSAGE_PATIENCE 60.0

/* All that any of them has; the texts and bytes read are those of the message. */
struct message {
    enum message_kind kind;
    uint64_t job, piece;
    unsigned lanes;
    const void *version, *host, *handler, *body;
    size_t version_size, host_size, handler_size, body_size;
};

void message_pack(struct pack *pack, struct message *message);

static inline double crew_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
