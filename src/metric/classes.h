/* Classes of sizes: bins and limits in one number (kernel.h). */
#ifndef METRIC_CLASSES_H
#define METRIC_CLASSES_H

#include "metric/kernel.h"

/* Those of |d| (1e-7 to 1e-1, passed from above) and of r (1e-4, 1e-3, 5e-3 and 1e-2, reached). */
struct size_classes abs_classes(void);
struct size_classes ratio_classes(void);

/* The greatest class that a size can have. */
static inline uint8_t top_class(int limits)
{
    return (uint8_t)(HISTOGRAM_BINS - 2 + limits);
}

/* Adds sizes that were counted by class to bins, and those that passed each limit to passed. */
void classes_unfold(const struct size_classes *sizes, const uint64_t counts[CLASSES],
                    uint64_t bins[HISTOGRAM_BINS], uint64_t passed[CLASS_LIMITS]);

#endif
