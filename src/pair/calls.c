/* Dumps with calls that one side does not have: the sequences of calls are aligned, whatever the
 * numbers of the calls are, and then the rows of calls that belong together. */
#define _GNU_SOURCE
#include "base/map.h"
#include "pair/align.h"
#include "pair/parts.h"

#include <stdlib.h>
#include <string.h>

/* A call: records [first, first+count) of its side. */
struct call {
    const char *api;
    size_t first, count;
};

struct calls {
    struct call *calls;
    uint32_t *labels; /* equal for calls of the same name, their numbers apart */
    size_t count;
};

/* The name of a call without its number, and with Cell for Module. NULL when out of memory. */
static const char *label_of(struct matcher *matcher, const struct plumb_record *record)
{
    static const char *const words[] = {".forward", ".backward", ".parameters_grad"};
    const char *api = record->recorded->api, *at = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words && !at; i++) {
        const char *found = strstr(api, words[i]);
        size_t after = strlen(words[i]);
        if (found && (found[after] == '.' || !found[after]))
            at = found;
    }
    const char *place = match_place(matcher, record);
    if (!place)
        return NULL;
    int head = at ? (int)(at - api) : (int)strlen(api);
    const char *tail = at ? at + 1 : "";
    size_t tail_length = strcspn(tail, ".");
    if (!tail[tail_length]) { /* the number comes before the direction */
        const char *dot = memrchr(api, '.', (size_t)head);
        if (dot && strspn(dot + 1, "0123456789") == (size_t)(api + head - dot - 1))
            head = (int)(dot - api);
    }
    bool cell = strncmp(api, "Cell.", 5) == 0;
    return arena_printf(&matcher->arena, "%s%.*s.%.*s%s", cell ? "Module." : "",
                        head - (cell ? 5 : 0), api + (cell ? 5 : 0), (int)tail_length, tail, place);
}

static bool list_calls(struct matcher *matcher, int which, struct map *numbers, struct calls *calls)
{
    const struct match_side *side = &matcher->side[which];
    calls->calls = arena_array(&matcher->arena, side->count, sizeof *calls->calls);
    calls->labels = arena_array(&matcher->arena, side->count, sizeof *calls->labels);
    if (!calls->calls || !calls->labels)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_record *record = side->records[i];
        const struct plumb_recorded *recorded = record->recorded;
        if (!recorded || !recorded->api)
            continue;
        struct call *last = calls->count ? &calls->calls[calls->count - 1] : NULL;
        if (last && last->api == recorded->api && last->first + last->count == i) {
            last->count++;
            continue;
        }
        const char *label = label_of(matcher, record);
        uint64_t *number = label ? map_put(numbers, label, strlen(label), NULL) : NULL;
        if (!number)
            return false;
        if (!*number)
            *number = numbers->count;
        calls->labels[calls->count] = (uint32_t)*number;
        calls->calls[calls->count++] = (struct call){recorded->api, i, 1};
    }
    return true;
}

/* What of a row's name comes after its call: ".input.0". */
static const char *row_of(const struct plumb_record *record)
{
    const char *key = record->key ? record->key : record->name;
    size_t dots = 0;
    for (const char *p = record->recorded->api; *p; p++)
        dots += *p == '.';
    for (dots++; dots && *key; key++)
        dots -= *key == '.';
    return key;
}

static void pair_rows(struct matcher *matcher, const struct call *target, const struct call *golden)
{
    size_t next = 0; /* rows mostly come in the same order */
    for (size_t i = 0; i < target->count; i++) {
        size_t t = target->first + i;
        if (matcher->side[TARGET].partner[t] != PLUMB_NO_RECORD)
            continue;
        const struct plumb_record *record = matcher->side[TARGET].records[t];
        const char *row = row_of(record);
        for (size_t k = 0; k < golden->count; k++) {
            size_t g = golden->first + (next + k) % golden->count;
            const struct plumb_record *other = matcher->side[GOLDEN].records[g];
            if (matcher->side[GOLDEN].partner[g] != PLUMB_NO_RECORD ||
                strcmp(row, row_of(other)) != 0)
                continue;
            bool same = strcmp(record->name, other->name) == 0;
            match_pair(matcher, t, g, same ? PLUMB_BY_NAME : PLUMB_BY_LIKENESS);
            next = g - golden->first + 1;
            break;
        }
    }
}

bool match_calls(struct matcher *matcher)
{
    struct map numbers = {0};
    struct calls calls[2] = {{0}};
    bool done = list_calls(matcher, TARGET, &numbers, &calls[TARGET]) &&
                list_calls(matcher, GOLDEN, &numbers, &calls[GOLDEN]);
    size_t *partner =
        done ? arena_array(&matcher->arena, calls[TARGET].count, sizeof *partner) : NULL;
    done = partner && match_align(calls[TARGET].labels, calls[TARGET].count, calls[GOLDEN].labels,
                                  calls[GOLDEN].count, partner);
    for (size_t i = 0; done && i < calls[TARGET].count; i++)
        if (partner[i] != SIZE_MAX)
            pair_rows(matcher, &calls[TARGET].calls[i], &calls[GOLDEN].calls[partner[i]]);
    map_free(&numbers);
    return done;
}
