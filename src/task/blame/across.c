/* The ranks of a run beside each other. */
#include "task/blame/across.h"

#include "ranks/roles.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static enum level level_of(const struct dump_value *value)
{
    if (value->kind == DUMP_NUMBER)
        return isnan(value->number) ? NOT_A_NUMBER : isinf(value->number) ? INFINITE : FINITE;
    if (value->kind != DUMP_WORD || !value->text)
        return FINITE;
    return !strcasecmp(value->text, "nan")                                       ? NOT_A_NUMBER
           : !strcasecmp(value->text, "inf") || !strcasecmp(value->text, "-inf") ? INFINITE
                                                                                 : FINITE;
}

static enum level worst_of(const struct dump_row *row)
{
    const enum level max = level_of(&row->statistic[DUMP_MAX]);
    const enum level min = level_of(&row->statistic[DUMP_MIN]);
    return max > min ? max : min;
}

/* What nobody has written to counts where it is asked for, so that it is known later on. False when
 * out of memory. */
static bool look_at(struct finite *out, const struct dump_tree *tree, const struct dump_api *api,
                    bool asked_for, struct arena *arena)
{
    const char *worst = NULL;
    for (size_t i = api->first; i < api->first + api->count; i++) {
        const struct dump_row *row = &tree->rows[i];
        const bool output = row->section == DUMP_OUTPUT || row->section == DUMP_GRADIENTS;
        const bool counts = row->tensor && (!row->uninitialised || (output && asked_for));
        const enum level level = counts ? worst_of(row) : FINITE;
        if (level <= (output ? out->out : out->in))
            continue;
        *(output ? &out->out : &out->in) = level;
        const char *path = row->path_name + strlen(api->name);
        worst = output ? worst : path + (*path == '.');
    }
    out->place = worst ? arena_copy(arena, worst, strlen(worst)) : NULL;
    return !worst || out->place;
}

/* A mask is made of infinities, on purpose; what is asked for is nobody's fault. */
static bool is_asked_for(const char *name)
{
    static const char *const words[] = {"Torch.full",  "Torch.tensor", "masked_fill",
                                        "Torch.empty", "Torch.fill",   "Tensor.fill_",
                                        "Torch.where", "Tensor.new_",  "__setitem__"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strstr(name, words[k]))
            return true;
    return false;
}

/* The nodes of a rank, from a second look at its dump.json: the run has not kept all of it. */
static enum plumb_code describe(struct across *across, struct graph_rank *rank, size_t *sites_of,
                                struct finite *finite, const struct dump_tree *tree,
                                const struct dump_tree *known, const struct sites *sites)
{
    static const struct ranks_rules own = {0};
    struct roles roles = {.arena = &across->arena, .rules = &own};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; i < tree->api_count && !code; i++) {
        const struct dump_api *api = &tree->apis[i];
        struct graph_node *node = &rank->nodes[i];
        code = roles_describe(&roles, node, tree, api, rank->number);
        node->name = known->apis[i].name;
        node->ignored = is_asked_for(node->name);
        if (!look_at(&finite[i], tree, api, node->ignored, &across->arena))
            code = PLUMB_E_NOMEM;
        const struct site *site =
            sites_find(sites, node->name, strlen(node->name), known->step, known->rank);
        sites_of[i] = site ? (size_t)(site - sites->list) + 1 : 0;
    }
    roles_free(&roles);
    return code;
}

static bool is_same(const struct dump_tree *a, const struct dump_tree *b)
{
    if (a->api_count != b->api_count)
        return false;
    for (size_t i = 0; i < a->api_count; i++)
        if (strcmp(a->apis[i].name, b->apis[i].name) != 0)
            return false;
    return true;
}

static enum plumb_code add_rank(struct across *across, struct across_step *step,
                                const struct dump_tree *known, const struct sites *sites)
{
    struct dump_tree tree;
    struct plumb_error why;
    enum plumb_code code = dump_open(&tree, known->path, &why);
    if (code)
        return code == PLUMB_E_NOMEM ? code : PLUMB_OK;
    if (is_same(&tree, known)) {
        struct graph_rank *rank = &step->ranks[step->count];
        rank->number = known->rank;
        rank->count = tree.api_count;
        rank->nodes = arena_array(&across->arena, tree.api_count, sizeof *rank->nodes);
        size_t *of = arena_array(&across->arena, tree.api_count, sizeof *of);
        step->trees[step->count] = known;
        struct finite *finite = arena_array(&across->arena, tree.api_count, sizeof *finite);
        step->finite[step->count] = finite;
        step->sites[step->count++] = of;
        code = rank->nodes && of && finite ? describe(across, rank, of, finite, &tree, known, sites)
                                           : PLUMB_E_NOMEM;
    }
    dump_close(&tree);
    return code;
}

/* Trees [from, to) of the run are one step. */
static enum plumb_code add_step(struct across *across, const struct plumb_run *run, size_t from,
                                size_t to, const struct sites *sites)
{
    struct across_step *step = &across->steps[across->count];
    step->step = run->trees[from].step;
    step->ranks = arena_array(&across->arena, to - from, sizeof *step->ranks);
    step->trees = arena_array(&across->arena, to - from, sizeof *step->trees);
    step->sites = arena_array(&across->arena, to - from, sizeof *step->sites);
    step->finite = arena_array(&across->arena, to - from, sizeof *step->finite);
    if (!step->ranks || !step->trees || !step->sites || !step->finite)
        return PLUMB_E_NOMEM;
    for (size_t t = from; t < to; t++)
        if (run->trees[t].rank >= 0 && !run->trees[t].debug) {
            const enum plumb_code code = add_rank(across, step, &run->trees[t], sites);
            if (code)
                return code;
        }
    across->count += step->count > 1;
    return PLUMB_OK;
}

/* Where the records of exchanges begin. */
static enum plumb_code find_records(struct across *across, const struct plumb_run *run)
{
    const char *last = NULL;
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        const struct plumb_recorded *recorded = plumb_run_record(run, i)->recorded;
        if (!recorded || recorded->api == last)
            continue;
        last = recorded->api;
        if (!last || !graph_is_communication(last))
            continue;
        bool added;
        uint64_t *place =
            map_put(&across->records, (const char *)&recorded->api, sizeof recorded->api, &added);
        if (!place)
            return PLUMB_E_NOMEM;
        if (added)
            *place = i;
    }
    return PLUMB_OK;
}

enum plumb_code across_open(struct across *across, const struct plumb_run *run,
                            const struct sites *sites, struct plumb_error *err)
{
    *across = (struct across){0};
    enum plumb_code code = PLUMB_OK;
    across->steps = arena_array(&across->arena, run->tree_count + 1, sizeof *across->steps);
    if (!across->steps)
        code = PLUMB_E_NOMEM;
    for (size_t from = 0, to; from < run->tree_count && !code; from = to) {
        for (to = from + 1; to < run->tree_count && run->trees[to].step == run->trees[from].step;)
            to++;
        if (to - from > 1)
            code = add_step(across, run, from, to, sites);
    }
    if (!code && across->count)
        code = find_records(across, run);
    return code ? plumb_no_memory(err) : PLUMB_OK;
}

void across_close(struct across *across)
{
    map_free(&across->records);
    arena_free(&across->arena);
}

size_t across_records(const struct across *across, const struct plumb_run *run, const char *api,
                      size_t *count)
{
    const uint64_t *place = map_get(&across->records, (const char *)&api, sizeof api);
    const size_t first = place ? (size_t)*place : 0;
    *count = 0;
    while (place && first + *count < plumb_run_count(run)) {
        const struct plumb_recorded *recorded = plumb_run_record(run, first + *count)->recorded;
        if (!recorded || recorded->api != api)
            break;
        ++*count;
    }
    return first;
}
