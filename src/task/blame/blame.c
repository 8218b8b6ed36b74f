/* Looking at a run: all calls of its dumps on several threads, then the other run, then the
 * answer. */
#define _GNU_SOURCE
#include "task/blame/graphs.h"
#include "task/blame/units.h"

#include "base/memory.h"
#include "base/pool.h"
#include "run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What an answer leads into. */
struct kept {
    struct plumb_blame blame;
    struct plumb_run *target;
    struct sites sites;
    struct arena arena;
};

/* A call that waits, or has its verdicts: one of a dump.json, or a unit. */
struct job {
    size_t tree, call;
    const struct unit *unit; /* NULL: call of tree */
    bool small;              /* it did not fit beside others */
    struct arena arena;
    struct local_verdict verdicts[LOCAL_DIRECTIONS];
    struct plumb_error err;
};

struct work {
    const struct plumb_blame_options *options;
    const struct plumb_run *run;
    const struct dump_tree *trees;
    struct case_file **files; /* by tree; NULL: unreadable */
    struct units units;
    struct extras extras;
    struct job *jobs;
    size_t n_jobs, done;
    uint64_t memory; /* of one call */
    pthread_mutex_t lock;
};

static void judge_job(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct work *work = context;
    struct job *job = &work->jobs[i];
    const struct local_options options = {.file = job->unit ? NULL : work->files[job->tree],
                                          .arithmetic = work->options->arithmetic,
                                          .seed = work->options->seed,
                                          .memory = work->memory};
    const struct unit *unit = job->unit;
    const struct unit_options of_unit = {
        .local = options,
        .run = work->run,
        .units = &work->units,
        .settings = unit ? extras_settings(&work->extras, work->run, unit) : NULL,
        .weights = work->extras.weights};
    const enum plumb_code code =
        unit ? unit_judge(&of_unit, unit, &job->arena, job->verdicts, &job->err)
             : local_judge(&options, job->call, &job->arena, job->verdicts, &job->err);
    job->small = code == PLUMB_E_NOMEM;
    pthread_mutex_lock(&work->lock);
    if (work->options->progress)
        work->options->progress(work->options->progress_context, ++work->done, work->n_jobs);
    pthread_mutex_unlock(&work->lock);
}

/* Those that did not fit run again, one at a time, with all of the memory. */
static void judge_large(struct work *work, uint64_t memory)
{
    work->memory = memory;
    for (size_t i = 0; i < work->n_jobs; i++) {
        struct job *job = &work->jobs[i];
        if (!job->small)
            continue;
        arena_free(&job->arena);
        judge_job(work, i, 0);
        if (job->small)
            for (int d = 0; d < LOCAL_DIRECTIONS; d++)
                job->verdicts[d] = (struct local_verdict){.seen = d == 0 || job->unit,
                                                          .word = PLUMB_WORD_NOT_JUDGED,
                                                          .result = "",
                                                          .why = "it needs more memory than "
                                                                 "there is"};
    }
}

/* Why no call of a dump can be computed. False when out of memory. */
static bool note_unreadable(struct kept *kept, const struct dump_tree *tree, const char *why)
{
    const char *text = arena_printf(&kept->arena, "its dump.json: %s", why);
    for (size_t k = 0; k < kept->sites.count; k++) {
        struct plumb_suspect *is = &kept->sites.list[k].is;
        if (is->step == tree->step && is->rank == tree->rank)
            is->why = text;
    }
    return text != NULL;
}

static enum plumb_code list_jobs(struct kept *kept, struct work *work, struct plumb_error *err)
{
    const size_t n_trees = kept->target->tree_count;
    work->files = calloc(n_trees + 1, sizeof *work->files);
    if (!work->files)
        return plumb_no_memory(err);
    for (size_t t = 0; t < n_trees; t++) {
        struct plumb_error why = {0};
        if (work->trees[t].debug)
            continue;
        if (!case_file_open(work->trees[t].path, &work->files[t], &why))
            work->n_jobs += case_count(work->files[t]);
        else if (!note_unreadable(kept, &work->trees[t], why.message))
            return plumb_no_memory(err);
    }
    const enum plumb_code code = units_list(&work->units, &kept->sites, work->run, err);
    if (code)
        return code;
    work->n_jobs += work->units.count;
    work->jobs = calloc(work->n_jobs + 1, sizeof *work->jobs);
    if (!work->jobs)
        return plumb_no_memory(err);
    size_t n = 0;
    for (size_t t = 0; t < n_trees; t++)
        for (size_t i = 0; work->files[t] && i < case_count(work->files[t]); i++) {
            work->jobs[n].tree = t;
            work->jobs[n++].call = i;
        }
    for (size_t i = 0; i < work->units.count; i++)
        work->jobs[n++].unit = &work->units.list[i];
    return PLUMB_OK;
}

/* "Functional.linear.0" stands for two sites, an operator "00004-aten" for one. */
static struct site *site_of_call(const struct kept *kept, const struct work *work,
                                 const struct job *job, int direction)
{
    static const char *const endings[] = {".forward", ".backward"};
    const struct dump_tree *tree = &work->trees[job->tree];
    const char *name = case_place(work->files[job->tree], job->call)->name;
    struct arena arena = {0};
    const char *full =
        direction < 2 ? arena_printf(&arena, "%s%s", name, endings[direction]) : NULL;
    struct site *site =
        full ? sites_find(&kept->sites, full, strlen(full), tree->step, tree->rank) : NULL;
    if (!site)
        site = sites_find(&kept->sites, name, strlen(name), tree->step, tree->rank);
    arena_free(&arena);
    return site;
}

static enum plumb_code store(struct kept *kept, const struct work *work, const struct job *job,
                             struct plumb_error *err)
{
    for (int d = 0; d < LOCAL_DIRECTIONS; d++) {
        const struct local_verdict *v = &job->verdicts[d];
        const size_t place = job->unit ? job->unit->sites[d] : 0;
        struct site *site = !v->seen    ? NULL
                            : job->unit ? (place ? &kept->sites.list[place - 1] : NULL)
                                        : site_of_call(kept, work, job, d);
        if (!site)
            continue;
        site->judged_locally = true;
        site->module = site->is.module = job->unit != NULL;
        site->doubtful = v->doubtful;
        site->is.word = v->word;
        site->is.worst = v->worst;
        site->is.result = arena_printf(&kept->arena, "%s", v->result);
        site->is.why = arena_printf(&kept->arena, "%s", v->why);
        if (!site->is.result || !site->is.why)
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static enum plumb_code judge_calls(struct kept *kept, const struct plumb_blame_options *options,
                                   struct plumb_error *err)
{
    const unsigned threads = options->threads ? options->threads : pool_default_threads();
    const uint64_t memory = options->memory ? options->memory : memory_default();
    struct work work = {.options = options,
                        .run = kept->target,
                        .trees = kept->target->trees,
                        .memory = memory / threads,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    enum plumb_code code = list_jobs(kept, &work, err);
    if (!code)
        code = extras_open(&work.extras, kept->target, options->weights, err);
    if (!code) {
        pool_run(threads, work.n_jobs, judge_job, &work);
        judge_large(&work, memory);
    }
    for (size_t i = 0; i < work.n_jobs && work.jobs; i++) {
        if (!code)
            code = store(kept, &work, &work.jobs[i], err);
        arena_free(&work.jobs[i].arena);
    }
    for (size_t t = 0; work.files && t < kept->target->tree_count; t++)
        case_file_close(work.files[t]);
    free(work.files);
    free(work.jobs);
    units_free(&work.units);
    extras_close(&work.extras);
    return code;
}

static enum plumb_code open_runs(const struct plumb_blame_options *options,
                                 struct plumb_run **target, struct plumb_run **golden,
                                 struct plumb_error *err)
{
    if (graphs_are(options->target))
        return graphs_open(options->target, options->golden, target, golden, err);
    const enum plumb_code code = plumb_run_open(target, options->target, err);
    return code || !options->golden ? code : plumb_run_open(golden, options->golden, err);
}

enum plumb_code plumb_blame_run(const struct plumb_blame_options *options, struct plumb_blame **out,
                                struct plumb_error *err)
{
    *out = NULL;
    enum plumb_code code = plumb_arithmetic_check(options->arithmetic, err);
    if (!code)
        code = plumb_op_ready(err);
    if (code)
        return code;
    struct plumb_run *golden = NULL;
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return plumb_no_memory(err);
    kept->blame.memory = kept;
    code = open_runs(options, &kept->target, &golden, err);
    if (!code)
        code = sites_list(&kept->sites, kept->target, err);
    if (!code && !kept->sites.count) {
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "no calls: names of inputs and outputs are what tells them");
        plumb_error_in_file(err, options->target);
    }
    if (!code)
        code = judge_calls(kept, options, err);
    if (!code && golden)
        code = distances_fill(&kept->sites, kept->target, golden, options, &kept->blame, err);
    if (!code)
        code = answer_make(&kept->sites, golden != NULL, &kept->arena, &kept->blame, err);
    plumb_run_free(golden);
    if (code)
        plumb_blame_free(&kept->blame);
    else
        *out = &kept->blame;
    return code;
}

void plumb_blame_free(struct plumb_blame *blame)
{
    if (!blame)
        return;
    struct kept *kept = blame->memory;
    plumb_run_free(kept->target);
    sites_free(&kept->sites);
    arena_free(&kept->arena);
    free(kept);
}
