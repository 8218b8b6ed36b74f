/* Numbers, types and shapes as the cells of the pre-check show them. */
#include "verdict/cells.h"

#include "base/number.h"
#include "base/plain.h"
#include "base/shortest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT_DIGITS = 9, FIXED_BYTES = 350 }; /* the largest float64 with all its decimals */

/* The float64 nearest to the shortest decimal that reads back as value in its own, narrower type:
 * so short a decimal is also the shortest for that float64. */
static double widened(double value, enum plumb_dtype type)
{
    double size = fabs(value), wide = size, back = NAN;
    for (int digits = 1; digits <= FLOAT_DIGITS && back != size; digits++) {
        struct decimal decimal = rounded_decimal(size, digits);
        char text[40];
        snprintf(text, sizeof text, "%" PRIu64 "e%d", decimal.digits, decimal.exponent);
        wide = strtod(text, NULL);
        back = type == PLUMB_F32 ? (double)strtof(text, NULL) : plumb_round_to(type, wide);
    }
    return copysign(wide, value);
}

static const char *fixed_text(struct arena *arena, double value, unsigned precision)
{
    char text[FIXED_BYTES];
    plain_print(text, sizeof text, "%.*f", (int)precision, value);
    return arena_copy(arena, text, strlen(text));
}

const char *cell_number(struct arena *arena, double value, enum plumb_dtype type,
                        unsigned precision)
{
    if (isnan(value))
        return "nan";
    if (isinf(value))
        return value < 0 ? "-inf" : "inf";
    if (type == PLUMB_F64)
        return fixed_text(arena, value,
                          precision < CELL_MAX_PRECISION ? precision : CELL_MAX_PRECISION);
    double wide = value == 0 ? value : widened(value, type);
    if (fabs(value) < 1e-4 && fabs(wide) >= 1e-4) /* the float32 just below it */
        return value < 0 ? "-1e-04" : "1e-04";
    char text[NUMBER_BYTES];
    size_t length = number_exact(wide, true, text);
    return arena_copy(arena, text, length);
}

const char *cell_integer(struct arena *arena, uint64_t value)
{
    return arena_printf(arena, "%" PRIu64, value);
}

const char *cell_dtype(struct arena *arena, enum plumb_dtype dtype)
{
    return arena_printf(arena, "torch.%s", plumb_dtype_info(dtype)->name);
}

const char *cell_shape(struct arena *arena, const struct plumb_tensor *tensor)
{
    char text[PLUMB_MAX_RANK * 22 + 4];
    size_t used = 1;
    text[0] = '(';
    for (unsigned i = 0; i < tensor->rank; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64, i ? ", " : "",
                                 tensor->shape[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", tensor->rank == 1 ? ",)" : ")");
    return arena_copy(arena, text, used);
}
