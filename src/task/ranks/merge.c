/* From the results of ranks to a table an index. */
#define _GNU_SOURCE
#include "plumb/merge.h"
#include "base/buf.h"
#include "base/json.h"
#include "task/ranks/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts may be shared by many cells, so that a small workbook could make a huge one. */
#define MAX_TEXT ((uint64_t)1 << 33)

struct merging {
    struct arena arena;
    const char *folder;
    struct config config;
    const struct plumb_merge_options *options;
    struct rank_files files;
    struct result *results; /* one a rank */
    size_t count;
    size_t unreadable;
    struct config_list indices; /* of all ranks */
    struct buf notes;
    struct plumb_error first_error; /* of a file that could not be read */
    uint64_t text;                  /* bytes put into tables so far */
};

/* Reads the files of one rank, from files[first] on; returns how many those are. */
static enum plumb_code read_rank(struct merging *m, size_t first, size_t *used,
                                 struct plumb_error *err)
{
    struct result *result = &m->results[m->count];
    struct plumb_error why;
    char text[1024];
    int64_t rank = m->files.list[first].rank;
    bool any = false;
    for (*used = 0; first + *used < m->files.count; (*used)++) {
        const struct rank_file *file = &m->files.list[first + *used];
        if (file->rank != rank)
            break;
        enum plumb_code code = result_read(result, m->folder, file, &m->config, &m->arena, &why);
        if (code == PLUMB_E_NOMEM)
            return plumb_no_memory(err);
        any |= !code;
        if (!code)
            continue;
        if (!m->unreadable++)
            m->first_error = why;
        buf_printf(&m->notes, "%s\n", plumb_error_text(&why, text, sizeof text));
    }
    if (any) {
        result_order(result);
        m->count++;
    } else {
        result_free(result);
        *result = (struct result){0};
    }
    return PLUMB_OK;
}

static enum plumb_code read_ranks(struct merging *m, struct plumb_error *err)
{
    m->results = calloc(m->files.ranks, sizeof *m->results);
    if (!m->results)
        return plumb_no_memory(err);
    enum plumb_code code = PLUMB_OK;
    size_t used;
    for (size_t i = 0; i < m->files.count && !code; i += used) {
        if (m->options->progress)
            m->options->progress(m->options->progress_context, i, m->files.count);
        code = read_rank(m, i, &used, err);
    }
    if (!code && !m->count) {
        *err = m->first_error;
        code = err->code;
    }
    return code;
}

static bool has_index(const struct result *result, const char *title, size_t *index)
{
    for (*index = 0; *index < result->index_count; (*index)++)
        if (strcmp(result->indices[*index], title) == 0)
            return true;
    return false;
}

/* What will be sheets: as the configuration lists them, or in the order of the tables. */
static enum plumb_code collect_indices(struct merging *m, struct plumb_error *err)
{
    size_t ignored;
    const struct config_list *wanted = &m->config.indices;
    for (size_t i = 0; i < wanted->count; i++) {
        bool any = false;
        for (size_t r = 0; r < m->count; r++)
            any |= has_index(&m->results[r], wanted->items[i], &ignored);
        if (!any)
            return plumb_fail(err, PLUMB_E_ARG, "compare_index '%.100s' is a column of no result",
                              wanted->items[i]);
    }
    for (size_t r = 0; r < m->count && !wanted->count; r++)
        for (size_t i = 0; i < m->results[r].index_count; i++) {
            const char *title = m->results[r].indices[i];
            if (!config_add(&m->indices, title, strlen(title), &m->arena))
                return plumb_no_memory(err);
        }
    if (wanted->count)
        m->indices = *wanted;
    for (size_t r = 0; r < m->count; r++)
        for (size_t i = 0; i < m->indices.count; i++)
            if (!has_index(&m->results[r], m->indices.items[i], &ignored))
                buf_printf(&m->notes, "rank%" PRId64 " has no column '%s'\n", m->results[r].rank,
                           m->indices.items[i]);
    return PLUMB_OK;
}

static void note_missing_apis(struct merging *m)
{
    for (size_t r = 0; r < m->count; r++)
        for (size_t i = 0; i < m->config.apis.count; i++)
            if (m->results[r].found && !m->results[r].found[i])
                buf_printf(&m->notes, "rank%" PRId64 " has nothing of %s\n", m->results[r].rank,
                           m->config.apis.items[i]);
}

/* A number keeps its value and, where it is whole, its look. */
static bool put_number(struct plumb_table *table, size_t column, const char *text)
{
    struct json json;
    int64_t whole;
    text += *text == '+';
    json_init(&json, text, strlen(text));
    if (json_next(&json) != JSON_NUMBER)
        return plumb_table_text(table, column, text);
    if (json_int64(&json, &whole))
        plumb_table_int(table, column, whole);
    else
        plumb_table_real(table, column, json_double(&json));
    return true;
}

static bool put_value(struct plumb_table *table, size_t column, const struct result_value *value)
{
    if (!value->text)
        return true;
    return value->number ? put_number(table, column, value->text)
                         : plumb_table_text(table, column, value->text);
}

/* All names, in the order in which ranks have them, and where each rank has its row. */
struct joined {
    struct map names; /* -> place */
    const char **list;
    size_t count;
    size_t *rows; /* [place * ranks + rank]: 1 + row, or 0 */
};

static enum plumb_code join(struct joined *joined, const struct merging *m, struct plumb_error *err)
{
    size_t most = 0;
    for (size_t r = 0; r < m->count; r++)
        most += m->results[r].count;
    joined->list = calloc(most ? most : 1, sizeof *joined->list);
    if (!joined->list)
        return plumb_no_memory(err);
    for (size_t r = 0; r < m->count; r++)
        for (size_t i = 0; i < m->results[r].count; i++) {
            const char *name = m->results[r].rows[i].name;
            bool added;
            uint64_t *place = map_put(&joined->names, name, strlen(name), &added);
            if (!place)
                return plumb_no_memory(err);
            if (added) {
                *place = joined->count;
                joined->list[joined->count++] = name;
            }
        }
    joined->rows = calloc(joined->count + 1, (m->count + 1) * sizeof *joined->rows);
    if (!joined->rows)
        return plumb_no_memory(err);
    for (size_t r = 0; r < m->count; r++)
        for (size_t i = 0; i < m->results[r].count; i++) {
            const char *name = m->results[r].rows[i].name;
            const uint64_t *place = map_get(&joined->names, name, strlen(name));
            joined->rows[*place * m->count + r] = 1 + i;
        }
    return PLUMB_OK;
}

static void joined_free(struct joined *joined)
{
    map_free(&joined->names);
    free(joined->list);
    free(joined->rows);
}

static struct plumb_table *new_table(const struct merging *m)
{
    char titles[32];
    struct arena scratch = {0};
    struct plumb_table *table = NULL;
    struct plumb_column *columns = arena_array(&scratch, m->count + 1, sizeof *columns);
    if (!columns)
        goto out;
    columns[0] = (struct plumb_column){"NPU Name", PLUMB_STYLE_TEXT, true, true};
    for (size_t r = 0; r < m->count; r++) {
        snprintf(titles, sizeof titles, "rank%" PRId64, m->results[r].rank);
        columns[r + 1] = (struct plumb_column){arena_copy(&scratch, titles, strlen(titles)),
                                               PLUMB_STYLE_NUMBER, false, false};
        if (!columns[r + 1].title)
            goto out;
    }
    table = plumb_table_new(columns, m->count + 1);
out:
    arena_free(&scratch);
    return table;
}

/* How far the sheets are: `before` rows are in others. */
static void tell_rows(const struct merging *m, size_t before, size_t rows, size_t all)
{
    enum { ROWS = 1024 };
    if (m->options->progress && rows % ROWS == 0)
        m->options->progress(m->options->progress_context, before + rows, all);
}

static enum plumb_code fill(struct merging *m, struct plumb_table *table, size_t number,
                            const struct joined *joined, struct plumb_error *err)
{
    const char *title = m->indices.items[number];
    for (size_t i = 0; i < joined->count; i++) {
        tell_rows(m, number * joined->count, i, m->indices.count * joined->count);
        if (!plumb_table_add_row(table, PLUMB_NORMAL) ||
            !plumb_table_text(table, 0, joined->list[i]))
            return plumb_no_memory(err);
        m->text += strlen(joined->list[i]);
        for (size_t r = 0; r < m->count; r++) {
            const struct result *result = &m->results[r];
            size_t row = joined->rows[i * m->count + r], index;
            if (!row || !has_index(result, title, &index) ||
                index >= result->rows[row - 1].value_count)
                continue;
            const struct result_value *value = &result->rows[row - 1].values[index];
            m->text += value->text ? strlen(value->text) : 0;
            if (!put_value(table, r + 1, value))
                return plumb_no_memory(err);
        }
        if (m->text > MAX_TEXT)
            return plumb_fail(err, PLUMB_E_UNSUPPORTED,
                              "the tables would hold more than %" PRIu64 " bytes of text; name "
                              "fewer APIs or columns in a configuration",
                              MAX_TEXT);
    }
    return PLUMB_OK;
}

static enum plumb_code make_sheets(struct plumb_merge *out, struct merging *m,
                                   struct plumb_error *err)
{
    struct joined joined = {0};
    out->sheets = calloc(m->indices.count ? m->indices.count : 1, sizeof *out->sheets);
    if (!out->sheets)
        return plumb_no_memory(err);
    enum plumb_code code = join(&joined, m, err);
    for (size_t i = 0; i < m->indices.count && !code; i++) {
        struct plumb_table *table = new_table(m);
        char *name = strdup(m->indices.items[i]);
        out->sheets[out->count++] = (struct plumb_sheet){name, table};
        code = table && name ? fill(m, table, i, &joined, err) : plumb_no_memory(err);
    }
    if (!code && !joined.count)
        code = plumb_fail(err, PLUMB_E_ARG, "no rank has a row of the APIs to merge");
    joined_free(&joined);
    return code;
}

static enum plumb_code merge(struct plumb_merge *out, struct merging *m, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    if (m->options->config)
        code = config_read(&m->config, m->options->config, &m->arena, err);
    if (!code)
        code = rank_find(&m->files, m->folder, &m->arena, err);
    if (code)
        return code;
    if (m->files.ranks < 2) {
        plumb_fail(err, PLUMB_E_ARG,
                   "%s here to merge: two or more files compare_result_rankN_YYYYmmddHHMMSS.xlsx "
                   "or .csv are needed",
                   m->files.ranks ? "only one rank is" : "nothing is");
        plumb_error_in_file(err, m->folder);
        return PLUMB_E_ARG;
    }
    if (m->files.older)
        buf_printf(&m->notes, "%zu older results of the same ranks are left out\n", m->files.older);
    code = read_ranks(m, err);
    if (!code)
        code = collect_indices(m, err);
    if (code)
        return code;
    note_missing_apis(m);
    return make_sheets(out, m, err);
}

enum plumb_code plumb_merge_results(struct plumb_merge *out, const char *folder,
                                    const struct plumb_merge_options *options,
                                    struct plumb_error *err)
{
    static const struct plumb_merge_options usual = {0};
    struct merging m = {.folder = folder, .options = options ? options : &usual};
    *out = (struct plumb_merge){0};
    enum plumb_code code = merge(out, &m, err);
    if (!code && m.notes.failed)
        code = plumb_no_memory(err);
    if (code) {
        plumb_merge_free(out);
        buf_free(&m.notes);
    } else {
        out->ranks = m.count;
        out->unreadable = m.unreadable;
        out->notes = m.notes.data;
    }
    for (size_t i = 0; i < m.count; i++)
        result_free(&m.results[i]);
    free(m.results);
    arena_free(&m.arena);
    return code;
}

void plumb_merge_free(struct plumb_merge *merge_result)
{
    for (size_t i = 0; i < merge_result->count; i++) {
        plumb_table_free((struct plumb_table *)(uintptr_t)merge_result->sheets[i].table);
        free((char *)(uintptr_t)merge_result->sheets[i].name);
    }
    free(merge_result->sheets);
    free(merge_result->notes);
    *merge_result = (struct plumb_merge){0};
}
