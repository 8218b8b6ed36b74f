/* Some rows of a comparison, in as many columns as a terminal has room for. */
#ifndef CLI_DIGEST_TABLE_H
#define CLI_DIGEST_TABLE_H

#include "plumb/compare.h"

struct digest_look {
    size_t width;   /* of the terminal; 0: no limit */
    bool all;       /* columns that a digest always does without are there, too, if they fit */
    bool distances; /* there is a column of them behind the names */
};

/* Names are kept whole as long as possible, and cut at their beginning: what tells them apart is
 * their end. NULL when out of memory. */
struct plumb_table *digest_table(const struct plumb_comparison *comparison, const size_t *rows,
                                 size_t count, const struct digest_look *look);

#endif
