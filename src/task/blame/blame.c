/* Looking at a run: all calls of its dumps on several threads, then the other run, then the
 * answer. */
#define _GNU_SOURCE
#include "task/blame/parts.h"

#include "base/memory.h"
#include "base/pool.h"
#include "run/run.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What an answer leads into. */
struct kept {
    struct plumb_blame blame;
    const struct plumb_blame_options *options;
    struct plumb_run *target, *golden;
    struct repeats *repeats;
    struct sites sites;
    struct arena arena;
    struct plumb_baseline *found; /* the caller's, or own; NULL: nobody asks */
    struct plumb_baseline *own;
    struct meter meter;
    unsigned threads;
};

/* A call that waits, or has its verdicts. */
struct job {
    size_t tree, call;
    bool small; /* it did not fit beside others */
    struct arena arena;
    struct local_verdict verdicts[2];
    struct plumb_error err;
};

struct work {
    struct kept *kept;
    const struct dump_tree *trees;
    struct case_file **files; /* by tree; NULL: unreadable */
    struct job *jobs;
    size_t n_jobs;
    uint64_t memory; /* of one call */
};

void meter_add(struct meter *meter, uint64_t n)
{
    if (!meter->tell)
        return;
    pthread_mutex_lock(&meter->lock);
    meter->done += n;
    if (meter->done <= meter->total)
        meter->tell(meter->context, meter->done, meter->total);
    pthread_mutex_unlock(&meter->lock);
}

static void judge_job(void *context, size_t i, unsigned thread)
{
    (void)thread;
    struct work *work = context;
    struct job *job = &work->jobs[i];
    const struct dump_tree *tree = &work->trees[job->tree];
    const struct local_options options = {.file = work->files[job->tree],
                                          .repeats = work->kept->repeats,
                                          .step = tree->step,
                                          .rank = tree->rank,
                                          .arithmetic = work->kept->options->arithmetic,
                                          .seed = work->kept->options->seed,
                                          .memory = work->memory};
    const bool first = !job->small;
    const enum plumb_code code =
        local_judge(&options, job->call, &job->arena, job->verdicts, &job->err);
    job->small = code == PLUMB_E_NOMEM;
    if (first)
        meter_add(&work->kept->meter, 1);
}

static const char too_large[] = "it needs more memory than calls may take (--memory)";

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
            for (int d = 0; d < 2; d++)
                job->verdicts[d] = (struct local_verdict){
                    .seen = true, .word = PLUMB_WORD_NOT_JUDGED, .result = "", .why = too_large};
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
    work->jobs = calloc(work->n_jobs + 1, sizeof *work->jobs);
    if (!work->jobs)
        return plumb_no_memory(err);
    size_t n = 0;
    for (size_t t = 0; t < n_trees; t++)
        for (size_t i = 0; work->files[t] && i < case_count(work->files[t]); i++) {
            work->jobs[n].tree = t;
            work->jobs[n++].call = i;
        }
    return PLUMB_OK;
}

/* Every result of a site, for the baseline. */
static enum plumb_code gather(struct kept *kept, const struct site *site,
                              const struct local_verdict *results, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (const struct local_verdict *v = results; kept->found && v && !code; v = v->next) {
        const struct plumb_deviation is = {.call = site->is.call,
                                           .result = v->result,
                                           .step = site->is.step,
                                           .rank = site->is.rank,
                                           .word = v->word,
                                           .worst = v->worst,
                                           .arithmetic = v->arithmetic,
                                           .pattern = v->pattern};
        code = plumb_baseline_add(kept->found, &is, err);
    }
    return code;
}

/* False when out of memory. */
static bool take_verdict(struct arena *arena, const struct local_verdict *v,
                         struct plumb_suspect *is)
{
    const char *const from[] = {v->result, v->why, v->pattern, v->arithmetic, v->place};
    const char **const to[] = {&is->result, &is->why, &is->pattern, &is->arithmetic, &is->place};
    is->word = v->word;
    is->unsteady = v->unsteady;
    is->worst = v->worst;
    is->limit = v->limit;
    is->got = v->got;
    is->expected = v->expected;
    is->differing = v->differing;
    bool fine = true;
    for (size_t k = 0; k < sizeof from / sizeof *from; k++) {
        *to[k] = arena_printf(arena, "%s", from[k] ? from[k] : "");
        fine &= *to[k] != NULL;
    }
    return fine;
}

/* "Functional.linear.0" stands for two sites, an operator "00004-aten" for one. */
static enum plumb_code store(struct kept *kept, const struct work *work, const struct job *job,
                             struct plumb_error *err)
{
    static const char *const endings[] = {".forward", ".backward"};
    const struct dump_tree *tree = &work->trees[job->tree];
    const char *name = case_place(work->files[job->tree], job->call)->name;
    for (int d = 0; d < 2; d++) {
        const struct local_verdict *v = &job->verdicts[d];
        if (!v->seen)
            continue;
        struct arena arena = {0};
        const char *full = arena_printf(&arena, "%s%s", name, endings[d]);
        struct site *site =
            full ? sites_find(&kept->sites, full, strlen(full), tree->step, tree->rank) : NULL;
        if (!site)
            site = sites_find(&kept->sites, name, strlen(name), tree->step, tree->rank);
        arena_free(&arena);
        if (!full)
            return plumb_no_memory(err);
        if (!site)
            continue;
        site->judged_locally = true;
        if (kept->target->tree_count > 1)
            site->is.dump = tree->path;
        if (!take_verdict(&kept->arena, v, &site->is))
            return plumb_no_memory(err);
        const enum plumb_code code = gather(kept, site, v->next, err);
        if (code)
            return code;
    }
    return PLUMB_OK;
}

static enum plumb_code judge_calls(struct kept *kept, struct plumb_error *err)
{
    const uint64_t memory = kept->options->memory ? kept->options->memory : memory_default();
    struct work work = {
        .kept = kept, .trees = kept->target->trees, .memory = memory / kept->threads};
    enum plumb_code code = list_jobs(kept, &work, err);
    if (!code) {
        const size_t others = (kept->golden != NULL) + repeats_count(kept->repeats);
        kept->meter.total = work.n_jobs ? work.n_jobs : others * plumb_run_count(kept->target);
        pool_run(kept->threads, work.n_jobs, judge_job, &work);
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
    return code;
}

static enum plumb_code open_runs(struct kept *kept, struct plumb_error *err)
{
    const struct plumb_blame_options *options = kept->options;
    enum plumb_code code = plumb_run_open(&kept->target, options->target, err);
    if (!code && options->golden)
        code = plumb_run_open(&kept->golden, options->golden, err);
    if (!code)
        code =
            repeats_open(options->repeats, options->n_repeats, kept->target, &kept->repeats, err);
    if (!code)
        code = sites_list(&kept->sites, kept->target, err);
    if (!code && !kept->sites.count) {
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "no calls: names of inputs and outputs are what tells them");
        plumb_error_in_file(err, options->target);
    }
    return code;
}

static enum plumb_code measure_distances(struct kept *kept, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (kept->golden)
        code = distances_fill(&kept->sites, kept->target, kept->golden, kept->threads, &kept->meter,
                              &kept->blame, err);
    for (size_t k = 0; k < repeats_count(kept->repeats) && !code; k++)
        code = distances_between(&kept->sites, kept->target, repeats_run(kept->repeats, k),
                                 kept->threads, &kept->meter, err);
    return code;
}

static struct plumb_deviation as_deviation(const struct plumb_suspect *is)
{
    return (struct plumb_deviation){.call = is->call,
                                    .result = is->result,
                                    .step = is->step,
                                    .rank = is->rank,
                                    .word = is->word,
                                    .worst = is->worst,
                                    .arithmetic = is->arithmetic,
                                    .pattern = is->pattern};
}

/* Adds what was not computed to what was found, and asks what of it is accepted. */
static enum plumb_code ask_baseline(struct kept *kept, struct plumb_error *err)
{
    const struct plumb_baseline *accepted = kept->options->accepted;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < kept->sites.count && !code; k++) {
        struct site *site = &kept->sites.list[k];
        const struct plumb_deviation is = as_deviation(&site->is);
        if (kept->found && (!site->judged_locally || site->is.by_jump))
            code = plumb_baseline_add(kept->found, &is, err);
        if (accepted)
            site->is.standing = plumb_baseline_ask(accepted, &is);
    }
    return code || !accepted
               ? code
               : plumb_baseline_compare(accepted, kept->found, &kept->blame.baseline, err);
}

static enum plumb_code begin(struct kept *kept, struct plumb_error *err)
{
    const struct plumb_blame_options *options = kept->options;
    const struct plumb_baseline_options how = {.seed = options->seed,
                                               .arithmetic = options->arithmetic};
    kept->blame.memory = kept;
    kept->threads = options->threads ? options->threads : pool_default_threads();
    kept->meter = (struct meter){.tell = options->progress,
                                 .context = options->progress_context,
                                 .lock = PTHREAD_MUTEX_INITIALIZER};
    kept->found = options->found;
    if (kept->found || !options->accepted)
        return PLUMB_OK;
    const enum plumb_code code = plumb_baseline_new(&how, &kept->own, err);
    kept->found = kept->own;
    return code;
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
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return plumb_no_memory(err);
    kept->options = options;
    code = begin(kept, err);
    if (!code)
        code = open_runs(kept, err);
    if (!code)
        code = judge_calls(kept, err);
    if (!code)
        code = measure_distances(kept, err);
    if (!code)
        code = answer_decide(&kept->sites, kept->golden != NULL, &kept->arena, err);
    if (!code)
        code = stale_find(&kept->sites, kept->target, &kept->arena, err);
    if (!code)
        code = ask_baseline(kept, err);
    if (!code)
        code = answer_list(&kept->sites, &kept->arena, &kept->blame, err);
    plumb_run_free(kept->golden);
    repeats_free(kept->repeats);
    kept->golden = NULL;
    kept->repeats = NULL;
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
    plumb_baseline_diff_free(blame->baseline);
    plumb_baseline_free(kept->own);
    plumb_run_free(kept->target);
    sites_free(&kept->sites);
    arena_free(&kept->arena);
    free(kept);
}
