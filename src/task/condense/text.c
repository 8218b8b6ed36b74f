/* Writing the text of a condensed file. */
#include "task/condense/text.h"

#include "base/base85.h"
#include "base/json_put.h"
#include "base/number.h"
#include "format/condensed.h"
#include "format/sketch_kept.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* All digits, and the words that Python's json module has for what is not finite. */
static void put_number(struct buf *out, double value)
{
    char text[NUMBER_BYTES];
    if (isnan(value)) {
        buf_text(out, "NaN");
    } else if (isinf(value)) {
        buf_text(out, value > 0 ? "Infinity" : "-Infinity");
    } else {
        size_t length = number_exact(value, true, text);
        buf_append(out, text, length);
    }
}

void text_begin(struct buf *out, const char *file, const char *format, uint64_t bytes)
{
    buf_printf(out, "{\"plumb_condensed\": %d, \"file\": ", CONDENSED_VERSION);
    json_put_string(out, file);
    buf_printf(out, ", \"format\": \"%s\", \"bytes\": %" PRIu64 ", \"tensors\": [", format, bytes);
}

static void put_place(struct buf *out, const struct plumb_record *record)
{
    if (record->step >= 0)
        buf_printf(out, ",\"step\":%" PRId64, record->step);
    if (record->rank >= 0)
        buf_printf(out, ",\"rank\":%" PRId64, record->rank);
    if (record->requires_grad >= 0)
        buf_printf(out, ",\"requires_grad\":%s", record->requires_grad ? "true" : "false");
}

/* Integers that float64 does not hold are written as such. */
static void put_ends(struct buf *out, const struct ends *ends)
{
    char min[ENDS_BYTES], max[ENDS_BYTES];
    ends_text(ends->dtype, ends_min(ends), min);
    ends_text(ends->dtype, ends_max(ends), max);
    buf_printf(out, ",\"min\":%s,\"max\":%s", min, max);
}

/* "finite_" stands before the keys of what is about the finite values only. */
static void put_statistics(struct buf *out, const struct plumb_stats *stats, const char *prefix,
                           unsigned keep)
{
    const struct {
        const char *key;
        unsigned bit;
        double value;
    } fields[] = {{"min", PLUMB_KEEP_MINMAX, stats->min},
                  {"max", PLUMB_KEEP_MINMAX, stats->max},
                  {"mean", PLUMB_KEEP_MEAN, stats->mean},
                  {"std", PLUMB_KEEP_MEAN, stats->std},
                  {"norm", PLUMB_KEEP_NORM, stats->norm}};
    /* Of nothing there are none. */
    for (size_t i = 0; stats->count && i < sizeof fields / sizeof *fields; i++) {
        if (!(keep & fields[i].bit))
            continue;
        buf_printf(out, ",\"%s%s\":", prefix, fields[i].key);
        put_number(out, fields[i].value);
    }
}

/* Mostly there are none. */
static void put_counts(struct buf *out, const struct plumb_stats *stats)
{
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {{"nan", stats->nan}, {"pos_inf", stats->pos_inf}, {"neg_inf", stats->neg_inf}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].count)
            buf_printf(out, ",\"%s\":%" PRIu64, counts[i].key, counts[i].count);
}

static void put_sketch(struct buf *out, const struct plumb_sketch *sketch)
{
    uint8_t bytes[SKETCH_MOST_BYTES];
    sketch_to_bytes(sketch, bytes);
    buf_printf(out, ",\"sketch\":{\"version\":%d,\"sums\":\"", CONDENSED_SKETCH);
    base85_put(out, bytes, sketch_bytes(sketch));
    buf_text(out, "\"}");
}

void text_tensor(struct buf *out, const struct plumb_record *record,
                 const struct plumb_tensor *tensor, const struct measured *measured, unsigned keep,
                 bool first)
{
    buf_text(out, first ? "\n{\"name\":" : ",\n{\"name\":");
    json_put_string(out, record->name);
    put_place(out, record);
    buf_printf(out, ",\"dtype\":\"%s\",\"shape\":[", plumb_dtype_info(tensor->dtype)->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        buf_printf(out, "%s%" PRId64, i ? "," : "", tensor->shape[i]);
    buf_text(out, "]");
    put_counts(out, &measured->stats);
    if (keep & PLUMB_KEEP_MINMAX && ends_needed(&measured->ends)) {
        put_ends(out, &measured->ends);
        put_statistics(out, &measured->stats, "", keep & ~(unsigned)PLUMB_KEEP_MINMAX);
    } else {
        put_statistics(out, &measured->stats, "", keep);
    }
    if (measured->finite.count != measured->stats.count)
        put_statistics(out, &measured->finite, "finite_", keep);
    if (keep & PLUMB_KEEP_CRC32)
        buf_printf(out, ",\"crc32\":\"%08" PRIx32 "\"", measured->crc);
    if (keep & PLUMB_KEEP_HASH) {
        char hash[HASH_BYTES];
        hash_text(&measured->hash, hash);
        buf_printf(out, ",\"hash\":\"%s\"", hash);
    }
    if (keep & PLUMB_KEEP_SKETCH)
        put_sketch(out, &measured->sketch);
    buf_text(out, "}");
}

void text_end(struct buf *out)
{
    buf_text(out, "]}\n");
}
