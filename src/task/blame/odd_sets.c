/* Which tensors of different ranks should be alike. */
#include "task/blame/odd.h"

#include "base/pool.h"
#include "ranks/order.h"
#include "task/blame/exchanged_form.h"

#include <stdlib.h>
#include <string.h>

static bool is_parameter(const struct plumb_record *record, const char *key)
{
    return strstr(key, ".parameters.") ||
           (strncmp(key, "Module.reduced.", 15) == 0 && strstr(key, ".parameters_grad.")) ||
           (!record->recorded && strstr(key, ".forward_params."));
}

/* What a function is given, and is neither a constant nor a mask. */
static bool is_argument(const struct plumb_record *record, const char *key)
{
    return record->requires_grad == 1 && strstr(key, ".forward.input.") &&
           !graph_is_communication(key);
}

static const char *key_of(const struct plumb_record *record)
{
    return record->key ? record->key : record->name;
}

static size_t find_rank(const struct across_step *step, int64_t number)
{
    size_t low = 0, high = step->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (step->ranks[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < step->count && step->ranks[low].number == number ? low : SIZE_MAX;
}

/* A new set; NULL when out of memory. */
static struct replicas *add_set(struct replica_sets *sets, const char *name, size_t ranks)
{
    if (sets->count == sets->capacity) {
        const size_t more = sets->capacity ? 2 * sets->capacity : 256;
        struct replicas *list = realloc(sets->list, more * sizeof *list);
        if (!list)
            return NULL;
        sets->list = list;
        sets->capacity = more;
    }
    struct replicas *set = &sets->list[sets->count];
    *set = (struct replicas){.name = name};
    set->list = arena_array(&sets->arena, ranks, sizeof *set->list);
    sets->count += set->list != NULL;
    return set->list ? set : NULL;
}

/* False when out of memory. A rank that has a name twice counts once. */
static bool add_record(struct replica_sets *sets, const struct across_step *step,
                       const struct plumb_run *run, size_t record, size_t rank)
{
    const struct plumb_record *tensor = plumb_run_record(run, record);
    const char *key = key_of(tensor);
    bool added;
    uint64_t *place = map_put(&sets->index, key, strlen(key), &added);
    if (!place)
        return false;
    if (added) {
        *place = sets->count;
        if (!add_set(sets, key, step->count))
            return false;
    }
    struct replicas *set = &sets->list[*place];
    const struct plumb_record *first =
        set->count ? plumb_run_record(run, set->list[0].record) : tensor;
    if (set->count && (set->list[set->count - 1].rank == rank || first->dtype != tensor->dtype ||
                       first->count != tensor->count || first->absent != tensor->absent))
        return true;
    set->list[set->count++] = (struct replica){.record = record, .rank = rank};
    return true;
}

static bool add_named(struct replica_sets *sets, const struct across_step *step,
                      const struct plumb_run *run, bool arguments)
{
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        const struct plumb_record *record = plumb_run_record(run, i);
        const char *key = key_of(record);
        if (record->step != step->step || !record->count || record->error ||
            (record->recorded && (!record->recorded->tensor || record->recorded->spread)) ||
            !(arguments ? is_argument(record, key) : is_parameter(record, key)))
            continue;
        const size_t rank = find_rank(step, record->rank);
        if (rank != SIZE_MAX && !add_record(sets, step, run, i, rank))
            return false;
    }
    return true;
}

/* ---- What calls have made -------------------------------------------------------------------- */

struct made {
    const struct plumb_run *run;
    size_t *records;
    struct print *prints;
    size_t count;
};

/* Same numbers at the same rank. */
struct made_key {
    int64_t rank;
    uint64_t bits[2];
};

static bool is_result(const struct plumb_record *record, int64_t step)
{
    const char *key = key_of(record);
    return record->step == step && record->count && !record->error && record->recorded &&
           record->recorded->tensor && strstr(key, ".forward.output.");
}

static void print_made(void *context, size_t i, unsigned thread)
{
    const struct made *made = context;
    (void)thread;
    print_of(&made->prints[i], made->run, made->records[i]);
}

static bool key_in(struct made_key *key, const struct plumb_run *run, size_t record,
                   const struct print *print)
{
    *key = (struct made_key){.rank = plumb_run_record(run, record)->rank,
                             .bits = {print->bits[0], print->bits[1]}};
    return print->known;
}

/* Leaves out tensors that are what a call gave: ranks have other data, and other results. */
static bool drop_results(struct replica_sets *sets, const struct made *made)
{
    struct map results = {0};
    struct made_key key;
    bool fine = true;
    for (size_t i = 0; i < made->count && fine; i++)
        if (key_in(&key, made->run, made->records[i], &made->prints[i]))
            fine = map_put(&results, (const char *)&key, sizeof key, NULL) != NULL;
    for (size_t s = 0; s < sets->count && fine; s++) {
        struct replicas *set = &sets->list[s];
        for (size_t k = 0; k < set->count && !set->exchanged; k++)
            if (key_in(&key, made->run, set->list[k].record, &set->list[k].print) &&
                map_get(&results, (const char *)&key, sizeof key))
                set->count = 0;
    }
    map_free(&results);
    return fine;
}

static bool leave_out_results(struct replica_sets *sets, const struct across_step *step,
                              const struct plumb_run *run, unsigned threads)
{
    struct arena work = {0};
    const size_t all = plumb_run_count(run);
    struct made made = {.run = run, .records = arena_array(&work, all, sizeof *made.records)};
    for (size_t i = 0; i < all && made.records; i++)
        if (is_result(plumb_run_record(run, i), step->step))
            made.records[made.count++] = i;
    made.prints = arena_array(&work, made.count, sizeof *made.prints);
    bool fine = made.records && (made.prints || !made.count);
    if (fine) {
        pool_run(threads, made.count, print_made, &made);
        fine = drop_results(sets, &made);
    }
    arena_free(&work);
    return fine;
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

struct collecting {
    struct replica_sets *sets;
    const struct across *across;
    const struct across_step *step;
    const struct plumb_run *run;
    bool failed;
};

static void skip_node(void *context, struct graph_node *node)
{
    (void)context;
    (void)node;
}

static bool gives_all_the_same(const struct graph_node *node)
{
    static const char *const ops[] = {"all_reduce",
                                      "all_gather",
                                      "all_gather_into_tensor",
                                      "broadcast",
                                      "functional_all_reduce",
                                      "functional_all_gather_into_tensor"};
    size_t length;
    const char *op = graph_op(node->name, &length);
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strlen(ops[k]) == length && memcmp(ops[k], op, length) == 0)
            return true;
    return false;
}

/* The records of what an exchange gave to a rank. Its own arguments, which are recorded after it
 * too, are not among them. */
static struct given results_of(struct collecting *c, const struct graph_node *node)
{
    struct exchanged_member member = {.node = node};
    struct plan plan = {.run = c->run, .arena = &c->sets->arena};
    int number;
    member.first = across_records(c->across, c->run, node->name, &member.count);
    const struct given out = outputs_of(&plan, &member, form_of(node), &number);
    c->failed |= plan.failed;
    return out;
}

static void take_exchange(void *context, struct graph_node *const *members, size_t count)
{
    struct collecting *c = context;
    if (count < 2 || !gives_all_the_same(members[0]) || c->failed)
        return;
    const struct given first = results_of(c, members[0]);
    const size_t from = c->sets->count;
    for (size_t k = 0; k < first.count && !c->failed; k++)
        c->failed |=
            !add_set(c->sets, key_of(plumb_run_record(c->run, first.records[k])), c->step->count);
    for (size_t m = 0; m < count && !c->failed; m++) {
        const struct given got = results_of(c, members[m]);
        for (size_t k = 0; k < first.count && k < got.count && !c->failed; k++) {
            struct replicas *set = &c->sets->list[from + k];
            const struct plumb_record *record = plumb_run_record(c->run, got.records[k]);
            set->exchanged = true;
            if (record->absent && set->count < c->step->count &&
                record->count == plumb_run_record(c->run, first.records[k])->count)
                set->list[set->count++] =
                    (struct replica){.record = got.records[k], .rank = members[m]->rank};
        }
    }
}

/* ---- Prints ---------------------------------------------------------------------------------- */

struct printing {
    const struct plumb_run *run;
    struct replica_sets *sets;
};

static void print_set(void *context, size_t i, unsigned thread)
{
    const struct printing *p = context;
    struct replicas *set = &p->sets->list[i];
    (void)thread;
    for (size_t k = 0; k < set->count && set->count > 1; k++)
        print_of(&set->list[k].print, p->run, set->list[k].record);
}

enum plumb_code sets_find(struct replica_sets *sets, const struct across *across,
                          const struct across_step *step, const struct plumb_run *run,
                          unsigned threads)
{
    *sets = (struct replica_sets){0};
    if (!add_named(sets, step, run, false))
        return PLUMB_E_NOMEM;
    sets->arguments = !sets->count;
    if (sets->arguments && !add_named(sets, step, run, true))
        return PLUMB_E_NOMEM;
    const size_t named = sets->count;
    struct collecting c = {.sets = sets, .across = across, .step = step, .run = run};
    struct arena work = {0};
    const enum plumb_code code = order_walk(
        step->ranks, step->count, &(struct order_visitor){skip_node, take_exchange, &c}, &work);
    arena_free(&work);
    if (code || c.failed)
        return PLUMB_E_NOMEM;
    pool_run(threads, sets->count, print_set, &(struct printing){run, sets});
    if (sets->arguments && !leave_out_results(sets, step, run, threads))
        return PLUMB_E_NOMEM;
    for (size_t s = 0; s < named; s++)
        if (sets->list[s].count && sets->list[s].list[0].rank == 0)
            sets->elements += plumb_run_record(run, sets->list[s].list[0].record)->count;
    return PLUMB_OK;
}

void sets_close(struct replica_sets *sets)
{
    free(sets->list);
    map_free(&sets->index);
    arena_free(&sets->arena);
}
