/* The matrix product of binary128: up to 256 products at a time are added up as pairs of doubles,
 * and these sums in binary128. Blocks with numbers that are no pairs, such as infinite or tiny
 * ones, are multiplied in binary128. */
#include "exec/op/gemm.h"

#if OP_REAL == 128

#include "base/cpu.h"
#include "exec/op/pair.h"

enum { COLUMNS = 32, DEPTH = 256, LANES = 16 };

/* Numbers of op(b), or a row of op(a), split. */
struct numbers {
    double *value, *rest; /* [depth][width] */
    int width;
    bool fits;     /* all numbers are pairs */
    bool has_rest; /* some are not doubles */
};

/* Where they come from: element p, j is x[p * down + j * across]; from `columns` on they are 0. */
struct source {
    const quad *x;
    int64_t down, across, depth, columns;
};

static void split(const struct source *from, struct numbers *to)
{
    to->fits = true;
    to->has_rest = false;
    for (int64_t p = 0; p < from->depth; p++) {
        double *value = to->value + p * to->width, *rest = to->rest + p * to->width;
        for (int64_t j = 0; j < to->width; j++) {
            const quad x = j < from->columns ? from->x[p * from->down + j * from->across] : 0;
            to->fits &= pair_split(x, PAIR_FACTOR_LOW, PAIR_FACTOR_HIGH, &value[j], &rest[j]);
            to->has_rest |= rest[j] != 0;
        }
    }
}

/* A row of a times LANES columns of b. */
PAIR_INLINE void dots(bool fused, bool rests, const struct numbers *a, const struct numbers *b,
                      int64_t column, int64_t depth, double *sum, double *lost)
{
    double s[LANES] = {0}, l[LANES] = {0};
    for (int64_t p = 0; p < depth; p++) {
        const double *value = b->value + p * b->width + column;
        const double *rest = b->rest + p * b->width + column;
        const double x = a->value[p], x_rest = a->rest[p];
        for (int j = 0; j < LANES; j++) {
            const double product = x * value[j];
            double more = pair_lost(fused, x, value[j], product);
            if (rests)
                more += x * rest[j] + x_rest * value[j];
            l[j] += pair_add(&s[j], product) + more;
        }
    }
    memcpy(sum, s, sizeof s);
    memcpy(lost, l, sizeof l);
}

PAIR_INLINE void row_times(bool fused, const struct numbers *a, const struct numbers *b,
                           int64_t depth, double *sum, double *lost)
{
    for (int64_t j = 0; j < b->width; j += LANES)
        if (a->has_rest || b->has_rest)
            dots(fused, true, a, b, j, depth, sum + j, lost + j);
        else
            dots(fused, false, a, b, j, depth, sum + j, lost + j);
}

typedef void row_fn(const struct numbers *a, const struct numbers *b, int64_t depth, double *sum,
                    double *lost);

static void row_plain(const struct numbers *a, const struct numbers *b, int64_t depth, double *sum,
                      double *lost)
{
    row_times(PAIR_FUSED, a, b, depth, sum, lost);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void
row_avx2(const struct numbers *a, const struct numbers *b, int64_t depth, double *sum, double *lost)
{
    row_times(true, a, b, depth, sum, lost);
}
#endif

static row_fn *choose_row(void)
{
#ifdef __x86_64__
    if (cpu_has_avx2(cpu_mask()))
        return row_avx2;
#endif
    return row_plain;
}

/* The same in binary128. */
static void row_slow(const struct source *a, const struct source *b, quad *to)
{
    for (int64_t j = 0; j < b->columns; j++) {
        to[j] = 0;
        for (int64_t p = 0; p < b->depth; p++)
            to[j] += a->x[p * a->down] * b->x[p * b->down + j * b->across];
    }
}

/* All of c's columns of one block of b. */
static void block_times(bool ta, int64_t m, quad alpha, const quad *a, int64_t lda,
                        const struct source *from, const struct numbers *b, quad *c, int64_t ldc,
                        row_fn *row)
{
    double value[DEPTH], rest[DEPTH], sum[COLUMNS], lost[COLUMNS];
    quad total[COLUMNS];
    struct numbers line = {.value = value, .rest = rest, .width = 1};
    for (int64_t i = 0; i < m; i++) {
        const struct source own = {ta ? a + i : a + i * lda, ta ? lda : 1, 0, from->depth, 1};
        if (b->fits)
            split(&own, &line);
        if (b->fits && line.fits) {
            row(&line, b, from->depth, sum, lost);
            for (int64_t j = 0; j < from->columns; j++)
                total[j] = (quad)sum[j] + (quad)lost[j];
        } else {
            row_slow(&own, from, total);
        }
        for (int64_t j = 0; j < from->columns; j++)
            c[i * ldc + j] += alpha == 1 ? total[j] : alpha * total[j];
    }
}

void gemm_add(bool ta, bool tb, int64_t m, int64_t n, int64_t k, quad alpha, const quad *a,
              int64_t lda, const quad *b, int64_t ldb, quad *c, int64_t ldc)
{
    double value[DEPTH * COLUMNS], rest[DEPTH * COLUMNS];
    row_fn *row = choose_row();
    for (int64_t j = 0; j < n; j += COLUMNS)
        for (int64_t p = 0; p < k; p += DEPTH) {
            const struct source from = {
                .x = tb ? b + j * ldb + p : b + p * ldb + j,
                .down = tb ? 1 : ldb,
                .across = tb ? ldb : 1,
                .depth = k - p < DEPTH ? k - p : DEPTH,
                .columns = n - j < COLUMNS ? n - j : COLUMNS,
            };
            struct numbers block = {value, rest, from.columns > LANES ? COLUMNS : LANES, 0, 0};
            split(&from, &block);
            block_times(ta, m, alpha, ta ? a + p * lda : a + p, lda, &from, &block, c + j, ldc,
                        row);
        }
}

#endif
