/* The nodes of one FX dump against those of another: their names, but for the time in them. */
#define _GNU_SOURCE
#include "base/mapped.h"
#include "pair/fx_inputs.h"

#include <stdlib.h>
#include <string.h>

/* Nodes in the order in which they ran, as far as names say. */
static int by_stamp(const void *a, const void *b)
{
    const struct air_node *left = *(struct air_node *const *)a,
                          *right = *(struct air_node *const *)b;
    int order = strverscmp(left->stamp, right->stamp);
    if (order)
        return order;
    return left < right ? -1 : left > right;
}

static struct air_fx_file *find_file(const struct air_fx_list *list, const struct air_fx_file *like)
{
    for (size_t i = 0; i < list->count; i++)
        if (air_fx_same(&list->files[i], like) ||
            (!(list->files[i].timed && like->timed) && list->files[i].index == like->index &&
             list->files[i].inner == like->inner))
            return &list->files[i];
    return NULL;
}

static bool same_bytes(const char *const paths[2])
{
    struct mapped in[2];
    if (mapped_open(&in[0], paths[0], NULL))
        return false;
    bool same = !mapped_open(&in[1], paths[1], NULL);
    if (same) {
        const struct plumb_file *a = &in[0].file, *b = &in[1].file;
        same = a->size == b->size && (!a->size || !memcmp(a->data, b->data, (size_t)a->size));
        same = !mapped_close(&in[1], PLUMB_OK, NULL) && same;
    }
    return !mapped_close(&in[0], PLUMB_OK, NULL) && same;
}

static void pair_files(struct pairing *pairing, const char *name, struct air_fx_file *target,
                       struct air_fx_file *golden)
{
    const char *paths[2] = {target->path, golden->path};
    struct air_side sides[2] = {side_file(target->path), side_file(golden->path)};
    fx_look(target);
    fx_look(golden);
    if (target->kind != AIR_FX_OBJECT && golden->kind != AIR_FX_OBJECT)
        pair_two(pairing, name, sides[0], sides[1]);
    else if (same_bytes(paths))
        pair_lone(pairing, AIR_ALONE, name, sides[0], sides[1],
                  "the same argument on both sides, and no tensor");
    else
        pair_lone(pairing, AIR_MISSING, name, sides[0], sides[1],
                  "an argument that is no tensor, and not the same on both sides");
}

static void pair_lists(struct pairing *pairing, const char *name, const struct air_fx_list *target,
                       const struct air_fx_list *golden)
{
    for (size_t i = 0; i < target->count && !pairing->failed; i++) {
        struct air_fx_file *file = find_file(golden, &target->files[i]);
        if (file)
            pair_files(pairing, name, &target->files[i], file);
        else
            pair_lone(pairing, AIR_MISSING, name, side_file(target->files[i].path), side_none(),
                      "the golden run has no such tensor of this node");
    }
    for (size_t i = 0; i < golden->count && !pairing->failed; i++)
        if (!find_file(target, &golden->files[i]))
            pair_lone(pairing, AIR_MISSING, name, side_none(), side_file(golden->files[i].path),
                      "the target run has no such tensor of this node");
}

static void pair_node(struct pairing *pairing, struct air_node *node)
{
    struct air_node *golden = air_find_node(pairing->golden, node->key);
    const struct air_fx_list *some = &node->list[node->list[1].count ? 1 : 0];
    if (!golden) {
        pair_lone(pairing, AIR_MISSING, node->key, side_file(some->files[0].path), side_none(),
                  "the golden run has no such node");
        return;
    }
    golden->used = true;
    for (int outputs = 0; outputs < 2; outputs++)
        pair_lists(pairing, node->key, &node->list[outputs], &golden->list[outputs]);
}

void pair_nodes(struct pairing *pairing)
{
    struct air_token *target = pairing->target, *golden = pairing->golden;
    struct air_node **nodes = arena_array(pairing->arena, target->node_count, sizeof *nodes);
    pairing->failed = pairing->failed || !nodes;
    for (size_t i = 0; nodes && i < target->node_count; i++)
        nodes[i] = &target->nodes[i];
    if (nodes && target->node_count)
        qsort(nodes, target->node_count, sizeof *nodes, by_stamp);
    for (size_t i = 0; i < target->node_count && !pairing->failed; i++)
        pair_node(pairing, nodes[i]);
    for (size_t i = 0; i < golden->node_count && !pairing->failed; i++) {
        const struct air_node *node = &golden->nodes[i];
        const struct air_fx_list *some = &node->list[node->list[1].count ? 1 : 0];
        if (!node->used)
            pair_lone(pairing, AIR_MISSING, node->key, side_none(), side_file(some->files[0].path),
                      "the target run has no such node");
    }
}
