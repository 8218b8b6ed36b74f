/* Folders that results go to. */
#define _GNU_SOURCE
#include "base/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum plumb_code make_one(const char *path, struct plumb_error *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return PLUMB_OK;
    int reason = errno; /* a folder that is there may be one that nobody may write to */
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? PLUMB_OK
                                     : plumb_fail(err, PLUMB_E_ARG, "%s is not a folder", path);
    return plumb_fail(err, PLUMB_E_IO, "cannot make the folder %s: %s", path, strerror(reason));
}

/* The first `length` bytes of text are the path of the folder. */
static enum plumb_code make_all(const char *text, size_t length, struct plumb_error *err)
{
    char *path = strndup(text, length);
    if (!path)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (char *c = path; !code && length; c++) {
        const char was = *c;
        if ((was != '/' && was) || c == path)
            continue;
        *c = '\0';
        code = make_one(path, err);
        *c = was;
        if (!was)
            break;
    }
    free(path);
    return code;
}

enum plumb_code folder_make(const char *path, struct plumb_error *err)
{
    return make_all(path, strlen(path), err);
}

enum plumb_code folder_make_for(const char *file, struct plumb_error *err)
{
    const char *slash = strrchr(file, '/');
    return make_all(file, slash ? (size_t)(slash - file) : 0, err);
}
