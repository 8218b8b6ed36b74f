/* How fast tensors are sketched, beside how fast memory is read.
 *
 *     sketch_speed [MEGABYTES]
 *
 * prints GB/s (1e9 bytes) and ns for each number, by processor time, the best of several passes:
 * the sketch kernel alone on numbers in the cache, reading alone, and whole passes over a matrix of
 * each type with what they are made of. */
#define _GNU_SOURCE
#include "metric/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSES = 7 };

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show(const char *what, double best, double bytes, double numbers)
{
    printf("%-44s %7.2f GB/s %7.3f ns\n", what, bytes / best / 1e9, best / numbers * 1e9);
}

static void time_kernel(const struct kernels *kernels)
{
    enum { ROUNDS = 2000, N = PLUMB_METRIC_BLOCK };
    static double x[N], sums[KERNEL_SKETCH_ROOM];
    double fold[4] = {0}, best = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = seconds();
        for (uint64_t i = 0; i < ROUNDS; i++)
            kernels->sketch[KERNEL_F64](x, N, i * N, sums, fold);
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    /* As float32, which is what it mostly comes from. */
    show("kernel, of numbers in the cache (float32)", best, 4.0 * ROUNDS * N, 1.0 * ROUNDS * N);
}

static void time_read(const void *data, size_t size)
{
    double best = INFINITY;
    volatile uint64_t sink;
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t lane[32] = {0}, sum = 0;
        const double start = seconds();
        for (size_t i = 0; i + 32 <= size / 8; i += 32)
            for (size_t j = 0; j < 32; j++)
                lane[j] += ((const uint64_t *)data)[i + j];
        for (size_t j = 0; j < 32; j++)
            sum += lane[j];
        sink = sum;
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    (void)sink;
    show("reading alone", best, (double)size, (double)size / 4);
}

static void time_pass(const struct kernels *kernels, const struct plumb_tensor *tensor,
                      unsigned wanted, const char *what)
{
    double best = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        struct kept_state state;
        if (!kept_begin(&state, tensor, wanted))
            exit(1);
        const double start = seconds();
        kept_tensor(&state, kernels, tensor, 0, tensor->count);
        const double took = seconds() - start;
        best = took < best ? took : best;
        kept_end(&state);
    }
    char line[80];
    snprintf(line, sizeof line, "%s, %s", plumb_dtype_info(tensor->dtype)->name, what);
    show(line, best, (double)plumb_tensor_bytes(tensor), (double)tensor->count);
}

int main(int count, char **words)
{
    static const enum plumb_dtype dtypes[] = {PLUMB_F32, PLUMB_BF16, PLUMB_F64, PLUMB_I8};
    const size_t size = (size_t)(count > 1 ? strtoul(words[1], NULL, 10) : 256) << 20;
    unsigned char *data = malloc(size);
    const struct kernels kernels = kernels_current();
    if (!data)
        return 1;
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13) & 0x3F;
    printf("%s\n", kernels.name);
    time_kernel(&kernels);
    time_read(data, size);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        struct plumb_tensor tensor;
        const size_t width = plumb_dtype_info(dtypes[i])->bits / 8;
        const int64_t shape[2] = {(int64_t)(size / width / 4096), 4096};
        if (plumb_tensor_init(&tensor, dtypes[i], 2, shape, NULL))
            return 1;
        tensor.data = data;
        time_pass(&kernels, &tensor, 0, "statistics and CRC-32");
        time_pass(&kernels, &tensor, KEPT_HASH, "with hash");
        time_pass(&kernels, &tensor, KEPT_SKETCH, "with sketch");
        time_pass(&kernels, &tensor, KEPT_HASH | KEPT_SKETCH, "with both");
    }
    free(data);
    return 0;
}
