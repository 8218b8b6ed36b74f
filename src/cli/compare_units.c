/* Ranks of two dumps that several processes compare. */
#define _GNU_SOURCE
#include "cli/compare_units.h"

#include "base/pack.h"
#include "run/ref.h"
#include "run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kind[] = "compare rank";

/* One at a time in a process: it has all threads. */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static void pack_result(struct pack *pack, struct unit_result *is, struct arena *arena)
{
    pack_bool(pack, &is->none);
    pack_bool(pack, &is->large);
    pack_size(pack, &is->bad);
    pack_size(pack, &is->broken);
    pack_size(pack, &is->judged);
    pack_size(pack, &is->rows);
    pack_text(pack, &is->mapping, arena);
    pack_text(pack, &is->closing, arena);
    pack_bytes(pack, &is->table, &is->table_size);
}

static void pack_end(struct pack *pack, enum plumb_code *code, struct unit_result *is,
                     struct plumb_error *why, struct arena *arena)
{
    bool failed = *code;
    pack_bool(pack, &failed);
    if (failed)
        pack_error(pack, why);
    else
        pack_result(pack, is, arena);
    if (failed && !pack->out) {
        *code = why->code;
        pack_check(pack, *code);
    }
}

/* ---- A rank ---------------------------------------------------------------------------------- */

static enum plumb_code compare(const struct units *units, int64_t rank, size_t *unreadable,
                               struct buf *reply)
{
    struct unit_result result = {0};
    struct arena arena = {0};
    struct plumb_error err = {0};
    struct pack pack = pack_writer(reply);
    pthread_mutex_lock(&one);
    enum plumb_code code = units->compare(units->context, rank, &result, &arena, &err);
    pthread_mutex_unlock(&one);
    pack_end(&pack, &code, &result, &err, NULL);
    *unreadable = result.unreadable;
    arena_free(&arena);
    return code;
}

/* How many dump.json of the rank there are on a side, and what changes when one of them does. */
struct seen {
    int64_t rank;
    size_t files;
    uint64_t stamp;
};

static bool see(void *context, int64_t rank, const char *json)
{
    struct seen *seen = context;
    const struct run_ref file = {.path = json};
    if (rank != seen->rank)
        return true;
    seen->files++;
    seen->stamp = seen->stamp * 31 + run_ref_stamp(&file, NULL);
    return true;
}

struct request {
    int64_t rank;
    struct seen side[2];
    const char *host; /* of process 0 */
};

static struct request look(const struct units *units, int64_t rank)
{
    struct request request = {.rank = rank, .side = {{.rank = rank}, {.rank = rank}}};
    struct plumb_error err;
    dumps_look(units->target, see, &request.side[0], &err);
    dumps_look(units->golden, see, &request.side[1], &err);
    return request;
}

static void pack_request(struct pack *pack, struct request *request, struct arena *arena)
{
    pack_i64(pack, &request->rank);
    pack_text(pack, &request->host, arena);
    for (int i = 0; i < 2; i++) {
        pack_size(pack, &request->side[i].files);
        pack_u64(pack, &request->side[i].stamp);
    }
    pack_check(pack, request->host);
}

static const char *this_host(char host[256])
{
    memset(host, 0, 256);
    gethostname(host, 255);
    return host;
}

/* On another host the folders may not be the same: what does not look as it does to process 0, or
 * cannot be read, goes back. */
static bool answer(void *context, const void *bytes, size_t size, struct buf *reply)
{
    const struct units *units = context;
    struct pack pack = pack_reader(bytes, size);
    struct arena arena = {0};
    struct request request = {0};
    char host[256];
    pack_request(&pack, &request, &arena);
    bool fine = pack_good(&pack);
    const bool elsewhere = fine && strcmp(request.host, this_host(host)) != 0;
    arena_free(&arena);
    const struct request here = fine ? look(units, request.rank) : request;
    for (int i = 0; i < 2; i++)
        fine = fine && here.side[i].files == request.side[i].files;
    size_t unreadable = 0;
    const enum plumb_code code = fine ? compare(units, request.rank, &unreadable, reply) : 0;
    return fine && code != PLUMB_E_IO && code != PLUMB_E_NOMEM && !(elsewhere && unreadable);
}

struct crew_handler units_handler(const struct units *units)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)units, answer};
}

/* ---- Process 0 ------------------------------------------------------------------------------- */

struct ready {
    struct buf reply;
    bool is;
};

struct session {
    const struct units *units;
    enum plumb_code (*finish)(void *context, int64_t rank, struct plumb_error *err);
    struct ready *ready;
    size_t done, delivered;
    enum plumb_code code;
    struct plumb_error err;
};

static void ask(void *context, size_t piece, struct buf *bytes)
{
    const struct units *units = ((const struct session *)context)->units;
    struct request request = look(units, units->ranks[piece]);
    struct pack pack = pack_writer(bytes);
    char host[256];
    request.host = this_host(host);
    pack_request(&pack, &request, NULL);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct session *session = context;
    size_t unreadable;
    compare(session->units, session->units->ranks[piece], &unreadable, reply);
}

static enum plumb_code deliver_one(struct session *session, const struct ready *ready, bool *wait)
{
    const struct units *units = session->units;
    const int64_t rank = units->ranks[session->delivered];
    struct arena arena = {0};
    struct unit_result result = {0};
    enum plumb_code code = PLUMB_OK;
    struct pack pack = pack_reader(ready->reply.data, ready->reply.size);
    pack_end(&pack, &code, &result, &session->err, &arena);
    *wait = !code && result.large;
    if (!code && !result.large && !result.none)
        code = units->deliver(units->context, rank, &result, &session->err);
    arena_free(&arena);
    return code;
}

/* Delivers what is ready and next; one that is too large has to wait until the loop is over. */
static bool deliver_ready(struct session *session)
{
    bool wait = false;
    while (!wait && !session->code && session->delivered < session->units->count &&
           session->ready[session->delivered].is) {
        struct ready *ready = &session->ready[session->delivered];
        session->code = deliver_one(session, ready, &wait);
        if (wait)
            return false;
        buf_free(&ready->reply);
        session->delivered++;
    }
    return true;
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct session *session = context;
    struct ready *ready = &session->ready[piece];
    struct arena arena = {0};
    struct unit_result result = {0};
    struct plumb_error err;
    enum plumb_code code = PLUMB_OK;
    struct pack pack = pack_reader(reply, size);
    pack_end(&pack, &code, &result, &err, &arena);
    arena_free(&arena);
    if (!pack_good(&pack) || (resumed && code))
        return false;
    buf_append(&ready->reply, reply, size);
    if (ready->reply.failed)
        return false;
    ready->is = true;
    session->units->progress(session->units->context, ++session->done);
    deliver_ready(session);
    return true;
}

static bool over(void *context)
{
    return ((const struct session *)context)->code;
}

/* Those that are too large, and what waited behind them. */
static enum plumb_code deliver_rest(struct session *session)
{
    const struct units *units = session->units;
    while (!deliver_ready(session)) {
        session->code =
            session->finish(units->context, units->ranks[session->delivered], &session->err);
        buf_free(&session->ready[session->delivered].reply);
        session->delivered++;
    }
    return session->code;
}

enum plumb_code units_run(struct plumb_crew *crew, const struct units *units,
                          enum plumb_code (*finish)(void *context, int64_t rank,
                                                    struct plumb_error *err),
                          struct plumb_error *err)
{
    struct session session = {
        .units = units, .finish = finish, .ready = calloc(units->count + 1, sizeof *session.ready)};
    if (!session.ready)
        return plumb_no_memory(err);
    const struct crew_job job = {.kind = kind,
                                 .count = units->count,
                                 .context = &session,
                                 .slow = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .over = over};
    enum plumb_code code = crew_run(crew, &job, err);
    if (!code && deliver_rest(&session)) {
        code = session.code;
        *err = session.err;
    }
    for (size_t i = 0; i < units->count; i++)
        buf_free(&session.ready[i].reply);
    free(session.ready);
    return code;
}
