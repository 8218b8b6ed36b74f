/* A page that was written earlier: the block of data in it (web/src/data.ts). */
#define _GNU_SOURCE
#include "report/page_read.h"

#include "base/base64.h"

#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The block ------------------------------------------------------------------------------- */

static enum plumb_code no_page(struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_FORMAT, "this is no page that --report wrote, or it is damaged");
}

/* The text between the tags; NULL: there is none. */
static const char *find_block(const char *text, size_t size, size_t *length)
{
    static const char mark[] = "id=\"plumb-data\">";
    const char *begin = memmem(text, size, mark, sizeof mark - 1);
    if (!begin)
        return NULL;
    begin += sizeof mark - 1;
    const char *end = memchr(begin, '<', size - (size_t)(begin - text));
    *length = end ? (size_t)(end - begin) : 0;
    return end ? begin : NULL;
}

/* How large it is, is not written down: room is doubled, as far as deflate can shrink. */
static uint8_t *unpack(const uint8_t *packed, size_t size, size_t *got)
{
    enum { RATIO = 1032, LEAST = 1 << 16 };
    const size_t most = size > ((size_t)1 << 30) / RATIO ? (size_t)1 << 30 : size * RATIO;
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    uint8_t *out = NULL;
    for (size_t room = 8 * size + LEAST; inflater && result == LIBDEFLATE_INSUFFICIENT_SPACE;
         room *= 2) {
        free(out);
        out = malloc(room);
        if (!out)
            break;
        result = libdeflate_deflate_decompress(inflater, packed, size, out, room, got);
        if (room > most)
            break;
    }
    if (inflater)
        libdeflate_free_decompressor(inflater);
    if (result == LIBDEFLATE_SUCCESS)
        return out;
    free(out);
    return NULL;
}

enum plumb_code page_data_read(struct page_data *data, const void *bytes, size_t size,
                               struct plumb_error *err)
{
    *data = (struct page_data){0};
    size_t length = 0, got = 0;
    const char *text = find_block(bytes, size, &length);
    if (!text || !length || length % 4)
        return no_page(err);
    const size_t packed_size =
        length / 4 * 3 - (text[length - 1] == '=') - (text[length - 2] == '=');
    uint8_t *packed = malloc(packed_size + 1);
    if (!packed)
        return plumb_no_memory(err);
    if (base64_take(text, length, packed, packed_size))
        data->memory = unpack(packed, packed_size, &got);
    free(packed);
    const uint8_t *head = data->memory;
    if (!head || got < 4)
        return no_page(err);
    const size_t json =
        head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    const size_t bulk = (json + 4 + 7) / 8 * 8;
    if (json > got - 4)
        return no_page(err);
    json_init(&data->json, head + 4, json);
    data->bulk = bulk < got ? head + bulk : NULL;
    data->bulk_size = bulk < got ? got - bulk : 0;
    return PLUMB_OK;
}

void page_data_free(struct page_data *data)
{
    arena_free(&data->arena);
    free(data->memory);
    *data = (struct page_data){0};
}

/* ---- Its parts ------------------------------------------------------------------------------- */

bool page_enter(struct page_data *data, enum json_event what)
{
    const enum json_event event = json_next(&data->json);
    if (event != what)
        json_skip(&data->json, event);
    return event == what;
}

bool page_next_key(struct page_data *data)
{
    return json_next(&data->json) == JSON_KEY;
}

const char *page_take_text(struct page_data *data)
{
    const enum json_event event = json_next(&data->json);
    size_t length;
    if (event == JSON_STRING)
        return json_copy(&data->json, &data->arena, &length);
    json_skip(&data->json, event);
    return "";
}

/* What is not finite is a text. */
static double number_of(struct page_data *data, enum json_event event)
{
    if (event == JSON_NUMBER)
        return json_double(&data->json);
    const double found = event != JSON_STRING                ? NAN
                         : json_is(&data->json, "Infinity")  ? INFINITY
                         : json_is(&data->json, "-Infinity") ? -INFINITY
                                                             : NAN;
    json_skip(&data->json, event);
    return found;
}

double page_take_number(struct page_data *data)
{
    return number_of(data, json_next(&data->json));
}

size_t page_take_numbers(struct page_data *data, double *out, size_t room)
{
    size_t n = 0;
    if (!page_enter(data, JSON_ARRAY))
        return 0;
    for (enum json_event e; (e = json_next(&data->json)) > JSON_END && e != JSON_ARRAY_END; n++) {
        const double value = number_of(data, e);
        if (n < room)
            out[n] = value;
    }
    return n;
}

static double element(const uint8_t *at, unsigned size, bool real)
{
    uint64_t bits = 0;
    for (unsigned k = 0; k < size; k++)
        bits |= (uint64_t)at[k] << 8 * k;
    double wide;
    float narrow;
    const uint32_t low = (uint32_t)bits;
    if (!real)
        return size == 1 ? (double)bits : (double)(int32_t)low;
    if (size == 8) {
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
    memcpy(&narrow, &low, sizeof narrow);
    return (double)narrow;
}

double *page_take_bulk(struct page_data *data, size_t *count)
{
    static const struct {
        const char *name;
        unsigned size;
        bool real;
    } types[] = {{"f64", 8, true}, {"f32", 4, true}, {"i32", 4, false}, {"u8", 1, false}};
    int64_t at = -1, n = -1;
    size_t type = sizeof types / sizeof *types;
    *count = 0;
    if (!page_enter(data, JSON_OBJECT))
        return NULL;
    while (page_next_key(data)) {
        const bool is_type = json_is(&data->json, "type");
        int64_t *number = json_is(&data->json, "at") ? &at : json_is(&data->json, "n") ? &n : NULL;
        const enum json_event event = json_next(&data->json);
        for (size_t k = 0; is_type && event == JSON_STRING && k < sizeof types / sizeof *types; k++)
            type = json_is(&data->json, types[k].name) ? k : type;
        if (number && event == JSON_NUMBER && !json_int64(&data->json, number))
            *number = -1;
        json_skip(&data->json, event);
    }
    if (type == sizeof types / sizeof *types || at < 0 || n < 0 || (uint64_t)at > data->bulk_size ||
        (uint64_t)n > (data->bulk_size - (uint64_t)at) / types[type].size)
        return NULL;
    double *out = arena_array(&data->arena, (size_t)n + 1, sizeof *out);
    for (size_t k = 0; out && k < (size_t)n; k++)
        out[k] =
            element(data->bulk + at + k * types[type].size, types[type].size, types[type].real);
    *count = out ? (size_t)n : 0;
    return out;
}
