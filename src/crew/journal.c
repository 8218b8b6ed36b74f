/* The journal: a header, then entries with their checksum, appended one by one. */
#define _GNU_SOURCE
#include "crew/journal.h"

#include "base/folder.h"
#include "base/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "plumbjr1";

/* In front of each reply. */
struct head {
    uint32_t crc; /* of the rest of the head and the reply */
    uint32_t size;
    uint64_t job, piece, request;
};

uint64_t crew_hash(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

static uint32_t crc_of(const struct head *head, const void *reply)
{
    uint32_t crc = libdeflate_crc32(0, &head->size, sizeof *head - offsetof(struct head, size));
    return libdeflate_crc32(crc, reply, head->size);
}

static bool read_at(int fd, void *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)bytes + done, size - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool write_at(int fd, const void *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, size - done, (off_t)(at + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

static bool keep(struct crew_journal *journal, const struct crew_entry *entry)
{
    if (journal->count == journal->capacity) {
        size_t capacity = journal->capacity ? journal->capacity * 2 : 64;
        struct crew_entry *grown = realloc(journal->entries, capacity * sizeof *grown);
        if (!grown)
            return false;
        journal->entries = grown;
        journal->capacity = capacity;
    }
    journal->entries[journal->count++] = *entry;
    return true;
}

/* Lists what is whole; the file ends there from now on. */
static enum plumb_code list(struct crew_journal *journal, uint64_t size, struct plumb_error *err)
{
    struct buf reply = {0};
    struct head head;
    while (size - journal->end >= sizeof head &&
           read_at(journal->fd, &head, sizeof head, journal->end) &&
           head.size <= size - journal->end - sizeof head) {
        const struct crew_entry entry = {head.job, head.piece, head.request,
                                         journal->end + sizeof head, head.size};
        reply.size = 0;
        if (!crew_journal_read(journal, &entry, &reply) || crc_of(&head, reply.data) != head.crc)
            break;
        if (!keep(journal, &entry)) {
            buf_free(&reply);
            return plumb_no_memory(err);
        }
        journal->end = entry.at + entry.size;
    }
    buf_free(&reply);
    return PLUMB_OK;
}

/* A file of another identity that has the same name is begun anew. */
static enum plumb_code begin(struct crew_journal *journal, const void *identity, size_t size,
                             struct plumb_error *err)
{
    struct buf header = {0}, found = {0};
    struct stat st;
    uint64_t length = size;
    enum plumb_code code = PLUMB_OK;
    buf_append(&header, magic, sizeof magic);
    buf_append(&header, &length, sizeof length);
    buf_append(&header, identity, size);
    journal->end = header.size;
    buf_repeat(&found, 0, header.size);
    if (header.failed || found.failed)
        code = plumb_no_memory(err);
    else if (fstat(journal->fd, &st) != 0)
        code = plumb_fail(err, PLUMB_E_IO, "cannot read it: %s", strerror(errno));
    else if ((uint64_t)st.st_size >= header.size &&
             read_at(journal->fd, found.data, header.size, 0) &&
             memcmp(found.data, header.data, header.size) == 0)
        code = list(journal, (uint64_t)st.st_size, err);
    else if (!write_at(journal->fd, header.data, header.size, 0))
        code = plumb_fail(err, PLUMB_E_IO, "cannot write it: %s", strerror(errno));
    if (!code && ftruncate(journal->fd, (off_t)journal->end) != 0)
        code = plumb_fail(err, PLUMB_E_IO, "cannot write it: %s", strerror(errno));
    buf_free(&header);
    buf_free(&found);
    return code;
}

enum plumb_code crew_journal_open(struct crew_journal *journal, const char *folder,
                                  const void *identity, size_t size, struct plumb_error *err)
{
    *journal = (struct crew_journal){.fd = -1};
    enum plumb_code code = folder_make(folder, err);
    if (code)
        return code;
    if (asprintf(&journal->path, "%s/plumb-%016" PRIx64 ".journal", folder,
                 crew_hash(identity, size)) < 0) {
        journal->path = NULL;
        return plumb_no_memory(err);
    }
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (journal->fd < 0)
        code = plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
    else if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0)
        code = plumb_fail(err, PLUMB_E_ARG, "another start of the same command is at work on it");
    else
        code = begin(journal, identity, size, err);
    plumb_error_in_file(err, journal->path);
    journal->open = !code;
    if (code)
        crew_journal_close(journal, false);
    return code;
}

enum plumb_code crew_journal_add(struct crew_journal *journal, const struct crew_entry *entry,
                                 const void *reply, struct plumb_error *err)
{
    if (!journal->open || entry->size > UINT32_MAX)
        return PLUMB_OK;
    struct head head = {.size = (uint32_t)entry->size,
                        .job = entry->job,
                        .piece = entry->piece,
                        .request = entry->request};
    head.crc = crc_of(&head, reply);
    struct buf bytes = {0};
    buf_append(&bytes, &head, sizeof head);
    buf_append(&bytes, reply, entry->size);
    const bool written =
        !bytes.failed && write_at(journal->fd, bytes.data, bytes.size, journal->end);
    enum plumb_code code = PLUMB_OK;
    if (written) {
        journal->end += bytes.size;
    } else {
        code = plumb_fail(err, PLUMB_E_IO, "cannot write it: %s", strerror(errno));
        plumb_error_in_file(err, journal->path);
        journal->open = false;
    }
    buf_free(&bytes);
    return code;
}

bool crew_journal_read(const struct crew_journal *journal, const struct crew_entry *entry,
                       struct buf *reply)
{
    buf_repeat(reply, 0, (size_t)entry->size);
    return !reply->failed &&
           (!entry->size || read_at(journal->fd, reply->data, (size_t)entry->size, entry->at));
}

void crew_journal_close(struct crew_journal *journal, bool done)
{
    if (done && journal->path)
        unlink(journal->path);
    if (journal->path && journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal->entries);
    *journal = (struct crew_journal){0};
}
