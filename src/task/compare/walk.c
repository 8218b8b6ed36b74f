/* Going through the payloads of many records on several threads. */
#define _GNU_SOURCE
#include "task/compare/walk.h"

#include "base/mapped.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Elements a part: enough to keep a thread busy for a while, few enough to share a large tensor. */
#define PART_ELEMENTS (UINT64_C(1) << 20)
_Static_assert(PART_ELEMENTS % PLUMB_METRIC_BLOCK == 0, "parts are cut at block boundaries");

/* What an item needs from its first part to its last: too large to have for all items at once. */
struct opened {
    struct plumb_payload payload[2];
    struct plumb_error error;
};

struct progress_of_item {
    pthread_mutex_t lock;
    bool begun, failed;
    size_t parts, parts_left;
    struct opened *opened; /* from the first part to the last; NULL when out of memory */
    void *state;
};

struct task {
    size_t item;
    uint64_t first;
};

struct session {
    const struct walk *walk;
    struct progress_of_item *items;
    const struct task *tasks;
    pthread_mutex_t progress_lock;
    uint64_t bytes_done, bytes_total;
};

static const struct plumb_record *record_of(const struct walk_side *side)
{
    return plumb_run_record(side->run, side->record);
}

uint64_t walk_bytes(const struct walk_item *item)
{
    uint64_t total = 0, bytes;
    for (unsigned i = 0; i < item->sides; i++) {
        const struct plumb_record *record = record_of(&item->side[i]);
        if (!record->error && plumb_dtype_bytes(record->dtype, record->count, &bytes))
            total += bytes;
    }
    return total;
}

static size_t parts_of(const struct walk_item *item)
{
    if (!item->sides)
        return 0;
    /* What was refused may have been so for its size: nothing is sized by what it promised. */
    for (unsigned i = 0; i < item->sides; i++)
        if (record_of(&item->side[i])->error)
            return 1;
    uint64_t count = record_of(&item->side[0])->count;
    return count ? (size_t)((count - 1) / PART_ELEMENTS + 1) : 1;
}

static bool open_item(const struct session *session, size_t number, struct progress_of_item *item)
{
    const struct walk *walk = session->walk;
    const struct walk_item *what = &walk->items[number];
    struct opened *opened = item->opened = calloc(1, sizeof *opened);
    if (!opened)
        return false;
    enum plumb_code code = PLUMB_OK;
    for (unsigned i = 0; i < what->sides && !code; i++)
        code = plumb_run_load(what->side[i].run, what->side[i].record, &opened->payload[i],
                              &opened->error);
    if (!code && walk->accept)
        code = walk->accept(walk->context, number, opened->payload, &opened->error);
    return code == PLUMB_OK;
}

/* Tells what became of the item, and lets go of all that it held. */
static void close_item(const struct session *session, size_t number, struct progress_of_item *item)
{
    const struct walk *walk = session->walk;
    struct opened *opened = item->opened;
    static const struct plumb_payload none[2];
    if (!opened) {
        struct plumb_error error;
        plumb_no_memory(&error);
        walk->finish(walk->context, number, none, NULL, &error);
        return;
    }
    walk->finish(walk->context, number, opened->payload, item->failed ? NULL : item->state,
                 item->failed ? &opened->error : NULL);
    if (item->state)
        walk->kind->release(item->state);
    plumb_payload_release(&opened->payload[0]);
    plumb_payload_release(&opened->payload[1]);
    free(opened);
}

/* The state of one part, or NULL with the item's error set. */
static void *compute(const struct session *session, const struct task *task,
                     const struct opened *opened, struct plumb_error *err)
{
    const struct walk *walk = session->walk;
    struct plumb_file_guard guard[2];
    plumb_file_guard_enter(&guard[0], &opened->payload[0].file);
    plumb_file_guard_enter(&guard[1], &opened->payload[1].file);
    void *state = walk->kind->part(walk->shared, opened->payload, task->first, PART_ELEMENTS);
    bool shrank[2];
    shrank[1] = plumb_file_guard_leave(&guard[1]);
    shrank[0] = plumb_file_guard_leave(&guard[0]);

    if (!state)
        plumb_no_memory(err);
    for (unsigned i = 0; i < 2 && state; i++)
        if (shrank[i]) {
            mapped_fail_shrank(err);
            plumb_error_in_file(err, record_of(&walk->items[task->item].side[i])->path);
            walk->kind->release(state);
            state = NULL;
        }
    return state;
}

static void note_progress(struct session *session, const struct walk_item *item, size_t parts)
{
    const struct walk *walk = session->walk;
    if (!walk->progress)
        return;
    pthread_mutex_lock(&session->progress_lock);
    session->bytes_done += walk_bytes(item) / parts;
    walk->progress(walk->progress_context, session->bytes_done, session->bytes_total);
    pthread_mutex_unlock(&session->progress_lock);
}

static void run_task(void *context, size_t number, unsigned thread)
{
    (void)thread;
    struct session *session = context;
    const struct walk *walk = session->walk;
    const struct task *task = &session->tasks[number];
    struct progress_of_item *item = &session->items[task->item];

    pthread_mutex_lock(&item->lock);
    if (!item->begun) {
        item->begun = true;
        item->failed = !open_item(session, task->item, item);
    }
    bool failed = item->failed;
    pthread_mutex_unlock(&item->lock);

    struct plumb_error error;
    void *state = failed ? NULL : compute(session, task, item->opened, &error);

    pthread_mutex_lock(&item->lock);
    if (!failed && !state && !item->failed) {
        item->failed = true;
        item->opened->error = error;
    }
    if (state && item->state) {
        walk->kind->merge(item->state, state);
        walk->kind->release(state);
    } else if (state) {
        item->state = state;
    }
    bool last = --item->parts_left == 0;
    pthread_mutex_unlock(&item->lock);

    if (last)
        close_item(session, task->item, item);
    note_progress(session, &walk->items[task->item], item->parts);
}

enum plumb_code walk_run(const struct walk *walk, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_E_NOMEM;
    size_t count = 0;
    if (walk->crew)
        return walk_spread(walk, err);
    for (size_t i = 0; i < walk->count; i++)
        count += parts_of(&walk->items[i]);

    struct session session = {.walk = walk, .progress_lock = PTHREAD_MUTEX_INITIALIZER};
    struct task *tasks = calloc(count ? count : 1, sizeof *tasks);
    session.items = calloc(walk->count ? walk->count : 1, sizeof *session.items);
    session.tasks = tasks;
    if (!tasks || !session.items) {
        plumb_fail(err, code, "out of memory");
        goto out;
    }
    size_t next = 0;
    for (size_t i = 0; i < walk->count; i++) {
        struct progress_of_item *item = &session.items[i];
        pthread_mutex_init(&item->lock, NULL);
        item->parts = item->parts_left = parts_of(&walk->items[i]);
        session.bytes_total += walk_bytes(&walk->items[i]);
        for (size_t part = 0; part < item->parts; part++)
            tasks[next++] = (struct task){.item = i, .first = part * PART_ELEMENTS};
    }
    pool_run(walk->threads ? walk->threads : pool_default_threads(), count, run_task, &session);
    for (size_t i = 0; i < walk->count; i++)
        pthread_mutex_destroy(&session.items[i].lock);
    code = PLUMB_OK;
out:
    free(tasks);
    free(session.items);
    return code;
}
