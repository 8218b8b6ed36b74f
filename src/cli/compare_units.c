/* Ranks of two dumps that several processes compare. */
#define _GNU_SOURCE
#include "cli/compare_units.h"

#include "base/pack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kind[] = "compare rank";

/* One at a time in a process: it has all threads. */
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

static void pack_result(struct pack *pack, struct unit_result *is, struct arena *arena)
{
    pack_text(pack, &is->missing, arena);
    pack_bool(pack, &is->none);
    pack_bool(pack, &is->large);
    pack_size(pack, &is->unreadable);
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

static enum plumb_code compare(const struct units *units, const struct unit *unit, bool last,
                               struct buf *reply)
{
    struct unit_result result = {0};
    struct arena arena = {0};
    struct plumb_error err = {0};
    struct pack pack = pack_writer(reply);
    pthread_mutex_lock(&one);
    enum plumb_code code = units->compare(units->context, unit, &result, &arena, &err);
    pthread_mutex_unlock(&one);
    pack_bool(&pack, &last);
    pack_end(&pack, &code, &result, &err, NULL);
    arena_free(&arena);
    return code;
}

struct request {
    struct unit unit;
    uint64_t stamp[2]; /* of what is compared: changes when that does */
    const char *host;  /* of process 0 */
};

static void pack_request(struct pack *pack, struct request *request, struct arena *arena)
{
    struct unit *unit = &request->unit;
    pack_i64(pack, &unit->rank);
    pack_bool(pack, &unit->whole);
    for (int i = 0; i < 2; i++) {
        pack_bool(pack, &unit->side[i].none);
        pack_bool(pack, &unit->side[i].others);
        pack_u64(pack, &request->stamp[i]);
    }
    pack_text(pack, &request->host, arena);
    pack_check(pack, request->host);
}

static const char *this_host(char host[256])
{
    memset(host, 0, 256);
    gethostname(host, 255);
    return host;
}

/* What cannot be opened goes to another host, if one has it. */
static bool answer(void *context, const void *bytes, size_t size, struct buf *reply)
{
    const struct units *units = context;
    struct pack pack = pack_reader(bytes, size);
    struct arena arena = {0};
    struct request request = {0};
    char host[256];
    pack_request(&pack, &request, &arena);
    const bool fine = pack_good(&pack);
    const bool last = fine && strcmp(request.host, this_host(host)) == 0;
    arena_free(&arena);
    const enum plumb_code code = fine ? compare(units, &request.unit, last, reply) : PLUMB_OK;
    return fine && code != PLUMB_E_IO && code != PLUMB_E_NOMEM;
}

struct crew_handler units_handler(const struct units *units)
{
    return (struct crew_handler){kind, (void *)(uintptr_t)units, answer};
}

/* ---- Process 0 ------------------------------------------------------------------------------- */

struct ready {
    struct buf reply;
    bool is;
    unsigned tries; /* hosts that could not read all of it; the reply is that of the last */
};

struct session {
    const struct units *units;
    enum plumb_code (*finish)(void *context, int64_t rank, struct plumb_error *err);
    struct ready *ready;
    size_t done, delivered;
    enum plumb_code code;
    struct plumb_error err;
};

static struct unit unit_of(const struct seen *seen, size_t piece)
{
    struct unit unit = {.rank = seen->ranks[piece].rank, .whole = !seen_has(seen, piece, 0)};
    for (size_t k = 0; k < 2; k++)
        unit.side[k] = (struct run_part){.none = !seen->ranks[piece].side[k].json,
                                         .others = seen_ranks(seen, k) > 1};
    return unit;
}

static void ask(void *context, size_t piece, struct buf *bytes)
{
    const struct seen *seen = ((const struct session *)context)->units->seen;
    const struct seen_rank *rank = &seen->ranks[piece];
    char host[256];
    struct request request = {.unit = unit_of(seen, piece),
                              .stamp = {rank->side[0].stamp, rank->side[1].stamp},
                              .host = this_host(host)};
    struct pack pack = pack_writer(bytes);
    pack_request(&pack, &request, NULL);
}

static bool has(void *context, size_t piece, unsigned host)
{
    return seen_has(((const struct session *)context)->units->seen, piece, host);
}

/* Of a rank that is elsewhere: what others saw of it, or that nobody can see it. */
static void work_elsewhere(const struct session *session, size_t piece, struct buf *reply)
{
    const struct seen *seen = session->units->seen;
    const struct ready *ready = &session->ready[piece];
    struct arena arena = {0};
    struct pack pack = pack_writer(reply);
    struct unit_result result = {.missing = seen_trouble(seen, piece, &arena)};
    struct plumb_error err = {0};
    enum plumb_code code = PLUMB_OK;
    bool last = true;
    pack_bool(&pack, &last);
    if (!result.missing && ready->tries) {
        buf_append(reply, ready->reply.data + 1, ready->reply.size - 1);
    } else {
        if (!result.missing)
            result.missing = seen_lost(seen, piece, &arena);
        pack_end(&pack, &code, &result, &err, NULL);
    }
    arena_free(&arena);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct session *session = context;
    const struct unit unit = unit_of(session->units->seen, piece);
    if (seen_has(session->units->seen, piece, 0))
        compare(session->units, &unit, true, reply);
    else
        work_elsewhere(session, piece, reply);
}

static enum plumb_code deliver_one(struct session *session, const struct ready *ready, bool *wait)
{
    const struct units *units = session->units;
    const int64_t rank = units->seen->ranks[session->delivered].rank;
    struct arena arena = {0};
    struct unit_result result = {0};
    enum plumb_code code = PLUMB_OK;
    bool last;
    struct pack pack = pack_reader(ready->reply.data, ready->reply.size);
    pack_bool(&pack, &last);
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
    while (!wait && !session->code && session->delivered < session->units->seen->count &&
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

/* Hosts that have a rank. */
static unsigned holders(const struct seen *seen, size_t piece)
{
    unsigned count = 0;
    for (unsigned h = 0; h < seen->hosts.count; h++)
        count += seen_has(seen, piece, h);
    return count;
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct session *session = context;
    struct ready *ready = &session->ready[piece];
    struct arena arena = {0};
    struct unit_result result = {0};
    struct plumb_error err;
    enum plumb_code code = PLUMB_OK;
    bool last = false;
    struct pack pack = pack_reader(reply, size);
    pack_bool(&pack, &last);
    pack_end(&pack, &code, &result, &err, &arena);
    const bool missing = result.missing;
    arena_free(&arena);
    if (!pack_good(&pack) || (resumed && (code || missing)))
        return false;
    ready->reply.size = 0;
    buf_append(&ready->reply, reply, size);
    if (ready->reply.failed)
        return false;
    if (!last && result.unreadable && ++ready->tries < holders(session->units->seen, piece))
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
        session->code = session->finish(units->context, units->seen->ranks[session->delivered].rank,
                                        &session->err);
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
    struct session session = {.units = units,
                              .finish = finish,
                              .ready = calloc(units->seen->count + 1, sizeof *session.ready)};
    if (!session.ready)
        return plumb_no_memory(err);
    const struct crew_job job = {.kind = kind,
                                 .count = units->seen->count,
                                 .context = &session,
                                 .slow = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take,
                                 .over = over,
                                 .has = has};
    enum plumb_code code = crew_run(crew, &job, err);
    if (!code && deliver_rest(&session)) {
        code = session.code;
        *err = session.err;
    }
    for (size_t i = 0; i < units->seen->count; i++)
        buf_free(&session.ready[i].reply);
    free(session.ready);
    return code;
}
