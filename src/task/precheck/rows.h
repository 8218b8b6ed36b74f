/* The text of the check's tables, in the dialect of a rule set: documented is UTF-8 with LF and
 * English names, and protects spreadsheets from names that are formulas; msprobe has a byte order
 * mark, CRLF and Chinese names. */
#ifndef PRECHECK_ROWS_H
#define PRECHECK_ROWS_H

#include "base/csv.h"
#include "task/precheck/journal.h"

/* Whether a first cell is how these rules write the name of an API. */
bool rows_is_name(struct csv_cell cell, enum check_rules rules, const char *name);

void rows_result_header(struct buf *out, enum check_rules rules);
void rows_details_header(struct buf *out, enum check_rules rules);
void rows_details(struct buf *out, enum check_rules rules, const struct details_row *row);
void rows_result(struct buf *out, enum check_rules rules, const struct journal_entry *entry);

#endif
