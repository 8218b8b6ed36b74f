/* Windows that slide over up to three dimensions, as convolutions and unfold see them: the elements
 * under all windows, spread out as columns of a matrix, and columns added back to where they came
 * from. */
#ifndef OP_WINDOW_H
#define OP_WINDOW_H

#include "exec/op/op.h"

enum { WINDOW_DIMS = 3 };

/* Dimensions that are not there have in = out = kernel = stride = dilation = 1 and stand in
 * front. */
struct window {
    int64_t in[WINDOW_DIMS], out[WINDOW_DIMS], kernel[WINDOW_DIMS], stride[WINDOW_DIMS],
        dilation[WINDOW_DIMS], pad[WINDOW_DIMS]; /* pad: in front; behind, whatever out needs */
    int64_t in_count, out_count, kernel_count;
};

/* The 2 of "max_pool2d": over how many dimensions the windows of the running operator slide. */
unsigned window_rank(const struct op *o);

/* Reads an argument of nd numbers (a lone one stands for all) into the last nd of three; the others
 * become `missing`. None and [] keep what is there already. Fails when a number is outside [least,
 * 2^31), or there is none. */
bool window_arg(struct op *o, const char *name, unsigned nd, int64_t least, int64_t missing,
                int64_t out[WINDOW_DIMS]);

/* Sets the counts. Fails when they overflow. */
bool window_finish(struct op *o, struct window *w);

/* columns[c * kernel_count + k][t] = x[c] under element k of window first + t; 0 in the padding. */
void window_gather(const struct window *w, const real *x, int64_t channels, int64_t first,
                   int64_t count, real *columns);

/* Windows that one element may lie in. */
int64_t window_overlap(const struct window *w);

/* The opposite: adds every column element to its place in x. */
void window_scatter(const struct window *w, const real *columns, int64_t channels, int64_t first,
                    int64_t count, real *x);

#endif
