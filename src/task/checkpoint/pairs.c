/* Matching the weights of two checkpoints, and comparing each pair. */
#define _GNU_SOURCE
#include "task/checkpoint/pairs.h"

#include "base/pool.h"
#include "task/checkpoint/names.h"
#include "task/checkpoint/values.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

const char *pair_name(const struct pair *pair)
{
    return pair->side[0] ? pair->side[0]->name : pair->side[1]->name;
}

static uint64_t *find(const struct checkpoint *ckpt, const char *name)
{
    return map_get(&ckpt->names, name, strlen(name));
}

/* What the names of the second checkpoint's weights would be in layers of the other kind. */
static enum plumb_code collect_aliases(struct checkpoint *ckpt, struct map *aliases)
{
    for (size_t i = 0; i < ckpt->count && !ckpt->rules->no_aliases; i++) {
        const char *alias = names_alias(&ckpt->arena, ckpt->weights[i]->name);
        if (!alias)
            continue;
        uint64_t *place = map_put(aliases, alias, strlen(alias), NULL);
        if (!place)
            return PLUMB_E_NOMEM;
        *place = i;
    }
    return PLUMB_OK;
}

/* The weight of the second checkpoint that goes by the same name, or by what other layers of the
 * same model call it. */
static uint64_t *find_partner(struct pairs *pairs, const char *name, const struct map *aliases)
{
    struct checkpoint *first = &pairs->ckpt[0], *second = &pairs->ckpt[1];
    uint64_t *place = find(second, name);
    if (place || first->rules->no_aliases)
        return place;
    const char *alias = names_alias(&first->arena, name);
    if (alias && !find(first, alias) && (place = find(second, alias)))
        return place;
    place = map_get(aliases, name, strlen(name));
    return place && !find(first, second->weights[*place]->name) ? place : NULL;
}

static void add_pair(struct pairs *pairs, const struct checkpoint_weight *a,
                     const struct checkpoint_weight *b)
{
    struct pair *pair = &pairs->list[pairs->count++];
    pair->side[0] = a;
    pair->side[1] = b;
    pair->state = a && b ? PAIR_COMPARED : PAIR_ALONE;
}

enum plumb_code pairs_match(struct pairs *pairs, struct plumb_error *err)
{
    struct checkpoint *first = &pairs->ckpt[0], *second = &pairs->ckpt[1];
    struct map aliases = {0};
    enum plumb_code code = PLUMB_OK;
    pairs->list = calloc(first->count + second->count + 1, sizeof *pairs->list);
    bool *taken = calloc(second->count + 1, sizeof *taken);
    if (!pairs->list || !taken || collect_aliases(second, &aliases)) {
        code = plumb_no_memory(err);
        goto out;
    }
    for (size_t i = 0; i < first->count; i++) {
        const uint64_t *place = find_partner(pairs, first->weights[i]->name, &aliases);
        bool free_one = place && !taken[*place];
        if (free_one)
            taken[*place] = true;
        add_pair(pairs, first->weights[i], free_one ? second->weights[*place] : NULL);
    }
    for (size_t i = 0; i < second->count; i++)
        if (!taken[i])
            add_pair(pairs, NULL, second->weights[i]);
out:
    map_free(&aliases);
    free(taken);
    return code;
}

static bool same_shape(const struct checkpoint_weight *a, const struct checkpoint_weight *b)
{
    return a->ndim == b->ndim &&
           (!a->ndim || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0);
}

/* numpy's answers: whatever is not finite makes NaN of the cosine, and of the distance too, but for
 * an infinity that meets a number. But masks of infinities may be the same on both sides; then the
 * finite values decide, unless the rules are against it. */
static void take_nonfinite(struct pair *pair, const struct plumb_metrics *metrics,
                           const struct checkpoint_profile *rules)
{
    uint64_t finite = metrics->classes[PLUMB_FINITE][PLUMB_FINITE], spoiled = 0;
    if (finite == metrics->count)
        return;
    bool nan = metrics->classes[PLUMB_NAN][PLUMB_NAN];
    if (!rules->no_infinities && !nan && !metrics->nonfinite_mismatch) {
        if (!finite) {
            pair->l2 = pair->distance = 0;
            pair->cosine = 1;
        }
        return;
    }
    for (int c = 0; c < PLUMB_CLASSES; c++)
        spoiled += metrics->classes[PLUMB_NAN][c] + metrics->classes[c][PLUMB_NAN];
    spoiled += metrics->classes[PLUMB_POS_INF][PLUMB_POS_INF];
    spoiled += metrics->classes[PLUMB_NEG_INF][PLUMB_NEG_INF];
    pair->l2 = spoiled ? NAN : INFINITY;
    pair->cosine = pair->distance = NAN;
    pair->has_cosine = true;
}

static enum plumb_code compare_values(struct pair *pair, const struct checkpoint_profile *rules,
                                      struct plumb_error *err)
{
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    plumb_metric_spec_init(&spec);
    enum plumb_code code =
        values_compare(pair->side[0], pair->side[1], &spec, rules, &metrics, err);
    if (code)
        return code;
    pair->l2 = metrics.euclidean;
    pair->cosine = metrics.cosine;
    pair->distance = metrics.relative_euclidean;
    pair->has_cosine = true;
    /* The cosine is 0 where a side is zero, but not only there. */
    bool zero[2] = {false, false};
    for (int i = 0; i < 2 && !code && pair->cosine == 0; i++)
        code = values_are_zero(pair->side[i], rules, &zero[i], err);
    if (zero[0] != zero[1])
        pair->has_cosine = false;
    take_nonfinite(pair, &metrics, rules);
    return code;
}

/* Copies of a weight in several parts must be close to the first. */
static enum plumb_code compare_copies(struct pair *pair, const struct checkpoint_weight *weight,
                                      const struct checkpoint_profile *rules,
                                      struct plumb_error *err)
{
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    plumb_metric_spec_init(&spec);
    spec.groups |= PLUMB_G_CLOSE;
    spec.rtol = 1e-5;
    spec.atol = 1e-8;
    for (const struct checkpoint_weight *copy = weight->copy; copy && !pair->copies;
         copy = copy->copy) {
        if (copy->problem)
            continue;
        bool same = same_shape(weight, copy);
        if (same) {
            enum plumb_code code = values_compare(weight, copy, &spec, rules, &metrics, err);
            if (code)
                return code;
            same = metrics.close == metrics.count;
        }
        if (!same)
            pair->copies = copy->parts[0].where;
    }
    return PLUMB_OK;
}

static bool is_integer(const struct checkpoint_weight *weight)
{
    const struct checkpoint_part *part = &weight->parts[0];
    enum plumb_dtype dtype = plumb_run_record(part->run, part->record)->dtype;
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    return kind == PLUMB_KIND_BOOL || kind == PLUMB_KIND_INT || kind == PLUMB_KIND_UINT;
}

/* Counters and masks on one side, weights on the other: equal numbers do not make them the same. */
static void compare_kinds(struct pair *pair)
{
    bool a = is_integer(pair->side[0]), b = is_integer(pair->side[1]);
    pair->integers = a && b;
    pair->kinds = a != b;
}

static void compare_pair(struct pair *pair, const struct checkpoint_profile *rules)
{
    for (int i = 0; i < 2; i++) {
        if (pair->side[i]->problem) {
            plumb_fail(&pair->error, PLUMB_E_FORMAT, "%s", pair->side[i]->problem);
            pair->state = PAIR_UNREADABLE;
            return;
        }
    }
    enum plumb_code code = PLUMB_OK;
    compare_kinds(pair);
    if (same_shape(pair->side[0], pair->side[1]))
        code = compare_values(pair, rules, &pair->error);
    else
        pair->state = PAIR_SHAPES;
    for (int i = 0; i < 2 && !code; i++)
        code = compare_copies(pair, pair->side[i], rules, &pair->error);
    if (code)
        pair->state = PAIR_UNREADABLE;
}

struct work {
    struct pairs *pairs;
    const struct plumb_checkpoint_options *options;
    pthread_mutex_t lock;
    uint64_t done, total;
};

static uint64_t weight_of(const struct pair *pair)
{
    return pair->state == PAIR_ALONE ? 0 : pair->side[0]->elements + pair->side[1]->elements;
}

static void work_on(void *context, size_t i, unsigned thread)
{
    struct work *work = context;
    struct pair *pair = &work->pairs->list[i];
    uint64_t size = weight_of(pair);
    (void)thread;
    if (pair->state == PAIR_ALONE)
        return;
    compare_pair(pair, work->pairs->ckpt[0].rules);
    pthread_mutex_lock(&work->lock);
    work->done += size * sizeof(float);
    if (work->options->progress)
        work->options->progress(work->options->progress_context, work->done, work->total);
    pthread_mutex_unlock(&work->lock);
}

enum plumb_code pairs_compare(struct pairs *pairs, const struct plumb_checkpoint_options *options,
                              struct plumb_error *err)
{
    struct work work = {.pairs = pairs, .options = options, .lock = PTHREAD_MUTEX_INITIALIZER};
    for (size_t i = 0; i < pairs->count; i++)
        work.total += weight_of(&pairs->list[i]) * sizeof(float);
    pool_run(options->threads ? options->threads : pool_default_threads(), pairs->count, work_on,
             &work);
    pthread_mutex_destroy(&work.lock);
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].state == PAIR_UNREADABLE && pairs->list[i].error.code == PLUMB_E_NOMEM)
            return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while comparing %s",
                              pair_name(&pairs->list[i]));
    return PLUMB_OK;
}
