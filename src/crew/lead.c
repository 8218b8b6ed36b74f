/* Process 0: a thread that speaks with the others, and the lanes that do pieces here. */
#define _GNU_SOURCE
#include "crew/crew.h"

#include "crew/journal.h"
#include "crew/message.h"
#include "crew/pieces.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTEN_MS = 2, GOODBYE_SECONDS = 3 };

struct member {
    bool known, lost, late, gone; /* gone: it has said goodbye */
    bool greeted;
    unsigned lanes, held;
    unsigned number;     /* of its host */
    size_t dry;          /* returns of pieces when there last was none for it, plus one */
    double heard, given; /* when it last finished or got a piece */
    char host[MESSAGE_HOST];
};

/* A piece that the host of a process cannot do: it does not see the files. */
struct refusal {
    size_t piece;
    unsigned who;
};

struct plumb_crew {
    struct crew_transport transport;
    struct crew_options options;
    struct crew_journal journal;
    struct member *members; /* [0] is this process */
    pthread_t thread;

    pthread_mutex_t lock; /* of all below, and of members and journal */
    pthread_cond_t moved;
    const struct crew_job *job; /* NULL: between loops */
    uint64_t serial;            /* of the loop */
    uint64_t chapter;           /* of the loop in the journal */
    struct pieces pieces;
    struct refusal *refusals; /* few */
    size_t refusal_count;
    unsigned lanes; /* of all that are there */
    enum plumb_code code;
    struct plumb_error err; /* why the loop failed */
    bool ending;
    bool unfinished; /* the journal stays */
    double pinged;
};

enum { HOST_UNKNOWN = UINT32_MAX };

static void note(const struct plumb_crew *crew, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(const struct plumb_crew *crew, const char *format, ...)
{
    char text[512];
    va_list values;
    if (!crew->options.note)
        return;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    crew->options.note(crew->options.note_context, text);
}

/* ---- Pieces that are done -------------------------------------------------------------------- */

static void fail(struct plumb_crew *crew, const struct plumb_error *err)
{
    if (!crew->code) {
        crew->code = err->code;
        crew->err = *err;
    }
    pthread_cond_broadcast(&crew->moved);
}

static uint64_t request_hash(const struct plumb_crew *crew, size_t piece)
{
    struct buf request = {0};
    crew->job->ask(crew->job->context, piece, &request);
    const uint64_t hash = crew_hash(request.data, request.size);
    buf_free(&request);
    return hash;
}

static void write_down(struct plumb_crew *crew, size_t piece, const void *reply, size_t size)
{
    struct plumb_error err;
    char text[800];
    if (!crew->journal.open || crew->job->fleeting)
        return;
    const struct crew_entry entry = {
        .job = crew->chapter, .piece = piece, .request = request_hash(crew, piece), .size = size};
    if (crew_journal_add(&crew->journal, &entry, reply, &err))
        note(crew, "the journal ends here: %s", plumb_error_text(&err, text, sizeof text));
}

/* A reply, the first or a late one. False when it is no good. */
static bool deliver(struct plumb_crew *crew, size_t piece, const void *reply, size_t size)
{
    const struct crew_job *job = crew->job;
    if (crew->pieces.list[piece].done)
        return true;
    if (!job->take(job->context, piece, reply, size, false))
        return false;
    pieces_done(&crew->pieces, piece, crew_now());
    write_down(crew, piece, reply, size);
    if (!crew->pieces.left)
        pthread_cond_broadcast(&crew->moved);
    return true;
}

/* What an earlier start has finished. */
static void resume(struct plumb_crew *crew)
{
    size_t taken = 0;
    for (size_t k = 0; k < crew->journal.count && crew->journal.open && !crew->job->fleeting; k++) {
        const struct crew_entry *entry = &crew->journal.entries[k];
        struct buf reply = {0};
        if (entry->job != crew->chapter || entry->piece >= crew->pieces.count ||
            crew->pieces.list[entry->piece].done ||
            request_hash(crew, (size_t)entry->piece) != entry->request)
            continue;
        if (crew_journal_read(&crew->journal, entry, &reply) &&
            crew->job->take(crew->job->context, (size_t)entry->piece, reply.data, reply.size,
                            true)) {
            pieces_done(&crew->pieces, (size_t)entry->piece, 0);
            taken++;
        }
        buf_free(&reply);
    }
    if (taken)
        note(crew, "%zu of %zu pieces are finished already, by an earlier start", taken,
             crew->pieces.count);
}

/* ---- Lanes of this process ------------------------------------------------------------------- */

/* Where not all pieces can go to all: after there was none for a process, one has to come back, or
 * somebody has to be lost, before there is one again. */
static size_t next_for(struct plumb_crew *crew, unsigned who, double now)
{
    struct member *member = &crew->members[who];
    const size_t dry = crew->pieces.returns + 1;
    size_t piece = PIECE_NONE;
    if (!crew->job->has || member->dry != dry)
        piece = pieces_give(&crew->pieces, who, now);
    if (piece == PIECE_NONE)
        member->dry = dry;
    if (piece == PIECE_NONE && !crew->job->slow)
        piece = pieces_double(&crew->pieces, who, now);
    return piece;
}

static void wait_a_little(struct plumb_crew *crew)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&crew->moved, &crew->lock, &until);
}

/* Whether there is something left that is wanted. */
static bool goes_on(const struct plumb_crew *crew)
{
    return crew->job && crew->pieces.left && !crew->code &&
           !(crew->job->over && crew->job->over(crew->job->context));
}

static void *work(void *context)
{
    struct plumb_crew *crew = context;
    pthread_mutex_lock(&crew->lock);
    while (goes_on(crew)) {
        const size_t piece = next_for(crew, 0, crew_now());
        if (piece == PIECE_NONE) {
            wait_a_little(crew);
            continue;
        }
        struct buf reply = {0};
        pthread_mutex_unlock(&crew->lock);
        crew->job->work(crew->job->context, piece, &reply);
        pthread_mutex_lock(&crew->lock);
        if (reply.failed || !deliver(crew, piece, reply.data, reply.size)) {
            struct plumb_error err;
            plumb_no_memory(&err);
            fail(crew, &err);
        }
        buf_free(&reply);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static bool may_do(const void *context, size_t piece, unsigned who);

enum plumb_code crew_run(struct plumb_crew *crew, const struct crew_job *job,
                         struct plumb_error *err)
{
    pthread_t lanes[MESSAGE_LANES];
    unsigned started = 0;
    pthread_mutex_lock(&crew->lock);
    crew->serial++;
    crew->chapter += !job->fleeting;
    crew->code = PLUMB_OK;
    if (!pieces_init(&crew->pieces, job->count, job->has)) {
        pthread_mutex_unlock(&crew->lock);
        return plumb_no_memory(err);
    }
    crew->pieces.may = may_do;
    crew->pieces.context = crew;
    crew->job = job;
    resume(crew);
    pthread_mutex_unlock(&crew->lock);

    while (started + 1 < crew->options.lanes &&
           pthread_create(&lanes[started], NULL, work, crew) == 0)
        started++;
    work(crew);
    while (started)
        pthread_join(lanes[--started], NULL);

    pthread_mutex_lock(&crew->lock);
    crew->job = NULL;
    for (unsigned i = 0; i < crew->transport.count; i++) {
        crew->members[i].held = 0;
        crew->members[i].dry = 0;
    }
    pieces_free(&crew->pieces);
    free(crew->refusals);
    crew->refusals = NULL;
    crew->refusal_count = 0;
    const enum plumb_code code = crew->code;
    if (code && err)
        *err = crew->err;
    pthread_mutex_unlock(&crew->lock);
    return code;
}

unsigned crew_lanes(const struct plumb_crew *crew)
{
    return crew->options.lanes;
}

unsigned crew_lanes_of_all(const struct plumb_crew *crew)
{
    return crew->options.lanes * crew->transport.count;
}

const struct crew_places *crew_places_of(const struct plumb_crew *crew)
{
    return crew->options.places;
}

bool crew_has_hosts(struct plumb_crew *crew)
{
    bool others = false;
    pthread_mutex_lock(&crew->lock);
    for (unsigned i = 1; i < crew->transport.count; i++)
        others = others || (crew->members[i].known &&
                            strcmp(crew->members[i].host, crew->members[0].host) != 0);
    pthread_mutex_unlock(&crew->lock);
    return others;
}

/* Those that have neither been heard nor are lost for good. */
static unsigned count_unheard(const struct plumb_crew *crew, bool waiting)
{
    unsigned count = 0;
    for (unsigned i = 1; i < crew->transport.count; i++)
        count += !crew->members[i].greeted && !(waiting && crew->members[i].lost);
    return count;
}

enum plumb_code crew_hosts(struct plumb_crew *crew, struct crew_hosts *hosts, struct arena *arena,
                           struct plumb_error *err)
{
    const double end = crew_now() + crew->options.patience;
    *hosts = (struct crew_hosts){
        .names = arena_array(arena, crew->transport.count, sizeof *hosts->names)};
    if (!hosts->names)
        return plumb_no_memory(err);
    pthread_mutex_lock(&crew->lock);
    while (count_unheard(crew, true) && crew_now() < end)
        wait_a_little(crew);
    hosts->unheard = count_unheard(crew, false);
    bool fine = true;
    for (unsigned i = 0; i < crew->transport.count && fine; i++) {
        struct member *member = &crew->members[i];
        unsigned at = 0;
        member->number = HOST_UNKNOWN;
        if (i && !member->greeted)
            continue;
        while (at < hosts->count && strcmp(hosts->names[at], member->host) != 0)
            at++;
        if (at == hosts->count)
            fine = (hosts->names[hosts->count++] =
                        arena_copy(arena, member->host, strlen(member->host)));
        member->number = at;
    }
    pthread_mutex_unlock(&crew->lock);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}

void crew_keep_journal(struct plumb_crew *crew)
{
    crew->unfinished = true;
}

/* ---- Pieces that some hosts cannot do -------------------------------------------------------- */

static bool has_refused(const struct plumb_crew *crew, size_t piece, unsigned who)
{
    for (size_t i = 0; i < crew->refusal_count; i++)
        if (crew->refusals[i].piece == piece &&
            strcmp(crew->members[crew->refusals[i].who].host, crew->members[who].host) == 0)
            return true;
    return false;
}

static bool can_do(const struct plumb_crew *crew, size_t piece, unsigned who)
{
    const struct crew_job *job = crew->job;
    const unsigned host = crew->members[who].number;
    return (!job->has || (host != HOST_UNKNOWN && job->has(job->context, piece, host))) &&
           !has_refused(crew, piece, who);
}

/* Every other host is asked once, if it has what the piece is about. Then process 0 does it, whose
 * word on it is the last. */
static bool may_do(const void *context, size_t piece, unsigned who)
{
    const struct plumb_crew *crew = context;
    if (who || (crew->job->has && can_do(crew, piece, 0)))
        return can_do(crew, piece, who);
    for (unsigned i = 1; i < crew->transport.count; i++) {
        const struct member *member = &crew->members[i];
        if (member->known && member->lanes && !member->lost && !member->late &&
            can_do(crew, piece, i))
            return false;
    }
    return true;
}

static void refuse(struct plumb_crew *crew, size_t piece, unsigned who)
{
    struct refusal *grown = realloc(crew->refusals, (crew->refusal_count + 1) * sizeof *grown);
    if (grown) {
        crew->refusals = grown;
        grown[crew->refusal_count++] = (struct refusal){piece, who};
    }
    pieces_return(&crew->pieces, piece, true);
}

/* ---- The others ------------------------------------------------------------------------------ */

static bool tell(struct plumb_crew *crew, unsigned to, struct message *message)
{
    struct buf bytes = {0};
    struct pack pack = pack_writer(&bytes);
    message_pack(&pack, message);
    const bool sent = pack_good(&pack) &&
                      crew->transport.send(crew->transport.context, to, bytes.data, bytes.size);
    buf_free(&bytes);
    return sent;
}

static void lose(struct plumb_crew *crew, unsigned who)
{
    struct member *member = &crew->members[who];
    if (member->lost || member->gone)
        return;
    member->lost = true;
    member->held = 0;
    crew->lanes -= member->known ? member->lanes : 0;
    if (crew->job)
        pieces_return_all(&crew->pieces, who);
    crew->pieces.returns++;
    if (!crew->ending)
        note(crew, "process %u on %s is lost; its pieces are done again elsewhere", who,
             member->host);
}

static void give(struct plumb_crew *crew, unsigned who, size_t piece)
{
    struct member *member = &crew->members[who];
    struct buf request = {0};
    crew->job->ask(crew->job->context, piece, &request);
    struct message message = {.kind = MESSAGE_PIECE,
                              .job = crew->serial,
                              .piece = piece,
                              .handler = crew->job->kind,
                              .handler_size = strlen(crew->job->kind),
                              .body = request.data,
                              .body_size = request.size};
    if (request.failed) {
        pieces_return(&crew->pieces, piece, false);
    } else if (tell(crew, who, &message)) {
        member->held++;
        member->given = crew_now();
    } else {
        lose(crew, who);
    }
    buf_free(&request);
}

/* One more than it has lanes, so that none waits for the post; not when few are left. */
static void hand_out(struct plumb_crew *crew)
{
    const double now = crew_now();
    for (unsigned who = 1; who < crew->transport.count; who++) {
        const struct member *member = &crew->members[who];
        while (member->known && member->lanes && !member->lost && !member->late) {
            const bool many = crew->pieces.left - crew->pieces.out > crew->lanes;
            if (member->held >= member->lanes + many)
                break;
            const size_t piece = next_for(crew, who, now);
            if (piece == PIECE_NONE)
                break;
            give(crew, who, piece);
        }
    }
}

/* Who has been silent over its pieces for too long gets no more until it speaks. */
static void watch(struct plumb_crew *crew)
{
    const double now = crew_now();
    for (unsigned who = 1; who < crew->transport.count && crew->job; who++) {
        struct member *member = &crew->members[who];
        const double since = member->heard > member->given ? member->heard : member->given;
        if (!member->held || member->lost || member->late || now - since <= crew->options.patience)
            continue;
        member->late = true;
        member->held = 0;
        pieces_return_all(&crew->pieces, who);
        crew->pieces.returns++;
        note(crew,
             "process %u on %s has not answered for %.0f s; its pieces are done again "
             "elsewhere",
             who, member->host, crew->options.patience);
    }
    if (now - crew->pinged < MESSAGE_PING_SECONDS || crew->ending) /* the end is the last word */
        return;
    crew->pinged = now;
    for (unsigned who = 1; who < crew->transport.count; who++)
        if (!crew->members[who].lost && !crew->members[who].gone &&
            !tell(crew, who, &(struct message){.kind = MESSAGE_PING}))
            lose(crew, who);
}

static void greet(struct plumb_crew *crew, unsigned who, const struct message *message)
{
    struct member *member = &crew->members[who];
    const char *version = plumb_version();
    snprintf(member->host, sizeof member->host, "%.*s", (int)message->host_size,
             (const char *)message->host);
    member->greeted = true;
    pthread_cond_broadcast(&crew->moved);
    if (message->version_size != strlen(version) ||
        memcmp(message->version, version, message->version_size) != 0) {
        note(crew, "process %u on %s is of another version and gets no work", who, member->host);
        return;
    }
    crew->lanes += member->known ? 0 : message->lanes;
    member->lanes = message->lanes;
    member->known = true;
}

static void hear_reply(struct plumb_crew *crew, unsigned who, const struct message *message)
{
    struct member *member = &crew->members[who];
    member->late = false;
    if (!crew->job || message->job != crew->serial || message->piece >= crew->pieces.count)
        return; /* of a loop that others have finished */
    const size_t piece = (size_t)message->piece;
    member->held -= member->held > 0;
    if (message->kind == MESSAGE_CANNOT || !deliver(crew, piece, message->body, message->body_size))
        refuse(crew, piece, who);
}

static void hear(struct plumb_crew *crew, unsigned who, const struct buf *bytes)
{
    struct message message = {0};
    struct pack pack = pack_reader(bytes->data, bytes->size);
    message_pack(&pack, &message);
    if (!pack_good(&pack) || !who || who >= crew->transport.count)
        return;
    crew->members[who].heard = crew_now();
    if (message.kind == MESSAGE_HELLO)
        greet(crew, who, &message);
    else if (message.kind == MESSAGE_REPLY || message.kind == MESSAGE_CANNOT)
        hear_reply(crew, who, &message);
    else if (message.kind == MESSAGE_BYE)
        crew->members[who].gone = true;
}

static bool all_gone(const struct plumb_crew *crew)
{
    for (unsigned who = 1; who < crew->transport.count; who++)
        if (!crew->members[who].gone)
            return false;
    return true;
}

static bool any_left(const struct plumb_crew *crew)
{
    for (unsigned who = 1; who < crew->transport.count; who++)
        if (!crew->members[who].gone && !crew->members[who].lost)
            return true;
    return false;
}

/* The only thread that uses the transport. */
static void *speak(void *context)
{
    struct plumb_crew *crew = context;
    double end = 0;
    for (;;) {
        struct buf message = {0};
        unsigned from = 0;
        const enum crew_received got =
            crew->transport.receive(crew->transport.context, &from, &message, LISTEN_MS);
        pthread_mutex_lock(&crew->lock);
        if (got == CREW_MESSAGE)
            hear(crew, from, &message);
        buf_free(&message);
        if (got == CREW_BROKEN)
            for (unsigned who = 1; who < crew->transport.count; who++)
                lose(crew, who);
        if (goes_on(crew))
            hand_out(crew);
        watch(crew);
        if (crew->ending && !end) {
            end = crew_now() + GOODBYE_SECONDS;
            for (unsigned who = 1; who < crew->transport.count; who++)
                if (!crew->members[who].lost)
                    tell(crew, who, &(struct message){.kind = MESSAGE_END});
        }
        const bool over = crew->ending && (!any_left(crew) || crew_now() > end);
        pthread_mutex_unlock(&crew->lock);
        if (over)
            return NULL;
    }
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

enum plumb_code crew_new(struct plumb_crew **out, const struct crew_transport *transport,
                         const struct crew_options *options, struct plumb_error *err)
{
    struct plumb_crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return plumb_no_memory(err);
    crew->transport = *transport;
    crew->options = *options;
    if (!(crew->options.patience > 0))
        crew->options.patience = MESSAGE_PATIENCE;
    if (!crew->options.lanes || crew->options.lanes > MESSAGE_LANES)
        crew->options.lanes = crew->options.lanes ? MESSAGE_LANES : 1;
    crew->lanes = crew->options.lanes;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->moved, NULL);
    crew->members = calloc(transport->count, sizeof *crew->members);
    enum plumb_code code = crew->members ? PLUMB_OK : plumb_no_memory(err);
    for (unsigned i = 0; i < transport->count && !code; i++)
        snprintf(crew->members[i].host, sizeof crew->members[i].host, "an unknown host");
    if (!code)
        gethostname(crew->members[0].host, sizeof crew->members[0].host - 1);
    if (!code && options->scratch)
        code = crew_journal_open(&crew->journal, options->scratch, options->identity,
                                 options->identity_size, err);
    if (!code && pthread_create(&crew->thread, NULL, speak, crew) != 0)
        code = plumb_fail(err, PLUMB_E_NOMEM, "cannot start a thread");
    if (!code) {
        *out = crew;
        return PLUMB_OK;
    }
    crew_journal_close(&crew->journal, false);
    free(crew->members);
    free(crew);
    return code;
}

bool crew_free(struct plumb_crew *crew, bool finished)
{
    if (!crew)
        return true;
    pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    pthread_mutex_unlock(&crew->lock);
    pthread_join(crew->thread, NULL);
    const bool clean = all_gone(crew);
    crew_journal_close(&crew->journal, finished && !crew->unfinished);
    pthread_mutex_destroy(&crew->lock);
    pthread_cond_destroy(&crew->moved);
    free(crew->members);
    free(crew);
    return clean;
}
