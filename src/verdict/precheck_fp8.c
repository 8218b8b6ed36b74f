/* ULP errors of 8-bit floats, by a precision that tapers off. */
#include "verdict/precheck_parts.h"

#include <math.h>

/* Keeps zeros out of the logarithm. */
#define TINY 0x1p-1000

double judge_fp8_ulp(double device, double bench)
{
    double level = log2(fabs(bench) + TINY);
    if (level < -22)
        level = -22;
    double exponent = floor(level), size = fabs(exponent);
    int mantissa = size <= 3 ? 3 : size <= 7 ? 2 : size <= 15 ? 1 : 0;
    if (mantissa > 0)
        return (device - bench) * exp2(mantissa - exponent);

    /* Without a mantissa the values are powers of two, so the distance is one of exponents. */
    double from = bench < 0 ? -level : level;
    double to = log2(fabs(device) + TINY);
    return (device < 0 ? -to : to) - from;
}
