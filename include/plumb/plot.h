/* Drawings: what a report shows in a browser, as SVG for papers and pages. They read on white and on
 * dark pages and in print, and need no colour to be understood. */
#ifndef PLUMB_PLOT_H
#define PLUMB_PLOT_H

#include "plumb/detail.h"
#include "plumb/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each returns the text of an SVG file, UTF-8, which the caller frees; NULL when out of memory. Titles
 * and names may hold anything. */

/* The distance of each call from the other run, in the order of execution, on a logarithmic scale, with
 * what rounding explains shaded, and calls that are bad or in doubt marked and named. Each rank and step
 * has a line of its own. title, below: two lines over the drawing. */
char *plumb_plot_network(const char *title, const char *below,
                         const struct plumb_report_call *calls, size_t count);

/* The largest absolute error over two axes of a tensor. */
char *plumb_plot_errors(const char *title, const char *below, const struct plumb_error_map *map);

#ifdef __cplusplus
}
#endif
#endif
