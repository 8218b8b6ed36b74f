/* How the parts of one tensor lie, on both sides; and whether its replicas agree. */
#define _GNU_SOURCE
#include "base/mapped.h"
#include "task/compare/shards.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Replicas may differ by rounding. */
#define ALIKE 1e-2

static struct plumb_error *keep_error(const struct plumb_error *err)
{
    struct plumb_error *copy = malloc(sizeof *copy);
    if (copy)
        *copy = *err;
    return copy;
}

static struct shards_layout *keep_layout(const struct shards_layout *layout)
{
    if (!layout)
        return NULL;
    const size_t size = layout->parts * sizeof(unsigned);
    struct shards_layout *copy = malloc(sizeof *copy + 2 * size + 1);
    if (!copy)
        return NULL;
    *copy = *layout;
    copy->slot = (unsigned *)(copy + 1);
    copy->term = copy->slot + layout->parts;
    memcpy(copy->slot, layout->slot, size);
    memcpy(copy->term, layout->term, size);
    return copy;
}

void shards_choice_free(struct shards_choice *choice)
{
    free(choice->layout);
    free(choice->rival);
    free(choice->use);
    free(choice->odd);
    free(choice->shape);
    free(choice->error);
    free(choice->doubt);
    *choice = (struct shards_choice){0};
}

static void fail(struct shards_choice *choice, const struct plumb_error *err)
{
    shards_choice_free(choice);
    choice->error = keep_error(err);
}

/* ---- Replicas -------------------------------------------------------------------------------- */

static bool same_bytes(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->dense && b->dense && a->dtype == b->dtype && a->swap == b->swap &&
           a->count == b->count && memcmp(a->data, b->data, plumb_tensor_bytes(a)) == 0;
}

static double apart(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a == b || same_bytes(a, b) ? 0 : shards_apart(a, b);
}

/* Of parts that should be the same, the one that most others agree with. */
static unsigned representative(const struct shards_layout *layout,
                               const struct plumb_tensor *const *parts, unsigned first)
{
    unsigned best = first, most = 0;
    for (unsigned p = first; p < layout->parts; p++) {
        unsigned agree = 0;
        if (layout->slot[p] != layout->slot[first] || layout->term[p] != layout->term[first])
            continue;
        for (unsigned q = first; q < layout->parts; q++)
            agree += layout->slot[q] == layout->slot[first] &&
                     layout->term[q] == layout->term[first] && apart(parts[p], parts[q]) == 0;
        if (agree > most) {
            best = p;
            most = agree;
        }
        if (p == first && agree > layout->parts / 2)
            break; /* the usual case costs one pass */
    }
    return best;
}

static void check_replicas(struct shards_choice *choice, const struct plumb_tensor *const *parts)
{
    const struct shards_layout *layout = choice->layout;
    for (unsigned p = 0; p < layout->parts; p++) {
        if (shards_first(layout, layout->slot[p], layout->term[p]) != p)
            continue;
        const unsigned chosen = representative(layout, parts, p);
        choice->use[chosen] = true;
        for (unsigned q = p; q < layout->parts; q++) {
            if (q == chosen || layout->slot[q] != layout->slot[p] ||
                layout->term[q] != layout->term[p])
                continue;
            const double distance = apart(parts[q], parts[chosen]);
            if (distance > 0)
                choice->odd[choice->odds++] = (struct shards_odd){q, distance};
        }
    }
}

/* Where it is not known that parts are replicas, one that differs gets no row; but then it was
 * compared with nothing. False when out of memory. */
static bool doubt_replicas(struct shards_choice *choice, const int64_t *ranks)
{
    const unsigned odds = choice->odds;
    double most = 0;
    if (!odds || (!(choice->open && choice->rival) && choice->source < SHARDS_ALIKE))
        return true;
    for (unsigned i = 0; i < odds; i++)
        most = choice->odd[i].distance > most ? choice->odd[i].distance : most;
    choice->odds = 0;
    return shards_doubt(choice, most > ALIKE,
                        "%u part%s not compared, the first of rank %" PRId64
                        ": differ%s by up to %.2g from what would be replicas",
                        odds, odds > 1 ? "s" : "", ranks[choice->odd[0].part], odds > 1 ? "" : "s",
                        most);
}

enum plumb_code shards_settle(struct shards_choice *choice, const struct plumb_tensor *const *parts,
                              const int64_t *ranks, struct plumb_error *err)
{
    struct arena arena = {0};
    struct shards_plan plan;
    enum plumb_code code = shards_plan(&plan, &arena, choice->layout, parts, err);
    if (!code && plumb_dtype_info(parts[0]->dtype)->bits % 8 && choice->layout->parts > 1 &&
        shards_slots(choice->layout) * choice->layout->terms > 1)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED, "parts of %s cannot be put together",
                          plumb_dtype_info(parts[0]->dtype)->name);
    if (!code) {
        choice->use = calloc(choice->layout->parts + 1, sizeof *choice->use);
        choice->odd = calloc(choice->layout->parts + 1, sizeof *choice->odd);
        choice->shape = calloc(plan.ndim + 1, sizeof *choice->shape);
        if (!choice->use || !choice->odd || !choice->shape)
            code = plumb_no_memory(err);
    }
    if (!code) {
        choice->ndim = plan.ndim;
        choice->count = plan.count;
        choice->dtype = shards_dtype(choice->layout, parts[0]->dtype);
        memcpy(choice->shape, plan.shape, plan.ndim * sizeof *plan.shape);
        check_replicas(choice, parts);
        if (!doubt_replicas(choice, ranks) || !shards_doubt_parts(choice, parts, ranks))
            code = plumb_no_memory(err);
    }
    arena_free(&arena);
    return code;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* What somebody wrote down about a side; *known is NULL where nobody did. */
static enum plumb_code find_known(const struct shards_layout **known, enum shards_source *source,
                                  const struct shards_work *work, int side,
                                  const struct shards_group *group,
                                  const struct shards_parts *loaded, struct arena *arena,
                                  struct plumb_error *err)
{
    struct shards_layout *layout = NULL;
    const struct shards_choice *choice =
        &work->side[side].choices[group - work->side[side].groups.list];
    const struct shards_dims *dims = shards_rules_find(&work->rules, side, group->name);
    const struct plumb_recorded *recorded = work->side[side].records[group->records[0]]->recorded;
    const char *dtensor = recorded && recorded->rest ? recorded->rest->dtensor : NULL;
    enum plumb_code code = PLUMB_OK;
    if (dims) {
        code = shards_dims_layout(&layout, arena, dims, &work->rules.mesh[side], group->ranks,
                                  group->parts, loaded->parts[0]->rank, err);
        *source = SHARDS_GIVEN;
    } else if (dtensor) {
        code = shards_recorded(&layout, arena, dtensor, group->ranks, group->parts, err);
        *source = SHARDS_RECORDED;
        if (code == PLUMB_E_ARG) { /* a mesh inside of a larger one says only how its own lie */
            code = PLUMB_OK;
            *source = SHARDS_NOWHERE;
            layout = NULL;
        }
    } else if (choice->hint && choice->hint->parts == group->parts) {
        layout = (struct shards_layout *)choice->hint;
        *source = SHARDS_ALIKE;
    }
    *known = layout;
    return code;
}

static void take(struct shards_choice *choice, const struct shards_found *found,
                 enum shards_source source, bool same)
{
    static const enum shards_source sources[] = {[SHARDS_UNKNOWN] = SHARDS_NOWHERE,
                                                 [SHARDS_BY_SHAPE] = SHARDS_SHAPE,
                                                 [SHARDS_BY_VALUES] = SHARDS_FOUND};
    choice->source = source ? source : same ? SHARDS_SAME : sources[found->basis];
    if (choice->source == SHARDS_SHAPE && found->family)
        choice->source = SHARDS_GROUPED;
    choice->family = found->family ? found->family->text : NULL;
    choice->layout = keep_layout(found->layout);
    choice->rival = source ? NULL : keep_layout(found->rival);
    choice->residual = found->residual;
    choice->open = !source && found->open;
    if (choice->layout && choice->layout->parts == 1)
        choice->source = SHARDS_SINGLE;
}

/* A flat whole has the shape of the other side's. */
static enum plumb_code reshape(struct shards_choice *choice, const struct shards_choice *other,
                               struct plumb_error *err)
{
    if (!choice->layout || !choice->layout->flat || !other->shape || other->count != choice->count)
        return PLUMB_OK;
    int64_t *shape = calloc(other->ndim + 1, sizeof *shape);
    if (!shape)
        return plumb_no_memory(err);
    memcpy(shape, other->shape, other->ndim * sizeof *shape);
    free(choice->shape);
    choice->shape = shape;
    choice->ndim = other->ndim;
    return PLUMB_OK;
}

static enum plumb_code decide(struct shards_work *work, const struct plumb_pair *pair,
                              struct arena *arena, struct shards_parts loaded[2],
                              struct plumb_error *err)
{
    struct shards_side sides[2];
    enum shards_source source[2] = {SHARDS_NOWHERE, SHARDS_NOWHERE};
    struct shards_found found[2];
    bool same = false;
    enum plumb_code code = PLUMB_OK;
    for (int k = 0; k < 2 && !code; k++) {
        const size_t number = k ? pair->golden : pair->target;
        const struct shards_group *group = &work->side[k].groups.list[number];
        sides[k] = (struct shards_side){.parts = loaded[k].parts,
                                        .count = loaded[k].count,
                                        .ranks = group->ranks,
                                        .families = &work->side[k].families};
        if (group->parts > 1)
            code = find_known(&sides[k].known, &source[k], work, k, group, &loaded[k], arena, err);
        for (unsigned p = 1; p < group->parts && !code; p++)
            if (loaded[k].parts[p]->dtype != loaded[k].parts[0]->dtype)
                code = plumb_fail(err, PLUMB_E_ARG,
                                  "ranks %" PRId64 " and %" PRId64 " have parts of different types",
                                  group->ranks[0], group->ranks[p]);
    }
    if (!code)
        code = shards_infer_sides(found, &same, arena, sides, err);
    for (int k = 0; k < 2 && !code; k++) {
        const size_t number = k ? pair->golden : pair->target;
        struct shards_choice *choice = &work->side[k].choices[number];
        take(choice, &found[k], source[k], same);
        if (!choice->layout)
            continue;
        code = shards_settle(choice, loaded[k].parts, sides[k].ranks, err);
    }
    for (int k = 0; k < 2 && !code && !same; k++)
        code = reshape(&work->side[k].choices[k ? pair->golden : pair->target],
                       &work->side[!k].choices[k ? pair->target : pair->golden], err);
    return code;
}

/* Is there nothing to load of a part? */
static bool is_absent(const struct shards_run *side, const struct shards_group *group)
{
    for (unsigned p = 0; p < group->parts; p++)
        if (side->records[group->records[p]]->absent &&
            !shards_is_empty(side->records[group->records[p]]))
            return true;
    return false;
}

/* Statistics of parts do not add up to those of the whole; those of two wholes are compared. */
static bool decide_absent(struct shards_work *work, const struct plumb_pair *pair)
{
    const struct shards_group *group[2] = {&work->side[0].groups.list[pair->target],
                                           &work->side[1].groups.list[pair->golden]};
    struct shards_choice *choice[2] = {&work->side[0].choices[pair->target],
                                       &work->side[1].choices[pair->golden]};
    if (!is_absent(&work->side[0], group[0]) && !is_absent(&work->side[1], group[1]))
        return false;
    for (int k = 0; k < 2; k++) {
        struct plumb_error err;
        choice[k]->source = SHARDS_SINGLE;
        if (group[0]->parts == 1 && group[1]->parts == 1)
            continue;
        plumb_fail(&err, PLUMB_E_UNSUPPORTED,
                   "parts of several ranks are put together from their values, and the %s run has "
                   "none of this tensor",
                   is_absent(&work->side[0], group[0]) ? "target" : "golden");
        fail(choice[k], &err);
    }
    return true;
}

void shards_decide(struct shards_work *work, size_t number)
{
    const struct plumb_pair *pair = &work->matching.pairs[number];
    if (decide_absent(work, pair))
        return;
    struct arena arena = {0};
    struct shards_parts loaded[2] = {{.count = 0}, {.count = 0}};
    struct plumb_error err = {0};
    enum plumb_code code = PLUMB_OK;
    for (int k = 0; k < 2 && !code; k++) {
        const struct shards_run *side = &work->side[k];
        code = shards_parts_load(&loaded[k], side,
                                 &side->groups.list[k ? pair->golden : pair->target], &arena, &err);
    }
    if (!code) {
        shards_parts_enter(&loaded[0]);
        shards_parts_enter(&loaded[1]);
        code = decide(work, pair, &arena, loaded, &err);
        const bool shrank = shards_parts_leave(&loaded[1]);
        if ((shards_parts_leave(&loaded[0]) || shrank) && !code) {
            mapped_fail_shrank(&err);
            code = err.code;
        }
    }
    shards_parts_release(&loaded[0]);
    shards_parts_release(&loaded[1]);
    if (code) {
        fail(&work->side[0].choices[pair->target], &err);
        fail(&work->side[1].choices[pair->golden], &err);
    }
    arena_free(&arena);
}
