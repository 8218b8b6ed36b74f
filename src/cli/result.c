#define _GNU_SOURCE
#include "cli/result.h"

#include "base/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum plumb_code result_folder(const char *folder, struct plumb_error *err)
{
    struct stat info;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return plumb_fail(err, PLUMB_E_IO, "cannot make the folder %s: %s", folder,
                          strerror(errno));
    if (stat(folder, &info) || !S_ISDIR(info.st_mode))
        return plumb_fail(err, PLUMB_E_ARG, "%s is not a folder", folder);
    return PLUMB_OK;
}

static enum plumb_code reserve(char **path, const char *folder, const char *stem, bool utc,
                               const char *ending, struct plumb_error *err)
{
    char stamp[STAMP_BYTES];
    enum plumb_code code = stamp_write(time(NULL), utc, stamp, err);
    if (code)
        return code;
    for (unsigned i = 0; i < 10000; i++) {
        char suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, "_%u", i);
        if (asprintf(path, "%s%s%s_%s%s%s", folder ? folder : "", folder ? "/" : "", stem, stamp,
                     suffix, ending) < 0) {
            *path = NULL;
            return plumb_fail(err, PLUMB_E_NOMEM, "out of memory");
        }
        int fd = open(*path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            return PLUMB_OK;
        }
        int reason = errno;
        if (reason != EEXIST)
            plumb_fail(err, PLUMB_E_IO, "cannot write %s: %s", *path, strerror(reason));
        free(*path);
        *path = NULL;
        if (reason != EEXIST)
            return PLUMB_E_IO;
    }
    return plumb_fail(err, PLUMB_E_IO, "too many result files of this second");
}

enum plumb_code result_reserve(char **path, const char *folder, const char *ending,
                               struct plumb_error *err)
{
    return result_reserve_as(path, folder, "compare_result", ending, err);
}

enum plumb_code result_reserve_as(char **path, const char *folder, const char *stem,
                                  const char *ending, struct plumb_error *err)
{
    return reserve(path, folder, stem, false, ending, err);
}

enum plumb_code result_reserve_utc(char **path, const char *folder, const char *stem,
                                   const char *ending, struct plumb_error *err)
{
    return reserve(path, folder, stem, true, ending, err);
}

enum plumb_code result_mapping(const char *mapping, const char *folder, FILE *out,
                               struct plumb_error *err)
{
    char *path = NULL;
    if (!mapping)
        return PLUMB_OK;
    enum plumb_code code = result_reserve_as(&path, folder, "data_mapping", ".yaml", err);
    if (code)
        return code;
    FILE *file = fopen(path, "we");
    bool good = file && fputs(mapping, file) >= 0;
    if (file && fclose(file))
        good = false;
    if (!good) {
        code = plumb_fail(err, PLUMB_E_IO, "cannot write %s: %s", path, strerror(errno));
        unlink(path);
    } else if (out) {
        fprintf(out, "which rows the layers pair is in %s\n", path);
    }
    free(path);
    return code;
}
