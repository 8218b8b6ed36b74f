/* Recorded values of a tensor, from the file that its dump names. */
#define _GNU_SOURCE
#include "exec/values/parts.h"
#include "exec/values/tensor_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool ends_in(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && strcmp(name + length - tail, ending) == 0;
}

static enum plumb_code choose_only(const struct plumb_run *run, const void *context, size_t *index,
                                   struct plumb_error *err)
{
    (void)context;
    const size_t count = plumb_run_count(run);
    *index = 0;
    return count == 1
               ? PLUMB_OK
               : plumb_fail(err, PLUMB_E_FORMAT, "it holds %zu tensors instead of one", count);
}

static enum plumb_code load(const char *path, uint64_t max_bytes, struct arena *arena,
                            struct plumb_tensor *out, struct plumb_error *err)
{
    struct tensor_file file;
    void *data;
    enum plumb_code code = tensor_file_load(&file, path, choose_only, NULL, err);
    const uint64_t bytes = code ? 0 : plumb_tensor_bytes(&file.payload.tensor);
    if (bytes > max_bytes)
        code = plumb_fail(err, PLUMB_E_NOMEM,
                          "it takes %llu bytes, more than a call's tensors may take here (%llu)",
                          (unsigned long long)bytes, (unsigned long long)max_bytes);
    if (!code)
        code = tensor_file_copy(&file, arena, out, &data, err);
    tensor_file_close(&file);
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
        !tensor_file_is_inside(folder, path))
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the name of its data file, %.200s, leads out of the dump's folder",
                          name);
    enum plumb_code code = load(path, max_bytes, arena, out, err);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}
