/* Result files named after the time: written hidden, then given a name that was free. */
#define _GNU_SOURCE
#include "cli/result.h"

#include "base/output.h"
#include "base/stamp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 10000 };

enum plumb_code result_hidden(char **hidden, const struct result_name *name,
                              struct plumb_error *err)
{
    const char *folder = name->folder ? name->folder : "";
    if (asprintf(hidden, "%s%s.%s.%ld%s", folder, name->folder ? "/" : "", name->stem,
                 (long)getpid(), name->ending) >= 0)
        return PLUMB_OK;
    *hidden = NULL;
    return plumb_no_memory(err);
}

enum plumb_code result_claim(char **path, const struct result_name *name, const char *hidden,
                             struct plumb_error *err)
{
    char stamp[STAMP_BYTES];
    *path = NULL;
    enum plumb_code code = stamp_write(time(NULL), name->utc, stamp, err);
    for (unsigned i = 0; i < MOST_NAMES && !code; i++) {
        char suffix[16] = "";
        if (i)
            snprintf(suffix, sizeof suffix, "_%u", i);
        if (asprintf(path, "%s%s%s_%s%s%s", name->folder ? name->folder : "",
                     name->folder ? "/" : "", name->stem, stamp, suffix, name->ending) < 0) {
            *path = NULL;
            return plumb_no_memory(err);
        }
        if (output_claim(hidden, *path))
            return PLUMB_OK;
        if (errno != EEXIST)
            code = plumb_fail(err, PLUMB_E_IO, "cannot write %s: %s", *path, strerror(errno));
        free(*path);
        *path = NULL;
    }
    return code ? code : plumb_fail(err, PLUMB_E_IO, "too many result files of this second");
}

enum plumb_code result_save(char **path, const struct result_name *name,
                            const struct plumb_table *table, const struct cli_view *view,
                            struct plumb_error *err)
{
    char *hidden = NULL;
    *path = NULL;
    enum plumb_code code = result_hidden(&hidden, name, err);
    if (!code) {
        code = cli_save(table, hidden, view, err);
        if (code) /* the hidden name means nothing to anybody */
            snprintf(err->file, sizeof err->file, "%s", name->folder ? name->folder : ".");
    }
    if (!code) {
        code = result_claim(path, name, hidden, err);
        if (code)
            unlink(hidden);
    }
    free(hidden);
    return code;
}

enum plumb_code result_write(char **path, const struct result_name *name, const void *bytes,
                             size_t size, struct plumb_error *err)
{
    char *hidden = NULL;
    *path = NULL;
    enum plumb_code code = result_hidden(&hidden, name, err);
    if (!code)
        code = output_whole(hidden, bytes, size, true, err);
    if (!code) {
        code = result_claim(path, name, hidden, err);
        if (code)
            unlink(hidden);
    }
    free(hidden);
    return code;
}

enum plumb_code result_mapping(const char *mapping, const char *folder, FILE *out,
                               struct plumb_error *err)
{
    if (!mapping)
        return PLUMB_OK;
    const struct result_name name = {.folder = folder, .stem = "data_mapping", .ending = ".yaml"};
    char *path = NULL;
    enum plumb_code code = result_write(&path, &name, mapping, strlen(mapping), err);
    if (!code && out)
        fprintf(out, "the rows that were paired by layer are listed in %s\n", path);
    free(path);
    return code;
}
