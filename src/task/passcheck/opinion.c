/* The second opinion about a pass (docs/PASSCHECK.md, "What right arithmetic shows"). */
#include "task/passcheck/opinion.h"

#include "base/memory.h"
#include "verdict/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs with errors: of the graph before, of the same with 16-bit types as float32, of new constants
 * of the graph after, and of that graph, which only what seems a fault is held against. */
enum set { NOISE, FINE, CONSTANTS, CHANGED, SETS };

enum { RUNS = 4, MORE_RUNS = 8 };
static const uint64_t MANY_NUMBERS = 1 << 12; /* in all results together */

struct opinions {
    struct arena arena;
    struct plumb_passcheck_options options; /* of the runs in float64 */
    const struct passcheck_side *typed[2];  /* before and after, as they are compared */
    struct passcheck_side side[2];          /* the same in float64 */
    struct harvest exact[2];
    struct harvest runs[SETS][WHOLE_MAX_RUNS];
    unsigned n_runs[SETS];
    bool *changed[2]; /* of the leaves: not the same on the other side */
    struct harvest_plan plan[2];
    unsigned count; /* of runs in a set */
    bool formula;   /* the graph after could be run in float64 */
    char why[400];  /* why nothing is judged, or "" */
    char drew[200]; /* the first node with random results, or "" */
    enum plumb_dtype narrowest;
};

/* ---- Which constants are the same ------------------------------------------------------------ */

static bool same_bits(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) != 0)
        return false;
    return a->count == 0 || memcmp(a->data, b->data, (size_t)plumb_tensor_bytes(a)) == 0;
}

static bool find_changed(struct opinions *o)
{
    for (int i = 0; i < 2; i++) {
        const struct passcheck_side *side = o->typed[i], *other = o->typed[1 - i];
        o->changed[i] = arena_array(&o->arena, side->graph->n_leaves + 1, sizeof *o->changed[i]);
        if (!o->changed[i])
            return false;
        for (size_t k = 0; k < side->graph->n_leaves; k++) {
            const size_t at = passcheck_find_leaf(other->graph, side->graph->leaves[k].name);
            o->changed[i][k] = at == SIZE_MAX || !same_bits(&side->leaves[k], &other->leaves[at]);
        }
    }
    return true;
}

static bool any(const bool *flags, size_t n)
{
    bool found = false;
    for (size_t k = 0; k < n; k++)
        found |= flags[k];
    return found;
}

/* ---- Runs in float64 ------------------------------------------------------------------------- */

static enum plumb_code make_side(struct opinions *o, int i, struct passcheck_side *side,
                                 struct plumb_error *err)
{
    const struct plumb_passcheck_graph *graph = o->typed[i]->graph;
    const enum plumb_code code =
        passcheck_side_init(side, graph, &o->options, i ? &o->side[0] : NULL, err);
    if (code)
        return code;
    side->typed = o->typed[i];
    side->terms = arena_array(&side->memory, graph->n_nodes + 1, sizeof *side->terms);
    side->grad_terms = arena_array(&side->memory, graph->n_nodes + 1, sizeof *side->grad_terms);
    side->stored = arena_array(&side->memory, graph->n_nodes + 1, sizeof *side->stored);
    return side->terms && side->grad_terms && side->stored ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code run_exact(struct opinions *o, int i, struct plumb_error *err)
{
    enum plumb_code code = make_side(o, i, &o->side[i], err);
    o->side[i].stored = NULL;
    o->plan[i].start = &o->side[i];
    o->exact[i].max_bytes = memory_total() / 32;
    return code ? code : harvest_run(&o->side[i], &o->plan[i], &o->exact[i], err);
}

static enum plumb_code run_noise(struct opinions *o, enum set set, struct plumb_error *err)
{
    const int i = set == CONSTANTS || set == CHANGED;
    const unsigned r = o->n_runs[set];
    const struct passcheck_noise noise = {.seed = o->options.seed + 1000 * (unsigned)set + r + 1,
                                          .fine = set == FINE,
                                          .only = set == CONSTANTS ? o->changed[1] : NULL,
                                          .reference = &o->side[i]};
    struct passcheck_side side;
    enum plumb_code code = make_side(o, i, &side, err);
    side.noise = &noise;
    o->runs[set][r].max_bytes = memory_total() / 32;
    if (!code)
        code = passcheck_noise_leaves(&side, err);
    if (!code)
        code = harvest_run(&side, &o->plan[i], &o->runs[set][r], err);
    passcheck_side_destroy(&side);
    o->n_runs[set]++;
    return code;
}

static enum plumb_code run_set(struct opinions *o, enum set set, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    while (!code && o->n_runs[set] < o->count)
        code = run_noise(o, set, err);
    return code;
}

static void narrow(enum plumb_dtype dtype, enum plumb_dtype *narrowest)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (info->kind == PLUMB_KIND_FLOAT &&
        (*narrowest == PLUMB_DTYPE_COUNT ||
         info->precision < plumb_dtype_info(*narrowest)->precision))
        *narrowest = dtype;
}

static enum plumb_dtype find_narrowest(const struct passcheck_side *side)
{
    enum plumb_dtype narrowest = PLUMB_DTYPE_COUNT;
    for (size_t k = 0; k < side->graph->n_leaves; k++)
        narrow(side->declared[k], &narrowest);
    for (size_t k = 0; k < side->graph->n_nodes; k++)
        for (size_t i = 0; i < side->results[k].n_outputs; i++)
            if (side->results[k].outputs[i].kind == PLUMB_ARG_TENSOR)
                narrow(side->results[k].outputs[i].tensor->dtype, &narrowest);
    return narrowest;
}

static uint64_t numbers(const struct harvest *h)
{
    return h->bytes / sizeof(double);
}

static enum plumb_code run_all(struct opinions *o, struct plumb_error *err)
{
    const enum plumb_dtype before = find_narrowest(o->typed[0]);
    const bool few = numbers(&o->exact[0]) < MANY_NUMBERS;
    const bool narrow_types = before != PLUMB_DTYPE_COUNT && plumb_dtype_info(before)->bits < 32;
    const bool wanted[SETS] = {
        [NOISE] = true,
        [FINE] = narrow_types && o->formula,
        [CONSTANTS] = o->formula && any(o->changed[1], o->typed[1]->graph->n_leaves),
    };
    enum plumb_code code = PLUMB_OK;
    o->count = few ? MORE_RUNS : RUNS;
    for (unsigned set = 0; set < SETS && !code; set++)
        if (wanted[set])
            code = run_set(o, (enum set)set, err);
    return code;
}

/* Only what draws at random now: a dropout that is switched off does not. */
static void find_drawing(struct opinions *o)
{
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < o->typed[i]->graph->n_nodes && !*o->drew; k++) {
            const struct passcheck_node *node = &o->typed[i]->graph->nodes[k];
            struct passcheck_call call;
            struct plumb_result result = {0};
            if (!node->def->random)
                continue;
            const bool ran = !passcheck_prepare(&o->side[i], node, &call, NULL) &&
                             !passcheck_run_call(&o->side[i], node, &call.call, &result, NULL);
            if (!ran || call.drawn)
                snprintf(o->drew, sizeof o->drew, "%.180s", node->name);
            plumb_result_destroy(&result);
        }
}

enum plumb_code opinions_new(const struct passcheck_side *before,
                             const struct passcheck_side *after, const bool *chosen, double rate,
                             struct opinions **out, struct plumb_error *err)
{
    struct opinions *o = *out = calloc(1, sizeof *o);
    if (!o)
        return plumb_no_memory(err);
    const struct passcheck_side *sides[2] = {before, after};
    struct plumb_error why = {0};
    o->options = *before->options;
    o->options.device = NULL;
    o->narrowest = find_narrowest(after);
    for (int i = 0; i < 2; i++) {
        o->typed[i] = sides[i];
        o->plan[i] = (struct harvest_plan){.kinds = o->options.kinds,
                                           .output = passcheck_first_differentiable(sides[i]),
                                           .chosen = chosen,
                                           .seed = o->options.seed,
                                           .rate = rate,
                                           .other = sides[1 - i]->graph};
    }
    if (!find_changed(o))
        return plumb_no_memory(err);
    enum plumb_code code = run_exact(o, 0, &why);
    if (!code) {
        o->formula = !run_exact(o, 1, &why);
        code = run_all(o, &why);
    }
    if (!code && o->formula)
        find_drawing(o);
    if (code == PLUMB_E_NOMEM)
        return plumb_no_memory(err);
    if (code)
        snprintf(o->why, sizeof o->why, "the graph cannot be run in float64: %.340s", why.message);
    return PLUMB_OK;
}

void opinions_free(struct opinions *opinions)
{
    if (!opinions)
        return;
    for (int i = 0; i < 2; i++) {
        passcheck_side_destroy(&opinions->side[i]);
        harvest_free(&opinions->exact[i]);
    }
    for (unsigned set = 0; set < SETS; set++)
        for (unsigned r = 0; r < WHOLE_MAX_RUNS; r++)
            harvest_free(&opinions->runs[set][r]);
    arena_free(&opinions->arena);
    free(opinions);
}

/* ---- One pair -------------------------------------------------------------------------------- */

static void collect(const struct opinions *o, enum set set, enum plumb_passcheck_kind kind,
                    const char *name, uint64_t n, struct whole_runs *out)
{
    for (unsigned r = 0; r < o->n_runs[set]; r++) {
        const struct harvest_item *item = harvest_find(&o->runs[set][r], kind, name);
        if (item && item->n == n)
            out->run[out->n++] = item->values;
    }
}

static bool is_changed(const struct opinions *o, const char *name)
{
    const size_t k = passcheck_find_leaf(o->typed[0]->graph, name);
    return k != SIZE_MAX && o->changed[0][k];
}

/* What is settled without numbers; NULL: they decide. */
static const char *no_opinion(const struct opinions *o, enum plumb_passcheck_kind kind,
                              const char *name, const struct plumb_arg *before,
                              const struct plumb_arg *after)
{
    if (kind == PLUMB_PASSCHECK_PARAMETER)
        return !before || !after || is_changed(o, name)
                   ? "the pass changed this parameter; the outputs tell whether rightly"
                   : NULL;
    if (*o->why)
        return o->why;
    if (kind != PLUMB_PASSCHECK_OUTPUT && kind != PLUMB_PASSCHECK_NODE &&
        (!before || !after || is_changed(o, name)))
        return "the pass changed this parameter, whose gradient is another one then";
    return NULL;
}

static void settle_inherited(struct opinions *o, const char *name, struct plumb_opinion *opinion)
{
    const size_t before = passcheck_find_node(o->typed[0]->graph, name);
    const size_t after = passcheck_find_node(o->typed[1]->graph, name);
    if (!o->formula || before == SIZE_MAX || after == SIZE_MAX ||
        !local_is_right(&o->side[0], &o->side[1], before, after))
        return;
    opinion->word = PLUMB_WORD_INHERITED;
    char why[sizeof opinion->why];
    memcpy(why, opinion->why, sizeof why);
    snprintf(opinion->why, sizeof opinion->why, "right for its own inputs, which are off: %.500s",
             why);
}

static void say(struct plumb_opinion *opinion, enum plumb_word word, const char *why)
{
    *opinion = (struct plumb_opinion){.word = word};
    snprintf(opinion->why, sizeof opinion->why, "%s", why);
}

enum plumb_code opinions_judge(struct opinions *o, enum plumb_passcheck_kind kind, const char *name,
                               const struct plumb_arg *before, const struct plumb_arg *after,
                               struct plumb_opinion *opinion, struct plumb_error *err)
{
    const char *none = no_opinion(o, kind, name, before, after);
    if (none || kind == PLUMB_PASSCHECK_PARAMETER) {
        say(opinion, none ? PLUMB_WORD_NOT_JUDGED : PLUMB_WORD_SAME,
            none ? none : "the same parameter, bit for bit");
        return PLUMB_OK;
    }
    if (*o->drew) {
        char text[300];
        snprintf(text, sizeof text, "the graph draws at random (node %s)", o->drew);
        say(opinion, PLUMB_WORD_NOT_JUDGED, text);
        return PLUMB_OK;
    }
    const struct harvest_item *y = harvest_find(&o->exact[0], kind, name);
    const struct harvest_item *formula = o->formula ? harvest_find(&o->exact[1], kind, name) : NULL;
    struct whole_item item = {.before = before,
                              .after = after,
                              .narrowest = o->narrowest,
                              .arithmetic = o->options.arithmetic};
    if (y && before && before->kind == PLUMB_ARG_TENSOR && before->tensor->count == y->n) {
        item.y = y->values;
        item.formula = formula && formula->n == y->n ? formula->values : NULL;
        collect(o, NOISE, kind, name, y->n, &item.noise);
        collect(o, FINE, kind, name, y->n, &item.fine);
        if (item.formula)
            collect(o, CONSTANTS, kind, name, y->n, &item.constants);
    }
    enum plumb_code code = whole_judge(&item, opinion, err);
    if (!code && opinion->word == PLUMB_WORD_FAULT && item.formula) {
        code = run_set(o, CHANGED, err);
        collect(o, CHANGED, kind, name, y->n, &item.changed);
        if (!code)
            code = whole_judge(&item, opinion, err);
    }
    if (!code && opinion->word == PLUMB_WORD_FAULT && kind == PLUMB_PASSCHECK_NODE)
        settle_inherited(o, name, opinion);
    return code;
}
