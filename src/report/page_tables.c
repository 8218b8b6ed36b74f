/* Tables, networks and grids of a report. */
#include "report/page.h"

#include "base/json_put.h"
#include "base/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Texts, each once. */
struct dictionary {
    struct map places;
    struct buf json;
    uint64_t count;
};

static int32_t place_of(struct dictionary *words, const char *text)
{
    bool added = false;
    uint64_t *place = map_put(&words->places, text, strlen(text), &added);
    if (!place) {
        words->json.failed = true;
        return 0;
    }
    if (added) {
        *place = words->count++;
        page_comma(&words->json);
        json_put_string(&words->json, text);
    }
    return (int32_t)*place;
}

/* Puts them as a list under a key, and frees them. */
static void put_dictionary(struct buf *out, const char *key, struct dictionary *words, bool first)
{
    page_key(out, key, first);
    buf_text(out, "[");
    if (words->json.size)
        buf_append(out, words->json.data, words->json.size);
    buf_text(out, "]");
    out->failed |= words->json.failed;
    buf_free(&words->json);
    map_free(&words->places);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

enum { NUMBER = -1, EMPTY = -2 }; /* in the place of a text */

static void put_column(struct plumb_report *report, const struct plumb_table *table, size_t column)
{
    static const char *const styles[] = {[PLUMB_STYLE_TEXT] = "text",
                                         [PLUMB_STYLE_NUMBER] = "number",
                                         [PLUMB_STYLE_REPR] = "repr",
                                         [PLUMB_STYLE_PERCENT] = "percent",
                                         [PLUMB_STYLE_DIGITS] = "digits"};
    const struct plumb_column *about = plumb_table_column(table, column);
    const size_t rows = plumb_table_rows(table);
    struct buf *out = &report->tables;
    struct dictionary words = {0};
    int32_t *places = malloc((rows + 1) * sizeof *places);
    double *numbers = malloc((rows + 1) * sizeof *numbers);
    unsigned char *whole = malloc(rows + 1);
    size_t n_numbers = 0, n_whole = 0;
    out->failed |= !places || !numbers || !whole;
    for (size_t row = 0; row < rows && !out->failed; row++) {
        const struct plumb_cell *cell = plumb_table_cell(table, row, column);
        const bool number = cell->type == PLUMB_CELL_INT || cell->type == PLUMB_CELL_REAL;
        numbers[row] = cell->type == PLUMB_CELL_INT    ? (double)cell->as.integer
                       : cell->type == PLUMB_CELL_REAL ? cell->as.real
                                                       : NAN;
        places[row] = number                          ? NUMBER
                      : cell->type == PLUMB_CELL_TEXT ? place_of(&words, cell->as.text)
                                                      : EMPTY;
        n_numbers += number;
        n_whole += whole[row] = cell->type == PLUMB_CELL_INT;
    }
    buf_text(out, column ? ",{" : "{");
    page_text(out, "title", about->title, true);
    page_text(out, "style", styles[about->style], false);
    page_key(out, "left", false);
    buf_text(out, about->left ? "true" : "false");
    put_dictionary(out, "dictionary", &words, false);
    if (n_numbers < rows && !out->failed) {
        page_key(out, "words", false);
        page_bulk(report, out, BULK_I32, places, rows);
    }
    if (n_numbers && !out->failed) {
        page_key(out, "numbers", false);
        page_bulk(report, out, BULK_F64, numbers, rows);
    }
    if (n_whole && !out->failed) {
        page_key(out, "whole", false);
        page_bulk(report, out, BULK_U8, whole, rows);
    }
    buf_text(out, "}");
    free(whole);
    free(places);
    free(numbers);
}

static enum plumb_mood mood_of(enum plumb_severity severity)
{
    return severity == PLUMB_FAILED       ? PLUMB_MOOD_BAD
           : severity == PLUMB_SUSPICIOUS ? PLUMB_MOOD_DOUBT
                                          : PLUMB_MOOD_GOOD;
}

void plumb_report_table(struct plumb_report *report, const char *name,
                        const struct plumb_table *table, const unsigned char *moods,
                        const int32_t *tensors)
{
    struct buf *out = &report->tables;
    const size_t rows = plumb_table_rows(table);
    unsigned char *own = malloc(rows + 1);
    int32_t *none = malloc((rows + 1) * sizeof *none);
    out->failed |= !own || !none;
    for (size_t row = 0; row < rows && !out->failed; row++) {
        own[row] = (unsigned char)mood_of(plumb_table_severity(table, row));
        none[row] = -1;
    }
    if (!out->failed) {
        page_comma(out);
        buf_text(out, "{");
        page_text(out, "name", name, true);
        buf_printf(out, ",\"rows\":%zu,\"columns\":[", rows);
        for (size_t column = 0; column < plumb_table_columns(table); column++)
            put_column(report, table, column);
        buf_text(out, "]");
        page_key(out, "mood", false);
        page_bulk(report, out, BULK_U8, moods ? moods : own, rows);
        page_key(out, "tensor", false);
        page_bulk(report, out, BULK_I32, tensors ? tensors : none, rows);
        buf_text(out, "}");
    }
    free(own);
    free(none);
}

/* ---- Networks -------------------------------------------------------------------------------- */

/* One member of all calls, as an array of its own. */
static void put_member(struct plumb_report *report, const char *key, enum bulk_type type,
                       const void *values, size_t count)
{
    page_key(&report->network, key, false);
    page_bulk(report, &report->network, type, values, count);
}

static void put_doubles(struct plumb_report *report, const char *key,
                        const struct plumb_report_call *calls, size_t count, size_t offset,
                        double *room)
{
    for (size_t k = 0; k < count; k++)
        memcpy(&room[k], (const char *)&calls[k] + offset, sizeof *room);
    put_member(report, key, BULK_F64, room, count);
}

static void put_integers(struct plumb_report *report, const char *key,
                         const struct plumb_report_call *calls, size_t count, size_t offset,
                         int32_t *room)
{
    for (size_t k = 0; k < count; k++)
        memcpy(&room[k], (const char *)&calls[k] + offset, sizeof *room);
    put_member(report, key, BULK_I32, room, count);
}

static const char *keep(struct arena *arena, const char *text)
{
    return text ? arena_copy(arena, text, strlen(text)) : "";
}

/* False when out of memory. */
static bool keep_calls(struct plumb_report *report, const struct plumb_report_call *calls,
                       size_t count)
{
    struct arena *arena = &report->names;
    report->calls = arena_array(arena, count + 1, sizeof *report->calls);
    report->n_calls = 0;
    for (size_t k = 0; k < count && report->calls; k++) {
        struct plumb_report_call *own = &report->calls[k];
        *own = calls[k];
        own->name = keep(arena, calls[k].name);
        own->module = keep(arena, calls[k].module);
        own->word = keep(arena, calls[k].word);
        if (!own->name || !own->module || !own->word)
            return false;
        report->n_calls++;
    }
    return report->calls != NULL;
}

const struct plumb_report_call *plumb_report_calls(const struct plumb_report *report, size_t *count)
{
    *count = report->n_calls;
    return report->calls;
}

void plumb_report_network(struct plumb_report *report, const struct plumb_report_call *calls,
                          size_t count)
{
    struct buf *out = &report->network;
    struct dictionary modules = {0}, words = {0};
    double *doubles = malloc((count + 1) * sizeof *doubles);
    int32_t *integers = malloc((count + 1) * sizeof *integers);
    unsigned char *bytes = malloc(3 * count + 1);
    out->size = 0;
    out->failed |= !doubles || !integers || !bytes || !keep_calls(report, calls, count);
    buf_text(out, "{\"names\":[");
    for (size_t k = 0; k < count && !out->failed; k++) {
        if (k)
            buf_text(out, ",");
        json_put_string(out, calls[k].name);
        integers[k] = place_of(&modules, calls[k].module ? calls[k].module : "");
        bytes[k] = calls[k].back;
        bytes[count + k] = (unsigned char)calls[k].mood;
        bytes[2 * count + k] = (unsigned char)place_of(&words, calls[k].word ? calls[k].word : "");
    }
    buf_text(out, "]");
    put_dictionary(out, "modules", &modules, false);
    put_dictionary(out, "words", &words, false);
    if (!out->failed) {
#define AT(member) offsetof(struct plumb_report_call, member)
        put_member(report, "module", BULK_I32, integers, count);
        put_member(report, "back", BULK_U8, bytes, count);
        put_member(report, "mood", BULK_U8, bytes + count, count);
        put_member(report, "word", BULK_U8, bytes + 2 * count, count);
        put_integers(report, "rank", calls, count, AT(rank), integers);
        put_integers(report, "step", calls, count, AT(step), integers);
        put_integers(report, "row", calls, count, AT(row), integers);
        put_doubles(report, "total", calls, count, AT(total), doubles);
        put_doubles(report, "local", calls, count, AT(local), doubles);
        put_doubles(report, "limit", calls, count, AT(limit), doubles);
        put_doubles(report, "band", calls, count, AT(band), doubles);
#undef AT
    }
    buf_text(out, "}");
    free(doubles);
    free(integers);
    free(bytes);
}

/* ---- Grids ----------------------------------------------------------------------------------- */

static void put_names(struct buf *out, const char *key, const char *const *names, size_t count)
{
    page_key(out, key, false);
    buf_text(out, "[");
    for (size_t k = 0; k < count; k++) {
        if (k)
            buf_text(out, ",");
        json_put_string(out, names[k]);
    }
    buf_text(out, "]");
}

void plumb_report_grid(struct plumb_report *report, const struct plumb_report_grid *grid)
{
    struct buf *out = &report->grids;
    const size_t count = grid->down_count * grid->across_count;
    page_comma(out);
    buf_text(out, "{");
    page_text(out, "title", grid->title, true);
    page_text(out, "unit", grid->unit, false);
    put_names(out, "down", grid->down, grid->down_count);
    put_names(out, "across", grid->across, grid->across_count);
    page_key(out, "mood", false);
    page_bulk(report, out, BULK_U8, grid->moods, count);
    page_key(out, "value", false);
    page_bulk(report, out, BULK_F32, grid->values, count);
    page_key(out, "row", false);
    page_bulk(report, out, BULK_I32, grid->rows, count);
    buf_text(out, "}");
}
