/* The result file, laid out as Python's json.dump(..., indent=4) lays it out. */
#include "base/json_put.h"
#include "base/number.h"
#include "task/checkpoint/pairs.h"

#include <inttypes.h>
#include <math.h>

/* NaN and Infinity bare, as Python reads and writes them. */
static void put_real(struct buf *out, double value)
{
    char text[NUMBER_BYTES];
    if (isinf(value)) {
        buf_text(out, value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    number_exact(value, true, text);
    buf_text(out, text);
}

static void put_shape(struct buf *out, const struct checkpoint_weight *weight, const char *indent)
{
    buf_text(out, "[");
    for (unsigned i = 0; i < weight->ndim; i++)
        buf_printf(out, "%s\n%s    %" PRId64, i ? "," : "", indent, weight->shape[i]);
    if (weight->ndim)
        buf_printf(out, "\n%s", indent);
    buf_text(out, "]");
}

static void put_sizes(struct buf *out, const struct pair *pair)
{
    const struct checkpoint_weight *a = pair->side[0], *b = pair->side[1];
    if (a->elements == b->elements)
        buf_printf(out, "        \"numel\": %" PRIu64 ",\n", a->elements);
    else
        buf_printf(out,
                   "        \"numel\": [\n            %" PRIu64 ",\n            %" PRIu64
                   "\n        ],\n",
                   a->elements, b->elements);
    buf_text(out, "        \"shape\": ");
    if (pair->state != PAIR_SHAPES) {
        put_shape(out, a, "        ");
        return;
    }
    buf_text(out, "[\n            ");
    put_shape(out, a, "            ");
    buf_text(out, ",\n            ");
    put_shape(out, b, "            ");
    buf_text(out, "\n        ]");
}

static void put_pair(struct buf *out, const struct pair *pair)
{
    bool compared = pair->state == PAIR_COMPARED;
    buf_text(out, "    ");
    json_put_string(out, pair_name(pair));
    buf_text(out, ": {\n        \"l2\": ");
    if (compared)
        put_real(out, pair->l2);
    else
        buf_text(out, "null");
    buf_text(out, ",\n        \"cos\": ");
    if (compared && pair->has_cosine)
        put_real(out, pair->cosine);
    else
        buf_text(out, "null");
    buf_text(out, ",\n");
    if (pair->state != PAIR_UNREADABLE) {
        put_sizes(out, pair);
    } else {
        char text[1024];
        buf_text(out, "        \"error\": ");
        json_put_string(out, plumb_error_text(&pair->error, text, sizeof text));
    }
    buf_text(out, "\n    }");
}

char *pairs_json(const struct pairs *pairs)
{
    struct buf out = {0};
    bool any = false;
    buf_text(&out, "{");
    for (size_t i = 0; i < pairs->count; i++) {
        if (pairs->list[i].state == PAIR_ALONE)
            continue;
        buf_text(&out, any ? ",\n" : "\n");
        put_pair(&out, &pairs->list[i]);
        any = true;
    }
    buf_text(&out, any ? "\n}" : "}");
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
