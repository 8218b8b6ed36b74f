/* --format junit: rows as the cases of a test suite, on stdout. */
#ifndef CLI_JUNIT_H
#define CLI_JUNIT_H

#include "cli/cli.h"
#include "plumb/compare.h"
#include "plumb/junit.h"

/* Prints a table with what became of each row. Seconds count from the start of the program. */
enum plumb_code junit_print(const char *suite, const struct plumb_table *table,
                            const unsigned char *moods, struct plumb_error *err);

/* The same for a comparison, while its table is whole. */
enum plumb_code junit_comparison(const struct plumb_comparison *comparison,
                                 struct plumb_error *err);

/* The same for a table with words (plumb_report_moods). */
enum plumb_code junit_words(const char *suite, const struct plumb_table *table,
                            enum plumb_deciding by, struct plumb_error *err);

#endif
