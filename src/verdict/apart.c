/* Where two tensors part: the first element that is not close. */
#include "plumb/verdict.h"

#include <math.h>

static bool is_close(double target, double golden, const struct plumb_tolerance *tolerance)
{
    if (isnan(target) || isnan(golden))
        return tolerance->equal_nan && isnan(target) && isnan(golden);
    if (isinf(target) || isinf(golden))
        return target == golden;
    return fabs(target - golden) <= tolerance->atol + tolerance->rtol * fabs(golden);
}

uint64_t plumb_first_apart(const struct plumb_tensor *target, const struct plumb_tensor *golden,
                           const struct plumb_tolerance *tolerance)
{
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK];
    const unsigned parts = plumb_dtype_parts(target->dtype);
    const uint64_t step = PLUMB_METRIC_BLOCK / parts;
    for (uint64_t at = 0; at < target->count; at += step) {
        const uint64_t left = target->count - at;
        const size_t n = left < step ? (size_t)left : (size_t)step;
        plumb_tensor_to_f64(target, at, n, t);
        plumb_tensor_to_f64(golden, at, n, g);
        for (size_t i = 0; i < n * parts; i++)
            if (!is_close(t[i], g[i], tolerance))
                return at + i / parts;
    }
    return target->count;
}
