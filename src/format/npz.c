/* .npz archives. */
#include "format/format.h"
#include "format/npy.h"
#include "format/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Enough of a deflated member to hold the longest header that version 1.0 can have. */
enum { HEAD_BYTES = 66 * 1024 };

static const char suffix[] = ".npy";

static bool is_array(const char *name, size_t length)
{
    size_t n = sizeof suffix - 1;
    return length > n && memcmp(name + length - n, suffix, n) == 0;
}

static bool probe(const uint8_t *head, size_t n)
{
    static const uint8_t empty[] = {'P', 'K', 5, 6};
    size_t length = 0;
    const char *name = zip_first_name(head, n, &length);
    if (name)
        return is_array(name, length);
    return n >= sizeof empty && memcmp(head, empty, sizeof empty) == 0;
}

/* The array's header: in place for a stored member, else unpacked into head. */
static enum plumb_code read_header(const struct zip_entry *entry, const struct plumb_file *file,
                                   uint8_t *head, struct npy_header *header,
                                   struct plumb_error *err)
{
    const uint8_t *data = file->data + entry->offset;
    size_t size = (size_t)entry->size;
    enum plumb_code code = zip_check(entry, err);
    if (!code && entry->method == ZIP_DEFLATED) {
        data = head;
        code = zip_inflate_head(entry, file, head, HEAD_BYTES, &size, err);
    }
    if (code)
        return code;
    code = npy_parse(data, size, header, err);
    if (code && err && err->offset != PLUMB_NO_OFFSET)
        err->offset = entry->method == ZIP_STORED ? err->offset + entry->offset : entry->offset;
    return code;
}

static enum plumb_code set_array(struct listing *out, struct plumb_record *record,
                                 const struct zip_entry *entry, const struct npy_header *header,
                                 struct plumb_error *err)
{
    enum plumb_code code =
        listing_set_shape(out, record, header->dtype, header->ndim, header->shape, err);
    if (code)
        return code;
    uint64_t bytes = 0;
    uint64_t room = header->data_offset > entry->size ? 0 : entry->size - header->data_offset;
    if (!plumb_dtype_bytes(header->dtype, record->count, &bytes) || bytes != room)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "the header of '%.100s' promises %" PRIu64
                             " bytes of elements, but the member has %" PRIu64,
                             entry->name, bytes, room);
    record->swap = header->swap;
    if (header->fortran && header->ndim > 1) {
        int64_t stride[PLUMB_MAX_RANK];
        npy_fortran_strides(header->ndim, header->shape, stride);
        if (!listing_set_view(out, record, 0, stride))
            return plumb_no_memory(err);
    }
    if (entry->method == ZIP_STORED) {
        record->offset = entry->offset + header->data_offset;
        record->bytes = bytes;
    } else {
        record->offset = entry->offset;
        record->bytes = entry->packed;
        record->detail = entry;
    }
    return PLUMB_OK;
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    struct zip zip;
    enum plumb_code code = zip_open(&zip, out->arena, file, err);
    if (code)
        return code;
    uint8_t *head = malloc(HEAD_BYTES);
    if (!head)
        code = plumb_no_memory(err);
    for (size_t i = 0; !code && i < zip.count; i++) {
        const struct zip_entry *entry = &zip.entries[i];
        if (!is_array(entry->name, entry->length))
            continue;
        struct plumb_record *record =
            listing_add(out, entry->name, entry->length - (sizeof suffix - 1));
        if (!record) {
            code = plumb_no_memory(err);
            break;
        }
        struct npy_header header;
        struct plumb_error why;
        enum plumb_code bad = read_header(entry, file, head, &header, &why);
        if (!bad)
            bad = set_array(out, record, entry, &header, &why);
        if (bad == PLUMB_E_NOMEM || (bad && listing_fail(out, record, &why)))
            code = plumb_no_memory(err);
    }
    free(head);
    zip_close(&zip);
    return code;
}

static enum plumb_code read(const struct plumb_record *record, const struct plumb_file *file,
                            void **owned, uint64_t *bytes, struct plumb_error *err)
{
    const struct zip_entry *entry = record->detail;
    struct npy_header header;
    enum plumb_code code = zip_check(entry, err);
    if (code)
        return code;
    uint8_t *data = malloc(entry->size ? (size_t)entry->size : 1);
    if (!data)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory for the %" PRIu64 " bytes of '%.100s'",
                          entry->size, entry->name);
    code = zip_inflate(entry, file, data, err);
    if (!code)
        code = npy_parse(data, entry->size, &header, err);
    if (code) {
        free(data);
        return code;
    }
    *bytes = entry->size - header.data_offset;
    memmove(data, data + header.data_offset, (size_t)*bytes);
    *owned = data;
    return PLUMB_OK;
}

const struct format format_npz = {
    .name = "npz", .endings = ".npz", .probe = probe, .list = list, .read = read};
