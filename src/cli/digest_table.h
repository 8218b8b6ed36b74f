/* Some rows of a comparison, in as many columns as a terminal has room for. */
#ifndef CLI_DIGEST_TABLE_H
#define CLI_DIGEST_TABLE_H

#include "plumb/compare.h"

/* Names are kept whole as long as possible, and cut at their beginning: what tells them apart is
 * their end. width 0: no limit. distances: there is a column of them behind the names. NULL when out
 * of memory. */
struct plumb_table *digest_table(const struct plumb_comparison *comparison, const size_t *rows,
                                 size_t count, size_t width, bool distances);

#endif
