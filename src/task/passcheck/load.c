/* Tensors from files beside the graph. */
#define _GNU_SOURCE
#include "exec/values/tensor_file.h"
#include "task/passcheck/side.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool leads_upwards(const char *name)
{
    if (*name == '/')
        return true;
    for (const char *s = name; *s; s += strcspn(s, "/"), s += *s == '/')
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == '\0'))
            return true;
    return false;
}

/* The one tensor of the file, or the one that the key names. */
static enum plumb_code choose(const struct plumb_run *run, const void *context, size_t *index,
                              struct plumb_error *err)
{
    const char *key = context;
    const size_t count = plumb_run_count(run);
    if (!key && count != 1)
        return plumb_fail(err, PLUMB_E_FORMAT, "it holds %zu tensors; say which one with \"key\"",
                          count);
    for (size_t k = 0; k < count; k++)
        if (!key || strcmp(plumb_run_record(run, k)->name, key) == 0) {
            *index = k;
            return PLUMB_OK;
        }
    return plumb_fail(err, PLUMB_E_FORMAT, "it holds no tensor named '%.80s'", key);
}

enum plumb_code passcheck_load_leaf(const struct plumb_passcheck_graph *graph,
                                    const struct passcheck_leaf *leaf, uint64_t max_bytes,
                                    struct arena *arena, struct plumb_tensor *out, void **data,
                                    struct plumb_error *err)
{
    char folder[PATH_MAX], path[PATH_MAX];
    const char *slash = strrchr(graph->path, '/');
    const int length = slash ? (int)(slash - graph->path) + 1 : 0;
    const int a = snprintf(folder, sizeof folder, "%.*s.", length, graph->path);
    const int b = snprintf(path, sizeof path, "%.*s%s", length, graph->path, leaf->file);
    if (a < 0 || (size_t)a >= sizeof folder || b < 0 || (size_t)b >= sizeof path)
        return plumb_fail(err, PLUMB_E_ARG, "the name of its file is too long");
    if (leads_upwards(leaf->file) || !tensor_file_is_inside(folder, path))
        return plumb_fail(err, PLUMB_E_FORMAT, "its file %.200s is not in the graph's folder",
                          leaf->file);
    struct tensor_file file;
    enum plumb_code code = tensor_file_load(&file, path, choose, leaf->key, err);
    const uint64_t bytes = code ? 0 : plumb_tensor_bytes(&file.payload.tensor);
    if (bytes > max_bytes)
        code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a tensor of %llu bytes, more than a graph's tensors may take here",
                          (unsigned long long)bytes);
    if (!code)
        code = tensor_file_copy(&file, arena, out, data, err);
    if (code && file.run)
        plumb_error_in_file(err, path);
    tensor_file_close(&file);
    return code;
}
