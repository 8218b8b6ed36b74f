/* Sums. Each of a fixed number of lanes carries its own sum and the rounding errors of its
 * additions, so that the compiler can use vectors, the result does not depend on the machine,
 * and no length or cancellation costs accuracy. */
#include "exec/op/sum.h"
#include "exec/op/lanes.h"
#include "exec/op/noise.h"
#if OP_REAL == 128
#include "exec/op/pair.h"
#endif

enum { TILE = 256 }; /* columns that sum_rows() does at once */

#if OP_REAL == 128

/* In pairs of doubles, which hold about 100 bits and take a fifth of the time of binary128; in
 * binary128 where numbers are no pairs. */

static bool split(const real *x, int64_t stride, int n, int low, int high, double *value,
                  double *rest)
{
    bool fits = true;
    for (int k = 0; k < n; k++)
        fits &= pair_split(x[k * stride], low, high, &value[k], &rest[k]);
    return fits;
}

/* The sum of all lanes. */
static struct tally lanes_total(const double *sum, const double *lost)
{
    double total = 0, small = 0;
    for (int k = 0; k < LANES; k++)
        small += pair_add(&total, sum[k]) + lost[k];
    return (struct tally){total, small};
}

struct tally tally_of(const real *x, int64_t n, int64_t stride)
{
    double sum[LANES] = {0}, lost[LANES] = {0}, value[LANES], rest[LANES];
    for (int64_t at = 0; at < n; at += LANES) {
        const int m = n - at < LANES ? (int)(n - at) : LANES;
        if (!split(x + at * stride, stride, m, PAIR_TERM_LOW, PAIR_TERM_HIGH, value, rest)) {
            struct tally t = {0, 0};
            for (int64_t k = 0; k < n; k++)
                t.sum += x[k * stride];
            return t;
        }
        for (int k = 0; k < m; k++)
            lost[k] += pair_add(&sum[k], value[k]) + rest[k];
    }
    return lanes_total(sum, lost);
}

real real_dot(const real *a, const real *b, int64_t n)
{
    op_terms(n);
    double sum[LANES] = {0}, lost[LANES] = {0};
    double x[LANES] = {0}, x_rest[LANES] = {0}, y[LANES] = {0}, y_rest[LANES] = {0};
    for (int64_t at = 0; at < n; at += LANES) {
        const int m = n - at < LANES ? (int)(n - at) : LANES;
        if (!split(a + at, 1, m, PAIR_FACTOR_LOW, PAIR_FACTOR_HIGH, x, x_rest) ||
            !split(b + at, 1, m, PAIR_FACTOR_LOW, PAIR_FACTOR_HIGH, y, y_rest)) {
            real slow = 0;
            for (int64_t k = 0; k < n; k++)
                slow += a[k] * b[k];
            return slow;
        }
        for (int k = 0; k < m; k++) {
            const double product = x[k] * y[k];
            const double more = x[k] * y_rest[k] + x_rest[k] * y[k];
            lost[k] +=
                pair_add(&sum[k], product) + (pair_lost(PAIR_FUSED, x[k], y[k], product) + more);
        }
    }
    const struct tally t = lanes_total(sum, lost);
    return tally_value(t.sum, t.lost);
}

static void sum_tile(const real *x, int64_t rows, int n, int64_t stride, real *out)
{
    double sum[TILE] = {0}, lost[TILE] = {0}, value[TILE], rest[TILE];
    for (int64_t row = 0; row < rows; row++) {
        if (!split(x + row * stride, 1, n, PAIR_TERM_LOW, PAIR_TERM_HIGH, value, rest)) {
            for (int k = 0; k < n; k++) {
                out[k] = 0;
                for (int64_t r = 0; r < rows; r++)
                    out[k] += x[r * stride + k];
            }
            return;
        }
        for (int k = 0; k < n; k++)
            lost[k] += pair_add(&sum[k], value[k]) + rest[k];
    }
    for (int k = 0; k < n; k++)
        out[k] = (real)sum[k] + (real)lost[k];
}

#else

/* A sum of few bits, one term after the other. */
static real short_sum(const real *x, int64_t n, int64_t stride)
{
    const double split = sum_split(noise_sum_bits());
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum = sum_short(sum, (double)x[k * stride], split);
    return (real)sum;
}

struct tally tally_of(const real *x, int64_t n, int64_t stride)
{
    if (noise_sum_bits())
        return (struct tally){short_sum(x, n, stride), 0};
    struct lanes lanes = {0};
    const int64_t whole = n - n % LANES;
    if (stride == 1)
        lanes_add(&lanes, x, whole);
    for (int64_t at = 0; stride != 1 && at < whole; at += LANES) {
        real apart[LANES];
        for (int k = 0; k < LANES; k++)
            apart[k] = x[(at + k) * stride];
        lanes_add(&lanes, apart, LANES);
    }
    return lanes_total(&lanes, x + whole * stride, n - whole, stride);
}

static real short_dot(const real *a, const real *b, int64_t n)
{
    const double split = sum_split(noise_sum_bits());
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum = sum_short(sum, (double)a[k] * (double)b[k], split);
    return (real)sum;
}

real real_dot(const real *a, const real *b, int64_t n)
{
    op_terms(n);
    if (noise_sum_bits())
        return short_dot(a, b, n);
    struct lanes lanes = {0};
    real product[LANES];
    int64_t at = 0;
    for (; at + LANES <= n; at += LANES)
        for (int k = 0; k < VECS; k++) {
            const vec term =
                *(const loose_vec *)(a + at + k * WIDTH) * *(const loose_vec *)(b + at + k * WIDTH);
            vec_add(&lanes.sum[k], &lanes.lost[k], &term);
        }
    for (int64_t k = at; k < n; k++)
        product[k - at] = a[k] * b[k];
    const struct tally t = lanes_total(&lanes, product, n - at, 1);
    return tally_value(t.sum, t.lost);
}

static void sum_tile(const real *x, int64_t rows, int n, int64_t stride, real *out)
{
    for (int k = 0; noise_sum_bits() && k < n; k++)
        out[k] = short_sum(x + k, rows, stride);
    if (noise_sum_bits())
        return;
    real sum[TILE] = {0}, lost[TILE] = {0};
    for (int64_t row = 0; row < rows; row++)
        for (int k = 0; k < n; k++)
            sum_add(&sum[k], &lost[k], x[row * stride + k]);
    for (int k = 0; k < n; k++)
        out[k] = tally_value(sum[k], lost[k]);
}

#endif

real real_sum(const real *x, int64_t n, int64_t stride)
{
    op_terms(n);
    const struct tally t = tally_of(x, n, stride);
    return tally_value(t.sum, t.lost);
}

void sum_rows(const real *x, int64_t rows, int64_t columns, int64_t stride, real *out)
{
    op_terms(rows);
    for (int64_t c = 0; c < columns; c += TILE)
        sum_tile(x + c, rows, columns - c < TILE ? (int)(columns - c) : TILE, stride, out + c);
}
