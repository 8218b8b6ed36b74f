/* Drawings: what a report shows in a browser, as SVG for papers and pages. They read on white and
 * on dark pages and in print, and need no colour to be understood. */
#ifndef PLUMB_PLOT_H
#define PLUMB_PLOT_H

#include "plumb/detail.h"
#include "plumb/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each returns the text of an SVG file, UTF-8, which the caller frees; NULL when out of memory.
 * Titles and names may hold anything. */

/* The distance of each call from the other run, in the order of execution, on a logarithmic scale,
 * with what rounding explains shaded, and calls that are bad or in doubt marked and named. Each
 * rank and step has a line of its own. title, below: two lines over the drawing. */
char *plumb_plot_network(const char *title, const char *below,
                         const struct plumb_report_call *calls, size_t count);

/* The largest absolute error over two axes of a tensor. */
char *plumb_plot_errors(const char *title, const char *below, const struct plumb_error_map *map);

/* What a page that was written earlier has of this. All of it belongs to the object. */
struct plumb_pictured {
    const char *title, *sentence;
    const struct plumb_report_call *calls; /* without rows */
    size_t n_calls;
    const struct plumb_pictured_tensor {
        const char *name;
        struct plumb_detail detail; /* shape, maps and the worst element, nothing else */
    } * tensors;
    size_t n_tensors;
    void *memory;
};

/* Reads a page that plumb_report_save wrote. Errors of maps come back as well as a page shows them:
 * within a sixteenth of a power of two. PLUMB_E_FORMAT: it is no such page, or damaged. Free it in
 * any case. */
enum plumb_code plumb_pictured_read(struct plumb_pictured *out, const char *path,
                                    struct plumb_error *err);
enum plumb_code plumb_pictured_parse(struct plumb_pictured *out, const void *bytes, size_t size,
                                     struct plumb_error *err);
void plumb_pictured_free(struct plumb_pictured *pictured);

#ifdef __cplusplus
}
#endif
#endif
