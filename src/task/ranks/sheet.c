/* Rows of a worksheet, from the events of its XML. */
#include "task/ranks/sheet.h"

#include "base/buf.h"
#include "task/ranks/xml.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 16384 };

enum type { NUMBER, SHARED, INLINE, BOOLEAN, OTHER };

struct sheet {
    size_t number;
    const struct strings *strings;
    const struct row_reader *reader;
    struct plumb_error *err;
    enum plumb_code code;

    struct row_cell *cells; /* MAX_COLUMNS, empty where the row has nothing */
    size_t *starts;         /* of the cells' texts in `text` */
    uint16_t *used;         /* columns that are not empty */
    size_t used_count, width;
    struct buf text; /* of the row's cells, each ended by a NUL */

    bool in_cell, in_text; /* in_text: characters belong to the cell */
    unsigned phonetic;     /* open elements of readings, which are no part of a text */
    enum type type;
    size_t column, next_column;
};

static bool fail(struct sheet *sheet, enum plumb_code code)
{
    sheet->code = code;
    return false;
}

static bool no_memory(struct sheet *sheet)
{
    return fail(sheet, plumb_no_memory(sheet->err));
}

/* The column of "AB12", from 0; MAX_COLUMNS when it is none. */
static size_t column_of(const char *reference)
{
    size_t column = 0;
    for (; *reference >= 'A' && *reference <= 'Z' && column <= MAX_COLUMNS; reference++)
        column = column * 26 + (size_t)(*reference - 'A') + 1;
    return column >= 1 && column <= MAX_COLUMNS ? column - 1 : MAX_COLUMNS;
}

static enum type type_of(const char *type)
{
    static const struct {
        const char *name;
        enum type type;
    } types[] = {{"n", NUMBER}, {"s", SHARED}, {"inlineStr", INLINE}, {"b", BOOLEAN}};
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].name) == 0)
            return types[i].type;
    return type ? OTHER : NUMBER;
}

static bool begin_cell(struct sheet *sheet, const char **attributes)
{
    const char *reference = xml_attribute(attributes, "r");
    sheet->column = reference ? column_of(reference) : sheet->next_column;
    if (sheet->column >= MAX_COLUMNS)
        return fail(sheet, plumb_fail(sheet->err, PLUMB_E_FORMAT,
                                      "a cell is beyond the %d columns a sheet has", MAX_COLUMNS));
    sheet->next_column = sheet->column + 1;
    sheet->type = type_of(xml_attribute(attributes, "t"));
    sheet->in_cell = true;
    sheet->starts[sheet->column] = sheet->text.size;
    return true;
}

/* Refers a cell to the text that it only names by number. */
static bool take_shared(struct sheet *sheet, struct row_cell *cell)
{
    const char *digits = sheet->text.data + sheet->starts[sheet->column];
    char *end;
    unsigned long long index = strtoull(digits, &end, 10);
    if (*digits < '0' || *digits > '9' || *end || index >= sheet->strings->count)
        return fail(sheet,
                    plumb_fail(sheet->err, PLUMB_E_FORMAT, "a cell refers to text %.20s of %zu",
                               digits, sheet->strings->count));
    cell->text = sheet->strings->at[index];
    cell->kept = true;
    return true;
}

static bool end_cell(struct sheet *sheet)
{
    struct row_cell *cell = &sheet->cells[sheet->column];
    sheet->in_cell = sheet->in_text = false;
    if (sheet->text.size == sheet->starts[sheet->column])
        return true; /* nothing in it */
    buf_append(&sheet->text, "", 1);
    if (sheet->text.failed)
        return no_memory(sheet);
    if (!cell->text)
        sheet->used[sheet->used_count++] = (uint16_t)sheet->column;
    /* The buffer may move: the row's end turns the start into a pointer. */
    *cell = (struct row_cell){.text = "", .number = sheet->type == NUMBER};
    if (sheet->type == SHARED)
        return take_shared(sheet, cell);
    if (sheet->type == BOOLEAN) {
        cell->text = sheet->text.data[sheet->starts[sheet->column]] == '1' ? "True" : "False";
        cell->kept = true;
    }
    return true;
}

static bool end_row(struct sheet *sheet)
{
    size_t width = 0;
    for (size_t i = 0; i < sheet->used_count; i++) {
        struct row_cell *cell = &sheet->cells[sheet->used[i]];
        if (!cell->kept)
            cell->text = sheet->text.data + sheet->starts[sheet->used[i]];
        if (sheet->used[i] >= width)
            width = sheet->used[i] + 1u;
    }
    if (width)
        sheet->code = sheet->reader->row(sheet->reader->context, sheet->number, sheet->cells, width,
                                         sheet->err);
    for (size_t i = 0; i < sheet->used_count; i++)
        sheet->cells[sheet->used[i]] = (struct row_cell){0};
    sheet->used_count = 0;
    sheet->text.size = 0;
    sheet->next_column = 0;
    return !sheet->code;
}

static bool on_start(void *context, const char *name, const char **attributes)
{
    struct sheet *sheet = context;
    if (strcmp(name, "c") == 0 && !sheet->in_cell)
        return begin_cell(sheet, attributes);
    if (!sheet->in_cell)
        return true;
    if (sheet->phonetic || strcmp(name, "rPh") == 0)
        sheet->phonetic++;
    sheet->in_text = !sheet->phonetic && (strcmp(name, "v") == 0 || strcmp(name, "t") == 0);
    return true;
}

static bool on_end(void *context, const char *name)
{
    struct sheet *sheet = context;
    sheet->in_text = false;
    if (sheet->phonetic)
        sheet->phonetic--;
    else if (sheet->in_cell && strcmp(name, "c") == 0)
        return end_cell(sheet);
    else if (!sheet->in_cell && strcmp(name, "row") == 0)
        return end_row(sheet);
    return true;
}

static bool on_text(void *context, const char *text, size_t length)
{
    struct sheet *sheet = context;
    if (sheet->in_text)
        buf_append(&sheet->text, text, length);
    return !sheet->text.failed || no_memory(sheet);
}

enum plumb_code sheet_read(const void *bytes, size_t size, const char *what, size_t number,
                           const struct strings *strings, const struct row_reader *reader,
                           struct plumb_error *err)
{
    struct sheet sheet = {.number = number, .strings = strings, .reader = reader, .err = err};
    sheet.cells = calloc(MAX_COLUMNS, sizeof *sheet.cells);
    sheet.starts = calloc(MAX_COLUMNS, sizeof *sheet.starts);
    sheet.used = calloc(MAX_COLUMNS, sizeof *sheet.used);
    enum plumb_code code;
    if (!sheet.cells || !sheet.starts || !sheet.used) {
        code = plumb_no_memory(err);
    } else {
        struct xml_handlers handlers = {&sheet, on_start, on_end, on_text};
        code = xml_parse(bytes, size, what, &handlers, err);
        if (sheet.code)
            code = sheet.code;
    }
    buf_free(&sheet.text);
    free(sheet.cells);
    free(sheet.starts);
    free(sheet.used);
    return code;
}
