/* How fast the reference operators are: prints "NAME SECONDS WORK" lines, where WORK is
 * operations of a matrix product, or bytes for what only moves memory; "dgemm" is OpenBLAS
 * itself on one thread. With a name, only that one. */
#define _GNU_SOURCE
#include "exec/op/blas.h"
#include "plumb/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 5 };

static const char *only;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* A float32 tensor of small numbers. */
static struct plumb_arg tensor(unsigned rank, const int64_t *shape)
{
    struct plumb_tensor *t = calloc(1, sizeof *t);
    if (!t || plumb_tensor_init(t, PLUMB_F32, rank, shape, NULL))
        exit(1);
    float *data = malloc(t->count * sizeof *data);
    if (!data)
        exit(1);
    for (uint64_t k = 0; k < t->count; k++)
        data[k] = (float)((k * 2654435761U >> 8) % 2001) / 1000 - 1;
    t->data = data;
    return (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = t};
}

static void measure(const char *name, const struct plumb_arg *args, size_t n, double work)
{
    if (only && strcmp(only, name) != 0)
        return;
    const struct plumb_call call = {
        .prefix = "Functional", .name = name, .args = args, .n_args = n};
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        struct plumb_result result;
        struct plumb_error err;
        const double start = now();
        if (plumb_op_run(&call, PLUMB_RAISED, &result, &err)) {
            fprintf(stderr, "op_speed: %s: %s\n", name, err.message);
            exit(1);
        }
        const double took = now() - start;
        best = took < best ? took : best;
        plumb_result_destroy(&result);
    }
    printf("%s %.9f %.0f\n", name, best, work);
}

static void measure_dgemm(void)
{
    enum { N = 1024 };
    const struct blas *blas = blas_find();
    double *a = calloc((size_t)N * N, sizeof *a), *b = calloc((size_t)N * N, sizeof *b),
           *c = calloc((size_t)N * N, sizeof *c), best = 1e9;
    if (!blas || !a || !b || !c)
        exit(1);
    for (int run = 0; run < RUNS; run++) {
        const double start = now();
        blas->dgemm(BLAS_ROWS, BLAS_PLAIN, BLAS_PLAIN, N, N, N, 1, a, N, b, N, 0, c, N);
        const double took = now() - start;
        best = took < best ? took : best;
    }
    const double n = N;
    printf("dgemm %.9f %.0f\n", best, 2 * n * n * n);
    free(a);
    free(b);
    free(c);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    if (!only)
        measure_dgemm();
    const struct plumb_arg square = tensor(2, (int64_t[]){1024, 1024});
    measure("matmul", (struct plumb_arg[]){square, square}, 2, 2.0 * 1024 * 1024 * 1024);

    const struct plumb_arg image = tensor(4, (int64_t[]){16, 128, 28, 28});
    const struct plumb_arg kernel = tensor(4, (int64_t[]){128, 128, 3, 3});
    const struct plumb_arg none = {.kind = PLUMB_ARG_NONE},
                           one = {.kind = PLUMB_ARG_INT, .integer = 1};
    measure("conv2d", (struct plumb_arg[]){image, kernel, none, one, one}, 5,
            2.0 * 16 * 28 * 28 * 128 * 128 * 9);

    const struct plumb_arg heads = tensor(4, (int64_t[]){4, 8, 512, 64});
    measure("scaled_dot_product_attention", (struct plumb_arg[]){heads, heads, heads}, 3,
            4.0 * 4 * 8 * 512 * 512 * 64);

    const struct plumb_arg rows = tensor(2, (int64_t[]){4096, 1024}),
                           weight = tensor(1, (int64_t[]){1024});
    const struct plumb_arg width[] = {{.kind = PLUMB_ARG_INT, .integer = 1024}};
    const struct plumb_arg shape = {.kind = PLUMB_ARG_LIST, .items = width, .n_items = 1};
    measure("layer_norm", (struct plumb_arg[]){rows, shape, weight, weight}, 4,
            4096.0 * 1024 * (sizeof(float) + sizeof(double)));
    const struct plumb_arg last = {.kind = PLUMB_ARG_INT, .integer = -1};
    measure("softmax", (struct plumb_arg[]){rows, last}, 2,
            4096.0 * 1024 * (sizeof(float) + sizeof(double)));
    measure("sum", (struct plumb_arg[]){rows, last}, 2, 4096.0 * 1024 * sizeof(float));
    return 0;
}
