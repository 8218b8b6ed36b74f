/* Pairs records whose names say the same in different words.
 *
 * Each tier forgets a bit more of the name and pairs those that then are equal, so that a likeness
 * is used only by what no closer one has taken. What a tensor is (weight or bias, input or output)
 * and every number of the module path always count. */
#include "pair/prefix.h"

#include <string.h>

/* What of a name a tier looks at. The role always counts. */
enum tier {
    WHOLE,     /* path, class and call: other case, separators, wrappers */
    NO_CALL,   /* path and class */
    PATH,      /* path: another class */
    FLAT_PATH, /* path, with _ and . the same */
    TIERS      /* and one more, see prefix.h */
};

static int tokens_of(const struct name *name, enum tier tier)
{
    if (tier == WHOLE)
        return name->count;
    return tier == NO_CALL && name->class != NAME_NONE ? name->path + 1 : name->path;
}

/* Without a path, class and call are all that tells modules apart, unless it is the root module. */
static bool is_pathless(const struct name *name)
{
    return name->count != NAME_NONE && name->path == 0 && name->class != NAME_NONE;
}

static bool same_module(const struct name *a, const struct name *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->tokens[i], b->tokens[i]) != 0)
            return false;
    return true;
}

/* Whether all names without a path are of one module, which then is the root. */
static bool has_root_only(const struct name *names, size_t count)
{
    const struct name *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_pathless(&names[i]))
            continue;
        if (!first)
            first = &names[i];
        else if (!same_module(first, &names[i]))
            return false;
    }
    return true;
}

const char *fuzzy_path_text(struct arena *arena, const struct name *name, int count)
{
    size_t size = 1;
    for (int i = 0; i < count; i++)
        size += strlen(name->tokens[i]) + 1;
    char *text = arena_alloc(arena, size), *out = text;
    for (int i = 0; text && i < count; i++) {
        size_t length = strlen(name->tokens[i]);
        memcpy(out, name->tokens[i], length);
        out += length;
        *out++ = '.';
    }
    return text;
}

struct fuzzy {
    struct name *names[2];
    struct match_key *keys[2];
    bool roots; /* a name without a path is the root module, on both sides */
};

static bool make_key(struct matcher *matcher, const struct fuzzy *fuzzy,
                     const struct plumb_record *record, const struct name *name, enum tier tier,
                     bool with_shape, struct match_key *key)
{
    *key = (struct match_key){0};
    if (name->count == NAME_NONE || (tier != WHOLE && is_pathless(name) && !fuzzy->roots))
        return true;
    const char *path = fuzzy_path_text(&matcher->arena, name, tokens_of(name, tier));
    const char *place = match_place(matcher, record);
    if (!path || !place)
        return false;
    char *text = arena_printf(&matcher->arena, "%s|%s|%s", path, name->role, place);
    if (!text)
        return false;
    if (tier == FLAT_PATH)
        for (char *c = text; *c; c++)
            if (*c == '_')
                *c = '.';
    for (unsigned i = 0; with_shape && i < record->ndim; i++) {
        text = arena_printf(&matcher->arena, "%s,%lld", text, (long long)record->shape[i]);
        if (!text)
            return false;
    }
    *key = (struct match_key){text, strlen(text)};
    return true;
}

static bool classes_agree(const struct matcher *matcher, size_t target, size_t golden,
                          const void *context)
{
    (void)matcher;
    const struct fuzzy *fuzzy = context;
    return name_classes_agree(&fuzzy->names[TARGET][target], &fuzzy->names[GOLDEN][golden]);
}

static bool run_tier(struct matcher *matcher, const struct fuzzy *fuzzy, enum tier tier,
                     bool with_shape)
{
    for (int which = TARGET; which <= GOLDEN; which++) {
        const struct match_side *side = &matcher->side[which];
        for (size_t i = 0; i < side->count; i++)
            if (side->partner[i] == PLUMB_NO_RECORD &&
                !make_key(matcher, fuzzy, side->records[i], &fuzzy->names[which][i], tier,
                          with_shape, &fuzzy->keys[which][i]))
                return false;
    }
    return match_by_keys(matcher, fuzzy->keys[TARGET], fuzzy->keys[GOLDEN],
                         with_shape ? MATCH_EQUAL_COUNTS : MATCH_UNIQUE, PLUMB_BY_LIKENESS,
                         classes_agree, fuzzy);
}

static bool parse_side(struct matcher *matcher, int which, struct fuzzy *fuzzy)
{
    const struct match_side *side = &matcher->side[which];
    struct name *names = arena_array(&matcher->arena, side->count, sizeof *names);
    fuzzy->names[which] = names;
    fuzzy->keys[which] = arena_array(&matcher->arena, side->count, sizeof *fuzzy->keys[which]);
    if (!names || !fuzzy->keys[which])
        return false;
    for (size_t i = 0; i < side->count; i++)
        if (!name_parse(&names[i], &matcher->arena, side->records[i]->name))
            return false;
    fuzzy->roots = fuzzy->roots && has_root_only(names, side->count);
    return true;
}

bool match_fuzzy(struct matcher *matcher)
{
    struct fuzzy fuzzy = {.roots = true};
    if (!parse_side(matcher, TARGET, &fuzzy) || !parse_side(matcher, GOLDEN, &fuzzy))
        return false;
    for (enum tier tier = WHOLE; tier < TIERS; tier++)
        /* A name that several records share is told apart by shape, then by order. */
        for (int with_shape = 0; with_shape < 2; with_shape++)
            if (!run_tier(matcher, &fuzzy, tier, with_shape))
                return false;
    return match_prefixes(matcher, fuzzy.names, fuzzy.keys);
}
