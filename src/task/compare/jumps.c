/* An operator whose outputs are much further off than its inputs were is where to look. */
#include "base/map.h"
#include "pair/role.h"
#include "task/compare/compare.h"
#include "verdict/rules.h"

#include <inttypes.h>
#include <string.h>

/* The operator that a pair belongs to, in its step and rank. */
struct operator
{
    const char *key; /* NULL: the pair does not have the role that is asked for */
    size_t length;
    const char *name; /* what it was made of: that of a call's next tensor is the same again */
    size_t name_length;
    int64_t step, rank;
};

/* Changes the operator that the last pair belonged to into that of this one; false when out of
 * memory. */
static bool find_operator(const struct comparison *comparison, size_t pair, enum pair_role role,
                          struct arena *arena, struct operator* is)
{
    const struct plumb_record *record = compare_record(comparison, pair, 0);
    const char *name = compare_name(comparison, pair);
    size_t length = 0;
    if (!comparison->rows[pair].compared || !record || pair_role(name, &length) != role) {
        is->key = NULL;
        return true;
    }
    if (is->key && is->name_length == length && is->step == record->step &&
        is->rank == record->rank && memcmp(is->name, name, length) == 0)
        return true;
    *is = (struct operator){.key = name,
                            .length = length,
                            .name = name,
                            .name_length = length,
                            .step = record->step,
                            .rank = record->rank};
    if (record->step < 0 && record->rank < 0)
        return true;
    is->key = arena_printf(arena, "%.*s/%" PRId64 "/%" PRId64, (int)length, name, record->step,
                           record->rank);
    is->length = is->key ? strlen(is->key) : 0;
    return is->key;
}

enum plumb_code compare_jumps(struct comparison *comparison, struct plumb_error *err)
{
    size_t count = comparison->matching.count;
    struct map worst = {0}; /* operator -> pair with its worst input, plus one */
    struct arena arena = {0};
    struct operator is = {.key = NULL};
    enum plumb_code code = PLUMB_OK;
    if (!(plumb_standard_jump(comparison->standards.values) > 0))
        return PLUMB_OK;

    const char *last = NULL;
    uint64_t *pair = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!find_operator(comparison, i, ROLE_INPUT, &arena, &is)) {
            code = plumb_no_memory(err);
            goto out;
        }
        if (!is.key)
            continue;
        if (is.key != last)
            pair = map_put(&worst, is.key, is.length, NULL);
        if (!pair) {
            code = plumb_no_memory(err);
            goto out;
        }
        last = is.key;
        if (!*pair || comparison->rows[i].max_rel > comparison->rows[*pair - 1].max_rel)
            *pair = i + 1;
    }
    is = (struct operator){.key = NULL};
    for (size_t i = 0; i < count; i++) {
        struct row *row = &comparison->rows[i];
        if (!find_operator(comparison, i, ROLE_OUTPUT, &arena, &is)) {
            code = plumb_no_memory(err);
            goto out;
        }
        if (!is.key)
            continue;
        const uint64_t *found = map_get(&worst, is.key, is.length);
        double input = found && *found ? comparison->rows[*found - 1].max_rel : 0;
        standard_judge_jump(comparison->standards.values, row->max_rel, input, &row->verdict);
    }
out:
    map_free(&worst);
    arena_free(&arena);
    return code;
}
