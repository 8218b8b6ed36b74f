/* Which column of a details file is which. */
#include "task/precision/columns.h"

#include <string.h>
#include <strings.h>

static bool is_title(struct csv_cell cell, const char *title)
{
    return strlen(title) == cell.length && strncasecmp(title, cell.text, cell.length) == 0;
}

static bool is_metric(int column)
{
    return column >= FIRST_METRIC && column <= LAST_METRIC;
}

static bool is_needed(const struct precheck_profile *profile, int column)
{
    if (column == COLUMN_STATUS)
        return profile->precision->needs_status;
    return column != COLUMN_SHAPE && column != COLUMN_MESSAGE;
}

void precision_columns_find(const struct csv_cell *cells, size_t count,
                            const struct precheck_profile *const *profiles,
                            const struct precheck_profile *profile, int place[COLUMN_COUNT],
                            const struct precheck_profile **author, struct buf *missing)
{
    *author = profiles[0];
    for (int column = 0; column < COLUMN_COUNT; column++) {
        place[column] = -1;
        for (size_t i = 0; i < count && place[column] < 0; i++) {
            for (const struct precheck_profile *const *p = profiles; *p; p++) {
                if (!is_title(cells[i], (*p)->files->columns[column]))
                    continue;
                place[column] = (int)i;
                if (is_metric(column) && p != profiles)
                    *author = *p;
            }
        }
        if (place[column] < 0 && is_needed(profile, column))
            buf_printf(missing, "%s%s", missing->size ? ", " : "",
                       precision_column_title((enum precision_column)column));
    }
}
