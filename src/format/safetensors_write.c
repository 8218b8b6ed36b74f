/* Writing .safetensors files. */
#include "base/arena.h"
#include "base/json_put.h"
#include "base/map.h"
#include "format/writer.h"
#include "tensor/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The header comes first in the file and is known last, so the elements wait in a file of their
 * own. */
struct safetensors_writer {
    struct plumb_writer base;
    struct output final, spool;
    struct buf header;
    struct map names;
    struct arena arena; /* holds the names */
};

static void release(struct safetensors_writer *self)
{
    output_discard(&self->final);
    output_discard(&self->spool);
    buf_free(&self->header);
    map_free(&self->names);
    arena_free(&self->arena);
    free(self);
}

/* The name as it stands in the header: two that differ only in what JSON cannot hold are one. */
static enum plumb_code reserve_name(struct safetensors_writer *self, const char *name,
                                    const char **quoted, struct plumb_error *err)
{
    bool added = false;
    struct buf text = {0};
    if (strcmp(name, "__metadata__") == 0)
        return plumb_fail(err, PLUMB_E_ARG, "no tensor may be called __metadata__");
    json_put_string(&text, name);
    *quoted = text.failed ? NULL : arena_copy(&self->arena, text.data, text.size);
    buf_free(&text);
    if (!*quoted || !map_put(&self->names, *quoted, strlen(*quoted), &added))
        return plumb_no_memory(err);
    if (!added)
        return plumb_fail(err, PLUMB_E_ARG, "there already is a tensor called %s", *quoted);
    return PLUMB_OK;
}

static enum plumb_code add(struct plumb_writer *writer, const char *name, int64_t step,
                           const struct plumb_tensor *tensor, struct plumb_error *err)
{
    struct safetensors_writer *self = (struct safetensors_writer *)writer;
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    if (step >= 0)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a .safetensors file cannot hold steps; write .h5, or one file per step");
    if (!info->safetensors)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "%s: a .safetensors file cannot hold %s", name,
                          info->name);
    const char *quoted = NULL;
    enum plumb_code code = reserve_name(self, name, &quoted, err);
    if (code)
        return code;

    struct buf *header = &self->header;
    uint64_t begin = self->spool.size, end = begin + plumb_tensor_bytes(tensor);
    buf_text(header, header->size ? "," : "{");
    buf_text(header, quoted);
    buf_printf(header, ":{\"dtype\":\"%s\",\"shape\":[", info->safetensors);
    for (unsigned i = 0; i < tensor->rank; i++)
        buf_printf(header, "%s%" PRId64, i ? "," : "", tensor->shape[i]);
    buf_printf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
    if (header->failed)
        return plumb_no_memory(err);
    return tensor_output(&self->spool, tensor, err);
}

static enum plumb_code finish(struct plumb_writer *writer, struct plumb_error *err)
{
    struct safetensors_writer *self = (struct safetensors_writer *)writer;
    struct buf *header = &self->header;
    buf_text(header, header->size ? "}" : "{}");
    buf_repeat(header, ' ', (8 - header->size % 8) % 8);

    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header->size >> (8 * i));
    enum plumb_code code = header->failed ? plumb_no_memory(err)
                                          : output_bytes(&self->final, length, sizeof length, err);
    if (!code)
        code = output_bytes(&self->final, header->data, header->size, err);
    if (!code)
        code = output_copy(&self->final, &self->spool, err);
    if (!code)
        code = output_commit(&self->final, true, err);
    release(self);
    return code;
}

static void abandon(struct plumb_writer *writer)
{
    release((struct safetensors_writer *)writer);
}

enum plumb_code safetensors_writer_open(struct plumb_writer **writer, const char *path,
                                        const struct plumb_writer_options *options,
                                        struct plumb_error *err)
{
    static const struct writer_ops ops = {.add = add, .close = finish, .abort = abandon};
    struct safetensors_writer *self = calloc(1, sizeof *self);
    if (!self)
        return plumb_no_memory(err);
    self->base.ops = &ops;
    enum plumb_code code = output_open(&self->final, path, err);
    if (!code)
        code = output_open(&self->spool, path, err);
    if (code) {
        release(self);
        return code;
    }
    self->final.fresh = options->keep;
    *writer = &self->base;
    return PLUMB_OK;
}
