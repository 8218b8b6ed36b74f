/* Which tensors of different ranks should be alike. */
#include "task/blame/odd.h"

#include "base/pool.h"
#include "ranks/order.h"

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
        sets->elements += rank == 0 ? tensor->count : 0;
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

/* The k-th tensor that came out of a call; SIZE_MAX: there is none. */
static size_t find_output(const struct collecting *c, const struct graph_node *node, size_t k)
{
    size_t count;
    const size_t first = across_records(c->across, c->run, node->name, &count);
    for (size_t i = first; i < first + count; i++) {
        const struct plumb_record *record = plumb_run_record(c->run, i);
        if (strstr(key_of(record), ".forward.output.") && record->recorded->tensor &&
            record->absent && k-- == 0)
            return i;
    }
    return SIZE_MAX;
}

static void take_exchange(void *context, struct graph_node *const *members, size_t count)
{
    struct collecting *c = context;
    if (count < 2 || !gives_all_the_same(members[0]) || c->failed)
        return;
    for (size_t k = 0;; k++) {
        size_t record = find_output(c, members[0], k);
        if (record == SIZE_MAX)
            return;
        const uint64_t elements = plumb_run_record(c->run, record)->count;
        struct replicas *set =
            add_set(c->sets, key_of(plumb_run_record(c->run, record)), c->step->count);
        c->failed |= !set;
        if (!set)
            return;
        set->exchanged = true;
        for (size_t m = 0; m < count && set->count < c->step->count; m++)
            if ((record = find_output(c, members[m], k)) != SIZE_MAX &&
                plumb_run_record(c->run, record)->count == elements)
                set->list[set->count++] =
                    (struct replica){.record = record, .rank = members[m]->rank};
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
    if (!add_named(sets, step, run, false) || (!sets->count && !add_named(sets, step, run, true)))
        return PLUMB_E_NOMEM;
    struct collecting c = {.sets = sets, .across = across, .step = step, .run = run};
    struct arena work = {0};
    const enum plumb_code code = order_walk(
        step->ranks, step->count, &(struct order_visitor){skip_node, take_exchange, &c}, &work);
    arena_free(&work);
    if (code || c.failed)
        return PLUMB_E_NOMEM;
    pool_run(threads, sets->count, print_set, &(struct printing){run, sets});
    return PLUMB_OK;
}

void sets_close(struct replica_sets *sets)
{
    free(sets->list);
    map_free(&sets->index);
    arena_free(&sets->arena);
}
