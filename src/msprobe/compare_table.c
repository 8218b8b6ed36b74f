/* The origin's three tables. */
#define _GNU_SOURCE
#include "msprobe/compare.h"

#include "base/buf.h"
#include "dump/python.h"

#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 8, BLOCK = 2 * DUMP_STATISTICS_COUNT, MOST_COLUMNS = 32 };

static const char *const head[HEAD] = {
    "NPU Name",         "Bench Name",         "NPU Dtype",         "Bench Dtype",
    "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad", "Bench Requires_grad"};
static const char *const tensor_titles[GENERAL_METRICS] = {"Cosine",
                                                           "EucDist",
                                                           "MaxAbsErr",
                                                           "MaxRelativeErr",
                                                           "One Thousandth Err Ratio",
                                                           "Five Thousandths Err Ratio"};
static const char *const statistics_titles[2 * DUMP_STATISTICS_COUNT] = {
    "Max diff",       "Min diff",       "Mean diff",       "L2norm diff",
    "MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"};
static const char *const block_titles[BLOCK] = {"NPU max",    "NPU min",     "NPU mean",
                                                "NPU l2norm", "Bench max",   "Bench min",
                                                "Bench mean", "Bench l2norm"};

/* Writes one row after the other. */
struct writer {
    const struct general *general;
    struct plumb_table *table;
    struct buf text;
    size_t values;       /* computed columns */
    size_t column;       /* the next one of the current row */
    bool seen[BLOCK][2]; /* a 0 or a 1 among a column's numbers so far */
    bool stacks, failed;
};

static void put(struct writer *w, const char *text)
{
    w->failed |= !plumb_table_text(w->table, w->column++, text);
}

static void put_real(struct writer *w, double value)
{
    bool plain = w->general->options->plain_infinities;
    if (isnan(value))
        put(w, "Nan");
    else if (isinf(value))
        put(w, &(value > 0 ? " inf" : " -inf")[plain]);
    else
        plumb_table_real(w->table, w->column++, value);
}

static void put_integer(struct writer *w, double value, const char *text)
{
    if (fabs(value) <= 0x1p53)
        plumb_table_int(w->table, w->column++, (int64_t)value);
    else if (text)
        put(w, text);
    else
        put_real(w, value);
}

static void put_value(struct writer *w, const struct general_value *value)
{
    char text[NUMBER_BYTES + 1];
    switch (value->kind) {
    case GENERAL_WORD:
        put(w, value->word);
        break;
    case GENERAL_NUMBER:
        if (value->integer)
            put_integer(w, value->number, NULL);
        else
            put_real(w, value->number);
        break;
    case GENERAL_PERCENT: {
        size_t length = number_exact(value->number, true, text);
        memcpy(text + length, "%", 2);
        put(w, text);
        break;
    }
    }
}

/* In the origin's .xlsx files an argument that is True or False shows as the number that equals it
 * in Python, once its column has had that number. */
static bool put_flag(struct writer *w, const struct dump_row *row, const struct dump_value *value,
                     bool seen[2])
{
    if (!w->general->options->plain_infinities)
        return false;
    if (value->kind == DUMP_NUMBER && (value->number == 0 || value->number == 1))
        seen[(int)value->number] = true;
    if (strcmp(row->dtype, "<class 'bool'>") != 0 || value->kind != DUMP_WORD)
        return false;
    int flag = strcmp(value->text, "True") == 0;
    if (seen[flag])
        plumb_table_int(w->table, w->column++, flag);
    return seen[flag];
}

static void put_statistics(struct writer *w, const struct dump_row *row, bool seen[][2])
{
    for (size_t i = 0; i < DUMP_STATISTICS_COUNT; i++) {
        const struct dump_value *value = row ? &row->statistic[i] : NULL;
        if (!value)
            put(w, "N/A");
        else if (put_flag(w, row, value, seen[i]))
            continue;
        else if (value->kind == DUMP_NUMBER && value->integer)
            put_integer(w, value->number, value->text);
        else if (value->kind == DUMP_NUMBER)
            put_real(w, value->number);
        else
            put(w, value->text ? value->text : "None");
    }
}

const char *general_checksum(const struct dump_row *row, char text[GENERAL_CRC_BYTES])
{
    if (!row->type)
        return "N/A";
    if (row->md5)
        return row->md5;
    const char *value = row->value ? row->value : "";
    snprintf(text, GENERAL_CRC_BYTES, "%08x", (unsigned)libdeflate_crc32(0, value, strlen(value)));
    return text;
}

static void put_checksums(struct writer *w, const struct dump_row *target,
                          const struct dump_row *golden)
{
    char text[GENERAL_CRC_BYTES];
    put(w, general_checksum(target, text));
    put(w, golden ? general_checksum(golden, text) : "N/A");
}

static void put_messages(struct writer *w, unsigned bits)
{
    const char *comma = "";
    w->text.size = 0;
    buf_text(&w->text, "[");
    for (unsigned i = 0; i < GENERAL_RULES; i++) {
        if (!(bits & 1U << i))
            continue;
        buf_printf(&w->text, "%s\"%s\"", comma, general_message((enum general_rule)i));
        comma = ", ";
    }
    buf_text(&w->text, "]");
    w->failed |= w->text.failed;
    put(w, w->text.failed ? "" : w->text.data);
}

static void put_list(struct writer *w, const char *const *texts, size_t count)
{
    w->text.size = 0;
    buf_text(&w->text, "[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_text(&w->text, ", ");
        python_quote(texts[i], strlen(texts[i]), &w->text);
    }
    buf_text(&w->text, "]");
    w->failed |= w->text.failed;
    put(w, w->text.failed ? "" : w->text.data);
}

static void put_stack(struct writer *w, size_t row)
{
    const struct dump_tree *tree = &w->general->target;
    const struct dump_api *api = &tree->apis[tree->rows[row].api];
    if (row != api->first || !api->stack) {
        put(w, "N/A");
        return;
    }
    const char *const *lines = tree->stacks[api->stack - 1];
    size_t count = 0;
    while (lines[count])
        count++;
    put_list(w, lines, count);
}

static void put_head(struct writer *w, const struct dump_row *target, const struct dump_row *golden)
{
    put(w, target->name);
    put(w, golden ? golden->name : "N/A");
    put(w, target->dtype);
    put(w, golden ? golden->dtype : "N/A");
    put(w, target->shape);
    put(w, golden ? golden->shape : "N/A");
    put(w, target->requires_grad ? target->requires_grad : "N/A");
    put(w, golden && golden->requires_grad ? golden->requires_grad : "N/A");
}

static void write_row(struct writer *w, const struct general_pair *pair)
{
    const struct general *general = w->general;
    const struct dump_row *target = &general->target.rows[pair->target];
    const struct dump_row *golden =
        pair->golden == GENERAL_NONE ? NULL : &general->golden.rows[pair->golden];
    enum plumb_severity severity = general_severity(pair);
    static const char *const results[] = {"pass", "warning", "error"};

    w->failed |= !plumb_table_add_row(w->table, severity);
    if (w->failed)
        return;
    w->column = 0;
    put_head(w, target, golden);
    if (general->target.task == DUMP_MD5) {
        put_checksums(w, target, golden);
    } else {
        for (size_t i = 0; i < w->values; i++)
            put_value(w, &pair->value[i]);
        put_statistics(w, target, w->seen);
        put_statistics(w, golden, w->seen + DUMP_STATISTICS_COUNT);
    }
    const char *grads[2] = {target->requires_grad ? target->requires_grad : "N/A",
                            golden && golden->requires_grad ? golden->requires_grad : "N/A"};
    put(w, strcmp(grads[0], grads[1]) == 0 ? "True" : "False");
    put(w, results[severity]);
    put_messages(w, pair->found);
    if (w->stacks)
        put_stack(w, pair->target);
    if (general->target.task == DUMP_TENSOR) {
        const char *names[2] = {target->data_name ? target->data_name : "-1",
                                !golden             ? "N/A"
                                : golden->data_name ? golden->data_name
                                                    : "-1"};
        put_list(w, names, 2);
    }
}

static void add_titles(struct plumb_column *columns, size_t *count, const char *const *titles,
                       size_t more, enum plumb_style style)
{
    for (size_t i = 0; i < more; i++)
        columns[(*count)++] = (struct plumb_column){.title = titles[i],
                                                    .style = style,
                                                    .left = style == PLUMB_STYLE_TEXT,
                                                    .elastic = style == PLUMB_STYLE_TEXT};
}

static struct plumb_table *new_table(struct writer *w)
{
    static const char *const sums[] = {"NPU MD5", "BENCH MD5"};
    static const char *const tail[] = {"Requires_grad Consistent", "Result", "Err_message"};
    static const char *const stack[] = {"NPU_Stack_Info"}, *const data[] = {"Data_name"};
    struct plumb_column columns[MOST_COLUMNS];
    size_t count = 0;
    enum dump_task task = w->general->target.task;
    add_titles(columns, &count, head, HEAD, PLUMB_STYLE_TEXT);
    if (task == DUMP_TENSOR) {
        w->values = GENERAL_METRICS;
        add_titles(columns, &count, tensor_titles, GENERAL_METRICS, PLUMB_STYLE_REPR);
    } else if (task == DUMP_STATISTICS) {
        w->values = 2 * DUMP_STATISTICS_COUNT;
        add_titles(columns, &count, statistics_titles, w->values, PLUMB_STYLE_REPR);
    } else {
        add_titles(columns, &count, sums, 2, PLUMB_STYLE_TEXT);
    }
    if (task != DUMP_MD5)
        add_titles(columns, &count, block_titles, BLOCK, PLUMB_STYLE_REPR);
    add_titles(columns, &count, tail, 3, PLUMB_STYLE_TEXT);
    if (w->stacks)
        add_titles(columns, &count, stack, 1, PLUMB_STYLE_TEXT);
    if (task == DUMP_TENSOR)
        add_titles(columns, &count, data, 1, PLUMB_STYLE_TEXT);
    return plumb_table_new(columns, count);
}

enum plumb_code general_table(struct plumb_table **table, const struct general *general,
                              struct plumb_error *err)
{
    struct writer w = {.general = general};
    char *path = NULL;
    if (asprintf(&path, "%s/stack.json", general->target.folder) < 0)
        return plumb_no_memory(err);
    w.stacks = access(path, F_OK) == 0;
    free(path);
    w.table = new_table(&w);
    w.failed = !w.table;
    for (size_t i = 0; !w.failed && i < general->count; i++)
        write_row(&w, &general->pairs[i]);
    buf_free(&w.text);
    if (w.failed) {
        plumb_table_free(w.table);
        return plumb_no_memory(err);
    }
    *table = w.table;
    return PLUMB_OK;
}
