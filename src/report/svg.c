/* What drawings share: the file round them, styles, lines and texts. */
#include "report/svg.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

/* Okabe and Ito's colours, which people see apart whatever their eyes; the ramp is one of
 * lightness. */
static const char styles[] =
    ".page{fill:#fff}text{fill:#57606a;font:12px sans-serif}.title{fill:#1b1f24;font-weight:bold;"
    "font-size:15px}.name{fill:#1b1f24;font-size:11px}.axis{stroke:#57606a;fill:none}.grid{stroke:"
    "#d3d8de}.band{fill:#009e73;fill-opacity:.18}.edge{stroke:#009e73;fill:none;stroke-dasharray:5 "
    "4}.curve{stroke:#0072b2;fill:none;stroke-width:1.5}.back{stroke-dasharray:2 "
    "3}.bad{fill:#d55e00}"
    ".doubt{fill:none;stroke:#b87700;stroke-width:1.8}.lead{stroke:#d55e00;stroke-width:.8;"
    "stroke-dasharray:2 2}.frame{fill:none;stroke:#57606a}.cross{stroke:#d55e00;stroke-width:1.2}"
    ".h0{fill:#f7fbff}.h1{fill:#deebf7}.h2{fill:#c6dbef}.h3{fill:#9ecae1}.h4{fill:#6baed6}"
    ".h5{fill:#4292c6}.h6{fill:#2171b5}.h7{fill:#08519c}.h8{fill:#08306b}"
    "@media screen and (prefers-color-scheme:dark){.page{fill:#15181c}text{fill:#a3adb8}"
    ".title,.name{fill:#e6e9ec}.axis,.frame{stroke:#a3adb8}.grid{stroke:#39414b}.curve{stroke:#"
    "56b4e9}"
    ".bad{fill:#f07f2e}.lead,.cross{stroke:#f07f2e}.doubt{stroke:#f0b429}.h0{fill:#1c2127}"
    ".h1{fill:#08306b}.h2{fill:#08519c}.h3{fill:#2171b5}.h4{fill:#4292c6}.h5{fill:#6baed6}"
    ".h6{fill:#9ecae1}.h7{fill:#c6dbef}.h8{fill:#f7fbff}}";

void svg_number(struct buf *out, double value)
{
    const long long tenths = llround(value * 10);
    const long long size = tenths < 0 ? -tenths : tenths;
    buf_printf(out, "%s%lld", tenths < 0 ? "-" : "", size / 10);
    if (size % 10)
        buf_printf(out, ".%lld", size % 10);
}

void svg_begin(struct buf *out, unsigned width, unsigned height, const char *title,
               const char *below)
{
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 "
               "%u %u\" role=\"img\">\n<title>",
               width, height, width, height);
    xml_put(out, title);
    buf_text(out, "</title>\n<desc>");
    xml_put(out, below);
    buf_printf(out,
               "</desc>\n<style>%s</style>\n<rect class=\"page\" width=\"%u\" height=\"%u\"/>\n",
               styles, width, height);
    svg_text(out, "title", "start", 16, 24, title, width / 8);
    svg_text(out, "", "start", 16, 42, below, width / 7);
}

void svg_line(struct buf *out, const char *style, double x1, double y1, double x2, double y2)
{
    buf_printf(out, "<path class=\"%s\" d=\"M", style);
    svg_number(out, x1);
    buf_text(out, " ");
    svg_number(out, y1);
    buf_text(out, "L");
    svg_number(out, x2);
    buf_text(out, " ");
    svg_number(out, y2);
    buf_text(out, "\"/>\n");
}

void svg_text(struct buf *out, const char *style, const char *anchor, double x, double y,
              const char *text, size_t most)
{
    size_t length = 0;
    for (const char *at = text; *at; at += utf8_next(at).size)
        length++;
    buf_printf(out, "<text%s%s%s text-anchor=\"%s\" x=\"", *style ? " class=\"" : "", style,
               *style ? "\"" : "", anchor);
    svg_number(out, x);
    buf_text(out, "\" y=\"");
    svg_number(out, y);
    buf_text(out, "\">");
    if (length > most)
        buf_text(out, "...");
    for (; length > most; length--)
        text += utf8_next(text).size;
    xml_put(out, text);
    buf_text(out, "</text>\n");
}

static void put_mark(struct buf *out, const char *style, const char *shape, double x, double y)
{
    buf_printf(out, "<path class=\"%s\" d=\"M", style);
    svg_number(out, x);
    buf_text(out, " ");
    svg_number(out, y);
    buf_printf(out, "%s\"/>\n", shape);
}

void svg_bad(struct buf *out, double x, double y)
{
    put_mark(out, "bad", "m0-7l6 11h-12z", x, y);
}

void svg_doubt(struct buf *out, double x, double y)
{
    put_mark(out, "doubt", "m0-6l5 6l-5 6l-5-6z", x, y);
}

char *svg_end(struct buf *out)
{
    buf_text(out, "</svg>\n");
    if (out->failed) {
        buf_free(out);
        return NULL;
    }
    return out->data;
}
