/* Arguments by name and by position: lin(input=x) and lin(x) have the same input, though one is
 * called forward_input.input and the other forward_input.0.
 *
 * Which position a name stands for is known to the function only. So only what is left of two calls
 * that belong together is paired: a name with a number, of equal shape, where there is one of each,
 * or as many in the same order. */
#define _GNU_SOURCE
#include "pair/parts.h"

#include "base/map.h"

#include <stdlib.h>
#include <string.h>

/* A name in pieces: "a.Linear.0" "forward_input" "input" ".0". */
struct pieces {
    size_t call; /* length of what names the call */
    const char *role;
    size_t role_length; /* 0: not an argument, nor the gradient of one */
    bool word;          /* the argument has a name */
    const char *rest;   /* behind it */
};

/* An argument without a partner. */
struct argument {
    const char *key; /* call, role and rest: equal on both sides for what may belong together */
    size_t record;
    bool word;
};

struct arguments {
    struct argument *items;
    size_t count;
};

static bool begins(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* Where the role begins: behind the dot before it. NULL when the name says nothing of a call. */
static const char *find_role(const struct plumb_record *record, bool *argument)
{
    const char *api = record->recorded ? record->recorded->api : NULL, *found = NULL;
    if (api && begins(record->name, api) && record->name[strlen(api)] == '.') {
        found = record->name + strlen(api) + 1;
        bool backward = strstr(api, ".backward") != NULL;
        *argument = begins(found, backward ? "output." : "input.");
        return found;
    }
    for (const char *dot = record->name; (dot = strchr(dot, '.')); dot++)
        if (begins(dot + 1, "forward_") || begins(dot + 1, "backward_"))
            found = dot + 1;
    *argument = found && (begins(found, "forward_input.") || begins(found, "backward_output."));
    return found;
}

static bool parse(struct pieces *pieces, const struct plumb_record *record)
{
    bool argument = false;
    const char *role = find_role(record, &argument);
    *pieces = (struct pieces){0};
    if (!role || role == record->name)
        return false;
    pieces->call = (size_t)(role - 1 - record->name);
    if (!argument)
        return true;
    pieces->role = role;
    pieces->role_length = strcspn(role, ".");
    const char *place = role + pieces->role_length + 1;
    size_t length = strcspn(place, ".");
    pieces->word = length && strspn(place, "0123456789") < length;
    pieces->rest = place + length;
    return true;
}

/* "a.Linear.0/STEP/RANK" of a record; NULL when out of memory. */
static const char *call_of(struct matcher *matcher, const struct plumb_record *record,
                           size_t length)
{
    const char *place = match_place(matcher, record);
    return place ? arena_printf(&matcher->arena, "%.*s%s", (int)length, record->name, place) : NULL;
}

/* Which golden record is of the call that a call of the target belongs to: 1 + its number. */
static bool map_calls(struct matcher *matcher, struct map *calls)
{
    const struct match_side *side = &matcher->side[TARGET];
    for (size_t i = 0; i < side->count; i++) {
        struct pieces pieces;
        if (side->partner[i] == PLUMB_NO_RECORD || !parse(&pieces, side->records[i]))
            continue;
        const char *call = call_of(matcher, side->records[i], pieces.call);
        uint64_t *partner = call ? map_put(calls, call, strlen(call), NULL) : NULL;
        if (!partner)
            return false;
        if (!*partner)
            *partner = 1 + side->partner[i];
    }
    return true;
}

/* The call in words of the golden side. */
static const char *golden_call(struct matcher *matcher, const struct map *calls, const char *call)
{
    const uint64_t *partner = map_get(calls, call, strlen(call));
    if (!partner)
        return call;
    const struct plumb_record *record = matcher->side[GOLDEN].records[*partner - 1];
    struct pieces pieces;
    return parse(&pieces, record) ? call_of(matcher, record, pieces.call) : call;
}

static int by_key(const void *a, const void *b)
{
    const struct argument *left = a, *right = b;
    int order = strcmp(left->key, right->key);
    if (order)
        return order;
    return left->record < right->record ? -1 : left->record > right->record;
}

static bool list_arguments(struct matcher *matcher, int which, const struct map *calls,
                           struct arguments *out)
{
    const struct match_side *side = &matcher->side[which];
    out->items = arena_array(&matcher->arena, side->count, sizeof *out->items);
    if (!out->items)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        struct pieces pieces;
        if (side->partner[i] != PLUMB_NO_RECORD || !parse(&pieces, side->records[i]) ||
            !pieces.role_length)
            continue;
        const char *call = call_of(matcher, side->records[i], pieces.call);
        if (call && which == TARGET)
            call = golden_call(matcher, calls, call);
        const char *key = call ? arena_printf(&matcher->arena, "%s|%.*s|%s", call,
                                              (int)pieces.role_length, pieces.role, pieces.rest)
                               : NULL;
        if (!key)
            return false;
        out->items[out->count++] = (struct argument){key, i, pieces.word};
    }
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_key);
    return true;
}

static size_t next_of(const struct argument *items, size_t count, size_t from, bool word)
{
    while (from < count && items[from].word != word)
        from++;
    return from;
}

/* Pairs names of one side with numbers of the other: items of one call. */
static void pair_some(struct matcher *matcher, const struct argument *target, size_t targets,
                      const struct argument *golden, size_t goldens, bool word)
{
    size_t t = next_of(target, targets, 0, word), g = next_of(golden, goldens, 0, !word);
    while (t < targets && g < goldens) {
        if (!match_same_shape(matcher->side[TARGET].records[target[t].record],
                              matcher->side[GOLDEN].records[golden[g].record]))
            return;
        t = next_of(target, targets, t + 1, word);
        g = next_of(golden, goldens, g + 1, !word);
    }
    if (t < targets || g < goldens)
        return; /* not as many */
    t = next_of(target, targets, 0, word);
    g = next_of(golden, goldens, 0, !word);
    while (t < targets) {
        match_pair(matcher, target[t].record, golden[g].record, PLUMB_BY_LIKENESS);
        t = next_of(target, targets, t + 1, word);
        g = next_of(golden, goldens, g + 1, !word);
    }
}

static size_t end_of(const struct arguments *arguments, size_t first)
{
    size_t end = first;
    while (end < arguments->count &&
           strcmp(arguments->items[end].key, arguments->items[first].key) == 0)
        end++;
    return end;
}

/* The records of a side by name, step and rank. */
static bool map_names(struct matcher *matcher, int which, struct map *names)
{
    const struct match_side *side = &matcher->side[which];
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        const char *name = call_of(matcher, record, strlen(record->name));
        uint64_t *place = name ? map_put(names, name, strlen(name), NULL) : NULL;
        if (!place)
            return false;
        *place = 1 + i;
    }
    return true;
}

/* The record of the same argument in the other direction: "a.L.0.forward_input.x" of
 * "a.L.0.backward_output.x", or the other way round. *found is 1 + its number, or 0. */
static bool find_other(struct matcher *matcher, int which, size_t record, const char *role,
                       const struct map *names, uint64_t *found)
{
    const struct plumb_record *one = matcher->side[which].records[record];
    struct pieces pieces;
    *found = 0;
    if (!parse(&pieces, one) || !pieces.role_length)
        return true;
    const char *place = match_place(matcher, one);
    const char *name = place
                           ? arena_printf(&matcher->arena, "%.*s.%s%s%s", (int)pieces.call,
                                          one->name, role, pieces.role + pieces.role_length, place)
                           : NULL;
    const uint64_t *number = name ? map_get(names, name, strlen(name)) : NULL;
    *found = number ? *number : 0;
    return name;
}

/* Gradients come in any order, and belong together where their arguments do. */
static bool follow_arguments(struct matcher *matcher, const struct arguments *targets)
{
    struct map names[2] = {{0}};
    bool done =
        map_names(matcher, TARGET, &names[TARGET]) && map_names(matcher, GOLDEN, &names[GOLDEN]);
    for (size_t i = 0; i < targets->count && done; i++) {
        size_t t = targets->items[i].record;
        uint64_t argument, gradient = 0;
        if (matcher->side[TARGET].partner[t] != PLUMB_NO_RECORD)
            continue;
        done = find_other(matcher, TARGET, t, "forward_input", &names[TARGET], &argument);
        size_t partner = argument ? matcher->side[TARGET].partner[argument - 1] : PLUMB_NO_RECORD;
        if (!done || partner == PLUMB_NO_RECORD || argument - 1 == t)
            continue;
        done = find_other(matcher, GOLDEN, partner, "backward_output", &names[GOLDEN], &gradient);
        if (gradient && matcher->side[GOLDEN].partner[gradient - 1] == PLUMB_NO_RECORD &&
            match_same_shape(matcher->side[TARGET].records[t],
                             matcher->side[GOLDEN].records[gradient - 1]))
            match_pair(matcher, t, gradient - 1, PLUMB_BY_LIKENESS);
    }
    map_free(&names[TARGET]);
    map_free(&names[GOLDEN]);
    return done;
}

/* What is left on both sides. */
static bool list_both(struct matcher *matcher, struct arguments sides[2])
{
    struct map calls = {0};
    sides[TARGET] = sides[GOLDEN] = (struct arguments){0};
    bool done = map_calls(matcher, &calls) &&
                list_arguments(matcher, TARGET, &calls, &sides[TARGET]) &&
                list_arguments(matcher, GOLDEN, &calls, &sides[GOLDEN]);
    map_free(&calls);
    return done;
}

/* Gradients wait until arguments are paired. */
static void pair_all(struct matcher *matcher, const struct arguments sides[2], bool gradients)
{
    size_t t = 0, g = 0;
    while (t < sides[TARGET].count && g < sides[GOLDEN].count) {
        const struct argument *target = &sides[TARGET].items[t], *golden = &sides[GOLDEN].items[g];
        size_t targets = end_of(&sides[TARGET], t) - t, goldens = end_of(&sides[GOLDEN], g) - g;
        int order = strcmp(target->key, golden->key);
        if (order == 0 && (strstr(target->key, "|backward_output|") != NULL) == gradients) {
            pair_some(matcher, target, targets, golden, goldens, true);
            pair_some(matcher, target, targets, golden, goldens, false);
        }
        t += order <= 0 ? targets : 0;
        g += order >= 0 ? goldens : 0;
    }
}

static bool has_free(const struct match_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->partner[i] == PLUMB_NO_RECORD)
            return true;
    return false;
}

bool match_keywords(struct matcher *matcher)
{
    struct arguments sides[2];
    if (!has_free(&matcher->side[TARGET]) || !has_free(&matcher->side[GOLDEN]))
        return true;
    if (!list_both(matcher, sides))
        return false;
    if (!sides[TARGET].count || !sides[GOLDEN].count)
        return true;
    pair_all(matcher, sides, false);
    if (!follow_arguments(matcher, &sides[TARGET]) || !list_both(matcher, sides))
        return false;
    pair_all(matcher, sides, true);
    return true;
}
