/* What drawings share: the file round them, styles, lines and texts. */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include "base/buf.h"
#include "report/xml.h"

/* Opens a file of that size with a title, and a line below it. */
void svg_begin(struct buf *out, unsigned width, unsigned height, const char *title,
               const char *below);
void svg_line(struct buf *out, const char *style, double x1, double y1, double x2, double y2);

/* A text at its baseline; anchor: "start", "middle" or "end". Longer ones than `most` characters
 * lose their beginning. */
void svg_text(struct buf *out, const char *style, const char *anchor, double x, double y,
              const char *text, size_t most);

/* Marks that differ in shape: a filled triangle, an open diamond. */
void svg_bad(struct buf *out, double x, double y);
void svg_doubt(struct buf *out, double x, double y);

/* A coordinate, whatever the locale. */
void svg_number(struct buf *out, double value);

/* Closes the file. NULL when out of memory. */
char *svg_end(struct buf *out);

#endif
