/* The errors of a tensor over two of its axes, as a drawing. */
#include "plumb/plot.h"

#include "base/number.h"
#include "report/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { SIDE = 512, LEFT = 64, TOP = 64, LEVELS = 9, NOT_FINITE = LEVELS };

/* Each level is a factor of four below the next; the lowest is no error at all, or hardly any. */
static unsigned level_of(double value, double largest)
{
    if (!isfinite(value))
        return NOT_FINITE;
    if (value <= 0 || largest <= 0)
        return 0;
    const double below = floor(log2(largest / value) / 2);
    return below >= LEVELS - 2 ? 1 : LEVELS - 1 - (unsigned)below;
}

static double find_largest(const struct plumb_error_map *map)
{
    double largest = 0;
    for (size_t k = 0; k < (size_t)map->size[0] * map->size[1]; k++)
        if (isfinite(map->largest[k]) && map->largest[k] > largest)
            largest = map->largest[k];
    return largest;
}

static void put_cell(struct buf *out, unsigned level, double x, double y, double width,
                     double height)
{
    buf_printf(out, "<rect class=\"h%u\" x=\"", level == NOT_FINITE ? LEVELS - 1 : level);
    svg_number(out, x);
    buf_text(out, "\" y=\"");
    svg_number(out, y);
    buf_text(out, "\" width=\"");
    svg_number(out, width);
    buf_text(out, "\" height=\"");
    svg_number(out, height);
    buf_text(out, "\"/>\n");
    if (level != NOT_FINITE)
        return;
    svg_line(out, "cross", x, y, x + width, y + height);
    svg_line(out, "cross", x + width, y, x, y + height);
}

/* Cells of one level that lie beside each other are one. */
static void put_row(struct buf *out, const struct plumb_error_map *map, double largest,
                    unsigned row)
{
    const double width = (double)SIDE / map->size[1], height = (double)SIDE / map->size[0];
    const double *values = map->largest + (size_t)row * map->size[1];
    for (unsigned k = 0, end; k < map->size[1]; k = end) {
        const unsigned level = level_of(values[k], largest);
        end = k + 1;
        while (level != NOT_FINITE && end < map->size[1] && level_of(values[end], largest) == level)
            end++;
        put_cell(out, level, LEFT + k * width, TOP + row * height, (end - k) * width, height);
    }
}

static void put_axis(struct buf *out, const struct plumb_error_map *map, int which)
{
    char text[96];
    if (map->axes[which] < 0)
        return;
    snprintf(text, sizeof text, "axis %d, 0 to %" PRId64, map->axes[which], map->extent[which] - 1);
    if (which) {
        svg_text(out, "", "middle", LEFT + SIDE / 2.0, TOP + SIDE + 18, text, 80);
        return;
    }
    buf_printf(out, "<g transform=\"rotate(-90 %d %d)\">", LEFT - 10, TOP + SIDE / 2);
    svg_text(out, "", "middle", LEFT - 10, TOP + SIDE / 2.0, text, 80);
    buf_text(out, "</g>\n");
}

static void put_legend(struct buf *out, double largest)
{
    const double x = LEFT + SIDE + 24;
    char text[NUMBER_BYTES + 32], number[NUMBER_BYTES];
    svg_text(out, "", "start", x, TOP + 10, "largest error", 40);
    for (unsigned k = 0; k < LEVELS - 1; k++) {
        const double y = TOP + 22 + 22 * (double)k;
        number_brief(largest * pow(0.25, k), 3, number);
        snprintf(text, sizeof text, "%s %s", k + 2 < LEVELS ? "to" : "less than", number);
        put_cell(out, LEVELS - 1 - k, x, y, 18, 18);
        svg_text(out, "", "start", x + 26, y + 13, text, 40);
    }
    put_cell(out, 0, x, TOP + 22 + 22.0 * (LEVELS - 1), 18, 18);
    svg_text(out, "", "start", x + 26, TOP + 35 + 22.0 * (LEVELS - 1), "none", 40);
    put_cell(out, NOT_FINITE, x, TOP + 22 + 22.0 * LEVELS, 18, 18);
    svg_text(out, "", "start", x + 26, TOP + 35 + 22.0 * LEVELS, "NaN or infinity", 40);
}

char *plumb_plot_errors(const char *title, const char *below, const struct plumb_error_map *map)
{
    struct buf out = {0};
    const double largest = find_largest(map);
    svg_begin(&out, LEFT + SIDE + 180, TOP + SIDE + 36, title, below);
    for (unsigned row = 0; row < map->size[0]; row++)
        put_row(&out, map, largest, row);
    buf_printf(&out, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT,
               TOP, SIDE, SIDE);
    put_axis(&out, map, 0);
    put_axis(&out, map, 1);
    put_legend(&out, largest);
    return svg_end(&out);
}
