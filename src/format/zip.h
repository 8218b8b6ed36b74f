/* Members of a ZIP archive, read from its central directory over a mapped file.
 *
 * Sizes and offsets come from the central directory alone: torch leaves them zero in the headers
 * that precede the data. An archive that contradicts itself is refused as a whole; a member that is
 * merely packed in a way plumb does not know is refused when it is used (zip_check). */
#ifndef FORMAT_ZIP_H
#define FORMAT_ZIP_H

#include "base/arena.h"
#include "base/map.h"
#include "plumb/file.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_entry {
    const char *name; /* NUL-terminated; relative, without "..", backslash or NUL */
    size_t length;
    uint16_t method;
    uint32_t crc;
    uint64_t packed; /* bytes in the file */
    uint64_t size;   /* bytes once unpacked */
    uint64_t offset; /* of the data in the file; offset + packed is inside it */
};

struct zip {
    const struct zip_entry *entries; /* in the directory's order; in the arena */
    size_t count;
    struct map names; /* name -> index */
};

/* Reads the directory. Refuses archives that are cut short, span several disks, are encrypted,
 * whose members overlap one another or the directory, or whose names are duplicate or could leave a
 * folder. Memory is bounded by the size of the directory. zip_close is needed only on success. */
enum plumb_code zip_open(struct zip *zip, struct arena *arena, const struct plumb_file *file,
                         struct plumb_error *err);
void zip_close(struct zip *zip); /* forgets the names; the entries live on in the arena */

/* The member called name, or NULL. */
const struct zip_entry *zip_find(const struct zip *zip, const char *name, size_t length);

/* Can the member be unpacked: known method, sizes that are possible? */
enum plumb_code zip_check(const struct zip_entry *entry, struct plumb_error *err);

/* Unpacks a member into dst, which has room for entry->size bytes, and checks its CRC. */
enum plumb_code zip_inflate(const struct zip_entry *entry, const struct plumb_file *file, void *dst,
                            struct plumb_error *err);

/* Unpacks the beginning of a deflated member: up to room bytes, *got of them valid. No CRC
 * check. */
enum plumb_code zip_inflate_head(const struct zip_entry *entry, const struct plumb_file *file,
                                 void *dst, size_t room, size_t *got, struct plumb_error *err);

/* The name of the first member that is not a folder, by the first n bytes of a file; NULL when they
 * do not start an archive or do not reach that far. Not NUL-terminated. */
const char *zip_first_name(const uint8_t *head, size_t n, size_t *length);

#endif
