/* All recorded calls of a run on several threads: many small ones at a time, large ones alone. */
#include "verdict/calls.h"

#include "base/memory.h"
#include "base/pool.h"
#include "run/run.h"

#include <pthread.h>
#include <stdlib.h>

struct work {
    const struct calls_options *options;
    struct judged_calls *calls;
    size_t done;
    uint64_t memory; /* of one call */
    pthread_mutex_t lock;
};

static void judge(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct work *work = context;
    struct judged_call *call = &work->calls->list[i];
    struct plumb_error err;
    const struct local_options options = {.file = work->calls->files[call->tree],
                                          .arithmetic = work->options->arithmetic,
                                          .seed = work->options->seed,
                                          .memory = work->memory};
    call->waits = local_judge(&options, call->number, &call->arena, call->verdicts, &err) != 0;
    if (!work->options->progress)
        return;
    pthread_mutex_lock(&work->lock);
    work->done += !call->waits; /* those come again */
    work->options->progress(work->options->progress_context, work->done, work->calls->count);
    pthread_mutex_unlock(&work->lock);
}

/* Those that did not fit run again, one at a time, with all of the memory. */
static void judge_large(struct work *work, uint64_t memory)
{
    work->memory = memory;
    for (size_t i = 0; i < work->calls->count; i++) {
        struct judged_call *call = &work->calls->list[i];
        if (!call->waits)
            continue;
        arena_free(&call->arena);
        judge(work, i, 0);
        for (int d = 0; call->waits && d < 2; d++)
            call->verdicts[d] = (struct local_verdict){.seen = d == 0,
                                                       .word = PLUMB_WORD_NOT_JUDGED,
                                                       .result = "",
                                                       .why = "it needs more memory than there is"};
    }
}

static enum plumb_code open_files(struct judged_calls *calls, const struct plumb_run *run,
                                  struct plumb_error *err)
{
    calls->files = calloc(run->tree_count + 1, sizeof *calls->files);
    calls->unreadable = arena_array(&calls->arena, run->tree_count + 1, sizeof *calls->unreadable);
    if (!calls->files || !calls->unreadable)
        return plumb_no_memory(err);
    calls->n_trees = run->tree_count;
    for (size_t t = 0; t < run->tree_count; t++) {
        struct plumb_error why = {0};
        if (run->trees[t].debug)
            continue;
        if (!case_file_open(run->trees[t].path, &calls->files[t], &why))
            calls->count += case_count(calls->files[t]);
        else if (!(calls->unreadable[t] = arena_printf(&calls->arena, "%s", why.message)))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static enum plumb_code list(struct judged_calls *calls, const struct plumb_run *run,
                            struct plumb_error *err)
{
    enum plumb_code code = open_files(calls, run, err);
    calls->list = code ? NULL : calloc(calls->count + 1, sizeof *calls->list);
    if (!calls->list) {
        calls->count = 0;
        return code ? code : plumb_no_memory(err);
    }
    size_t n = 0;
    for (size_t t = 0; t < calls->n_trees; t++)
        for (size_t i = 0; calls->files[t] && i < case_count(calls->files[t]); i++)
            calls->list[n++] = (struct judged_call){
                .tree = t, .number = i, .name = case_place(calls->files[t], i)->name};
    return PLUMB_OK;
}

enum plumb_code calls_judge(struct judged_calls *calls, const struct plumb_run *run,
                            const struct calls_options *options, struct plumb_error *err)
{
    const unsigned threads = options->threads ? options->threads : pool_default_threads();
    const uint64_t memory = options->memory ? options->memory : memory_default();
    struct work work = {.options = options,
                        .calls = calls,
                        .memory = memory / threads,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    *calls = (struct judged_calls){0};
    const enum plumb_code code = list(calls, run, err);
    if (code)
        return code;
    pool_run(threads, calls->count, judge, &work);
    judge_large(&work, memory);
    return PLUMB_OK;
}

void calls_free(struct judged_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        arena_free(&calls->list[i].arena);
    for (size_t t = 0; t < calls->n_trees; t++)
        case_file_close(calls->files[t]);
    free(calls->list);
    free(calls->files);
    arena_free(&calls->arena);
    *calls = (struct judged_calls){0};
}
