/* Recorded values of a tensor. They are copied, not kept mapped: two runs of the operator must see
 * the same bytes, whatever happens to the file between them. */
#define _GNU_SOURCE
#include "exec/values/parts.h"

#include "plumb/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

/* Links may point anywhere inside the folder, and nowhere else. */
static bool stays_inside(const char *folder, const char *path)
{
    char *real = realpath(path, NULL), *root = realpath(folder, NULL);
    size_t length = root ? strlen(root) : 0;
    /* A file that is not there cannot be elsewhere; opening it says so better. */
    bool inside = !real || (root && strncmp(real, root, length) == 0 && real[length] == '/');
    free(real);
    free(root);
    return inside;
}

static void swap_bytes(uint8_t *data, uint64_t bytes, unsigned size)
{
    for (uint64_t at = 0; at + size <= bytes; at += size)
        for (unsigned i = 0; i < size / 2; i++) {
            uint8_t byte = data[at + i];
            data[at + i] = data[at + size - 1 - i];
            data[at + size - 1 - i] = byte;
        }
}

static enum plumb_code copy(const struct plumb_payload *from, uint64_t max_bytes,
                            struct arena *arena, struct plumb_tensor *out, struct plumb_error *err)
{
    const struct plumb_tensor *t = &from->tensor;
    uint64_t bytes = plumb_tensor_bytes(t);
    if (bytes > max_bytes)
        return plumb_fail(err, PLUMB_E_NOMEM,
                          "it takes %llu bytes, more than a call's tensors may take here (%llu)",
                          (unsigned long long)bytes, (unsigned long long)max_bytes);
    enum plumb_code code = plumb_tensor_init(out, t->dtype, t->rank, t->shape, err);
    if (code)
        return code;
    void *data = arena_alloc(arena, (size_t)bytes);
    if (!data)
        return plumb_no_memory(err);
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &from->file);
    plumb_tensor_gather(t, 0, (size_t)t->count, data);
    if (plumb_file_guard_leave(&guard))
        return plumb_fail(err, PLUMB_E_IO, "the file became shorter while it was read");
    if (t->swap)
        swap_bytes(data, bytes,
                   plumb_dtype_info(t->dtype)->bits / 8u / plumb_dtype_parts(t->dtype));
    out->data = data;
    return PLUMB_OK;
}

static enum plumb_code load(const char *path, uint64_t max_bytes, struct arena *arena,
                            struct plumb_tensor *out, struct plumb_error *err)
{
    struct plumb_run *run = NULL;
    struct plumb_payload payload;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    if (plumb_run_count(run) != 1)
        code = plumb_fail(err, PLUMB_E_FORMAT, "it holds %zu tensors instead of one",
                          plumb_run_count(run));
    else
        code = plumb_run_load(run, 0, &payload, err);
    if (!code) {
        code = copy(&payload, max_bytes, arena, out, err);
        plumb_payload_release(&payload);
    }
    plumb_run_free(run);
    return code;
}

enum plumb_code real_data_load(const char *folder, const char *name, uint64_t max_bytes,
                               struct arena *arena, struct plumb_tensor *out,
                               struct plumb_error *err)
{
    char path[PATH_MAX];
    if (!ends_in(name, ".pt") && !ends_in(name, ".npy"))
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "its data file %.200s is neither a .pt nor a .npy file", name);
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (strchr(name, '/') || length < 0 || (size_t)length >= sizeof path ||
        !stays_inside(folder, path))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the name of its data file, %.200s, leads out of the dump's folder",
                          name);
    enum plumb_code code = load(path, max_bytes, arena, out, err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}
