/* Most rows have no numbers for which exp has to be careful: a piece that has none is computed by a
 * shorter way, to the same bits. */
#include "exec/op/exp_row.h"
#include "exec/op/fast.h"

#include <stdbool.h>

enum { LANES = 32, PIECE = 256 };

real row_max(const real *x, int64_t n)
{
    real lanes[LANES], most = -R(INFINITY);
    int64_t k = 0;
    for (int l = 0; l < LANES; l++)
        lanes[l] = most;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] = x[k + l] > lanes[l] ? x[k + l] : lanes[l];
    for (int l = 0; l < LANES; l++)
        most = lanes[l] > most ? lanes[l] : most;
    for (; k < n; k++)
        most = x[k] > most ? x[k] : most;
    return most;
}

#if OP_REAL == 128

void exp_row(const real *x, int64_t n, real shift, real *y)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = exp(x[k] - shift);
}

#else

/* Numbers of a piece for which the short way is too short. NaN comes out of either. */
static int64_t odd_ones(const real *restrict x, real shift, real *restrict piece)
{
    int64_t odd = 0;
    for (int k = 0; k < PIECE; k++) {
        const real y = x[k] - shift;
        odd += fabs(y) > FAST_PLAIN;
        piece[k] = y;
    }
    return odd;
}

static void exp_piece(const real *restrict x, real *restrict y)
{
    for (int k = 0; k < PIECE; k++)
        y[k] = fast_exp_plain(x[k]);
}

void exp_row(const real *x, int64_t n, real shift, real *y)
{
    int64_t k = 0;
    for (; k + PIECE <= n; k += PIECE) {
        real piece[PIECE];
        if (!odd_ones(x + k, shift, piece)) {
            exp_piece(piece, y + k);
            continue;
        }
        for (int j = 0; j < PIECE; j++)
            y[k + j] = fast_exp(piece[j]);
    }
    for (; k < n; k++)
        y[k] = fast_exp(x[k] - shift);
}

#endif
