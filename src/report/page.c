/* The page of a report: what is told, put together and written. */
#define _GNU_SOURCE
#include "report/page.h"

#include "base/base64.h"
#include "base/json_put.h"
#include "base/number.h"
#include "base/output.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Pieces ---------------------------------------------------------------------------------- */

static void put_little(struct buf *out, const unsigned char *bytes, size_t size)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    buf_append(out, bytes, size);
#else
    for (size_t k = size; k--;)
        buf_append(out, &bytes[k], 1);
#endif
}

void page_bulk(struct plumb_report *report, struct buf *out, enum bulk_type type, const void *data,
               size_t count)
{
    static const struct {
        const char *name;
        size_t size;
    } types[] = {[BULK_F64] = {"f64", 8},
                 [BULK_F32] = {"f32", 4},
                 [BULK_I32] = {"i32", 4},
                 [BULK_U8] = {"u8", 1}};
    const size_t size = types[type].size;
    buf_repeat(&report->bulk, '\0', -report->bulk.size % 8);
    buf_printf(out, "{\"type\":\"%s\",\"at\":%zu,\"n\":%zu}", types[type].name, report->bulk.size,
               count);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    put_little(&report->bulk, data, count * size);
#else
    for (size_t k = 0; k < count; k++)
        put_little(&report->bulk, (const unsigned char *)data + k * size, size);
#endif
}

void page_key(struct buf *out, const char *key, bool first)
{
    buf_printf(out, "%s\"%s\":", first ? "" : ",", key);
}

void page_text(struct buf *out, const char *key, const char *text, bool first)
{
    page_key(out, key, first);
    json_put_string(out, text ? text : "");
}

void page_number(struct buf *out, double value)
{
    char text[NUMBER_BYTES];
    if (isfinite(value)) {
        number_exact(value, false, text);
        buf_text(out, text);
    } else {
        buf_text(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    }
}

void page_comma(struct buf *out)
{
    if (out->size)
        buf_text(out, ",");
}

void page_texts(struct buf *out, const char *const *texts)
{
    buf_text(out, "[");
    for (size_t k = 0; texts && texts[k]; k++) {
        if (k)
            buf_text(out, ",");
        json_put_string(out, texts[k]);
    }
    buf_text(out, "]");
}

/* ---- What is told ---------------------------------------------------------------------------- */

struct plumb_report *plumb_report_new(const char *command, const char *title)
{
    struct plumb_report *report = calloc(1, sizeof *report);
    if (report) {
        buf_text(&report->command, command);
        buf_text(&report->title, title);
    }
    return report;
}

static size_t parts_of(struct plumb_report *r, struct buf **parts)
{
    struct buf *const all[] = {&r->command, &r->title, &r->answer,    &r->next,   &r->counts,
                               &r->facts,   &r->notes, &r->reproduce, &r->tables, &r->network,
                               &r->tensors, &r->grids, &r->bulk,      &r->plain,  &r->steps};
    memcpy(parts, all, sizeof all);
    return sizeof all / sizeof *all;
}

enum { PARTS = 16 };

void plumb_report_free(struct plumb_report *report)
{
    if (!report)
        return;
    struct buf *parts[PARTS];
    for (size_t k = parts_of(report, parts); k--;)
        buf_free(parts[k]);
    free(report->results.where);
    free(report->results.why);
    arena_free(&report->names);
    free(report);
}

/* Text in HTML, where nothing of it is markup. */
static void put_html(struct buf *out, const char *text)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'')
            buf_printf(out, "&#%d;", c);
        else if (c >= ' ' || c == '\n')
            buf_append(out, text, 1);
    }
}

void plumb_report_answer(struct plumb_report *report, const struct plumb_report_answer *answer)
{
    struct buf *out = &report->answer;
    out->size = report->plain.size = 0;
    buf_printf(out, "\"mood\":%d", (int)answer->mood);
    page_text(out, "sentence", answer->sentence, false);
    page_text(out, "where", answer->where, false);
    buf_printf(out, ",\"row\":%" PRId64, answer->row);
    page_text(out, "sure", answer->sure, false);
    const char *const lines[] = {answer->sentence, answer->where, answer->sure};
    for (int k = 0; k < 3; k++) {
        if (!lines[k] || !*lines[k])
            continue;
        buf_text(&report->plain, "<p>");
        put_html(&report->plain, lines[k]);
        buf_text(&report->plain, "</p>\n");
    }
}

void plumb_report_next(struct plumb_report *report, const char *command)
{
    page_comma(&report->next);
    json_put_string(&report->next, command);
}

void plumb_report_count(struct plumb_report *report, const char *word, uint64_t count,
                        enum plumb_mood mood)
{
    page_comma(&report->counts);
    buf_text(&report->counts, "{");
    page_text(&report->counts, "word", word, true);
    buf_printf(&report->counts, ",\"count\":%" PRIu64 ",\"mood\":%d}", count, (int)mood);
}

void plumb_report_fact(struct plumb_report *report, const char *label, const char *value)
{
    page_comma(&report->facts);
    page_texts(&report->facts, (const char *const[]){label, value, NULL});
}

void plumb_report_note(struct plumb_report *report, const char *text)
{
    page_comma(&report->notes);
    json_put_string(&report->notes, text);
}

void plumb_report_reproduce(struct plumb_report *report, const char *command)
{
    report->reproduce.size = 0;
    buf_text(&report->reproduce, command);
}

/* ---- The page -------------------------------------------------------------------------------- */

static void put_list(struct buf *out, const char *key, const struct buf *items)
{
    page_key(out, key, false);
    buf_text(out, "[");
    if (items->size)
        buf_append(out, items->data, items->size);
    buf_text(out, "]");
}

static void put_json(struct buf *out, const struct plumb_report *r)
{
    char made[32] = "";
    struct tm when;
    const time_t now = time(NULL);
    if (gmtime_r(&now, &when))
        strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &when);
    buf_text(out, "{\"format\":1");
    page_text(out, "plumb", PLUMB_VERSION, false);
    page_text(out, "command", r->command.data, false);
    page_text(out, "title", r->title.data, false);
    page_text(out, "made", made, false);
    page_key(out, "answer", false);
    buf_text(out, "{");
    if (r->answer.size)
        buf_append(out, r->answer.data, r->answer.size);
    else
        buf_text(out, "\"mood\":2,\"sentence\":\"\",\"where\":\"\",\"row\":-1,\"sure\":\"\"");
    put_list(out, "next", &r->next);
    buf_text(out, "}");
    put_list(out, "counts", &r->counts);
    put_list(out, "facts", &r->facts);
    page_text(out, "reproduce", r->reproduce.data, false);
    put_list(out, "notes", &r->notes);
    put_list(out, "tables", &r->tables);
    page_key(out, "network", false);
    buf_text(out, r->network.size ? r->network.data : "null");
    put_list(out, "tensors", &r->tensors);
    put_list(out, "grids", &r->grids);
    page_key(out, "steps", false);
    buf_text(out, r->steps.size ? r->steps.data : "null");
    buf_text(out, "}");
}

/* The block of data, as web/src/data.ts has it. */
static void put_container(struct buf *out, const struct plumb_report *report)
{
    struct buf json = {0};
    put_json(&json, report);
    unsigned char head[4];
    for (int k = 0; k < 4; k++)
        head[k] = (unsigned char)(json.size >> 8 * k);
    out->failed |= json.failed || json.size > UINT32_MAX;
    buf_append(out, head, sizeof head);
    buf_append(out, json.data, json.size);
    buf_repeat(out, '\0', -out->size % 8);
    if (report->bulk.size)
        buf_append(out, report->bulk.data, report->bulk.size);
    buf_free(&json);
}

static void put_data(struct buf *out, const struct plumb_report *report)
{
    struct buf container = {0};
    put_container(&container, report);
    struct libdeflate_compressor *compressor =
        container.failed ? NULL : libdeflate_alloc_compressor(6);
    const size_t most =
        compressor ? libdeflate_deflate_compress_bound(compressor, container.size) : 0;
    uint8_t *packed = compressor ? malloc(most) : NULL;
    const size_t size = packed ? libdeflate_deflate_compress(compressor, container.data,
                                                             container.size, packed, most)
                               : 0;
    if (size)
        base64_put(out, packed, size);
    else
        out->failed = true;
    free(packed);
    if (compressor)
        libdeflate_free_compressor(compressor);
    buf_free(&container);
}

/* The template with its places filled in. */
static void put_page(struct buf *out, const struct plumb_report *report)
{
    static const char title[] = "<!--plumb:title-->", plain[] = "<!--plumb:static-->",
                      data[] = "<!--plumb:data-->";
    const char *from = page_templates[0].text;
    for (const char *mark; (mark = strstr(from, "<!--plumb:"));) {
        buf_append(out, from, (size_t)(mark - from));
        if (!strncmp(mark, title, sizeof title - 1)) {
            put_html(out, report->title.data ? report->title.data : "plumb");
            from = mark + sizeof title - 1;
        } else if (!strncmp(mark, plain, sizeof plain - 1)) {
            buf_append(out, report->plain.data ? report->plain.data : "", report->plain.size);
            from = mark + sizeof plain - 1;
        } else if (!strncmp(mark, data, sizeof data - 1)) {
            put_data(out, report);
            from = mark + sizeof data - 1;
        } else {
            buf_append(out, mark, 4);
            from = mark + 4;
        }
    }
    buf_text(out, from);
}

struct plumb_report *plumb_report_copy(struct plumb_report *report)
{
    struct plumb_report *copy = calloc(1, sizeof *copy);
    struct buf *from[PARTS], *to[PARTS];
    if (!copy)
        return NULL;
    copy->n_tensors = report->n_tensors;
    copy->results = report->results;
    copy->results.where = report->results.where ? strdup(report->results.where) : NULL;
    copy->results.why = report->results.why ? strdup(report->results.why) : NULL;
    const size_t count = parts_of(report, from);
    parts_of(copy, to);
    for (size_t k = 0; k < count; k++) {
        if (from[k]->size)
            buf_append(to[k], from[k]->data, from[k]->size);
        to[k]->failed |= from[k]->failed;
    }
    return copy;
}

char *plumb_report_html(struct plumb_report *report, size_t *size)
{
    struct buf *parts[PARTS], page = {0};
    for (size_t k = parts_of(report, parts); k--;)
        page.failed |= parts[k]->failed;
    if (!page.failed)
        put_page(&page, report);
    if (page.failed) {
        buf_free(&page);
        return NULL;
    }
    *size = page.size;
    return page.data;
}

enum plumb_code plumb_report_save(struct plumb_report *report, const char *path,
                                  struct plumb_error *err)
{
    size_t size;
    char *page = plumb_report_html(report, &size);
    enum plumb_code code = page ? output_whole(path, page, size, false, err) : plumb_no_memory(err);
    free(page);
    return code;
}
