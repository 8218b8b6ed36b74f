/* All recorded calls of a run on several threads: many small ones at a time, large ones alone. */
#include "verdict/calls.h"

#include "base/memory.h"
#include "base/pool.h"
#include "run/run.h"
#include "verdict/calls_spread.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- Many jobs ------------------------------------------------------------------------------- */

const char calls_too_large[] = "it needs more memory than calls may take (--memory)";

struct jobs {
    calls_job *job;
    void *context;
    uint64_t memory; /* of one */
    bool *again;     /* it did not fit beside others */
};

static void run_job(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct jobs *jobs = context;
    jobs->again[i] = !jobs->job(jobs->context, i, jobs->memory, false);
}

void calls_pool(unsigned threads, uint64_t memory, size_t count, calls_job *job, void *context)
{
    const uint64_t all = memory ? memory : memory_default();
    const unsigned n = threads ? threads : pool_default_threads();
    struct jobs jobs = {.job = job,
                        .context = context,
                        .memory = all / n,
                        .again = calloc(count + 1, sizeof *jobs.again)};
    if (jobs.again)
        pool_run(n, count, run_job, &jobs);
    for (size_t i = 0; i < count; i++)
        if (!jobs.again || jobs.again[i])
            job(context, i, all, true);
    free(jobs.again);
}

/* ---- Recorded calls -------------------------------------------------------------------------- */

struct work {
    const struct calls_options *options;
    struct judged_calls *calls;
    size_t done;
    pthread_mutex_t lock;
};

static void count_one(struct work *work)
{
    if (!work->options->progress)
        return;
    pthread_mutex_lock(&work->lock);
    work->done++;
    work->options->progress(work->options->progress_context, work->done, work->calls->count);
    pthread_mutex_unlock(&work->lock);
}

struct told {
    const struct calls_options *options;
    const struct judged_call *call;
};

static enum plumb_code tell(void *context, struct plumb_expected *expected,
                            const struct plumb_result *reference, const struct known_call *known,
                            struct plumb_error *err)
{
    (void)reference;
    (void)err;
    const struct told *told = context;
    told->options->watch(told->options->watch_context, told->call, expected, known);
    return PLUMB_OK;
}

static bool judge(void *context, size_t i, uint64_t memory, bool last)
{
    struct work *work = context;
    struct judged_call *call = &work->calls->list[i];
    struct plumb_error err;
    struct told told = {work->options, call};
    const struct local_options options = {.file = work->calls->dumps[call->dump].file,
                                          .repeats = work->options->repeats,
                                          .step = call->step,
                                          .rank = call->rank,
                                          .arithmetic = work->options->arithmetic,
                                          .seed = work->options->seed,
                                          .memory = memory,
                                          .watch = work->options->watch ? tell : NULL,
                                          .watch_context = &told};
    arena_free(&call->arena);
    const bool fits = !local_judge(&options, call->number, &call->arena, call->verdicts, &err);
    if (!fits && !last)
        return false;
    for (int d = 0; !fits && d < 2; d++)
        call->verdicts[d] = (struct local_verdict){.seen = true,
                                                   .word = PLUMB_WORD_NOT_JUDGED,
                                                   .recorded = SIZE_MAX,
                                                   .result = "",
                                                   .why = calls_too_large};
    count_one(work);
    return true;
}

static enum plumb_code open_dumps(struct judged_calls *calls, const struct plumb_run *run,
                                  const int64_t *rank, struct plumb_error *err)
{
    calls->dumps = calloc(run->tree_count + 1, sizeof *calls->dumps);
    if (!calls->dumps)
        return plumb_no_memory(err);
    for (size_t t = 0; t < run->tree_count; t++) {
        const struct dump_tree *tree = &run->trees[t];
        struct judged_dump *dump = &calls->dumps[calls->n_dumps];
        struct plumb_error why = {0};
        if (tree->debug || (rank && *rank != tree->rank))
            continue;
        *dump = (struct judged_dump){.step = tree->step, .rank = tree->rank, .path = tree->path};
        calls->n_dumps++;
        if (!case_file_open(tree->path, &dump->file, &why))
            calls->count += case_count(dump->file);
        else if (!(dump->unreadable = arena_printf(&calls->arena, "%s", why.message)))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static enum plumb_code list(struct judged_calls *calls, const struct plumb_run *run,
                            const int64_t *rank, struct plumb_error *err)
{
    enum plumb_code code = open_dumps(calls, run, rank, err);
    calls->list = code ? NULL : calloc(calls->count + 1, sizeof *calls->list);
    if (!calls->list) {
        calls->count = 0;
        return code ? code : plumb_no_memory(err);
    }
    size_t n = 0;
    for (size_t d = 0; d < calls->n_dumps; d++) {
        const struct judged_dump *dump = &calls->dumps[d];
        for (size_t i = 0; dump->file && i < case_count(dump->file); i++)
            calls->list[n++] = (struct judged_call){.dump = d,
                                                    .number = i,
                                                    .step = dump->step,
                                                    .rank = dump->rank,
                                                    .name = case_place(dump->file, i)->name};
    }
    return PLUMB_OK;
}

double calls_floor(enum plumb_dtype dtype, int64_t terms)
{
    const double k = sqrt((double)(terms < 1 ? 1 : terms));
    switch (dtype) {
    case PLUMB_F64:
    case PLUMB_C128:
        return 0x1p-53 * k;
    case PLUMB_F32:
    case PLUMB_C64:
        return 0x1p-24 * k;
    case PLUMB_F16:
        return 0x1p-12;
    case PLUMB_BF16:
        return 0x1p-9;
    default:
        return plumb_dtype_info(dtype)->kind == PLUMB_KIND_FLOAT ? 0x1p-4 : 0;
    }
}

/* Those that did not fit beside others come again here, alone. */
static enum plumb_code judge_spread(struct work *work, struct plumb_error *err)
{
    struct judged_calls *calls = work->calls;
    bool *again = calloc(calls->count + 1, sizeof *again);
    if (!again)
        return plumb_no_memory(err);
    const enum plumb_code code = calls_spread(calls, work->options, again, err);
    const uint64_t memory = work->options->memory ? work->options->memory : memory_default();
    for (size_t i = 0; i < calls->count && !code; i++)
        work->done += !again[i];
    for (size_t i = 0; i < calls->count && !code; i++)
        if (again[i])
            judge(work, i, memory, true);
    free(again);
    return code;
}

enum plumb_code calls_judge(struct judged_calls *calls, const struct plumb_run *run,
                            const struct calls_options *options, struct plumb_error *err)
{
    struct work work = {.options = options, .calls = calls, .lock = PTHREAD_MUTEX_INITIALIZER};
    *calls = (struct judged_calls){0};
    const enum plumb_code code = list(calls, run, options->rank, err);
    if (code)
        return code;
    /* Who watches wants tensors that other processes would have to send. */
    if (options->crew && !options->watch && !repeats_count(options->repeats))
        return judge_spread(&work, err);
    calls_pool(options->threads, options->memory, calls->count, judge, &work);
    return PLUMB_OK;
}

void calls_free(struct judged_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        arena_free(&calls->list[i].arena);
    for (size_t d = 0; d < calls->n_dumps; d++)
        case_file_close(calls->dumps[d].file);
    free(calls->list);
    free(calls->dumps);
    arena_free(&calls->arena);
    *calls = (struct judged_calls){0};
}
