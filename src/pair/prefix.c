/* Every free target looks for the golden names that share the longest end of its path, and of equal
 * shape, and votes for the pair of beginnings that is left over. Beginnings with enough votes are
 * then taken for the same thing, most votes first. */
#include "pair/prefix.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_STRIPPED = 8, MAX_SHARING = 8, MAX_CANDIDATES = 32, MIN_VOTES = 3 };

/* "model.visual.blocks.0.|input.0|/1/0": path, role, place. */
struct entry {
    const char *text;
    size_t ends[MAX_STRIPPED + 1]; /* where the first k tokens end */
    int count;                     /* how many tokens may be stripped; -1 for none at all */
};

struct candidate {
    const char *prefix[2]; /* each ends with its '.', or is empty */
    size_t length[2];
    uint64_t votes;
};

/* A golden record that has the suffix of the list it is in. */
struct sharing {
    size_t record;
    int stripped;
    size_t next; /* number + 1 of the next of the same list */
};

struct voting {
    struct matcher *matcher;
    struct entry *entries[2];
    struct map suffixes; /* to the first of the list: its number + 1 */
    struct sharing *sharing;
    size_t sharing_count;
    struct map ballots; /* "target prefix|golden prefix" to number of candidate + 1 */
    struct candidate *candidates;
    size_t count, capacity;
    size_t smaller; /* free records on the smaller side */
};

static bool make_entry(struct matcher *matcher, const struct plumb_record *record,
                       const struct name *name, struct entry *entry)
{
    entry->count = -1;
    if (name->count == NAME_NONE || name->path == 0)
        return true;
    const char *path = fuzzy_path_text(&matcher->arena, name, name->path);
    const char *place = match_place(matcher, record);
    if (!path || !place)
        return false;
    entry->text = arena_printf(&matcher->arena, "%s|%s|%s", path, name->role, place);
    if (!entry->text)
        return false;
    /* At least one token of the path is left. */
    entry->count = name->path - 1 < MAX_STRIPPED ? name->path - 1 : MAX_STRIPPED;
    for (int i = 0; i < entry->count; i++)
        entry->ends[i + 1] = entry->ends[i] + strlen(name->tokens[i]) + 1;
    return true;
}

static bool make_entries(struct voting *voting, struct name *const names[2])
{
    struct matcher *matcher = voting->matcher;
    voting->smaller = SIZE_MAX;
    for (int which = TARGET; which <= GOLDEN; which++) {
        const struct match_side *side = &matcher->side[which];
        size_t free_count = 0;
        voting->entries[which] =
            arena_array(&matcher->arena, side->count, sizeof *voting->entries[which]);
        if (!voting->entries[which])
            return false;
        for (size_t i = 0; i < side->count; i++) {
            struct entry *entry = &voting->entries[which][i];
            entry->count = -1;
            if (side->partner[i] != PLUMB_NO_RECORD)
                continue;
            free_count++;
            if (!make_entry(matcher, side->records[i], &names[which][i], entry))
                return false;
        }
        if (free_count < voting->smaller)
            voting->smaller = free_count;
    }
    return true;
}

static bool index_goldens(struct voting *voting)
{
    const struct match_side *side = &voting->matcher->side[GOLDEN];
    size_t total = 0;
    for (size_t i = 0; i < side->count; i++)
        total += (size_t)(voting->entries[GOLDEN][i].count + 1);
    voting->sharing = arena_array(&voting->matcher->arena, total, sizeof *voting->sharing);
    if (!voting->sharing)
        return false;
    for (size_t i = 0; i < side->count; i++) {
        const struct entry *entry = &voting->entries[GOLDEN][i];
        for (int k = 0; k <= entry->count; k++) {
            const char *suffix = entry->text + entry->ends[k];
            uint64_t *first = map_put(&voting->suffixes, suffix, strlen(suffix), NULL);
            if (!first)
                return false;
            voting->sharing[voting->sharing_count++] = (struct sharing){i, k, (size_t)*first};
            *first = voting->sharing_count;
        }
    }
    return true;
}

static struct candidate *find_candidate(struct voting *voting, const struct entry *t, int strip_t,
                                        const struct entry *g, int strip_g)
{
    size_t length_t = t->ends[strip_t], length_g = g->ends[strip_g];
    const char *key = arena_printf(&voting->matcher->arena, "%.*s|%.*s", (int)length_t, t->text,
                                   (int)length_g, g->text);
    uint64_t *number = key ? map_put(&voting->ballots, key, length_t + 1 + length_g, NULL) : NULL;
    if (!number)
        return NULL;
    if (*number)
        return &voting->candidates[*number - 1];
    if (voting->count == voting->capacity) {
        size_t capacity = voting->capacity ? voting->capacity * 2 : 64;
        struct candidate *larger =
            realloc(voting->candidates, capacity * sizeof *voting->candidates);
        if (!larger)
            return NULL;
        voting->candidates = larger;
        voting->capacity = capacity;
    }
    struct candidate *candidate = &voting->candidates[voting->count++];
    *number = voting->count;
    *candidate = (struct candidate){.prefix = {t->text, g->text}, .length = {length_t, length_g}};
    return candidate;
}

/* The first of the golden records that share the longest suffix of t, or 0. */
static size_t longest_shared(const struct voting *voting, const struct entry *t, int *stripped)
{
    for (int k = 0; k <= t->count; k++) {
        const char *suffix = t->text + t->ends[k];
        const uint64_t *first = map_get(&voting->suffixes, suffix, strlen(suffix));
        if (first) {
            *stripped = k;
            return (size_t)*first;
        }
    }
    return 0;
}

static bool vote(struct voting *voting)
{
    const struct match_side *side = voting->matcher->side;
    for (size_t i = 0; i < side[TARGET].count; i++) {
        const struct entry *entry = &voting->entries[TARGET][i];
        int stripped = 0;
        size_t first = longest_shared(voting, entry, &stripped), sharing = 0;
        for (size_t at = first; at && sharing <= MAX_SHARING; at = voting->sharing[at - 1].next)
            sharing++;
        if (sharing > MAX_SHARING) /* an end that is so common says nothing */
            continue;
        for (size_t at = first; at; at = voting->sharing[at - 1].next) {
            const struct sharing *share = &voting->sharing[at - 1];
            if ((!stripped && !share->stripped) ||
                !match_same_shape(side[TARGET].records[i], side[GOLDEN].records[share->record]))
                continue;
            struct candidate *candidate = find_candidate(
                voting, entry, stripped, &voting->entries[GOLDEN][share->record], share->stripped);
            if (!candidate)
                return false;
            candidate->votes++;
        }
    }
    return true;
}

static bool has_digit(const struct candidate *candidate, int which)
{
    for (size_t i = 0; i < candidate->length[which]; i++)
        if (candidate->prefix[which][i] >= '0' && candidate->prefix[which][i] <= '9')
            return true;
    return false;
}

/* A beginning that only one side has, and that numbers nothing, is harmless. Anything else, such as
 * encoder for visual, must explain nearly all that is left; layers.1 for layers.10 never does. */
static bool is_admissible(const struct voting *voting, const struct candidate *candidate)
{
    bool one_sided = !candidate->length[TARGET] || !candidate->length[GOLDEN];
    bool numbered = has_digit(candidate, TARGET) || has_digit(candidate, GOLDEN);
    if (one_sided && !numbered)
        return true;
    return (one_sided || !numbered) && candidate->votes >= MIN_VOTES &&
           candidate->votes >= voting->smaller - voting->smaller / 10;
}

static int by_votes(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->votes != b->votes)
        return a->votes < b->votes ? 1 : -1;
    for (int which = TARGET; which <= GOLDEN; which++) {
        if (a->length[which] != b->length[which])
            return a->length[which] < b->length[which] ? -1 : 1;
        int order = strncmp(a->prefix[which], b->prefix[which], a->length[which]);
        if (order)
            return order;
    }
    return 0;
}

static bool agree(const struct matcher *matcher, size_t target, size_t golden, const void *context)
{
    struct name *const *names = context;
    return name_classes_agree(&names[TARGET][target], &names[GOLDEN][golden]) &&
           match_same_shape(matcher->side[TARGET].records[target],
                            matcher->side[GOLDEN].records[golden]);
}

/* The golden's text that a target has once its beginning is replaced. No text when there is no such
 * golden, or when two of the candidates lead to different ones. */
static bool replaced_key(struct voting *voting, const struct entry *entry,
                         const struct candidate *candidates, size_t count, struct match_key *key)
{
    bool found = false;
    *key = (struct match_key){0};
    for (size_t i = 0; i < count; i++) {
        const struct candidate *candidate = &candidates[i];
        if (strncmp(entry->text, candidate->prefix[TARGET], candidate->length[TARGET]) != 0)
            continue;
        const char *text =
            arena_printf(&voting->matcher->arena, "%.*s%s", (int)candidate->length[GOLDEN],
                         candidate->prefix[GOLDEN], entry->text + candidate->length[TARGET]);
        if (!text)
            return false;
        const uint64_t *first = map_get(&voting->suffixes, text, strlen(text));
        size_t at = first ? (size_t)*first : 0;
        while (at && voting->sharing[at - 1].stripped)
            at = voting->sharing[at - 1].next;
        if (!at)
            continue;
        if (found) {
            *key = (struct match_key){0};
            return true;
        }
        found = true;
        *key = (struct match_key){text, strlen(text)};
    }
    return true;
}

/* Candidates with as many votes are applied at once, so that none has an advantage by its name. */
static bool apply(struct voting *voting, const struct candidate *candidates, size_t count,
                  struct name *const names[2], struct match_key *const keys[2])
{
    struct matcher *matcher = voting->matcher;
    for (size_t i = 0; i < matcher->side[TARGET].count; i++) {
        keys[TARGET][i] = (struct match_key){0};
        if (matcher->side[TARGET].partner[i] == PLUMB_NO_RECORD &&
            voting->entries[TARGET][i].count >= 0 &&
            !replaced_key(voting, &voting->entries[TARGET][i], candidates, count, &keys[TARGET][i]))
            return false;
    }
    for (size_t i = 0; i < matcher->side[GOLDEN].count; i++) {
        const char *text = voting->entries[GOLDEN][i].text;
        keys[GOLDEN][i] = (struct match_key){text, text ? strlen(text) : 0};
    }
    return match_by_keys(matcher, keys[TARGET], keys[GOLDEN], MATCH_EQUAL_COUNTS, PLUMB_BY_LIKENESS,
                         agree, names);
}

bool match_prefixes(struct matcher *matcher, struct name *const names[2],
                    struct match_key *const keys[2])
{
    struct voting voting = {.matcher = matcher};
    bool done = make_entries(&voting, names) && index_goldens(&voting) && vote(&voting);
    size_t count = 0;
    for (size_t i = 0; done && i < voting.count; i++)
        if (is_admissible(&voting, &voting.candidates[i]))
            voting.candidates[count++] = voting.candidates[i];
    if (done && count)
        qsort(voting.candidates, count, sizeof *voting.candidates, by_votes);
    if (count > MAX_CANDIDATES)
        count = MAX_CANDIDATES;
    for (size_t first = 0, last; done && first < count; first = last) {
        for (last = first + 1; last < count; last++)
            if (voting.candidates[last].votes != voting.candidates[first].votes)
                break;
        done = apply(&voting, &voting.candidates[first], last - first, names, keys);
    }
    map_free(&voting.suffixes);
    map_free(&voting.ballots);
    free(voting.candidates);
    return done;
}
