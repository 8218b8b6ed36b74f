/* Results as JUnit XML, which systems that run tests read. */
#ifndef PLUMB_JUNIT_H
#define PLUMB_JUNIT_H

#include "plumb/report.h"
#include "plumb/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A table as a test suite of that name, a case for each row: PLUMB_MOOD_BAD is a failure,
 * PLUMB_MOOD_UNSEEN is skipped, all else passes. A case has the row's column Name, API Name or
 * Call, or its first text, as its name; its Module as its class, or the suite's name where that is
 * empty; its reason as the message; and all cells as the text of a failure. What XML cannot hold is
 * replaced.
 *
 * moods: one for each row. seconds: how long all of it took; negative: not known. Single cases have
 * no time: it is not known. The caller frees the text, which is UTF-8; NULL when out of memory. */
char *plumb_junit_text(const char *suite, const struct plumb_table *table,
                       const unsigned char *moods, double seconds);

#ifdef __cplusplus
}
#endif
#endif
