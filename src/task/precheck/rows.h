/* The text of the check's tables, in the dialect of a profile. */
#ifndef PRECHECK_ROWS_H
#define PRECHECK_ROWS_H

#include "base/csv.h"
#include "task/precheck/journal.h"

/* Whether a first cell is how the dialect writes the name of an API. */
bool rows_is_name(struct csv_cell cell, const struct precheck_dialect *dialect, const char *name);

/* judged: with the columns of second opinions, which rows have whose verdict is not NULL. */
void rows_result_header(struct buf *out, const struct precheck_dialect *dialect, bool judged);
void rows_details_header(struct buf *out, const struct precheck_dialect *dialect, bool judged);
void rows_details(struct buf *out, const struct precheck_dialect *dialect,
                  const struct details_row *row);
void rows_result(struct buf *out, const struct precheck_dialect *dialect,
                 const struct journal_entry *entry);

#endif
