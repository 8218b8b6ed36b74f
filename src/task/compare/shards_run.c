/* A run of wholes: a record for each, and what people are told of it. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/number.h"
#include "run/run.h"
#include "task/compare/shards.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct making {
    struct shards_work *work;
    struct plumb_run *run;
    int side;
    const char *seen, *own; /* the last name of a call, and its copy: one for all of a call */
};

static void *copy(struct making *m, const void *from, size_t count, size_t size)
{
    void *made = arena_array(&m->run->arena, count + 1, size);
    if (made && count)
        memcpy(made, from, count * size);
    return made;
}

static struct shards_layout *copy_layout(struct making *m, const struct shards_layout *layout)
{
    struct shards_layout *made = shards_replica(&m->run->arena, layout->parts);
    if (!made)
        return NULL;
    const struct shards_layout own = *made;
    *made = *layout;
    made->slot = own.slot;
    made->term = own.term;
    memcpy(made->slot, layout->slot, layout->parts * sizeof *made->slot);
    memcpy(made->term, layout->term, layout->parts * sizeof *made->term);
    return made;
}

/* The part that stands for the whole where nothing has to be put together. */
static unsigned only_part(const struct shards_choice *choice)
{
    if (shards_slots(choice->layout) * choice->layout->terms > 1 || choice->layout->divisor > 1)
        return UINT_MAX;
    unsigned p = 0;
    while (p + 1 < choice->layout->parts && !choice->use[p])
        p++;
    return p;
}

static struct shards_whole *make_whole(struct making *m, const struct shards_group *group,
                                       const struct shards_choice *choice)
{
    struct shards_whole *whole = arena_alloc(&m->run->arena, sizeof *whole);
    if (!whole)
        return NULL;
    *whole = (struct shards_whole){
        .run = m->work->side[m->side].run,
        .records = copy(m, group->records, group->parts, sizeof *group->records),
        .ranks = copy(m, group->ranks, group->parts, sizeof *group->ranks),
        .layout = copy_layout(m, choice->layout),
        .use = copy(m, choice->use, group->parts, sizeof *choice->use),
        .only = only_part(choice),
        .ndim = choice->ndim,
        .shape = copy(m, choice->shape, choice->ndim, sizeof *choice->shape),
        .dtype = choice->dtype,
        .doubt =
            choice->doubt ? arena_copy(&m->run->arena, choice->doubt, strlen(choice->doubt)) : NULL,
        .denied = choice->denied,
    };
    if (choice->doubt && !whole->doubt)
        return NULL;
    return whole->records && whole->ranks && whole->layout && whole->use && whole->shape ? whole
                                                                                         : NULL;
}

static void put_source(struct buf *text, const struct shards_choice *choice)
{
    char number[NUMBER_BYTES];
    switch (choice->source) {
    case SHARDS_GIVEN:
        buf_text(text, " (given)");
        break;
    case SHARDS_RECORDED:
        buf_text(text, " (recorded)");
        break;
    case SHARDS_FOUND:
        buf_printf(text, " (inferred, residual %s%s)", number_brief(choice->residual, 2, number),
                   choice->family ? "; in the order of recorded groups" : "");
        break;
    case SHARDS_ALIKE:
        buf_text(text, " (as in other layers; no value decides)");
        break;
    case SHARDS_GROUPED:
        buf_text(text, " (by recorded groups and shapes; no value decides)");
        break;
    case SHARDS_SHAPE:
        buf_text(text, choice->open ? " (one that the shapes allow; no value decides)"
                                    : " (the only one that the shapes allow)");
        break;
    default:
        break;
    }
}

/* What a person should know of how it was put together; NULL when out of memory. */
static const char *layout_text(struct making *m, const struct shards_group *group,
                               const struct shards_choice *choice)
{
    char text[SHARDS_TEXT], number[NUMBER_BYTES];
    struct buf out = {0};
    for (unsigned i = 0; i < choice->odds; i++) {
        const unsigned part = choice->odd[i].part, twin = shards_twin(choice->layout, part);
        if (twin < choice->layout->parts) /* which of two is odd, nobody knows */
            buf_printf(&out, "ranks %" PRId64 " and %" PRId64 ", replicas, differ by ",
                       group->ranks[twin], group->ranks[part]);
        else
            buf_printf(&out, "rank %" PRId64 " differs from its replicas by ", group->ranks[part]);
        buf_printf(&out, "%s%s", number_brief(choice->odd[i].distance, 2, number),
                   i + 1 < choice->odds ? ", " : ": ");
    }
    if (choice->source == SHARDS_SAME)
        buf_printf(&out, "the same %u parts on both sides", group->parts);
    else
        buf_text(&out, shards_text(choice->layout, group->ranks, text, sizeof text));
    put_source(&out, choice);
    if (choice->open && choice->source == SHARDS_FOUND && choice->rival)
        buf_printf(&out, "; ambiguous: %s fits as well",
                   shards_text(choice->rival, group->ranks, text, sizeof text));
    else if (choice->open && choice->source == SHARDS_FOUND)
        buf_text(&out, "; ambiguous: the data allow another order of the ranks");
    const char *made = out.failed ? NULL : arena_copy(&m->run->arena, out.data, out.size);
    buf_free(&out);
    return made;
}

static struct plumb_recorded *whole_recorded(struct making *m, const struct plumb_recorded *from,
                                             unsigned ndim, const int64_t *shape,
                                             enum plumb_dtype dtype)
{
    char text[1400];
    struct plumb_recorded *made = copy(m, from, 1, sizeof *from);
    if (!made)
        return NULL;
    plumb_dims_text(ndim, shape, text, sizeof text);
    made->shape = arena_copy(&m->run->arena, text, strlen(text));
    if (plumb_dtype_from_name(from->dtype) != dtype)
        made->dtype = plumb_dtype_info(dtype)->name;
    memset(made->statistic_kind, PLUMB_VALUE_NONE, sizeof made->statistic_kind);
    made->checksum = NULL;
    made->spread = false;
    if (from->rest) {
        struct plumb_recorded_rest *rest = copy(m, from->rest, 1, sizeof *rest);
        if (!rest)
            return NULL;
        rest->kept = NULL;
        rest->dtensor = NULL;
        made->rest = rest;
    }
    return made->shape ? made : NULL;
}

/* Names of calls and modules as the run's own. */
static bool own_names(struct making *m, struct plumb_record *record)
{
    struct plumb_recorded *made = copy(m, record->recorded, 1, sizeof *made);
    if (!made)
        return false;
    if (made->api && made->api != m->seen) {
        m->seen = made->api;
        m->own = arena_copy(&m->run->arena, made->api, strlen(made->api));
    }
    if (made->api && !(made->api = m->own))
        return false;
    const char *parent = plumb_recorded_parent(made);
    if (made->caller) {
        struct plumb_caller *caller = copy(m, made->caller, 1, sizeof *caller);
        if (!caller)
            return false;
        if (parent && !(caller->parent = arena_copy(&m->run->arena, parent, strlen(parent))))
            return false;
        made->caller = caller;
    }
    record->recorded = made;
    return true;
}

static struct plumb_record *add(struct making *m, const struct plumb_record *head, const char *name)
{
    struct plumb_record *record = listing_add(&m->run->listing, name, strlen(name));
    if (!record)
        return NULL;
    const char *own = record->name;
    *record = *head;
    record->name = own;
    record->key = name == head->name ? head->key : NULL;
    record->detail = NULL;
    return record->recorded && !own_names(m, record) ? NULL : record;
}

static bool set_whole(struct making *m, struct plumb_record *record,
                      const struct shards_whole *whole, uint64_t count)
{
    record->detail = whole;
    record->dtype = whole->dtype;
    record->ndim = whole->ndim;
    record->shape = whole->shape;
    record->view = NULL;
    record->count = count;
    record->offset = record->bytes = 0;
    if (!record->recorded || !record->recorded->dtype)
        return true;
    record->recorded = whole_recorded(m, record->recorded, whole->ndim, whole->shape, whole->dtype);
    return record->recorded != NULL;
}

/* The part that a rank has; layout->parts: none. */
static unsigned part_of(const struct shards_whole *whole, int64_t rank)
{
    unsigned p = 0;
    while (p < whole->layout->parts && whole->ranks[p] != rank)
        p++;
    return p;
}

static bool is_odd(const struct shards_group *group, const struct shards_choice *choice,
                   int64_t rank)
{
    for (unsigned i = 0; i < choice->odds; i++)
        if (group->ranks[choice->odd[i].part] == rank)
            return true;
    return false;
}

/* One side of a tensor. */
struct half {
    const struct shards_group *group;
    const struct shards_choice *choice;
};

/* Lets the part of a rank stand for its replicas; false when out of memory. */
static bool stand_in(struct making *m, struct shards_whole *whole, int64_t rank)
{
    const unsigned part = part_of(whole, rank);
    const struct shards_layout *layout = whole->layout;
    bool *use = copy(m, whole->use, layout->parts, sizeof *use);
    if (!use || part == layout->parts)
        return use != NULL;
    for (unsigned p = 0; p < layout->parts; p++)
        if (layout->slot[p] == layout->slot[part] && layout->term[p] == layout->term[part])
            use[p] = p == part;
    whole->use = use;
    if (whole->only != UINT_MAX)
        whole->only = part;
    return true;
}

/* A replica that differs gets a row of its own: of the whole in which it stands for its replicas,
 * beside that of the other side, where the same rank does so if it is odd there as well. Both
 * records have the name. False when out of memory. */
static bool add_odd(struct making *m, const struct plumb_record *head,
                    const struct shards_whole *whole, const struct half halves[2], int side)
{
    const struct shards_choice *odd = halves[side].choice;
    for (unsigned i = 0; i < odd->odds; i++) {
        const int64_t rank = halves[side].group->ranks[odd->odd[i].part];
        if (side && is_odd(halves[0].group, halves[0].choice, rank))
            continue; /* the target's row has it already */
        const char *name = arena_printf(&m->run->arena, "%s (%srank %" PRId64 ")", head->name,
                                        side ? "golden " : "", rank);
        struct plumb_record *record = name ? add(m, head, name) : NULL;
        struct shards_whole *own = copy(m, whole, 1, sizeof *whole);
        if (!record || !own)
            return false;
        if (is_odd(halves[m->side].group, halves[m->side].choice, rank) && !stand_in(m, own, rank))
            return false;
        own->odd = odd->odd[i].distance;
        record->layout = arena_printf(&m->run->arena, "the replica of rank %" PRId64, rank);
        if (!record->layout || !set_whole(m, record, own, halves[m->side].choice->count))
            return false;
    }
    return true;
}

static enum plumb_code add_group(struct making *m, size_t number, size_t partner)
{
    struct shards_run *side = &m->work->side[m->side];
    const struct shards_group *group = &side->groups.list[number];
    const struct shards_choice *choice = &side->choices[number];
    struct plumb_record *record = add(m, &side->heads[number], side->heads[number].name);
    if (!record)
        return PLUMB_E_NOMEM;
    if (choice->error) {
        record->absent = true;
        record->error = copy(m, choice->error, 1, sizeof *choice->error);
        return record->error ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    if (!choice->layout)
        return PLUMB_OK; /* no partner, or compared by what was recorded */
    struct shards_whole *whole = make_whole(m, group, choice);
    if (!whole || !set_whole(m, record, whole, choice->count))
        return PLUMB_E_NOMEM;
    if (choice->source != SHARDS_SINGLE && !(record->layout = layout_text(m, group, choice)))
        return PLUMB_E_NOMEM;
    const struct shards_run *other = &m->work->side[!m->side];
    const struct half mine = {group, choice};
    const struct half theirs = {&other->groups.list[partner], &other->choices[partner]};
    const struct half halves[2] = {m->side ? theirs : mine, m->side ? mine : theirs};
    const struct plumb_record head = *record;
    for (int k = 0; k < 2; k++)
        if (!add_odd(m, &head, whole, halves, k))
            return PLUMB_E_NOMEM;
    return PLUMB_OK;
}

enum plumb_code shards_make_run(struct plumb_run **out, struct shards_work *work, int side,
                                struct plumb_error *err)
{
    const struct shards_run *from = &work->side[side];
    struct plumb_run *run = calloc(1, sizeof *run);
    size_t *partner = calloc(from->groups.count + 1, sizeof *partner);
    struct making m = {.work = work, .run = run, .side = side};
    enum plumb_code code = run && partner ? PLUMB_OK : PLUMB_E_NOMEM;
    if (!code) {
        run->listing.arena = &run->arena;
        run->path = arena_copy(&run->arena, from->run->path, strlen(from->run->path));
        run->kind = from->run->kind;
        run->load = shards_load;
        run->level = from->run->tree_count ? from->run->trees[0].level : NULL;
        code = run->path ? PLUMB_OK : PLUMB_E_NOMEM;
    }
    for (size_t i = 0; i < work->matching.matched && !code; i++) {
        const struct plumb_pair *pair = &work->matching.pairs[i];
        partner[side ? pair->golden : pair->target] = side ? pair->target : pair->golden;
    }
    for (size_t i = 0; i < from->groups.count && !code; i++) {
        run->listing.path = from->heads[i].path;
        if (!from->dropped[i])
            code = add_group(&m, i, partner[i]);
    }
    free(partner);
    if (code) {
        plumb_run_free(run);
        return plumb_no_memory(err);
    }
    *out = run;
    return PLUMB_OK;
}
