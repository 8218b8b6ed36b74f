// For LD_PRELOAD: files have room for PLUMB_TEST_ROOM bytes together, and what is beyond them ends
// in ENOSPC. A full disk without the right to mount one.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How much of it fits; less than 0 when nothing does. */
static ssize_t take(int fd, size_t size)
{
    static atomic_size_t used;
    const char *room = getenv("PLUMB_TEST_ROOM");
    struct stat info;
    if (!room || size == 0 || fstat(fd, &info) || !S_ISREG(info.st_mode))
        return (ssize_t)size;
    const size_t limit = strtoul(room, NULL, 10), before = atomic_fetch_add(&used, size);
    if (before >= limit) {
        errno = ENOSPC;
        return -1;
    }
    return (ssize_t)(size < limit - before ? size : limit - before);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    const ssize_t fits = take(fd, size);
    return fits < 0 ? -1 : syscall(SYS_write, fd, bytes, (size_t)fits);
}
