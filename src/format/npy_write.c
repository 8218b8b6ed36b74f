/* Writing .npy files. */
#include "base/buf.h"
#include "plumb/write.h"
#include "tensor/output.h"

#include <inttypes.h>
#include <stdio.h>

/* numpy's name of a type, or NULL. */
static const char *descr_of(enum plumb_dtype dtype)
{
    static const char *const names[PLUMB_DTYPE_COUNT] = {
        [PLUMB_BOOL] = "|b1", [PLUMB_U8] = "|u1",    [PLUMB_U16] = "<u2", [PLUMB_U32] = "<u4",
        [PLUMB_U64] = "<u8",  [PLUMB_I8] = "|i1",    [PLUMB_I16] = "<i2", [PLUMB_I32] = "<i4",
        [PLUMB_I64] = "<i8",  [PLUMB_F16] = "<f2",   [PLUMB_F32] = "<f4", [PLUMB_F64] = "<f8",
        [PLUMB_C64] = "<c8",  [PLUMB_C128] = "<c16",
    };
    return names[dtype];
}

/* The elements of a file begin at a multiple of this, as numpy does it. */
enum { ALIGNMENT = 64 };

static void make_header(struct buf *out, const char *descr, const struct plumb_tensor *tensor)
{
    struct buf dict = {0};
    buf_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (unsigned i = 0; i < tensor->rank; i++)
        buf_printf(&dict, "%s%" PRId64, i ? ", " : "", tensor->shape[i]);
    buf_text(&dict, tensor->rank == 1 ? ",), }" : "), }");

    /* With at most 64 dimensions the header always fits the 16-bit length of version 1.0. */
    size_t prefix = 10, used = prefix + dict.size + 1;
    size_t padding = (ALIGNMENT - used % ALIGNMENT) % ALIGNMENT;
    size_t length = used - prefix + padding;
    const unsigned char start[] = {0x93,
                                   'N',
                                   'U',
                                   'M',
                                   'P',
                                   'Y',
                                   1,
                                   0,
                                   (unsigned char)(length & 0xff),
                                   (unsigned char)(length >> 8)};
    buf_append(out, start, sizeof start);
    buf_append(out, dict.data, dict.size);
    buf_repeat(out, ' ', padding);
    buf_text(out, "\n");
    out->failed |= dict.failed;
    buf_free(&dict);
}

static enum plumb_code write_npy(const char *path, const struct plumb_tensor *tensor, bool fresh,
                                 struct plumb_error *err)
{
    const char *descr = descr_of(tensor->dtype);
    if (!descr) {
        plumb_fail(err, PLUMB_E_UNSUPPORTED, "numpy has no %s; write .safetensors or .h5 instead",
                   plumb_dtype_info(tensor->dtype)->name);
        plumb_error_in_file(err, path);
        return PLUMB_E_UNSUPPORTED;
    }
    struct buf header = {0};
    struct output out = {0};
    make_header(&header, descr, tensor);
    enum plumb_code code = header.failed ? plumb_no_memory(err) : output_open(&out, path, err);
    if (code)
        goto out;
    out.fresh = fresh;
    code = output_bytes(&out, header.data, header.size, err);
    if (!code)
        code = tensor_output(&out, tensor, err);
    if (!code)
        code = output_commit(&out, false, err);
    else
        output_discard(&out);
out:
    buf_free(&header);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

enum plumb_code plumb_npy_write(const char *path, const struct plumb_tensor *tensor,
                                struct plumb_error *err)
{
    return write_npy(path, tensor, false, err);
}

enum plumb_code plumb_npy_write_new(const char *path, const struct plumb_tensor *tensor,
                                    struct plumb_error *err)
{
    return write_npy(path, tensor, true, err);
}
