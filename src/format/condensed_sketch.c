/* The sketch of a tensor in a condensed file: 256 sums, and those of blocks along its axes. */
#include "base/base64.h"
#include "base/base85.h"
#include "format/condensed.h"
#include "format/sketch_kept.h"

#include <math.h>
#include <string.h>

/* What float64 can add up to. */
enum { MAX_EXPONENT = 1100 };

static bool next_key(struct json *json, const char *key)
{
    return json_next(json) == JSON_KEY && json_is(json, key);
}

static bool next_integer(struct json *json, int64_t *value)
{
    return json_next(json) == JSON_NUMBER && json_int64(json, value);
}

/* The text at hand as `count` float32; the largest of a sketch is 1, but for its rounding. */
static bool take_sums(const struct json *json, float *sums, size_t count)
{
    uint8_t bytes[PLUMB_SKETCH_SUMS * 4];
    if (json->escaped || !base64_take(json->text, json->length, bytes, count * 4))
        return false;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = 0;
        for (size_t k = 4; k--;)
            bits = bits << 8 | bytes[4 * i + k];
        memcpy(&sums[i], &bits, sizeof bits);
        if (!(fabsf(sums[i]) <= 1))
            return false;
    }
    return true;
}

/* {"axis": A, "block": LENGTH, "sums": "..."}, in this order. */
static bool read_axis(struct json *json, struct plumb_sketch_axis *axis)
{
    int64_t number, length;
    if (!next_key(json, "axis") || !next_integer(json, &number) || number < 0 ||
        number >= PLUMB_MAX_RANK || !next_key(json, "block") || !next_integer(json, &length) ||
        length < 1 || !next_key(json, "sums") || json_next(json) != JSON_STRING)
        return false;
    *axis = (struct plumb_sketch_axis){.axis = (unsigned)number, .length = (uint64_t)length};
    while (axis->blocks < PLUMB_SKETCH_BLOCKS && json->length > (axis->blocks * 16 + 2) / 3 * 4)
        axis->blocks++;
    return take_sums(json, &axis->sum[0][0], axis->blocks * PLUMB_SKETCH_FOLD) &&
           json_next(json) == JSON_OBJECT_END;
}

static bool read_axes(struct json *json, struct plumb_sketch *sketch)
{
    enum json_event event;
    if (!next_key(json, "axes") || json_next(json) != JSON_ARRAY)
        return false;
    while ((event = json_next(json)) == JSON_OBJECT)
        if (sketch->axes == PLUMB_SKETCH_AXES || !read_axis(json, &sketch->axis[sketch->axes++]))
            return false;
    return event == JSON_ARRAY_END;
}

static bool next_exponent(struct json *json, int *exponent)
{
    int64_t value;
    if (!next_integer(json, &value) || value > MAX_EXPONENT || value < -MAX_EXPONENT)
        return false;
    *exponent = (int)value;
    return true;
}

/* Versions 1 and 2, with float32. Keys are in the order in which they are written. */
static bool read_wide(struct json *json, struct plumb_sketch *sketch)
{
    if (!next_key(json, "exponent") || !next_exponent(json, &sketch->exponent) ||
        !next_key(json, "sums") || json_next(json) != JSON_STRING ||
        !take_sums(json, sketch->sum, PLUMB_SKETCH_SUMS))
        return false;
    if (sketch->version == CONDENSED_SKETCH_OLD)
        return json_next(json) == JSON_OBJECT_END;
    sketch->block_exponent = sketch->exponent;
    if (!read_axes(json, sketch) || json_next(json) != JSON_OBJECT_END)
        return false;
    sketch_round(sketch);
    return true;
}

/* [AXIS, BLOCKS, LENGTH], after its bracket. */
static bool read_blocks(struct json *json, struct plumb_sketch_axis *axis)
{
    int64_t number, blocks, length;
    if (!next_integer(json, &number) || number < 0 || number >= PLUMB_MAX_RANK ||
        !next_integer(json, &blocks) || blocks < 1 || blocks > PLUMB_SKETCH_BLOCKS ||
        !next_integer(json, &length) || length < 1)
        return false;
    *axis = (struct plumb_sketch_axis){
        .axis = (unsigned)number, .blocks = (unsigned)blocks, .length = (uint64_t)length};
    return json_next(json) == JSON_ARRAY_END;
}

/* {"exponents": [E, B], "axes": [[AXIS, BLOCKS, LENGTH], ...], "sums": "..."}, in this order. */
static bool read_narrow(struct json *json, struct plumb_sketch *sketch)
{
    uint8_t bytes[SKETCH_MOST_BYTES];
    enum json_event event;
    if (!next_key(json, "exponents") || json_next(json) != JSON_ARRAY ||
        !next_exponent(json, &sketch->exponent) || !next_exponent(json, &sketch->block_exponent) ||
        json_next(json) != JSON_ARRAY_END || !next_key(json, "axes") ||
        json_next(json) != JSON_ARRAY)
        return false;
    while ((event = json_next(json)) == JSON_ARRAY)
        if (sketch->axes == PLUMB_SKETCH_AXES || !read_blocks(json, &sketch->axis[sketch->axes++]))
            return false;
    if (event != JSON_ARRAY_END || !next_key(json, "sums") || json_next(json) != JSON_STRING ||
        json->escaped || !base85_take(json->text, json->length, bytes, sketch_bytes(sketch)))
        return false;
    sketch_from_bytes(sketch, bytes);
    return json_next(json) == JSON_OBJECT_END;
}

/* {"sums": "..."} */
static bool read_text(struct json *json, struct condensed_sketch *out)
{
    if (!next_key(json, "sums") || json_next(json) != JSON_STRING || json->escaped)
        return false;
    out->text = json->text;
    out->length = json->length;
    return json_next(json) == JSON_OBJECT_END;
}

/* Versions 2 and 3 are the same sums. */
static bool read_known(struct json *json, struct condensed_sketch *out, int version)
{
    const bool narrow = version == CONDENSED_SKETCH_NARROW;
    *out->sketch = (struct plumb_sketch){.version = narrow ? CONDENSED_SKETCH_WIDE : version};
    return version == CONDENSED_SKETCH ? read_text(json, out)
           : narrow                    ? read_narrow(json, out->sketch)
                                       : read_wide(json, out->sketch);
}

enum plumb_code condensed_read_sketch(struct json *json, struct arena *arena,
                                      struct condensed_sketch *out)
{
    enum json_event event = json_next(json);
    struct json start = *json;
    int64_t version = 0;
    *out = (struct condensed_sketch){0};
    if (event == JSON_OBJECT && next_key(json, "version"))
        version = next_integer(json, &version) ? version : 0;
    if (version < CONDENSED_SKETCH_OLD || version > CONDENSED_SKETCH) {
        *json = start;
        return json_skip(json, event) ? PLUMB_OK : PLUMB_E_FORMAT;
    }
    out->sketch = arena_alloc(arena, sizeof *out->sketch);
    if (!out->sketch)
        return PLUMB_E_NOMEM;
    return read_known(json, out, (int)version) ? PLUMB_OK : PLUMB_E_FORMAT;
}

static bool is_exponent(int exponent)
{
    return exponent >= -MAX_EXPONENT && exponent <= MAX_EXPONENT;
}

static bool take_text(const struct condensed_sketch *read, enum plumb_dtype dtype, unsigned rank,
                      const int64_t *shape)
{
    uint8_t bytes[SKETCH_MOST_BYTES];
    struct plumb_sketch *sketch = read->sketch;
    for (unsigned i = 0; i < rank; i++)
        if (shape[i] < 0)
            return false;
    sketch_divide(sketch, dtype, rank, shape);
    if (!base85_take(read->text, read->length, bytes, sketch_bytes(sketch)))
        return false;
    sketch_from_bytes(sketch, bytes);
    return is_exponent(sketch->exponent) && is_exponent(sketch->block_exponent);
}

static bool fit_axes(struct plumb_sketch *sketch, unsigned rank, const int64_t *shape)
{
    for (unsigned k = 0; k < sketch->axes; k++) {
        struct plumb_sketch_axis *axis = &sketch->axis[k];
        if (axis->axis >= rank || (k && axis->axis <= sketch->axis[k - 1].axis) ||
            shape[axis->axis] < 1)
            return false;
        axis->size = (uint64_t)shape[axis->axis];
        if ((axis->size - 1) / axis->length + 1 != axis->blocks)
            return false;
    }
    return true;
}

bool condensed_fit_sketch(struct condensed_sketch *read, enum plumb_dtype dtype, unsigned rank,
                          const int64_t *shape)
{
    return read->text ? take_text(read, dtype, rank, shape) : fit_axes(read->sketch, rank, shape);
}
