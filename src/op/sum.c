/* Sums. Each of a fixed number of lanes carries its own sum, so that the compiler can use vectors and
 * the result does not depend on the machine. Double and long double compensate every addition; float
 * adds up short blocks plainly and compensates between them. */
#include "op/sum.h"
#include "op/op.h"

enum {
    LANES = 16,
    BLOCK = OP_REAL == 32 ? 16 : 1, /* additions a lane makes before it compensates */
    TILE = 256,                     /* columns that sum_rows() does at once */
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

static real lanes_total(const real *sum, const real *lost)
{
    struct tally t = {0, 0};
    real small = 0;
    for (int k = 0; k < LANES; k++) {
        tally_add(&t, sum[k]);
        small += lost[k];
    }
    return tally_value(t.sum, t.lost + small);
}

real real_sum(const real *x, int64_t n, int64_t stride)
{
    real sum[LANES] = {0}, lost[LANES] = {0};
    int64_t at = 0;
    for (; at + LANES * BLOCK <= n; at += LANES * BLOCK) {
        real block[LANES] = {0};
        for (int64_t b = 0; b < BLOCK; b++) {
            const real *from = x + (at + b * LANES) * stride;
            if (stride == 1)
                for (int k = 0; k < LANES; k++)
                    block[k] += from[k];
            else
                for (int k = 0; k < LANES; k++)
                    block[k] += from[k * stride];
        }
        lanes_add(sum, lost, block, LANES);
    }
    for (int k = 0; at < n; at++, k = (k + 1) % LANES) {
        struct tally t = {sum[k], lost[k]};
        tally_add(&t, x[at * stride]);
        sum[k] = t.sum;
        lost[k] = t.lost;
    }
    return lanes_total(sum, lost);
}

real real_dot(const real *a, const real *b, int64_t n)
{
    real sum[LANES] = {0}, lost[LANES] = {0};
    int64_t at = 0;
    for (; at + LANES * BLOCK <= n; at += LANES * BLOCK) {
        real block[LANES] = {0};
        for (int64_t k = 0; k < BLOCK; k++) {
            const real *p = a + at + k * LANES, *q = b + at + k * LANES;
            for (int l = 0; l < LANES; l++)
                block[l] += p[l] * q[l];
        }
        lanes_add(sum, lost, block, LANES);
    }
    for (int k = 0; at < n; at++, k = (k + 1) % LANES) {
        struct tally t = {sum[k], lost[k]};
        tally_add(&t, a[at] * b[at]);
        sum[k] = t.sum;
        lost[k] = t.lost;
    }
    return lanes_total(sum, lost);
}

static void sum_tile(const real *x, int64_t rows, int n, int64_t stride, real *out)
{
    real sum[TILE] = {0}, lost[TILE] = {0};
    for (int64_t row = 0; row < rows; row += BLOCK) {
        if (BLOCK == 1 || row + BLOCK > rows) {
            for (int64_t r = row; r < rows && r < row + BLOCK; r++)
                lanes_add(sum, lost, x + r * stride, n);
            continue;
        }
        real block[TILE] = {0};
        for (int64_t r = row; r < row + BLOCK; r++)
            for (int k = 0; k < n; k++)
                block[k] += x[r * stride + k];
        lanes_add(sum, lost, block, n);
    }
    for (int k = 0; k < n; k++)
        out[k] = tally_value(sum[k], lost[k]);
}

void sum_rows(const real *x, int64_t rows, int64_t columns, int64_t stride, real *out)
{
    for (int64_t c = 0; c < columns; c += TILE)
        sum_tile(x + c, rows, columns - c < TILE ? (int)(columns - c) : TILE, stride, out + c);
}
