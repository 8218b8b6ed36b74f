/* Sums of what is unread: a piece at a time, without a copy of it in real. */
#include "exec/op/lanes.h"
#include "exec/op/noise.h"
#include "exec/op/op.h"

enum { TILE = 256 }; /* columns at once */

#if OP_REAL == 64

/* Sums of float32 numbers in double are exact, and need no second thought, while the exponents of
 * the numbers are within 53 bits less their own 24, less what so many additions in a lane may
 * carry. */
enum { RUN = 512, RUN_RANGE = 53 - 24 - 5 };

typedef float loose_floats __attribute__((vector_size(16), aligned(sizeof(float)), may_alias));
typedef uint32_t float_bits __attribute__((may_alias));

static bool sums_exactly(const float *x)
{
    const float_bits *bits = (const float_bits *)x;
    uint32_t most = 0, least = UINT32_MAX;
    for (int k = 0; k < RUN; k++) {
        const uint32_t size = bits[k] & 0x7FFFFFFF, below = size - 1; /* of zero: the largest */
        most = size > most ? size : most;
        least = below < least ? below : least;
    }
    const int top = (int)(most >> 23), bottom = (int)((least + 1) >> 23);
    return top < 255 && (!most || top - (bottom ? bottom : 1) <= RUN_RANGE);
}

static void lanes_add_run(struct lanes *lanes, const float *x)
{
    const bool exactly = sums_exactly(x);
    struct lanes l = {0}; /* in registers */
    if (!exactly)
        l = *lanes;
    for (int at = 0; at < RUN; at += LANES)
        for (int k = 0; k < VECS; k++) {
            const vec term =
                __builtin_convertvector(*(const loose_floats *)(x + at + k * WIDTH), vec);
            if (exactly)
                l.sum[k] += term;
            else
                vec_add(&l.sum[k], &l.lost[k], &term);
        }
    for (int k = 0; exactly && k < VECS; k++)
        vec_add(&lanes->sum[k], &lanes->lost[k], &l.sum[k]);
    if (!exactly)
        *lanes = l;
}

#endif

#if OP_REAL != 128

/* Whole runs of what lies in memory as float32; returns how many elements that were. */
static int64_t lanes_add_floats(struct lanes *lanes, const struct val *x, int64_t first, int64_t n)
{
#if OP_REAL == 64
    const struct plumb_tensor *t = x->unread;
    if (t->dtype != PLUMB_F32 || !t->dense || t->swap || (uintptr_t)t->data % _Alignof(float))
        return 0;
    int64_t at = 0;
    for (; at + RUN <= n; at += RUN)
        lanes_add_run(lanes, (const float *)t->data + first + at);
    return at;
#else
    (void)lanes, (void)x, (void)first, (void)n;
    return 0;
#endif
}

static struct tally tally_unread(const struct val *x, int64_t first, int64_t n)
{
    enum { PIECE = 1024 };
    real room[PIECE];
    struct lanes lanes = {0};
    int64_t at = lanes_add_floats(&lanes, x, first, n);
    for (; n - at > PIECE; at += PIECE)
        lanes_add(&lanes, val_piece(x, first + at, PIECE, room), PIECE);
    const real *rest = val_piece(x, first + at, n - at, room);
    const int64_t whole = (n - at) / LANES * LANES;
    lanes_add(&lanes, rest, whole);
    return lanes_total(&lanes, rest + whole, n - at - whole, 1);
}

static void sum_tile_unread(const struct val *x, int64_t first, int64_t rows, int n, int64_t stride,
                            real *out)
{
    real sum[TILE] = {0}, lost[TILE] = {0}, room[TILE];
    for (int64_t row = 0; row < rows; row++) {
        const real *piece = val_piece(x, first + row * stride, n, room);
        for (int k = 0; k < n; k++)
            sum_add(&sum[k], &lost[k], piece[k]);
    }
    for (int k = 0; k < n; k++)
        out[k] = tally_value(sum[k], lost[k]);
}

#endif

real sum_of_val(const struct val *x, int64_t first, int64_t n)
{
#if OP_REAL != 128
    if (!x->f) {
        op_terms(n);
        const struct tally t = tally_unread(x, first, n);
        return tally_value(t.sum, t.lost);
    }
#endif
    return real_sum(x->f + first, n, 1);
}

void sum_rows_of_val(const struct val *x, int64_t first, int64_t rows, int64_t columns, real *out)
{
#if OP_REAL != 128
    if (!x->f) {
        op_terms(rows);
        for (int64_t c = 0; c < columns; c += TILE)
            sum_tile_unread(x, first + c, rows, columns - c < TILE ? (int)(columns - c) : TILE,
                            columns, out + c);
        return;
    }
#endif
    sum_rows(x->f + first, rows, columns, columns, out);
}
