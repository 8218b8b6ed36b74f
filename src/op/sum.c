/* Sums. Each of a fixed number of lanes carries its own sum and the rounding errors of its
 * additions, so that the compiler can use vectors, the result does not depend on the machine,
 * and no length or cancellation costs accuracy. */
#include "op/sum.h"
#include "op/op.h"

enum {
    LANES = 16,
    TILE = 256, /* columns that sum_rows() does at once */
};

static void lanes_add(real *restrict sum, real *restrict lost, const real *restrict x, int n)
{
    for (int k = 0; k < n; k++) {
        real s = sum[k] + x[k];
        real part = s - sum[k];
        lost[k] += (sum[k] - (s - part)) + (x[k] - part);
        sum[k] = s;
    }
}

static struct tally lanes_total(const real *sum, const real *lost)
{
    struct tally t = {0, 0};
    real small = 0;
    for (int k = 0; k < LANES; k++) {
        tally_add(&t, sum[k]);
        small += lost[k];
    }
    t.lost += small;
    return t;
}

struct tally tally_of(const real *x, int64_t n, int64_t stride)
{
    real sum[LANES] = {0}, lost[LANES] = {0};
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES) {
        if (stride == 1) {
            lanes_add(sum, lost, x + at, LANES);
        } else {
            real lanes[LANES];
            for (int k = 0; k < LANES; k++)
                lanes[k] = x[(at + k) * stride];
            lanes_add(sum, lost, lanes, LANES);
        }
    }
    for (int k = 0; at < n; at++, k++)
        lanes_add(&sum[k], &lost[k], &x[at * stride], 1);
    return lanes_total(sum, lost);
}

real real_sum(const real *x, int64_t n, int64_t stride)
{
    const struct tally t = tally_of(x, n, stride);
    return tally_value(t.sum, t.lost);
}

real real_dot(const real *a, const real *b, int64_t n)
{
    real sum[LANES] = {0}, lost[LANES] = {0}, product[LANES];
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES) {
        for (int k = 0; k < LANES; k++)
            product[k] = a[at + k] * b[at + k];
        lanes_add(sum, lost, product, LANES);
    }
    for (int k = 0; at < n; at++, k++) {
        product[0] = a[at] * b[at];
        lanes_add(&sum[k], &lost[k], product, 1);
    }
    const struct tally t = lanes_total(sum, lost);
    return tally_value(t.sum, t.lost);
}

static void sum_tile(const real *x, int64_t rows, int n, int64_t stride, real *out)
{
    real sum[TILE] = {0}, lost[TILE] = {0};
    for (int64_t row = 0; row < rows; row++)
        lanes_add(sum, lost, x + row * stride, n);
    for (int k = 0; k < n; k++)
        out[k] = tally_value(sum[k], lost[k]);
}

void sum_rows(const real *x, int64_t rows, int64_t columns, int64_t stride, real *out)
{
    for (int64_t c = 0; c < columns; c += TILE)
        sum_tile(x + c, rows, columns - c < TILE ? (int)(columns - c) : TILE, stride, out + c);
}
