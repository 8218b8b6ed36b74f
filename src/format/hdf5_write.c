/* Writing HDF5 files through plumb-h5. */
#define _GNU_SOURCE
#include "base/output.h"
#include "format/h5proc.h"
#include "format/writer.h"
#include "h5/protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tensors go to the helper as they come; it writes the temporary file, which is renamed at the end
 * or, by the helper, when it is first synced. */
struct hdf5_writer {
    struct plumb_writer base;
    struct output output;
    struct h5proc proc;
    bool synced; /* the helper gave the file its name, and keeps it whole */
};

enum { PIECE_BYTES = 1 << 20, PATIENCE_SECONDS = 300 };

static void hdf5_abort(struct plumb_writer *writer)
{
    struct hdf5_writer *self = (struct hdf5_writer *)writer;
    struct plumb_error unheard;
    if (self->synced && self->proc.pid >= 0)
        h5proc_finish(&self->proc, &unheard); /* it ends with the file whole */
    else
        h5proc_kill(&self->proc);
    output_discard(&self->output);
    free(self);
}

/* Types HDF5 lacks are stored as unsigned integers of the same width. */
static enum plumb_code describe(const struct plumb_tensor *tensor, struct h5_tensor *head,
                                struct plumb_error *err)
{
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    if (info->bits < 8)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "HDF5 has no place for packed %s", info->name);
    if (tensor->rank > H5_MAX_RANK)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "HDF5 holds at most %d dimensions",
                          H5_MAX_RANK);
    bool ieee =
        tensor->dtype == PLUMB_F16 || tensor->dtype == PLUMB_F32 || tensor->dtype == PLUMB_F64;
    head->type = info->kind == PLUMB_KIND_BOOL      ? H5_BOOLEAN
                 : info->kind == PLUMB_KIND_INT     ? H5_INT
                 : info->kind == PLUMB_KIND_COMPLEX ? H5_COMPLEX
                 : ieee                             ? H5_FLOAT
                                                    : H5_UINT;
    head->size = info->bits / 8;
    head->big_endian = tensor->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    head->ndim = (uint8_t)tensor->rank;
    head->bytes = plumb_tensor_bytes(tensor);
    return PLUMB_OK;
}

static enum plumb_code send_bytes(struct hdf5_writer *self, const void *bytes, size_t size,
                                  struct plumb_error *err)
{
    return h5proc_send(&self->proc, bytes, size, PATIENCE_SECONDS, err);
}

static enum plumb_code send_elements(struct hdf5_writer *self, const struct plumb_tensor *tensor,
                                     size_t element, struct plumb_error *err)
{
    if (tensor->dense)
        return send_bytes(self, tensor->data, (size_t)plumb_tensor_bytes(tensor), err);
    void *piece = malloc(PIECE_BYTES);
    if (!piece)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    uint64_t room = PIECE_BYTES / element;
    for (uint64_t first = 0; first < tensor->count && !code; first += room) {
        uint64_t left = tensor->count - first;
        size_t count = (size_t)(left < room ? left : room);
        plumb_tensor_gather(tensor, first, count, piece);
        code = send_bytes(self, piece, count * element, err);
    }
    free(piece);
    return code;
}

/* The helper gave up, and knows better why. */
static enum plumb_code ask_why(struct hdf5_writer *self, enum plumb_code code,
                               struct plumb_error *err)
{
    struct plumb_error why;
    enum plumb_code cause = h5proc_finish(&self->proc, &why);
    if (cause && err)
        *err = why;
    return cause ? cause : code;
}

static enum plumb_code hdf5_add(struct plumb_writer *writer, const char *name, int64_t step,
                                const struct plumb_tensor *tensor, struct plumb_error *err)
{
    struct hdf5_writer *self = (struct hdf5_writer *)writer;
    struct h5_tensor head = {.step = step < 0 ? -1 : step, .path_call = writer->path_call};
    size_t length = strlen(name);
    if (length >= H5_MAX_PATH - 32)
        return plumb_fail(err, PLUMB_E_ARG, "a name of %zu bytes is too long for HDF5", length);
    enum plumb_code code = describe(tensor, &head, err);
    if (code)
        return code;

    char dtype[64];
    bool torch_has_it = tensor->dtype != PLUMB_HIF8;
    snprintf(dtype, sizeof dtype, "%s%s", torch_has_it ? "torch." : "",
             plumb_dtype_info(tensor->dtype)->name);
    head.name_length = (uint32_t)length;
    head.dtype_length = (uint32_t)strlen(dtype);
    uint64_t shape[H5_MAX_RANK];
    for (unsigned i = 0; i < tensor->rank; i++)
        shape[i] = (uint64_t)tensor->shape[i];

    code = send_bytes(self, &head, sizeof head, err);
    if (!code)
        code = send_bytes(self, shape, tensor->rank * sizeof *shape, err);
    if (!code)
        code = send_bytes(self, name, length, err);
    if (!code)
        code = send_bytes(self, dtype, head.dtype_length, err);
    if (!code)
        code = send_elements(self, tensor, head.size, err);
    return code == PLUMB_E_IO ? ask_why(self, code, err) : code;
}

static enum plumb_code hdf5_sync(struct plumb_writer *writer, struct plumb_error *err)
{
    struct hdf5_writer *self = (struct hdf5_writer *)writer;
    const struct h5_tensor mark = {.step = H5_SYNC};
    enum plumb_code code = send_bytes(self, &mark, sizeof mark, err);
    if (!code)
        code = h5proc_answer(&self->proc, PATIENCE_SECONDS, err);
    if (code)
        return code == PLUMB_E_IO ? ask_why(self, code, err) : code;
    self->synced = true;
    output_named(&self->output);
    return PLUMB_OK;
}

static enum plumb_code hdf5_close(struct plumb_writer *writer, struct plumb_error *err)
{
    struct hdf5_writer *self = (struct hdf5_writer *)writer;
    const struct h5_tensor end = {.step = H5_END};
    struct plumb_error unsent;
    enum plumb_code sent = send_bytes(self, &end, sizeof end, &unsent);
    enum plumb_code code = h5proc_finish(&self->proc, err);
    if (!code && sent) {
        code = sent;
        if (err)
            *err = unsent;
    }
    if (code) {
        plumb_error_in_file(err, self->output.path);
        hdf5_abort(writer);
        return code;
    }
    code = output_commit(&self->output, true, err);
    free(self);
    return code;
}

static const struct writer_ops hdf5_ops = {
    .add = hdf5_add, .sync = hdf5_sync, .close = hdf5_close, .abort = hdf5_abort};

enum plumb_code hdf5_writer_open(struct plumb_writer **writer, const char *path,
                                 const struct plumb_writer_options *options,
                                 struct plumb_error *err)
{
    struct hdf5_writer *self = calloc(1, sizeof *self);
    if (!self)
        return plumb_no_memory(err);
    self->base.ops = &hdf5_ops;
    enum plumb_code code = output_open(&self->output, path, err);
    if (code) {
        free(self);
        return code;
    }
    self->output.fresh = options->keep;
    char global_rank[32], local_rank[32];
    snprintf(global_rank, sizeof global_rank, "%" PRId64,
             options->global_rank < 0 ? -1 : options->global_rank);
    snprintf(local_rank, sizeof local_rank, "%" PRId64,
             options->local_rank < 0 ? -1 : options->local_rank);
    const char *const arguments[] = {"write",    self->output.temp, global_rank,
                                     local_rank, self->output.path, NULL};
    code = h5proc_start(&self->proc, arguments, true, PATIENCE_SECONDS, err);
    if (code) {
        output_discard(&self->output);
        free(self);
        return code;
    }
    *writer = &self->base;
    return PLUMB_OK;
}
