/* The stages of pairing two runs: by mappings, by equal names, by likeness. */
#include "base/map.h"
#include "pair/name.h"
#include "pair/near.h"
#include "pair/parts.h"
#include "run/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum plumb_code out_of_memory(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while matching the records");
}

void match_pair(struct matcher *matcher, size_t target, size_t golden, enum plumb_pair_how how)
{
    matcher->side[TARGET].partner[target] = golden;
    matcher->side[GOLDEN].partner[golden] = target;
    matcher->how[target] = how;
}

bool match_same_shape(const struct plumb_record *a, const struct plumb_record *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (unsigned i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

const char *match_place(struct matcher *matcher, const struct plumb_record *record)
{
    if (!matcher->by_step && !matcher->by_rank)
        return "";
    return arena_printf(&matcher->arena, "/%" PRId64 "/%" PRId64,
                        matcher->by_step ? record->step : 0, matcher->by_rank ? record->rank : 0);
}

/* The free records that share a key, chained in their order. */
struct group {
    size_t first[2], last[2], count[2];
};

struct grouping {
    struct map map; /* key to number of group + 1 */
    struct group *groups;
    size_t count;
    size_t *next[2]; /* by record */
};

static bool group_side(struct grouping *grouping, const struct match_side *side, int which,
                       const struct match_key *keys)
{
    for (size_t i = 0; i < side->count; i++) {
        if (side->partner[i] != PLUMB_NO_RECORD || !keys[i].text)
            continue;
        uint64_t *number = map_put(&grouping->map, keys[i].text, keys[i].length, NULL);
        if (!number)
            return false;
        if (!*number) {
            *number = ++grouping->count;
            grouping->groups[*number - 1] = (struct group){0};
        }
        struct group *group = &grouping->groups[*number - 1];
        if (group->count[which]++)
            grouping->next[which][group->last[which]] = i;
        else
            group->first[which] = i;
        group->last[which] = i;
    }
    return true;
}

static bool may_pair(const struct group *group, enum match_policy policy)
{
    size_t targets = group->count[TARGET], goldens = group->count[GOLDEN];
    if (!targets || !goldens)
        return false;
    switch (policy) {
    case MATCH_UNIQUE:
        return targets == 1 && goldens == 1;
    case MATCH_EQUAL_COUNTS:
        return targets == goldens;
    case MATCH_IN_ORDER:
        break;
    }
    return true;
}

bool match_by_keys(struct matcher *matcher, const struct match_key *target,
                   const struct match_key *golden, enum match_policy policy,
                   enum plumb_pair_how how, match_filter *filter, const void *context)
{
    size_t targets = matcher->side[TARGET].count, goldens = matcher->side[GOLDEN].count;
    bool done = false;
    struct grouping grouping = {0};
    grouping.groups = calloc(targets + goldens + 1, sizeof *grouping.groups);
    grouping.next[TARGET] = calloc(targets + 1, sizeof(size_t));
    grouping.next[GOLDEN] = calloc(goldens + 1, sizeof(size_t));
    if (!grouping.groups || !grouping.next[TARGET] || !grouping.next[GOLDEN])
        goto out;
    if (!group_side(&grouping, &matcher->side[GOLDEN], GOLDEN, golden) ||
        !group_side(&grouping, &matcher->side[TARGET], TARGET, target))
        goto out;

    for (size_t i = 0; i < grouping.count; i++) {
        const struct group *group = &grouping.groups[i];
        if (!may_pair(group, policy))
            continue;
        size_t t = group->first[TARGET], g = group->first[GOLDEN];
        for (size_t k = 0; k < group->count[TARGET] && k < group->count[GOLDEN]; k++) {
            size_t next_t = grouping.next[TARGET][t], next_g = grouping.next[GOLDEN][g];
            if (!filter || filter(matcher, t, g, context))
                match_pair(matcher, t, g, how);
            t = next_t;
            g = next_g;
        }
    }
    done = true;
out:
    map_free(&grouping.map);
    free(grouping.groups);
    free(grouping.next[TARGET]);
    free(grouping.next[GOLDEN]);
    return done;
}

const char *match_name(const struct matcher *matcher, int which, size_t i)
{
    const struct match_side *side = &matcher->side[which];
    const struct plumb_record *record = side->records[i];
    if (side->keys)
        return side->keys[i];
    return record->key && matcher->dumps ? record->key : record->name;
}

bool match_by_names(struct matcher *matcher, match_namer *name_of, const void *context,
                    enum plumb_pair_how how)
{
    struct match_key *keys[2];
    for (int which = TARGET; which <= GOLDEN; which++) {
        const struct match_side *side = &matcher->side[which];
        keys[which] = arena_array(&matcher->arena, side->count, sizeof *keys[which]);
        if (!keys[which])
            return false;
        for (size_t i = 0; i < side->count; i++) {
            const char *name = name_of(matcher, which, i, context);
            if (!name)
                continue;
            if (matcher->by_step || matcher->by_rank) {
                const char *place = match_place(matcher, side->records[i]);
                name = place ? arena_printf(&matcher->arena, "%s%s", name, place) : NULL;
                if (!name)
                    return false;
            }
            keys[which][i] = (struct match_key){name, strlen(name)};
        }
    }
    return match_by_keys(matcher, keys[TARGET], keys[GOLDEN], MATCH_IN_ORDER, how, NULL, NULL);
}

static const char *own_name(const struct matcher *matcher, int which, size_t i, const void *context)
{
    (void)context;
    return match_name(matcher, which, i);
}

static bool match_exact(struct matcher *matcher)
{
    return match_by_names(matcher, own_name, NULL, PLUMB_BY_NAME);
}

static size_t count_free(const struct match_side *side)
{
    size_t count = 0;
    for (size_t i = 0; i < side->count; i++)
        count += side->partner[i] == PLUMB_NO_RECORD;
    return count;
}

static size_t next_free(const struct match_side *side, size_t from)
{
    while (from < side->count && side->partner[from] != PLUMB_NO_RECORD)
        from++;
    return from;
}

static enum plumb_code match_order(struct matcher *matcher, struct plumb_error *err)
{
    struct match_side *target = &matcher->side[TARGET], *golden = &matcher->side[GOLDEN];
    size_t targets = count_free(target), goldens = count_free(golden);
    if (targets != goldens)
        return plumb_fail(err, PLUMB_E_ARG,
                          "matching by order needs as many records on both sides, but the target "
                          "has %zu and the golden run %zu; match by name or with a map file",
                          targets, goldens);
    for (size_t t = next_free(target, 0), g = next_free(golden, 0); t < target->count;
         t = next_free(target, t), g = next_free(golden, g))
        match_pair(matcher, t, g, PLUMB_BY_ORDER);
    return PLUMB_OK;
}

static bool has_single(const struct match_side *side, bool ranks)
{
    for (size_t i = 1; i < side->count; i++) {
        const struct plumb_record *first = side->records[0], *other = side->records[i];
        if (ranks ? other->rank != first->rank : other->step != first->step)
            return false;
    }
    return true;
}

static bool is_dump(const struct match_side *side)
{
    for (size_t i = 0; i < side->count; i++)
        if (side->records[i]->recorded && side->records[i]->recorded->api)
            return true;
    return false;
}

/* Makes free records that are no modules look taken, and free again. */
static void set_functions_aside(struct match_side *side, bool aside)
{
    const size_t taken = MATCH_ASIDE;
    for (size_t i = 0; i < side->count; i++) {
        const char *name = side->records[i]->name;
        bool module = strncmp(name, "Module.", 7) == 0 || strncmp(name, "Cell.", 5) == 0;
        if (!module && side->partner[i] == (aside ? PLUMB_NO_RECORD : taken))
            side->partner[i] = aside ? taken : PLUMB_NO_RECORD;
    }
}

/* Does the name say what part it plays in which call? A file that is called "input" may be that of
 * anything. */
static bool says_part(const struct name *name)
{
    return name->count != NAME_NONE && name->kind && (name->count > 0 || strchr(name->role, '.'));
}

/* Whoever names two single tensors means these two, unless they play different parts in a call: the
 * input of a module is not its output, whatever else is missing. False when out of memory. */
static bool match_single(struct matcher *matcher)
{
    struct name names[2];
    for (int which = TARGET; which <= GOLDEN; which++)
        if (!name_parse(&names[which], &matcher->arena, matcher->side[which].records[0]->name))
            return false;
    bool differ = says_part(&names[TARGET]) && says_part(&names[GOLDEN]) &&
                  (strcmp(names[TARGET].kind, names[GOLDEN].kind) != 0 ||
                   names[TARGET].backward != names[GOLDEN].backward);
    if (!differ && matcher->side[TARGET].partner[0] == PLUMB_NO_RECORD)
        match_pair(matcher, 0, 0, PLUMB_BY_ORDER);
    return true;
}

static enum plumb_code run_stages(struct matcher *matcher, const struct plumb_pair_options *options,
                                  struct plumb_error *err)
{
    struct match_side *target = &matcher->side[TARGET], *golden = &matcher->side[GOLDEN];
    matcher->by_step = !has_single(target, false) || !has_single(golden, false);
    matcher->by_rank = !has_single(target, true) || !has_single(golden, true);
    matcher->dumps = is_dump(target) && is_dump(golden);

    if (options->map_file) {
        enum plumb_code code = match_map_file(matcher, options->map_file, err);
        if (code != PLUMB_OK)
            return code;
    }
    if (options->data_map) {
        enum plumb_code code = match_data_map(matcher, options->data_map, err);
        if (code != PLUMB_OK)
            return code;
    }
    if (options->layer_map) {
        if (!is_dump(target) || !is_dump(golden))
            return plumb_fail(err, PLUMB_E_ARG,
                              "a layer mapping is for dumps with a dump.json; other runs take a "
                              "map file");
        /* Equal names in different layers are chance: what is left stays alone. */
        enum plumb_code code = match_layers(matcher, options->layer_map, err);
        if (code != PLUMB_OK || options->mode != PLUMB_PAIR_FUZZY)
            return code;
    }
    if (options->mode == PLUMB_PAIR_ORDER)
        return match_order(matcher, err);
    enum plumb_code code = PLUMB_OK;
    if (options->cell_map)
        code = match_cells(matcher, options->cell_map, err);
    if (!code && options->api_map)
        code = match_apis(matcher, options->api_map, err);
    if (code)
        return code;
    bool dumps = matcher->dumps;
    if (dumps && options->mode == PLUMB_PAIR_FUZZY && !match_calls(matcher))
        return out_of_memory(err);
    if (options->mode != PLUMB_PAIR_EXACT && !match_turns(matcher))
        return out_of_memory(err);
    /* Who maps names says what they mean. */
    const bool scopes = dumps && options->mode != PLUMB_PAIR_EXACT && !options->cell_map &&
                        !options->api_map && !options->layer_map;
    if (scopes && !match_scopes(matcher))
        return out_of_memory(err);
    const bool exact = match_exact(matcher);
    for (int which = TARGET; which <= GOLDEN; which++)
        set_functions_aside(&matcher->side[which], false);
    if (!exact || (scopes && matcher->same_level && !match_covered(matcher)))
        return out_of_memory(err);
    if (options->mode != PLUMB_PAIR_EXACT && !match_keywords(matcher))
        return out_of_memory(err);
    if (target->count == 1 && golden->count == 1 && !match_single(matcher))
        return out_of_memory(err);
    bool fuzzy = options->mode == PLUMB_PAIR_FUZZY || (options->mode == PLUMB_PAIR_AUTO && !dumps);
    if (!fuzzy || !count_free(target) || !count_free(golden))
        return PLUMB_OK;
    /* Modules have paths to go by; functions of different names are different. */
    for (int which = TARGET; which <= GOLDEN && dumps; which++)
        set_functions_aside(&matcher->side[which], true);
    bool done = match_fuzzy(matcher);
    for (int which = TARGET; which <= GOLDEN && dumps; which++)
        set_functions_aside(&matcher->side[which], false);
    return done ? PLUMB_OK : out_of_memory(err);
}

static bool list_free(struct matcher *matcher, int which, struct plumb_matching *out)
{
    const struct match_side *side = &matcher->side[which];
    if (!count_free(side))
        return true;
    struct near near;
    if (!near_init(&near, matcher, !which))
        return false;
    for (size_t i = next_free(side, 0); i < side->count; i = next_free(side, i + 1)) {
        struct plumb_pair pair = {
            .target = which == TARGET ? i : PLUMB_NO_RECORD,
            .golden = which == GOLDEN ? i : PLUMB_NO_RECORD,
            .how = PLUMB_UNMATCHED,
            .covered = side->covered[i],
            .nearest = near_find(&near, side->records[i]->name),
        };
        out->pairs[out->count++] = pair;
    }
    near_destroy(&near);
    return true;
}

static bool list_pairs(struct matcher *matcher, struct plumb_matching *out)
{
    const struct match_side *target = &matcher->side[TARGET], *golden = &matcher->side[GOLDEN];
    out->pairs = calloc(target->count + golden->count + 1, sizeof *out->pairs);
    if (!out->pairs)
        return false;
    for (size_t i = 0; i < target->count; i++)
        if (target->partner[i] != PLUMB_NO_RECORD)
            out->pairs[out->count++] = (struct plumb_pair){.target = i,
                                                           .golden = target->partner[i],
                                                           .how = matcher->how[i],
                                                           .nearest = PLUMB_NO_RECORD};
    out->matched = out->count;
    return list_free(matcher, TARGET, out) && list_free(matcher, GOLDEN, out);
}

static bool init_side(struct matcher *matcher, int which, const struct plumb_record *const *records,
                      size_t count)
{
    struct match_side *side = &matcher->side[which];
    side->records = records;
    side->count = count;
    side->partner = arena_array(&matcher->arena, count, sizeof *side->partner);
    side->covered = arena_array(&matcher->arena, count, sizeof *side->covered);
    for (size_t i = 0; side->partner && i < count; i++)
        side->partner[i] = PLUMB_NO_RECORD;
    return side->partner != NULL && side->covered != NULL;
}

static enum plumb_code match_all(struct plumb_matching *out,
                                 const struct plumb_record *const *target, size_t target_count,
                                 const struct plumb_record *const *golden, size_t golden_count,
                                 const struct plumb_pair_options *options, bool same_level,
                                 struct plumb_error *err)
{
    enum plumb_code code;
    struct matcher matcher = {.same_level = same_level};
    *out = (struct plumb_matching){0};
    matcher.how = arena_array(&matcher.arena, target_count, sizeof *matcher.how);
    if (!matcher.how || !init_side(&matcher, TARGET, target, target_count) ||
        !init_side(&matcher, GOLDEN, golden, golden_count)) {
        code = out_of_memory(err);
        goto out;
    }
    if (!match_read_places(&matcher)) {
        code = out_of_memory(err);
        goto out;
    }
    code = run_stages(&matcher, options, err);
    out->mapping = matcher.mapping;
    out->decided = matcher.decided;
    if (code == PLUMB_OK && !list_pairs(&matcher, out))
        code = out_of_memory(err);
out:
    if (code != PLUMB_OK)
        plumb_matching_free(out);
    arena_free(&matcher.arena);
    return code;
}

enum plumb_code match_records(struct plumb_matching *out, const struct plumb_record *const *target,
                              size_t target_count, const struct plumb_record *const *golden,
                              size_t golden_count, const struct plumb_pair_options *options,
                              struct plumb_error *err)
{
    return match_all(out, target, target_count, golden, golden_count, options, false, err);
}

/* The records of a run that take part, and their numbers in it. */
struct part {
    const struct plumb_record **records;
    size_t *numbers;
    size_t count;
};

/* The stretches of a run that may hold records of a rank; all of it is one where that is not
 * known. */
static size_t count_spans(const struct plumb_run *run)
{
    return run->spans ? run->span_count : 1;
}

static struct span span_of(const struct plumb_run *run, size_t i)
{
    return run->spans ? run->spans[i] : (struct span){.rank = -1, .count = plumb_run_count(run)};
}

static bool list_records(struct part *part, const struct plumb_run *run, const int64_t *rank)
{
    size_t count = 0;
    for (size_t s = 0; s < count_spans(run); s++)
        if (!rank || !run->spans || span_of(run, s).rank == *rank)
            count += span_of(run, s).count;
    part->records = calloc(count + 1, sizeof *part->records);
    part->numbers = calloc(count + 1, sizeof *part->numbers);
    if (!part->records || !part->numbers)
        return false;
    for (size_t s = 0; s < count_spans(run); s++) {
        const struct span span = span_of(run, s);
        if (rank && run->spans && span.rank != *rank)
            continue;
        for (size_t i = span.first; i < span.first + span.count; i++) {
            const struct plumb_record *record = plumb_run_record(run, i);
            if (rank && record->rank != *rank)
                continue;
            part->records[part->count] = record;
            part->numbers[part->count++] = i;
        }
    }
    return true;
}

static size_t number_in(const struct part *part, size_t index)
{
    return index == PLUMB_NO_RECORD ? index : part->numbers[index];
}

/* From numbers among those that take part to numbers of the runs. */
static void translate(struct plumb_matching *out, const struct part parts[2])
{
    for (size_t i = 0; i < out->count; i++) {
        struct plumb_pair *pair = &out->pairs[i];
        pair->nearest = number_in(&parts[pair->target == PLUMB_NO_RECORD ? 0 : 1], pair->nearest);
        pair->target = number_in(&parts[0], pair->target);
        pair->golden = number_in(&parts[1], pair->golden);
    }
}

/* Whether both are dumps of the same level. */
static bool same_level(const struct plumb_run *target, const struct plumb_run *golden)
{
    const char *a = run_level(target), *b = run_level(golden);
    return a && b && strcmp(a, b) == 0;
}

enum plumb_code plumb_match(struct plumb_matching *out, const struct plumb_run *target,
                            const struct plumb_run *golden,
                            const struct plumb_pair_options *options, struct plumb_error *err)
{
    static const struct plumb_pair_options usual = {.mode = PLUMB_PAIR_AUTO};
    struct part parts[2] = {{0}};
    enum plumb_code code;
    *out = (struct plumb_matching){0};
    if (!options)
        options = &usual;
    if (list_records(&parts[0], target, options->rank) &&
        list_records(&parts[1], golden, options->rank))
        code = match_all(out, parts[0].records, parts[0].count, parts[1].records, parts[1].count,
                         options, same_level(target, golden), err);
    else
        code = out_of_memory(err);
    if (!code)
        translate(out, parts);
    for (int i = 0; i < 2; i++) {
        free(parts[i].records);
        free(parts[i].numbers);
    }
    return code;
}

void plumb_matching_free(struct plumb_matching *matching)
{
    free(matching->pairs);
    free(matching->mapping);
    *matching = (struct plumb_matching){0};
}
