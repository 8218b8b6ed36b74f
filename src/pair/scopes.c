/* Calls of functions by the module that they were made in, where their numbers cannot tell.
 *
 * A function's number counts its calls in the whole step. One more call in one module shifts the
 * numbers of all behind it, and equal names then mean calls of different modules. Where the dumps
 * say in which call of which module each call was made (construct.json), the calls of one module
 * are aligned among themselves. What is left between two aligned calls on both sides does the same
 * in other steps: attention in one call and in five, a norm that is fused and one that is not. Of
 * such a group the first input and the last output belong together.
 *
 * Where equal names are calls of the same module, they stay what they are. */
#define _GNU_SOURCE
#include "base/map.h"
#include "pair/align.h"
#include "pair/name.h"
#include "pair/parts.h"
#include "pair/role.h"

#include <stdlib.h>
#include <string.h>

/* A call of a function: records [first, first + count) of its side. */
struct call {
    size_t first, count;
    const struct plumb_recorded *recorded;
    uint64_t scope; /* the same for all calls in one call of a module, from 1 */
    uint64_t name;  /* the same for what would pair as equal names */
    uint32_t label; /* the same for one function with outputs of one shape */
};

struct calls {
    struct call *list; /* by scope, then in their order */
    size_t count;
    size_t *where; /* by name: 1 + its call, 0 where there is none */
    bool parents;  /* somebody wrote them down */
};

struct scopes {
    struct matcher *matcher;
    struct calls side[2];
    struct map scopes, names, labels;
};

static uint64_t number_of(struct map *map, const char *text)
{
    uint64_t *number = text ? map_put(map, text, strlen(text), NULL) : NULL;
    if (number && !*number)
        *number = map->count;
    return number ? *number : 0;
}

bool match_is_function(const struct plumb_record *record)
{
    const char *api = record->recorded ? record->recorded->api : NULL;
    return api && strncmp(api, "Module.", 7) != 0 && strncmp(api, "Cell.", 5) != 0;
}

/* "Module.blocks.0.fc.Linear.forward.2" without wrappers and class; other parents as they are. */
static const char *scope_of(struct matcher *matcher, const struct plumb_record *record)
{
    const char *parent = plumb_recorded_parent(record->recorded),
               *place = match_place(matcher, record);
    const char *tail = NULL;
    if (!place)
        return NULL;
    /* Directions have scopes of their own also where there is no module. */
    const bool back = strstr(record->recorded->api, ".backward") != NULL;
    if (!parent || !*parent)
        return arena_printf(&matcher->arena, "|%c%s", back ? 'b' : 'f', place);
    for (const char *at = parent; (at = strchr(at, '.')); at++)
        if (strncmp(at, ".forward.", 9) == 0 || strncmp(at, ".backward.", 10) == 0)
            tail = at;
    const char *class = tail ? memrchr(parent, '.', (size_t)(tail - parent)) : NULL;
    char *path = arena_copy(&matcher->arena, parent, strlen(parent)), *out = path;
    if (!path || !class)
        return path ? arena_printf(&matcher->arena, "%s%s", parent, place) : NULL;
    path[class - parent] = '\0';
    for (const char *token = path, *next; token; token = next) {
        const size_t size = strcspn(token, ".");
        next = token[size] ? token + size + 1 : NULL;
        if (next && name_is_wrapper(token, size))
            continue;
        memmove(out, token, size);
        out += size;
        if (next)
            *out++ = '.';
    }
    return arena_printf(&matcher->arena, "%.*s|%s%s", (int)(out - path), path, tail, place);
}

/* "Functional.linear.3.forward" without its number, with the shape of its first output. */
static const char *label_of(struct matcher *matcher, const struct match_side *side,
                            const struct call *call)
{
    const char *api = call->recorded->api, *shape = "";
    const char *last = strrchr(api, '.'), *dot = last ? memrchr(api, '.', (size_t)(last - api)) : 0;
    for (size_t i = 0; i < call->count && !*shape; i++) {
        const struct plumb_record *record = side->records[call->first + i];
        size_t length;
        if (record->recorded->tensor && pair_role(record->name, &length) == ROLE_OUTPUT)
            shape = record->recorded->shape;
    }
    return dot ? arena_printf(&matcher->arena, "%.*s%s|%s", (int)(dot - api), api, last, shape)
               : arena_printf(&matcher->arena, "%s|%s", api, shape);
}

/* How much of what equal names are compared by is its call. */
static int call_length(const struct plumb_record *record, const char *name)
{
    size_t fields = 1;
    for (const char *p = record->recorded->api; *p; p++)
        fields += *p == '.';
    const char *end = name;
    for (; *end; end++)
        if (*end == '.' && !--fields)
            break;
    return (int)(end - name);
}

static int by_scope(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->scope != y->scope)
        return x->scope < y->scope ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* False when out of memory. */
static bool number_calls(struct scopes *s, int which)
{
    struct matcher *matcher = s->matcher;
    struct calls *calls = &s->side[which];
    for (size_t k = 0; k < calls->count; k++) {
        struct call *call = &calls->list[k];
        const struct plumb_record *record = matcher->side[which].records[call->first];
        const char *place = match_place(matcher, record);
        call->scope = number_of(&s->scopes, scope_of(matcher, record));
        call->label =
            (uint32_t)number_of(&s->labels, label_of(matcher, &matcher->side[which], call));
        const char *name = match_name(matcher, which, call->first);
        call->name =
            number_of(&s->names, place ? arena_printf(&matcher->arena, "%.*s%s",
                                                      call_length(record, name), name, place)
                                       : NULL);
        if (!call->scope || !call->label || !call->name)
            return false;
    }
    if (calls->count)
        qsort(calls->list, calls->count, sizeof *calls->list, by_scope);
    return true;
}

static bool list_calls(struct scopes *s, int which)
{
    const struct match_side *side = &s->matcher->side[which];
    struct calls *calls = &s->side[which];
    calls->list = arena_array(&s->matcher->arena, side->count, sizeof *calls->list);
    if (!calls->list)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        struct call *last = calls->count ? &calls->list[calls->count - 1] : NULL;
        if (!match_is_function(record))
            continue;
        calls->parents |= plumb_recorded_parent(record->recorded) != NULL;
        if (last && last->recorded->api == record->recorded->api && last->first + last->count == i)
            last->count++;
        else
            calls->list[calls->count++] =
                (struct call){.first = i, .count = 1, .recorded = record->recorded};
    }
    return true;
}

/* Needs the names of both sides. */
static bool index_names(struct scopes *s, int which)
{
    struct calls *calls = &s->side[which];
    calls->where = arena_array(&s->matcher->arena, s->names.count + 1, sizeof *calls->where);
    for (size_t k = 0; calls->where && k < calls->count; k++)
        calls->where[calls->list[k].name] = k + 1;
    return calls->where != NULL;
}

/* The call of the other side that has the same name; NULL: there is none. */
static const struct call *namesake(const struct scopes *s, int which, const struct call *call)
{
    const struct calls *other = &s->side[!which];
    const size_t place = other->where[call->name];
    return place ? &other->list[place - 1] : NULL;
}

/* ---- The calls of one call of a module ------------------------------------------------------- */

struct part {
    const struct call *list;
    size_t count;
};

/* What of a row's name comes after its call: "input.0". */
static const char *row_of(const struct plumb_record *record)
{
    const size_t length = strlen(record->recorded->api);
    return strncmp(record->name, record->recorded->api, length) == 0 ? record->name + length
                                                                     : record->name;
}

static void pair_rows(struct matcher *matcher, const struct call *target, const struct call *golden)
{
    for (size_t i = 0; i < target->count; i++) {
        const size_t t = target->first + i;
        const struct plumb_record *record = matcher->side[TARGET].records[t];
        for (size_t k = 0; k < golden->count; k++) {
            const size_t g = golden->first + (i + k) % golden->count;
            const struct plumb_record *other = matcher->side[GOLDEN].records[g];
            if (matcher->side[TARGET].partner[t] != PLUMB_NO_RECORD ||
                matcher->side[GOLDEN].partner[g] != PLUMB_NO_RECORD ||
                strcmp(row_of(record), row_of(other)) != 0)
                continue;
            match_pair(matcher, t, g,
                       strcmp(record->name, other->name) == 0 ? PLUMB_BY_NAME : PLUMB_BY_LIKENESS);
        }
    }
}

/* The tensor that a call was first given, or gave; PLUMB_NO_RECORD: none that is free. */
static size_t first_tensor(const struct matcher *matcher, int which, const struct call *call,
                           enum pair_role role)
{
    const struct match_side *side = &matcher->side[which];
    for (size_t i = call->first; i < call->first + call->count; i++) {
        size_t length;
        if (side->records[i]->recorded->tensor && side->partner[i] == PLUMB_NO_RECORD &&
            pair_role(side->records[i]->name, &length) == role)
            return i;
    }
    return PLUMB_NO_RECORD;
}

/* Groups that do the same give something of the same shape. */
static void pair_groups(struct matcher *matcher, const struct part groups[2])
{
    size_t in[2], out[2];
    for (int which = TARGET; which <= GOLDEN; which++) {
        const struct part *group = &groups[which];
        in[which] = first_tensor(matcher, which, &group->list[0], ROLE_INPUT);
        out[which] = first_tensor(matcher, which, &group->list[group->count - 1], ROLE_OUTPUT);
    }
    const struct plumb_record *const *target = matcher->side[TARGET].records;
    const struct plumb_record *const *golden = matcher->side[GOLDEN].records;
    if (out[TARGET] == PLUMB_NO_RECORD || out[GOLDEN] == PLUMB_NO_RECORD ||
        !match_same_shape(target[out[TARGET]], golden[out[GOLDEN]]))
        return;
    match_pair(matcher, out[TARGET], out[GOLDEN], PLUMB_BY_GROUP);
    if (in[TARGET] != PLUMB_NO_RECORD && in[GOLDEN] != PLUMB_NO_RECORD &&
        match_same_shape(target[in[TARGET]], golden[in[GOLDEN]]))
        match_pair(matcher, in[TARGET], in[GOLDEN], PLUMB_BY_GROUP);
    for (int which = TARGET; which <= GOLDEN; which++)
        for (size_t k = 0; k < groups[which].count; k++) {
            const struct call *call = &groups[which].list[k];
            for (size_t i = call->first; i < call->first + call->count; i++)
                matcher->side[which].covered[i] = true;
        }
}

/* The calls between aligned ones. */
static void pair_rest(struct matcher *matcher, const struct part *target, const struct part *golden,
                      const size_t *partner)
{
    for (size_t t = 0, g = 0; t <= target->count;) {
        size_t end = t;
        while (end < target->count && partner[end] == SIZE_MAX)
            end++;
        const size_t to = end < target->count ? partner[end] : golden->count;
        if (to < g)
            return; /* equal names in another order */
        if (end > t && to > g)
            pair_groups(matcher, (const struct part[2]){{target->list + t, end - t},
                                                        {golden->list + g, to - g}});
        t = end + 1;
        g = to + 1;
    }
}

/* Whether equal names are calls in this scope, on both sides. */
static bool agrees(const struct scopes *s, const struct part parts[2])
{
    for (int which = TARGET; which <= GOLDEN; which++)
        for (size_t k = 0; k < parts[which].count; k++) {
            const struct call *other = namesake(s, which, &parts[which].list[k]);
            if (other && other->scope != parts[which].list[k].scope)
                return false;
        }
    return true;
}

/* False when out of memory. */
static bool align_labels(const struct part parts[2], size_t *partner)
{
    uint32_t *labels[2] = {NULL, NULL};
    bool fine = true;
    for (int which = TARGET; which <= GOLDEN; which++) {
        labels[which] = malloc((parts[which].count + 1) * sizeof **labels);
        for (size_t k = 0; labels[which] && k < parts[which].count; k++)
            labels[which][k] = parts[which].list[k].label;
        fine = fine && labels[which];
    }
    fine = fine && match_align(labels[TARGET], parts[TARGET].count, labels[GOLDEN],
                               parts[GOLDEN].count, partner);
    free(labels[TARGET]);
    free(labels[GOLDEN]);
    return fine;
}

/* False when out of memory. */
static bool pair_scope(struct scopes *s, const struct part parts[2])
{
    const struct part *target = &parts[TARGET], *golden = &parts[GOLDEN];
    size_t *partner = malloc((target->count + 1) * sizeof *partner);
    if (!partner)
        return false;
    bool fine = true;
    if (agrees(s, parts)) {
        for (size_t k = 0; k < target->count; k++) {
            const struct call *other = namesake(s, TARGET, &target->list[k]);
            partner[k] = other ? (size_t)(other - golden->list) : SIZE_MAX;
        }
    } else {
        fine = align_labels(parts, partner);
        for (size_t k = 0; fine && k < target->count; k++)
            if (partner[k] != SIZE_MAX)
                pair_rows(s->matcher, &target->list[k], &golden->list[partner[k]]);
    }
    if (fine)
        pair_rest(s->matcher, target, golden, partner);
    free(partner);
    return fine;
}

static struct part part_at(const struct calls *calls, size_t first)
{
    size_t end = first;
    while (end < calls->count && calls->list[end].scope == calls->list[first].scope)
        end++;
    return (struct part){calls->list + first, end - first};
}

static bool pair_scopes(struct scopes *s)
{
    for (size_t t = 0, g = 0; t < s->side[TARGET].count && g < s->side[GOLDEN].count;) {
        const struct part parts[2] = {part_at(&s->side[TARGET], t), part_at(&s->side[GOLDEN], g)};
        const uint64_t left = parts[TARGET].list->scope, right = parts[GOLDEN].list->scope;
        if (left == right && !pair_scope(s, parts))
            return false;
        t += left <= right ? parts[TARGET].count : 0;
        g += right <= left ? parts[GOLDEN].count : 0;
    }
    return true;
}

/* What is still free, and has its name in another module of the other side, is not that call. */
static void set_aside(struct scopes *s)
{
    for (int which = TARGET; which <= GOLDEN; which++) {
        struct match_side *side = &s->matcher->side[which];
        for (size_t k = 0; k < s->side[which].count; k++) {
            const struct call *call = &s->side[which].list[k], *other = namesake(s, which, call);
            for (size_t i = call->first; other && i < call->first + call->count; i++)
                if (other->scope != call->scope && side->partner[i] == PLUMB_NO_RECORD)
                    side->partner[i] = MATCH_ASIDE;
        }
    }
}

/* Paths of modules that mean nothing to the other side say nothing about names: half of the calls
 * of one side at least are in scopes that the other has. */
static bool has_common_scopes(const struct scopes *s)
{
    size_t common[2] = {0, 0};
    for (int which = TARGET; which <= GOLDEN; which++)
        for (size_t t = 0, g = 0; t < s->side[which].count; t++) {
            const struct calls *other = &s->side[!which];
            while (g < other->count && other->list[g].scope < s->side[which].list[t].scope)
                g++;
            common[which] +=
                g < other->count && other->list[g].scope == s->side[which].list[t].scope;
        }
    bool any = false;
    for (int which = TARGET; which <= GOLDEN; which++)
        if (2 * common[which] >= s->side[which].count) {
            s->matcher->decided |= (unsigned)MATCH_COMMON_SCOPE << which;
            any = true;
        }
    return any;
}

bool match_scopes(struct matcher *matcher)
{
    struct scopes s = {.matcher = matcher};
    bool done = list_calls(&s, TARGET) && list_calls(&s, GOLDEN);
    for (int which = TARGET; which <= GOLDEN; which++)
        matcher->decided |= s.side[which].parents ? (unsigned)MATCH_PARENTS << which : 0;
    if (done && s.side[TARGET].parents && s.side[GOLDEN].parents) {
        done = number_calls(&s, TARGET) && number_calls(&s, GOLDEN) && index_names(&s, TARGET) &&
               index_names(&s, GOLDEN);
        if (done && has_common_scopes(&s)) {
            done = pair_scopes(&s);
            set_aside(&s);
        }
    }
    map_free(&s.scopes);
    map_free(&s.names);
    map_free(&s.labels);
    return done;
}
