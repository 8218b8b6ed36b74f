/* Archives of torch.save. */
#include "format/format.h"
#include "format/pt_walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A deflated data.pkl that grows beyond this is no honest one. */
#define MAX_UNPACKED ((uint64_t)1 << 30)

static const uint8_t legacy_magic[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                       0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

static bool starts_with(const char *text, size_t length, const char *start)
{
    size_t n = strlen(start);
    return length >= n && memcmp(text, start, n) == 0;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && memcmp(text + length - n, end, n) == 0;
}

static bool is_pickle(const uint8_t *head, size_t n)
{
    return n > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

/* What torch wrote before 0.4: a tar of these members. */
static bool is_tar(const uint8_t *head, size_t n)
{
    static const char *const members[] = {"sys_info", "pickle", "storages", "tensors"};
    if (n < 262 || memcmp(head + 257, "ustar", 5) != 0)
        return false;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (memcmp(head, members[i], strlen(members[i]) + 1) == 0)
            return true;
    return false;
}

/* By the first member's name; torch.jit's archives are taken as well, to be refused with advice. */
static bool probe(const uint8_t *head, size_t n)
{
    static const char *const ends[] = {"/data.pkl",           "/constants.pkl", "/.format_version",
                                       "/.storage_alignment", "/byteorder",     "/version"};
    static const char *const folders[] = {"/data/", "/.data/", "/code/", "/extra/"};
    size_t length = 0;
    const char *name = zip_first_name(head, n, &length);
    if (!name)
        return is_pickle(head, n) || is_tar(head, n);
    if (ends_with(name, length, ".npy"))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, length, ends[i]))
            return true;
    const char *slash = memchr(name, '/', length);
    size_t rest = slash ? length - (size_t)(slash - name) : 0;
    for (size_t i = 0; slash && i < sizeof folders / sizeof *folders; i++)
        if (starts_with(slash, rest, folders[i]))
            return true;
    return length == 8 && memcmp(name, "data.pkl", 8) == 0;
}

/* Files that are torch's or Python's, but not the archive that torch.save writes today. */
static enum plumb_code refuse_legacy(const struct plumb_file *file, struct plumb_error *err)
{
    size_t n = file->size < 512 ? (size_t)file->size : 512;
    if (is_tar(file->data, n) ||
        (n >= sizeof legacy_magic && memcmp(file->data, legacy_magic, sizeof legacy_magic) == 0))
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, 0,
                             "this is the form torch wrote before version 1.6; load it with torch "
                             "and save it again: torch.save(torch.load(OLD), NEW)");
    if (is_pickle(file->data, n))
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, 0,
                             "this is a bare pickle; load it with Python and save its tensors with "
                             "torch.save");
    return PLUMB_OK;
}

static enum plumb_code find_pickle(struct pt_archive *archive, struct plumb_error *err)
{
    static const char name[] = "data.pkl";
    for (size_t i = 0; i < archive->zip.count; i++) {
        const struct zip_entry *entry = &archive->zip.entries[i];
        size_t before = entry->length - (sizeof name - 1);
        if (!ends_with(entry->name, entry->length, name) ||
            (before && entry->name[before - 1] != '/'))
            continue;
        if (archive->pickle)
            return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                                 "the archive has two data.pkl: '%.100s' and '%.100s'",
                                 archive->pickle->name, entry->name);
        archive->pickle = entry;
        archive->prefix = entry->name;
        archive->prefix_length = before;
    }
    if (!archive->pickle)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the archive has no data.pkl: torch.save did not write it");
    return PLUMB_OK;
}

static enum plumb_code refuse_script(const struct pt_archive *archive, struct plumb_error *err)
{
    bool script = pt_find(archive, "", "constants.pkl", 13);
    for (size_t i = 0; !script && i < archive->zip.count; i++) {
        const struct zip_entry *entry = &archive->zip.entries[i];
        script = entry->length > archive->prefix_length &&
                 memcmp(entry->name, archive->prefix, archive->prefix_length) == 0 &&
                 starts_with(entry->name + archive->prefix_length,
                             entry->length - archive->prefix_length, "code/");
    }
    if (!script)
        return PLUMB_OK;
    return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                      "this is a TorchScript program; save its weights alone: "
                      "torch.save(torch.jit.load(OLD).state_dict(), NEW)");
}

static enum plumb_code read_byteorder(struct pt_archive *archive, const struct plumb_file *file,
                                      struct plumb_error *err)
{
    const struct zip_entry *entry = pt_find(archive, "", "byteorder", 9);
    if (!entry)
        return PLUMB_OK; /* before torch 2.1: this machine's, in practice */
    char text[8] = "";
    if (entry->size >= sizeof text)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset, "the byte order is not stated");
    enum plumb_code code = zip_check(entry, err);
    if (!code && entry->method == ZIP_STORED)
        memcpy(text, file->data + entry->offset, (size_t)entry->size);
    else if (!code)
        code = zip_inflate(entry, file, text, err);
    if (code)
        return code;
    bool big = strcmp(text, "big") == 0;
    if (!big && strcmp(text, "little") != 0)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "the byte order is neither 'little' nor 'big'");
    archive->swap = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return PLUMB_OK;
}

/* data.pkl, in place or unpacked; *owned is what to free. */
static enum plumb_code load_pickle(struct pt_archive *archive, const struct plumb_file *file,
                                   const uint8_t **data, uint8_t **owned, struct plumb_error *err)
{
    const struct zip_entry *entry = archive->pickle;
    enum plumb_code code = zip_check(entry, err);
    if (code)
        return code;
    archive->pickle_size = (size_t)entry->size;
    *data = file->data + entry->offset;
    if (entry->method == ZIP_STORED)
        return PLUMB_OK;
    if (entry->size > MAX_UNPACKED)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, entry->offset,
                             "data.pkl would unpack to %" PRIu64 " bytes", entry->size);
    *owned = malloc(entry->size ? (size_t)entry->size : 1);
    if (!*owned)
        return plumb_no_memory(err);
    *data = *owned;
    return zip_inflate(entry, file, *owned, err);
}

/* Parses data.pkl; errors name the byte in it, and point to it in the file. */
static enum plumb_code parse_pickle(const struct pt_archive *archive, const uint8_t *data,
                                    struct arena *arena, struct pickle_value **root,
                                    struct plumb_error *err)
{
    struct plumb_error why;
    enum plumb_code code = pickle_parse(data, archive->pickle_size, arena, root, &why);
    if (!code)
        return PLUMB_OK;
    if (why.offset == PLUMB_NO_OFFSET)
        return plumb_fail(err, code, "%s", why.message);
    return plumb_fail_at(err, code, pt_file_offset(archive, why.offset),
                         "byte %" PRIu64 " of data.pkl: %s", why.offset, why.message);
}

/* A file that is one object of some class, without a tensor in it, is nothing plumb can speak
 * about. */
static enum plumb_code refuse_opaque(const struct pt_archive *archive,
                                     const struct pickle_value *root, struct plumb_error *err)
{
    static const char *const plain[] = {"collections.OrderedDict", "collections.defaultdict",
                                        "torch.Size", "torch.device"};
    const struct pickle_value *global = root->kind == PICKLE_OBJECT ? root->object->callable : root;
    if (global->kind != PICKLE_GLOBAL)
        return PLUMB_OK;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(global->global, plain[i]) == 0)
            return PLUMB_OK;
    return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, pt_file_offset(archive, global->offset),
                         "byte %" PRIu64 " of data.pkl: the global %.200s is refused, and there is "
                         "no tensor in what it would make",
                         global->offset, global->global);
}

enum plumb_code pt_open(struct pt_pickle *pt, const struct plumb_file *file,
                        struct plumb_error *err)
{
    *pt = (struct pt_pickle){0};
    enum plumb_code code = refuse_legacy(file, err);
    if (code)
        return code;
    code = zip_open(&pt->archive.zip, &pt->arena, file, err);
    if (code) {
        arena_free(&pt->arena);
        return code;
    }
    code = find_pickle(&pt->archive, err);
    if (!code)
        code = refuse_script(&pt->archive, err);
    if (!code)
        code = read_byteorder(&pt->archive, file, err);
    const uint8_t *data = NULL;
    if (!code)
        code = load_pickle(&pt->archive, file, &data, &pt->owned, err);
    if (!code)
        code = parse_pickle(&pt->archive, data, &pt->arena, &pt->root, err);
    if (code)
        pt_close(pt);
    return code;
}

void pt_close(struct pt_pickle *pt)
{
    zip_close(&pt->archive.zip);
    free(pt->owned);
    arena_free(&pt->arena);
}

static enum plumb_code list(struct listing *out, const struct plumb_file *file,
                            struct plumb_error *err)
{
    struct pt_pickle pt;
    size_t before = out->count;
    enum plumb_code code = pt_open(&pt, file, err);
    if (code)
        return code;
    code = pt_walk(out, &pt.archive, pt.root, err);
    if (!code && out->count == before)
        code = refuse_opaque(&pt.archive, pt.root, err);
    pt_close(&pt);
    return code;
}

static enum plumb_code read(const struct plumb_record *record, const struct plumb_file *file,
                            void **owned, uint64_t *bytes, struct plumb_error *err)
{
    const struct zip_entry *entry = record->detail;
    enum plumb_code code = zip_check(entry, err);
    if (code)
        return code;
    void *data = malloc(entry->size ? (size_t)entry->size : 1);
    if (!data)
        return plumb_fail(err, PLUMB_E_NOMEM, "out of memory for the %" PRIu64 " bytes of '%.100s'",
                          entry->size, entry->name);
    code = zip_inflate(entry, file, data, err);
    if (code) {
        free(data);
        return code;
    }
    *owned = data;
    *bytes = entry->size;
    return PLUMB_OK;
}

const struct format format_pt = {.name = "pt",
                                 .endings = ".pt .pth",
                                 .weight_endings = ".bin .ckpt",
                                 .weights = true,
                                 .probe = probe,
                                 .list = list,
                                 .read = read};
