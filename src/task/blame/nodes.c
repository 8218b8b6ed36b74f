/* A node of a graph computed again. */
#include "task/blame/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64 };

/* ---- Arguments ------------------------------------------------------------------------------- */

struct plumb_arg node_integer(int64_t value)
{
    return (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = value};
}

bool node_plainly(struct node *n, const struct plumb_arg *from, bool lists, struct plumb_arg *out)
{
    const struct plumb_tensor *t = from->tensor;
    double values[MAX_SIZES];
    *out = *from;
    if (from->kind != PLUMB_ARG_TENSOR || t->rank > 1 || t->count > MAX_SIZES)
        return true;
    const enum plumb_kind kind = plumb_dtype_info(t->dtype)->kind;
    const bool whole = kind == PLUMB_KIND_INT || kind == PLUMB_KIND_BOOL;
    if (plumb_dtype_parts(t->dtype) != 1 || (t->rank && (!whole || !lists)))
        return true;
    plumb_tensor_to_f64(t, 0, (size_t)t->count, values);
    if (!t->rank) {
        *out = kind == PLUMB_KIND_INT ? node_integer((int64_t)values[0])
               : kind == PLUMB_KIND_BOOL
                   ? (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = values[0] != 0}
                   : (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = values[0]};
        return true;
    }
    struct plumb_arg *items = arena_array(&n->loader.arena, (size_t)t->count + 1, sizeof *items);
    for (size_t k = 0; items && k < t->count; k++)
        items[k] = node_integer((int64_t)values[k]);
    *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items, .n_items = (size_t)t->count};
    return items != NULL;
}

struct node_try *node_add_try(struct node *n, const char *op)
{
    struct node_try *try = n->n_tries < NODE_MAX_TRIES ? &n->tries[n->n_tries++] : NULL;
    if (try)
        *try = (struct node_try){.op = op};
    return try;
}

void node_add_keyword(struct node_try *try, const char *name, struct plumb_arg value)
{
    try->kwargs[try->n_kwargs++] = (struct plumb_kwarg){.name = name, .value = value};
}

/* ---- Judging --------------------------------------------------------------------------------- */

static void make_call(const struct node *n, const struct node_try *try, struct plumb_call *out)
{
    *out = (struct plumb_call){.prefix = n->prefix,
                               .name = try->op,
                               .args = try->args,
                               .n_args = try->n_args,
                               .kwargs = try->kwargs,
                               .n_kwargs = try->n_kwargs,
                               .memory = n->options->local.memory};
}

/* The way that comes nearest to what was recorded; why: of the first, when it cannot be run. */
static enum plumb_code choose(struct node *n, size_t *best, struct plumb_error *err)
{
    double least = INFINITY;
    bool ran = false;
    for (size_t k = 0; k < n->n_tries; k++) {
        struct plumb_call call;
        struct plumb_result result = {0};
        struct plumb_error why = {0};
        make_call(n, &n->tries[k], &call);
        const enum plumb_code code = plumb_op_run(&call, PLUMB_RAISED, &result, &why);
        const double apart =
            code || !result.n_outputs
                ? INFINITY
                : tensor_distance(&result.outputs[0], n->outputs.items[0].arg.tensor);
        plumb_result_destroy(&result);
        if (code == PLUMB_E_NOMEM) {
            *err = why;
            return code;
        }
        if (code && !k)
            *err = why;
        if (apart < least || (!code && !ran)) {
            least = apart;
            *best = k;
        }
        ran |= !code;
        if (least == 0)
            break;
    }
    return ran ? PLUMB_OK : err->code ? err->code : PLUMB_E_UNSUPPORTED;
}

/* A fault that rests on what was only assumed is none that anybody is to be blamed for, and what
 * only an unusual argument explains is not shown to be right. */
static enum plumb_code doubt(struct node *n, const struct node_try *try, struct plumb_error *err)
{
    struct local_verdict *out = &n->out[LOCAL_FORWARD];
    const bool fault = out->word == PLUMB_WORD_FAULT;
    const char *why = fault ? n->unknown : try->assumed;
    if (!why || out->word == PLUMB_WORD_NOT_JUDGED)
        return PLUMB_OK;
    out->why = fault ? arena_printf(n->arena, "%s; with what is usual: %s", why, out->why)
                     : arena_printf(n->arena, "%s", why);
    out->word = PLUMB_WORD_NOT_JUDGED;
    out->doubtful = true;
    return out->why ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code judge_node(struct node *n, struct plumb_error *err)
{
    size_t best = 0;
    struct plumb_arg outputs[MAX_TENSORS];
    struct known_call known = {.only_recorded = true};
    enum plumb_code code = choose(n, &best, err);
    for (size_t k = 0; k < n->outputs.count; k++)
        outputs[k] = n->outputs.items[k].arg;
    known.given.outputs = outputs;
    /* An unusual argument that explains nothing is no excuse: then the usual ones count. */
    for (int again = 0; again < 2 && !code; again++) {
        const struct node_try *try = &n->tries[best];
        make_call(n, try, &known.call);
        known.given.n_outputs = n->outputs.count;
        memset(n->out, 0, LOCAL_DIRECTIONS * sizeof *n->out);
        code = known_judge(&n->options->local, &known, n->arena, n->out, err);
        if (!(try->assumed && n->out[LOCAL_FORWARD].word == PLUMB_WORD_FAULT))
            break;
        n->n_tries = NODE_FX_WAYS;
        code = code ? code : choose(n, &best, err);
    }
    return code ? code : doubt(n, &n->tries[best], err);
}

/* Pieces that are tensors or numbers; FX leaves files of other things behind as well. */
static enum plumb_code take_inputs(struct node *n, struct plumb_error *err)
{
    const struct pieces *from = &n->unit->of[PIECE_INPUT];
    struct pieces kept = {.list =
                              arena_array(&n->loader.arena, from->count + 1, sizeof *kept.list)};
    if (!kept.list)
        return plumb_no_memory(err);
    for (size_t k = 0; k < from->count; k++) {
        const struct plumb_record *record = plumb_run_record(n->options->run, from->list[k].record);
        if (record->absent && !record->detail)
            n->objects = true;
        else
            kept.list[kept.count++] = from->list[k];
    }
    return list_take(&n->loader, &kept, &n->inputs, err);
}

static enum plumb_code run(struct node *n, struct plumb_error *err)
{
    const struct pieces *outputs = &n->unit->of[PIECE_OUTPUT];
    enum plumb_code code = take_inputs(n, err);
    if (!code && !n->loader.refused)
        code = list_take(&n->loader, outputs, &n->outputs, err);
    if (code || n->loader.refused)
        return code;
    if (!n->outputs.count || n->outputs.items[0].arg.kind != PLUMB_ARG_TENSOR)
        n->loader.refused = "its outputs were not recorded";
    const bool ge =
        outputs->count && plumb_run_record(n->options->run, outputs->list[0].record)->detail;
    if (!n->loader.refused && ge && !n->inputs.count)
        n->loader.refused = "its inputs were not recorded";
    if (!n->loader.refused && !(ge ? node_list_ge(n) : node_list_fx(n)))
        return plumb_no_memory(err);
    return n->loader.refused ? PLUMB_OK : judge_node(n, err);
}

enum plumb_code node_judge(const struct unit_options *options, const struct unit *unit,
                           struct arena *arena, struct local_verdict out[LOCAL_DIRECTIONS],
                           struct plumb_error *err)
{
    struct node *n = calloc(1, sizeof *n); /* too large for the stack of a thread */
    struct plumb_error why = {0};
    if (!n)
        return plumb_no_memory(err);
    n->options = options;
    n->unit = unit;
    n->arena = arena;
    n->loader = (struct loader){.run = options->run, .left = options->local.memory / 3};
    n->out = out;
    memset(out, 0, LOCAL_DIRECTIONS * sizeof *out);
    enum plumb_code code = run(n, &why);
    if (code == PLUMB_E_NOMEM)
        *err = why;
    else if (code || n->loader.refused)
        code = verdict_none(&out[LOCAL_FORWARD],
                            code ? verdict_reason(arena, &why) : n->loader.refused, arena, err);
    arena_free(&n->loader.arena);
    free(n);
    return code;
}
