/* The result of one rank: what of its table is merged. */
#define _GNU_SOURCE
#include "task/ranks/result.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/mapped.h"
#include "base/number.h"
#include "plumb/file.h"
#include "task/ranks/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The columns that are numbers about a pair of tensors. */
static const char *const known_indices[] = {
    "Cosine",
    "EucDist",
    "MaxAbsErr",
    "MaxRelativeErr",
    "One Thousandth Err Ratio",
    "Five Thousandth Err Ratio",
    "Five Thousandths Err Ratio",
    "Max diff",
    "Min diff",
    "Mean diff",
    "L2norm diff",
    "Norm diff",
    "MinRelativeErr",
    "MeanRelativeErr",
    "NormRelativeErr",
    "Requires_grad Consistent",
};

enum { NO_COLUMN = -1, MAX_NAME = 1024 };

/* While one file is read. */
struct reading {
    struct result *result;
    const struct config *config;
    struct arena *arena;
    bool has_header;
    size_t header_sheet, header_width;
    const char **header;
    bool skip_sheet; /* the sheet has other columns than the first */
    size_t sheet;
    int64_t graph; /* that the file is of, or -1 */
    int name, npu_max, bench_max;
    int token, place;            /* of graph dumps: operators have a row for each */
    bool unique;                 /* a name is that of one row; else rows of a name are counted */
    int columns[RESULT_INDICES]; /* of the result's indices */
};

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

static int find_column(const struct row_cell *cells, size_t count, const char *title)
{
    for (size_t i = 0; i < count; i++)
        if (cells[i].text && strcmp(cells[i].text, title) == 0)
            return (int)i;
    return NO_COLUMN;
}

static bool is_wanted(const struct config *config, const char *title)
{
    if (config->indices.count)
        return is_one_of(title, config->indices.items, config->indices.count);
    return is_one_of(title, known_indices, sizeof known_indices / sizeof *known_indices);
}

/* Gives a column a place among the result's indices. */
static enum plumb_code add_index(struct reading *reading, const char *title, size_t column,
                                 struct plumb_error *err)
{
    struct result *result = reading->result;
    size_t i = 0;
    while (i < result->index_count && strcmp(result->indices[i], title) != 0)
        i++;
    if (i == RESULT_INDICES)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "more than %d columns to merge",
                          RESULT_INDICES);
    if (i == result->index_count) {
        result->indices[i] = arena_copy(reading->arena, title, strlen(title));
        if (!result->indices[i])
            return plumb_no_memory(err);
        result->index_count++;
    }
    if (reading->columns[i] == NO_COLUMN)
        reading->columns[i] = (int)column;
    return PLUMB_OK;
}

static enum plumb_code refuse_header(const struct reading *reading, const struct row_cell *cells,
                                     size_t count, struct plumb_error *err)
{
    if (find_column(cells, count, "NPU MD5") != NO_COLUMN)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                          "a comparison of checksums, which cannot be merged: compare tensors or "
                          "statistics instead");
    if (reading->name == NO_COLUMN)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "its first row has no column 'NPU Name': not a "
                          "result of plumb compare");
    if (reading->config->indices.count)
        return plumb_fail(err, PLUMB_E_FORMAT,
                          "it has no column '%.100s', nor any other that compare_index names",
                          reading->config->indices.items[0]);
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "it has none of the columns that can be merged, such as 'Max diff'");
}

static enum plumb_code read_header(struct reading *reading, const struct row_cell *cells,
                                   size_t count, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    reading->has_header = true;
    reading->header_width = count;
    reading->header = arena_array(reading->arena, count, sizeof *reading->header);
    if (!reading->header)
        return plumb_no_memory(err);
    for (size_t i = 0; i < RESULT_INDICES; i++)
        reading->columns[i] = NO_COLUMN;
    reading->name = find_column(cells, count, "NPU Name");
    reading->unique = reading->name != NO_COLUMN;
    if (reading->name == NO_COLUMN)
        reading->name = find_column(cells, count, "API Name");
    reading->token = find_column(cells, count, "Token");
    reading->place = find_column(cells, count, "In/Out");
    reading->npu_max = find_column(cells, count, "NPU max");
    reading->bench_max = find_column(cells, count, "Bench max");
    bool any = false;
    for (size_t i = 0; i < count && !code; i++) {
        const char *title = cells[i].text ? cells[i].text : "";
        reading->header[i] = arena_copy(reading->arena, title, strlen(title));
        if (!reading->header[i])
            return plumb_no_memory(err);
        if (!is_wanted(reading->config, title))
            continue;
        code = add_index(reading, title, i, err);
        any = true;
    }
    if (!code && (reading->name == NO_COLUMN || !any))
        code = refuse_header(reading, cells, count, err);
    return code;
}

static bool is_header(const struct reading *reading, const struct row_cell *cells, size_t count)
{
    if (count != reading->header_width)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(cells[i].text ? cells[i].text : "", reading->header[i]) != 0)
            return false;
    return true;
}

/* The place in the list of wanted APIs; false for a name that is not wanted. */
static bool find_api(const struct reading *reading, const char *name, size_t *api)
{
    const struct config_list *apis = &reading->config->apis;
    *api = 0;
    if (!apis->count)
        return true;
    bool any = false;
    for (size_t i = apis->count; i-- > 0;) {
        size_t length = strlen(apis->items[i]);
        /* The whole of a name and the dot behind it, wherever it stands. */
        for (const char *at = name; (at = strstr(at, apis->items[i])); at++) {
            if (at[length] == '.') {
                reading->result->found[i] = true;
                *api = i;
                any = true;
                break;
            }
        }
    }
    return any;
}

static bool keep(struct arena *arena, const struct row_cell *cell, struct result_value *value)
{
    *value = (struct result_value){.text = cell->text, .number = cell->number};
    if (!cell->text || cell->kept)
        return true;
    value->text = arena_copy(arena, cell->text, strlen(cell->text));
    return value->text;
}

static const char *text_at(const struct row_cell *cells, size_t count, int column)
{
    const char *text = column >= 0 && (size_t)column < count ? cells[column].text : NULL;
    return text ? text : "";
}

/* The same, with numbers as Python prints them, however the workbook spells them. */
static const char *shown_at(const struct row_cell *cells, size_t count, int column,
                            char scratch[NUMBER_BYTES])
{
    const char *text = text_at(cells, count, column);
    struct json json;
    int64_t whole;
    if (!*text || !cells[column].number)
        return text;
    json_init(&json, text, strlen(text));
    if (json_next(&json) != JSON_NUMBER || json_int64(&json, &whole))
        return text;
    number_exact(json_double(&json), true, scratch);
    return scratch;
}

/* What says that there is no number is replaced by what the two sides are. */
static enum plumb_code take_value(const struct reading *reading, const struct row_cell *cells,
                                  size_t count, int column, struct result_value *value,
                                  struct plumb_error *err)
{
    static const char *const none[] = {"N/A", "unsupported", "Nan", "NaN", "nan"};
    enum { SHOWN = 1024 };
    if (column < 0 || (size_t)column >= count)
        return PLUMB_OK;
    const char *text = text_at(cells, count, column);
    bool replace = reading->npu_max != NO_COLUMN && reading->bench_max != NO_COLUMN &&
                   is_one_of(text, none, sizeof none / sizeof *none);
    if (!replace)
        return keep(reading->arena, &cells[column], value) ? PLUMB_OK : plumb_no_memory(err);
    char npu[NUMBER_BYTES], bench[NUMBER_BYTES];
    value->text = arena_printf(reading->arena, "NPU:%.*s  Bench:%.*s", SHOWN,
                               shown_at(cells, count, reading->npu_max, npu), SHOWN,
                               shown_at(cells, count, reading->bench_max, bench));
    return value->text ? PLUMB_OK : plumb_no_memory(err);
}

/* "Add", or of graph dumps "graph2.Add.token0.input.1". NULL when out of memory. A text may be
 * shared by many rows, so that no copy of it is longer than names are. */
static const char *name_of(const struct reading *reading, const struct row_cell *cells,
                           size_t count)
{
    enum { SHOWN = 64 };
    const char *token = text_at(cells, count, reading->token);
    const char *place = text_at(cells, count, reading->place);
    struct buf text = {0};
    struct result_value whole;
    if (reading->graph < 0 && !*token && !*place)
        return keep(reading->arena, &cells[reading->name], &whole) ? whole.text : NULL;
    if (reading->graph >= 0)
        buf_printf(&text, "graph%" PRId64 ".", reading->graph);
    buf_printf(&text, "%.*s", MAX_NAME, cells[reading->name].text);
    if (*token)
        buf_printf(&text, ".token%.*s", SHOWN, token);
    if (*place)
        buf_printf(&text, ".%.*s", SHOWN, place);
    char *space = *place && !text.failed ? strrchr(text.data, ' ') : NULL;
    if (space)
        *space = '.';
    char *name = text.failed ? NULL : arena_copy(reading->arena, text.data, text.size);
    buf_free(&text);
    return name;
}

/* Enters the name of a row. A second row of it is left out, *name being NULL, or has its number. */
static enum plumb_code enter_name(struct reading *reading, const char **name,
                                  struct plumb_error *err)
{
    struct map *names = &reading->result->names;
    bool added;
    uint64_t *times = map_put(names, *name, strlen(*name), &added);
    if (!times)
        return plumb_no_memory(err);
    if (++*times == 1)
        return PLUMB_OK;
    if (reading->unique) {
        *name = NULL;
        return PLUMB_OK;
    }
    *name = arena_printf(reading->arena, "%.*s#%" PRIu64, MAX_NAME, *name, *times);
    return *name ? PLUMB_OK : plumb_no_memory(err);
}

static enum plumb_code add_row(struct reading *reading, const struct row_cell *cells, size_t count,
                               struct plumb_error *err)
{
    struct result *result = reading->result;
    struct result_row row = {.order = result->count, .value_count = result->index_count};
    size_t at = (size_t)reading->name;
    if (at >= count || !cells[at].text)
        return PLUMB_OK;
    row.name = name_of(reading, cells, count);
    if (!row.name)
        return plumb_no_memory(err);
    if (!find_api(reading, row.name, &row.api))
        return PLUMB_OK;
    enum plumb_code entered = enter_name(reading, &row.name, err);
    if (entered || !row.name)
        return entered;
    row.values = arena_array(reading->arena, row.value_count, sizeof *row.values);
    if (!row.values)
        return plumb_no_memory(err);
    for (size_t i = 0; i < row.value_count; i++) {
        enum plumb_code code =
            take_value(reading, cells, count, reading->columns[i], &row.values[i], err);
        if (code)
            return code;
    }
    if (result->count == result->capacity) {
        size_t capacity = result->capacity ? result->capacity * 2 : 64;
        struct result_row *rows = realloc(result->rows, capacity * sizeof *rows);
        if (!rows)
            return plumb_no_memory(err);
        result->rows = rows;
        result->capacity = capacity;
    }
    result->rows[result->count++] = row;
    return PLUMB_OK;
}

/* The first row has the titles; a sheet that repeats them goes on, any other is something else. */
static enum plumb_code on_row(void *context, size_t sheet, const struct row_cell *cells,
                              size_t count, struct plumb_error *err)
{
    struct reading *reading = context;
    if (!reading->has_header) {
        reading->sheet = sheet;
        return read_header(reading, cells, count, err);
    }
    if (sheet != reading->sheet) {
        reading->sheet = sheet;
        reading->skip_sheet = !is_header(reading, cells, count);
        return PLUMB_OK;
    }
    return reading->skip_sheet ? PLUMB_OK : add_row(reading, cells, count, err);
}

enum plumb_code result_read(struct result *result, const char *folder, const struct rank_file *file,
                            const struct config *config, struct arena *arena,
                            struct plumb_error *err)
{
    struct reading reading = {
        .result = result, .config = config, .arena = arena, .graph = file->graph};
    struct row_reader reader = {.arena = arena, .row = on_row, .context = &reading};
    struct mapped in;
    result->rank = file->rank;
    if (!result->found)
        result->found = arena_array(arena, config->apis.count, sizeof *result->found);
    const char *path = arena_printf(arena, "%s/%s", folder, file->name);
    if (!path || !result->found)
        return plumb_no_memory(err);
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = file->xlsx ? xlsx_read(&in.file, &reader, err) : csv_read(&in.file, &reader, err);
    if (!code && !reading.has_header)
        code = plumb_fail(err, PLUMB_E_FORMAT, "it holds no table");
    return mapped_close(&in, code, err);
}

static int by_api(const void *left, const void *right)
{
    const struct result_row *a = left, *b = right;
    if (a->api != b->api)
        return a->api < b->api ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

void result_order(struct result *result)
{
    if (result->count)
        qsort(result->rows, result->count, sizeof *result->rows, by_api);
}

void result_free(struct result *result)
{
    map_free(&result->names);
    free(result->rows);
}
