/* Tables to streams and to files. */
#define _GNU_SOURCE
#include "base/output.h"
#include "report/parts.h"
#include "report/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *ending;
    const struct row_writer *rows; /* NULL for what needs all of them: boxes and workbooks */
} formats[] = {
    [PLUMB_TABLE_BOX] = {".txt", NULL},         [PLUMB_TABLE_CSV] = {".csv", &csv_rows},
    [PLUMB_TABLE_JSON] = {".json", &json_rows}, [PLUMB_TABLE_MARKDOWN] = {".md", &markdown_rows},
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

static void sink_begin(struct sink *sink, FILE *out)
{
    sink->out = out;
    sink->error = 0;
    sink->used = 0;
}

static bool write_all(const struct plumb_table *table, const struct row_writer *writer,
                      struct sink *sink)
{
    if (!writer->begin(table, sink) || !writer->rows(table, 0, sink))
        return false;
    sink_text(sink, writer->end);
    return true;
}

enum plumb_code plumb_table_print(const struct plumb_table *table, enum plumb_table_format format,
                                  const struct plumb_table_look *look, FILE *out,
                                  struct plumb_error *err)
{
    static const struct plumb_table_look usual = {0};
    if ((unsigned)format >= FORMAT_COUNT || format == PLUMB_TABLE_XLSX)
        return plumb_fail(err, PLUMB_E_ARG,
                          "this format cannot go to a stream; give a file name for it");
    struct sink sink;
    sink_begin(&sink, out);
    const struct row_writer *writer = formats[format].rows;
    if (writer ? !write_all(table, writer, &sink)
               : box_write(table, look ? look : &usual, &sink) != PLUMB_OK)
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

/* Begins a file that has its name only when it is whole. What is there keeps its rights, and a link
 * stays a link. *final is where it will be: malloc. */
static enum plumb_code begin_file(struct output *out, char **final, const char *path,
                                  struct plumb_error *err)
{
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    *final = exists ? realpath(path, NULL) : strdup(path);
    if (!*final)
        return fail_errno(err, path, "find it");
    const enum plumb_code code = output_open(out, *final, err);
    if (!code && exists)
        (void)!fchmod(out->fd, old.st_mode & 07777);
    return code;
}

static enum plumb_code end_file(struct output *out, const char *final, enum plumb_code code,
                                struct plumb_error *err)
{
    if (code) {
        output_discard(out);
        return code;
    }
    code = output_commit(out, true, err);
    if (!code)
        (void)output_sync_folder(final); /* best effort */
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
    char *final = NULL;
    enum plumb_code code = begin_file(&out, &final, path, err);
    if (!code)
        code = end_file(&out, final, write_into(content, out.fd, out.temp, err), err);
    if (code != PLUMB_OK)
        plumb_error_in_file(err, path);
    free(final);
    return code;
}

bool table_parts_suit(const struct table_parts *parts)
{
    struct stat old;
    if ((unsigned)parts->format >= FORMAT_COUNT || !formats[parts->format].rows)
        return false;
    return !parts->path || (stat(parts->path, &old) == 0 ? S_ISREG(old.st_mode) : errno == ENOENT);
}

/* A file without a name, which is gone with its stream; NULL with errno set. */
static FILE *open_nameless(void)
{
    const char *base = getenv("TMPDIR");
    char *name = NULL;
    if (asprintf(&name, "%s/plumb-XXXXXX", base && *base ? base : "/tmp") < 0)
        return NULL;
    const int fd = mkostemp(name, O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (fd >= 0)
        unlink(name);
    if (fd >= 0 && !file)
        close(fd);
    free(name);
    return file;
}

static enum plumb_code open_parts(struct table_parts *parts, struct plumb_error *err)
{
    if (!parts->path) {
        parts->stream = open_nameless();
        return parts->stream ? PLUMB_OK
                             : plumb_fail(err, PLUMB_E_IO, "cannot write a temporary file: %s",
                                          strerror(errno));
    }
    const enum plumb_code code = begin_file(&parts->out, &parts->final, parts->path, err);
    if (code)
        return code;
    parts->open = true;
    const int own = dup(parts->out.fd);
    parts->stream = own < 0 ? NULL : fdopen(own, "w");
    if (!parts->stream && own >= 0)
        close(own);
    return parts->stream ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code table_parts_add(struct table_parts *parts, const struct plumb_table *table,
                                struct plumb_error *err)
{
    const struct row_writer *writer = formats[parts->format].rows;
    const bool begins = !parts->stream;
    enum plumb_code code = begins ? open_parts(parts, err) : PLUMB_OK;
    if (!code) {
        struct sink sink;
        sink_begin(&sink, parts->stream);
        const bool fine =
            (!begins || writer->begin(table, &sink)) && writer->rows(table, parts->rows, &sink);
        parts->rows += plumb_table_rows(table);
        code = sink_finish(&sink, err);
        if (!fine)
            code = plumb_no_memory(err);
    }
    if (code && parts->path)
        plumb_error_in_file(err, parts->path);
    return code;
}

/* All that a nameless file holds. */
static enum plumb_code pour(FILE *from, FILE *out, bool *lost, struct plumb_error *err)
{
    char bytes[16384];
    size_t size;
    rewind(from);
    while ((size = fread(bytes, 1, sizeof bytes, from)))
        if (fwrite(bytes, 1, size, out) != size)
            break;
    if (ferror(from))
        return plumb_fail(err, PLUMB_E_IO, "cannot read a temporary file: %s", strerror(errno));
    *lost = size || fflush(out) != 0;
    return *lost ? plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(errno)) : PLUMB_OK;
}

enum plumb_code table_parts_end(struct table_parts *parts, bool keep, FILE *out, bool *lost,
                                struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    FILE *stream = parts->stream;
    if (stream && keep)
        if (fputs(formats[parts->format].rows->end, stream) == EOF || fflush(stream) != 0)
            code = plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(errno));
    if (stream && keep && !code && !parts->path)
        code = pour(stream, out, lost, err);
    if (stream && fclose(stream) != 0 && keep && !code)
        code = plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(errno));
    if (parts->open && keep)
        code = end_file(&parts->out, parts->final, code, err);
    else if (parts->open)
        output_discard(&parts->out);
    if (code && parts->final)
        plumb_error_in_file(err, parts->final);
    free(parts->final);
    *parts = (struct table_parts){0};
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
