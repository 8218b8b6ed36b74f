/* An operator whose outputs are much further off than its inputs were is where to look. */
#include "base/map.h"
#include "pair/role.h"
#include "task/compare/compare.h"
#include "verdict/rules.h"

#include <inttypes.h>
#include <string.h>

/* The operator that a pair belongs to, in its step and rank; NULL when out of memory, "" when the
 * pair does not have that role. */
static const char *operator_of(const struct comparison *comparison, size_t pair,
                               enum pair_role role, struct arena *arena)
{
    const struct plumb_record *record = compare_record(comparison, pair, 0);
    const char *name = compare_name(comparison, pair);
    size_t length = 0;
    if (!comparison->rows[pair].compared || !record || pair_role(name, &length) != role)
        return "";
    if (record->step < 0 && record->rank < 0)
        return arena_copy(arena, name, length);
    return arena_printf(arena, "%.*s/%" PRId64 "/%" PRId64, (int)length, name, record->step,
                        record->rank);
}

enum plumb_code compare_jumps(struct comparison *comparison, struct plumb_error *err)
{
    size_t count = comparison->matching.count;
    struct map worst = {0}; /* operator -> pair with its worst input, plus one */
    struct arena arena = {0};
    enum plumb_code code = PLUMB_OK;
    if (!(plumb_standard_jump(comparison->standards.values) > 0))
        return PLUMB_OK;

    for (size_t i = 0; i < count; i++) {
        const char *name = operator_of(comparison, i, ROLE_INPUT, &arena);
        uint64_t *pair = name ? map_put(&worst, name, strlen(name), NULL) : NULL;
        if (!pair) {
            code = plumb_no_memory(err);
            goto out;
        }
        if (!*name)
            continue;
        if (!*pair || comparison->rows[i].max_rel > comparison->rows[*pair - 1].max_rel)
            *pair = i + 1;
    }
    for (size_t i = 0; i < count; i++) {
        struct row *row = &comparison->rows[i];
        const char *name = operator_of(comparison, i, ROLE_OUTPUT, &arena);
        if (!name) {
            code = plumb_no_memory(err);
            goto out;
        }
        if (!*name)
            continue;
        const uint64_t *pair = map_get(&worst, name, strlen(name));
        double input = pair && *pair ? comparison->rows[*pair - 1].max_rel : 0;
        standard_judge_jump(comparison->standards.values, row->max_rel, input, &row->verdict);
    }
out:
    map_free(&worst);
    arena_free(&arena);
    return code;
}
