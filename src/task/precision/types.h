/* Which types pandas would give the columns of a details file: for its reader and its values. */
#ifndef PRECISION_TYPES_H
#define PRECISION_TYPES_H

#include "task/precision/read.h"

enum { METRIC_COUNT = LAST_METRIC - FIRST_METRIC + 1 };

/* What was seen among the cells of a metric. */
enum { TYPE_INTEGER = 1, TYPE_REAL = 2, TYPE_MISSING = 4, TYPE_TEXT = 8 };

/* Adds the cells of a row to the types of its stretch (METRIC_COUNT of them). */
void details_note_types(struct details_file *file, const struct details_cells *row, uint8_t *types);

#endif
