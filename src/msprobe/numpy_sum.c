/* Pairwise sums in blocks, as numpy adds. */
#include "msprobe/numpy_sum.h"

#include <math.h>

void numpy_sum_init(struct numpy_sum *sum, enum plumb_dtype type)
{
    sum->type = type;
    sum->total = 0;
    sum->count = 0;
    sum->waiting = 0;
}

/* The sum of two float32 values in float64, rounded, is their float32 sum. */
static double add(double a, double b, bool single)
{
    return single ? (double)(float)(a + b) : a + b;
}

static double pairwise(const double *x, size_t n, bool single)
{
    if (n < 8) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum = add(sum, x[i], single);
        return sum;
    }
    if (n > 128) {
        size_t half = n / 2 - n / 2 % 8;
        return add(pairwise(x, half, single), pairwise(x + half, n - half, single), single);
    }
    double r[8];
    for (size_t l = 0; l < 8; l++)
        r[l] = x[l];
    size_t i = 8;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++)
            r[l] = add(r[l], x[i + l], single);
    double low = add(add(r[0], r[1], single), add(r[2], r[3], single), single);
    double high = add(add(r[4], r[5], single), add(r[6], r[7], single), single);
    double sum = add(low, high, single);
    for (; i < n; i++)
        sum = add(sum, x[i], single);
    return sum;
}

static void settle(struct numpy_sum *sum)
{
    bool single = sum->type != PLUMB_F64;
    sum->total = add(sum->total, pairwise(sum->block, sum->waiting, single), single);
    sum->waiting = 0;
}

void numpy_sum_add(struct numpy_sum *sum, double value)
{
    sum->block[sum->waiting++] = value;
    sum->count++;
    if (sum->waiting == NUMPY_BLOCK)
        settle(sum);
}

double numpy_sum_mean(struct numpy_sum *sum)
{
    if (sum->waiting)
        settle(sum);
    return plumb_round_to(sum->type, sum->total / (double)sum->count);
}
