/* Files that appear whole: written under a temporary name, then renamed. */
#define _GNU_SOURCE
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 * 1024, MAX_WRITE = 1 << 30, MAX_TRIES = 1000 };

static enum plumb_code fail_errno(const struct output *out, const char *what,
                                  struct plumb_error *err)
{
    plumb_fail(err, PLUMB_E_IO, "cannot %s: %s", what, strerror(errno));
    plumb_error_in_file(err, out->path);
    return PLUMB_E_IO;
}

/* The leading dot keeps a half-written file out of runs that are read meanwhile. */
enum plumb_code output_open(struct output *out, const char *path, struct plumb_error *err)
{
    *out = (struct output){.fd = -1};
    enum plumb_code code = PLUMB_OK;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t room = strlen(path) + 64;
    out->path = strdup(path);
    out->temp = malloc(room);
    if (!out->path || !out->temp) {
        code = plumb_no_memory(err);
        goto out;
    }
    for (int i = 0; i < MAX_TRIES && out->fd < 0; i++) {
        snprintf(out->temp, room, "%.*s.%.200s.%ld-%d.tmp", (int)(name - path), path, name,
                 (long)getpid(), i);
        out->fd = open(out->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd < 0 && errno != EEXIST)
            break;
    }
    if (out->fd < 0)
        code = fail_errno(out, "create it", err);
out:
    if (code) {
        free(out->temp);
        free(out->path);
        *out = (struct output){0};
    }
    return code;
}

enum plumb_code output_bytes(struct output *out, const void *bytes, uint64_t size,
                             struct plumb_error *err)
{
    const char *at = bytes;
    while (size) {
        ssize_t written = write(out->fd, at, size < MAX_WRITE ? (size_t)size : MAX_WRITE);
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return fail_errno(out, "write it", err);
        }
        at += written;
        size -= (uint64_t)written;
        out->size += (uint64_t)written;
    }
    return PLUMB_OK;
}

enum plumb_code output_copy(struct output *out, const struct output *from, struct plumb_error *err)
{
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    for (uint64_t at = 0; at < from->size && !code;) {
        uint64_t left = from->size - at;
        size_t size = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        ssize_t got = pread(from->fd, piece, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO;
            code = fail_errno(out, "read back what was written", err);
            break;
        }
        code = output_bytes(out, piece, (uint64_t)got, err);
        at += (uint64_t)got;
    }
    free(piece);
    return code;
}

bool output_claim(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* Not every file system knows that, and not every one has links. */
    if (link(from, to) == 0) {
        unlink(from);
        return true;
    }
    if (errno == EEXIST)
        return false;
    if (faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(from, to) == 0;
}

enum plumb_code output_end(struct output *out, bool sync, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    /* Not every file can be synced. */
    if (sync && fsync(out->fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        code = fail_errno(out, "write it", err);
    /* A full disk may show only here. */
    if (close(out->fd) != 0 && !code)
        code = fail_errno(out, "write it", err);
    out->fd = -1;
    return code;
}

bool output_sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    /* File systems that cannot sync a folder say EINVAL, and keep its entries in order. */
    bool good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    int why = errno;
    if (fd >= 0)
        close(fd);
    free(folder);
    errno = why;
    return good;
}

enum plumb_code output_commit(struct output *out, bool sync, struct plumb_error *err)
{
    enum plumb_code code = output_end(out, sync, err);
    bool named = !code && (!out->temp   ? true
                           : out->fresh ? output_claim(out->temp, out->path)
                                        : rename(out->temp, out->path) == 0);
    if (!code && !named && out->fresh && errno == EEXIST) {
        code = plumb_fail(err, PLUMB_E_ARG, "it exists, and is not replaced");
        plumb_error_in_file(err, out->path);
    } else if (!code && !named) {
        code = fail_errno(out, "rename it into place", err);
    }
    if (!code)
        output_named(out);
    output_discard(out);
    return code;
}

void output_named(struct output *out)
{
    free(out->temp);
    out->temp = NULL;
}

void output_discard(struct output *out)
{
    if (out->path && out->fd >= 0)
        close(out->fd);
    if (out->temp)
        unlink(out->temp);
    free(out->temp);
    free(out->path);
    *out = (struct output){0};
}

enum plumb_code output_whole(const char *path, const void *bytes, uint64_t size, bool sync,
                             struct plumb_error *err)
{
    struct output out;
    enum plumb_code code = output_open(&out, path, err);
    if (code)
        return code;
    code = output_bytes(&out, bytes, size, err);
    if (!code)
        return output_commit(&out, sync, err);
    output_discard(&out);
    return code;
}
