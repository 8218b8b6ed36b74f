/* What precheck.c hands on: pairs of tensors of equal shape, with elements, of comparable kinds.
 * Types, shape and blank cells of the row are already set. */
#ifndef VERDICT_PRECHECK_PARTS_H
#define VERDICT_PRECHECK_PARTS_H

#include "plumb/metric.h"
#include "verdict/precheck.h"

struct judge_pair {
    const struct judge_options *options;
    const char *api;
    bool fp8_input;
    const struct plumb_tensor *bench, *device;
    struct arena *arena;
    struct details_row *row;
};

/* Floats and complex numbers, and quantized integers, as documented. */
enum plumb_code judge_documented_float(const struct judge_pair *pair);
void judge_documented_quantized(const struct judge_pair *pair, const struct plumb_metrics *metrics,
                                const char *rate);

/* The row of quantized integers: their largest difference is at most the limit, or it is not. */
void judge_quantized_row(const struct judge_pair *pair, bool within);

/* Integers and bool. */
enum plumb_code judge_integers(const struct judge_pair *pair);

/* The ULP error of 8-bit floats, whose precision tapers off with the exponent; signed. */
double judge_fp8_ulp(double device, double bench);

#endif
