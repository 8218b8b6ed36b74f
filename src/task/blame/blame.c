/* Looking at a run: all calls of its dumps, then the other run, then the answer. */
#define _GNU_SOURCE
#include "task/blame/parts.h"

#include <stdlib.h>
#include <string.h>

/* What an answer leads into. */
struct kept {
    struct plumb_blame blame;
    struct plumb_run *target;
    struct sites sites;
    struct arena arena;
};

/* Why no call of a dump can be computed. False when out of memory. */
static bool note_unreadable(struct kept *kept, const struct judged_dump *dump)
{
    const char *text = arena_printf(&kept->arena, "its dump.json: %s", dump->unreadable);
    for (size_t k = 0; k < kept->sites.count; k++) {
        struct plumb_suspect *is = &kept->sites.list[k].is;
        if (is->step == dump->step && is->rank == dump->rank)
            is->why = text;
    }
    return text != NULL;
}

/* "Functional.linear.0" stands for two sites, an operator "00004-aten" for one. */
static enum plumb_code store(struct kept *kept, const struct judged_call *call,
                             struct plumb_error *err)
{
    static const char *const endings[] = {".forward", ".backward"};
    const char *name = call->name;
    for (int d = 0; d < 2; d++) {
        const struct local_verdict *v = &call->verdicts[d];
        if (!v->seen)
            continue;
        struct arena arena = {0};
        const char *full = arena_printf(&arena, "%s%s", name, endings[d]);
        struct site *site =
            full ? sites_find(&kept->sites, full, strlen(full), call->step, call->rank) : NULL;
        if (!site)
            site = sites_find(&kept->sites, name, strlen(name), call->step, call->rank);
        arena_free(&arena);
        if (!full)
            return plumb_no_memory(err);
        if (!site)
            continue;
        site->judged_locally = true;
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
    const struct calls_options how = {.arithmetic = options->arithmetic,
                                      .seed = options->seed,
                                      .threads = options->threads,
                                      .memory = options->memory,
                                      .progress = options->progress,
                                      .progress_context = options->progress_context};
    struct judged_calls calls;
    enum plumb_code code = calls_judge(&calls, kept->target, &how, err);
    for (size_t d = 0; d < calls.n_dumps && !code; d++)
        if (calls.dumps[d].unreadable && !note_unreadable(kept, &calls.dumps[d]))
            code = plumb_no_memory(err);
    for (size_t i = 0; i < calls.count && !code; i++)
        code = store(kept, &calls.list[i], err);
    calls_free(&calls);
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
    struct plumb_run *golden = NULL;
    struct kept *kept = calloc(1, sizeof *kept);
    if (!kept)
        return plumb_no_memory(err);
    kept->blame.memory = kept;
    code = plumb_run_open(&kept->target, options->target, err);
    if (!code && options->golden)
        code = plumb_run_open(&golden, options->golden, err);
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
