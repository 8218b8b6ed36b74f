/* The error along a network, as a drawing. */
#include "plumb/plot.h"

#include "report/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 440, LEFT = 64, RIGHT = 944, TOP = 60, BOTTOM = 368 };
enum { NAMED = 6, LINE = 13 }; /* calls with their names, each on a line over the drawing */

struct scale {
    double low, high; /* exponents of ten */
    double top;
    size_t across; /* calls of the longest line */
};

/* A new line begins where rank or step change. */
static bool begins(const struct plumb_report_call *calls, size_t k)
{
    return !k || calls[k].rank != calls[k - 1].rank || calls[k].step != calls[k - 1].step;
}

static void widen(struct scale *scale, double value)
{
    if (!isfinite(value) || value <= 0)
        return;
    const double exponent = log10(value);
    if (exponent < scale->low)
        scale->low = floor(exponent);
    if (exponent > scale->high)
        scale->high = ceil(exponent);
}

static struct scale find_scale(const struct plumb_report_call *calls, size_t count)
{
    struct scale scale = {.low = INFINITY, .high = -INFINITY, .top = TOP};
    size_t named = 0;
    for (size_t k = 0, in = 0; k < count; k++) {
        named += calls[k].mood == PLUMB_MOOD_BAD && named < NAMED;
        in = begins(calls, k) ? 1 : in + 1;
        scale.across = in > scale.across ? in : scale.across;
        widen(&scale, calls[k].total);
        widen(&scale, calls[k].band);
    }
    scale.top += LINE * (double)named;
    if (scale.low > scale.high) {
        scale.low = -8;
        scale.high = 0;
    }
    if (scale.high - scale.low < 2)
        scale.low = scale.high - 2;
    if (scale.high - scale.low > 24)
        scale.low = scale.high - 24;
    return scale;
}

static double x_of(const struct scale *scale, size_t place)
{
    const size_t last = scale->across > 1 ? scale->across - 1 : 1;
    return LEFT + (double)(RIGHT - LEFT) * (double)place / (double)last;
}

/* What is equal lies on the lower edge, what is not finite on the upper one. */
static double y_of(const struct scale *scale, double value)
{
    if (!isfinite(value))
        return scale->top;
    if (value <= 0)
        return BOTTOM;
    const double share = (log10(value) - scale->low) / (scale->high - scale->low);
    return BOTTOM - (BOTTOM - scale->top) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static void put_axes(struct buf *out, const struct scale *scale)
{
    char text[32];
    const int step = scale->high - scale->low > 12 ? 2 : 1;
    for (int exponent = (int)scale->low; exponent <= (int)scale->high; exponent += step) {
        const double y = y_of(scale, pow(10, exponent));
        snprintf(text, sizeof text, "1e%d", exponent);
        svg_line(out, "grid", LEFT, y, RIGHT, y);
        svg_text(out, "", "end", LEFT - 6, y + 4, text, 20);
    }
    svg_line(out, "axis", LEFT, scale->top, LEFT, BOTTOM);
    svg_line(out, "axis", LEFT, BOTTOM, RIGHT, BOTTOM);
    svg_text(out, "", "start", LEFT, BOTTOM + 16, "call 1", 40);
    snprintf(text, sizeof text, "call %zu", scale->across);
    svg_text(out, "", "end", RIGHT, BOTTOM + 16, text, 40);
}

static void put_point(struct buf *out, bool first, double x, double y)
{
    buf_text(out, first ? "M" : "L");
    svg_number(out, x);
    buf_text(out, " ");
    svg_number(out, y);
}

/* What rounding explains, of the first line: the others have the same. */
static void put_band(struct buf *out, const struct scale *scale,
                     const struct plumb_report_call *calls, size_t count)
{
    size_t points = 0;
    for (size_t k = 0; k < count && (!k || !begins(calls, k)); k++) {
        if (!isfinite(calls[k].band) || calls[k].band <= 0)
            continue;
        if (!points) {
            buf_text(out, "<path class=\"band\" d=\"");
            put_point(out, true, x_of(scale, k), BOTTOM);
        }
        put_point(out, false, x_of(scale, k), y_of(scale, calls[k].band));
        points = k + 1;
    }
    if (!points)
        return;
    put_point(out, false, x_of(scale, points - 1), BOTTOM);
    buf_text(out, "z\"/>\n");
}

/* Forward is drawn through, backward dashed. */
static void put_curves(struct buf *out, const struct scale *scale,
                       const struct plumb_report_call *calls, size_t count)
{
    bool open = false;
    for (size_t k = 0, in = 0; k < count; k++) {
        const bool other = begins(calls, k) || calls[k].back != calls[k - 1].back;
        in = begins(calls, k) ? 0 : in + 1;
        if (open && other) {
            buf_text(out, "\"/>\n");
            open = false;
        }
        if (isnan(calls[k].total))
            continue;
        if (!open)
            buf_printf(out, "<path class=\"curve%s\" d=\"", calls[k].back ? " back" : "");
        put_point(out, !open, x_of(scale, in), y_of(scale, calls[k].total));
        open = true;
    }
    if (open)
        buf_text(out, "\"/>\n");
}

static void put_name(struct buf *out, const struct plumb_report_call *call, double x, double y,
                     size_t number)
{
    const double row = TOP + LINE * (double)number;
    const bool right = x > (LEFT + RIGHT) / 2.0;
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", call->name, call->word && *call->word ? ": " : "",
             call->word ? call->word : "");
    svg_line(out, "lead", x, y, x, row);
    svg_text(out, "name", right ? "end" : "start", right ? x - 4 : x + 4, row, text, 70);
}

/* Bad ones last, over all else; the first of them have their names. */
static void put_marks(struct buf *out, const struct scale *scale,
                      const struct plumb_report_call *calls, size_t count)
{
    size_t named = 0;
    for (int mood = PLUMB_MOOD_DOUBT; mood >= PLUMB_MOOD_BAD; mood--)
        for (size_t k = 0, in = 0; k < count; k++) {
            in = begins(calls, k) ? 0 : in + 1;
            if ((int)calls[k].mood != mood)
                continue;
            const double x = x_of(scale, in),
                         y = isnan(calls[k].total) ? BOTTOM : y_of(scale, calls[k].total);
            if (mood == PLUMB_MOOD_BAD && named < NAMED)
                put_name(out, &calls[k], x, y, named++);
            if (mood == PLUMB_MOOD_BAD)
                svg_bad(out, x, y);
            else
                svg_doubt(out, x, y);
        }
}

static void put_legend(struct buf *out)
{
    const double y = HEIGHT - 24;
    svg_line(out, "curve", LEFT, y - 4, LEFT + 24, y - 4);
    svg_text(out, "", "start", LEFT + 30, y, "relative distance, forward", 40);
    svg_line(out, "curve back", LEFT + 200, y - 4, LEFT + 224, y - 4);
    svg_text(out, "", "start", LEFT + 230, y, "backward", 40);
    buf_printf(out, "<rect class=\"band\" x=\"%d\" y=\"%d\" width=\"24\" height=\"12\"/>\n",
               LEFT + 310, HEIGHT - 34);
    svg_text(out, "", "start", LEFT + 340, y, "what rounding explains", 40);
    svg_bad(out, LEFT + 510, y - 3);
    svg_text(out, "", "start", LEFT + 522, y, "bad", 40);
    svg_doubt(out, LEFT + 580, y - 4);
    svg_text(out, "", "start", LEFT + 592, y, "in doubt", 40);
}

char *plumb_plot_network(const char *title, const char *below,
                         const struct plumb_report_call *calls, size_t count)
{
    struct buf out = {0};
    const struct scale scale = find_scale(calls, count);
    svg_begin(&out, WIDTH, HEIGHT, title, below);
    put_axes(&out, &scale);
    put_band(&out, &scale, calls, count);
    put_curves(&out, &scale, calls, count);
    put_marks(&out, &scale, calls, count);
    put_legend(&out);
    return svg_end(&out);
}
