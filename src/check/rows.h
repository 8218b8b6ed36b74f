/* The text of the check's tables, in the dialect of a rule set: documented is UTF-8 with LF and
 * English names, msprobe has a byte order mark, CRLF and Chinese names. */
#ifndef CHECK_ROWS_H
#define CHECK_ROWS_H

#include "base/buf.h"
#include "check/journal.h"

void rows_result_header(struct buf *out, enum check_rules rules);
void rows_details_header(struct buf *out, enum check_rules rules);
void rows_details(struct buf *out, enum check_rules rules, const struct details_row *row);
void rows_result(struct buf *out, enum check_rules rules, const struct journal_entry *entry);

#endif
