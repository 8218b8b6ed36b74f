/* A process that does pieces for process 0: one thread speaks, the lanes work. */
#define _GNU_SOURCE
#include "crew/crew.h"

#include "crew/message.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTEN_MS = 1 };

/* A message on its way to a lane, or from one. */
struct letter {
    struct letter *next;
    struct buf bytes;
};

struct letters {
    struct letter *first, **last;
};

/* Lives as long as the last lane, which may hang in a read for ever. */
struct desk {
    struct crew_serving serving;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct letters in, out;
    unsigned users;
    bool over;
};

static void put(struct letters *list, struct letter *letter)
{
    letter->next = NULL;
    *(list->first ? list->last : &list->first) = letter;
    list->last = &letter->next;
}

static struct letter *get(struct letters *list)
{
    struct letter *letter = list->first;
    if (letter)
        list->first = letter->next;
    return letter;
}

static void drop(struct letter *letter)
{
    if (letter)
        buf_free(&letter->bytes);
    free(letter);
}

static void leave(struct desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    const bool last = --desk->users == 0;
    pthread_mutex_unlock(&desk->lock);
    if (!last)
        return;
    for (struct letter *letter; (letter = get(&desk->in));)
        drop(letter);
    for (struct letter *letter; (letter = get(&desk->out));)
        drop(letter);
    pthread_mutex_destroy(&desk->lock);
    pthread_cond_destroy(&desk->moved);
    free(desk);
}

static const struct crew_handler *handler_of(const struct desk *desk, const struct message *is)
{
    for (size_t i = 0; i < desk->serving.count; i++) {
        const struct crew_handler *handler = &desk->serving.handlers[i];
        if (strlen(handler->kind) == is->handler_size &&
            memcmp(handler->kind, is->handler, is->handler_size) == 0)
            return handler;
    }
    return NULL;
}

/* Turns a piece into its reply, in place. */
static void answer(const struct desk *desk, struct letter *letter)
{
    struct message is = {0};
    struct pack pack = pack_reader(letter->bytes.data, letter->bytes.size);
    struct buf reply = {0}, bytes = {0};
    message_pack(&pack, &is);
    const struct crew_handler *handler = handler_of(desk, &is);
    const bool fine = handler && handler->answer(handler->context, is.body, is.body_size, &reply) &&
                      !reply.failed;
    struct message back = {.kind = fine ? MESSAGE_REPLY : MESSAGE_CANNOT,
                           .job = is.job,
                           .piece = is.piece,
                           .body = reply.data,
                           .body_size = reply.size};
    pack = pack_writer(&bytes);
    message_pack(&pack, &back);
    buf_free(&reply);
    buf_free(&letter->bytes);
    letter->bytes = bytes;
}

static void *work(void *context)
{
    struct desk *desk = context;
    pthread_mutex_lock(&desk->lock);
    while (!desk->over) {
        struct letter *letter = get(&desk->in);
        if (!letter) {
            pthread_cond_wait(&desk->moved, &desk->lock);
            continue;
        }
        pthread_mutex_unlock(&desk->lock);
        answer(desk, letter);
        pthread_mutex_lock(&desk->lock);
        put(&desk->out, letter);
    }
    pthread_mutex_unlock(&desk->lock);
    leave(desk);
    return NULL;
}

static bool tell(const struct crew_transport *transport, struct message *message)
{
    struct buf bytes = {0};
    struct pack pack = pack_writer(&bytes);
    message_pack(&pack, message);
    const bool sent =
        pack_good(&pack) && transport->send(transport->context, 0, bytes.data, bytes.size);
    buf_free(&bytes);
    return sent;
}

static bool say_hello(const struct crew_transport *transport, unsigned lanes)
{
    char host[MESSAGE_HOST] = "";
    gethostname(host, sizeof host - 1);
    const char *version = plumb_version();
    return tell(transport, &(struct message){.kind = MESSAGE_HELLO,
                                             .version = version,
                                             .version_size = strlen(version),
                                             .host = host,
                                             .host_size = strlen(host),
                                             .lanes = lanes});
}

/* Gives what the lanes have finished to process 0. */
static bool send_replies(struct desk *desk, const struct crew_transport *transport)
{
    bool sent = true;
    for (;;) {
        pthread_mutex_lock(&desk->lock);
        struct letter *letter = get(&desk->out);
        pthread_mutex_unlock(&desk->lock);
        if (!letter)
            return sent;
        if (!letter->bytes.failed && sent)
            sent = transport->send(transport->context, 0, letter->bytes.data, letter->bytes.size);
        drop(letter);
    }
}

/* Takes the bytes over when they are a piece. */
static enum message_kind hear(struct desk *desk, struct buf *bytes)
{
    struct message message = {0};
    struct pack pack = pack_reader(bytes->data, bytes->size);
    message_pack(&pack, &message);
    if (!pack_good(&pack) || message.kind != MESSAGE_PIECE)
        return pack_good(&pack) ? message.kind : MESSAGE_PING;
    struct letter *letter = calloc(1, sizeof *letter);
    if (letter) { /* else process 0 loses its patience with us */
        letter->bytes = *bytes;
        *bytes = (struct buf){0};
        pthread_mutex_lock(&desk->lock);
        put(&desk->in, letter);
        pthread_cond_signal(&desk->moved);
        pthread_mutex_unlock(&desk->lock);
    }
    return MESSAGE_PIECE;
}

static enum plumb_code attend(struct desk *desk, const struct crew_transport *transport,
                              struct plumb_error *err)
{
    const double patience = desk->serving.patience > 0 ? desk->serving.patience : MESSAGE_PATIENCE;
    double heard = crew_now(), looked = heard;
    for (;;) {
        struct buf bytes = {0};
        unsigned from;
        enum message_kind kind = MESSAGE_PIECE;
        const enum crew_received got =
            transport->receive(transport->context, &from, &bytes, LISTEN_MS);
        const double now = crew_now();
        if (now - looked > patience / 2) /* this process was stopped: the silence was its own */
            heard = now;
        looked = now;
        if (got == CREW_MESSAGE) {
            heard = now;
            kind = hear(desk, &bytes);
        }
        buf_free(&bytes);
        if (kind == MESSAGE_END) {
            tell(transport, &(struct message){.kind = MESSAGE_BYE});
            return PLUMB_OK;
        }
        if (got == CREW_BROKEN || !send_replies(desk, transport) || now - heard > patience)
            return plumb_fail(err, PLUMB_E_IO, "process 0 is not heard any more");
    }
}

enum plumb_code crew_serve(const struct crew_transport *transport,
                           const struct crew_serving *serving, struct plumb_error *err)
{
    struct desk *desk = calloc(1, sizeof *desk);
    if (!desk)
        return plumb_no_memory(err);
    desk->serving = *serving;
    desk->users = 1;
    pthread_mutex_init(&desk->lock, NULL);
    pthread_cond_init(&desk->moved, NULL);
    unsigned lanes = serving->lanes, started = 0;
    lanes = lanes > MESSAGE_LANES ? MESSAGE_LANES : lanes;
    pthread_mutex_lock(&desk->lock);
    for (; started < lanes; started++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, desk) != 0)
            break;
        pthread_detach(thread);
        desk->users++;
    }
    pthread_mutex_unlock(&desk->lock);
    enum plumb_code code = lanes && !started
                               ? plumb_fail(err, PLUMB_E_NOMEM, "cannot start a thread")
                           : say_hello(transport, started)
                               ? attend(desk, transport, err)
                               : plumb_fail(err, PLUMB_E_IO, "process 0 cannot be reached");
    pthread_mutex_lock(&desk->lock);
    desk->over = true;
    pthread_cond_broadcast(&desk->moved);
    pthread_mutex_unlock(&desk->lock);
    leave(desk);
    return code;
}

enum plumb_code crew_help(struct plumb_helping *helping, const struct crew_handler *handler,
                          struct plumb_error *err)
{
    struct crew_serving serving = helping->serving;
    struct crew_handler *handlers = calloc(serving.count + 1, sizeof *handlers);
    helping->begun = true;
    if (!handlers)
        return plumb_no_memory(err);
    if (serving.count)
        memcpy(handlers, serving.handlers, serving.count * sizeof *handlers);
    handlers[serving.count++] = *handler;
    serving.handlers = handlers;
    return crew_serve(helping->transport, &serving, err); /* threads may still use the handlers */
}
