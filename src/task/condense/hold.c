/* Holding a file by a lease, or, where there are none, by looking for its writers. */
#define _GNU_SOURCE
#include "task/condense/hold.h"

#include "task/condense/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xFE534D42
#endif
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#endif

/* A client of a network file system refuses leases in words that elsewhere mean "open for
 * writing". */
static bool is_remote(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0)
        return true;
    unsigned long type = (unsigned long)fs.f_type & 0xFFFFFFFFul;
    return type == NFS_SUPER_MAGIC || type == SMB2_SUPER_MAGIC || type == CIFS_SUPER_MAGIC ||
           type == SMB_SUPER_MAGIC;
}

/* A read lease is refused while anybody has the file open for writing, shared mappings included.
 * Once given, who opens it for writing waits until we let go, and we get a signal: SIGURG, because
 * by default that does nothing. */
static enum hold_state take_lease(struct hold *hold)
{
    if (fcntl(hold->fd, F_SETSIG, SIGURG) == 0 && fcntl(hold->fd, F_SETLEASE, F_RDLCK) == 0) {
        hold->leased = true;
        return HOLD_FREE;
    }
    return errno == EAGAIN && !is_remote(hold->fd) ? HOLD_BUSY : HOLD_FAILED;
}

static enum hold_state look_for_writers(const struct hold *hold, struct plumb_error *err)
{
    switch (writers_of(&hold->st)) {
    case WRITERS_NONE:
        return HOLD_FREE;
    case WRITERS_SOME:
        return HOLD_BUSY;
    case WRITERS_UNKNOWN:
        break;
    }
    plumb_fail(err, PLUMB_E_IO,
               "cannot tell whether it is still being written; run plumb as the owner of the file");
    plumb_error_in_file(err, hold->path);
    return HOLD_FAILED;
}

enum hold_state hold_take(struct hold *hold, const char *path, struct plumb_error *err)
{
    *hold = (struct hold){.path = path};
    /* O_NONBLOCK: a FIFO must not make us wait. */
    hold->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (hold->fd < 0) {
        if (errno == ENOENT || errno == ELOOP || errno == ENXIO)
            return HOLD_GONE;
        plumb_fail(err, PLUMB_E_IO, "cannot open it: %s", strerror(errno));
        plumb_error_in_file(err, path);
        return HOLD_FAILED;
    }
    enum hold_state state = HOLD_GONE;
    if (fstat(hold->fd, &hold->st) == 0 && S_ISREG(hold->st.st_mode)) {
        state = take_lease(hold);
        if (state == HOLD_FAILED)
            state = look_for_writers(hold, err);
        /* Only what it is now, under the lease, counts. */
        if (state == HOLD_FREE && fstat(hold->fd, &hold->st) != 0)
            state = HOLD_GONE;
    }
    if (state != HOLD_FREE)
        hold_release(hold);
    return state;
}

bool hold_is_wanted(const struct hold *hold)
{
    return hold->leased && fcntl(hold->fd, F_GETLEASE) != F_RDLCK;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool hold_is_intact(const struct hold *hold)
{
    struct stat now;
    if (lstat(hold->path, &now) != 0 || !same(&now, &hold->st))
        return false;
    return hold->leased ? !hold_is_wanted(hold) : writers_of(&hold->st) == WRITERS_NONE;
}

void hold_release(struct hold *hold)
{
    if (hold->fd >= 0)
        close(hold->fd); /* the lease ends with it */
    hold->fd = -1;
}
