/* Tables to streams and to files. */
#define _GNU_SOURCE
#include "base/output.h"
#include "report/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum plumb_code write_function(const struct plumb_table *, const struct plumb_table_look *,
                                       struct sink *);

static const struct {
    const char *ending;
    write_function *write; /* NULL for what needs a file */
} formats[] = {
    [PLUMB_TABLE_BOX] = {".txt", box_write},    [PLUMB_TABLE_CSV] = {".csv", csv_write},
    [PLUMB_TABLE_JSON] = {".json", json_write}, [PLUMB_TABLE_MARKDOWN] = {".md", markdown_write},
    [PLUMB_TABLE_XLSX] = {".xlsx", NULL},
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };
_Static_assert(FORMAT_COUNT == PLUMB_TABLE_XLSX + 1, "a row for each format");

const char *cell_shown(const struct plumb_cell *cell, const struct plumb_column *column,
                       char scratch[NUMBER_BYTES])
{
    if (cell->type != PLUMB_CELL_REAL)
        return cell_exact(cell, column, scratch);
    number_shown(cell->as.real, column->style, scratch);
    return scratch;
}

const char *cell_exact(const struct plumb_cell *cell, const struct plumb_column *column,
                       char scratch[NUMBER_BYTES])
{
    switch (cell->type) {
    case PLUMB_CELL_TEXT:
        return cell->as.text;
    case PLUMB_CELL_INT:
        number_integer(cell->as.integer, scratch);
        return scratch;
    case PLUMB_CELL_REAL:
        number_exact(cell->as.real, column->style == PLUMB_STYLE_REPR, scratch);
        return scratch;
    case PLUMB_CELL_EMPTY:
        break;
    }
    return "";
}

enum plumb_code plumb_table_print(const struct plumb_table *table, enum plumb_table_format format,
                                  const struct plumb_table_look *look, FILE *out,
                                  struct plumb_error *err)
{
    static const struct plumb_table_look usual = {0};
    if ((unsigned)format >= FORMAT_COUNT || !formats[format].write)
        return plumb_fail(err, PLUMB_E_ARG,
                          "this format cannot go to a stream; give a file name for it");
    struct sink sink;
    sink.out = out;
    sink.error = 0;
    sink.used = 0;
    if (formats[format].write(table, look ? look : &usual, &sink) != PLUMB_OK)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while writing the table");
    return sink_finish(&sink, err);
}

bool plumb_table_format_of(const char *path, enum plumb_table_format *format)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    for (size_t i = 0; dot && i < FORMAT_COUNT; i++) {
        if (strcasecmp(dot, formats[i].ending) == 0) {
            *format = (enum plumb_table_format)i;
            return true;
        }
    }
    return false;
}

static enum plumb_code fail_errno(struct plumb_error *err, const char *path, const char *what)
{
    plumb_fail(err, PLUMB_E_IO, "cannot %s: %s", what, strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

/* What goes into a file; more than one sheet only into a workbook. */
struct content {
    const struct plumb_sheet *sheets;
    size_t count;
    enum plumb_table_format format;
    const struct plumb_table_look *look;
};

/* Writes the content into fd, which stays open. name is where fd is. */
static enum plumb_code write_into(const struct content *content, int fd, const char *name,
                                  struct plumb_error *err)
{
    if (content->format == PLUMB_TABLE_XLSX)
        return xlsx_write(content->sheets, content->count, name, err);
    int own = dup(fd);
    FILE *out = own < 0 ? NULL : fdopen(own, "w");
    if (!out) {
        if (own >= 0)
            close(own);
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory while writing the table");
    }
    enum plumb_code code =
        plumb_table_print(content->sheets->table, content->format, content->look, out, err);
    if (fclose(out) != 0 && code == PLUMB_OK)
        code = plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(errno));
    return code;
}

/* Devices and pipes are written in place: nothing may be renamed over them. */
static enum plumb_code save_in_place(const struct content *content, const char *path,
                                     struct plumb_error *err)
{
    if (content->format == PLUMB_TABLE_XLSX) {
        plumb_fail(err, PLUMB_E_ARG, "a workbook needs a regular file");
        plumb_error_in_file(err, path);
        return PLUMB_E_ARG;
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(err, path, "open it");
    enum plumb_code code = write_into(content, fd, path, err);
    if (close(fd) != 0 && code == PLUMB_OK)
        code = fail_errno(err, path, "write it");
    if (code != PLUMB_OK)
        plumb_error_in_file(err, path);
    return code;
}

static enum plumb_code save(const struct content *content, const char *path,
                            struct plumb_error *err)
{
    struct stat old;
    bool exists = stat(path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return fail_errno(err, path, "write it");
    }
    if (exists && !S_ISREG(old.st_mode))
        return save_in_place(content, path, err);

    struct output out;
    char *final = exists ? realpath(path, NULL) : strdup(path); /* a link stays a link */
    if (!final)
        return fail_errno(err, path, "find it");
    enum plumb_code code = output_open(&out, final, err);
    if (!code) {
        if (exists)
            (void)!fchmod(out.fd, old.st_mode & 07777);
        code = write_into(content, out.fd, out.temp, err);
        if (code)
            output_discard(&out);
        else
            code = output_commit(&out, true, err);
        if (!code)
            (void)output_sync_folder(final); /* best effort */
    }
    if (code != PLUMB_OK)
        plumb_error_in_file(err, path);
    free(final);
    return code;
}

enum plumb_code plumb_table_save(const struct plumb_table *table, const char *path,
                                 enum plumb_table_format format,
                                 const struct plumb_table_look *look, struct plumb_error *err)
{
    struct plumb_sheet sheet = {.name = "Result", .table = table};
    return save(&(struct content){&sheet, 1, format, look}, path, err);
}

enum plumb_code plumb_workbook_save(const struct plumb_sheet *sheets, size_t count,
                                    const char *path, struct plumb_error *err)
{
    if (!count)
        return plumb_fail(err, PLUMB_E_ARG, "a workbook needs a sheet");
    return save(&(struct content){sheets, count, PLUMB_TABLE_XLSX, NULL}, path, err);
}
