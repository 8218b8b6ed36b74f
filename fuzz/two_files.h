/* Runs that are a folder of two files. The first two bytes of an input say how many of the others
 * are the first file; the rest is the second. */
#ifndef FUZZ_TWO_FILES_H
#define FUZZ_TWO_FILES_H

#define _GNU_SOURCE
#include "plumb/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/fuzz-two-XXXXXX";
static const char *const *file_names; /* NULL: there is no folder yet */

static void two_files_clean(void)
{
    char path[128];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, file_names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void two_files_save(const char *name, const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

/* Every record has a name, and is either readable or says why not. */
static void two_files_check(const struct plumb_run *run)
{
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        struct plumb_payload payload;
        struct plumb_error err = {0};
        const struct plumb_record *record = plumb_run_record(run, i);
        if (!record->name || !record->path)
            abort();
        if (record->count > 100000)
            continue;
        if (plumb_run_load(run, i, &payload, &err)) {
            if (!err.code || !*err.message)
                abort();
            continue;
        }
        if (record->error)
            abort();
        double number;
        for (uint64_t k = 0; k < payload.tensor.count; k++)
            plumb_tensor_to_f64(&payload.tensor, k, 1, &number);
        plumb_payload_release(&payload);
    }
    for (size_t i = 0; plumb_run_warning(run, i); i++)
        if (strchr(plumb_run_warning(run, i), '\n'))
            abort();
}

/* Writes the files, opens the folder and reads all that it has. The names live as long as the
 * program. */
static int two_files(const uint8_t *data, size_t size, const char *const names[2])
{
    struct plumb_run *run;
    if (size < 2)
        return 0;
    if (!file_names) {
        if (!mkdtemp(folder))
            abort();
        file_names = names;
        atexit(two_files_clean);
    }
    size_t first = (size_t)data[0] << 8 | data[1];
    first = first < size - 2 ? first : size - 2;
    two_files_save(names[0], data + 2, first);
    two_files_save(names[1], data + 2 + first, size - 2 - first);
    if (plumb_run_open(&run, folder, NULL))
        return 0;
    two_files_check(run);
    plumb_run_free(run);
    return 0;
}

#endif
