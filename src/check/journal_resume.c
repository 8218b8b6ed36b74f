/* Going on where an earlier run stopped. */
#define _GNU_SOURCE
#include "base/csv.h"
#include "check/journal.h"
#include "check/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct whole_file {
    char *text;
    size_t size;
};

static enum plumb_code read_file(int fd, const char *path, struct whole_file *out,
                                 struct plumb_error *err)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        plumb_fail(err, PLUMB_E_IO, "no regular file");
        plumb_error_in_file(err, path);
        return PLUMB_E_IO;
    }
    out->text = malloc((size_t)info.st_size + 1);
    if (!out->text)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    while (out->size < (size_t)info.st_size) {
        const ssize_t n =
            pread(fd, out->text + out->size, (size_t)info.st_size - out->size, (off_t)out->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            plumb_fail(err, PLUMB_E_IO, "cannot read: %s", strerror(errno));
            plumb_error_in_file(err, path);
            return PLUMB_E_IO;
        }
        if (n == 0)
            break;
        out->size += (size_t)n;
    }
    return PLUMB_OK;
}

/* Bytes up to the end of the last whole row: one that ends in a newline outside quotes. */
static size_t whole_rows(const struct whole_file *file)
{
    size_t end = 0;
    bool quoted = false;
    for (size_t k = 0; k < file->size; k++) {
        if (file->text[k] == '"')
            quoted = !quoted;
        else if (file->text[k] == '\n' && !quoted)
            end = k + 1;
    }
    return end;
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

static enum plumb_code read_done(struct journal *journal, const struct whole_file *file,
                                 size_t size, struct plumb_error *err)
{
    struct csv csv;
    csv_open(&csv, file->text, size);
    bool more = false;
    enum plumb_code code = csv_next(&csv, &more, err); /* the header */
    while (!code && more && !(code = csv_next(&csv, &more, err)) && more) {
        const struct csv_cell name = csv.cells[0];
        char *copy = arena_copy(&journal->names, name.text, name.length);
        if (!copy || !map_put(&journal->done, copy, name.length, NULL))
            code = plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
    }
    csv_close(&csv);
    plumb_error_in_file(err, journal->result_path);
    return code;
}

/* Bytes up to the end of the last row that belongs to a finished API (at least the header). */
static enum plumb_code kept_details(struct journal *journal, const struct whole_file *file,
                                    size_t size, size_t *kept, struct plumb_error *err)
{
    struct csv csv;
    csv_open(&csv, file->text, size);
    bool more = false;
    enum plumb_code code = csv_next(&csv, &more, err);
    *kept = (size_t)(csv.at - file->text);
    while (!code && more && !(code = csv_next(&csv, &more, err)) && more)
        if (map_get(&journal->done, csv.cells[0].text, api_length(csv.cells[0])))
            *kept = (size_t)(csv.at - file->text);
    csv_close(&csv);
    plumb_error_in_file(err, journal->details_path);
    return code;
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

static int open_old(const char *path, struct plumb_error *err)
{
    const int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0) {
        plumb_fail(err, PLUMB_E_IO, "cannot go on with it: %s", strerror(errno));
        plumb_error_in_file(err, path);
    }
    return fd;
}

static enum plumb_code cut(int fd, const char *path, const struct whole_file *file, size_t size,
                           struct plumb_error *err)
{
    if (size < file->size && ftruncate(fd, (off_t)size)) {
        plumb_fail(err, PLUMB_E_IO, "cannot cut off the torn end: %s", strerror(errno));
        plumb_error_in_file(err, path);
        return PLUMB_E_IO;
    }
    return PLUMB_OK;
}

/* A run that was killed before its header was whole starts over in the same files. */
static enum plumb_code write_missing_header(struct journal *journal, size_t result, size_t details,
                                            struct plumb_error *err)
{
    struct buf text = {0};
    enum plumb_code code = PLUMB_OK;
    for (int k = 0; k < 2 && !code; k++) {
        text.size = 0;
        const int fd = k ? journal->result : journal->details;
        if ((k ? result : details) > 0)
            continue;
        if (k)
            rows_result_header(&text, journal->rules);
        else
            rows_details_header(&text, journal->rules);
        if (text.failed || write(fd, text.data, text.size) != (ssize_t)text.size)
            code = plumb_fail(err, PLUMB_E_IO, "cannot write the header: %s", strerror(errno));
    }
    buf_free(&text);
    return code;
}

enum plumb_code journal_resume(struct journal *journal, const char *result_path,
                               enum check_rules rules, struct plumb_error *err)
{
    *journal = (struct journal){.result = -1, .details = -1, .rules = rules};
    struct whole_file result = {0}, details = {0};
    enum plumb_code code = take_names(journal, result_path, err);
    if (code)
        return code;
    journal->result = open_old(journal->result_path, err);
    journal->details = journal->result < 0 ? -1 : open_old(journal->details_path, err);
    if (journal->details < 0)
        return PLUMB_E_IO;
    code = read_file(journal->result, journal->result_path, &result, err);
    if (!code)
        code = read_file(journal->details, journal->details_path, &details, err);
    size_t keep_result = whole_rows(&result), keep_details = whole_rows(&details);
    if (!code)
        code = read_done(journal, &result, keep_result, err);
    if (!code && keep_details)
        code = kept_details(journal, &details, keep_details, &keep_details, err);
    if (!code)
        code = cut(journal->result, journal->result_path, &result, keep_result, err);
    if (!code)
        code = cut(journal->details, journal->details_path, &details, keep_details, err);
    if (!code)
        code = write_missing_header(journal, keep_result, keep_details, err);
    free(result.text);
    free(details.text);
    return code;
}
