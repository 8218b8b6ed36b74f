/* Reading details files, row by row and by name. */
#include "task/precision/read.h"

#include "base/mapped.h"
#include "task/precision/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CELL = 1 << 20, MAX_NAME = 4096, SHOWN_NAME = 120 };

/* pandas decides on types after every so many rows: a power of two by the number of columns. */
static size_t stretch_of(size_t width)
{
    size_t stretch = 1;
    while (stretch * 2 < (1 << 20) / width)
        stretch *= 2;
    return stretch;
}

static enum plumb_code fail_line(const struct details_file *file, uint64_t line, const char *what,
                                 struct plumb_error *err)
{
    plumb_fail(err, PLUMB_E_FORMAT, "line %llu: %s", (unsigned long long)line, what);
    plumb_error_in_file(err, file->path);
    return PLUMB_E_FORMAT;
}

/* Reads a row that has something on it. */
static enum plumb_code read_row(struct details_file *file, bool *more, struct plumb_error *err)
{
    struct csv *csv = &file->csv;
    for (;;) {
        enum plumb_code code = csv_next(csv, more, err);
        if (code) {
            plumb_error_in_file(err, file->path);
            return code;
        }
        if (!*more || csv->count > 1 || !precision_is_blank(csv->cells[0]))
            break;
    }
    for (size_t i = 0; i < csv->count && *more; i++)
        if (csv->cells[i].length > MAX_CELL)
            return fail_line(file, csv->row_line,
                             "a cell of more than a megabyte; this is no pre-check result", err);
    return PLUMB_OK;
}

/* The cells of the row that was just read. A short row is filled up as pandas does, but not under
 * the documented rules: there it is the end of a file that was cut off. */
static enum plumb_code take_cells(struct details_file *file, struct details_cells *row,
                                  struct plumb_error *err)
{
    const struct csv *csv = &file->csv;
    if (csv->count > file->width ||
        (csv->count < file->width && !file->profile->precision->typed_columns)) {
        char what[160];
        snprintf(what, sizeof what, "%zu cell%s, but the header has %zu; %s", csv->count,
                 csv->count == 1 ? "" : "s", file->width,
                 csv->count < file->width ? "was the file cut off?" : "is a quote missing?");
        return fail_line(file, csv->row_line, what, err);
    }
    for (int column = 0; column < COLUMN_COUNT; column++) {
        int place = file->place[column];
        row->cell[column] =
            place >= 0 && (size_t)place < csv->count ? csv->cells[place] : (struct csv_cell){0};
    }
    for (int column = 0; column < OPINION_COLUMNS; column++) {
        int place = file->opinion_place[column];
        row->opinion[column] =
            place >= 0 && (size_t)place < csv->count ? csv->cells[place] : (struct csv_cell){0};
    }
    row->line = csv->row_line;
    return PLUMB_OK;
}

/* Behind the documented columns. */
static void find_opinions(struct details_file *file)
{
    const struct csv *csv = &file->csv;
    for (int column = 0; column < OPINION_COLUMNS; column++) {
        file->opinion_place[column] = -1;
        for (size_t i = 0; i < csv->count; i++)
            if (precision_is_text(csv->cells[i], opinion_titles[column]))
                file->opinion_place[column] = (int)i;
    }
}

static enum plumb_code read_header(struct details_file *file,
                                   const struct precheck_profile *const *profiles,
                                   struct plumb_error *err)
{
    bool more;
    struct buf missing = {0};
    enum plumb_code code = read_row(file, &more, err);
    if (code)
        return code;
    if (!more)
        return fail_line(file, 1, "the file is empty", err);
    precision_columns_find(file->csv.cells, file->csv.count, profiles, file->profile, file->place,
                           &file->author, &missing);
    if (missing.failed)
        code = plumb_no_memory(err);
    else if (missing.size) {
        code = plumb_fail(err, PLUMB_E_FORMAT,
                          "line 1: missing: %.400s; an accuracy_checking_details file has them",
                          missing.data);
        plumb_error_in_file(err, file->path);
    }
    buf_free(&missing);
    find_opinions(file);
    file->width = file->csv.count;
    file->stretch = stretch_of(file->width);
    return code;
}

static enum plumb_code check_name(const struct details_file *file, const struct details_cells *row,
                                  struct plumb_error *err)
{
    struct csv_cell name = row->cell[COLUMN_NAME];
    if (name.length > MAX_NAME)
        return fail_line(file, row->line, "an API name of more than 4096 bytes", err);
    if (file->profile->precision->typed_columns)
        return PLUMB_OK;
    if (precision_is_blank(name))
        return fail_line(file, row->line, "a row without an API name", err);
    if (!details_is_formula(name))
        return PLUMB_OK;
    char what[SHOWN_NAME + 80];
    snprintf(what, sizeof what, "\"%.*s\": a name that a spreadsheet would run as a formula",
             (int)(name.length < SHOWN_NAME ? name.length : SHOWN_NAME), name.text);
    return fail_line(file, row->line, what, err);
}

static enum plumb_code note_name(struct details_file *file, const struct details_cells *row,
                                 struct plumb_error *err)
{
    struct csv_cell name = row->cell[COLUMN_NAME];
    if (name.length && !csv_is_kept(&file->csv, name) &&
        !(name.text = arena_copy(&file->arena, name.text, name.length)))
        return plumb_no_memory(err);
    bool added;
    uint64_t *place = map_put(&file->names, name.length ? name.text : "", name.length, &added);
    if (!place)
        return plumb_no_memory(err);
    if (added) {
        *place = row->number;
        return PLUMB_OK;
    }
    file->marks[*place].again = true;
    if (file->profile->precision->typed_columns)
        return PLUMB_OK;
    char what[SHOWN_NAME + 80];
    snprintf(what, sizeof what, "%.*s is there twice; which of them counts?",
             (int)(name.length < SHOWN_NAME ? name.length : SHOWN_NAME), name.text);
    return fail_line(file, row->line, what, err);
}

/* Room for the types of one more row. */
static bool grow_types(struct details_file *file, size_t rows)
{
    if (rows / file->stretch < file->stretches)
        return true;
    if (file->stretches == file->types_capacity) {
        size_t capacity = file->types_capacity ? file->types_capacity * 2 : 8;
        uint8_t *types = realloc(file->types, capacity * METRIC_COUNT);
        if (!types)
            return false;
        file->types = types;
        file->types_capacity = capacity;
    }
    memset(file->types + file->stretches++ * METRIC_COUNT, 0, METRIC_COUNT);
    return true;
}

static bool grow_marks(struct details_file *file)
{
    if (file->rows < file->marks_capacity)
        return true;
    size_t capacity = file->marks_capacity ? file->marks_capacity * 2 : 256;
    struct row_mark *marks = realloc(file->marks, capacity * sizeof *marks);
    if (!marks)
        return false;
    file->marks = marks;
    file->marks_capacity = capacity;
    return true;
}

/* Reads all rows once: for their names, and for the types of their columns. */
static enum plumb_code scan_rows(struct details_file *file, bool by_name, struct plumb_error *err)
{
    for (;;) {
        bool more;
        struct details_cells row;
        uint64_t start = (uint64_t)(file->csv.at - file->csv.start);
        enum plumb_code code = details_next(file, &row, &more, err);
        if (code || !more)
            return code;
        if (!grow_types(file, row.number))
            return plumb_no_memory(err);
        details_note_types(file, &row, file->types + (file->stretches - 1) * METRIC_COUNT);
        if (!by_name)
            continue;
        if (!grow_marks(file))
            return plumb_no_memory(err);
        file->marks[file->rows++] = (struct row_mark){.start = start};
        if ((code = note_name(file, &row, err)))
            return code;
    }
}

static enum plumb_code check_text(const struct details_file *file, struct plumb_error *err)
{
    const char *data = (const char *)file->file.data;
    const char *nul = file->file.size ? memchr(data, '\0', (size_t)file->file.size) : NULL;
    if (!nul)
        return PLUMB_OK;
    plumb_fail_at(err, PLUMB_E_FORMAT, (uint64_t)(nul - data), "a zero byte; this is no CSV text");
    plumb_error_in_file(err, file->path);
    return PLUMB_E_FORMAT;
}

enum plumb_code details_open(struct details_file *file, const char *path,
                             const struct precheck_profile *const *profiles,
                             const struct precheck_profile *profile, bool by_name,
                             struct plumb_error *err)
{
    *file = (struct details_file){.path = path, .profile = profile};
    enum plumb_code code = plumb_file_map(&file->file, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &file->file);
    csv_open(&file->csv, file->file.data, (size_t)file->file.size);
    if (!(code = check_text(file, err)) && !(code = read_header(file, profiles, err)) &&
        (by_name || profile->precision->typed_columns)) {
        struct csv after = file->csv;
        code = scan_rows(file, by_name, err);
        file->csv.at = after.at;
        file->csv.line = after.line;
        file->next = 0;
    }
    if (plumb_file_guard_leave(&guard)) {
        code = mapped_fail_shrank(err);
        plumb_error_in_file(err, path);
    }
    if (code)
        details_close(file);
    return code;
}

void details_close(struct details_file *file)
{
    csv_close(&file->csv);
    map_free(&file->names);
    free(file->marks);
    free(file->types);
    arena_free(&file->arena);
    plumb_file_unmap(&file->file);
    *file = (struct details_file){0};
}

enum plumb_code details_next(struct details_file *file, struct details_cells *row, bool *more,
                             struct plumb_error *err)
{
    enum plumb_code code = read_row(file, more, err);
    if (code || !*more)
        return code;
    row->number = file->next++;
    code = take_cells(file, row, err);
    return code ? code : check_name(file, row, err);
}

enum plumb_code details_find(struct details_file *file, struct csv_cell name,
                             struct details_cells *row, struct row_mark **mark,
                             struct plumb_error *err)
{
    const uint64_t *place = map_get(&file->names, name.length ? name.text : "", name.length);
    *mark = place ? &file->marks[*place] : NULL;
    if (!place)
        return PLUMB_OK;
    bool more;
    file->csv.at = file->csv.start + (*mark)->start;
    enum plumb_code code = read_row(file, &more, err);
    if (!code)
        code = take_cells(file, row, err);
    row->line = 0;
    row->number = (size_t)*place;
    return code;
}
