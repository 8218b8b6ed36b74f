/* Work that several processes share.
 *
 * Process 0 leads: it runs the command as the plain program would, and hands pieces of its loops to
 * whoever is idle, itself included. A piece is a request, bytes that say all there is to know; its
 * result is a reply, bytes that are checked like any input. So a piece can be done by anybody, and
 * again by somebody else when the first one dies or hangs: the first good reply counts, others are
 * dropped. Replies also go to a journal, from which the next start of the same command takes what
 * is finished. */
#ifndef CREW_CREW_H
#define CREW_CREW_H

#include "crew/places.h"
#include "crew/transport.h"
#include "plumb/error.h"

#include <stdint.h>

struct plumb_crew;

struct crew_options {
    unsigned lanes;      /* pieces that this process does side by side; at least 1 */
    double patience;     /* seconds that a process may be silent over a piece; 0: a minute */
    const char *scratch; /* folder of the journal; NULL: none is kept */
    const struct crew_places *places; /* of this host; NULL: files are where they are called */
    const void *identity; /* what makes two starts the same: their journal is the same file */
    size_t identity_size;
    void (*note)(void *context, const char *text); /* a line for people; from any thread */
    void *note_context;
};

/* A loop of pieces. */
struct crew_job {
    const char *kind; /* of the handler that the others have for it */
    size_t count;
    void *context;
    bool slow;     /* pieces may take minutes, or change files: none is given out twice before the
                * patience is over */
    bool fleeting; /* not for the journal: doing it again is as quick */

    /* Writes what another process has to know; several threads may ask at once. */
    void (*ask)(void *context, size_t piece, struct buf *request);
    /* Does a piece here; several threads at once. */
    void (*work)(void *context, size_t piece, struct buf *reply);
    /* Takes a reply, one at a time, in any order, each piece once. False, with nothing changed:
     * it is damaged, or (resumed: it is from the journal) what it is about has changed since. */
    bool (*take)(void *context, size_t piece, const void *reply, size_t size, bool resumed);
    /* Whether the rest is not wanted any more; under the same lock as take. NULL: all is. */
    bool (*over)(void *context);
    /* Whether a host, by its number in crew_hosts, has what a piece is about; under the same lock.
     * A piece goes only there. When all who have it refuse or are lost, process 0 is asked to do
     * it, and has to know what that means. NULL: all have all. */
    bool (*has)(void *context, size_t piece, unsigned host);
};

/* Leads. Keeps the transport until crew_free. Fails when memory or threads cannot be had, or the
 * journal cannot be written. */
enum plumb_code crew_new(struct plumb_crew **crew, const struct crew_transport *transport,
                         const struct crew_options *options, struct plumb_error *err);

/* Does all pieces. One loop at a time; from the thread that made the crew. */
enum plumb_code crew_run(struct plumb_crew *crew, const struct crew_job *job,
                         struct plumb_error *err);

/* As the options had it. */
unsigned crew_lanes(const struct plumb_crew *crew);        /* at least 1 */
unsigned crew_lanes_of_all(const struct plumb_crew *crew); /* of all processes together */
const struct crew_places *crew_places_of(const struct plumb_crew *crew);

/* Whether a process on another host has been heard; between loops. */
bool crew_has_hosts(struct plumb_crew *crew);

/* Host names, each once; that of process 0 is the first. */
struct crew_hosts {
    const char **names; /* in the arena of the caller */
    unsigned count;
    unsigned unheard; /* processes that have not said where they are */
};

/* Waits until all processes have been heard, or for the patience, and numbers their hosts; between
 * loops. PLUMB_E_NOMEM. */
enum plumb_code crew_hosts(struct plumb_crew *crew, struct crew_hosts *hosts, struct arena *arena,
                           struct plumb_error *err);

/* What every host is asked for itself. */
struct crew_question {
    const char *kind; /* of the handler that the others have for it */
    void *context;
    /* Writes what they have to know; several threads may ask at once. */
    void (*ask)(void *context, struct buf *request);
    /* What this host says. */
    void (*here)(void *context, struct buf *reply);
    /* Takes what a host says, one at a time; no bytes: it is lost. False: they are damaged. */
    bool (*take)(void *context, unsigned host, const void *reply, size_t size);
};

/* Asks all hosts, as crew_hosts numbers them. Fails as crew_run does. */
enum plumb_code crew_ask_hosts(struct plumb_crew *crew, const struct crew_question *question,
                               unsigned hosts, struct plumb_error *err);

/* Something is left for the next start: the journal stays. */
void crew_keep_journal(struct plumb_crew *crew);

/* Tells the others to end. finished: the journal is removed, else kept for the next start. True
 * when all have said goodbye; false when some are dead or hang. NULL is fine: true. */
bool crew_free(struct plumb_crew *crew, bool finished);

/* What a process that does not lead knows to do. */
struct crew_handler {
    const char *kind;
    void *context;
    /* Several threads at once. False: it cannot, and the piece goes elsewhere. */
    bool (*answer)(void *context, const void *request, size_t size, struct buf *reply);
};

struct crew_serving {
    const struct crew_handler *handlers;
    size_t count;
    unsigned lanes;  /* 0: it does nothing, and waits for the end */
    double patience; /* seconds without a word from process 0; 0: a minute */
};

/* Does pieces until process 0 says that it is over. PLUMB_E_IO when it is not heard any more; some
 * threads may still be at work then, and the process is to end. */
enum plumb_code crew_serve(const struct crew_transport *transport,
                           const struct crew_serving *serving, struct plumb_error *err);

/* How a command that a process cannot do without its own preparations joins in: it does these, and
 * then serves with a handler of its own. */
struct plumb_helping {
    const struct crew_transport *transport;
    struct crew_serving serving; /* with the handlers that need no preparations */
    bool begun;                  /* crew_help was called */
};

/* Serves, with one more handler. */
enum plumb_code crew_help(struct plumb_helping *helping, const struct crew_handler *handler,
                          struct plumb_error *err);

#endif
