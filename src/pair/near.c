/* Names are cut into tokens. Those that have the rarest token of the asked name are looked at,
 * those of them that agree best at their two ends are compared by edit distance in tokens. */
#define _GNU_SOURCE
#include "pair/near.h"

#include <string.h>

enum {
    MAX_TOKENS = 48,
    MAX_LOOKED_AT = 512,
    FINALISTS = 8,
    MAX_LETTERS = 64,
    LETTER_BUDGET = 20000 /* comparisons letter by letter, for all calls together */
};

/* Costs of the edit distance between lists of tokens. */
enum { SAME = 0, ALIKE = 1, DIFFERENT = 2, MISSING = 2 };

static const char separators[] = "./\\:[]_ ";

struct near_token {
    uint32_t number; /* 0 for one that no proposal has */
    uint16_t offset, length;
};

struct near_name {
    size_t record;
    const char *text;
    unsigned count;
    struct near_token *tokens;
};

struct near_list {
    uint32_t *names;
    size_t count, filled;
};

/* The tokens of text; what comes after many of them, or after 64 kB, does not count. */
static unsigned cut(struct near_token tokens[MAX_TOKENS], const char *text)
{
    unsigned count = 0;
    const char *at = text;
    while (*(at += strspn(at, separators)) && count < MAX_TOKENS) {
        size_t offset = (size_t)(at - text), length = strcspn(at, separators);
        if (offset > UINT16_MAX || length > UINT16_MAX)
            break;
        tokens[count++] =
            (struct near_token){.offset = (uint16_t)offset, .length = (uint16_t)length};
        at += length;
    }
    return count;
}

static bool make_room(struct near *near)
{
    if (near->count < near->capacity)
        return true;
    const size_t more = near->capacity ? near->capacity * 2 : 64;
    struct near_name *names =
        arena_grow(&near->arena, near->names, near->count, more, sizeof *names);
    if (!names)
        return false;
    near->names = names;
    near->capacity = more;
    return true;
}

bool near_add(struct near *near, const char *text, size_t record)
{
    struct near_token tokens[MAX_TOKENS];
    bool added = false;
    if (near->count >= UINT32_MAX / MAX_TOKENS)
        return true;
    if (!map_put(&near->known, text, strlen(text), &added))
        return false;
    if (!added)
        return true;
    if (!make_room(near))
        return false;
    struct near_name *name = &near->names[near->count];
    *name = (struct near_name){.record = record, .text = text, .count = cut(tokens, text)};
    name->tokens = arena_array(&near->arena, name->count, sizeof *name->tokens);
    if (!name->tokens)
        return false;
    for (unsigned i = 0; i < name->count; i++) {
        uint64_t *number = map_put(&near->tokens, text + tokens[i].offset, tokens[i].length, NULL);
        if (!number)
            return false;
        if (!*number)
            *number = near->tokens.count;
        tokens[i].number = (uint32_t)*number;
        name->tokens[i] = tokens[i];
    }
    near->count++;
    return true;
}

bool near_ready(struct near *near)
{
    near->letter_budget = LETTER_BUDGET;
    near->lists = arena_array(&near->arena, near->tokens.count + 1, sizeof *near->lists);
    if (!near->lists)
        return false;
    for (size_t i = 0; i < near->count; i++)
        for (unsigned k = 0; k < near->names[i].count; k++)
            near->lists[near->names[i].tokens[k].number].count++;
    for (size_t i = 1; i <= near->tokens.count; i++) {
        struct near_list *list = &near->lists[i];
        list->names = arena_array(&near->arena, list->count, sizeof *list->names);
        if (!list->names)
            return false;
    }
    for (size_t i = 0; i < near->count; i++) {
        for (unsigned k = 0; k < near->names[i].count; k++) {
            struct near_list *list = &near->lists[near->names[i].tokens[k].number];
            list->names[list->filled++] = (uint32_t)i;
        }
    }
    return true;
}

bool near_init(struct near *near, const struct matcher *matcher, int which)
{
    const struct match_side *side = &matcher->side[which];
    *near = (struct near){0};
    bool all = true, fine = true;
    for (size_t i = 0; i < side->count && all; i++)
        all = side->partner[i] != PLUMB_NO_RECORD;
    for (size_t i = 0; i < side->count && fine; i++)
        if (all || side->partner[i] == PLUMB_NO_RECORD)
            fine = near_add(near, side->records[i]->name, i);
    if (fine && near_ready(near))
        return true;
    near_destroy(near);
    return false;
}

void near_destroy(struct near *near)
{
    map_free(&near->tokens);
    map_free(&near->known);
    arena_free(&near->arena);
}

/* Tokens that begin alike are probably one word in two spellings; numbers are not words. */
static unsigned token_cost(const struct near_name *a, unsigned i, const struct near_name *b,
                           unsigned k)
{
    const struct near_token *x = &a->tokens[i], *y = &b->tokens[k];
    if (x->number && x->number == y->number)
        return SAME;
    const char *p = a->text + x->offset, *q = b->text + y->offset;
    if (*p >= '0' && *p <= '9')
        return DIFFERENT;
    unsigned common = 0, longer = x->length > y->length ? x->length : y->length;
    while (common < x->length && common < y->length && p[common] == q[common])
        common++;
    return common * 2 >= longer ? ALIKE : DIFFERENT;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static unsigned token_distance(const struct near_name *a, const struct near_name *b)
{
    unsigned row[MAX_TOKENS + 1];
    for (unsigned k = 0; k <= b->count; k++)
        row[k] = k * MISSING;
    for (unsigned i = 0; i < a->count; i++) {
        unsigned diagonal = row[0];
        row[0] = (i + 1) * MISSING;
        for (unsigned k = 0; k < b->count; k++) {
            unsigned above = row[k + 1];
            row[k + 1] =
                least(above + MISSING, row[k] + MISSING, diagonal + token_cost(a, i, b, k));
            diagonal = above;
        }
    }
    return row[b->count];
}

/* A cheap guess of the likeness: tokens that agree at the same place from either end. */
static unsigned count_agreeing(const struct near_name *a, const struct near_name *b)
{
    unsigned agreeing = 0, shorter = a->count < b->count ? a->count : b->count;
    for (unsigned i = 0; i < shorter; i++) {
        unsigned from_end_a = a->count - 1 - i, from_end_b = b->count - 1 - i;
        agreeing += a->tokens[i].number == b->tokens[i].number;
        agreeing += a->tokens[from_end_a].number == b->tokens[from_end_b].number;
    }
    return agreeing;
}

struct finalist {
    const struct near_name *name;
    unsigned agreeing;
};

/* Keeps the best, best first, the earlier one of equals. Returns how many there are then. */
static unsigned enter(struct finalist *finalists, unsigned count, struct finalist entry)
{
    unsigned i = count;
    for (; i && finalists[i - 1].agreeing < entry.agreeing; i--)
        if (i < FINALISTS)
            finalists[i] = finalists[i - 1];
    if (i < FINALISTS)
        finalists[i] = entry;
    return count < FINALISTS ? count + 1 : count;
}

/* The list of the rarest token that both have, or NULL. */
static const struct near_list *rarest_list(const struct near *near, const struct near_name *asked)
{
    const struct near_list *rarest = NULL;
    for (unsigned i = 0; i < asked->count; i++) {
        const struct near_list *list = &near->lists[asked->tokens[i].number];
        if (asked->tokens[i].number && (!rarest || list->count < rarest->count))
            rarest = list;
    }
    return rarest;
}

static unsigned letter_distance(const char *a, const char *b)
{
    size_t length_a = strnlen(a, MAX_LETTERS), length_b = strnlen(b, MAX_LETTERS);
    unsigned row[MAX_LETTERS + 1];
    for (unsigned k = 0; k <= length_b; k++)
        row[k] = k;
    for (unsigned i = 0; i < length_a; i++) {
        unsigned diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < length_b; k++) {
            unsigned above = row[k + 1];
            row[k + 1] = least(above + 1, row[k] + 1, diagonal + (a[i] != b[k]));
            diagonal = above;
        }
    }
    return row[length_b];
}

/* For names that share no token at all: a slip of the pen. */
static size_t find_by_letters(struct near *near, const char *text)
{
    size_t best = PLUMB_NO_RECORD;
    unsigned best_distance = (unsigned)strnlen(text, MAX_LETTERS) / 3 + 1;
    for (size_t i = 0; i < near->count && near->letter_budget; i++, near->letter_budget--) {
        unsigned distance = letter_distance(text, near->names[i].text);
        if (distance < best_distance) {
            best_distance = distance;
            best = near->names[i].record;
        }
    }
    return best;
}

size_t near_find(struct near *near, const char *text)
{
    struct near_token tokens[MAX_TOKENS];
    struct near_name asked = {.text = text, .count = cut(tokens, text), .tokens = tokens};
    for (unsigned i = 0; i < asked.count; i++) {
        const uint64_t *number = map_get(&near->tokens, text + tokens[i].offset, tokens[i].length);
        tokens[i].number = number ? (uint32_t)*number : 0;
    }

    struct finalist finalists[FINALISTS];
    unsigned count = 0;
    const struct near_list *list = rarest_list(near, &asked);
    for (size_t i = 0; list && i < list->count && i < MAX_LOOKED_AT; i++) {
        const struct near_name *name = &near->names[list->names[i]];
        count = enter(finalists, count, (struct finalist){name, count_agreeing(&asked, name)});
    }
    const struct near_name *best = NULL;
    unsigned best_distance = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned distance = token_distance(&asked, finalists[i].name);
        if (!best || distance < best_distance) {
            best = finalists[i].name;
            best_distance = distance;
        }
    }
    /* Near is where at least about half of the tokens agree. */
    if (best && best_distance <= (asked.count + best->count) * MISSING / 2)
        return best->record;
    return find_by_letters(near, text);
}
