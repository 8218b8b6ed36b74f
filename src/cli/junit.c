/* --format junit: rows as the cases of a test suite, on stdout. */
#include "cli/junit.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum plumb_code junit_print(const char *suite, const struct plumb_table *table,
                            const unsigned char *moods, struct plumb_error *err)
{
    char *text = plumb_junit_text(suite, table, moods, cli_seconds());
    if (!text)
        return plumb_no_memory(err);
    cli_print(text);
    free(text);
    return PLUMB_OK;
}

enum plumb_code junit_comparison(const struct plumb_comparison *comparison, struct plumb_error *err)
{
    const size_t rows = plumb_table_rows(comparison->table);
    unsigned char *moods = malloc(rows + 1);
    if (!moods)
        return plumb_no_memory(err);
    for (size_t row = 0; row < rows; row++)
        moods[row] =
            plumb_table_severity(comparison->table, row) == PLUMB_FAILED ? PLUMB_MOOD_BAD
            : comparison->outcomes &&
                    plumb_trouble_mood(comparison->outcomes[row].trouble) == PLUMB_MOOD_UNSEEN
                ? PLUMB_MOOD_UNSEEN
                : PLUMB_MOOD_GOOD;
    const enum plumb_code code = junit_print("plumb.compare", comparison->table, moods, err);
    free(moods);
    return code;
}

/* A row with one direction that was skipped and one that passes, passes. */
static bool has_pass(const struct plumb_table *table, size_t row)
{
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_TEXT && strcasecmp(cell->as.text, "pass") == 0 &&
            strstr(plumb_table_column(table, k)->title, "Success"))
            return true;
    }
    return false;
}

enum plumb_code junit_words(const char *suite, const struct plumb_table *table,
                            enum plumb_deciding by, struct plumb_error *err)
{
    unsigned char *moods = malloc(plumb_table_rows(table) + 1);
    if (!moods || !plumb_report_moods(table, by, moods)) {
        free(moods);
        return plumb_no_memory(err);
    }
    for (size_t row = 0; row < plumb_table_rows(table) && by != PLUMB_BY_EXPECTED; row++)
        if (moods[row] == PLUMB_MOOD_UNSEEN && has_pass(table, row))
            moods[row] = PLUMB_MOOD_GOOD;
    const enum plumb_code code = junit_print(suite, table, moods, err);
    free(moods);
    return code;
}
