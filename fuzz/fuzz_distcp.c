/* Distributed checkpoints: a .metadata, and behind it the file that it leads to. */
#define _GNU_SOURCE
#include "plumb/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static void clean(void)
{
    char path[128];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i ? "__0_0.distcp" : ".metadata");
        unlink(path);
    }
    rmdir(folder);
}

static void save(const char *name, const uint8_t *data, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plumb_run *run;
    if (size < 2)
        return 0;
    if (!*folder) {
        strcpy(folder, "/tmp/fuzz-distcp-XXXXXX");
        if (!mkdtemp(folder))
            abort();
        atexit(clean);
    }
    size_t first = (size_t)data[0] << 8 | data[1];
    first = first < size - 2 ? first : size - 2;
    save(".metadata", data + 2, first);
    save("__0_0.distcp", data + 2 + first, size - 2 - first);
    if (plumb_run_open(&run, folder, NULL))
        return 0;
    for (size_t i = 0; i < plumb_run_count(run); i++) {
        struct plumb_payload payload;
        const struct plumb_record *record = plumb_run_record(run, i);
        if (record->count > 100000 || plumb_run_load(run, i, &payload, NULL))
            continue;
        double number;
        for (uint64_t k = 0; k < payload.tensor.count; k++)
            plumb_tensor_to_f64(&payload.tensor, k, 1, &number);
        plumb_payload_release(&payload);
    }
    plumb_run_free(run);
    return 0;
}
