/* Statistics that were recorded of a tensor: a number each, and texts only where one of them is
 * needed. A dump has hundreds of thousands. */
#include "format/recorded.h"

struct plumb_value plumb_recorded_statistic(const struct plumb_recorded *recorded,
                                            enum plumb_statistic which)
{
    const enum plumb_value_kind kind = (enum plumb_value_kind)recorded->statistic_kind[which];
    const char *text = recorded->statistic_text ? recorded->statistic_text[which] : NULL;
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

bool recorded_set_statistic(struct plumb_recorded *recorded, enum plumb_statistic which,
                            const struct plumb_value *value, struct arena *arena)
{
    const char **texts = (const char **)recorded->statistic_text;
    if (value->text && !texts) {
        texts = arena_array(arena, PLUMB_STATISTICS, sizeof *texts);
        if (!texts)
            return false;
        recorded->statistic_text = texts;
    }
    if (texts)
        texts[which] = value->text;
    recorded->statistic_kind[which] = (uint8_t)value->kind;
    recorded->statistic_number[which] = value->number;
    return true;
}
