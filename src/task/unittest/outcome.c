/* Reading a CSV file of the generated unit tests. */
#define _GNU_SOURCE
#include "task/unittest/outcome.h"

#include "base/csv.h"
#include "base/mapped.h"
#include "plumb/file.h"

#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const outcome_titles[OUTCOME_COLUMNS] = {
    "name", "op_name", "dtype", "shape", "min-val", "max-val", "is_pass", "max",
    "1e-1", "1e-2",    "1e-3",  "1e-4",  "1e-5",    "1e-6",    "1e-7",
};

bool outcome_number(const char *text, double *value)
{
    char *end;
    if (!*text || isspace((unsigned char)*text) || text[strcspn(text, "xXpP")])
        return false;
    *value = strtod(text, &end);
    return !*end;
}

double outcome_elements(const char *shape)
{
    double elements = 1;
    if (*shape++ != '[')
        return 0;
    while (*shape && *shape != ']') {
        char *end;
        double size = strtod(shape, &end);
        if (end == shape || !(size >= 0))
            return 0;
        elements *= size;
        shape = end + strspn(end, ", ");
    }
    return *shape == ']' ? elements : 0;
}

static const char *const extra_titles[OUTCOME_EXTRAS] = {"seed", "inputs", "Verdict", "Why"};

struct reader {
    struct outcome_file *file;
    struct csv csv;
    size_t place[OUTCOME_COLUMNS];
    size_t extra[OUTCOME_EXTRAS]; /* SIZE_MAX: there is none */
    size_t capacity;
    struct plumb_error *err;
};

static bool is_cell(struct csv_cell cell, const char *text)
{
    while (cell.length && cell.text[cell.length - 1] == ' ')
        cell.length--;
    while (cell.length && *cell.text == ' ') {
        cell.text++;
        cell.length--;
    }
    return cell.length == strlen(text) && memcmp(cell.text, text, cell.length) == 0;
}

/* The column of a title, or SIZE_MAX. */
static size_t find_title(const struct reader *r, const char *title)
{
    for (size_t i = 0; i < r->csv.count; i++)
        if (is_cell(r->csv.cells[i], title))
            return i;
    return SIZE_MAX;
}

static enum plumb_code read_titles(struct reader *r)
{
    bool more;
    enum plumb_code code = csv_next(&r->csv, &more, r->err);
    if (code)
        return code;
    if (!more)
        return plumb_fail(r->err, PLUMB_E_FORMAT,
                          "the file is empty; pytest --detail_compare_path=FILE writes such files");
    for (size_t column = 0; column < OUTCOME_COLUMNS; column++) {
        size_t i = find_title(r, outcome_titles[column]);
        if (i == SIZE_MAX)
            return plumb_fail(r->err, PLUMB_E_FORMAT,
                              "line 1: there is no column \"%s\"; files of pytest "
                              "--detail_compare_path=FILE have it",
                              outcome_titles[column]);
        r->place[column] = i;
    }
    for (size_t i = 0; i < OUTCOME_EXTRAS; i++)
        r->extra[i] = find_title(r, extra_titles[i]);
    r->file->has_inputs = r->extra[OUTCOME_INPUTS] != SIZE_MAX;
    r->file->judged = r->extra[OUTCOME_VERDICT] != SIZE_MAX;
    return PLUMB_OK;
}

static enum plumb_code read_number(struct reader *r, struct csv_cell cell, size_t column,
                                   double *value)
{
    char text[64];
    if (cell.length < sizeof text) {
        memcpy(text, cell.text, cell.length);
        text[cell.length] = '\0';
        if (outcome_number(text, value) &&
            (column == OUTCOME_ERROR || (*value >= 0 && *value < 1e18)))
            return PLUMB_OK;
    }
    return plumb_fail(r->err, PLUMB_E_FORMAT, "line %llu: \"%.*s\" in the column \"%s\" is no %s",
                      (unsigned long long)r->csv.row_line, cell.length < 40 ? (int)cell.length : 40,
                      cell.text, outcome_titles[column],
                      column == OUTCOME_ERROR ? "number" : "number of elements");
}

static enum plumb_code fill_row(struct reader *r, struct outcome_row *row)
{
    *row = (struct outcome_row){.line = r->csv.row_line};
    for (size_t column = 0; column < OUTCOME_POWER; column++) {
        struct csv_cell cell = r->csv.cells[r->place[column]];
        row->text[column] = arena_copy(&r->file->arena, cell.text, cell.length);
        if (!row->text[column])
            return plumb_no_memory(r->err);
    }
    for (size_t i = 0; i < OUTCOME_EXTRAS; i++) {
        if (r->extra[i] >= r->csv.count || !r->csv.cells[r->extra[i]].length)
            continue;
        struct csv_cell cell = r->csv.cells[r->extra[i]];
        row->extra[i] = arena_copy(&r->file->arena, cell.text, cell.length);
        if (!row->extra[i])
            return plumb_no_memory(r->err);
    }
    row->skipped = strcmp(row->text[OUTCOME_PASS], "skip") == 0;
    enum plumb_code code = PLUMB_OK;
    if (!row->skipped)
        code = read_number(r, r->csv.cells[r->place[OUTCOME_ERROR]], OUTCOME_ERROR, &row->error);
    for (size_t k = 0; k < OUTCOME_POWERS && !row->skipped && !code; k++)
        code = read_number(r, r->csv.cells[r->place[OUTCOME_POWER + k]], OUTCOME_POWER + k,
                           &row->counts[k]);
    return code;
}

static enum plumb_code read_row(struct reader *r)
{
    struct outcome_file *file = r->file;
    if (r->csv.count == 1 && !r->csv.cells[0].length)
        return PLUMB_OK; /* an empty line */
    for (size_t column = 0; column < OUTCOME_COLUMNS; column++)
        if (r->place[column] >= r->csv.count)
            return plumb_fail(r->err, PLUMB_E_FORMAT,
                              "line %llu: the row ends before the column \"%s\"",
                              (unsigned long long)r->csv.row_line, outcome_titles[column]);
    if (file->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 64;
        struct outcome_row *rows = realloc(file->rows, capacity * sizeof *rows);
        if (!rows)
            return plumb_no_memory(r->err);
        file->rows = rows;
        r->capacity = capacity;
    }
    struct outcome_row *row = &file->rows[file->count];
    enum plumb_code code = fill_row(r, row);
    if (code)
        return code;
    bool added;
    const char *name = row->text[OUTCOME_NAME];
    uint64_t *place = map_put(&file->names, name, strlen(name), &added);
    if (!place)
        return plumb_no_memory(r->err);
    if (!added)
        return plumb_fail(r->err, PLUMB_E_FORMAT,
                          "line %llu: the name \"%.80s\" was on line %llu already; give each run "
                          "of pytest one folder and a file of its own",
                          (unsigned long long)row->line, name,
                          (unsigned long long)file->rows[*place].line);
    *place = file->count++;
    return PLUMB_OK;
}

/* "99999-aten" before "100000-aten". */
static int by_name(const void *a, const void *b)
{
    const char *x = ((const struct outcome_row *)a)->text[OUTCOME_NAME];
    const char *y = ((const struct outcome_row *)b)->text[OUTCOME_NAME];
    size_t m = strspn(x, "0123456789"), n = strspn(y, "0123456789");
    return m != n ? (m > n) - (m < n) : strcmp(x, y);
}

/* Tests run operator by operator; people read call by call. */
static void sort_rows(struct outcome_file *file)
{
    if (file->count)
        qsort(file->rows, file->count, sizeof *file->rows, by_name);
    for (size_t i = 0; i < file->count; i++) {
        const char *name = file->rows[i].text[OUTCOME_NAME];
        *map_get(&file->names, name, strlen(name)) = i;
    }
}

enum plumb_code outcome_parse(struct outcome_file *file, const void *text, size_t size,
                              struct plumb_error *err)
{
    *file = (struct outcome_file){0};
    struct reader r = {.file = file, .err = err};
    bool more = true;
    csv_open(&r.csv, text, size);
    /* Numbers have points, whatever the program's locale says. */
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = c ? uselocale(c) : (locale_t)0;
    enum plumb_code code = read_titles(&r);
    while (!code && !(code = csv_next(&r.csv, &more, err)) && more)
        code = read_row(&r);
    if (!code)
        sort_rows(file);
    if (c) {
        uselocale(before);
        freelocale(c);
    }
    csv_close(&r.csv);
    return code;
}

enum plumb_code outcome_read(struct outcome_file *file, const char *path, struct plumb_error *err)
{
    *file = (struct outcome_file){0};
    struct mapped in;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = outcome_parse(file, in.file.data, (size_t)in.file.size, err);
    return mapped_close(&in, code, err);
}

void outcome_close(struct outcome_file *file)
{
    map_free(&file->names);
    free(file->rows);
    arena_free(&file->arena);
    *file = (struct outcome_file){0};
}
