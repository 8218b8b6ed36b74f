/* Going on where an earlier run stopped. */
#define _GNU_SOURCE
#include "base/csv.h"
#include "task/precheck/journal.h"
#include "task/precheck/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of the two files as it was found. */
struct old_file {
    const char *path;
    int fd;
    char *text;
    size_t size;       /* of text */
    size_t rows;       /* bytes up to the end of the last whole row */
    size_t keep;       /* bytes that stay */
    struct buf header; /* as this dialect has it */
};

static enum plumb_code fail(const struct old_file *file, const char *why, struct plumb_error *err)
{
    plumb_fail(err, PLUMB_E_IO, "%s", why);
    plumb_error_in_file(err, file->path);
    return PLUMB_E_IO;
}

static enum plumb_code fail_errno(const struct old_file *file, const char *what,
                                  struct plumb_error *err)
{
    plumb_fail(err, PLUMB_E_IO, "%s: %s", what, strerror(errno));
    plumb_error_in_file(err, file->path);
    return PLUMB_E_IO;
}

static enum plumb_code open_old(struct old_file *file, int more, struct plumb_error *err)
{
    struct stat info;
    file->fd = open(file->path, O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | more);
    if (file->fd < 0)
        return fail_errno(file, "cannot go on with it", err);
    if (fstat(file->fd, &info) || !S_ISREG(info.st_mode))
        return fail(file, "no regular file", err);
    return PLUMB_OK;
}

static enum plumb_code read_old(struct old_file *file, struct plumb_error *err)
{
    struct stat info;
    if (fstat(file->fd, &info))
        return fail_errno(file, "cannot read", err);
    file->text = malloc((size_t)info.st_size + 1);
    if (!file->text)
        return plumb_no_memory(err);
    while (file->size < (size_t)info.st_size) {
        const ssize_t n = pread(file->fd, file->text + file->size,
                                (size_t)info.st_size - file->size, (off_t)file->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno(file, "cannot read", err);
        if (n == 0)
            break;
        file->size += (size_t)n;
    }
    return PLUMB_OK;
}

/* Finds the whole rows: those that end in a newline outside quotes. */
static void find_rows(struct old_file *file)
{
    bool quoted = false;
    for (size_t k = 0; k < file->size; k++) {
        if (file->text[k] == '"')
            quoted = !quoted;
        else if (file->text[k] == '\n' && !quoted)
            file->rows = k + 1;
    }
}

/* The file must begin with its header, or end within it: then it starts over. */
typedef void write_header(struct buf *out, const struct precheck_dialect *dialect, bool judged);

/* Says what is wrong with a file that does not begin as it should. */
static enum plumb_code refuse_header(const struct old_file *file, write_header *write,
                                     const struct journal *journal, struct plumb_error *err)
{
    for (size_t k = 0; journal->others[k / 2]; k++) {
        struct buf header = {0};
        const struct precheck_dialect *dialect = journal->others[k / 2]->files;
        write(&header, dialect, k % 2);
        const bool failed = header.failed;
        const bool theirs = !failed && file->size >= header.size &&
                            memcmp(file->text, header.data, header.size) == 0;
        buf_free(&header);
        if (failed)
            return plumb_no_memory(err);
        if (theirs)
            return fail(file,
                        dialect == journal->dialect
                            ? "written with another --verdict; give the same as then"
                            : "written under other rules; give the same --rules as then",
                        err);
    }
    return fail(file, "its first line is not that of a table of this check", err);
}

static enum plumb_code check_header(struct old_file *file, write_header *write,
                                    const struct journal *journal, struct plumb_error *err)
{
    write(&file->header, journal->dialect, journal->judged_by != NULL);
    if (file->header.failed)
        return plumb_no_memory(err);
    const size_t size = file->size < file->header.size ? file->size : file->header.size;
    if (memcmp(file->text, file->header.data, size) == 0) {
        file->keep = size == file->header.size ? size : 0;
        return PLUMB_OK;
    }
    return refuse_header(file, write, journal, err);
}

/* "Torch.cat.0.forward.output.1" is a row of "Torch.cat.0". */
static size_t api_length(struct csv_cell name)
{
    size_t length = name.length;
    for (unsigned dots = 0; length > 0; length--)
        if (name.text[length - 1] == '.' && ++dots == 3)
            return length - 1;
    return name.length;
}

static bool is_text(struct csv_cell cell, const char *text)
{
    return strlen(text) == cell.length && memcmp(text, cell.text, cell.length) == 0;
}

static enum check_status read_status(const struct csv *csv, size_t column)
{
    for (int k = STATUS_PASS; k < STATUS_BLANK && column < csv->count; k++) {
        if (is_text(csv->cells[column], check_status_text((enum check_status)k)))
            return (enum check_status)k;
    }
    return STATUS_BLANK;
}

/* Rows come in the order of the calls, and none is left out. */
static enum plumb_code check_name(const struct journal *journal, const struct journal_calls *calls,
                                  const struct csv *csv, struct plumb_error *err)
{
    const size_t k = journal->finished;
    const struct csv_cell name = csv->cells[0];
    if (k < calls->count && rows_is_name(name, journal->dialect, calls->names[k]))
        return PLUMB_OK;
    const int shown = name.length < 200 ? (int)name.length : 200;
    const unsigned long long line = csv->row_line;
    if (k < calls->count)
        return plumb_fail(err, PLUMB_E_IO,
                          "line %llu is of %.*s, where this dump has %.200s; go on with the dump "
                          "that it was begun with, and with -f just as then",
                          line, shown, name.text, calls->names[k]);
    return plumb_fail(err, PLUMB_E_IO,
                      "line %llu is of %.*s, but this dump has no further call; go on with the "
                      "dump that it was begun with, and with -f just as then",
                      line, shown, name.text);
}

/* Fills finished, done, with where each row begins, and earlier from the first size bytes; *last is
 * where the last row begins. */
static enum plumb_code read_done(struct journal *journal, const struct journal_calls *calls,
                                 const struct old_file *file, size_t size, size_t *last,
                                 struct plumb_error *err)
{
    struct csv csv;
    map_free(&journal->done);
    arena_free(&journal->names);
    memset(journal->earlier, 0, sizeof journal->earlier);
    memset(journal->earlier_words, 0, sizeof journal->earlier_words);
    journal->finished = 0;
    csv_open(&csv, file->text, size);
    bool more = false;
    enum plumb_code code = csv_next(&csv, &more, err); /* the header */
    while (!code && more) {
        const size_t start = (size_t)(csv.at - file->text);
        if ((code = csv_next(&csv, &more, err)) || !more)
            break;
        if ((code = check_name(journal, calls, &csv, err)))
            break;
        const struct csv_cell name = csv.cells[0];
        char *copy = arena_copy(&journal->names, name.text, name.length);
        uint64_t *place = copy ? map_put(&journal->done, copy, name.length, NULL) : NULL;
        if (!place) {
            code = plumb_no_memory(err);
            break;
        }
        *place = *last = start;
        journal->finished++;
        journal->earlier[read_status(&csv, 1)][read_status(&csv, 2)]++;
        for (int k = 0; k < PLUMB_WORDS && journal->judged_by && csv.count > 4; k++)
            journal->earlier_words[k] += is_text(csv.cells[4], plumb_word_text((enum plumb_word)k));
    }
    csv_close(&csv);
    if (code)
        plumb_error_in_file(err, file->path);
    return code;
}

/* What a walk over the details has seen. */
struct walk {
    size_t first_row, end; /* of the last API that has a result row; end is 0 when there is none */
    size_t result_row;     /* its result row */
    size_t name_length;    /* its name is at first_row */
    size_t unfinished;     /* APIs behind it that have none */
    const char *name;      /* of the last of those */
    bool mixed;            /* no run writes such files */
};

/* False when out of memory. */
static bool see_row(struct journal *journal, struct walk *walk, struct csv_cell row, size_t start,
                    size_t end)
{
    const size_t length = api_length(row);
    const uint64_t *place = map_get(&journal->done, row.text, length);
    if (!place) {
        if (walk->name && strlen(walk->name) == length && memcmp(walk->name, row.text, length) == 0)
            return true;
        walk->unfinished++;
        walk->name = arena_copy(&journal->names, row.text, length);
        return walk->name != NULL;
    }
    walk->mixed |= walk->unfinished > 0 || (walk->end && *place < walk->result_row);
    if (!walk->end || *place != walk->result_row) {
        walk->first_row = start;
        walk->result_row = (size_t)*place;
        walk->name_length = length;
    }
    walk->end = end;
    return true;
}

static enum plumb_code walk_details(struct journal *journal, const struct old_file *file,
                                    struct walk *walk, struct plumb_error *err)
{
    struct csv csv;
    csv_open(&csv, file->text, file->rows);
    bool more = false;
    enum plumb_code code = csv_next(&csv, &more, err); /* the header */
    while (!code && more) {
        const size_t start = (size_t)(csv.at - file->text);
        if ((code = csv_next(&csv, &more, err)) || !more)
            break;
        if (journal->judged_by && !is_text(csv.cells[csv.count - 1], journal->judged_by))
            code = plumb_fail(err, PLUMB_E_IO,
                              "line %llu is judged by \"%.*s\", not by \"%s\"; give --seed, "
                              "--arithmetic and the version of plumb as then",
                              (unsigned long long)csv.row_line,
                              (int)(csv.cells[csv.count - 1].length % 256),
                              csv.cells[csv.count - 1].text, journal->judged_by);
        else if (!see_row(journal, walk, csv.cells[0], start, (size_t)(csv.at - file->text)))
            code = plumb_no_memory(err);
    }
    csv_close(&csv);
    if (code)
        plumb_error_in_file(err, file->path);
    return code;
}

/* Decides what stays. Details are written first, so after a kill they are ahead of the results;
 * when they are behind (the power failed), the last API that has any is redone, and what follows
 * it. */
static enum plumb_code choose(struct journal *journal, const struct journal_calls *calls,
                              struct old_file *result, struct old_file *details,
                              struct plumb_error *err)
{
    struct walk walk = {0};
    size_t last = 0;
    enum plumb_code code =
        read_done(journal, calls, result, result->keep ? result->rows : 0, &last, err);
    if (!code && details->keep)
        code = walk_details(journal, details, &walk, err);
    if (code)
        return code;
    if (walk.mixed || (!walk.end && walk.unfinished > 1))
        return fail(details, "its rows are not those of the result file to go on with", err);
    if (!walk.end)
        return read_done(journal, calls, result, result->keep, &last, err);
    /* The torn row may be one of that API's own. */
    const char *torn = details->text + details->rows, *name = details->text + walk.first_row;
    const size_t tail = details->size - details->rows;
    const size_t least = tail < walk.name_length ? tail : walk.name_length;
    const bool behind =
        !walk.unfinished && (last != walk.result_row || (tail && memcmp(torn, name, least) == 0));
    result->keep = behind ? walk.result_row : result->rows;
    details->keep = behind ? walk.first_row : walk.end;
    return behind ? read_done(journal, calls, result, result->keep, &last, err) : PLUMB_OK;
}

/* accuracy_checking_result_<14 digits>.csv */
static enum plumb_code take_names(struct journal *journal, const char *result_path,
                                  struct plumb_error *err)
{
    static const char start[] = "accuracy_checking_result_", end[] = ".csv";
    const char *slash = strrchr(result_path, '/');
    const char *name = slash ? slash + 1 : result_path;
    const size_t lead = sizeof start - 1;
    if (strlen(name) != lead + 14 + sizeof end - 1 || memcmp(name, start, lead) != 0 ||
        strspn(name + lead, "0123456789") != 14 || strcmp(name + lead + 14, end) != 0)
        return plumb_fail(err, PLUMB_E_ARG,
                          "'%s' is not the name of a result to resume; those are called "
                          "accuracy_checking_result_YYYYmmddHHMMSS.csv",
                          name);
    memcpy(journal->stamp, name + lead, 14);
    const int folder = (int)(name - result_path);
    if ((size_t)folder > sizeof journal->result_path - 64)
        return plumb_fail(err, PLUMB_E_ARG, "the path of the result is too long");
    snprintf(journal->result_path, sizeof journal->result_path, "%s", result_path);
    snprintf(journal->details_path, sizeof journal->details_path,
             "%.*saccuracy_checking_details_%s.csv", folder, result_path, journal->stamp);
    return PLUMB_OK;
}

static enum plumb_code cut(const struct old_file *file, struct plumb_error *err)
{
    if (file->keep < file->size && ftruncate(file->fd, (off_t)file->keep))
        return fail_errno(file, "cannot cut off the torn end", err);
    return file->keep ? PLUMB_OK : journal_write(file->fd, file->path, &file->header, err);
}

static enum plumb_code take_up(struct journal *journal, const struct journal_calls *calls,
                               struct old_file *result, struct old_file *details,
                               struct plumb_error *err)
{
    enum plumb_code code = check_header(result, rows_result_header, journal, err);
    if (!code)
        code = check_header(details, rows_details_header, journal, err);
    if (!code)
        code = choose(journal, calls, result, details, err);
    /* The result first: at no moment has it rows whose details are gone. */
    if (!code)
        code = cut(result, err);
    return code ? code : cut(details, err);
}

enum plumb_code journal_resume(struct journal *journal, const char *result_path,
                               const struct precheck_profile *const *others,
                               const struct precheck_dialect *dialect, const char *judged_by,
                               const struct journal_calls *calls, struct plumb_error *err)
{
    *journal = (struct journal){
        .result = -1, .details = -1, .dialect = dialect, .judged_by = judged_by, .others = others};
    enum plumb_code code = take_names(journal, result_path, err);
    if (code)
        return code;
    struct old_file result = {.path = journal->result_path, .fd = -1};
    struct old_file details = {.path = journal->details_path, .fd = -1};
    code = open_old(&result, 0, err);
    if (!code)
        code = open_old(&details, O_NOFOLLOW, err); /* nobody named that one */
    journal->result = result.fd;
    journal->details = details.fd;
    if (!code)
        code = journal_lock(journal, err);
    if (!code)
        code = read_old(&result, err);
    if (!code)
        code = read_old(&details, err);
    if (!code) {
        find_rows(&result);
        find_rows(&details);
        code = take_up(journal, calls, &result, &details, err);
    }
    free(result.text);
    free(details.text);
    buf_free(&result.header);
    buf_free(&details.header);
    return code;
}
