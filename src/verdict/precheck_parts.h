/* What judge.c hands on: pairs of tensors of equal shape, with elements, of comparable kinds.
 * Types, shape and blank cells of the row are already set. */
#ifndef VERDICT_PRECHECK_PARTS_H
#define VERDICT_PRECHECK_PARTS_H

#include "verdict/precheck.h"

struct judge_pair {
    const struct judge_options *options;
    const char *api;
    bool fp8_input;
    const struct plumb_tensor *bench, *device;
    struct arena *arena;
    struct details_row *row;
};

/* Floats and complex numbers. */
enum plumb_code judge_documented_float(const struct judge_pair *pair);
enum plumb_code judge_msprobe_float(const struct judge_pair *pair);

/* Integers and bool. */
enum plumb_code judge_integers(const struct judge_pair *pair);

/* The ULP error of 8-bit floats, whose precision tapers off with the exponent; signed. */
double judge_fp8_ulp(double device, double bench);

#endif
