/* Tables as JUnit XML: a test suite with a case for each row. */
#include "plumb/junit.h"

#include "base/buf.h"
#include "report/writer.h"
#include "report/xml.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* ---- XML ------------------------------------------------------------------------------------- */

static void put_attribute(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, " %s=\"", name);
    xml_put(out, value);
    buf_text(out, "\"");
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* The text of the first of these columns that has one. */
static const char *find_text(const struct plumb_table *table, size_t row, const char *const *titles)
{
    for (; *titles; titles++)
        for (size_t k = 0; k < plumb_table_columns(table); k++) {
            const struct plumb_cell *cell = plumb_table_cell(table, row, k);
            if (cell->type == PLUMB_CELL_TEXT && *cell->as.text &&
                strcasecmp(plumb_table_column(table, k)->title, *titles) == 0)
                return cell->as.text;
        }
    return NULL;
}

static const char *first_text(const struct plumb_table *table, size_t row)
{
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_TEXT && *cell->as.text)
            return cell->as.text;
    }
    return "";
}

static void put_cells(struct buf *out, const struct plumb_table *table, size_t row)
{
    char scratch[NUMBER_BYTES];
    for (size_t k = 0; k < plumb_table_columns(table); k++) {
        const struct plumb_column *column = plumb_table_column(table, k);
        const struct plumb_cell *cell = plumb_table_cell(table, row, k);
        if (cell->type == PLUMB_CELL_EMPTY)
            continue;
        xml_put(out, column->title);
        buf_text(out, ": ");
        xml_put(out, cell_shown(cell, column, scratch));
        buf_text(out, "\n");
    }
}

static void put_case(struct buf *out, const char *suite, const struct plumb_table *table,
                     size_t row, enum plumb_mood mood)
{
    static const char *const names[] = {"Name", "API Name", "Call", NULL},
                             *const modules[] = {"Module", NULL}, *const reasons[] = {"Why",
                                                                                      "Reason",
                                                                                      "Err_message",
                                                                                      "Message",
                                                                                      "Result",
                                                                                      NULL};
    const char *name = find_text(table, row, names), *module = find_text(table, row, modules),
               *reason = find_text(table, row, reasons);
    buf_text(out, "    <testcase");
    put_attribute(out, "name", name ? name : first_text(table, row));
    put_attribute(out, "classname", module ? module : suite);
    if (mood != PLUMB_MOOD_BAD && mood != PLUMB_MOOD_UNSEEN) {
        buf_text(out, "/>\n");
        return;
    }
    buf_printf(out, ">\n      <%s", mood == PLUMB_MOOD_BAD ? "failure" : "skipped");
    put_attribute(out, "message",
                  reason                   ? reason
                  : mood == PLUMB_MOOD_BAD ? "fails"
                                           : "not judged");
    if (mood == PLUMB_MOOD_BAD) {
        buf_text(out, ">");
        put_cells(out, table, row);
        buf_text(out, "</failure>\n    </testcase>\n");
    } else {
        buf_text(out, "/>\n    </testcase>\n");
    }
}

static void put_counts(struct buf *out, const char *suite, size_t rows, const size_t *of,
                       double seconds)
{
    put_attribute(out, "name", suite);
    buf_printf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"", rows,
               of[PLUMB_MOOD_BAD], of[PLUMB_MOOD_UNSEEN]);
    if (seconds >= 0)
        buf_printf(out, " time=\"%" PRIu64 ".%03u\"", (uint64_t)seconds,
                   (unsigned)((seconds - (double)(uint64_t)seconds) * 1000));
    buf_text(out, ">\n");
}

char *plumb_junit_text(const char *suite, const struct plumb_table *table,
                       const unsigned char *moods, double seconds)
{
    const size_t rows = plumb_table_rows(table);
    size_t of[PLUMB_MOODS] = {0};
    struct buf out = {0};
    for (size_t row = 0; row < rows; row++)
        of[moods[row] < PLUMB_MOODS ? moods[row] : PLUMB_MOOD_UNSEEN]++;
    buf_text(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    put_counts(&out, "plumb", rows, of, seconds);
    buf_text(&out, "  <testsuite");
    put_counts(&out, suite, rows, of, seconds);
    for (size_t row = 0; row < rows; row++)
        put_case(&out, suite, table, row,
                 moods[row] < PLUMB_MOODS ? (enum plumb_mood)moods[row] : PLUMB_MOOD_UNSEEN);
    buf_text(&out, "  </testsuite>\n</testsuites>\n");
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
