/* A tensor of a file, copied, not kept mapped: whoever computes with it more than once must see the
 * same bytes, whatever happens to the file meanwhile. */
#define _GNU_SOURCE
#include "exec/values/tensor_file.h"

#include "base/mapped.h"

#include <stdlib.h>
#include <string.h>

bool tensor_file_is_inside(const char *folder, const char *path)
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

enum plumb_code tensor_file_load(struct tensor_file *file, const char *path, tensor_chooser *choose,
                                 const void *context, struct plumb_error *err)
{
    size_t index = 0;
    *file = (struct tensor_file){0};
    enum plumb_code code = plumb_run_open(&file->run, path, err);
    if (!code)
        code = choose(file->run, context, &index, err);
    if (!code)
        code = plumb_run_load(file->run, index, &file->payload, err);
    file->loaded = !code;
    return code;
}

void tensor_file_close(struct tensor_file *file)
{
    if (file->loaded)
        plumb_payload_release(&file->payload);
    plumb_run_free(file->run);
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

enum plumb_code tensor_file_copy(const struct tensor_file *file, struct arena *arena,
                                 struct plumb_tensor *out, void **data, struct plumb_error *err)
{
    const struct plumb_tensor *t = &file->payload.tensor;
    const uint64_t bytes = plumb_tensor_bytes(t);
    enum plumb_code code = plumb_tensor_init(out, t->dtype, t->rank, t->shape, err);
    if (code)
        return code;
    *data = arena_alloc(arena, (size_t)bytes);
    if (!*data)
        return plumb_no_memory(err);
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &file->payload.file);
    plumb_tensor_gather(t, 0, (size_t)t->count, *data);
    if (plumb_file_guard_leave(&guard))
        return mapped_fail_shrank(err);
    if (t->swap)
        swap_bytes(*data, bytes,
                   plumb_dtype_info(t->dtype)->bits / 8u / plumb_dtype_parts(t->dtype));
    out->data = *data;
    return PLUMB_OK;
}
