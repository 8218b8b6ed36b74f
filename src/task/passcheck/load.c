/* Tensors from files beside the graph. They are copied: the graph may run for long. */
#define _GNU_SOURCE
#include "task/passcheck/side.h"

#include "plumb/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Links may point anywhere inside the graph's folder, and nowhere else. */
static bool stays_inside(const char *folder, const char *path)
{
    char *real = realpath(path, NULL), *root = realpath(folder, NULL);
    const size_t length = root ? strlen(root) : 0;
    const bool top = length == 1; /* "/" */
    /* A file that is not there cannot be elsewhere; opening it says so better. */
    const bool inside =
        !real || (root && strncmp(real, root, length) == 0 && (top || real[length] == '/'));
    free(real);
    free(root);
    return inside;
}

static bool leads_upwards(const char *name)
{
    if (*name == '/')
        return true;
    for (const char *s = name; *s; s += strcspn(s, "/"), s += *s == '/')
        if (strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == '\0'))
            return true;
    return false;
}

static void swap_bytes(unsigned char *data, uint64_t bytes, unsigned size)
{
    for (uint64_t at = 0; at + size <= bytes; at += size)
        for (unsigned k = 0; k < size / 2; k++) {
            const unsigned char byte = data[at + k];
            data[at + k] = data[at + size - 1 - k];
            data[at + size - 1 - k] = byte;
        }
}

static enum plumb_code copy(const struct plumb_payload *from, uint64_t max_bytes,
                            struct arena *arena, struct plumb_tensor *out, void **data,
                            struct plumb_error *err)
{
    const struct plumb_tensor *t = &from->tensor;
    const uint64_t bytes = plumb_tensor_bytes(t);
    if (bytes > max_bytes)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a tensor of %llu bytes, more than a graph's tensors may take here",
                          (unsigned long long)bytes);
    enum plumb_code code = plumb_tensor_init(out, t->dtype, t->rank, t->shape, err);
    if (code)
        return code;
    *data = arena_alloc(arena, (size_t)bytes);
    if (!*data)
        return plumb_no_memory(err);
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &from->file);
    plumb_tensor_gather(t, 0, (size_t)t->count, *data);
    if (plumb_file_guard_leave(&guard))
        return plumb_fail(err, PLUMB_E_IO, "the file became shorter while it was read");
    if (t->swap)
        swap_bytes(*data, bytes,
                   plumb_dtype_info(t->dtype)->bits / 8u / plumb_dtype_parts(t->dtype));
    out->data = *data;
    return PLUMB_OK;
}

static enum plumb_code find_record(const struct plumb_run *run, const char *key, size_t *index,
                                   struct plumb_error *err)
{
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
    if (leads_upwards(leaf->file) || !stays_inside(folder, path))
        return plumb_fail(err, PLUMB_E_FORMAT, "its file %.200s is not in the graph's folder",
                          leaf->file);
    struct plumb_run *run = NULL;
    struct plumb_payload payload;
    size_t index = 0;
    enum plumb_code code = plumb_run_open(&run, path, err);
    if (code)
        return code;
    code = find_record(run, leaf->key, &index, err);
    if (!code)
        code = plumb_run_load(run, index, &payload, err);
    if (!code) {
        code = copy(&payload, max_bytes, arena, out, data, err);
        plumb_payload_release(&payload);
    }
    if (code)
        plumb_error_in_file(err, path);
    plumb_run_free(run);
    return code;
}
