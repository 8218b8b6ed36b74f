/* The columns of pre-check results, found in the dialect of any profile. */
#ifndef PRECISION_COLUMNS_H
#define PRECISION_COLUMNS_H

#include "base/buf.h"
#include "base/csv.h"
#include "verdict/profile.h"

/* Finds the columns of a header in the dialect of any of the profiles, which end with NULL:
 * place[c] is the column's position, or -1. *author is the profile whose titles the metrics have.
 * Titles that the profile needs and that are not there are listed in missing, separated by
 * commas. */
void precision_columns_find(const struct csv_cell *cells, size_t count,
                            const struct precheck_profile *const *profiles,
                            const struct precheck_profile *profile, int place[COLUMN_COUNT],
                            const struct precheck_profile **author, struct buf *missing);

#endif
