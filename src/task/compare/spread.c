/* A walk that several processes do together.
 *
 * A piece is a few small items, or a stretch of a large one. The request says which files hold the
 * tensors; the reply has types, shapes and the state of every stretch, or the error that ended it.
 * Process 0 merges, as threads do: states are exact, so it makes no difference who did what. */
#define _GNU_SOURCE
#include "task/compare/spread.h"

#include "base/mapped.h"
#include "task/compare/walk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Large enough to be worth a message, small enough to be lost. */
#define PIECE_ELEMENTS (UINT64_C(1) << 22)
_Static_assert(PIECE_ELEMENTS % PLUMB_METRIC_BLOCK == 0, "pieces are cut at block boundaries");
enum { PIECE_TASKS = 64, MOST_SHARED = 4096, HELD = 8 };

static const char kind_of_piece[] = "walk";

static const struct walk_kind *const kinds[] = {&walk_pairs, &walk_kept, &walk_summary};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A stretch of an item. */
struct task {
    unsigned sides;
    struct run_ref ref[2];
    uint64_t first, count;
};

/* What became of it. */
struct outcome {
    uint64_t stamp[2];
    struct plumb_tensor tensor[2];
    bool failed;
    struct plumb_error error;
    void *state; /* NULL: failed, or it does not fit */
};

static void pack_task(struct pack *pack, struct task *task, struct arena *arena)
{
    pack_below(pack, &task->sides, 3);
    for (unsigned i = 0; i < task->sides; i++)
        run_ref_pack(pack, &task->ref[i], arena);
    pack_u64(pack, &task->first);
    pack_u64(pack, &task->count);
    pack_check(pack, task->sides && task->first % PLUMB_METRIC_BLOCK == 0);
}

/* Type and shape, which is all that process 0 asks of a tensor. */
static void pack_tensor(struct pack *pack, struct plumb_tensor *tensor)
{
    unsigned dtype = tensor->dtype, rank = tensor->rank;
    int64_t shape[PLUMB_MAX_RANK] = {0};
    pack_below(pack, &dtype, PLUMB_DTYPE_COUNT);
    pack_below(pack, &rank, PLUMB_MAX_RANK + 1);
    if (pack->out)
        memcpy(shape, tensor->shape, sizeof shape);
    for (unsigned i = 0; i < rank; i++)
        pack_i64(pack, &shape[i]);
    if (!pack->out)
        pack_check(pack, plumb_tensor_init(tensor, (enum plumb_dtype)dtype, rank, shape, NULL) ==
                             PLUMB_OK);
}

static void pack_outcome(struct pack *pack, struct outcome *is, unsigned sides,
                         const struct walk_kind *kind, const void *shared)
{
    pack_bool(pack, &is->failed);
    if (is->failed) {
        pack_error(pack, &is->error);
        pack_check(pack, pack->out || is->error.code);
        return;
    }
    for (unsigned i = 0; i < sides; i++) {
        pack_u64(pack, &is->stamp[i]);
        pack_tensor(pack, &is->tensor[i]);
    }
    bool any = is->state;
    pack_bool(pack, &any);
    if (any && !pack->out && !pack->bad)
        pack_check(pack, (!kind->fits || kind->fits(is->tensor)) &&
                             (is->state = kind->empty(shared, is->tensor)));
    if (any && is->state)
        kind->pack_state(pack, is->state);
}

/* ---- Doing a piece --------------------------------------------------------------------------- */

/* Payloads of an item that has more stretches, which are likely to come next. */
struct held {
    char *key;
    size_t size;
    struct plumb_payload payload[2];
};

struct spread_desk {
    const struct crew_places *places;
    struct run_files *files;
    pthread_mutex_t lock;
    struct held held[HELD];
    unsigned next;
};

struct spread_desk *spread_desk_new(const struct crew_places *places)
{
    struct spread_desk *desk = calloc(1, sizeof *desk);
    if (!desk || !(desk->files = run_files_new(places))) {
        free(desk);
        return NULL;
    }
    desk->places = places;
    pthread_mutex_init(&desk->lock, NULL);
    return desk;
}

static void let_go(struct held *held)
{
    plumb_payload_release(&held->payload[0]);
    plumb_payload_release(&held->payload[1]);
    free(held->key);
    *held = (struct held){0};
}

void spread_desk_free(struct spread_desk *desk)
{
    if (!desk)
        return;
    for (int i = 0; i < HELD; i++)
        let_go(&desk->held[i]);
    run_files_free(desk->files);
    pthread_mutex_destroy(&desk->lock);
    free(desk);
}

static struct buf key_of(const struct task *task)
{
    struct buf key = {0};
    struct pack pack = pack_writer(&key);
    for (unsigned i = 0; i < task->sides; i++) {
        struct run_ref ref = task->ref[i];
        run_ref_pack(&pack, &ref, NULL);
    }
    return key;
}

static bool find_held(struct spread_desk *desk, const struct task *task, struct held *out)
{
    struct buf key = key_of(task);
    *out = (struct held){0};
    pthread_mutex_lock(&desk->lock);
    for (int i = 0; i < HELD && !out->key; i++)
        if (desk->held[i].key && desk->held[i].size == key.size &&
            memcmp(desk->held[i].key, key.data, key.size) == 0) {
            *out = desk->held[i];
            desk->held[i] = (struct held){0};
        }
    pthread_mutex_unlock(&desk->lock);
    const bool found = out->key;
    if (found) {
        buf_free(&key);
    } else {
        out->key = key.data;
        out->size = key.size;
    }
    return found;
}

static void hold(struct spread_desk *desk, struct held *held)
{
    if (held->key) {
        pthread_mutex_lock(&desk->lock);
        struct held old = desk->held[desk->next];
        desk->held[desk->next] = *held;
        desk->next = (desk->next + 1) % HELD;
        pthread_mutex_unlock(&desk->lock);
        *held = old;
    }
    let_go(held);
}

static void compute(const struct walk_kind *kind, const void *shared, const struct task *task,
                    const struct plumb_payload payload[2], struct outcome *is)
{
    struct plumb_file_guard guard[2];
    bool shrank[2];
    plumb_file_guard_enter(&guard[0], &payload[0].file);
    plumb_file_guard_enter(&guard[1], &payload[1].file);
    is->state = kind->part(shared, payload, task->first, task->count);
    shrank[1] = plumb_file_guard_leave(&guard[1]);
    shrank[0] = plumb_file_guard_leave(&guard[0]);
    if (!is->state)
        plumb_no_memory(&is->error);
    for (unsigned i = 0; i < 2 && is->state; i++)
        if (shrank[i]) {
            mapped_fail_shrank(&is->error);
            plumb_error_in_file(&is->error, task->ref[i].path);
            kind->release(is->state);
            is->state = NULL;
        }
    is->failed = !is->state;
}

static void do_task(struct spread_desk *desk, const struct walk_kind *kind, const void *shared,
                    const struct task *task, struct outcome *is)
{
    struct held held;
    enum plumb_code code = PLUMB_OK;
    if (!find_held(desk, task, &held))
        for (unsigned i = 0; i < task->sides && !code; i++)
            code = run_files_load(desk->files, &task->ref[i], &held.payload[i], &is->error);
    is->failed = code;
    for (unsigned i = 0; i < task->sides && !code; i++) {
        is->stamp[i] = run_ref_stamp(&task->ref[i], desk->places);
        is->tensor[i] = held.payload[i].tensor;
    }
    const bool begun = !task->first || task->first < is->tensor[0].count;
    if (!code && begun && (!kind->fits || kind->fits(is->tensor)))
        compute(kind, shared, task, held.payload, is);
    if (!code && task->ref[0].count > PIECE_ELEMENTS)
        hold(desk, &held);
    else
        let_go(&held);
}

/* Reads the head of a request: the kind, what it shares, and how many tasks follow. */
static const struct walk_kind *read_head(struct pack *pack, void *shared, size_t *count)
{
    unsigned number = 0;
    pack_below(pack, &number, KINDS);
    const struct walk_kind *kind = kinds[number];
    kind->pack_shared(pack, shared);
    pack_size(pack, count);
    return pack_check(pack, *count && *count <= PIECE_TASKS) ? kind : NULL;
}

/* final: this process has the last word on files that it cannot open. */
static bool answer(struct spread_desk *desk, const void *request, size_t size, struct buf *reply,
                   bool final)
{
    _Alignas(max_align_t) char shared[MOST_SHARED] = {0};
    struct pack in = pack_reader(request, size), out = pack_writer(reply);
    struct arena arena = {0};
    size_t count = 0;
    const struct walk_kind *kind = read_head(&in, shared, &count);
    bool fine = kind;
    for (size_t i = 0; i < count && fine; i++) {
        struct task task = {0};
        struct outcome is = {0};
        pack_task(&in, &task, &arena);
        fine = pack_check(&in, true);
        if (!fine)
            break;
        do_task(desk, kind, shared, &task, &is);
        /* Another host may see what this one does not. */
        fine = final ||
               !(is.failed && (is.error.code == PLUMB_E_IO || is.error.code == PLUMB_E_NOMEM));
        if (fine)
            pack_outcome(&out, &is, task.sides, kind, shared);
        if (is.state)
            kind->release(is.state);
    }
    arena_free(&arena);
    return fine && pack_good(&in) && pack_good(&out);
}

static bool answer_other(void *context, const void *request, size_t size, struct buf *reply)
{
    return answer(context, request, size, reply, false);
}

struct crew_handler spread_handler(struct spread_desk *desk)
{
    return (struct crew_handler){kind_of_piece, desk, answer_other};
}

/* ---- Process 0 ------------------------------------------------------------------------------- */

struct stretch {
    size_t item;
    uint64_t first;
};

struct spread_item {
    size_t left; /* stretches */
    bool failed;
    uint64_t failed_at; /* the first stretch that did: its error is the item's */
    struct outcome is;
};

struct spread {
    const struct walk *walk;
    struct walk_item *items; /* those that the others can do */
    struct spread_item *states;
    struct stretch *stretches;
    size_t *pieces; /* where each begins among the stretches, and where the last ends */
    size_t stretch_count, piece_count;
    struct spread_desk *desk;
    unsigned kind;
    uint64_t bytes_done, bytes_total;
};

static bool can_spread(const struct walk_item *item)
{
    struct run_ref ref;
    for (unsigned i = 0; i < item->sides; i++)
        if (!run_ref_of(item->side[i].run, item->side[i].record, &ref))
            return false;
    return item->sides;
}

static uint64_t elements(const struct walk_item *item)
{
    return plumb_run_record(item->side[0].run, item->side[0].record)->count;
}

static struct task task_of(const struct spread *spread, const struct stretch *stretch)
{
    const struct walk_item *item = &spread->items[stretch->item];
    struct task task = {.sides = item->sides, .first = stretch->first, .count = PIECE_ELEMENTS};
    for (unsigned i = 0; i < item->sides; i++)
        run_ref_of(item->side[i].run, item->side[i].record, &task.ref[i]);
    return task;
}

static void ask(void *context, size_t piece, struct buf *request)
{
    const struct spread *spread = context;
    _Alignas(max_align_t) char shared[MOST_SHARED];
    struct pack pack = pack_writer(request);
    unsigned kind = spread->kind;
    size_t first = spread->pieces[piece], count = spread->pieces[piece + 1] - first;
    memcpy(shared, spread->walk->shared, spread->walk->kind->shared_size);
    pack_below(&pack, &kind, KINDS);
    spread->walk->kind->pack_shared(&pack, shared);
    pack_size(&pack, &count);
    for (size_t i = 0; i < count; i++) {
        struct task task = task_of(spread, &spread->stretches[first + i]);
        pack_task(&pack, &task, NULL);
    }
}

static void work(void *context, size_t piece, struct buf *reply)
{
    const struct spread *spread = context;
    struct buf request = {0};
    ask(context, piece, &request);
    if (request.failed || !answer(spread->desk, request.data, request.size, reply, true))
        reply->failed = true;
    buf_free(&request);
}

/* From a journal, only what is about the same files. */
static bool is_current(const struct spread *spread, const struct stretch *stretch,
                       const struct outcome *is)
{
    const struct task task = task_of(spread, stretch);
    if (is->failed)
        return false;
    for (unsigned i = 0; i < task.sides; i++) {
        const uint64_t now = run_ref_stamp(&task.ref[i], spread->desk->places);
        if (now && is->stamp[i] && now != is->stamp[i])
            return false;
    }
    return true;
}

static void finish(struct spread *spread, size_t number)
{
    const struct walk *walk = spread->walk;
    struct spread_item *item = &spread->states[number];
    struct outcome *is = &item->is;
    const struct plumb_payload payload[2] = {{.tensor = is->tensor[0]}, {.tensor = is->tensor[1]}};
    if (!item->failed && walk->accept)
        item->failed = walk->accept(walk->context, number, payload, &is->error);
    if (!item->failed && !is->state)
        item->failed = plumb_fail(&is->error, PLUMB_E_FORMAT, "its size changed while it was read");
    walk->finish(walk->context, number, payload, item->failed ? NULL : is->state,
                 item->failed ? &is->error : NULL);
    if (is->state)
        walk->kind->release(is->state);
    is->state = NULL;
}

/* Adds one stretch to its item. Takes the state. */
static void add(struct spread *spread, const struct stretch *stretch, struct outcome *is)
{
    const struct walk *walk = spread->walk;
    struct spread_item *item = &spread->states[stretch->item];
    if (is->failed && (!item->failed || stretch->first < item->failed_at)) {
        item->failed = true;
        item->failed_at = stretch->first;
        item->is.error = is->error;
    }
    if (!is->failed)
        memcpy(item->is.tensor, is->tensor, sizeof is->tensor);
    if (is->state && item->is.state) {
        walk->kind->merge(item->is.state, is->state);
        walk->kind->release(is->state);
    } else if (is->state) {
        item->is.state = is->state;
    }
    is->state = NULL;
    const struct walk_item *what = &spread->items[stretch->item];
    spread->bytes_done += walk_bytes(what) / (elements(what) / PIECE_ELEMENTS + 1);
    if (--item->left == 0)
        finish(spread, stretch->item);
}

static bool take(void *context, size_t piece, const void *reply, size_t size, bool resumed)
{
    struct spread *spread = context;
    const struct walk *walk = spread->walk;
    const size_t first = spread->pieces[piece], count = spread->pieces[piece + 1] - first;
    struct pack pack = pack_reader(reply, size);
    struct outcome *list = calloc(count, sizeof *list);
    bool fine = list;
    for (size_t i = 0; i < count && fine; i++) {
        const struct stretch *stretch = &spread->stretches[first + i];
        pack_outcome(&pack, &list[i], spread->items[stretch->item].sides, walk->kind, walk->shared);
        fine = pack_check(&pack, true) && (!resumed || is_current(spread, stretch, &list[i]));
    }
    fine = fine && pack_good(&pack);
    for (size_t i = 0; i < count && list; i++) {
        if (fine)
            add(spread, &spread->stretches[first + i], &list[i]);
        else if (list[i].state)
            walk->kind->release(list[i].state);
    }
    free(list);
    if (fine && walk->progress)
        walk->progress(walk->progress_context, spread->bytes_done, spread->bytes_total);
    return fine;
}

/* Cuts what there is to do into pieces. False when out of memory. */
static bool cut(struct spread *spread)
{
    const struct walk *walk = spread->walk;
    size_t count = 0;
    for (size_t i = 0; i < walk->count; i++)
        if (spread->items[i].sides)
            count += (size_t)(elements(&spread->items[i]) / PIECE_ELEMENTS + 1);
    spread->stretches = calloc(count + 1, sizeof *spread->stretches);
    spread->pieces = calloc(count + 1, sizeof *spread->pieces);
    if (!spread->stretches || !spread->pieces)
        return false;
    uint64_t held = 0; /* elements of the piece at hand */
    size_t n = 0;
    for (size_t i = 0; i < walk->count; i++) {
        const struct walk_item *item = &spread->items[i];
        const uint64_t all = item->sides ? elements(item) : 0;
        for (uint64_t first = 0; item->sides && (!first || first < all); first += PIECE_ELEMENTS) {
            const uint64_t length = all - first < PIECE_ELEMENTS ? all - first : PIECE_ELEMENTS;
            if (n == spread->pieces[spread->piece_count] + PIECE_TASKS ||
                (n > spread->pieces[spread->piece_count] && held + length > PIECE_ELEMENTS)) {
                spread->pieces[++spread->piece_count] = n;
                held = 0;
            }
            held += length;
            spread->states[i].left++;
            spread->stretches[n++] = (struct stretch){i, first};
        }
        spread->bytes_total += item->sides ? walk_bytes(item) : 0;
    }
    if (n > spread->pieces[spread->piece_count])
        spread->pieces[++spread->piece_count] = n;
    spread->stretch_count = n;
    return true;
}

/* Those that only this process can do. */
static enum plumb_code do_rest(const struct walk *walk, const struct walk_item *spread,
                               struct plumb_error *err)
{
    struct walk_item *items = calloc(walk->count + 1, sizeof *items);
    if (!items)
        return plumb_no_memory(err);
    for (size_t i = 0; i < walk->count; i++)
        if (!spread[i].sides)
            items[i] = walk->items[i];
    struct walk rest = *walk;
    rest.items = items;
    rest.crew = NULL;
    rest.threads = crew_lanes(walk->crew);
    rest.progress = NULL;
    const enum plumb_code code = walk_run(&rest, err);
    free(items);
    return code;
}

enum plumb_code walk_spread(const struct walk *walk, struct plumb_error *err)
{
    struct spread spread = {.walk = walk};
    spread.items = calloc(walk->count + 1, sizeof *spread.items);
    spread.states = calloc(walk->count + 1, sizeof *spread.states);
    spread.desk = spread_desk_new(crew_places_of(walk->crew));
    for (unsigned k = 0; k < KINDS; k++)
        spread.kind = kinds[k] == walk->kind ? k : spread.kind;
    for (size_t i = 0; spread.items && i < walk->count; i++)
        if (can_spread(&walk->items[i]))
            spread.items[i] = walk->items[i];
    enum plumb_code code = PLUMB_OK;
    if (!spread.items || !spread.states || !spread.desk || !cut(&spread))
        code = plumb_no_memory(err);
    if (!code)
        code = do_rest(walk, spread.items, err);
    const struct crew_job job = {.kind = kind_of_piece,
                                 .count = spread.piece_count,
                                 .context = &spread,
                                 .ask = ask,
                                 .work = work,
                                 .take = take};
    if (!code)
        code = crew_run(walk->crew, &job, err);
    for (size_t i = 0; i < walk->count && spread.states; i++)
        if (spread.states[i].is.state)
            walk->kind->release(spread.states[i].is.state);
    free(spread.items);
    free(spread.states);
    free(spread.stretches);
    free(spread.pieces);
    spread_desk_free(spread.desk);
    return code;
}
