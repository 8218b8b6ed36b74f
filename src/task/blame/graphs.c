/* Reading dumps of graphs as runs. */
#define _GNU_SOURCE
#include "task/blame/graphs.h"

#include "format/ge_debug.h"
#include "format/ge_type.h"
#include "pair/fx_inputs.h"
#include "pair/graph_groups.h"
#include "pair/graph_names.h"
#include "run/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct air_rules rules; /* plumb's own */

struct opening {
    struct plumb_run *runs[2];
    struct tree trees[2];
    bool fx[2], several; /* graphs: their names stand before those of operators */
    int64_t rank;
    struct air_dump dumps[2];
    struct map sides; /* of the target: where a tensor lies, to number + 1 of its record */
    struct plumb_error *err;
};

/* ---- Loading --------------------------------------------------------------------------------- */

static enum plumb_code load(const struct plumb_record *record, struct plumb_payload *payload,
                            struct plumb_error *err)
{
    static const struct ge_reading usual = {0};
    const struct graph_detail *detail = record->detail;
    *payload = (struct plumb_payload){0};
    if (record->error) {
        if (err)
            *err = *record->error;
        return record->error->code;
    }
    if (record->absent)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "it is no tensor");
    return detail ? ge_load(detail->ge, detail->tensor, &usual, payload, err)
                  : air_load_fx(record->path, payload, err);
}

bool graphs_is(const struct plumb_run *run)
{
    return run->load == load;
}

static struct plumb_run *new_run(const char *path)
{
    struct plumb_run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->listing.arena = &run->arena;
    run->path = arena_copy(&run->arena, path, strlen(path));
    run->kind = "graph dump";
    run->load = load;
    if (run->path)
        return run;
    plumb_run_free(run);
    return NULL;
}

/* ---- Records --------------------------------------------------------------------------------- */

static struct plumb_record *add_record(struct opening *o, int side, const char *name,
                                       const char *path, int64_t token)
{
    struct plumb_run *run = o->runs[side];
    run->listing.path = path;
    struct plumb_record *record = name ? listing_add(&run->listing, name, strlen(name)) : NULL;
    if (record) {
        record->step = token;
        record->rank = o->rank;
    }
    return record;
}

/* Type and shape of an FX file; what is no tensor is absent. */
static enum plumb_code describe_fx(struct opening *o, int side, struct plumb_record *record)
{
    struct listing *listing = &o->runs[side]->listing;
    struct air_fx_file file = {.path = record->path};
    struct plumb_run *run;
    struct plumb_error why;
    fx_look(&file);
    record->absent = file.kind == AIR_FX_OBJECT;
    if (record->absent)
        return PLUMB_OK;
    enum plumb_code code = plumb_run_open(&run, record->path, &why);
    if (code)
        return code == PLUMB_E_NOMEM ? plumb_no_memory(o->err)
                                     : listing_fail(listing, record, &why);
    const struct plumb_record *inside = plumb_run_count(run) ? plumb_run_record(run, 0) : NULL;
    if (!inside || inside->error)
        code = inside ? listing_fail(listing, record, inside->error) : PLUMB_OK;
    else
        code =
            listing_set_shape(listing, record, inside->dtype, inside->ndim, inside->shape, o->err);
    plumb_run_free(run);
    return code;
}

static enum plumb_code describe_ge(struct opening *o, int side, struct plumb_record *record,
                                   const struct ge_file *ge, const struct ge_tensor *tensor)
{
    struct plumb_run *run = o->runs[side];
    struct graph_detail *detail = arena_alloc(&run->arena, sizeof *detail);
    const struct ge_dims *dims = tensor->original.rank ? &tensor->original : &tensor->shape;
    const struct ge_type *type = ge_type_find(tensor->type);
    int64_t shape[PLUMB_MAX_RANK];
    struct plumb_error why;
    if (!detail)
        return plumb_no_memory(o->err);
    *detail = (struct graph_detail){.ge = ge, .tensor = tensor};
    record->detail = detail;
    if (tensor->error)
        return listing_fail(&run->listing, record, tensor->error);
    if (tensor->recorded || !type || dims->rank > PLUMB_MAX_RANK) {
        record->absent = true;
        return PLUMB_OK;
    }
    for (unsigned k = 0; k < dims->rank; k++)
        shape[k] = (int64_t)(dims->dim[k] & INT64_MAX);
    const enum plumb_code code =
        listing_set_shape(&run->listing, record, type->dtype, dims->rank, shape, &why);
    return code && code != PLUMB_E_NOMEM ? listing_fail(&run->listing, record, &why) : code;
}

/* Notes which record a tensor of the target is. */
static enum plumb_code note_side(struct opening *o, const char *path,
                                 const struct ge_tensor *tensor)
{
    const char *key = arena_printf(&o->runs[0]->arena, "%s#%d#%u", path,
                                   tensor ? (int)tensor->part : 0, tensor ? tensor->index : 0);
    uint64_t *place = key ? map_put(&o->sides, key, strlen(key), NULL) : NULL;
    if (!place)
        return plumb_no_memory(o->err);
    *place = o->runs[0]->listing.count;
    return PLUMB_OK;
}

/* ---- The target ------------------------------------------------------------------------------ */

static const char *title(const struct opening *o, const struct air_group *group)
{
    return o->several && group->name ? group->name : "";
}

static int by_stamp(const void *a, const void *b)
{
    const struct air_node *left = *(const struct air_node *const *)a,
                          *right = *(const struct air_node *const *)b;
    const int order = strverscmp(left->stamp, right->stamp);
    return order ? order : left < right ? -1 : left > right;
}

static int by_time(const void *a, const void *b)
{
    const struct air_op *left = *(const struct air_op *const *)a,
                        *right = *(const struct air_op *const *)b;
    return left->time != right->time ? (left->time < right->time ? -1 : 1)
           : left < right            ? -1
                                     : left > right;
}

/* The numbers in "add-aten.add.Tensor.INPUT.0.2.20250301120000000274.npy": "0.2". */
static const char *numbers_of(const struct air_fx_file *file, bool input, struct arena *arena)
{
    const char *word = input ? ".INPUT." : ".OUTPUT.", *at = NULL;
    for (const char *p = file->name; (p = strstr(p, word)); p++)
        at = p;
    if (!at)
        return NULL;
    at += strlen(word);
    const size_t before = (size_t)(at - file->name);
    return arena_copy(arena, at, file->length > before ? file->length - before : 0);
}

static enum plumb_code list_node(struct opening *o, const struct air_group *group,
                                 const struct air_token *token, const struct air_node *node)
{
    struct arena *arena = &o->runs[0]->arena;
    const char *graph = title(o, group);
    enum plumb_code code = PLUMB_OK;
    for (int side = 0; side < 2 && !code; side++)
        for (size_t k = 0; k < node->list[side].count && !code; k++) {
            const struct air_fx_file *file = &node->list[side].files[k];
            const char *numbers = numbers_of(file, side == 0, arena);
            const char *name = numbers
                                   ? arena_printf(arena, "%s%s%s.%s.%s", graph, *graph ? "/" : "",
                                                  node->key, side ? "output" : "input", numbers)
                                   : NULL;
            struct plumb_record *record = add_record(o, 0, name, file->path, token->id);
            if (!record)
                return plumb_no_memory(o->err);
            code = describe_fx(o, 0, record);
            if (!code)
                code = note_side(o, file->path, NULL);
        }
    return code;
}

static enum plumb_code list_op(struct opening *o, const struct air_group *group,
                               const struct air_token *token, struct air_op *op)
{
    struct arena *arena = &o->runs[0]->arena;
    const char *graph = title(o, group);
    struct plumb_error why;
    const char *call =
        arena_printf(arena, "%s%s%s.%s", graph, *graph ? "/" : "", op->type, op->key);
    if (!op->ge) {
        op->ge = arena_alloc(arena, sizeof *op->ge);
        if (!op->ge || !call)
            return plumb_no_memory(o->err);
        const enum plumb_code code = ge_open(op->ge, op->path, arena, &why);
        if (code) {
            op->ge = NULL;
            struct plumb_record *record =
                add_record(o, 0, arena_printf(arena, "%s.output.0", call), op->path, token->id);
            return !record || code == PLUMB_E_NOMEM
                       ? plumb_no_memory(o->err)
                       : listing_fail(&o->runs[0]->listing, record, &why);
        }
    }
    enum plumb_code code = PLUMB_OK;
    for (int side = 0; side < 2 && !code; side++) {
        const struct ge_tensor *tensors = side ? op->ge->outputs : op->ge->inputs;
        const size_t n = side ? op->ge->output_count : op->ge->input_count;
        for (size_t k = 0; k < n && !code; k++) {
            const char *name = arena_printf(arena, "%s.%s.%zu", call, side ? "output" : "input", k);
            struct plumb_record *record = add_record(o, 0, name, op->path, token->id);
            if (!record)
                return plumb_no_memory(o->err);
            code = describe_ge(o, 0, record, op->ge, &tensors[k]);
            if (!code)
                code = note_side(o, op->path, &tensors[k]);
        }
    }
    return code;
}

static enum plumb_code list_token(struct opening *o, const struct air_group *group,
                                  struct air_token *token)
{
    struct arena *arena = &o->runs[0]->arena;
    struct air_node **nodes = arena_array(arena, token->node_count + 1, sizeof *nodes);
    struct air_op **ops = arena_array(arena, token->op_count + 1, sizeof *ops);
    enum plumb_code code = nodes && ops ? PLUMB_OK : plumb_no_memory(o->err);
    for (size_t k = 0; k < token->node_count && !code; k++)
        nodes[k] = &token->nodes[k];
    for (size_t k = 0; k < token->op_count && !code; k++)
        ops[k] = &token->ops[k];
    if (!code) {
        qsort(nodes, token->node_count, sizeof *nodes, by_stamp);
        qsort(ops, token->op_count, sizeof *ops, by_time);
    }
    for (size_t k = 0; k < token->node_count && !code; k++)
        code = list_node(o, group, token, nodes[k]);
    for (size_t k = 0; k < token->op_count && !code; k++)
        if (!ops[k]->doubled && !ge_debug_is(ops[k]->file))
            code = list_op(o, group, token, ops[k]);
    return code;
}

static enum plumb_code list_target(struct opening *o)
{
    enum plumb_code code = PLUMB_OK;
    o->several = o->dumps[0].count > 1;
    for (size_t i = 0; i < o->dumps[0].count && !code; i++)
        for (size_t k = 0; k < o->dumps[0].groups[i].token_count && !code; k++)
            code = list_token(o, &o->dumps[0].groups[i], &o->dumps[0].groups[i].tokens[k]);
    return code;
}

/* ---- The other run --------------------------------------------------------------------------- */

/* The partner of a record, under its name. */
static enum plumb_code add_partner(struct opening *o, const struct air_row *row)
{
    const struct air_side *mine = &row->target, *theirs = &row->golden;
    struct arena scratch = {0};
    const char *key = arena_printf(&scratch, "%s#%d#%u", mine->path ? mine->path : "",
                                   mine->tensor ? (int)mine->tensor->part : 0,
                                   mine->tensor ? mine->tensor->index : 0);
    const uint64_t *place = key ? map_get(&o->sides, key, strlen(key)) : NULL;
    arena_free(&scratch);
    if (!place || theirs->assumed || row->loose)
        return PLUMB_OK;
    const struct plumb_record *target = plumb_run_record(o->runs[0], (size_t)*place - 1);
    struct plumb_record *record = add_record(o, 1, target->name, theirs->path, target->step);
    if (!record)
        return plumb_no_memory(o->err);
    return theirs->tensor ? describe_ge(o, 1, record, theirs->op->ge, theirs->tensor)
                          : describe_fx(o, 1, record);
}

static enum plumb_code pair_set(struct opening *o, const struct graph_set *set)
{
    static const struct graph unknown;
    struct air_rows rows = {0};
    struct pairing pairing = {.graph = set->text ? &set->text->graph : &unknown,
                              .rules = &rules,
                              .arena = &o->runs[0]->arena,
                              .rows = &rows};
    enum plumb_code code = PLUMB_OK;
    for (size_t i = 0; set->groups[0] && set->groups[1] && i < set->groups[0]->token_count && !code;
         i++) {
        pairing.target = &set->groups[0]->tokens[i];
        pairing.golden = air_find_token(set->groups[1], pairing.target->id);
        if (pairing.golden)
            code = pair_token(&pairing, o->fx, o->err);
    }
    for (size_t i = 0; i < rows.count && !code; i++)
        if (rows.items[i].kind == AIR_PAIR)
            code = add_partner(o, &rows.items[i]);
    return code;
}

static enum plumb_code pair_sides(struct opening *o)
{
    struct graph_files texts = {0};
    struct graph_sets sets = {0};
    struct buf notes = {0};
    struct arena *arena = &o->runs[0]->arena;
    graphs_find(&texts, &o->trees[0], o->rank);
    enum plumb_code code = graphs_read(&texts, &rules, arena, o->err);
    if (!code)
        code = groups_match(&sets, &texts, o->dumps, &rules, &notes, arena, o->err);
    for (size_t i = 0; i < sets.count && !code; i++)
        code = pair_set(o, &sets.items[i]);
    graphs_free(&texts);
    buf_free(&notes);
    return code;
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

static const struct tree *find_rank(const struct tree *tree, int64_t rank)
{
    for (size_t i = 0; i < tree->folder_count; i++)
        if (rank_of_folder(tree->folders[i].name) == rank)
            return &tree->folders[i];
    return NULL;
}

/* One rank, or all there is. */
static enum plumb_code read_rank(struct opening *o, int64_t rank, const struct tree *target,
                                 const struct tree *golden)
{
    const struct tree *trees[2] = {target, golden};
    enum plumb_code code = PLUMB_OK;
    o->rank = rank;
    for (int k = 0; k < 2 && !code; k++)
        if (trees[k])
            code = o->fx[k]
                       ? air_read_fx(&o->dumps[k], trees[k], rank >= 0, &rules, &o->runs[0]->arena,
                                     o->err)
                       : air_read_ge(&o->dumps[k], trees[k], &rules, &o->runs[0]->arena, o->err);
    if (!code)
        code = list_target(o);
    if (!code && golden)
        code = pair_sides(o);
    air_dump_free(&o->dumps[0]);
    air_dump_free(&o->dumps[1]);
    return code;
}

static enum plumb_code read_all(struct opening *o, bool golden)
{
    const struct tree *target = &o->trees[0];
    enum plumb_code code = PLUMB_OK;
    size_t ranks = 0;
    for (size_t i = 0; i < target->folder_count && !code; i++) {
        const int64_t rank = rank_of_folder(target->folders[i].name);
        if (rank < 0)
            continue;
        ranks++;
        code =
            read_rank(o, rank, &target->folders[i], golden ? find_rank(&o->trees[1], rank) : NULL);
    }
    return code || ranks ? code : read_rank(o, -1, target, golden ? &o->trees[1] : NULL);
}

bool graphs_are(const char *path)
{
    return graphs_recognise(path) || graphs_recognise_fx(path);
}

enum plumb_code graphs_open(const char *target, const char *golden, struct plumb_run **out,
                            struct plumb_run **other, struct plumb_error *err)
{
    struct opening o = {.err = err};
    const char *paths[2] = {target, golden};
    const int sides = golden ? 2 : 1;
    enum plumb_code code = PLUMB_OK;
    *out = *other = NULL;
    for (int k = 0; k < sides && !code; k++) {
        o.runs[k] = new_run(paths[k]);
        code = o.runs[k] ? tree_read(&o.trees[k], paths[k], &o.runs[0]->arena, err)
                         : plumb_no_memory(err);
        o.fx[k] = !code && !graphs_has_text(&o.trees[k]) && air_has_fx(&o.trees[k], false);
    }
    if (!code && golden && o.fx[0] && !o.fx[1])
        code = plumb_fail(err, PLUMB_E_ARG,
                          "an FX dump is compared with another FX dump; a GE dump is the TARGET");
    if (!code)
        code = read_all(&o, golden != NULL);
    map_free(&o.sides);
    if (code) {
        plumb_run_free(o.runs[1]);
        plumb_run_free(o.runs[0]);
        return code;
    }
    *out = o.runs[0];
    *other = o.runs[1];
    return PLUMB_OK;
}
