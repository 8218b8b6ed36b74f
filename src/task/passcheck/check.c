/* The check: both graphs forward and backward, a step of SGD, again and again. */
#include "task/passcheck/opinion.h"
#include "task/passcheck/rows.h"
#include "task/passcheck/side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double learning_rate = 0.01;

struct checker {
    struct passcheck_side before, after;
    const struct plumb_passcheck_options *options;
    struct plumb_passcheck_rows *rows;
    struct opinions *opinions; /* of the first iteration; or NULL */
    unsigned iteration;
    char no_gradients[160];
    char no_random[256]; /* why gradients of all outputs were not compared */
};

void plumb_passcheck_options_init(struct plumb_passcheck_options *options)
{
    *options = (struct plumb_passcheck_options){
        .iterations = 10,
        .precision = 1e-4,
        .kinds = PLUMB_PASSCHECK_PARAMETER | PLUMB_PASSCHECK_OUTPUT | PLUMB_PASSCHECK_GRADIENT |
                 PLUMB_PASSCHECK_STEP,
        .seed = 1337,
    };
}

/* What right arithmetic would show for the row that was added last. */
static bool add_opinion(struct checker *c, const struct plumb_arg *before,
                        const struct plumb_arg *after)
{
    struct passcheck_row *row = &c->rows->row[c->rows->n - 1];
    struct plumb_opinion opinion = {.word = PLUMB_WORD_NOT_JUDGED};
    if (!c->opinions)
        snprintf(opinion.why, sizeof opinion.why, "only the first iteration is judged");
    else if (opinions_judge(c->opinions, row->kind, row->name, before, after, &opinion, NULL))
        return false;
    row->word = opinion.word;
    row->allowed = opinion.allowed;
    row->why = arena_copy(&c->rows->arena, opinion.why, strlen(opinion.why));
    return row->why != NULL;
}

static bool add(struct checker *c, enum plumb_passcheck_kind kind, const char *name,
                const struct plumb_arg *before, const struct plumb_arg *after)
{
    const size_t n = c->rows->n;
    return passcheck_add_row(c->rows, c->iteration, kind, name, before, after) &&
           (c->rows->n == n || !c->options->verdict || add_opinion(c, before, after));
}

/* ---- What is compared ------------------------------------------------------------------------ */

static struct plumb_arg tensor_arg(const struct plumb_tensor *tensor)
{
    return (struct plumb_arg){.kind = tensor ? PLUMB_ARG_TENSOR : PLUMB_ARG_NONE, .tensor = tensor};
}

/* The parameter of that name, or SIZE_MAX. */
static size_t find_parameter(const struct plumb_passcheck_graph *graph, const char *name)
{
    const size_t k = passcheck_find_leaf(graph, name);
    return k != SIZE_MAX && graph->leaves[k].role == PASSCHECK_PARAMETER ? k : SIZE_MAX;
}

static enum plumb_code compare_parameters(struct checker *c, enum plumb_passcheck_kind kind,
                                          struct plumb_error *err)
{
    const struct plumb_passcheck_graph *before = c->before.graph, *after = c->after.graph;
    bool fine = true;
    if (!(c->options->kinds & kind))
        return PLUMB_OK;
    for (size_t k = 0; k < before->n_leaves && fine; k++) {
        if (before->leaves[k].role != PASSCHECK_PARAMETER)
            continue;
        const size_t other = find_parameter(after, before->leaves[k].name);
        const struct plumb_arg a = tensor_arg(&c->before.leaves[k]);
        const struct plumb_arg b = tensor_arg(other == SIZE_MAX ? NULL : &c->after.leaves[other]);
        fine = add(c, kind, before->leaves[k].name, &a, other == SIZE_MAX ? NULL : &b);
    }
    for (size_t k = 0; k < after->n_leaves && fine; k++) {
        const struct plumb_arg b = tensor_arg(&c->after.leaves[k]);
        if (after->leaves[k].role == PASSCHECK_PARAMETER &&
            find_parameter(before, after->leaves[k].name) == SIZE_MAX)
            fine = add(c, kind, after->leaves[k].name, NULL, &b);
    }
    return fine ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code compare_outputs(struct checker *c, struct plumb_error *err)
{
    const struct passcheck_side *a = &c->before, *b = &c->after;
    const size_t n = a->n_outputs > b->n_outputs ? a->n_outputs : b->n_outputs;
    bool fine = true;
    if (!(c->options->kinds & PLUMB_PASSCHECK_OUTPUT))
        return PLUMB_OK;
    for (size_t k = 0; k < n && fine; k++) {
        char name[32];
        snprintf(name, sizeof name, "output.%zu", k);
        fine = add(c, PLUMB_PASSCHECK_OUTPUT, name, k < a->n_outputs ? &a->outputs[k] : NULL,
                   k < b->n_outputs ? &b->outputs[k] : NULL);
    }
    return fine ? PLUMB_OK : plumb_no_memory(err);
}

static bool compare_results(struct checker *c, const char *name, const struct plumb_result *a,
                            const struct plumb_result *b)
{
    const size_t n = a->n_outputs > b->n_outputs ? a->n_outputs : b->n_outputs;
    bool fine = true;
    for (size_t k = 0; k < n && fine; k++) {
        char *full = n == 1 ? NULL : arena_printf(&c->rows->arena, "%s.%zu", name, k);
        if (n > 1 && !full)
            return false;
        fine =
            add(c, PLUMB_PASSCHECK_NODE, full ? full : name,
                k < a->n_outputs ? &a->outputs[k] : NULL, k < b->n_outputs ? &b->outputs[k] : NULL);
    }
    return fine;
}

static enum plumb_code compare_nodes(struct checker *c, struct plumb_error *err)
{
    const struct plumb_passcheck_graph *before = c->before.graph, *after = c->after.graph;
    if (!(c->options->kinds & PLUMB_PASSCHECK_NODE))
        return PLUMB_OK;
    for (size_t k = 0; k < before->n_nodes; k++) {
        const size_t at = before->order[k],
                     other = passcheck_find_node(after, before->nodes[at].name);
        if (other != SIZE_MAX && !compare_results(c, before->nodes[at].name, &c->before.results[at],
                                                  &c->after.results[other]))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

static enum plumb_code compare_gradients(struct checker *c, enum plumb_passcheck_kind kind,
                                         struct plumb_error *err)
{
    const struct plumb_passcheck_graph *before = c->before.graph, *after = c->after.graph;
    for (size_t k = 0; k < before->n_leaves; k++) {
        const struct passcheck_leaf *leaf = &before->leaves[k];
        const size_t other = passcheck_find_leaf(after, leaf->name);
        if (other == SIZE_MAX)
            continue; /* a missing parameter has been told */
        const struct plumb_arg a = tensor_arg(c->before.leaf_grads[k]);
        const struct plumb_arg b = tensor_arg(c->after.leaf_grads[other]);
        if (!add(c, kind, leaf->name, &a, &b))
            return plumb_no_memory(err);
    }
    return PLUMB_OK;
}

/* ---- One iteration --------------------------------------------------------------------------- */

/* A gradient that only one side can have is a difference. */
static bool add_lone_output(struct checker *c, size_t before, size_t after)
{
    char name[32];
    bool fine = true;
    if (!(c->options->kinds & PLUMB_PASSCHECK_GRADIENT))
        return true;
    if (before != SIZE_MAX) {
        snprintf(name, sizeof name, "output.%zu", before);
        fine = add(c, PLUMB_PASSCHECK_GRADIENT, name, &c->before.outputs[before], NULL);
    }
    if (after != SIZE_MAX && fine) {
        snprintf(name, sizeof name, "output.%zu", after);
        fine = add(c, PLUMB_PASSCHECK_GRADIENT, name, NULL, &c->after.outputs[after]);
    }
    return fine;
}

static void note_outputs(struct checker *c, size_t a, size_t b)
{
    const size_t room = sizeof c->no_gradients;
    if (a == SIZE_MAX || b == SIZE_MAX)
        snprintf(c->no_gradients, room, "no gradients: no output %s depends on a parameter",
                 a != SIZE_MAX   ? "after"
                 : b != SIZE_MAX ? "before"
                                 : "of either graph");
    else if (a != b)
        snprintf(c->no_gradients, room,
                 "the first output that has a gradient is %zu before and %zu after", a, b);
    else if (a)
        snprintf(c->no_gradients, room,
                 "output 0 has no gradient; those of the sum of output %zu were compared", a);
}

static enum plumb_code walk_back(struct checker *c, struct plumb_error *err)
{
    const size_t a = passcheck_first_differentiable(&c->before);
    const size_t b = passcheck_first_differentiable(&c->after);
    enum plumb_code code = PLUMB_OK;
    note_outputs(c, a, b);
    if (a != b && !add_lone_output(c, a, b))
        return plumb_no_memory(err);
    if (a != SIZE_MAX)
        code = passcheck_backward(&c->before, a, err);
    if (b != SIZE_MAX && !code)
        code = passcheck_backward(&c->after, b, err);
    return code;
}

/* Whether both sides can go back from an output together. */
static bool goes_back(const struct checker *c, size_t k)
{
    const struct passcheck_side *a = &c->before, *b = &c->after;
    return passcheck_is_differentiable(a, k) && passcheck_is_differentiable(b, k) &&
           a->outputs[k].tensor->dtype == b->outputs[k].tensor->dtype &&
           a->outputs[k].tensor->count == b->outputs[k].tensor->count;
}

/* Which outputs both sides can go back from, and what there was before: memory of the side's. */
struct random_walk {
    bool *chosen;
    struct plumb_tensor **kept;
    size_t n_leaves;
};

static bool prepare_walk(struct checker *c, struct passcheck_side *side, struct random_walk *walk)
{
    walk->n_leaves = side->graph->n_leaves;
    walk->chosen = arena_array(&side->scratch, side->n_outputs + 1, sizeof *walk->chosen);
    walk->kept = arena_array(&side->scratch, walk->n_leaves + 1, sizeof *walk->kept);
    if (!walk->chosen || !walk->kept)
        return false;
    memcpy(walk->kept, side->leaf_grads, walk->n_leaves * sizeof *walk->kept);
    for (size_t k = 0; k < side->n_outputs; k++)
        walk->chosen[k] = goes_back(c, k);
    return true;
}

/* Of all outputs, with weights drawn at random: the sum of a softmax has no gradient at all. */
static enum plumb_code compare_random_gradients(struct checker *c, struct plumb_error *err)
{
    struct passcheck_side *sides[2] = {&c->before, &c->after};
    struct random_walk walks[2];
    enum plumb_code codes[2];
    struct plumb_error errors[2];
    for (int i = 0; i < 2; i++)
        if (!prepare_walk(c, sides[i], &walks[i]))
            return plumb_no_memory(err);
    for (int i = 0; i < 2; i++)
        codes[i] = passcheck_backward_random(sides[i], walks[i].chosen,
                                             c->options->seed + c->iteration, &errors[i]);
    enum plumb_code code = codes[0] && codes[1] ? PLUMB_OK : codes[0] ? codes[0] : codes[1];
    if (codes[0] && codes[1])
        snprintf(c->no_random, sizeof c->no_random,
                 "gradients of all outputs were not compared: %.180s", errors[0].message);
    else if (code && err)
        *err = errors[codes[0] ? 0 : 1];
    else if (!code)
        code = compare_gradients(c, PLUMB_PASSCHECK_RANDOM_GRADIENT, err);
    for (int i = 0; i < 2; i++)
        memcpy(sides[i]->leaf_grads, walks[i].kept, walks[i].n_leaves * sizeof *walks[i].kept);
    return code;
}

/* The second opinion starts where the two sides do: from the same parameters. */
static enum plumb_code ask(struct checker *c, struct plumb_error *err)
{
    const size_t a = c->before.n_outputs, b = c->after.n_outputs, n = a > b ? a : b;
    bool *chosen = arena_array(&c->rows->arena, n + 1, sizeof *chosen);
    if (!chosen)
        return plumb_no_memory(err);
    for (size_t k = 0; k < n; k++)
        chosen[k] = goes_back(c, k);
    return opinions_new(&c->before, &c->after, chosen, learning_rate, &c->opinions, err);
}

static enum plumb_code iterate(struct checker *c, struct plumb_error *err)
{
    const unsigned kinds = c->options->kinds;
    enum plumb_code code = passcheck_forward(&c->before, err);
    if (!code)
        code = passcheck_forward(&c->after, err);
    if (!code && c->options->verdict && c->iteration == 0)
        code = ask(c, err);
    if (!code)
        code = compare_parameters(c, PLUMB_PASSCHECK_PARAMETER, err);
    if (!code)
        code = compare_nodes(c, err);
    if (!code)
        code = compare_outputs(c, err);
    if (!code && kinds & (PLUMB_PASSCHECK_GRADIENT | PLUMB_PASSCHECK_STEP))
        code = walk_back(c, err);
    if (!code && kinds & PLUMB_PASSCHECK_GRADIENT)
        code = compare_gradients(c, PLUMB_PASSCHECK_GRADIENT, err);
    if (!code && kinds & PLUMB_PASSCHECK_GRADIENT)
        code = compare_random_gradients(c, err);
    if (code || !(kinds & PLUMB_PASSCHECK_STEP))
        return code;
    passcheck_step(&c->before, learning_rate);
    passcheck_step(&c->after, learning_rate);
    return compare_parameters(c, PLUMB_PASSCHECK_STEP, err);
}

/* ---- All of them ----------------------------------------------------------------------------- */

enum plumb_code plumb_passcheck_run(const struct plumb_passcheck_graph *before,
                                    const struct plumb_passcheck_graph *after,
                                    const struct plumb_passcheck_options *options,
                                    struct plumb_passcheck *out, struct plumb_error *err)
{
    *out = (struct plumb_passcheck){.first_iteration = -1};
    if (options->iterations == 0 || !(options->precision >= 0) || isinf(options->precision))
        return plumb_fail(err, PLUMB_E_ARG,
                          "a check takes at least one iteration and a precision from 0 on");
    enum plumb_code code = plumb_arithmetic_check(options->arithmetic, err);
    if (code)
        return code;
    const unsigned iterations = options->verdict == PLUMB_BY_EXPECTED ? 1 : options->iterations;
    struct checker c = {.options = options};
    out->at = c.rows = calloc(1, sizeof *out->at);
    if (!out->at)
        return plumb_no_memory(err);
    out->at->verdict = options->verdict;
    code = same_rule_init(&c.rows->rule, options->precision, err);
    if (!code)
        code = passcheck_side_init(&c.before, before, options, NULL, err);
    if (!code)
        code = passcheck_side_init(&c.after, after, options, &c.before, err);
    for (; c.iteration < iterations && !code; c.iteration++) {
        if (options->progress)
            options->progress(options->progress_context, c.iteration, iterations);
        code = iterate(&c, err);
        opinions_free(c.opinions);
        c.opinions = NULL;
    }
    if (!code && out->at->n == 0)
        code = plumb_fail(err, PLUMB_E_ARG, "%s and %s have nothing to compare", before->path,
                          after->path);
    if (!code) {
        char notes[512];
        snprintf(notes, sizeof notes, "%s%s%s%s", c.no_gradients, *c.no_gradients ? "\n" : "",
                 c.no_random, *c.no_random ? "\n" : "");
        code = passcheck_close(out, options, notes, err);
    }
    passcheck_side_destroy(&c.after);
    passcheck_side_destroy(&c.before);
    return code;
}

void plumb_passcheck_destroy(struct plumb_passcheck *check)
{
    if (check->at) {
        same_rule_destroy(&check->at->rule);
        arena_free(&check->at->arena);
        free(check->at);
    }
    *check = (struct plumb_passcheck){.first_iteration = -1};
}
