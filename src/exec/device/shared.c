/* Growing, mapping and giving back the memory that a worker shares. */
#define _GNU_SOURCE
#include "exec/device/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum plumb_code shared_init(struct shared *shared, struct plumb_error *err)
{
    *shared = (struct shared){.fd = memfd_create("plumb", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    /* A worker that made it shorter would be a signal for whoever reads it. */
    if (shared->fd >= 0 && fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        return PLUMB_OK;
    const int error = errno;
    shared_destroy(shared);
    return plumb_fail(err, PLUMB_E_IO, "cannot make shared memory: %s", strerror(error));
}

enum plumb_code shared_map(struct shared *shared, uint64_t limit, struct plumb_error *err)
{
    struct stat info;
    if (fstat(shared->fd, &info))
        return plumb_fail(err, PLUMB_E_IO, "cannot ask for the size of shared memory: %s",
                          strerror(errno));
    const uint64_t size = (uint64_t)info.st_size;
    if (size > limit)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "the worker has taken %llu bytes of shared memory, more than the %llu "
                          "that it may",
                          (unsigned long long)size, (unsigned long long)limit);
    if (size == shared->mapped)
        return PLUMB_OK;
    /* What is longer keeps the pages that it has: each would cost a fault again. */
    void *base = shared->base
                     ? mremap(shared->base, (size_t)shared->mapped, (size_t)size, MREMAP_MAYMOVE)
                     : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    if (base == MAP_FAILED)
        return plumb_fail(err, PLUMB_E_NOMEM, "cannot map %llu bytes of shared memory: %s",
                          (unsigned long long)size, strerror(errno));
    shared->base = base;
    shared->mapped = size;
    return PLUMB_OK;
}

enum plumb_code shared_reach(struct shared *shared, uint64_t size, struct plumb_error *err)
{
    if (size <= shared->backed)
        return PLUMB_OK;
    if (size > INT64_MAX)
        return plumb_fail(err, PLUMB_E_NOMEM, "more shared memory than there can be");
    /* Asked for at once: a page that cannot be had at first touch is a signal, not an error. */
    const int error = posix_fallocate(shared->fd, 0, (off_t)size);
    if (error)
        return plumb_fail(err, PLUMB_E_NOMEM, "cannot get %llu bytes of shared memory: %s",
                          (unsigned long long)size, strerror(error));
    shared->backed = size;
    return shared_map(shared, UINT64_MAX, err);
}

void shared_trim(struct shared *shared, uint64_t kept)
{
    if (shared->mapped <= kept)
        return;
    fallocate(shared->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)kept,
              (off_t)(shared->mapped - kept));
    if (shared->backed > kept)
        shared->backed = kept;
}

void shared_destroy(struct shared *shared)
{
    if (shared->base)
        munmap(shared->base, (size_t)shared->mapped);
    if (shared->fd >= 0)
        close(shared->fd);
    *shared = (struct shared){.fd = -1};
}
