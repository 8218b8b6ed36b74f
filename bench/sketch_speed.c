/* How fast tensors are sketched, beside how fast memory is read.
 *
 *     sketch_speed [MEGABYTES]
 *
 * prints GB/s (1e9 bytes) and ns for each number, by processor time, the best of several passes:
 * the parts of a pass on numbers in the cache, reading alone, and whole passes over a matrix of
 * each type. */
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

/* What a pass is made of, on numbers in the cache. */
enum part { PART_RANGES, PART_CENTRES, PART_CRC, PART_HASH, PART_SKETCH, PARTS };

static void run_part(const struct kernels *kernels, enum part part, enum kernel_type type,
                     const void *data, uint64_t round)
{
    enum { N = SIDE_BY_SIDE * PLUMB_METRIC_BLOCK };
    static _Alignas(64) double sums[KERNEL_SKETCH_SUMS];
    static const double middle[SIDE_BY_SIDE];
    const size_t width = kernel_width(type);
    struct range_lanes range[SIDE_BY_SIDE];
    struct centre_lanes centre[SIDE_BY_SIDE];
    static _Alignas(64) double wide[SIDE_BY_SIDE * PLUMB_METRIC_BLOCK];
    double fold[KERNEL_SKETCH_TILES][4];
    struct hash hash = {0};
    uint32_t crc = 0;
    switch (part) {
    case PART_RANGES:
        kernels->ranges[type](data, wide, range);
        break;
    case PART_CENTRES:
        kernels->centres(wide, middle, centre);
        break;
    case PART_CRC:
        kernels->crc32(0, data, N * width);
        break;
    case PART_HASH:
        hash_add(&hash, kernels, data, HASH_SIDE * HASH_PIECE, 0, &crc);
        break;
    default:
        for (size_t i = 0; i < N; i += PLUMB_METRIC_BLOCK)
            kernels->sketch(wide + i, PLUMB_METRIC_BLOCK, round * N + i, sums, fold);
    }
}

static void time_part(const struct kernels *kernels, enum part part, enum kernel_type type,
                      const char *what)
{
    enum { ROUNDS = 500, N = SIDE_BY_SIDE * PLUMB_METRIC_BLOCK };
    static _Alignas(64) unsigned char data[HASH_SIDE * HASH_PIECE];
    _Static_assert(sizeof data >= N * 8, "room for all parts");
    double best = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = seconds();
        for (uint64_t i = 0; i < ROUNDS; i++)
            run_part(kernels, part, type, data, i);
        const double took = seconds() - start;
        best = took < best ? took : best;
    }
    const double width = (double)kernel_width(type);
    const double bytes = part == PART_HASH ? HASH_SIDE * HASH_PIECE : N * width;
    show(what, best, bytes * ROUNDS, bytes / width * ROUNDS);
}

static void time_parts(const struct kernels *kernels)
{
    static const char *const names[PARTS] = {"range", "centre", "CRC-32 alone", "hash and CRC-32",
                                             "sketch"};
    static const struct {
        enum kernel_type type;
        const char *name;
    } types[] = {{KERNEL_F32, "float32"}, {KERNEL_BF16, "bfloat16"}, {KERNEL_F64, "float64"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int part = 0; part < PARTS; part++) {
            char line[80];
            snprintf(line, sizeof line, "%s in the cache, %s", types[i].name, names[part]);
            time_part(kernels, (enum part)part, types[i].type, line);
        }
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
    time_parts(&kernels);
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
