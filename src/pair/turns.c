/* Calls of modules, as captures name them: {path}.{Class}.{number}.forward_output.0.
 *
 * The number counts the calls of the class in the step, so that it depends on which other modules
 * are of that class. Which call of its path a call is does not: the n-th of a path on one side
 * belongs to the n-th of that path on the other, whatever their classes and numbers are. In dumps
 * the number counts the calls of the module, and only the class may differ. */
#define _GNU_SOURCE
#include "pair/parts.h"

#include "base/map.h"
#include "pair/name.h"

#include <stdlib.h>
#include <string.h>

struct turn {
    size_t record;
    struct match_key path;  /* of the module, as the name has it */
    const char *module;     /* the same without wrappers, with direction, step and rank */
    struct match_key class; /* "Linear" */
    struct match_key call;  /* "Linear.3" */
    uint64_t index;         /* the number in the name */
    const char *role;       /* "forward_output.0" */
    char direction;         /* of dumps, where forward and backward count apart: 'f', 'b', 'p' */
    uint64_t number;        /* which call of the path it is, from 1 */
    uint64_t recorded;      /* the same as the capture says; 0: it does not */
};

/* The calls of one path: turns[first] to turns[end - 1]. */
struct path {
    size_t first, end;
    uint64_t calls;
    bool mixed;    /* of several classes: nothing says what came first */
    bool recorded; /* the capture says which call each tensor is of */
};

struct turns {
    struct turn *items;
    size_t count;
    struct path *paths;
    struct map by_path; /* -> its number in paths */
    struct map by_call; /* "Linear.3", step and rank -> 1 + its turn */
};

/* The last "forward_..." or "backward_..." of a name, or NULL. */
static const char *find_role(const char *name)
{
    const char *found = NULL;
    for (const char *dot = name; (dot = strchr(dot, '.')); dot++)
        if ((dot[1] == 'f' && strncmp(dot + 1, "forward_", 8) == 0) ||
            (dot[1] == 'b' && strncmp(dot + 1, "backward_", 9) == 0))
            found = dot + 1;
    return found;
}

/* The token that ends before end, which is a dot or the end; moves *end to the dot before it. */
static struct match_key last_token(const char *name, const char **end)
{
    const char *dot = memrchr(name, '.', (size_t)(*end - name));
    const char *begin = dot ? dot + 1 : name;
    struct match_key token = {begin, (size_t)(*end - begin)};
    *end = dot ? dot : name;
    return token;
}

static bool is_number(struct match_key token)
{
    return token.length && token.length <= 18 && strspn(token.text, "0123456789") == token.length;
}

/* {path}.{Class}.{number}.forward_output.0: false for any other name. */
static bool parse_capture(struct turn *turn, const char *name, bool is_module)
{
    const char *role = find_role(name);
    if (!role)
        return false;
    const char *end = role - 1;
    struct match_key call = last_token(name, &end), class = last_token(name, &end);
    /* Functions are named alike, but for the capital: Functional.linear.0 */
    is_module = is_module || (class.text[0] >= 'A' && class.text[0] <= 'Z');
    if (end == name || !is_number(call) || !is_module)
        return false;
    *turn = (struct turn){
        .path = {name, (size_t)(end - name)},
        .class = class,
        .call = {class.text, (size_t)(role - 1 - class.text)},
        .index = strtoull(call.text, NULL, 10),
        .role = role,
    };
    return true;
}

/* Module.{path}.{Class}.forward.{number}.output.0, where the number counts the calls of the module:
 * false for any other name. */
static bool parse_dump(struct turn *turn, const char *name)
{
    static const char *const words[] = {".forward.", ".backward.", ".parameters_grad."};
    const char *word = NULL;
    size_t length = 0;
    if (strncmp(name, "Module.", 7) != 0 && strncmp(name, "Cell.", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !word; i++) {
        word = strstr(name, words[i]);
        length = strlen(words[i]);
    }
    if (!word)
        return false;
    const char *end = word, *number = word + length;
    struct match_key call = {number, strcspn(number, ".")}, class = last_token(name, &end);
    if (!is_number(call) || end <= strchr(name, '.') || !class.length || !number[call.length])
        return false;
    *turn = (struct turn){
        .path = {name, (size_t)(end - name)},
        .class = class,
        .call = {name, (size_t)(number + call.length - name)},
        .index = strtoull(number, NULL, 10),
        .role = number + call.length + 1,
        .direction = word[1],
    };
    return true;
}

static int by_call(const void *a, const void *b)
{
    const struct turn *left = a, *right = b;
    int order = strcmp(left->module, right->module);
    if (order)
        return order;
    if (left->index != right->index)
        return left->index < right->index ? -1 : 1;
    return left->record < right->record ? -1 : left->record > right->record;
}

static bool same(struct match_key a, struct match_key b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

/* "blocks.0.fc|f/STEP/RANK", without the levels that wrappers add. NULL when out of memory. */
static const char *module_of(struct matcher *matcher, const struct plumb_record *record,
                             const struct turn *turn)
{
    const char *place = match_place(matcher, record);
    char *path = arena_copy(&matcher->arena, turn->path.text, turn->path.length), *out = path;
    if (!place || !path)
        return NULL;
    for (const char *token = path, *next; token; token = next) {
        size_t size = strcspn(token, ".");
        next = token[size] ? token + size + 1 : NULL;
        if (next && name_is_wrapper(token, size))
            continue;
        memmove(out, token, size);
        out += size;
        if (next)
            *out++ = '.';
    }
    return arena_printf(&matcher->arena, "%.*s|%c%s", (int)(out - path), path,
                        turn->direction ? turn->direction : '-', place);
}

/* The calls of a side, sorted by path and number. False when out of memory. */
static bool list_turns(struct matcher *matcher, int which, struct turns *turns)
{
    const struct match_side *side = &matcher->side[which];
    turns->items = arena_array(&matcher->arena, side->count, sizeof *turns->items);
    turns->paths = arena_array(&matcher->arena, side->count, sizeof *turns->paths);
    if (!turns->items || !turns->paths)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        struct turn *turn = &turns->items[turns->count];
        const char *name = match_name(matcher, which, i);
        if (side->partner[i] != PLUMB_NO_RECORD ||
            !(parse_dump(turn, name) || parse_capture(turn, name, record->path_call > 0)))
            continue;
        turn->recorded = record->path_call;
        turn->module = module_of(matcher, record, turn);
        if (!turn->module)
            return false;
        turn->record = i;
        turns->count++;
    }
    if (turns->count)
        qsort(turns->items, turns->count, sizeof *turns->items, by_call);
    return true;
}

/* Numbers the calls of each path. False when out of memory. */
static bool number_turns(struct matcher *matcher, struct turns *turns)
{
    size_t paths = 0;
    for (size_t first = 0, end; first < turns->count; first = end) {
        const struct turn *head = &turns->items[first];
        struct path *path = &turns->paths[paths];
        *path = (struct path){.first = first, .calls = 1, .recorded = true};
        for (end = first; end < turns->count; end++) {
            struct turn *turn = &turns->items[end];
            if (strcmp(turn->module, head->module) != 0)
                break;
            path->calls += end > first && turn->index != turn[-1].index;
            path->mixed = path->mixed || !same(turn->class, head->class);
            path->recorded = path->recorded && turn->recorded;
            turn->number = path->calls;
            char *call = arena_printf(&matcher->arena, "%.*s%s", (int)turn->call.length,
                                      turn->call.text, strrchr(turn->module, '|'));
            uint64_t *known = call ? map_put(&turns->by_call, call, strlen(call), NULL) : NULL;
            if (!known)
                return false;
            *known = 1 + end;
        }
        path->end = end;
        uint64_t *place = map_put(&turns->by_path, head->module, strlen(head->module), NULL);
        if (!place)
            return false;
        *place = paths++;
    }
    return true;
}

/* The classes whose numbers stand for calls of different paths on the two sides, and so say
 * nothing. False when out of memory. */
static bool find_shifted(const struct turns sides[2], struct map *shifted)
{
    const struct map *calls = &sides[TARGET].by_call;
    for (size_t i = 0; i < calls->capacity; i++) {
        const struct map_slot *slot = &calls->slots[i];
        const uint64_t *other =
            slot->key ? map_get(&sides[GOLDEN].by_call, slot->key, slot->length) : NULL;
        if (!other)
            continue;
        const struct turn *turn = &sides[TARGET].items[slot->value - 1];
        if (strcmp(turn->module, sides[GOLDEN].items[*other - 1].module) != 0 &&
            !map_put(shifted, turn->class.text, turn->class.length, NULL))
            return false;
    }
    return true;
}

/* May the calls of a path be paired by their turn? Not where one side has more of them and names,
 * or shapes, can tell which are missing. */
static bool goes_by_turn(const struct turns sides[2], const struct path *target,
                         const struct path *golden, const struct map *shifted)
{
    struct match_key class = sides[TARGET].items[target->first].class;
    if (target->recorded && golden->recorded)
        return true;
    if (target->mixed || golden->mixed)
        return false;
    if (target->calls == golden->calls)
        return true;
    return same(class, sides[GOLDEN].items[golden->first].class) &&
           map_get(shifted, class.text, class.length);
}

static bool set_keys(struct matcher *matcher, const struct turns *turns, const struct path *path,
                     bool recorded, struct match_key *keys)
{
    for (size_t i = path->first; i < path->end; i++) {
        const struct turn *turn = &turns->items[i];
        char *text = arena_printf(&matcher->arena, "%s|%llu|%s", turn->module,
                                  (unsigned long long)(recorded ? turn->recorded : turn->number),
                                  turn->role);
        if (!text)
            return false;
        keys[turn->record] = (struct match_key){text, strlen(text)};
    }
    return true;
}

/* Keys of the records whose turn is known on both sides; the others have none. */
static bool make_keys(struct matcher *matcher, const struct turns sides[2],
                      const struct map *shifted, struct match_key *keys[2])
{
    for (int which = TARGET; which <= GOLDEN; which++) {
        keys[which] = arena_array(&matcher->arena, matcher->side[which].count, sizeof **keys);
        if (!keys[which])
            return false;
    }
    for (size_t i = 0; i < sides[TARGET].by_path.count; i++) {
        const struct path *target = &sides[TARGET].paths[i];
        const char *name = sides[TARGET].items[target->first].module;
        const uint64_t *place = map_get(&sides[GOLDEN].by_path, name, strlen(name));
        const struct path *golden = place ? &sides[GOLDEN].paths[*place] : NULL;
        if (!golden || !goes_by_turn(sides, target, golden, shifted))
            continue;
        bool recorded = target->recorded && golden->recorded;
        if (!set_keys(matcher, &sides[TARGET], target, recorded, keys[TARGET]) ||
            !set_keys(matcher, &sides[GOLDEN], golden, recorded, keys[GOLDEN]))
            return false;
    }
    return true;
}

bool match_turns(struct matcher *matcher)
{
    struct turns sides[2] = {{0}};
    struct match_key *keys[2];
    struct map shifted = {0};
    bool done = true;
    for (int which = TARGET; which <= GOLDEN && done; which++)
        done = list_turns(matcher, which, &sides[which]) && number_turns(matcher, &sides[which]);
    done =
        done && find_shifted(sides, &shifted) && make_keys(matcher, sides, &shifted, keys) &&
        match_by_keys(matcher, keys[TARGET], keys[GOLDEN], MATCH_UNIQUE, PLUMB_BY_NAME, NULL, NULL);
    matcher->decided |= shifted.count ? MATCH_SHIFTED : 0;
    const struct match_side *side = &matcher->side[TARGET];
    for (size_t i = 0; i < side->count && done; i++) {
        size_t partner = side->partner[i];
        if (partner != PLUMB_NO_RECORD && matcher->how[i] == PLUMB_BY_NAME &&
            strcmp(match_name(matcher, TARGET, i), match_name(matcher, GOLDEN, partner)) != 0)
            matcher->how[i] = PLUMB_BY_LIKENESS;
    }
    for (int which = TARGET; which <= GOLDEN; which++) {
        map_free(&sides[which].by_path);
        map_free(&sides[which].by_call);
    }
    map_free(&shifted);
    return done;
}
