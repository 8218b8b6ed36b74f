/* How fast files that are not in the page cache can be read: cold_read THREADS BLOCK FILE... drops
 * each from the cache, reads them with pread in blocks of so many bytes, each thread its own share
 * of the files, and prints GB/s. What is only dropped, for somebody else to read: BLOCK 0. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

struct share {
    pthread_t thread;
    char **paths;
    int first, step, count;
    size_t block, bytes;
};

static void forget(const char *path)
{
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) {
        perror(path);
        exit(1);
    }
    close(fd);
}

static void *read_share(void *argument)
{
    struct share *share = argument;
    void *block = aligned_alloc(4096, share->block);
    for (int k = share->first; k < share->count; k += share->step) {
        const int fd = open(share->paths[k], O_RDONLY);
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        ssize_t n;
        for (off_t at = 0; (n = pread(fd, block, share->block, at)) > 0; at += n)
            share->bytes += (size_t)n;
        close(fd);
    }
    free(block);
    return NULL;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    const int threads = argc > 3 ? atoi(argv[1]) : 0;
    const long block = argc > 3 ? atol(argv[2]) : 0;
    if (threads < 1 || threads > MOST || block < 0 || block % 4096)
        return 2;
    for (int k = 3; k < argc; k++)
        forget(argv[k]);
    struct share shares[MOST];
    size_t bytes = 0;
    const double start = now();
    for (int k = 0; block && k < threads; k++) {
        shares[k] = (struct share){.paths = argv + 3,
                                   .first = k,
                                   .step = threads,
                                   .count = argc - 3,
                                   .block = (size_t)block};
        pthread_create(&shares[k].thread, NULL, read_share, &shares[k]);
    }
    for (int k = 0; block && k < threads; k++) {
        pthread_join(shares[k].thread, NULL);
        bytes += shares[k].bytes;
    }
    printf("%.4f\n", (double)bytes / (now() - start) / 1e9);
    return 0;
}
