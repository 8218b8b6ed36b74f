/* Mapped files, and the guard against files that shrink. */
#define _GNU_SOURCE
#include "plumb/file.h"

#include "base/held.h"
#include "base/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum plumb_code fail_errno(struct plumb_error *err, const char *path, const char *what)
{
    plumb_fail(err, PLUMB_E_IO, "cannot %s: %s", what, strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

static int64_t time_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

enum plumb_code plumb_file_map(struct plumb_file *file, const char *path, uint64_t offset,
                               uint64_t size, struct plumb_error *err)
{
    *file = (struct plumb_file){0};

    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail_errno(err, path, "open it");

    enum plumb_code code = PLUMB_OK;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        code = fail_errno(err, path, "stat it");
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        code = plumb_fail(err, PLUMB_E_IO, "not a regular file");
        plumb_error_in_file(err, path);
        goto out;
    }
    uint64_t total = (uint64_t)st.st_size;
    if (offset > total || (size != UINT64_MAX && size > total - offset)) {
        code = plumb_fail(err, PLUMB_E_FORMAT,
                          "the file ends at byte %llu, before the %llu bytes expected at %llu",
                          (unsigned long long)total, (unsigned long long)size,
                          (unsigned long long)offset);
        plumb_error_in_file(err, path);
        goto out;
    }
    if (size == UINT64_MAX)
        size = total - offset;
    file->size = size;
    file->file_size = total;
    file->mtime_ns = time_of(&st);
    if (!size)
        goto out;

    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t skip = offset % page;
    void *map = mmap(NULL, size + skip, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - skip));
    if (map == MAP_FAILED) {
        code = fail_errno(err, path, "map it");
        *file = (struct plumb_file){0};
        goto out;
    }
    file->map = map;
    file->map_size = size + skip;
    file->data = (const uint8_t *)map + skip;
out:
    close(fd);
    return code;
}

size_t file_peek(struct plumb_file *file, const char *path, void *head, size_t size)
{
    struct stat st;
    ssize_t n = 0;
    *file = (struct plumb_file){0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        n = pread(fd, head, size, 0);
    close(fd);
    if (n <= 0 || st.st_size < n)
        return 0;
    file->size = file->file_size = (uint64_t)st.st_size;
    file->mtime_ns = time_of(&st);
    return (size_t)n;
}

void plumb_file_unmap(struct plumb_file *file)
{
    if (file->held)
        held_release(file->held);
    else if (file->map)
        munmap(file->map, file->map_size);
    *file = (struct plumb_file){0};
}

/* The guard. A fault inside a guarded mapping is answered with a page of zeros put in its place,
 * which needs no unwinding of whatever was reading; any other fault goes to whoever had the signal
 * before. */

static _Thread_local struct plumb_file_guard *innermost;
static struct sigaction previous;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    for (struct plumb_file_guard *guard = innermost; guard; guard = guard->outer) {
        uintptr_t from = (uintptr_t)guard->file->map;
        if (at < from || at - from >= guard->file->map_size)
            continue;
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        void *start = (void *)(at / page * page); // NOLINT(performance-no-int-to-ptr)
        guard->hit = true;
        if (guard->file->held) /* first, so that nobody reads zeros and does not learn of it */
            held_spoil(guard->file->held);
        if (mmap(start, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start)
            return;
    }
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
        return;
    }
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
        return;
    }
    signal(number, SIG_DFL); /* the fault repeats on return, and now kills */
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
}

void plumb_file_guard_enter(struct plumb_file_guard *guard, const struct plumb_file *file)
{
    pthread_once(&once, install);
    *guard = (struct plumb_file_guard){.file = file, .outer = innermost};
    innermost = guard;
}

bool plumb_file_guard_leave(struct plumb_file_guard *guard)
{
    innermost = guard->outer;
    return guard->hit || (guard->file->held && held_is_spoiled(guard->file->held));
}
