/* HDF5 files, as plumb-h5 describes them. */
#include "format/h5plain.h"
#include "format/h5proc.h"
#include "format/h5reply.h"
#include "format/writer.h"

#include <stdlib.h>
#include <string.h>

/* The format itself: libhdf5 finds out what is where, in a process of its own because damaged files
 * crash it; the bytes are mapped or decoded here, because it would do so on one thread at a time.
 * Plain files are understood without it: starting a process takes longer than all else. */

static const double list_seconds = 60, bytes_per_second = 2e7;
#define REPLY_BASE ((uint64_t)64 << 20)
#define REPLY_MOST ((uint64_t)1 << 30)

static bool hdf5_probe(const uint8_t *head, size_t n)
{
    return n >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static double seconds_for(uint64_t bytes)
{
    return list_seconds + (double)bytes / bytes_per_second;
}

/* Runs the helper to its end. */
static enum plumb_code ask(const char *const arguments[], double seconds, size_t expected,
                           size_t limit, void **data, size_t *size, struct plumb_error *err)
{
    struct h5proc proc;
    enum plumb_code code = h5proc_start(&proc, arguments, false, seconds, err);
    if (code)
        return code;
    code = h5proc_collect(&proc, expected, limit, data, size, err);
    if (code) {
        h5proc_kill(&proc);
        return code;
    }
    code = h5proc_finish(&proc, err);
    if (code) {
        free(*data);
        *data = NULL;
    }
    return code;
}

/* What libhdf5 finds in the file. */
static enum plumb_code ask_list(struct listing *out, const struct plumb_file *file,
                                struct plumb_error *err)
{
    uint64_t limit =
        file->size < (REPLY_MOST - REPLY_BASE) / 8 ? REPLY_BASE + 8 * file->size : REPLY_MOST;
    void *reply;
    size_t size;
    const char *const arguments[] = {"list", out->path, NULL};
    enum plumb_code code =
        ask(arguments, seconds_for(file->size), 4096, (size_t)limit, &reply, &size, err);
    if (code)
        return code;
    code = h5reply_parse(out, reply, size, file->size, err);
    free(reply);
    return code;
}

static enum plumb_code hdf5_list(struct listing *out, const struct plumb_file *file,
                                 struct plumb_error *err)
{
    struct buf plain = {0};
    const bool known = h5plain_list(&plain, file->data, (size_t)file->size);
    enum plumb_code code = known ? h5reply_parse(out, plain.data, plain.size, file->size, err)
                           : plain.failed ? plumb_no_memory(err)
                                          : ask_list(out, file, err);
    buf_free(&plain);
    return code;
}

static enum plumb_code hdf5_read(const struct plumb_record *record, const struct plumb_file *file,
                                 void **owned, uint64_t *bytes, struct plumb_error *err)
{
    const struct h5_detail *detail = record->detail;
    if (detail->layout == H5_CHUNKED)
        return h5chunk_read(record, file, owned, bytes, err);

    size_t size;
    const char *const arguments[] = {"read", record->path, detail->dataset, NULL};
    enum plumb_code code = ask(arguments, seconds_for(detail->bytes), (size_t)detail->bytes,
                               (size_t)detail->bytes, owned, &size, err);
    if (code)
        return code;
    if (size != detail->bytes) {
        free(*owned);
        *owned = NULL;
        return plumb_fail(err, PLUMB_E_FORMAT, "libhdf5 read %zu bytes instead of %llu", size,
                          (unsigned long long)detail->bytes);
    }
    *bytes = size;
    return PLUMB_OK;
}

const struct format format_hdf5 = {.name = "hdf5",
                                   .endings = ".h5 .hdf5",
                                   .probe = hdf5_probe,
                                   .list = hdf5_list,
                                   .read = hdf5_read,
                                   .write = hdf5_writer_open};
