/* All exchanges of a run, judged by what all ranks put in. */
#include "task/blame/exchanged.h"

#include "base/number.h"
#include "ranks/travel.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An exchange that waits, or has its verdicts. */
struct item {
    struct exchanged x;
    struct exchanged_verdict *verdicts;
    struct arena arena;
    bool failed;
};

struct collecting {
    struct across *across;
    const struct across_step *step;
    const struct plumb_run *run;
    struct item *items;
    size_t count, capacity;
    bool failed;
};

static void skip_node(void *context, struct graph_node *node)
{
    (void)context;
    (void)node;
}

static struct exchanged *add_exchange(void *context, size_t count, struct arena **arena)
{
    struct collecting *c = context;
    if (c->count == c->capacity) {
        const size_t more = c->capacity ? 2 * c->capacity : 64;
        struct item *items = realloc(c->items, more * sizeof *items);
        c->failed |= !items;
        if (!items)
            return NULL;
        c->items = items;
        c->capacity = more;
    }
    struct item *item = &c->items[c->count];
    *item = (struct item){.x = {.count = count}};
    item->x.members = arena_array(&item->arena, count, sizeof *item->x.members);
    c->failed |= !item->x.members;
    c->count += item->x.members != NULL;
    *arena = &item->arena;
    return item->x.members ? &item->x : NULL;
}

static void take_exchange(void *context, struct graph_node *const *members, size_t count)
{
    struct collecting *c = context;
    struct arena *arena;
    struct exchanged *x = add_exchange(c, count, &arena);
    for (size_t k = 0; x && k < count; k++) {
        const struct graph_node *node = members[k];
        const struct graph_rank *rank = &c->step->ranks[node->rank];
        struct exchanged_member *m = &x->members[k];
        m->node = node;
        m->rank = rank->number;
        m->site = c->step->sites[node->rank][node - rank->nodes];
        m->first = across_records(c->across, c->run, node->name, &m->count);
    }
}

struct judging {
    const struct plumb_run *run;
    struct item *items;
};

static bool judge_item(void *context, size_t i, uint64_t memory, bool last)
{
    const struct judging *j = context;
    struct item *item = &j->items[i];
    (void)memory;
    (void)last;
    item->failed = !item->x.planned && exchanged_plan(&item->x, j->run, &item->arena) != PLUMB_OK;
    if (item->failed || item->x.refused)
        return true;
    item->verdicts = arena_array(&item->arena, item->x.n_results + 1, sizeof *item->verdicts);
    item->failed = !item->verdicts ||
                   exchanged_judge(&item->x, j->run, &item->arena, item->verdicts) != PLUMB_OK;
    return true;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static const char *place_text(const struct plumb_run *run, const struct exchanged_verdict *v,
                              struct arena *arena)
{
    const struct plumb_record *record = plumb_run_record(run, v->record);
    struct buf text = {0};
    uint64_t inner = record->count, left = v->place;
    buf_text(&text, "[");
    for (unsigned d = 0; d < record->ndim && inner; d++) {
        inner /= (uint64_t)record->shape[d];
        buf_printf(&text, "%s%" PRIu64, d ? ", " : "", inner ? left / inner : 0);
        left = inner ? left % inner : 0;
    }
    buf_text(&text, "]");
    const char *copy = text.failed ? NULL : arena_copy(arena, text.data, text.size);
    buf_free(&text);
    return copy;
}

/* Ranks whose own result is right; of reduced gradients, that of the same parameter. */
static void put_right_ranks(struct buf *out, const struct item *item, size_t of)
{
    int64_t *right = malloc((item->x.n_results + 1) * sizeof *right);
    size_t n = 0;
    for (size_t r = 0; right && r < item->x.n_results; r++) {
        const int64_t rank = item->x.members[item->x.results[r].member].rank;
        if (item->x.reduced &&
            item->x.results[r].parts[0].terms != item->x.results[of].parts[0].terms)
            continue;
        if (!item->verdicts[r].unreadable && item->verdicts[r].excess <= EXCHANGED_LIMIT &&
            (!n || right[n - 1] != rank))
            right[n++] = rank;
    }
    if (n) {
        buf_printf(out, "; rank%s ", n == 1 ? "" : "s");
        travel_put_ranks(out, right, n);
        buf_text(out, " got what is right");
    }
    out->failed |= !right;
    free(right);
}

static const char *say_wrong(const struct item *item, size_t r, const char *place,
                             struct arena *arena)
{
    const struct exchanged_verdict *v = &item->verdicts[r];
    struct buf text = {0};
    char got[NUMBER_BYTES], expected[NUMBER_BYTES], share[NUMBER_BYTES];
    if (*v->pattern)
        buf_printf(&text, "%s; ", v->pattern);
    buf_printf(&text, "not what the %zu ranks put in", item->x.count);
    buf_printf(
        &text,
        ": %s %% of the elements are off by more than rounding, worst at %s: %s instead of %s",
        number_brief(100 * (double)v->off / (double)(v->seen ? v->seen : 1), 3, share), place,
        number_brief(v->got, 9, got), number_brief(v->expected, 9, expected));
    put_right_ranks(&text, item, r);
    const char *copy = text.failed ? NULL : arena_copy(arena, text.data, text.size);
    buf_free(&text);
    return copy;
}

/* Whether some rank got what the group as plumb took it should give. */
static bool is_proven(const struct item *item)
{
    for (size_t r = 0; r < item->x.n_results; r++)
        if (!item->verdicts[r].unreadable && item->verdicts[r].seen &&
            item->verdicts[r].excess <= EXCHANGED_LIMIT)
            return true;
    return item->x.known_group || item->x.op == EXCHANGED_COPY;
}

/* No rank has the mean: right where gradients were added to older ones, not reduced in this pass
 * (no_sync), or reduced by a function of the user's. What such programs do not make is doubtful. */
static bool doubt_reduced(struct local_verdict *out, struct item *item,
                          const struct exchanged_verdict *v)
{
    out->doubtful = *v->pattern && strcmp(v->pattern, EXCHANGED_OWN) != 0;
    out->word = PLUMB_WORD_NOT_JUDGED;
    out->why =
        out->doubtful
            ? arena_printf(&item->arena, "reduced outside of what was recorded: %s", out->why)
            : "reduced gradients are not the mean of this backward's: added to older ones, "
              "or reduced in another way";
    return out->why != NULL;
}

/* What is to be said of one result. False when out of memory. */
static bool put_result(struct kept *kept, struct item *item, size_t r, struct local_verdict *out)
{
    const struct exchanged_verdict *v = &item->verdicts[r];
    const bool wrong = v->excess > EXCHANGED_LIMIT;
    *out = (struct local_verdict){.seen = true,
                                  .word = PLUMB_WORD_NOT_JUDGED,
                                  .recorded = SIZE_MAX,
                                  .result = item->x.results[r].place,
                                  .why = v->why,
                                  .arithmetic = "",
                                  .pattern = "",
                                  .place = ""};
    if (v->unreadable)
        return true;
    out->worst = v->excess;
    out->limit = EXCHANGED_LIMIT;
    out->got = v->got;
    out->expected = v->expected;
    out->differing = v->seen ? (double)v->off / (double)v->seen : 0;
    out->pattern = v->pattern;
    out->word = wrong ? PLUMB_WORD_FAULT : v->exact ? PLUMB_WORD_SAME : PLUMB_WORD_ROUNDING;
    out->why = wrong      ? NULL
               : !v->seen ? "nothing in it is determined"
               : v->exact ? "what the ranks put in"
                          : "what the ranks put in, but for rounding";
    if (!wrong)
        return true;
    out->place = place_text(kept->target, v, &item->arena);
    out->why = out->place ? say_wrong(item, r, out->place, &item->arena) : NULL;
    if (out->why && item->x.reduced && !is_proven(item))
        return doubt_reduced(out, item, v);
    if (out->why && !is_proven(item)) {
        out->word = PLUMB_WORD_NOT_JUDGED;
        out->doubtful = true;
        out->why = arena_printf(&item->arena,
                                "it is not recorded which ranks took part, and all ranks of the "
                                "dump do not give it: %s",
                                out->why);
    }
    return out->why != NULL;
}

/* ---- Sites ----------------------------------------------------------------------------------- */

static enum plumb_code store_refused(struct kept *kept, const struct exchanged_member *m,
                                     const char *why, struct arena *arena, struct plumb_error *err)
{
    struct local_verdict v = {.seen = false};
    struct site *site = m->site ? &kept->sites.list[m->site - 1] : NULL;
    if (!site)
        return PLUMB_OK;
    const enum plumb_code code = verdict_none(&v, why, arena, err);
    return code ? code : jobs_store(kept, site, &v, err);
}

/* The worst of the results of a member decides. */
static enum plumb_code store_member(struct kept *kept, struct item *item, size_t m,
                                    struct plumb_error *err)
{
    const struct exchanged_member *member = &item->x.members[m];
    struct site *site = member->site ? &kept->sites.list[member->site - 1] : NULL;
    struct local_verdict worst = {.seen = false};
    if (!site || member->refused)
        return store_refused(kept, member, member->refused, &item->arena, err);
    for (size_t r = 0; r < item->x.n_results; r++) {
        struct local_verdict *v = arena_alloc(&item->arena, sizeof *v);
        if (item->x.results[r].member != m)
            continue;
        if (!v || !put_result(kept, item, r, v) || verdict_keep(&worst, v, &item->arena, err))
            return plumb_no_memory(err);
    }
    site->is.module = true; /* a capsule of one rank cannot hold it */
    return worst.seen ? jobs_store(kept, site, &worst, err)
                      : store_refused(kept, member, "nothing comes out of it at this rank",
                                      &item->arena, err);
}

static enum plumb_code store_item(struct kept *kept, struct item *item, struct plumb_error *err)
{
    enum plumb_code code = item->failed ? plumb_no_memory(err) : PLUMB_OK;
    for (size_t m = 0; m < item->x.count && !code; m++)
        code = item->x.refused
                   ? store_refused(kept, &item->x.members[m], item->x.refused, &item->arena, err)
                   : store_member(kept, item, m, err);
    return code;
}

enum plumb_code across_judge(struct across *across, struct kept *kept, struct plumb_error *err)
{
    struct collecting c = {.across = across, .run = kept->target};
    enum plumb_code code = PLUMB_OK;
    for (size_t s = 0; s < across->count && !code; s++) {
        c.step = &across->steps[s];
        struct arena work = {0};
        code = order_walk(c.step->ranks, c.step->count,
                          &(struct order_visitor){skip_node, take_exchange, &c}, &work);
        arena_free(&work);
    }
    if (!code)
        code = across_find_reduced(across, kept, add_exchange, &c);
    if (code || c.failed)
        code = plumb_no_memory(err);
    struct judging j = {kept->target, c.items};
    if (!code)
        calls_pool(kept->threads, kept->options->memory, c.count, judge_item, &j);
    for (size_t i = 0; i < c.count; i++) {
        if (!code)
            code = store_item(kept, &c.items[i], err);
        arena_free(&c.items[i].arena);
    }
    free(c.items);
    return code;
}
