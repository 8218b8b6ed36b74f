/* Two runs of several ranks, as two runs of wholes. */
#define _GNU_SOURCE
#include "task/compare/shards.h"

#include "base/buf.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "pair/parts.h"
#include "run/run.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static enum plumb_code read_rules(struct shards_work *work, struct plumb_error *err)
{
    const struct plumb_shards_options *options = work->options;
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < options->dims_count && !code; i++)
        code = shards_rules_add(&work->rules, &work->arena, options->dims[i], err);
    if (!code && options->file)
        code = shards_rules_read(&work->rules, &work->arena, options->file, err);
    for (size_t i = 0; i < options->parallel_count && !code; i++)
        code = shards_rules_parallel(&work->rules, options->parallel[i], err);
    return code;
}

static bool list_records(struct shards_work *work, int k, const struct plumb_run *run)
{
    struct shards_run *side = &work->side[k];
    side->run = run;
    side->count = plumb_run_count(run);
    side->records = arena_array(&work->arena, side->count, sizeof *side->records);
    for (size_t i = 0; side->records && i < side->count; i++)
        side->records[i] = plumb_run_record(run, i);
    return side->records != NULL;
}

/* Sizes that were given must be those of the run; one that was given for both need not fit a run
 * of one rank. */
static enum plumb_code check_mesh(struct shards_work *work, int k, struct plumb_error *err)
{
    struct shards_mesh *mesh = &work->rules.mesh[k];
    const unsigned ranks = work->side[k].groups.rank_count;
    if (!work->rules.given[k] || shards_mesh_ranks(mesh) == ranks)
        return PLUMB_OK;
    if (ranks < 2) {
        *mesh = (struct shards_mesh){0};
        return PLUMB_OK;
    }
    return plumb_fail(err, PLUMB_E_ARG,
                      "the parallel sizes make %u ranks, and the %s run has %u; give those of one "
                      "run behind its name, --parallel %s:tp=%u",
                      shards_mesh_ranks(mesh), k ? "golden" : "target", ranks,
                      k ? "golden" : "target", ranks);
}

/* What the dumps of all ranks say about process groups. */
static bool find_families(struct shards_work *work, struct shards_run *side)
{
    const struct plumb_run *run = side->run;
    const char **texts = NULL, *last = NULL;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass && !(texts = arena_array(&work->arena, count + 1, sizeof *texts)))
            return false;
        count = 0;
        last = NULL;
        for (size_t t = 0; t < run->tree_count; t++)
            for (size_t i = 0; i < run->trees[t].api_count; i++) {
                const char *text = run->trees[t].apis[i].group;
                if (!text || text == last)
                    continue;
                if (pass)
                    texts[count] = text;
                last = text;
                count++;
            }
        for (size_t i = 0; i < side->count; i++) {
            const struct plumb_recorded *recorded = side->records[i]->recorded;
            if (!recorded || recorded->tensor || !recorded->type || !recorded->value ||
                !strstr(recorded->type, "ProcessGroup"))
                continue;
            if (pass)
                texts[count] = recorded->value;
            count++;
        }
    }
    return shards_families(&side->families, &work->arena, texts, count, side->groups.ranks,
                           side->groups.rank_count);
}

static bool has_rank(const struct shards_groups *groups, int64_t rank)
{
    for (unsigned i = 0; i < groups->rank_count; i++)
        if (groups->ranks[i] == rank)
            return true;
    return false;
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Ranks between others that left nothing, and those that have a folder without a tensor. */
static bool find_missing(struct shards_work *work, struct shards_run *side)
{
    enum { MOST = 8 };
    const struct shards_groups *groups = &side->groups;
    int64_t missing[MOST];
    unsigned count = 0;
    for (unsigned i = 1; i < groups->rank_count; i++)
        for (int64_t r = groups->ranks[i - 1] + 1; r < groups->ranks[i] && count < MOST; r++)
            if (groups->ranks[i - 1] >= 0)
                missing[count++] = r;
    DIR *folder = groups->rank_count ? opendir(side->run->path) : NULL;
    for (struct dirent *entry; folder && count < MOST && (entry = readdir(folder));) {
        const int64_t rank = shards_rank_of_folder(entry->d_name);
        bool known = rank < 0 || has_rank(groups, rank);
        for (unsigned i = 0; i < count; i++)
            known = known || missing[i] == rank;
        if (!known)
            missing[count++] = rank;
    }
    if (folder)
        closedir(folder);
    qsort(missing, count, sizeof *missing, by_value);
    struct buf text = {0};
    for (unsigned i = 0; i < count; i++)
        buf_printf(&text, "%s%" PRId64, i ? "," : "", missing[i]);
    if (count == MOST)
        buf_text(&text, ", ...");
    const bool made = !count || (!text.failed &&
                                 (side->missing = arena_copy(&work->arena, text.data, text.size)));
    buf_free(&text);
    return made;
}

static enum plumb_code group(struct shards_work *work, struct plumb_error *err)
{
    struct shards_numbers numbers[2];
    for (int k = 0; k < 2; k++)
        numbers[k] = shards_count_numbers(work->side[k].records, work->side[k].count);
    for (int k = 0; k < 2; k++) {
        struct shards_run *side = &work->side[k];
        const struct shards_mesh *mesh = work->rules.given[k] ? &work->rules.mesh[k] : NULL;
        struct shards_mesh tried;
        if (!mesh && shards_try_experts(&tried, work, k, &numbers[!k]))
            mesh = &tried;
        if (!shards_group(&side->groups, &work->arena, side->records, side->count, mesh,
                          &numbers[!k]))
            return plumb_no_memory(err);
        if (!find_families(work, side) || !find_missing(work, side))
            return plumb_no_memory(err);
        const enum plumb_code code = check_mesh(work, k, err);
        if (code)
            return code;
    }
    for (int k = 0; k < 2; k++)
        if (!shards_group_reduced(&work->side[k].groups, &work->side[!k].groups, &work->arena))
            return plumb_no_memory(err);
    return PLUMB_OK;
}

/* The whole as far as names go: what is paired. */
static bool make_head(struct shards_work *work, struct shards_run *side, size_t number)
{
    const struct shards_group *group = &side->groups.list[number];
    const struct plumb_record *first = side->records[group->records[0]];
    struct plumb_record *head = &side->heads[number];
    *head = *first;
    head->name = group->name;
    head->rank = -1;
    head->key = strcmp(group->name, first->name) == 0 ? first->key : NULL;
    head->detail = NULL;
    side->listed[number] = head;
    const char *parent = plumb_recorded_parent(first->recorded);
    const bool moved = group->parent && parent && strcmp(group->parent, parent) != 0;
    if (!first->recorded || (!group->api && !moved))
        return true;
    struct plumb_recorded *recorded = arena_alloc(&work->arena, sizeof *recorded);
    struct plumb_caller *caller = arena_alloc(&work->arena, sizeof *caller);
    if (!recorded || !caller)
        return false;
    *recorded = *first->recorded;
    *caller = (struct plumb_caller){group->parent, plumb_recorded_stack(recorded)};
    if (group->api)
        recorded->api = group->api;
    recorded->caller = caller;
    head->recorded = recorded;
    return true;
}

static bool make_heads(struct shards_work *work, int k)
{
    struct shards_run *side = &work->side[k];
    const size_t count = side->groups.count;
    side->heads = arena_array(&work->arena, count, sizeof *side->heads);
    side->listed = arena_array(&work->arena, count, sizeof *side->listed);
    side->choices = arena_array(&work->arena, count, sizeof *side->choices);
    side->dropped = arena_array(&work->arena, count, sizeof *side->dropped);
    bool ok = side->heads && side->listed && side->choices && side->dropped;
    for (size_t i = 0; ok && i < count; i++)
        ok = make_head(work, side, i);
    return ok;
}

/* ---- On threads ------------------------------------------------------------------------------ */

struct deciding {
    struct shards_work *work;
    pthread_mutex_t lock;
    uint64_t done;
};

static void decide_one(void *context, size_t i, unsigned thread)
{
    struct deciding *d = context;
    const struct plumb_shards_options *options = d->work->options;
    (void)thread;
    shards_decide(d->work, i);
    if (!options->progress)
        return;
    pthread_mutex_lock(&d->lock);
    options->progress(options->progress_context, ++d->done, d->work->matching.matched);
    pthread_mutex_unlock(&d->lock);
}

static void decide_all(struct shards_work *work)
{
    struct deciding d = {.work = work, .lock = PTHREAD_MUTEX_INITIALIZER};
    const unsigned threads = work->options->threads;
    pool_run(threads ? threads : pool_default_threads(), work->matching.matched, decide_one, &d);
}

/* Collectives that only one run needs have no counterpart. */
static void drop_collectives(struct shards_work *work)
{
    for (size_t i = work->matching.matched; i < work->matching.count; i++) {
        const struct plumb_pair *pair = &work->matching.pairs[i];
        const int k = pair->target == PLUMB_NO_RECORD;
        struct shards_run *side = &work->side[k];
        const size_t number = k ? pair->golden : pair->target;
        side->dropped[number] = strncmp(side->heads[number].name, "Distributed.", 12) == 0 &&
                                side->groups.rank_count > 1;
    }
}

/* ---- Told ------------------------------------------------------------------------------------ */

struct counts {
    size_t whole, by[SHARDS_SHAPE + 1], open, odd, unknown, dropped, doubtful;
    int64_t odd_rank, odd_twin; /* of two that differ, both; else the twin is -1 */
    const char *odd_name, *doubtful_name, *doubt;
};

static struct counts count(const struct shards_run *side)
{
    struct counts c = {0};
    for (size_t i = 0; i < side->groups.count; i++) {
        const struct shards_choice *choice = &side->choices[i];
        const struct shards_group *group = &side->groups.list[i];
        c.dropped += side->dropped[i];
        c.unknown += choice->error != NULL;
        if (!choice->layout || group->parts < 2)
            continue;
        c.whole++;
        c.by[choice->source]++;
        c.open += choice->open;
        if (choice->odds && !c.odd++) {
            const unsigned twin = shards_twin(choice->layout, choice->odd[0].part);
            c.odd_rank = group->ranks[choice->odd[0].part];
            c.odd_twin = twin < group->parts ? group->ranks[twin] : -1;
            c.odd_name = group->name;
        }
        if (choice->doubt && !c.doubtful++) {
            c.doubtful_name = group->name;
            c.doubt = choice->doubt;
        }
    }
    return c;
}

static void put(struct buf *text, const char **gap, size_t number, const char *what)
{
    if (number)
        buf_printf(text, "%s%zu %s", *gap, number, what);
    *gap = number ? ", " : *gap;
}

/* "target: process groups recorded: 0,1 2,3; 0,2 1,3". */
static void tell_families(struct buf *text, const struct shards_families *families,
                          const char *name)
{
    if (!families->count && !families->left)
        return;
    buf_printf(text, "%s: process groups recorded: ", name);
    for (size_t i = 0; i < families->count; i++)
        buf_printf(text, "%s%s", i ? "; " : "", families->list[i].text);
    if (families->left)
        buf_printf(text, "%s%zu not used, since others of their kind are missing",
                   families->count ? "; " : "", families->left);
    buf_text(text, "\n");
}

/* "target, 4 ranks: 120 tensors from parts (100 inferred, ...); 3 ambiguous". */
static void tell(struct buf *text, const struct shards_run *side, const char *name)
{
    static const char *const words[] = {
        [SHARDS_GIVEN] = "given",
        [SHARDS_RECORDED] = "recorded",
        [SHARDS_FOUND] = "inferred",
        [SHARDS_SAME] = "the same parts on both sides",
        [SHARDS_ALIKE] = "as in other layers",
        [SHARDS_GROUPED] = "by recorded groups and shapes",
        [SHARDS_SHAPE] = "by shapes alone",
    };
    const struct counts c = count(side);
    const char *gap;
    if (side->groups.rank_count < 2)
        return;
    buf_printf(text, "%s, %u ranks: %zu tensor%s from parts", name, side->groups.rank_count,
               c.whole, c.whole == 1 ? "" : "s");
    gap = " (";
    for (int k = SHARDS_GIVEN; k <= SHARDS_SHAPE; k++)
        put(text, &gap, c.by[k], words[k]);
    buf_text(text, c.whole ? ")" : "");
    gap = "; ";
    put(text, &gap, c.open, "ambiguous");
    gap = "; ";
    put(text, &gap, c.unknown, "without a layout");
    gap = "; left out: ";
    put(text, &gap, side->groups.values, "arguments that are no tensors");
    put(text, &gap, c.dropped, "tensors of collectives that the other run does not make");
    if (side->groups.strays) {
        put(text, &gap, side->groups.strays, "of no rank, the first ");
        utf8_put_clean(text, side->groups.stray);
    }
    if (side->groups.stages > 1)
        buf_printf(text, "; %u pipeline stages", side->groups.stages);
    if (side->groups.experts > 1)
        buf_printf(text, "; experts on %u groups of ranks", side->groups.experts);
    buf_text(text, "\n");
    tell_families(text, &side->families, name);
    if (side->missing)
        buf_printf(text, "%s: nothing of rank%s %s\n", name, strchr(side->missing, ',') ? "s" : "",
                   side->missing);
    if (c.odd) {
        buf_printf(text, "%s: replicas differ in %zu tensor%s, the first on rank", name, c.odd,
                   c.odd == 1 ? "" : "s");
        if (c.odd_twin >= 0)
            buf_printf(text, "s %" PRId64 " and", c.odd_twin);
        buf_printf(text, " %" PRId64 ": ", c.odd_rank);
        utf8_put_clean(text, c.odd_name);
        buf_text(text, "\n");
    }
    if (c.doubtful) {
        buf_printf(text, "%s: %zu suspicious layout%s, the first of ", name, c.doubtful,
                   c.doubtful == 1 ? "" : "s");
        utf8_put_clean(text, c.doubtful_name);
        buf_printf(text, ": %s\n", c.doubt);
    }
}

/* Patterns of layouts that no name of a run matches: a slip of the pen, most likely. */
static void tell_unused(struct buf *text, const struct shards_work *work)
{
    size_t unused = 0;
    for (size_t r = 0; r < work->rules.count; r++) {
        const struct shards_rule *rule = &work->rules.list[r];
        bool used = false;
        for (int k = 0; k < 2 && !used; k++)
            for (size_t i = 0; i < work->side[k].groups.count && !used; i++)
                used = shards_rule_matches(rule, k, work->side[k].groups.list[i].name);
        if (used)
            continue;
        buf_text(text, unused++ ? ", " : "warning: layouts that match no tensor: ");
        utf8_put_clean(text, rule->pattern);
    }
    if (unused)
        buf_printf(text, " (%zu of %zu)\n", unused, work->rules.count);
}

/* Ranks that neither divide nor multiply into each other are seldom meant. */
static void tell_counts(struct buf *text, const struct shards_work *work)
{
    const unsigned a = work->side[0].groups.rank_count, b = work->side[1].groups.rank_count;
    if (a < 2 && b < 2)
        buf_text(text, "neither run has ranks: these are folders rank0, rank1, ... or files "
                       "rank0.safetensors, ...\n");
    else if (a > 1 && b > 1 && a % b && b % a)
        buf_printf(text, "warning: %u ranks against %u: is one missing?\n", a, b);
}

static bool add_notes(struct shards_work *work, struct plumb_run *run)
{
    struct buf text = {0};
    buf_text(&text, "");
    tell(&text, &work->side[0], "target");
    tell(&text, &work->side[1], "golden");
    tell_counts(&text, work);
    tell_unused(&text, work);
    run->shards = text.failed ? NULL : arena_copy(&run->arena, text.data, text.size);
    buf_free(&text);
    return run->shards != NULL;
}

static void free_work(struct shards_work *work)
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; work->side[k].choices && i < work->side[k].groups.count; i++)
            shards_choice_free(&work->side[k].choices[i]);
    shards_rules_free(&work->rules);
    plumb_matching_free(&work->matching);
    arena_free(&work->arena);
}

enum plumb_code plumb_shards_join(struct plumb_run *joined[2], const struct plumb_run *target,
                                  const struct plumb_run *golden,
                                  const struct plumb_shards_options *options,
                                  struct plumb_error *err)
{
    struct shards_work work = {.options = options};
    struct plumb_run *made[2] = {NULL, NULL};
    enum plumb_code code = read_rules(&work, err);
    if (!code && (!list_records(&work, 0, target) || !list_records(&work, 1, golden)))
        code = plumb_no_memory(err);
    if (!code)
        code = group(&work, err);
    if (!code && (!make_heads(&work, 0) || !make_heads(&work, 1)))
        code = plumb_no_memory(err);
    if (!code)
        code = match_records(&work.matching, work.side[0].listed, work.side[0].groups.count,
                             work.side[1].listed, work.side[1].groups.count, &options->match, err);
    if (!code) {
        decide_all(&work);
        drop_collectives(&work);
        code = shards_decide_alike(&work, err);
    }
    if (!code && !shards_doubt_all(&work))
        code = plumb_no_memory(err);
    for (int k = 0; k < 2 && !code; k++)
        code = shards_make_run(&made[k], &work, k, err);
    if (!code && !add_notes(&work, made[0]))
        code = plumb_no_memory(err);
    free_work(&work);
    for (int k = 0; k < 2; k++) {
        if (code)
            plumb_run_free(made[k]);
        else
            joined[k] = made[k];
    }
    return code;
}
