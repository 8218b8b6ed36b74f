/* Pairing rows whose names differ in the call number only. */
#include "msprobe/compare.h"

#include <string.h>

/* NAME.NUMBER.forward.REST becomes NAME.forward.REST. For modules, whose number comes later, this
 * takes the class name away; that is how the origin has it. */
static const char *without_number(struct arena *arena, const char *name)
{
    const char *word = strstr(name, "forward") ? "forward" : "backward";
    const char *at = strstr(name, word);
    if (!at)
        return name;
    const char *rest = at + strlen(word), *again = strstr(rest, word);
    size_t rest_length = again ? (size_t)(again - rest) : strlen(rest);
    const char *dot = at;
    for (unsigned dots = 0; dot > name && dots < 2;)
        dots += *--dot == '.';
    return arena_printf(arena, "%.*s.%s%.*s", (int)(dot - name), name, word, (int)rest_length,
                        rest);
}

static enum plumb_code short_names(struct general_side *side, struct arena *arena)
{
    for (size_t i = 0; i < side->count; i++) {
        side->keys[i] = without_number(arena, side->tree->rows[side->rows[i]].name);
        if (!side->keys[i])
            return PLUMB_E_NOMEM;
    }
    return PLUMB_OK;
}

/* Numbers for equal short names, so that queues are searched without comparing texts. */
static enum plumb_code number_names(struct map *names, const struct general_side *side,
                                    size_t **numbers, struct arena *arena)
{
    *numbers = arena_array(arena, side->count, sizeof **numbers);
    if (!*numbers)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i < side->count; i++) {
        bool added;
        uint64_t *place = map_put(names, side->keys[i], strlen(side->keys[i]), &added);
        if (!place)
            return PLUMB_E_NOMEM;
        if (added)
            *place = names->count;
        (*numbers)[i] = *place;
    }
    return PLUMB_OK;
}

/* Rows of one side that wait for a partner: a queue, with a list through it for each name. */
struct queue {
    const size_t *names; /* of all rows */
    size_t first, end;   /* the rows that wait */
    size_t *head, *tail; /* by name */
    size_t *next;        /* by row */
};

static enum plumb_code queue_init(struct queue *queue, const size_t *names, size_t rows,
                                  size_t name_count, struct arena *arena)
{
    queue->names = names;
    queue->head = arena_array(arena, name_count + 1, sizeof *queue->head);
    queue->tail = arena_array(arena, name_count + 1, sizeof *queue->tail);
    queue->next = arena_array(arena, rows, sizeof *queue->next);
    if (!queue->head || !queue->tail || !queue->next)
        return PLUMB_E_NOMEM;
    for (size_t i = 0; i <= name_count; i++)
        queue->head[i] = GENERAL_NONE;
    return PLUMB_OK;
}

static void queue_push(struct queue *queue)
{
    size_t row = queue->end++, name = queue->names[row];
    queue->next[row] = GENERAL_NONE;
    if (queue->head[name] == GENERAL_NONE)
        queue->head[name] = row;
    else
        queue->next[queue->tail[name]] = row;
    queue->tail[name] = row;
}

/* The row of that name that waits longest, or GENERAL_NONE. */
static size_t queue_find(struct queue *queue, size_t name)
{
    size_t row = queue->head[name];
    while (row != GENERAL_NONE && row < queue->first)
        row = queue->next[row];
    return queue->head[name] = row;
}

/* Both sides are read side by side into queues; the newest target row is looked for among the
 * golden rows that wait, then the newest golden row among the target rows. What waits before a
 * match has missed its chance. When one side has ended and nothing of it waits any more, the origin
 * stops: target rows that were not yet read do not appear. */
static enum plumb_code match_queues(struct general *general, const struct general_side *target,
                                    const struct general_side *golden, struct queue *t,
                                    struct queue *g)
{
    enum plumb_code code = PLUMB_OK;
    while (!code && (t->end < target->count || g->end < golden->count)) {
        if (t->end < target->count)
            queue_push(t);
        if (g->end < golden->count)
            queue_push(g);
        if (t->first == t->end || g->first == g->end)
            break;
        size_t t_row = t->end - 1, g_row = queue_find(g, t->names[t->end - 1]);
        if (g_row == GENERAL_NONE) {
            g_row = g->end - 1;
            t_row = queue_find(t, g->names[g_row]);
            if (t_row == GENERAL_NONE)
                continue;
        }
        for (; !code && t->first < t_row; t->first++)
            code = general_add(general, target->rows[t->first], GENERAL_NONE);
        if (!code)
            code = general_add(general, target->rows[t_row], golden->rows[g_row]);
        t->first = t_row + 1;
        g->first = g_row + 1;
    }
    for (; !code && t->first < t->end; t->first++)
        code = general_add(general, target->rows[t->first], GENERAL_NONE);
    return code;
}

enum plumb_code general_fuzzy(struct general *general, struct general_side *target,
                              struct general_side *golden)
{
    struct map names = {0};
    struct queue t = {0}, g = {0};
    size_t *numbers[2];
    enum plumb_code code = short_names(target, &general->arena);
    if (!code)
        code = short_names(golden, &general->arena);
    if (!code)
        code = number_names(&names, target, &numbers[0], &general->arena);
    if (!code)
        code = number_names(&names, golden, &numbers[1], &general->arena);
    if (!code)
        code = queue_init(&t, numbers[0], target->count, names.count, &general->arena);
    if (!code)
        code = queue_init(&g, numbers[1], golden->count, names.count, &general->arena);
    if (!code)
        code = match_queues(general, target, golden, &t, &g);
    map_free(&names);
    return code;
}
