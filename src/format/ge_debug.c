/* What Opdebug files say: which task overflowed. */
#include "format/ge_debug.h"

#include "format/bytes.h"

#include <inttypes.h>
#include <string.h>

enum { MAGIC = 0x5A5A5A5A, OLD_SIZE = 2048, HEAD = 24 };

/* Names of u64 fields; those that begin with '$' are addresses and shown in hex. */
static const char *const core_fields[] = {"model_id",   "stream_id", "task_id",   "task_type",
                                          "context_id", "thread_id", "$pc_start", "$para_base",
                                          "core_id",    "block_id",  "status",    NULL};
static const char *const sdma_fields[] = {"model_id",   "stream_id", "task_id",   "task_type",
                                          "context_id", "thread_id", "$src_addr", "$dst_addr",
                                          "channel_id", "status",    NULL};
static const char *const cpu_fields[] = {"model_id",  "stream_id",  "task_id",
                                         "task_type", "context_id", "cpu_id",
                                         "thread_id", "status",     NULL};
static const char *const old_fields[] = {"model_id",  "stream_id",  "task_id", "task_type",
                                         "$pc_start", "$para_base", NULL};
static const char *const old_status[] = {"$kernel_code", "block_idx", "status", NULL};
static const char *const one_status[] = {"status", NULL};

bool ge_debug_is(const char *file_name)
{
    return strncmp(file_name, "Opdebug.Node_OpDebug.", 21) == 0;
}

/* Appends "name value" for each field that has all of its bytes below size. */
static void put_fields(struct buf *out, const char *const *names, const uint8_t *data,
                       uint64_t size)
{
    const char *gap = "";
    for (; *names && size >= 8; names++, data += 8, size -= 8) {
        bool hex = **names == '$';
        uint64_t value = bytes_le64(data);
        if (hex)
            buf_printf(out, "%s%s 0x%" PRIx64, gap, *names + 1, value);
        else
            buf_printf(out, "%s%s %" PRIu64, gap, *names, value);
        gap = ", ";
    }
    buf_text(out, "\n");
}

static enum plumb_code put_new(struct buf *out, const uint8_t *data, uint64_t size,
                               struct plumb_error *err)
{
    static const struct {
        const char *title;
        const char *const *names;
    } kinds[] = {{"AI core", core_fields},
                 {"vector core", core_fields},
                 {"AI CPU", cpu_fields},
                 {"SDMA", sdma_fields}};
    if (size < HEAD)
        return plumb_fail(err, PLUMB_E_FORMAT, "overflow information of %" PRIu64 " bytes", size);
    uint32_t version = bytes_le32(data + 4), valid = bytes_le32(data + 8);
    uint32_t kind = bytes_le32(data + 12), length = bytes_le32(data + 20);
    if (kind >= sizeof kinds / sizeof *kinds)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 12, "the accelerator type %u is unknown", kind);
    if (length > size - HEAD)
        return plumb_fail_at(err, PLUMB_E_FORMAT, 20, "%u bytes promised where %" PRIu64 " are",
                             length, size - HEAD);
    buf_printf(out, "%s (version %u%s): ", kinds[kind].title, version,
               valid ? "" : ", marked as not valid");
    put_fields(out, kinds[kind].names, data + HEAD, length);
    /* The first version has three more words of status for a core. */
    if (kind <= 1 && version == 1 && length >= 14 * 8) {
        buf_printf(out, "%s: further status 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 "\n",
                   kinds[kind].title, bytes_le64(data + HEAD + 88), bytes_le64(data + HEAD + 96),
                   bytes_le64(data + HEAD + 104));
    }
    return PLUMB_OK;
}

static void put_old(struct buf *out, const uint8_t *data)
{
    static const struct {
        const char *title;
        unsigned at, words;
        const char *const *names;
    } parts[] = {{"DHA atomic add", 0, 6, old_fields},  {"DHA atomic add", 512, 1, one_status},
                 {"L2 atomic add", 128, 6, old_fields}, {"L2 atomic add", 768, 1, one_status},
                 {"AI core", 256, 6, old_fields},       {"AI core", 1024, 3, old_status}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_printf(out, "%s: ", parts[i].title);
        put_fields(out, parts[i].names, data + parts[i].at, parts[i].words * 8);
    }
}

enum plumb_code ge_debug_text(struct buf *out, const uint8_t *data, uint64_t size,
                              struct plumb_error *err)
{
    if (size >= 4 && bytes_le32(data) == MAGIC)
        return put_new(out, data, size, err);
    if (size != OLD_SIZE)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "overflow information has 2048 bytes or begins with a magic number; "
                          "this has %" PRIu64 " bytes and no magic number",
                          size);
    put_old(out, data);
    return PLUMB_OK;
}
