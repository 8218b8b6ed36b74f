/* Judging all calls of a run: those of its dumps, and modules and nodes that are put together from
 * records. */
#include "task/blame/kept.h"

#include <stdlib.h>
#include <string.h>

static struct plumb_deviation deviation_of(const struct site *site, const struct local_verdict *v)
{
    return (struct plumb_deviation){.call = site->is.call,
                                    .result = v->result,
                                    .step = site->is.step,
                                    .rank = site->is.rank,
                                    .word = v->word,
                                    .worst = v->worst,
                                    .arithmetic = v->arithmetic,
                                    .pattern = v->pattern};
}

/* Every result of a site, for the baseline; of a module what was decided of all of them. */
static enum plumb_code gather(struct kept *kept, const struct site *site,
                              const struct local_verdict *verdict, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (const struct local_verdict *v = site->module ? verdict : verdict->next;
         kept->found && v && !code; v = site->module ? NULL : v->next) {
        const struct plumb_deviation is = deviation_of(site, v);
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

enum plumb_code jobs_store(struct kept *kept, struct site *site, const struct local_verdict *v,
                           struct plumb_error *err)
{
    if (site->cut)
        return PLUMB_OK;
    site->judged_locally = true;
    site->doubtful = v->doubtful;
    if (!take_verdict(&kept->arena, v, &site->is))
        return plumb_no_memory(err);
    return gather(kept, site, v, err);
}

/* ---- Calls of dumps -------------------------------------------------------------------------- */

/* Why no call of a dump can be computed. False when out of memory. */
static bool note_unreadable(struct kept *kept, const struct judged_dump *dump)
{
    const char *text = arena_printf(&kept->arena, "its dump.json: %s", dump->unreadable);
    for (size_t k = 0; k < kept->sites.count; k++) {
        struct plumb_suspect *is = &kept->sites.list[k].is;
        if (is->step == dump->step && is->rank == dump->rank && !kept->sites.list[k].cut)
            is->why = text;
    }
    return text != NULL;
}

/* "Functional.linear.0" stands for two sites, an operator "00004-aten" for one. */
static struct site *site_of(const struct sites *sites, const struct judged_call *call,
                            int direction)
{
    static const char *const endings[] = {".forward", ".backward"};
    struct arena arena = {0};
    const char *full = arena_printf(&arena, "%s%s", call->name, endings[direction]);
    struct site *site = full ? sites_find(sites, full, strlen(full), call->step, call->rank) : NULL;
    if (!site)
        site = sites_find(sites, call->name, strlen(call->name), call->step, call->rank);
    arena_free(&arena);
    return site;
}

static enum plumb_code store_call(struct kept *kept, const struct judged_calls *calls,
                                  const struct judged_call *call, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (int d = 0; d < 2 && !code; d++) {
        const struct local_verdict *v = &call->verdicts[d];
        struct site *site = v->seen ? site_of(&kept->sites, call, d) : NULL;
        if (!site)
            continue;
        if (kept->target->tree_count > 1)
            site->is.dump = calls->dumps[call->dump].path;
        code = jobs_store(kept, site, v, err);
    }
    return code;
}

/* What is wrong is looked at while its reference is there. */
static void watch_call(void *context, const struct judged_call *call,
                       struct plumb_expected *expected, const struct known_call *known)
{
    struct kept *kept = context;
    for (int d = 0; d < 2; d++) {
        const struct site *site =
            looks_wanted(&call->verdicts[d]) ? site_of(&kept->sites, call, d) : NULL;
        if (site)
            looks_take(&kept->looks, (size_t)(site - kept->sites.list), &call->verdicts[d],
                       expected, known);
    }
}

static void count_call(void *context, uint64_t done, uint64_t total)
{
    struct meter *meter = context;
    if (done == 1)
        meter->total += total;
    meter_add(meter, 1);
}

static enum plumb_code judge_dumps(struct kept *kept, struct plumb_error *err)
{
    const struct plumb_blame_options *options = kept->options;
    const struct calls_options how = {.crew = options->crew,
                                      .repeats = kept->repeats,
                                      .arithmetic = options->arithmetic,
                                      .seed = options->seed,
                                      .threads = kept->threads,
                                      .memory = options->memory,
                                      .progress = count_call,
                                      .progress_context = &kept->meter,
                                      .watch = options->pages ? watch_call : NULL,
                                      .watch_context = kept};
    struct judged_calls calls;
    enum plumb_code code = calls_judge(&calls, kept->target, &how, err);
    for (size_t d = 0; d < calls.n_dumps && !code; d++)
        if (calls.dumps[d].unreadable && !note_unreadable(kept, &calls.dumps[d]))
            code = plumb_no_memory(err);
    for (size_t i = 0; i < calls.count && !code; i++)
        code = store_call(kept, &calls, &calls.list[i], err);
    calls_free(&calls);
    return code;
}

/* ---- Modules and nodes ----------------------------------------------------------------------- */

/* A unit that waits, or has its verdicts. */
struct job {
    struct arena arena;
    struct local_verdict verdicts[LOCAL_DIRECTIONS];
};

struct work {
    struct kept *kept;
    struct units units;
    struct extras extras;
    struct job *jobs;
};

struct told {
    struct work *work;
    size_t unit;
};

static enum plumb_code watch_unit(void *context, struct plumb_expected *expected,
                                  const struct plumb_result *reference,
                                  const struct known_call *known, struct plumb_error *err)
{
    (void)reference;
    (void)err;
    const struct told *told = context;
    const struct unit *unit = &told->work->units.list[told->unit];
    const struct job *job = &told->work->jobs[told->unit];
    for (int d = 0; d < LOCAL_DIRECTIONS; d++)
        if (unit->sites[d] && looks_wanted(&job->verdicts[d]))
            looks_take(&told->work->kept->looks, unit->sites[d] - 1, &job->verdicts[d], expected,
                       known);
    return PLUMB_OK;
}

static bool judge_unit(void *context, size_t i, uint64_t memory, bool last)
{
    struct work *work = context;
    struct kept *kept = work->kept;
    struct job *job = &work->jobs[i];
    const struct unit *unit = &work->units.list[i];
    struct told told = {work, i};
    const struct unit_options options = {
        .local = {.arithmetic = kept->options->arithmetic,
                  .seed = kept->options->seed,
                  .memory = memory,
                  .watch = kept->options->pages ? watch_unit : NULL,
                  .watch_context = &told},
        .run = kept->target,
        .units = &work->units,
        .settings = extras_settings(&work->extras, kept->target, unit),
        .weights = work->extras.weights};
    struct plumb_error why;
    arena_free(&job->arena);
    const bool fits = unit_judge(&options, unit, &job->arena, job->verdicts, &why) != PLUMB_E_NOMEM;
    if (!fits && !last)
        return false;
    for (int d = 0; !fits && d < LOCAL_DIRECTIONS; d++)
        job->verdicts[d] = (struct local_verdict){
            .seen = true, .word = PLUMB_WORD_NOT_JUDGED, .result = "", .why = calls_too_large};
    meter_add(&kept->meter, 1);
    return true;
}

static enum plumb_code store_unit(struct kept *kept, const struct unit *unit, const struct job *job,
                                  struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (int d = 0; d < LOCAL_DIRECTIONS && !code; d++) {
        if (!job->verdicts[d].seen || !unit->sites[d])
            continue;
        struct site *site = &kept->sites.list[unit->sites[d] - 1];
        site->module = site->is.module = true;
        code = jobs_store(kept, site, &job->verdicts[d], err);
    }
    return code;
}

static enum plumb_code judge_units(struct kept *kept, struct plumb_error *err)
{
    struct work work = {.kept = kept};
    enum plumb_code code = units_list(&work.units, &kept->sites, kept->target, err);
    if (!code)
        code = extras_open(&work.extras, kept->target, kept->options->weights, err);
    if (!code && !(work.jobs = calloc(work.units.count + 1, sizeof *work.jobs)))
        code = plumb_no_memory(err);
    kept->meter.total += code ? 0 : work.units.count;
    if (!code)
        calls_pool(kept->threads, kept->options->memory, work.units.count, judge_unit, &work);
    for (size_t i = 0; i < work.units.count && work.jobs; i++) {
        if (!code)
            code = store_unit(kept, &work.units.list[i], &work.jobs[i], err);
        arena_free(&work.jobs[i].arena);
    }
    free(work.jobs);
    units_free(&work.units);
    extras_close(&work.extras);
    return code;
}

enum plumb_code jobs_judge(struct kept *kept, struct plumb_error *err)
{
    const size_t others = (kept->golden != NULL) + repeats_count(kept->repeats);
    kept->meter.total = others * plumb_run_count(kept->target);
    const enum plumb_code code = judge_dumps(kept, err);
    return code ? code : judge_units(kept, err);
}
