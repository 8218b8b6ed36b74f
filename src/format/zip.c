/* Members of a ZIP archive. */
#include "format/zip.h"

#include "format/bytes.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOCAL_SIZE = 30,
    CENTRAL_SIZE = 46,
    END_SIZE = 22,
    END64_SIZE = 56,
    LOCATOR_SIZE = 20,
    COMMENT_MAX = 65535,
    /* A deflate stream cannot grow by more than this (a match of 258 bytes takes two bits). */
    DEFLATE_RATIO = 1032,
    MATCH_MAX = 258,
};

#define LOCAL_MAGIC 0x04034b50u
#define CENTRAL_MAGIC 0x02014b50u
#define END_MAGIC 0x06054b50u
#define END64_MAGIC 0x06064b50u
#define LOCATOR_MAGIC 0x07064b50u

/* Where the directory is and how many members it promises. */
struct directory {
    uint64_t offset, size, count;
};

/* The bytes that a member occupies, its header included. */
struct extent {
    uint64_t from, to;
    size_t index;
};

static enum plumb_code find_end(const struct plumb_file *file, uint64_t *end,
                                struct plumb_error *err)
{
    if (file->size < END_SIZE)
        return plumb_fail_at(err, PLUMB_E_FORMAT, file->size,
                             "the file is too short to be a ZIP archive");
    uint64_t last = file->size - END_SIZE;
    uint64_t first = last > COMMENT_MAX ? last - COMMENT_MAX : 0;
    for (uint64_t at = last + 1; at-- > first;) {
        const uint8_t *p = file->data + at;
        if (bytes_le32(p) == END_MAGIC && bytes_le16(p + 20) == last - at) {
            *end = at;
            return PLUMB_OK;
        }
    }
    return plumb_fail_at(err, PLUMB_E_FORMAT, file->size,
                         "the archive has no directory at its end: the file is cut short, or is no "
                         "ZIP archive");
}

/* The 64-bit end record, which the locator in front of the short one points to. What both state
 * must agree, so that no other reader sees another archive in the same bytes. */
static enum plumb_code read_end64(const struct plumb_file *file, uint64_t end,
                                  struct directory *dir, uint64_t *limit, struct plumb_error *err)
{
    const uint8_t *locator = file->data + end - LOCATOR_SIZE;
    uint64_t at = bytes_le64(locator + 8);
    if (bytes_le32(locator + 4) != 0 || bytes_le32(locator + 16) > 1)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, end - LOCATOR_SIZE,
                             "the archive is split over several disks: join it first");
    if (end - LOCATOR_SIZE < END64_SIZE || at > end - LOCATOR_SIZE - END64_SIZE ||
        bytes_le32(file->data + at) != END64_MAGIC)
        return plumb_fail_at(err, PLUMB_E_FORMAT, end - LOCATOR_SIZE,
                             "the zip64 locator does not point to a zip64 end record");
    const uint8_t *p = file->data + at;
    if (bytes_le32(p + 16) != 0 || bytes_le32(p + 20) != 0 ||
        bytes_le64(p + 24) != bytes_le64(p + 32))
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, at,
                             "the archive is split over several disks: join it first");
    struct directory wide = {
        .count = bytes_le64(p + 32), .size = bytes_le64(p + 40), .offset = bytes_le64(p + 48)};
    if ((dir->count != UINT16_MAX && dir->count != wide.count) ||
        (dir->size != UINT32_MAX && dir->size != wide.size) ||
        (dir->offset != UINT32_MAX && dir->offset != wide.offset))
        return plumb_fail_at(err, PLUMB_E_FORMAT, at,
                             "the zip64 end record and the end record describe two different "
                             "directories");
    *dir = wide;
    *limit = at;
    return PLUMB_OK;
}

static enum plumb_code find_directory(const struct plumb_file *file, struct directory *dir,
                                      struct plumb_error *err)
{
    uint64_t end = 0;
    enum plumb_code code = find_end(file, &end, err);
    if (code)
        return code;
    const uint8_t *p = file->data + end;
    uint64_t limit = end;
    *dir = (struct directory){
        .count = bytes_le16(p + 10), .size = bytes_le32(p + 12), .offset = bytes_le32(p + 16)};
    if (end >= LOCATOR_SIZE && bytes_le32(p - LOCATOR_SIZE) == LOCATOR_MAGIC) {
        code = read_end64(file, end, dir, &limit, err);
        if (code)
            return code;
    } else if (bytes_le16(p + 4) != 0 || bytes_le16(p + 6) != 0 ||
               bytes_le16(p + 8) != bytes_le16(p + 10)) {
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, end,
                             "the archive is split over several disks: join it first");
    }
    if (dir->size > limit || dir->offset > limit - dir->size)
        return plumb_fail_at(err, PLUMB_E_FORMAT, end,
                             "the directory of %" PRIu64 " bytes at %" PRIu64
                             " does not fit in front of its end record",
                             dir->size, dir->offset);
    if (dir->count > dir->size / CENTRAL_SIZE)
        return plumb_fail_at(err, PLUMB_E_FORMAT, end,
                             "%" PRIu64 " members are promised, but the directory has only %" PRIu64
                             " bytes",
                             dir->count, dir->size);
    return PLUMB_OK;
}

/* A name that stays inside the folder it would be unpacked to, and means the same everywhere. */
static bool name_is_safe(const char *name, size_t length)
{
    if (!length || name[0] == '/' || memchr(name, '\\', length) || memchr(name, '\0', length))
        return false;
    for (size_t from = 0; from < length;) {
        const char *slash = memchr(name + from, '/', length - from);
        size_t part = slash ? (size_t)(slash - name) - from : length - from;
        if (part == 2 && name[from] == '.' && name[from + 1] == '.')
            return false;
        from += part + 1;
    }
    return !(length > 2 && name[1] == ':' && name[2] == '/');
}

/* Replaces the saturated 32-bit fields by those of the zip64 extra field, which holds only them. */
static bool widen(const uint8_t *extra, size_t length, uint64_t *fields[3])
{
    while (length >= 4) {
        size_t size = bytes_le16(extra + 2);
        if (size > length - 4)
            return false;
        if (bytes_le16(extra) == 1) {
            const uint8_t *p = extra + 4;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX)
                    continue;
                if (size < 8)
                    return false;
                *fields[i] = bytes_le64(p);
                p += 8;
                size -= 8;
            }
            return true;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return true; /* nothing to replace; a true 0xffffffff is possible */
}

/* Turns the offset of the local header into that of the data, and notes the bytes taken. */
static enum plumb_code find_data(const struct plumb_file *file, const struct directory *dir,
                                 uint64_t central, struct zip_entry *entry, struct extent *extent,
                                 struct plumb_error *err)
{
    uint64_t at = entry->offset;
    if (dir->offset < LOCAL_SIZE || at > dir->offset - LOCAL_SIZE)
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "member '%.100s' is said to start at byte %" PRIu64
                             ", outside the archive's data",
                             entry->name, at);
    const uint8_t *p = file->data + at;
    if (bytes_le32(p) != LOCAL_MAGIC)
        return plumb_fail_at(err, PLUMB_E_FORMAT, at, "no header of member '%.100s' here",
                             entry->name);
    uint64_t length = bytes_le16(p + 26);
    uint64_t skip = LOCAL_SIZE + length + bytes_le16(p + 28);
    if (skip > dir->offset - at || entry->packed > dir->offset - at - skip)
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "member '%.100s' of %" PRIu64 " bytes runs into the directory",
                             entry->name, entry->packed);
    if (length != entry->length || memcmp(p + LOCAL_SIZE, entry->name, length) != 0)
        return plumb_fail_at(err, PLUMB_E_FORMAT, at,
                             "the header of member '%.100s' carries another name than the "
                             "directory",
                             entry->name);
    entry->offset = at + skip;
    extent->from = at;
    extent->to = entry->offset + entry->packed;
    return PLUMB_OK;
}

/* One directory entry at *at; moves *at behind it. */
static enum plumb_code read_entry(struct arena *arena, const struct plumb_file *file,
                                  const struct directory *dir, uint64_t *at,
                                  struct zip_entry *entry, struct extent *extent,
                                  struct plumb_error *err)
{
    uint64_t central = *at, left = dir->offset + dir->size - central;
    const uint8_t *p = file->data + central;
    if (left < CENTRAL_SIZE || bytes_le32(p) != CENTRAL_MAGIC)
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "a directory entry was expected here: the directory is damaged");
    size_t name = bytes_le16(p + 28), extra = bytes_le16(p + 30), comment = bytes_le16(p + 32);
    if (name + extra + comment > left - CENTRAL_SIZE)
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "a directory entry runs over the end of the directory");
    *at += CENTRAL_SIZE + name + extra + comment;

    const char *text = (const char *)p + CENTRAL_SIZE;
    if (!name_is_safe(text, name))
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "the member name '%.*s' is empty, absolute, or has '..', a backslash "
                             "or a NUL in it",
                             (int)(name > 100 ? 100 : name), text);
    if (bytes_le16(p + 8) & 0x2041)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, central,
                             "member '%.*s' is encrypted: unpack the archive and pack it without a "
                             "password",
                             (int)(name > 100 ? 100 : name), text);
    if (bytes_le16(p + 34) != 0 && bytes_le16(p + 34) != UINT16_MAX)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, central,
                             "the archive is split over several disks: join it first");
    *entry = (struct zip_entry){.name = arena_copy(arena, text, name),
                                .length = name,
                                .method = bytes_le16(p + 10),
                                .crc = bytes_le32(p + 16),
                                .packed = bytes_le32(p + 20),
                                .size = bytes_le32(p + 24),
                                .offset = bytes_le32(p + 42)};
    if (!entry->name)
        return plumb_no_memory(err);
    if (!widen(p + CENTRAL_SIZE + name, extra,
               (uint64_t *[3]){&entry->size, &entry->packed, &entry->offset}))
        return plumb_fail_at(err, PLUMB_E_FORMAT, central,
                             "the extra fields of member '%.100s' are damaged", entry->name);
    return find_data(file, dir, central, entry, extent, err);
}

static int by_start(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static enum plumb_code refuse_overlap(const struct zip_entry *entries, struct extent *extents,
                                      size_t count, struct plumb_error *err)
{
    qsort(extents, count, sizeof *extents, by_start);
    for (size_t i = 1; i < count; i++) {
        if (extents[i].from < extents[i - 1].to)
            return plumb_fail_at(
                err, PLUMB_E_FORMAT, extents[i].from, "members '%.100s' and '%.100s' overlap",
                entries[extents[i - 1].index].name, entries[extents[i].index].name);
    }
    return PLUMB_OK;
}

enum plumb_code zip_open(struct zip *zip, struct arena *arena, const struct plumb_file *file,
                         struct plumb_error *err)
{
    *zip = (struct zip){0};
    struct directory dir;
    enum plumb_code code = find_directory(file, &dir, err);
    if (code)
        return code;

    size_t count = (size_t)dir.count;
    struct zip_entry *entries = arena_array(arena, count, sizeof *entries);
    struct extent *extents = calloc(count ? count : 1, sizeof *extents);
    if (!entries || !extents) {
        code = plumb_no_memory(err);
        goto out;
    }
    uint64_t at = dir.offset;
    for (size_t i = 0; i < count; i++) {
        uint64_t central = at;
        code = read_entry(arena, file, &dir, &at, &entries[i], &extents[i], err);
        if (code)
            goto out;
        extents[i].index = i;
        bool added;
        uint64_t *place = map_put(&zip->names, entries[i].name, entries[i].length, &added);
        if (!place || !added) {
            code = !place ? plumb_no_memory(err)
                          : plumb_fail_at(err, PLUMB_E_FORMAT, central,
                                          "the archive has two members called '%.100s'",
                                          entries[i].name);
            goto out;
        }
        *place = i;
    }
    if (at != dir.offset + dir.size) {
        code = plumb_fail_at(err, PLUMB_E_FORMAT, at,
                             "the directory goes on after the %" PRIu64 " members it promised",
                             dir.count);
        goto out;
    }
    code = refuse_overlap(entries, extents, count, err);
    zip->entries = entries;
    zip->count = count;
out:
    free(extents);
    if (code)
        zip_close(zip);
    return code;
}

void zip_close(struct zip *zip)
{
    map_free(&zip->names);
}

const struct zip_entry *zip_find(const struct zip *zip, const char *name, size_t length)
{
    const uint64_t *place = map_get(&zip->names, name, length);
    return place ? &zip->entries[*place] : NULL;
}

enum plumb_code zip_check(const struct zip_entry *entry, struct plumb_error *err)
{
    if (entry->method != ZIP_STORED && entry->method != ZIP_DEFLATED)
        return plumb_fail_at(err, PLUMB_E_UNSUPPORTED, entry->offset,
                             "member '%.100s' is packed with method %u; plumb reads stored and "
                             "deflated members: pack it again",
                             entry->name, entry->method);
    bool possible = entry->method == ZIP_STORED ? entry->size == entry->packed
                                                : entry->size / DEFLATE_RATIO <= entry->packed;
    if (!possible || entry->size > SIZE_MAX / 2)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "member '%.100s' promises %" PRIu64 " bytes, which its %" PRIu64
                             " packed bytes cannot hold",
                             entry->name, entry->size, entry->packed);
    return PLUMB_OK;
}

/* Inflates into room bytes; *result and *got as libdeflate says. */
static enum plumb_code decompress(const struct zip_entry *entry, const struct plumb_file *file,
                                  void *dst, size_t room, enum libdeflate_result *result,
                                  size_t *got, struct plumb_error *err)
{
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    if (!inflater)
        return plumb_no_memory(err);
    *result = libdeflate_deflate_decompress(inflater, file->data + entry->offset,
                                            (size_t)entry->packed, dst, room, got);
    libdeflate_free_decompressor(inflater);
    return PLUMB_OK;
}

static enum plumb_code check_inside(const struct zip_entry *entry, const struct plumb_file *file,
                                    struct plumb_error *err)
{
    if (entry->offset > file->size || entry->packed > file->size - entry->offset)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "member '%.100s' is no longer inside the file", entry->name);
    return zip_check(entry, err);
}

enum plumb_code zip_inflate(const struct zip_entry *entry, const struct plumb_file *file, void *dst,
                            struct plumb_error *err)
{
    enum plumb_code code = check_inside(entry, file, err);
    if (code)
        return code;
    size_t size = (size_t)entry->size;
    if (entry->method == ZIP_STORED) {
        if (size)
            memcpy(dst, file->data + entry->offset, size);
    } else {
        enum libdeflate_result result = LIBDEFLATE_BAD_DATA;
        size_t got = 0;
        code = decompress(entry, file, dst, size, &result, &got, err);
        if (code)
            return code;
        if (result != LIBDEFLATE_SUCCESS || got != size)
            return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                                 "the deflated data of member '%.100s' is damaged or does not give "
                                 "the %zu bytes promised",
                                 entry->name, size);
    }
    if (libdeflate_crc32(0, dst, size) != entry->crc)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "the CRC-32 of member '%.100s' does not match: its data is damaged",
                             entry->name);
    return PLUMB_OK;
}

enum plumb_code zip_inflate_head(const struct zip_entry *entry, const struct plumb_file *file,
                                 void *dst, size_t room, size_t *got, struct plumb_error *err)
{
    *got = 0;
    enum plumb_code code = check_inside(entry, file, err);
    if (code)
        return code;
    enum libdeflate_result result = LIBDEFLATE_BAD_DATA;
    code = decompress(entry, file, dst, room, &result, got, err);
    if (code)
        return code;
    /* libdeflate does not stream, but it writes as far as the room goes before it says that there
     * is too little of it; only the match that did not fit is missing. */
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE && room > MATCH_MAX)
        *got = room - MATCH_MAX;
    else if (result != LIBDEFLATE_SUCCESS)
        return plumb_fail_at(err, PLUMB_E_FORMAT, entry->offset,
                             "the deflated data of member '%.100s' is damaged", entry->name);
    return PLUMB_OK;
}

const char *zip_first_name(const uint8_t *head, size_t n, size_t *length)
{
    while (n >= LOCAL_SIZE && bytes_le32(head) == LOCAL_MAGIC) {
        size_t name = bytes_le16(head + 26);
        if (!name || name > n - LOCAL_SIZE)
            return NULL;
        if (head[LOCAL_SIZE + name - 1] != '/') {
            *length = name;
            return (const char *)head + LOCAL_SIZE;
        }
        size_t skip = LOCAL_SIZE + name + bytes_le16(head + 28);
        if (skip > n)
            return NULL;
        head += skip;
        n -= skip;
    }
    return NULL;
}
