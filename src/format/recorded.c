/* Statistics that were recorded of a tensor: a number each, and texts only where one of them is
 * needed. A dump has hundreds of thousands. */
#include "format/recorded.h"

struct plumb_value plumb_recorded_statistic(const struct plumb_recorded *recorded,
                                            enum plumb_statistic which)
{
    const enum plumb_value_kind kind = (enum plumb_value_kind)recorded->statistic_kind[which];
    const char *text = recorded->rest ? recorded->rest->statistic_text[which] : NULL;
    return (struct plumb_value){.kind = kind,
                                .written = kind == PLUMB_VALUE_NUMBER && !text,
                                .number = recorded->statistic_number[which],
                                .text = text};
}

bool plumb_recorded_has_statistics(const struct plumb_recorded *recorded)
{
    for (int k = 0; k < PLUMB_STATISTICS; k++)
        if (recorded->statistic_kind[k] != PLUMB_VALUE_NONE)
            return true;
    return false;
}

const char *plumb_recorded_parent(const struct plumb_recorded *recorded)
{
    return recorded && recorded->caller ? recorded->caller->parent : NULL;
}

const char *const *plumb_recorded_stack(const struct plumb_recorded *recorded)
{
    return recorded && recorded->caller ? recorded->caller->stack : NULL;
}

const struct plumb_kept *plumb_recorded_kept(const struct plumb_recorded *recorded)
{
    return recorded && recorded->rest ? recorded->rest->kept : NULL;
}

struct plumb_recorded_rest *recorded_rest(struct plumb_recorded *recorded, struct arena *arena)
{
    if (!recorded->rest)
        recorded->rest = arena_alloc(arena, sizeof *recorded->rest);
    return (struct plumb_recorded_rest *)recorded->rest; /* made here */
}

bool recorded_set_statistic(struct plumb_recorded *recorded, enum plumb_statistic which,
                            const struct plumb_value *value, struct arena *arena)
{
    if (value->text || recorded->rest) {
        struct plumb_recorded_rest *rest = recorded_rest(recorded, arena);
        if (!rest)
            return false;
        rest->statistic_text[which] = value->text;
    }
    recorded->statistic_kind[which] = (uint8_t)value->kind;
    recorded->statistic_number[which] = value->number;
    return true;
}
