/* Judging the calls of dumps by several processes: a piece is a call. */
#define _GNU_SOURCE
#include "verdict/calls_spread.h"

#include "base/memory.h"
#include "base/pack.h"
#include "run/ref.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char kind[] = "call";
enum { FILES = 8, MOST_RESULTS = 1 << 20 };

/* ---- As bytes -------------------------------------------------------------------------------- */

static void pack_result(struct pack *pack, struct local_verdict *v, struct arena *arena)
{
    unsigned word = v->word;
    pack_bool(pack, &v->seen);
    pack_bool(pack, &v->doubtful);
    pack_below(pack, &word, PLUMB_WORDS);
    v->word = (enum plumb_word)word;
    pack_bool(pack, &v->unsteady);
    pack_real(pack, &v->worst);
    pack_real(pack, &v->limit);
    pack_text(pack, &v->result, arena);
    pack_text(pack, &v->why, arena);
    pack_text(pack, &v->arithmetic, arena);
    pack_text(pack, &v->pattern, arena);
    pack_text(pack, &v->place, arena);
    pack_real(pack, &v->got);
    pack_real(pack, &v->expected);
    pack_real(pack, &v->differing);
    pack_size(pack, &v->recorded);
}

/* A direction, and behind it its results. */
static void pack_verdict(struct pack *pack, struct local_verdict *v, struct arena *arena)
{
    size_t count = 0;
    pack_result(pack, v, arena);
    for (const struct local_verdict *at = v->next; pack->out && at; at = at->next)
        count++;
    pack_size(pack, &count);
    pack_check(pack, count <= MOST_RESULTS);
    struct local_verdict **link = &v->next;
    for (size_t i = 0; i < count && !pack->bad; i++, link = &(*link)->next) {
        if (!pack->out && !pack_check(pack, (*link = arena_alloc(arena, sizeof **link))))
            return;
        pack_result(pack, *link, arena);
    }
}

struct request {
    const char *json, *arithmetic;
    size_t number;
    int64_t step, rank;
    uint64_t seed, memory;
    uint64_t stamp; /* of dump.json: a journal is about this one */
};

static void pack_request(struct pack *pack, struct request *request, struct arena *arena)
{
    pack_text(pack, &request->json, arena);
    pack_text(pack, &request->arithmetic, arena);
    pack_size(pack, &request->number);
    pack_i64(pack, &request->step);
    pack_i64(pack, &request->rank);
    pack_u64(pack, &request->seed);
    pack_u64(pack, &request->memory);
    pack_u64(pack, &request->stamp);
    pack_check(pack, request->json);
}

/* ---- A call ---------------------------------------------------------------------------------- */

static void judge(const struct request *request, const struct case_file *file, struct buf *reply)
{
    struct pack pack = pack_writer(reply);
    struct arena arena = {0};
    struct plumb_error err;
    struct local_verdict verdicts[LOCAL_DIRECTIONS] = {0};
    const struct local_options options = {.file = file,
                                          .step = request->step,
                                          .rank = request->rank,
                                          .arithmetic = request->arithmetic,
                                          .seed = request->seed,
                                          .memory = request->memory};
    bool fits = !local_judge(&options, request->number, &arena, verdicts, &err);
    pack_bool(&pack, &fits);
    for (int d = 0; fits && d < LOCAL_DIRECTIONS; d++)
        pack_verdict(&pack, &verdicts[d], NULL);
    arena_free(&arena);
}

/* ---- Another process ------------------------------------------------------------------------- */

/* Dumps that are open, the last few of them; none is closed while others use it. */
struct calls_desk {
    const struct crew_places *places;
    pthread_mutex_t lock;
    struct {
        char *json;
        struct case_file *file;
        unsigned users;
        uint64_t used;
    } files[FILES];
    uint64_t clock;
};

struct calls_desk *calls_desk_new(const struct crew_places *places)
{
    struct calls_desk *desk = calloc(1, sizeof *desk);
    if (!desk)
        return NULL;
    desk->places = places;
    pthread_mutex_init(&desk->lock, NULL);
    return desk;
}

void calls_desk_free(struct calls_desk *desk)
{
    for (int i = 0; desk && i < FILES; i++) {
        case_file_close(desk->files[i].file);
        free(desk->files[i].json);
    }
    free(desk);
}

/* The place of a dump that is open, or is opened now; FILES: it cannot be. Under the lock. */
static int open_dump(struct calls_desk *desk, const char *json)
{
    int oldest = FILES;
    for (int i = 0; i < FILES; i++) {
        if (desk->files[i].json && strcmp(desk->files[i].json, json) == 0)
            return i;
        if (!desk->files[i].users &&
            (oldest == FILES || desk->files[i].used < desk->files[oldest].used))
            oldest = i;
    }
    if (oldest == FILES)
        return FILES;
    case_file_close(desk->files[oldest].file);
    free(desk->files[oldest].json);
    desk->files[oldest].file = NULL;
    desk->files[oldest].json = strdup(json);
    struct arena arena = {0};
    struct plumb_error err;
    const char *here = crew_places_here(desk->places, json, &arena);
    if (!desk->files[oldest].json || !here ||
        case_file_open(here, &desk->files[oldest].file, &err)) {
        free(desk->files[oldest].json);
        desk->files[oldest].json = NULL;
        desk->files[oldest].file = NULL;
        oldest = FILES;
    }
    arena_free(&arena);
    return oldest;
}

static bool answer(void *context, const void *bytes, size_t size, struct buf *reply)
{
    struct calls_desk *desk = context;
    struct arena arena = {0};
    struct pack in = pack_reader(bytes, size);
    struct request request = {0};
    struct plumb_error err;
    pack_request(&in, &request, &arena);
    bool fine = pack_good(&in) && !plumb_op_ready(&err);
    if (fine) {
        pthread_mutex_lock(&desk->lock);
        const int i = open_dump(desk, request.json);
        if (i < FILES) {
            desk->files[i].users++;
            desk->files[i].used = ++desk->clock;
        }
        pthread_mutex_unlock(&desk->lock);
        fine = i < FILES && request.number < case_count(desk->files[i].file);
        if (fine)
            judge(&request, desk->files[i].file, reply);
        pthread_mutex_lock(&desk->lock);
        if (i < FILES)
            desk->files[i].users--;
        pthread_mutex_unlock(&desk->lock);
    }
    arena_free(&arena);
    return fine;
}

struct crew_handler calls_handler(struct calls_desk *desk)
{
    return (struct crew_handler){kind, desk, answer};
}

/* ---- Process 0 ------------------------------------------------------------------------------- */

struct session {
    struct judged_calls *calls;
    const struct calls_options *options;
    bool *again;
    uint64_t memory;
    size_t done;
};

static struct request request_of(const struct session *session, size_t i)
{
    const struct judged_call *call = &session->calls->list[i];
    const struct run_ref file = {.path = session->calls->dumps[call->dump].path};
    return (struct request){.stamp = run_ref_stamp(&file, NULL),
                            .json = file.path,
                            .arithmetic = session->options->arithmetic,
                            .number = call->number,
                            .step = call->step,
                            .rank = call->rank,
                            .seed = session->options->seed,
                            .memory = session->memory};
}

static void ask(void *context, size_t piece, struct buf *bytes)
{
    struct request request = request_of(context, piece);
    struct pack pack = pack_writer(bytes);
    pack_request(&pack, &request, NULL);
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct session *session = context;
    const struct request request = request_of(session, piece);
    judge(&request, session->calls->dumps[session->calls->list[piece].dump].file, reply);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct session *session = context;
    struct judged_call *call = &session->calls->list[piece];
    struct local_verdict verdicts[LOCAL_DIRECTIONS] = {0};
    struct arena arena = {0};
    struct pack pack = pack_reader(reply, size);
    bool fits = false;
    (void)resumed; /* the request has all that matters but the bytes of the tensors */
    pack_bool(&pack, &fits);
    for (int d = 0; fits && d < LOCAL_DIRECTIONS; d++)
        pack_verdict(&pack, &verdicts[d], &arena);
    if (!pack_good(&pack)) {
        arena_free(&arena);
        return false;
    }
    call->arena = arena;
    memcpy(call->verdicts, verdicts, sizeof verdicts);
    session->again[piece] = !fits;
    if (fits && session->options->progress)
        session->options->progress(session->options->progress_context, ++session->done,
                                   session->calls->count);
    return true;
}

enum plumb_code calls_spread(struct judged_calls *calls, const struct calls_options *options,
                             bool *again, struct plumb_error *err)
{
    const uint64_t all = options->memory ? options->memory : memory_default();
    struct session session = {.calls = calls,
                              .options = options,
                              .again = again,
                              .memory = all / crew_lanes_of_all(options->crew)};
    const struct crew_job job = {.kind = kind,
                                 .count = calls->count,
                                 .context = &session,
                                 .slow = true,
                                 .ask = ask,
                                 .work = work,
                                 .take = take};
    return crew_run(options->crew, &job, err);
}
