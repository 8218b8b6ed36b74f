/* Writing the two result files. */
#define _GNU_SOURCE
#include "task/precision/write.h"
#include "base/stamp.h"
#include "report/writer.h"
#include "task/precision/number.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_SECONDS = 10000 };

static const char *const stems[FILE_COUNT] = {[FILE_DETAILS] = "api_precision_compare_details",
                                              [FILE_RESULT] = "api_precision_compare_result"};

static enum plumb_code begin_file(struct precision_writer *writer, int i, struct plumb_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s.csv", writer->folder, stems[i]) < 0)
        return plumb_no_memory(err);
    enum plumb_code code = output_open(&writer->files[i].output, path, err);
    free(path);
    if (code)
        return code;
    struct sink *sink = malloc(sizeof *sink);
    int fd = sink ? dup(writer->files[i].output.fd) : -1;
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out) {
        if (fd >= 0)
            close(fd);
        free(sink);
        return plumb_no_memory(err);
    }
    sink->out = out;
    sink->error = 0;
    sink->used = 0;
    writer->files[i].sink = sink;
    return PLUMB_OK;
}

static void end_row(const struct precision_writer *writer, struct sink *sink)
{
    sink_text(sink, writer->dialect->end);
}

static void write_headers(struct precision_writer *writer)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        struct sink *sink = writer->files[i].sink;
        size_t columns = i == FILE_DETAILS ? FIELD_COUNT : 4;
        const char *const *titles =
            i == FILE_DETAILS ? writer->dialect->fields : writer->dialect->results;
        sink_text(sink, writer->dialect->mark);
        for (size_t column = 0; column < columns; column++) {
            if (column)
                sink_char(sink, ',');
            csv_write_text(sink, titles[column]);
        }
        if (writer->opinions)
            sink_text(sink,
                      i == FILE_DETAILS ? ",Verdict,Why,GPU Verdict,GPU Why" : ",Verdict,Why");
        end_row(writer, sink);
    }
}

enum plumb_code precision_writer_open(struct precision_writer *writer, const char *folder,
                                      const struct precheck_dialect *dialect, bool opinions,
                                      struct plumb_error *err)
{
    *writer = (struct precision_writer){.dialect = dialect, .folder = folder, .opinions = opinions};
    enum plumb_code code = PLUMB_OK;
    for (int i = 0; i < FILE_COUNT && !code; i++)
        code = begin_file(writer, i, err);
    if (code)
        precision_writer_close(writer);
    else
        write_headers(writer);
    return code;
}

static void write_cell(struct precision_writer *writer, struct sink *sink, struct csv_cell cell)
{
    writer->text.size = 0;
    buf_append(&writer->text, cell.text, cell.length);
    if (!writer->text.failed)
        csv_write_text(sink, writer->text.data);
}

static void write_blank(const struct precision_writer *writer, struct sink *sink)
{
    sink_text(sink, writer->dialect->blank);
}

static void write_verdict(const struct precision_writer *writer, struct sink *sink,
                          enum verdict verdict)
{
    if (verdict == VERDICT_NONE)
        write_blank(writer, sink);
    else
        sink_text(sink, precision_verdict_text(verdict));
}

static void write_opinions(struct precision_writer *writer, struct sink *sink,
                           const struct opinions *opinions)
{
    const struct csv_cell cells[] = {opinions->cells[OPINION_VERDICT], opinions->cells[OPINION_WHY],
                                     opinions->other_cells[OPINION_VERDICT],
                                     opinions->other_cells[OPINION_WHY]};
    for (size_t k = 0; k < sizeof cells / sizeof *cells && writer->opinions; k++) {
        sink_char(sink, ',');
        if (opinions->asked)
            write_cell(writer, sink, cells[k]);
    }
}

void precision_write_details(struct precision_writer *writer, struct csv_cell name,
                             const struct judged *judged, const struct opinions *opinions)
{
    struct sink *sink = writer->files[FILE_DETAILS].sink;
    write_cell(writer, sink, name);
    for (int i = FIELD_NAME + 1; i < FIELD_RESULT; i++) {
        const struct field *field = &judged->fields[i];
        char number[FIXED_BYTES];
        sink_char(sink, ',');
        if (field->kind == FIELD_NUMBER)
            sink_write(sink, number, precision_fixed(field->number, number));
        else if (field->kind == FIELD_TEXT)
            write_cell(writer, sink, (struct csv_cell){field->text, field->length});
        else
            write_blank(writer, sink);
    }
    sink_char(sink, ',');
    write_verdict(writer, sink, judged->verdict);
    sink_char(sink, ',');
    if (judged->standard < 0)
        write_blank(writer, sink);
    else
        sink_text(sink, writer->dialect->standards[judged->standard]);
    sink_char(sink, ',');
    if (judged->message->size)
        csv_write_text(sink, judged->message->data);
    write_opinions(writer, sink, opinions);
    end_row(writer, sink);
}

void precision_write_result(struct precision_writer *writer, struct csv_cell name,
                            enum verdict forward, enum verdict backward, struct csv_cell message,
                            const char *word, struct csv_cell why)
{
    struct sink *sink = writer->files[FILE_RESULT].sink;
    write_cell(writer, sink, name);
    sink_char(sink, ',');
    write_verdict(writer, sink, forward);
    sink_char(sink, ',');
    write_verdict(writer, sink, backward);
    sink_char(sink, ',');
    write_cell(writer, sink, message);
    if (writer->opinions) {
        sink_char(sink, ',');
        sink_text(sink, word);
        sink_char(sink, ',');
        write_cell(writer, sink, why);
    }
    end_row(writer, sink);
}

static enum plumb_code finish(struct precision_writer *writer, int i, struct plumb_error *err)
{
    struct sink *sink = writer->files[i].sink;
    enum plumb_code code = sink_finish(sink, err);
    if (fclose(sink->out) != 0 && !code)
        code = plumb_fail(err, PLUMB_E_IO, "cannot write: %s", strerror(errno));
    free(sink);
    writer->files[i].sink = NULL;
    if (code)
        plumb_error_in_file(err, writer->files[i].output.path);
    else
        code = output_end(&writer->files[i].output, true, err);
    return code;
}

static void forget_paths(struct precision_writer *writer)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        free(writer->files[i].path);
        writer->files[i].path = NULL;
    }
}

/* Gives both files the names of a second. *taken when one was there already. */
static enum plumb_code claim_second(struct precision_writer *writer, const char *stamp, bool *taken,
                                    struct plumb_error *err)
{
    *taken = false;
    for (int i = 0; i < FILE_COUNT; i++)
        if (asprintf(&writer->files[i].path, "%s/%s_%s.csv", writer->folder, stems[i], stamp) < 0) {
            writer->files[i].path = NULL;
            return plumb_no_memory(err);
        }
    for (int i = 0; i < FILE_COUNT; i++) {
        if (output_claim(writer->files[i].output.temp, writer->files[i].path))
            continue;
        *taken = errno == EEXIST;
        enum plumb_code code = *taken ? PLUMB_OK
                                      : plumb_fail(err, PLUMB_E_IO, "cannot write %s: %s",
                                                   writer->files[i].path, strerror(errno));
        for (int k = 0; k < i; k++)
            rename(writer->files[k].path, writer->files[k].output.temp);
        return code;
    }
    for (int i = 0; i < FILE_COUNT; i++) {
        free(writer->files[i].output.temp);
        writer->files[i].output.temp = NULL;
    }
    return PLUMB_OK;
}

/* The names of a second that is taken are never touched; the next free one is used at once, since
 * nobody reads more into these names than their order. */
static enum plumb_code claim(struct precision_writer *writer, struct plumb_error *err)
{
    time_t now = time(NULL);
    for (int i = 0; i < MAX_SECONDS; i++, now++) {
        char stamp[STAMP_BYTES];
        bool taken = false;
        enum plumb_code code = stamp_write(now, false, stamp, err);
        if (!code)
            code = claim_second(writer, stamp, &taken, err);
        if (code || !taken)
            return code;
        forget_paths(writer);
    }
    return plumb_fail(err, PLUMB_E_IO, "%s: too many result files of these seconds",
                      writer->folder);
}

enum plumb_code precision_writer_commit(struct precision_writer *writer, struct plumb_error *err)
{
    enum plumb_code code = writer->text.failed ? plumb_no_memory(err) : PLUMB_OK;
    for (int i = 0; i < FILE_COUNT && !code; i++)
        code = finish(writer, i, err);
    return code ? code : claim(writer, err);
}

void precision_writer_close(struct precision_writer *writer)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        if (writer->files[i].sink) {
            fclose(writer->files[i].sink->out);
            free(writer->files[i].sink);
        }
        output_discard(&writer->files[i].output);
    }
    forget_paths(writer);
    buf_free(&writer->text);
    *writer = (struct precision_writer){0};
}
