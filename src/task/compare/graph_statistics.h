/* Rows of which at least one side was condensed: compared by statistics. */
#ifndef COMPARE_GRAPH_STATISTICS_H
#define COMPARE_GRAPH_STATISTICS_H

#include "task/compare/graph_measure.h"

/* Was this side condensed? Looks at names only. */
bool statistics_only(const struct air_side *side);

/* Of a side that was condensed: was nothing kept but its checksum? */
bool statistics_are_checksums(const struct air_side *side);

/* Fills the result of the row. payloads: those of the sides that have values, loaded by the caller;
 * the others are not looked at. */
enum plumb_code statistics_compare(const struct measurement *measurement, size_t row,
                                   const struct plumb_payload *payloads, struct plumb_error *err);

#endif
