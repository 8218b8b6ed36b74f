/* For LD_PRELOAD: allocation number PLUMB_TEST_FAIL fails, counted from 0; with PLUMB_TEST_FROM
 * set, all from there on. With PLUMB_TEST_COUNT their number ends up in the file of that name. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static atomic_long calls;
static long fail_at = -1;
static bool from_there;

__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("PLUMB_TEST_FAIL");
    fail_at = number ? strtol(number, NULL, 10) : -1;
    from_there = getenv("PLUMB_TEST_FROM");
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("PLUMB_TEST_COUNT");
    char text[24];
    int length = snprintf(text, sizeof text, "%ld", atomic_load(&calls));
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, text, (size_t)length) == length)
        close(fd);
}

static bool fails(void)
{
    long call = atomic_fetch_add(&calls, 1);
    bool now = fail_at >= 0 && (from_there ? call >= fail_at : call == fail_at);
    if (now)
        errno = ENOMEM;
    return now;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
