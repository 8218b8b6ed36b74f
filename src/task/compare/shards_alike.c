/* Layouts that no value decides, from tensors of the same name in other layers and steps. */
#define _GNU_SOURCE
#include "base/map.h"
#include "task/compare/shards.h"

#include <stdlib.h>
#include <string.h>

/* The module and name of a tensor without numbers of layers and calls; which argument or result it
 * is stays. NULL when out of memory. */
static char *kind_of(struct arena *arena, const struct shards_group *group)
{
    char *made = arena_printf(arena, "%s|%s", group->parent ? group->parent : "", group->name);
    char *out = made;
    const char *role = made ? strstr(strchr(made, '|'), "put.") : NULL; /* input, output */
    for (const char *p = made; made && *p;) {
        const size_t digits = role && p > role ? 0 : strspn(p, "0123456789");
        *out++ = digits ? '#' : *p;
        p += digits ? digits : 1;
    }
    if (made)
        *out = '\0';
    return made;
}

static bool is_decided(const struct shards_choice *choice)
{
    return choice->layout && !choice->open && choice->source == SHARDS_FOUND;
}

static bool is_open(const struct shards_choice *choice)
{
    return !choice->error && (choice->source == SHARDS_SHAPE || choice->source == SHARDS_GROUPED ||
                              choice->source == SHARDS_NOWHERE);
}

/* Kinds of tensors, to 1 + the first group of that name that is decided. */
static bool note_decided(struct shards_work *work, int k, struct map *decided)
{
    const struct shards_run *side = &work->side[k];
    for (size_t i = 0; i < side->groups.count; i++) {
        if (!is_decided(&side->choices[i]))
            continue;
        const char *name = kind_of(&work->arena, &side->groups.list[i]);
        uint64_t *place = name ? map_put(decided, name, strlen(name), NULL) : NULL;
        if (!place)
            return false;
        if (!*place)
            *place = i + 1;
    }
    return true;
}

static bool same_shape(const struct shards_choice *a, const struct shards_choice *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* Decides a pair again with a hint for one side; what does not fit changes nothing. */
static void decide_again(struct shards_work *work, size_t number, int k, size_t from)
{
    const struct plumb_pair *pair = &work->matching.pairs[number];
    struct shards_choice *choice[2] = {&work->side[0].choices[pair->target],
                                       &work->side[1].choices[pair->golden]};
    struct shards_choice before[2] = {*choice[0], *choice[1]};
    *choice[0] = *choice[1] = (struct shards_choice){0};
    choice[k]->hint = work->side[k].choices[from].layout;
    shards_decide(work, number);
    const bool worse =
        choice[k]->error || choice[k]->source != SHARDS_ALIKE || !same_shape(choice[0], choice[1]);
    for (int i = 0; i < 2; i++) {
        shards_choice_free(worse ? choice[i] : &before[i]);
        if (worse)
            *choice[i] = before[i];
    }
}

static enum plumb_code refuse(struct shards_work *work, const struct plumb_pair *pair, int k,
                              struct plumb_error *err)
{
    struct shards_run *side = &work->side[k], *other = &work->side[!k];
    struct shards_choice *choice = &side->choices[k ? pair->golden : pair->target];
    const struct shards_group *group = &side->groups.list[k ? pair->golden : pair->target];
    const struct plumb_record *part = side->records[group->records[0]];
    const struct shards_group *whole = &other->groups.list[k ? pair->target : pair->golden];
    const struct plumb_record *against = other->records[whole->records[0]];
    char a[160], b[160];
    if (choice->layout || choice->error || choice->source)
        return PLUMB_OK;
    choice->error = calloc(1, sizeof *choice->error);
    if (!choice->error)
        return plumb_no_memory(err);
    plumb_fail(
        choice->error, PLUMB_E_ARG,
        "no layout fits: %u parts, the first %s, and %u on the other side, the first %s; say "
        "how they lie with --dims",
        group->parts, plumb_dims_text(part->ndim, part->shape, a, sizeof a), whole->parts,
        plumb_dims_text(against->ndim, against->shape, b, sizeof b));
    return PLUMB_OK;
}

enum plumb_code shards_decide_alike(struct shards_work *work, struct plumb_error *err)
{
    struct map decided[2] = {{0}, {0}};
    enum plumb_code code = PLUMB_OK;
    if (!note_decided(work, 0, &decided[0]) || !note_decided(work, 1, &decided[1]))
        code = plumb_no_memory(err);
    for (size_t i = 0; i < work->matching.matched && !code; i++) {
        const struct plumb_pair *pair = &work->matching.pairs[i];
        for (int k = 0; k < 2 && !code; k++) {
            const size_t number = k ? pair->golden : pair->target;
            const struct shards_run *side = &work->side[k];
            if (!is_open(&side->choices[number]) || side->groups.list[number].parts < 2)
                continue;
            const char *name = kind_of(&work->arena, &side->groups.list[number]);
            const uint64_t *from = name ? map_get(&decided[k], name, strlen(name)) : NULL;
            if (!name)
                code = plumb_no_memory(err);
            else if (from)
                decide_again(work, i, k, *from - 1);
        }
        for (int k = 0; k < 2 && !code; k++)
            code = refuse(work, pair, k, err);
    }
    map_free(&decided[0]);
    map_free(&decided[1]);
    return code;
}
