/* How fast this machine reads memory: the measure for everything that streams over tensors.
 *
 *     read_bandwidth [MEGABYTES]
 *
 * prints the best of several passes in GB/s (1e9 bytes) for one thread and for two, a line each.
 * The sum has eight independent lanes of 32 bytes, which compilers turn into the widest loads there
 * are. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PASSES 9
#define LANES 32 /* numbers of 8 bytes a step */

struct part {
    const uint64_t *data;
    size_t count;
    uint64_t sum;
};

static void *add_up(void *context)
{
    struct part *part = context;
    uint64_t lane[LANES] = {0};
    for (size_t i = 0; i + LANES <= part->count; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += part->data[i + j];
    part->sum = 0;
    for (size_t j = 0; j < LANES; j++)
        part->sum += lane[j];
    return NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Best rate of the passes; *sum keeps the compiler from dropping the work. */
static double measure(const uint64_t *data, size_t count, unsigned threads, uint64_t *sum)
{
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        struct part part[2];
        pthread_t other;
        for (unsigned i = 0; i < threads; i++)
            part[i] = (struct part){.data = data + i * (count / threads), .count = count / threads};
        double start = seconds();
        if (threads == 2 && pthread_create(&other, NULL, add_up, &part[1]))
            return 0;
        add_up(&part[0]);
        if (threads == 2)
            pthread_join(other, NULL);
        double rate = (double)(count * sizeof *data) / (seconds() - start) / 1e9;
        if (rate > best)
            best = rate;
        for (unsigned i = 0; i < threads; i++)
            *sum += part[i].sum;
    }
    return best;
}

int main(int argc, char **argv)
{
    size_t megabytes = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 1024;
    size_t count = megabytes * (1000000 / sizeof(uint64_t));
    uint64_t *data = aligned_alloc(64, (count * sizeof *data + 63) / 64 * 64);
    if (!data) {
        fprintf(stderr, "read_bandwidth: no memory for %zu MB\n", megabytes);
        return 1;
    }
    memset(data, 1, count * sizeof *data);
    uint64_t sum = 0;
    for (unsigned threads = 1; threads <= 2; threads++)
        printf("%.2f\n", measure(data, count, threads, &sum));
    free(data);
    return sum == 0;
}
