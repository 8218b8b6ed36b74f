/* Rows of a token: its operators in their order, fused ones split into their parts. */
#define _GNU_SOURCE
#include "pair/graph_pair.h"

#include "format/ge_debug.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct air_row *add_row(struct pairing *pairing)
{
    struct air_rows *rows = pairing->rows;
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? rows->capacity * 2 : 64;
        struct air_row *items = arena_array(pairing->arena, capacity, sizeof *items);
        if (!items) {
            pairing->failed = true;
            return NULL;
        }
        if (rows->count)
            memcpy(items, rows->items, rows->count * sizeof *items);
        rows->items = items;
        rows->capacity = capacity;
    }
    return &rows->items[rows->count++];
}

void pair_lone(struct pairing *pairing, enum air_kind kind, const char *name,
               struct air_side target, struct air_side golden, const char *why)
{
    struct air_row *row = add_row(pairing);
    if (!why)
        pairing->failed = true;
    if (row)
        *row = (struct air_row){.kind = kind,
                                .token = pairing->target   ? pairing->target->id
                                         : pairing->golden ? pairing->golden->id
                                                           : -1,
                                .id = pairing->rows->next_id,
                                .name = name,
                                .target = target,
                                .golden = golden,
                                .why = why};
}

static struct air_row *add_pair(struct pairing *pairing, const char *name, struct air_side target,
                                struct air_side golden)
{
    struct air_row *row = add_row(pairing);
    if (row)
        *row = (struct air_row){.kind = AIR_PAIR,
                                .token = pairing->target->id,
                                .id = pairing->rows->next_id++,
                                .name = name,
                                .target = target,
                                .golden = golden};
    return row;
}

void pair_two(struct pairing *pairing, const char *name, struct air_side target,
              struct air_side golden)
{
    add_pair(pairing, name, target, golden);
}

void pair_loosely(struct pairing *pairing, const char *name, struct air_side target,
                  struct air_side golden)
{
    struct air_row *row = add_pair(pairing, name, target, golden);
    if (row)
        row->loose = true;
}

const struct ge_file *pair_open(struct pairing *pairing, struct air_op *op, bool is_target)
{
    struct plumb_error err;
    if (op->ge || op->unreadable)
        return op->ge;
    struct ge_file *ge = arena_alloc(pairing->arena, sizeof *ge);
    if (!ge) {
        pairing->failed = true;
        return NULL;
    }
    enum plumb_code code = ge_open(ge, op->path, pairing->arena, &err);
    if (!code || (pairing->rules->is_nothing && pairing->rules->is_nothing(op->path))) {
        op->ge = ge;
        return ge;
    }
    if (code == PLUMB_E_NOMEM) {
        pairing->failed = true;
        return NULL;
    }
    op->unreadable = true;
    char text[900];
    struct air_side side = side_ge(op, NULL), none = side_none();
    pair_lone(pairing, AIR_BROKEN, op->name, is_target ? side : none, is_target ? none : side,
              arena_printf(pairing->arena, "%s", plumb_error_text(&err, text, sizeof text)));
    return NULL;
}

/* What of the name is left must be operators, too: of several ways the one with the longest first.
 * reach[i]: how long the operator at i is when all that follows it is operators; 0: none is. */
static void split_whole(struct pairing *pairing, const char *name, struct pair_parts *parts)
{
    enum { MAX_NAME = 4096, MAX_PART = 512 }; /* beyond that nobody fuses, and it takes long */
    size_t size = strlen(name);
    size_t longest = pairing->graph->longest < MAX_PART ? pairing->graph->longest : MAX_PART;
    if (size > MAX_NAME)
        return;
    size_t *reach = arena_array(pairing->arena, size + 1, sizeof *reach);
    if (!reach) {
        pairing->failed = true;
        return;
    }
    for (size_t i = size; i-- > 0;) {
        size_t length = size - i < longest ? size - i : longest;
        for (; length && !reach[i]; length--)
            if ((i + length == size || reach[i + length]) &&
                graph_find(pairing->graph, name + i, length))
                reach[i] = length;
    }
    for (size_t i = 0; i < size && reach[i]; i += reach[i])
        pair_add_part(parts, graph_find(pairing->graph, name + i, reach[i]));
}

struct pair_parts pair_split(struct pairing *pairing, const struct air_op *op)
{
    struct pair_parts parts = {
        .ops = arena_array(pairing->arena, strlen(op->key) + 1, sizeof *parts.ops)};
    if (!parts.ops) {
        pairing->failed = true;
        return parts;
    }
    const struct graph_op *itself = graph_find(pairing->graph, op->name, strlen(op->name));
    if (itself)
        pair_add_part(&parts, itself);
    else
        (pairing->rules->split ? pairing->rules->split : split_whole)(pairing, op->key, &parts);
    return parts;
}

bool pair_is_part(const struct pair_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->ops[i]->name, name) == 0)
            return true;
    return false;
}

bool pair_is_control(const char *source)
{
    const char *colon = strrchr(source, ':');
    return colon && strcmp(colon, ":-1") == 0;
}

size_t pair_choose_inputs(struct pairing *pairing, const char *const *sources, size_t count,
                          size_t places, size_t *kept)
{
    struct map seen = {0};
    size_t unique = 0;
    if (count == places) {
        for (size_t i = 0; i < count; i++)
            kept[i] = i;
        return count;
    }
    for (size_t i = 0; i < count && !pairing->failed; i++) {
        bool added = false;
        if (!map_put(&seen, sources[i], strlen(sources[i]), &added))
            pairing->failed = true;
        else if (added)
            kept[unique++] = i;
    }
    map_free(&seen);
    return unique == places && !pairing->failed ? unique : SIZE_MAX;
}

/* The order in which operators are gone through. */
struct turn {
    struct air_op *op;
    int64_t key;
    size_t place;
};

static int by_turn(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static struct turn *order_ops(const struct pairing *pairing)
{
    const struct air_token *token = pairing->target;
    struct turn *turns = arena_array(pairing->arena, token->op_count, sizeof *turns);
    for (size_t i = 0; i < token->op_count && turns; i++) {
        struct air_op *op = &token->ops[i];
        const struct graph_op *known = graph_find(pairing->graph, op->name, strlen(op->name));
        int64_t place = known ? (int64_t)(known - pairing->graph->ops) : -1;
        turns[i] = (struct turn){op, pairing->rules->graph_order ? place : (int64_t)op->time, i};
    }
    if (turns && token->op_count)
        qsort(turns, token->op_count, sizeof *turns, by_turn);
    return turns;
}

/* Files that are about no operator, or about one twice. */
static bool is_set_aside(struct pairing *pairing, const struct air_op *op, bool is_target)
{
    const char *why = NULL;
    enum air_kind kind = AIR_ALONE;
    if (op->doubled) {
        why = "another, larger file of the same operator and token is compared instead";
    } else if (ge_debug_is(op->file)) {
        why = "the device reported an overflow here; 'plumb info' on this file shows where";
        kind = AIR_MISSING;
    }
    if (why && !pairing->rules->pairs_only) {
        struct air_side side = side_ge(op, NULL), none = side_none();
        pair_lone(pairing, kind, op->name, is_target ? side : none, is_target ? none : side, why);
    }
    return why && (op->doubled || !pairing->rules->pairs_only);
}

static void add_odd_files(struct pairing *pairing, const struct air_token *token, bool is_target)
{
    for (size_t i = 0; i < token->odd_count; i++) {
        const char *slash = strrchr(token->odd[i].path, '/');
        struct air_side side = side_file(token->odd[i].path), none = side_none();
        pair_lone(pairing, token->odd[i].older ? AIR_ALONE : AIR_BROKEN,
                  slash ? slash + 1 : token->odd[i].path, is_target ? side : none,
                  is_target ? none : side, token->odd[i].why);
    }
}

static void add_unused(struct pairing *pairing)
{
    struct air_token *golden = pairing->golden;
    for (size_t i = 0; i < golden->op_count; i++) {
        struct air_op *op = &golden->ops[i];
        if (is_set_aside(pairing, op, false) || op->used)
            continue;
        pair_lone(pairing, AIR_ALONE, op->name, side_none(), side_ge(op, NULL),
                  "no operator of the target run corresponds to it");
    }
    for (size_t i = 0; i < golden->node_count; i++) {
        const struct air_node *node = &golden->nodes[i];
        const struct air_fx_list *some = &node->list[node->list[1].count ? 1 : 0];
        if (!node->used)
            pair_lone(pairing, AIR_ALONE, node->key, side_none(), side_file(some->files[0].path),
                      "no operator of the target run corresponds to this FX node");
    }
}

static void pair_ops(struct pairing *pairing, bool golden_is_fx)
{
    struct turn *turns = order_ops(pairing);
    void (*pair_ge)(struct pairing *, struct air_op *) =
        pairing->rules->pair_ge ? pairing->rules->pair_ge : pair_with_ge;
    pairing->failed = pairing->failed || !turns;
    for (size_t i = 0; turns && i < pairing->target->op_count && !pairing->failed; i++) {
        if (is_set_aside(pairing, turns[i].op, true))
            continue;
        if (golden_is_fx)
            pair_with_fx(pairing, turns[i].op);
        else
            pair_ge(pairing, turns[i].op);
    }
}

enum plumb_code pair_token(struct pairing *pairing, const bool fx[2], struct plumb_error *err)
{
    if (fx[0])
        pair_nodes(pairing);
    else
        pair_ops(pairing, fx[1]);
    if (!pairing->failed && !pairing->rules->pairs_only) {
        add_odd_files(pairing, pairing->target, true);
        add_odd_files(pairing, pairing->golden, false);
        if (!fx[0])
            add_unused(pairing);
    }
    return pairing->failed ? plumb_no_memory(err) : PLUMB_OK;
}
