/* Looking at a run: all of its calls, then other runs, then the answer. */
#define _GNU_SOURCE
#include "task/blame/across.h"
#include "task/blame/graphs.h"
#include "task/blame/kept.h"

#include "base/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void meter_add(struct meter *meter, uint64_t n)
{
    if (!meter->tell)
        return;
    pthread_mutex_lock(&meter->lock);
    meter->done += n;
    meter->tell(meter->context, meter->done, meter->total);
    pthread_mutex_unlock(&meter->lock);
}

/* An entry that ends early lacks arguments that the call had. False when out of memory. */
static bool note_cut(struct kept *kept)
{
    for (size_t t = 0; t < kept->target->tree_count; t++) {
        const struct dump_tree *tree = &kept->target->trees[t];
        const struct dump_api *last = tree->api_count ? &tree->apis[tree->api_count - 1] : NULL;
        struct site *site =
            last && last->cut
                ? sites_find(&kept->sites, last->name, strlen(last->name), tree->step, tree->rank)
                : NULL;
        if (!site)
            continue;
        site->cut = true;
        site->is.why = arena_printf(&kept->arena, "dump.json is cut short in %s", site->is.call);
        if (!site->is.why)
            return false;
    }
    return true;
}

static enum plumb_code open_runs(struct kept *kept, struct plumb_error *err)
{
    const struct plumb_blame_options *options = kept->options;
    enum plumb_code code;
    if (graphs_are(options->target))
        code = graphs_open(options->target, options->golden, &kept->target, &kept->golden, err);
    else
        code = plumb_run_open(&kept->target, options->target, err);
    if (!code && options->golden && !kept->golden)
        code = plumb_run_open(&kept->golden, options->golden, err);
    if (!code)
        code =
            repeats_open(options->repeats, options->n_repeats, kept->target, &kept->repeats, err);
    if (!code)
        code = sites_list(&kept->sites, kept->target, err);
    if (!code && !note_cut(kept))
        code = plumb_no_memory(err);
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
                              &kept->arena, &kept->blame, err);
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

/* Ranks that are not as the others are deviations of the first tensor that shows it. */
static enum plumb_code ask_about_odd(struct kept *kept, struct plumb_error *err)
{
    struct plumb_odd *odd = (struct plumb_odd *)kept->blame.odd;
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < kept->blame.n_odd && !code; k++) {
        const struct plumb_deviation is = {.call = odd[k].name,
                                           .result = odd_text(&odd[k]),
                                           .step = odd[k].step,
                                           .rank = odd[k].rank,
                                           .word = PLUMB_WORD_FAULT,
                                           .worst = isfinite(odd[k].apart) ? odd[k].apart : 0};
        if (kept->found)
            code = plumb_baseline_add(kept->found, &is, err);
        if (kept->options->accepted)
            odd[k].standing = plumb_baseline_ask(kept->options->accepted, &is);
    }
    return code;
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
    if (!code)
        code = ask_about_odd(kept, err);
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
    kept->looks.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
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
    struct across across = {0};
    kept->options = options;
    code = begin(kept, err);
    if (!code)
        code = open_runs(kept, err);
    if (!code)
        code = jobs_judge(kept, err);
    if (!code)
        code = across_open(&across, kept->target, &kept->sites, err);
    if (!code)
        code = across_judge(&across, kept, err);
    if (!code)
        code = measure_distances(kept, err);
    if (!code)
        code = across_note_saved(&across, &kept->sites, err);
    if (!code)
        code = answer_decide(&kept->sites, kept->golden != NULL, &kept->arena, err);
    if (!code)
        code = stale_find(&kept->sites, kept->target, &kept->arena, err);
    if (!code)
        code = across_follow(&across, kept, err);
    if (!code)
        code = odd_find(&across, kept, err);
    across_close(&across);
    if (!code)
        code = ask_baseline(kept, err);
    if (!code && options->pages && kept->golden)
        code = looks_beside(&kept->looks, &kept->sites, kept->target, kept->golden, err);
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
    looks_free(&kept->looks);
    sites_free(&kept->sites);
    arena_free(&kept->arena);
    free(kept);
}
