/* Baselines as files: JSON, one line per deviation, sorted. */
#include "verdict/baseline_parts.h"

#include "base/buf.h"
#include "base/json.h"
#include "base/json_put.h"
#include "base/mapped.h"
#include "base/number.h"
#include "base/output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BASELINE_FORM = 1 }; /* of the file */

/* ---- Writing --------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const struct plumb_deviation *const *x = a, *const *y = b;
    return baseline_order(*x, *y);
}

static void put_text(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ", \"%s\": ", name);
    json_put_string(out, text);
}

/* Two digits of the excess: more are not the same on another machine. */
static void put_deviation(struct buf *out, const struct plumb_deviation *is)
{
    char worst[NUMBER_BYTES];
    buf_text(out, "  {\"call\": ");
    json_put_string(out, is->call);
    if (*is->result)
        put_text(out, "result", is->result);
    if (is->step >= 0)
        buf_printf(out, ", \"step\": %" PRId64, is->step);
    if (is->rank >= 0)
        buf_printf(out, ", \"rank\": %" PRId64, is->rank);
    put_text(out, "verdict", plumb_word_text(is->word));
    buf_printf(out, ", \"worst\": %s",
               isfinite(is->worst) ? number_brief(is->worst, 2, worst) : "null");
    if (*is->arithmetic)
        put_text(out, "arithmetic", is->arithmetic);
    if (*is->pattern)
        put_text(out, "pattern", is->pattern);
    buf_text(out, "}");
}

enum plumb_code plumb_baseline_write(const struct plumb_baseline *baseline, const char *path,
                                     struct plumb_error *err)
{
    const struct plumb_deviation **sorted = calloc(baseline->count + 1, sizeof *sorted);
    if (!sorted)
        return plumb_no_memory(err);
    size_t n = 0;
    for (size_t k = 0; k < baseline->count; k++)
        if (baseline_is_deviation(&baseline->list[k]))
            sorted[n++] = &baseline->list[k];
    qsort(sorted, n, sizeof *sorted, compare_places);
    struct buf out = {0};
    buf_printf(&out,
               "{\"plumb_baseline\": %d, \"verdict_version\": %d, \"seed\": %" PRIu64
               ", \"arithmetic\": ",
               BASELINE_FORM, PLUMB_EXPECTED_VERSION, baseline->options.seed);
    json_put_string(&out, baseline->options.arithmetic);
    buf_text(&out, ",\n \"accepted\": [");
    for (size_t k = 0; k < n; k++) {
        buf_text(&out, k ? ",\n" : "\n");
        put_deviation(&out, sorted[k]);
    }
    buf_text(&out, n ? "\n ]}\n" : "]}\n");
    free(sorted);
    const enum plumb_code code =
        out.failed ? plumb_no_memory(err) : output_whole(path, out.data, out.size, false, err);
    buf_free(&out);
    return code;
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct reader {
    struct json json;
    struct arena arena; /* of one deviation */
    struct plumb_error *err;
    int64_t form, version, seed;
    const char *arithmetic;
    bool listed; /* there was a list */
    struct plumb_baseline *out;
};

static enum plumb_code refuse(struct reader *r, const char *what)
{
    return r->json.error ? json_fail(&r->json, 0, r->err)
                         : plumb_fail_at(r->err, PLUMB_E_FORMAT, r->json.start, "%s", what);
}

static enum plumb_code read_text(struct reader *r, struct arena *arena, const char **out)
{
    size_t length;
    if (json_next(&r->json) != JSON_STRING)
        return refuse(r, "a text is expected here");
    const char *text = json_copy(&r->json, arena, &length);
    if (!text)
        return r->json.error ? refuse(r, "") : plumb_no_memory(r->err);
    if (strlen(text) != length)
        return refuse(r, "a text with a NUL in it");
    *out = text;
    return PLUMB_OK;
}

static enum plumb_code read_int(struct reader *r, int64_t *out)
{
    if (json_next(&r->json) != JSON_NUMBER || !json_int64(&r->json, out) || *out < 0)
        return refuse(r, "a whole number from 0 on is expected here");
    return PLUMB_OK;
}

static enum plumb_code read_worst(struct reader *r, double *out)
{
    const enum json_event event = json_next(&r->json);
    *out = event == JSON_NULL ? INFINITY : event == JSON_NUMBER ? json_double(&r->json) : NAN;
    return *out >= 0 ? PLUMB_OK : refuse(r, "a number from 0 on, or null, is expected here");
}

static enum plumb_code read_word(struct reader *r, enum plumb_word *out)
{
    const char *text = "";
    const enum plumb_code code = read_text(r, &r->arena, &text);
    if (code)
        return code;
    *out = strcmp(text, plumb_word_text(PLUMB_WORD_FAULT)) == 0     ? PLUMB_WORD_FAULT
           : strcmp(text, plumb_word_text(PLUMB_WORD_CHEAPER)) == 0 ? PLUMB_WORD_CHEAPER
                                                                    : PLUMB_WORDS;
    return *out != PLUMB_WORDS ? PLUMB_OK
                               : refuse(r, "only 'fault' and 'cheaper arithmetic' are accepted");
}

static enum plumb_code read_member(struct reader *r, struct plumb_deviation *is)
{
    const struct json *json = &r->json;
    struct arena *arena = &r->arena;
    if (json_is(json, "call"))
        return read_text(r, arena, &is->call);
    if (json_is(json, "result"))
        return read_text(r, arena, &is->result);
    if (json_is(json, "step"))
        return read_int(r, &is->step);
    if (json_is(json, "rank"))
        return read_int(r, &is->rank);
    if (json_is(json, "verdict"))
        return read_word(r, &is->word);
    if (json_is(json, "worst"))
        return read_worst(r, &is->worst);
    if (json_is(json, "arithmetic"))
        return read_text(r, arena, &is->arithmetic);
    if (json_is(json, "pattern"))
        return read_text(r, arena, &is->pattern);
    return refuse(r, "a deviation has no such member");
}

static enum plumb_code read_deviation(struct reader *r)
{
    struct plumb_deviation is = {.result = "",
                                 .step = -1,
                                 .rank = -1,
                                 .word = PLUMB_WORDS,
                                 .worst = NAN,
                                 .arithmetic = "",
                                 .pattern = ""};
    enum json_event event;
    enum plumb_code code = PLUMB_OK;
    while (!code && (event = json_next(&r->json)) == JSON_KEY)
        code = read_member(r, &is);
    if (!code && event != JSON_OBJECT_END)
        code = refuse(r, "");
    if (!code && (!is.call || is.word == PLUMB_WORDS || isnan(is.worst)))
        code = refuse(r, "a deviation needs call, verdict and worst");
    if (!code && baseline_find(r->out, &is))
        code = refuse(r, "a result that is there twice");
    if (!code)
        code = plumb_baseline_add(r->out, &is, r->err);
    arena_free(&r->arena);
    return code;
}

static enum plumb_code read_list(struct reader *r)
{
    enum json_event event;
    enum plumb_code code = PLUMB_OK;
    if (json_next(&r->json) != JSON_ARRAY)
        return refuse(r, "a list is expected here");
    r->listed = true;
    while (!code && (event = json_next(&r->json)) == JSON_OBJECT)
        code = read_deviation(r);
    return code || event == JSON_ARRAY_END ? code : refuse(r, "a deviation is expected here");
}

static enum plumb_code read_head(struct reader *r)
{
    struct json *json = &r->json;
    if (json_is(json, "plumb_baseline"))
        return read_int(r, &r->form);
    if (json_is(json, "verdict_version"))
        return read_int(r, &r->version);
    if (json_is(json, "seed"))
        return read_int(r, &r->seed);
    if (json_is(json, "arithmetic"))
        return read_text(r, &r->out->arena, &r->arithmetic);
    if (json_is(json, "accepted"))
        return read_list(r);
    return json_skip(json, JSON_KEY) ? PLUMB_OK : refuse(r, "");
}

/* Whether it speaks of the same verdicts. */
static enum plumb_code check_head(const struct reader *r)
{
    const struct plumb_baseline_options *now = &r->out->options;
    if (r->form < 0 || r->version < 0 || r->seed < 0 || !r->arithmetic || !r->listed)
        return plumb_fail(r->err, PLUMB_E_FORMAT,
                          "it is no baseline: it needs plumb_baseline, verdict_version, seed, "
                          "arithmetic and accepted");
    if (r->form != BASELINE_FORM)
        return plumb_fail(r->err, PLUMB_E_UNSUPPORTED,
                          "a baseline of form %" PRId64 "; this plumb reads form %d", r->form,
                          BASELINE_FORM);
    if (r->version != PLUMB_EXPECTED_VERSION)
        return plumb_fail(r->err, PLUMB_E_UNSUPPORTED,
                          "a baseline of verdict version %" PRId64
                          ", and this plumb gives verdicts of version %d: write a new one",
                          r->version, PLUMB_EXPECTED_VERSION);
    if (r->seed != (int64_t)now->seed)
        return plumb_fail(r->err, PLUMB_E_UNSUPPORTED,
                          "a baseline of seed %" PRId64 ", and now it is %" PRIu64
                          ": give the same, or write a new one",
                          r->seed, now->seed);
    if (strcmp(r->arithmetic, now->arithmetic) != 0)
        return plumb_fail(r->err, PLUMB_E_UNSUPPORTED,
                          "a baseline that allows the arithmetic '%.100s', and now it is '%.100s': "
                          "give the same, or write a new one",
                          r->arithmetic, now->arithmetic);
    return PLUMB_OK;
}

enum plumb_code baseline_parse(const void *bytes, size_t size,
                               const struct plumb_baseline_options *options,
                               struct plumb_baseline **out, struct plumb_error *err)
{
    struct reader r = {.err = err, .form = -1, .version = -1, .seed = -1};
    enum plumb_code code = plumb_baseline_new(options, out, err);
    if (code)
        return code;
    r.out = *out;
    json_init(&r.json, bytes, size);
    enum json_event event = json_next(&r.json);
    if (event != JSON_OBJECT)
        code = refuse(&r, "it is no baseline: an object is expected here");
    while (!code && (event = json_next(&r.json)) == JSON_KEY)
        code = read_head(&r);
    if (!code && (event != JSON_OBJECT_END || json_next(&r.json) != JSON_END))
        code = refuse(&r, "");
    if (!code)
        code = check_head(&r);
    if (code) {
        plumb_baseline_free(*out);
        *out = NULL;
    }
    return code;
}

enum plumb_code plumb_baseline_read(const char *path, const struct plumb_baseline_options *options,
                                    struct plumb_baseline **out, struct plumb_error *err)
{
    struct mapped in;
    *out = NULL;
    enum plumb_code code = mapped_open(&in, path, err);
    if (code)
        return code;
    code = mapped_close(&in, baseline_parse(in.file.data, in.file.size, options, out, err), err);
    if (code) {
        plumb_baseline_free(*out);
        *out = NULL;
    }
    return code;
}
