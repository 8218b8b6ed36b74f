/* One tensor as torch.save writes it: a zip archive, nothing compressed, with a pickle that names
 * the storage, and the storage itself. */
#include "base/buf.h"
#include "plumb/write.h"
#include "tensor/output.h"

#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

static const char *storage_of(enum plumb_dtype dtype)
{
    static const char *const names[PLUMB_DTYPE_COUNT] = {
        [PLUMB_BOOL] = "BoolStorage",        [PLUMB_U8] = "ByteStorage",
        [PLUMB_I8] = "CharStorage",          [PLUMB_I16] = "ShortStorage",
        [PLUMB_I32] = "IntStorage",          [PLUMB_I64] = "LongStorage",
        [PLUMB_F16] = "HalfStorage",         [PLUMB_BF16] = "BFloat16Storage",
        [PLUMB_F32] = "FloatStorage",        [PLUMB_F64] = "DoubleStorage",
        [PLUMB_C64] = "ComplexFloatStorage", [PLUMB_C128] = "ComplexDoubleStorage",
    };
    return names[dtype];
}

/* Types that PyTorch 2 has, and no storage of their own: bytes, and the type beside them. */
static bool is_recent(enum plumb_dtype dtype)
{
    return dtype == PLUMB_U16 || dtype == PLUMB_U32 || dtype == PLUMB_U64 ||
           (dtype >= PLUMB_F8_E4M3FN && dtype <= PLUMB_F8_E8M0);
}

/* ---- The pickle ------------------------------------------------------------------------------ */

static void put_int(struct buf *out, uint64_t value)
{
    unsigned char bytes[11] = {0x8a, 8}; /* LONG1 of 8 bytes, and one so that it stays positive */
    for (unsigned b = 0; b < 8; b++)
        bytes[2 + b] = (unsigned char)(value >> 8 * b);
    if (value < 0x80000000U) {
        bytes[0] = 'J'; /* BININT */
        memmove(bytes + 1, bytes + 2, 4);
        buf_append(out, bytes, 5);
    } else {
        buf_append(out, bytes, 10);
    }
}

static void put_text(struct buf *out, const char *text)
{
    const size_t length = strlen(text);
    const unsigned char head[] = {'X', (unsigned char)length, 0, 0, 0};
    buf_append(out, head, sizeof head);
    buf_text(out, text);
}

static void put_sizes(struct buf *out, unsigned rank, const int64_t *sizes)
{
    buf_text(out, "(");
    for (unsigned d = 0; d < rank; d++)
        put_int(out, (uint64_t)sizes[d]);
    buf_text(out, "t");
}

static void make_pickle(struct buf *out, const struct plumb_tensor *tensor)
{
    int64_t stride[PLUMB_MAX_RANK], step = 1;
    for (unsigned d = tensor->rank; d-- > 0;) {
        stride[d] = step;
        step *= tensor->shape[d] > 0 ? tensor->shape[d] : 1;
    }
    const bool recent = is_recent(tensor->dtype);
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    buf_printf(out,
               "\x80\x02"
               "ctorch._utils\n_rebuild_tensor_v%d\n((",
               recent ? 3 : 2);
    put_text(out, "storage");
    if (recent)
        buf_text(out, "ctorch.storage\nUntypedStorage\n");
    else
        buf_printf(out, "ctorch\n%s\n", storage_of(tensor->dtype));
    put_text(out, "0");
    put_text(out, "cpu");
    put_int(out, recent ? tensor->count * (info->bits / 8) : tensor->count);
    buf_text(out, "tQ");
    put_int(out, 0);
    put_sizes(out, tensor->rank, tensor->shape);
    put_sizes(out, tensor->rank, stride);
    buf_text(out, "\x89"
                  "ccollections\nOrderedDict\n)R");
    if (recent)
        buf_printf(out, "ctorch\n%s\n", info->name);
    buf_text(out, "tR.");
}

/* ---- The archive ----------------------------------------------------------------------------- */

enum { ALIGNMENT = 64 };

struct entry {
    const char *name;
    uint64_t offset, size;
    uint32_t crc;
};

struct archive {
    struct output out;
    struct entry entries[3];
    unsigned count;
};

static void put_number(struct buf *out, uint64_t value, unsigned bytes)
{
    for (unsigned b = 0; b < bytes; b++) {
        const unsigned char byte = (unsigned char)(value >> 8 * b);
        buf_append(out, &byte, 1);
    }
}

static uint64_t narrow(uint64_t value, uint64_t limit)
{
    return value < limit ? value : limit;
}

/* What the local header and the central one have in common. */
static void put_common(struct buf *out, const struct entry *entry, size_t extra)
{
    put_number(out, 45, 2); /* version that can read it */
    put_number(out, 0, 2);
    put_number(out, 0, 2);        /* stored */
    put_number(out, 0x210000, 4); /* the first day that zip knows */
    put_number(out, entry->crc, 4);
    put_number(out, narrow(entry->size, UINT32_MAX), 4);
    put_number(out, narrow(entry->size, UINT32_MAX), 4);
    put_number(out, strlen(entry->name), 2);
    put_number(out, extra, 2);
}

/* Writes the local header, padded so that the bytes behind it are aligned. */
static enum plumb_code begin_entry(struct archive *archive, const char *name, uint64_t size,
                                   uint32_t crc, struct plumb_error *err)
{
    struct entry *entry = &archive->entries[archive->count++];
    *entry = (struct entry){name, archive->out.size, size, crc};
    const bool wide = size >= UINT32_MAX;
    const size_t fixed = 30 + strlen(name) + (wide ? 20U : 0U) + 4;
    const size_t padding =
        (size_t)(ALIGNMENT - (archive->out.size + fixed) % ALIGNMENT) % ALIGNMENT;
    struct buf head = {0};
    put_number(&head, 0x04034b50, 4);
    put_common(&head, entry, (wide ? 20U : 0U) + 4 + padding);
    buf_text(&head, name);
    if (wide) {
        put_number(&head, 1, 2);
        put_number(&head, 16, 2);
        put_number(&head, size, 8);
        put_number(&head, size, 8);
    }
    put_number(&head, 0x4246, 2); /* "FB": padding */
    put_number(&head, padding, 2);
    buf_repeat(&head, 'Z', padding);
    enum plumb_code code =
        head.failed ? plumb_no_memory(err) : output_bytes(&archive->out, head.data, head.size, err);
    buf_free(&head);
    return code;
}

static enum plumb_code add_bytes(struct archive *archive, const char *name, const void *bytes,
                                 size_t size, struct plumb_error *err)
{
    enum plumb_code code = begin_entry(archive, name, size, libdeflate_crc32(0, bytes, size), err);
    return code ? code : output_bytes(&archive->out, bytes, size, err);
}

static uint32_t tensor_crc(const struct plumb_tensor *tensor)
{
    unsigned char piece[16 * 1024];
    const size_t size = plumb_dtype_info(tensor->dtype)->bits / 8, most = sizeof piece / size;
    uint32_t crc = 0;
    for (uint64_t first = 0; first < tensor->count; first += most) {
        const size_t n = tensor->count - first < most ? (size_t)(tensor->count - first) : most;
        plumb_tensor_gather(tensor, first, n, piece);
        crc = libdeflate_crc32(crc, piece, n * size);
    }
    return crc;
}

/* The wide field holds just those numbers that do not fit into the narrow ones. */
static void put_central(struct buf *out, const struct entry *entry)
{
    const bool wide_size = entry->size >= UINT32_MAX, wide_offset = entry->offset >= UINT32_MAX;
    const size_t wide = (wide_size ? 16U : 0U) + (wide_offset ? 8U : 0U);
    put_number(out, 0x02014b50, 4);
    put_number(out, 45, 2);
    put_common(out, entry, wide ? wide + 4 : 0);
    put_number(out, 0, 2); /* comment */
    put_number(out, 0, 2); /* disk */
    put_number(out, 0, 2);
    put_number(out, 0, 4);
    put_number(out, narrow(entry->offset, UINT32_MAX), 4);
    buf_text(out, entry->name);
    if (!wide)
        return;
    put_number(out, 1, 2);
    put_number(out, wide, 2);
    if (wide_size) {
        put_number(out, entry->size, 8);
        put_number(out, entry->size, 8);
    }
    if (wide_offset)
        put_number(out, entry->offset, 8);
}

static void put_end(struct buf *out, uint64_t start, unsigned count)
{
    const uint64_t size = out->size, end = start + size;
    if (end >= UINT32_MAX) {
        put_number(out, 0x06064b50, 4);
        put_number(out, 44, 8);
        put_number(out, 45, 2);
        put_number(out, 45, 2);
        put_number(out, 0, 8);
        put_number(out, count, 8);
        put_number(out, count, 8);
        put_number(out, size, 8);
        put_number(out, start, 8);
        put_number(out, 0x07064b50, 4);
        put_number(out, 0, 4);
        put_number(out, end, 8);
        put_number(out, 1, 4);
    }
    put_number(out, 0x06054b50, 4);
    put_number(out, 0, 4);
    put_number(out, count, 2);
    put_number(out, count, 2);
    put_number(out, size, 4);
    put_number(out, narrow(start, UINT32_MAX), 4);
    put_number(out, 0, 2);
}

static enum plumb_code finish(struct archive *archive, struct plumb_error *err)
{
    struct buf tail = {0};
    for (unsigned k = 0; k < archive->count; k++)
        put_central(&tail, &archive->entries[k]);
    put_end(&tail, archive->out.size, archive->count);
    enum plumb_code code =
        tail.failed ? plumb_no_memory(err) : output_bytes(&archive->out, tail.data, tail.size, err);
    buf_free(&tail);
    return code;
}

enum plumb_code plumb_pt_write(const char *path, const struct plumb_tensor *tensor,
                               struct plumb_error *err)
{
    uint64_t size;
    if ((!storage_of(tensor->dtype) && !is_recent(tensor->dtype)) ||
        !plumb_dtype_bytes(tensor->dtype, tensor->count, &size)) {
        plumb_fail(err, PLUMB_E_UNSUPPORTED, "PyTorch has no %s; write .safetensors instead",
                   plumb_dtype_info(tensor->dtype)->name);
        plumb_error_in_file(err, path);
        return PLUMB_E_UNSUPPORTED;
    }
    struct archive archive = {0};
    enum plumb_code code = output_open(&archive.out, path, err);
    if (code)
        return code;
    struct buf pickle = {0};
    make_pickle(&pickle, tensor);
    if (pickle.failed)
        code = plumb_no_memory(err);
    if (!code)
        code = add_bytes(&archive, "archive/data.pkl", pickle.data, pickle.size, err);
    if (!code)
        code = begin_entry(&archive, "archive/data/0", size, tensor_crc(tensor), err);
    if (!code)
        code = tensor_output(&archive.out, tensor, err);
    if (!code)
        code = add_bytes(&archive, "archive/version", "3\n", 2, err);
    if (!code)
        code = finish(&archive, err);
    buf_free(&pickle);
    if (!code)
        return output_commit(&archive.out, false, err);
    output_discard(&archive.out);
    return code;
}
