/* An Excel workbook, written row by row in constant memory. Numbers get the 16 digits that the
 * library prints; Excel itself shows 15. */
#define _GNU_SOURCE
#include "base/buf.h"
#include "base/utf8.h"
#include "report/writer.h"
#include "report/xlsx_library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROWS_A_SHEET = 1048000, /* Excel ends at 1,048,576 */
    MAX_TEXT = 32000,       /* Excel ends at 32,767 characters a cell */
    MAX_COLUMNS = 16384,
    SHEET_NAME = 31,
    WIDEST = 80
};

enum { RED = 0xFFC7CE, YELLOW = 0xFFEB9C };

struct workbook {
    const struct xlsx_library *xlsx;
    lxw_workbook *book;
    lxw_format *header;
    lxw_format *fills[3]; /* by severity; none for normal rows */
    double *widths;       /* by column, in characters */
    struct buf scratch;
    lxw_error error; /* the first one */
};

static bool check(struct workbook *w, lxw_error error)
{
    if (w->error == LXW_NO_ERROR)
        w->error = error;
    return w->error == LXW_NO_ERROR;
}

/* XML cannot hold every string: what it cannot is replaced, and what Excel cannot is cut. Returns
 * text itself when it is fine. */
static const char *clean(struct workbook *w, const char *text)
{
    size_t characters = 0;
    bool fine = true;
    for (const char *at = text; *at && fine;) {
        struct utf8_char c = utf8_next(at);
        fine = utf8_width(c) >= 0 && ++characters <= MAX_TEXT;
        at += c.size;
    }
    if (fine)
        return text;

    w->scratch.size = 0;
    characters = 0;
    for (; *text && characters < MAX_TEXT; characters++) {
        struct utf8_char c = utf8_next(text);
        if (*text == '\n' || *text == '\t')
            buf_append(&w->scratch, text, 1);
        else if (utf8_width(c) < 0)
            buf_text(&w->scratch, UTF8_REPLACEMENT);
        else
            buf_append(&w->scratch, text, c.size);
        text += c.size;
    }
    if (*text)
        buf_text(&w->scratch, "...");
    if (w->scratch.failed) {
        check(w, LXW_ERROR_MEMORY_MALLOC_FAILED);
        return "";
    }
    return w->scratch.data;
}

static double column_width(const struct plumb_table *table, size_t column)
{
    const struct plumb_column *about = plumb_table_column(table, column);
    /* The button of the filter takes the room of about three characters of the header. */
    size_t width = utf8_text_width(about->title) + 3;
    for (size_t row = 0; row < plumb_table_rows(table) && width < WIDEST; row++) {
        char number[NUMBER_BYTES];
        size_t cell =
            utf8_text_width(cell_exact(plumb_table_cell(table, row, column), about, number));
        width = cell + 1 > width ? cell + 1 : width;
    }
    return (double)(width > WIDEST ? WIDEST : width);
}

static void write_cell(struct workbook *w, lxw_worksheet *sheet, lxw_row_t row, lxw_col_t column,
                       const struct plumb_cell *cell, lxw_format *format)
{
    char number[NUMBER_BYTES];
    switch (cell->type) {
    case PLUMB_CELL_EMPTY:
        if (format) /* the colour goes over the whole row */
            check(w, w->xlsx->worksheet_write_blank(sheet, row, column, format));
        return;
    case PLUMB_CELL_TEXT:
        check(w,
              w->xlsx->worksheet_write_string(sheet, row, column, clean(w, cell->as.text), format));
        return;
    case PLUMB_CELL_INT:
        /* Excel computes in double: a larger integer keeps its digits as a text. */
        if (cell->as.integer > INT64_C(1) << 53 || cell->as.integer < -(INT64_C(1) << 53)) {
            number_integer(cell->as.integer, number);
            check(w, w->xlsx->worksheet_write_string(sheet, row, column, number, format));
        } else {
            check(w, w->xlsx->worksheet_write_number(sheet, row, column, (double)cell->as.integer,
                                                     format));
        }
        return;
    case PLUMB_CELL_REAL:
        if (isfinite(cell->as.real)) {
            check(w, w->xlsx->worksheet_write_number(sheet, row, column, cell->as.real, format));
        } else {
            number_exact(cell->as.real, false, number);
            check(w, w->xlsx->worksheet_write_string(sheet, row, column, number, format));
        }
        return;
    }
}

/* Excel allows 31 characters in the name of a sheet, and not all of them. */
static void name_sheet(char name[SHEET_NAME + 1], const char *wanted, unsigned number)
{
    char suffix[16] = "";
    if (number > 1)
        snprintf(suffix, sizeof suffix, " %u", number);
    size_t used = 0, room = SHEET_NAME - strlen(suffix);
    for (struct utf8_char c; *wanted; wanted += c.size) {
        c = utf8_next(wanted);
        bool fine = utf8_width(c) >= 0 && !strchr("[]:*?/\\'", *wanted);
        size_t size = fine ? c.size : 1;
        if (used + size > room)
            break;
        memcpy(name + used, fine ? wanted : "_", size);
        used += size;
    }
    memcpy(name + used, suffix, strlen(suffix) + 1);
}

static void write_sheet(struct workbook *w, const struct plumb_sheet *what, unsigned number,
                        size_t first, size_t count)
{
    const struct plumb_table *table = what->table;
    lxw_col_t columns = (lxw_col_t)plumb_table_columns(table);
    char name[SHEET_NAME + 1];
    name_sheet(name, what->name, number);

    lxw_worksheet *sheet = w->xlsx->workbook_add_worksheet(w->book, name);
    if (!sheet) {
        check(w, LXW_ERROR_MEMORY_MALLOC_FAILED);
        return;
    }
    w->xlsx->worksheet_freeze_panes(sheet, 1, 0);
    if (columns)
        check(w, w->xlsx->worksheet_autofilter(sheet, 0, 0, (lxw_row_t)count,
                                               (lxw_col_t)(columns - 1)));
    for (lxw_col_t i = 0; i < columns; i++) {
        const char *title = plumb_table_column(table, i)->title;
        check(w, w->xlsx->worksheet_set_column(sheet, i, i, w->widths[i], NULL));
        check(w, w->xlsx->worksheet_write_string(sheet, 0, i, clean(w, title), w->header));
    }
    for (size_t row = 0; row < count && w->error == LXW_NO_ERROR; row++) {
        lxw_format *fill = w->fills[plumb_table_severity(table, first + row)];
        for (lxw_col_t i = 0; i < columns; i++)
            write_cell(w, sheet, (lxw_row_t)(row + 1), i, plumb_table_cell(table, first + row, i),
                       fill);
    }
    /* The library does not look at whether its temporary file took the rows. */
    if (sheet->optimize_tmpfile &&
        (fflush(sheet->optimize_tmpfile) != 0 || ferror(sheet->optimize_tmpfile)))
        check(w, LXW_ERROR_CREATING_TMPFILE);
}

static bool make_formats(struct workbook *w)
{
    static const lxw_color_t colours[] = {
        [PLUMB_SUSPICIOUS] = YELLOW,
        [PLUMB_FAILED] = RED,
    };
    w->header = w->xlsx->workbook_add_format(w->book);
    for (int i = PLUMB_SUSPICIOUS; i <= PLUMB_FAILED; i++) {
        w->fills[i] = w->xlsx->workbook_add_format(w->book);
        if (!w->fills[i])
            return false;
        w->xlsx->format_set_bg_color(w->fills[i], colours[i]);
    }
    if (!w->header)
        return false;
    w->xlsx->format_set_bold(w->header);
    w->xlsx->format_set_bottom(w->header, LXW_BORDER_THIN);
    return true;
}

static enum plumb_code report(const struct workbook *w, int saved_errno, struct plumb_error *err)
{
    const lxw_error error = w->error;
    if (error == LXW_ERROR_MEMORY_MALLOC_FAILED)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while writing the workbook");
    return plumb_fail(err, PLUMB_E_IO, "cannot write the workbook: %s (%s)",
                      saved_errno ? strerror(saved_errno) : "the stream failed",
                      w->xlsx->lxw_strerror(error));
}

/* A table too long for one sheet goes on in further ones. */
static void write_table(struct workbook *w, const struct plumb_sheet *what)
{
    size_t columns = plumb_table_columns(what->table), rows = plumb_table_rows(what->table);
    for (size_t i = 0; i < columns; i++)
        w->widths[i] = column_width(what->table, i);
    size_t first = 0;
    unsigned sheet = 0;
    do {
        size_t count = rows - first < ROWS_A_SHEET ? rows - first : ROWS_A_SHEET;
        write_sheet(w, what, ++sheet, first, count);
        first += count;
    } while (first < rows && w->error == LXW_NO_ERROR);
}

static enum plumb_code write_workbook(const struct plumb_sheet *sheets, size_t count,
                                      const char *path, const char *folder, struct plumb_error *err)
{
    size_t columns = 0;
    for (size_t i = 0; i < count; i++)
        if (plumb_table_columns(sheets[i].table) > columns)
            columns = plumb_table_columns(sheets[i].table);
    if (columns > MAX_COLUMNS)
        return plumb_fail(err, PLUMB_E_ARG,
                          "%zu columns are more than the %d of a workbook; write .csv instead",
                          columns, MAX_COLUMNS);

    struct workbook w = {.xlsx = xlsx_open(err)};
    if (!w.xlsx)
        return err->code;
    char *tmpdir = strdup(folder); /* the option is not const */
    w.widths = calloc(columns ? columns : 1, sizeof *w.widths);
    if (!tmpdir || !w.widths) {
        check(&w, LXW_ERROR_MEMORY_MALLOC_FAILED);
        goto out;
    }

    errno = 0;
    lxw_workbook_options options = {.constant_memory = 1, .tmpdir = tmpdir, .use_zip64 = 0};
    w.book = w.xlsx->workbook_new_opt(path, &options);
    if (!w.book || !make_formats(&w)) {
        check(&w, LXW_ERROR_MEMORY_MALLOC_FAILED);
        goto out;
    }
    for (size_t i = 0; i < count && w.error == LXW_NO_ERROR; i++)
        write_table(&w, &sheets[i]);
    if (w.error == LXW_NO_ERROR) {
        errno = 0;
        check(&w, w.xlsx->workbook_close(w.book)); /* frees it, come what may */
        w.book = NULL;
    }
out:;
    int saved_errno = errno;
    if (w.book)
        w.xlsx->lxw_workbook_free(w.book);
    buf_free(&w.scratch);
    free(w.widths);
    free(tmpdir);
    return w.error == LXW_NO_ERROR ? PLUMB_OK : report(&w, saved_errno, err);
}

/* The library prints numbers as the locale has them; a workbook with decimal commas is broken. */
static enum plumb_code write_plainly(const struct plumb_sheet *sheets, size_t count,
                                     const char *path, const char *folder, struct plumb_error *err)
{
    locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c_locale)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while writing the workbook");
    locale_t before = uselocale(c_locale);
    enum plumb_code code = write_workbook(sheets, count, path, folder, err);
    uselocale(before);
    freelocale(c_locale);
    return code;
}

/* What the child said before it ended. */
static enum plumb_code hear(int from, pid_t child, struct plumb_error *err)
{
    struct plumb_error said = {0};
    size_t got = 0;
    for (ssize_t n; got < sizeof said; got += (size_t)n) {
        n = read(from, (char *)&said + got, sizeof said - got);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0)
            break;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (got < sizeof said)
        return plumb_fail(err, PLUMB_E_NOMEM,
                          "cannot write the workbook: libxlsxwriter died, as it does when memory "
                          "runs out");
    return said.code ? plumb_fail(err, said.code, "%s", said.message) : PLUMB_OK;
}

/* The library does not survive every allocation that fails, so it works in a process of its own. */
static enum plumb_code write_in_child(const struct plumb_sheet *sheets, size_t count,
                                      const char *path, const char *folder, struct plumb_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return plumb_fail(err, PLUMB_E_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        struct plumb_error said = {0};
        said.code = write_plainly(sheets, count, path, folder, &said);
        _exit(write(ends[1], &said, sizeof said) != (ssize_t)sizeof said);
    }
    int reason = errno;
    close(ends[1]);
    enum plumb_code code =
        child < 0 ? plumb_fail(err, PLUMB_E_NOMEM, "cannot start a process: %s", strerror(reason))
                  : hear(ends[0], child, err);
    close(ends[0]);
    return code;
}

enum plumb_code xlsx_write(const struct plumb_sheet *sheets, size_t count, const char *path,
                           struct plumb_error *err)
{
    if (!xlsx_open(err)) /* before there is a process that could not say it as well */
        return PLUMB_E_IO;
    char *folder = NULL; /* for what the library puts aside; a dead library leaves it there */
    if (asprintf(&folder, "%s.parts", path) < 0)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while writing the workbook");
    enum plumb_code code = PLUMB_OK;
    if (mkdir(folder, 0700) != 0)
        code =
            plumb_fail(err, PLUMB_E_IO, "cannot make the folder %s: %s", folder, strerror(errno));
    if (!code)
        code = write_in_child(sheets, count, path, folder, err);
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0); /* "." and ".." are no files */
    if (dir)
        closedir(dir);
    rmdir(folder);
    free(folder);
    return code;
}
