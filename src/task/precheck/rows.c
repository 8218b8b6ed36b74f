/* Rows as text. */
#include "task/precheck/rows.h"

#include <string.h>

static const char *protection(const struct precheck_dialect *dialect, const char *text)
{
    return dialect->guards_formulas && csv_is_formula(text) ? "'" : "";
}

static void put_cell(struct buf *out, const struct precheck_dialect *dialect, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        buf_text(out, protection(dialect, text));
        buf_text(out, text);
        return;
    }
    buf_text(out, "\"");
    buf_text(out, protection(dialect, text));
    for (const char *c = text; *c; c++)
        buf_append(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    buf_text(out, "\"");
}

static void put_next(struct buf *out, const struct precheck_dialect *dialect, const char *text)
{
    buf_text(out, ",");
    put_cell(out, dialect, text ? text : " ");
}

bool rows_is_name(struct csv_cell cell, const struct precheck_dialect *dialect, const char *name)
{
    const char *quote = protection(dialect, name);
    const size_t before = strlen(quote), length = strlen(name);
    return cell.length == before + length && memcmp(cell.text, quote, before) == 0 &&
           memcmp(cell.text + before, name, length) == 0;
}

static void end_row(struct buf *out, const struct precheck_dialect *dialect)
{
    buf_text(out, dialect->end);
}

void rows_result_header(struct buf *out, const struct precheck_dialect *dialect, bool judged)
{
    buf_text(out, dialect->mark);
    buf_text(out, "API name,Forward Test Success,Backward Test Success,Message");
    if (judged)
        buf_text(out, ",Verdict,Why");
    end_row(out, dialect);
}

void rows_details_header(struct buf *out, const struct precheck_dialect *dialect, bool judged)
{
    buf_text(out, dialect->mark);
    for (size_t k = 0; k < CELL_COUNT + 6; k++) {
        if (k)
            buf_text(out, ",");
        put_cell(out, dialect, dialect->details[k]);
    }
    if (judged)
        buf_text(out, ",Verdict,Why,Judged by");
    end_row(out, dialect);
}

void rows_details(struct buf *out, const struct precheck_dialect *dialect,
                  const struct details_row *row)
{
    put_cell(out, dialect, row->name);
    put_next(out, dialect, row->bench_dtype);
    put_next(out, dialect, row->device_dtype);
    put_next(out, dialect, row->shape);
    for (size_t k = 0; k < CELL_COUNT; k++)
        put_next(out, dialect, row->cell[k]);
    put_next(out, dialect, check_status_text(row->status));
    put_next(out, dialect, row->message ? row->message : "");
    if (row->verdict) {
        put_next(out, dialect, row->verdict);
        put_next(out, dialect, row->why ? row->why : "");
        put_next(out, dialect, row->judged_by);
    }
    end_row(out, dialect);
}

void rows_result(struct buf *out, const struct precheck_dialect *dialect,
                 const struct journal_entry *entry)
{
    put_cell(out, dialect, entry->name);
    put_next(out, dialect, check_status_text(entry->forward));
    put_next(out, dialect, check_status_text(entry->backward));
    if (!dialect->message_if_skipped || entry->forward == STATUS_SKIP ||
        entry->backward == STATUS_SKIP)
        put_next(out, dialect, entry->message ? entry->message : "");
    if (entry->verdict) {
        put_next(out, dialect, entry->verdict);
        put_next(out, dialect, entry->why ? entry->why : "");
    }
    end_row(out, dialect);
}
