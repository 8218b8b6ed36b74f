/* What the cells of a details row say: numbers, types and shapes as text. Independent of the
 * locale. All texts live in the arena; NULL when out of memory. */
#ifndef VERDICT_CELLS_H
#define VERDICT_CELLS_H

#include "base/arena.h"
#include "plumb/tensor.h"

#define CELL_BLANK " "
enum { CELL_MAX_PRECISION = 20 };

/* A number that was computed in a type. float64: `precision` decimals (at most
 * CELL_MAX_PRECISION), never an exponent. float32 and float16: the shortest text that reads back as
 * the same value of that type, laid out like numpy's. "nan", "inf", "-inf" for the rest. */
const char *cell_number(struct arena *arena, double value, enum plumb_dtype type,
                        unsigned precision);
const char *cell_integer(struct arena *arena, uint64_t value);
const char *cell_dtype(struct arena *arena, enum plumb_dtype dtype);            /* "torch.int64" */
const char *cell_shape(struct arena *arena, const struct plumb_tensor *tensor); /* "(5,)" */

#endif
