#include "task/precheck/rows.h"

#include <string.h>

static const struct {
    const char *title, *origin;
} columns[] = {
    {"API name", "API Name"},
    {"Bench Dtype", "Bench Dtype"},
    {"DEVICE Dtype", "DEVICE Dtype"},
    {"Shape", "Shape"},
    {"Cosine similarity", "余弦相似度"},
    {"Maximum absolute error", "最大绝对误差"},
    {"Dual-100 metric", "双百指标"},
    {"Dual-1000 metric", "双千指标"},
    {"Dual-10000 metric", "双万指标"},
    {"Binary consistency error rate", "二进制一致错误率"},
    {"Error balance", "误差均衡性"},
    {"Root-mean-square error (RMSE)", "均方根误差"},
    {"Error ratio in small value range", "小值域错误占比"},
    {"Maximum relative error", "相对误差最大值"},
    {"Mean relative error", "相对误差平均值"},
    {"inf/nan error rate", "inf/nan错误率"},
    {"Relative error rate", "相对误差错误率"},
    {"Absolute error rate", "绝对误差错误率"},
    {"Maximum ULP error", "ULP误差最大值"},
    {"Mean ULP error", "ULP误差平均值"},
    {"Proportion of ULP errors greater than the threshold", "ULP误差大于阈值占比"},
    {"Status", "Status"},
    {"Message", "Message"},
};
_Static_assert(sizeof columns / sizeof *columns == CELL_COUNT + 6, "a title for each column");

static const char *protection(enum check_rules rules, const char *text)
{
    return rules == RULES_DOCUMENTED && csv_is_formula(text) ? "'" : "";
}

static void put_cell(struct buf *out, enum check_rules rules, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        buf_text(out, protection(rules, text));
        buf_text(out, text);
        return;
    }
    buf_text(out, "\"");
    buf_text(out, protection(rules, text));
    for (const char *c = text; *c; c++)
        buf_append(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    buf_text(out, "\"");
}

static void put_next(struct buf *out, enum check_rules rules, const char *text)
{
    buf_text(out, ",");
    put_cell(out, rules, text ? text : " ");
}

bool rows_is_name(struct csv_cell cell, enum check_rules rules, const char *name)
{
    const char *quote = protection(rules, name);
    const size_t before = strlen(quote), length = strlen(name);
    return cell.length == before + length && memcmp(cell.text, quote, before) == 0 &&
           memcmp(cell.text + before, name, length) == 0;
}

static void end_row(struct buf *out, enum check_rules rules)
{
    buf_text(out, rules == RULES_MSPROBE ? "\r\n" : "\n");
}

static void begin_file(struct buf *out, enum check_rules rules)
{
    if (rules == RULES_MSPROBE)
        buf_text(out, "\xef\xbb\xbf");
}

void rows_result_header(struct buf *out, enum check_rules rules)
{
    begin_file(out, rules);
    buf_text(out, "API name,Forward Test Success,Backward Test Success,Message");
    end_row(out, rules);
}

void rows_details_header(struct buf *out, enum check_rules rules)
{
    begin_file(out, rules);
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        if (k)
            buf_text(out, ",");
        put_cell(out, rules, rules == RULES_MSPROBE ? columns[k].origin : columns[k].title);
    }
    end_row(out, rules);
}

void rows_details(struct buf *out, enum check_rules rules, const struct details_row *row)
{
    put_cell(out, rules, row->name);
    put_next(out, rules, row->bench_dtype);
    put_next(out, rules, row->device_dtype);
    put_next(out, rules, row->shape);
    for (size_t k = 0; k < CELL_COUNT; k++)
        put_next(out, rules, row->cell[k]);
    put_next(out, rules, check_status_text(row->status));
    put_next(out, rules, row->message ? row->message : "");
    end_row(out, rules);
}

void rows_result(struct buf *out, enum check_rules rules, const struct journal_entry *entry)
{
    put_cell(out, rules, entry->name);
    put_next(out, rules, check_status_text(entry->forward));
    put_next(out, rules, check_status_text(entry->backward));
    /* The origin's rows have a fourth cell only where something was skipped. */
    if (rules == RULES_DOCUMENTED || entry->forward == STATUS_SKIP ||
        entry->backward == STATUS_SKIP)
        put_next(out, rules, entry->message ? entry->message : "");
    end_row(out, rules);
}
