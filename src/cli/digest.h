/* What a person wants to see first of a long comparison, on a terminal: counts, the first failure
 * and the rows around it, the worst rows, and a line for each kind of trouble. */
#ifndef CLI_DIGEST_H
#define CLI_DIGEST_H

#include "cli/cli.h"
#include "plumb/compare.h"

/* True when the whole table would be too long for whoever looks at stdout. Its rows must be as they
 * were made: not sorted, and none dropped. */
bool digest_suits(const struct plumb_comparison *comparison);

/* Prints all rows of the table, on a terminal in the columns that it has room for, which says so
 * below. */
enum plumb_code digest_show_table(const struct plumb_comparison *comparison,
                                  const struct cli_view *view, struct plumb_error *err);

/* Prints the digest, closing lines included. */
enum plumb_code digest_show(const struct plumb_comparison *comparison, const struct cli_view *view,
                            struct plumb_error *err);

#endif
