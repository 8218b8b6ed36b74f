/* The log of failures: a line each, written by one write() into a file opened for appending, so
 * that several processes may share it. */
#define _GNU_SOURCE
#include "base/folder.h"
#include "base/json_put.h"
#include "task/guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum plumb_code guard_log_open(struct plumb_guard *guard, struct plumb_error *err)
{
    if (strcmp(guard->path, "-") == 0) {
        guard->log = STDERR_FILENO;
        return PLUMB_OK;
    }
    char *path = arena_copy(&guard->arena, guard->path, strlen(guard->path));
    if (!path)
        return plumb_no_memory(err);
    folder_make_for(path, NULL); /* when that fails, opening the file says why */
    guard->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    guard->log_is_own = guard->log >= 0;
    if (guard->log >= 0)
        return PLUMB_OK;
    plumb_fail(err, PLUMB_E_IO, "the log cannot be written: %s", strerror(errno));
    plumb_error_in_file(err, path);
    return PLUMB_E_IO;
}

static void text_time(struct buf *out, int64_t seconds)
{
    const time_t when = (time_t)seconds;
    struct tm parts;
    char text[32];
    localtime_r(&when, &parts);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    buf_text(out, text);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void add_input(void *context, const struct plumb_tensor *tensor)
{
    struct buf *out = context;
    if (out->size && out->data[out->size - 1] != '[')
        buf_text(out, ", ");
    spell_tensor(out, tensor);
}

static void text_outputs(struct buf *out, const struct plumb_guard_case *about)
{
    if (about->n_outputs == 1) {
        spell_arg(out, &about->outputs[0]);
        return;
    }
    const struct plumb_arg all = {
        .kind = PLUMB_ARG_LIST, .items = about->outputs, .n_items = about->n_outputs};
    spell_arg(out, &all);
}

static bool is_single(const struct plumb_guard_case *about)
{
    return about->n_outputs == 1 && about->outputs[0].kind != PLUMB_ARG_LIST;
}

static void text_line(struct buf *out, const struct plumb_guard_op *op,
                      const struct plumb_guard_case *about,
                      const struct plumb_guard_verdict *verdict)
{
    text_time(out, op->guard->now());
    buf_printf(out, " [WARNING] Op: %s | FAIL | in: [", op->name);
    call_tensors(&about->call, add_input, out);
    buf_text(out, "] | out: ");
    text_outputs(out, about);
    if (*verdict->label)
        buf_printf(out, " | %s", verdict->label);
    else if (!is_single(about))
        buf_printf(out, " | output %zu", verdict->found.output);
    if (verdict->found.fault == PLUMB_FAULT_NOT_CLOSE)
        buf_printf(out, " | max_abs: %e | max_rel: %e", fabs(verdict->found.max_abs),
                   fabs(verdict->found.max_rel)); /* a NaN without its sign */
    else
        buf_printf(out, " | %s: %s", plumb_fault_name(verdict->found.fault),
                   verdict->found.message);
    buf_text(out, " | rtol=");
    spell_number(out, verdict->found.rtol);
    buf_text(out, ", atol=");
    spell_number(out, verdict->found.atol);
    if (verdict->judged)
        buf_printf(out, " | %s: %s", plumb_word_text(verdict->opinion.word), verdict->opinion.why);
    buf_text(out, "\n");
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

static void add_json_input(void *context, const struct plumb_tensor *tensor)
{
    struct buf *out = context;
    if (out->data[out->size - 1] != '[')
        buf_text(out, ", ");
    buf_text(out, "\"");
    spell_tensor(out, tensor);
    buf_text(out, "\"");
}

static void json_field(struct buf *out, const char *name, double value)
{
    buf_printf(out, ", \"%s\": ", name);
    spell_json_number(out, value);
}

static void json_text_field(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, ", \"%s\": ", name);
    json_put_string(out, value);
}

static void json_line(struct buf *out, const struct plumb_guard_op *op,
                      const struct plumb_guard_case *about,
                      const struct plumb_guard_verdict *verdict)
{
    struct buf text = {0};
    buf_text(out, "{\"op\": ");
    json_put_string(out, op->name);
    buf_text(out, ", \"status\": \"FAIL\", \"inputs\": [");
    call_tensors(&about->call, add_json_input, out);
    buf_text(out, "]");
    text_outputs(&text, about);
    json_text_field(out, "output", text.data ? text.data : "");
    buf_free(&text);
    json_field(out, "rtol", verdict->found.rtol);
    json_field(out, "atol", verdict->found.atol);
    if (*verdict->label)
        json_text_field(out, "judged", verdict->label);
    else if (!is_single(about))
        buf_printf(out, ", \"output_index\": %zu", verdict->found.output);
    if (verdict->found.fault == PLUMB_FAULT_NOT_CLOSE) {
        json_field(out, "max_abs_diff", verdict->found.max_abs);
        json_field(out, "max_rel_diff", verdict->found.max_rel);
        json_field(out, "max_ulp", verdict->found.max_ulp);
    } else {
        json_text_field(out, "error", plumb_fault_name(verdict->found.fault));
        json_text_field(out, "message", verdict->found.message);
    }
    if (verdict->found.fault == PLUMB_FAULT_SPECIAL) {
        json_field(out, "fg_value", verdict->found.actual);
        json_field(out, "pt_value", verdict->found.expected);
        buf_printf(out, ", \"index\": %llu", (unsigned long long)verdict->found.index);
    }
    if (verdict->judged) {
        json_text_field(out, "verdict", plumb_word_text(verdict->opinion.word));
        json_text_field(out, "why", verdict->opinion.why);
    }
    if (*verdict->saved)
        json_text_field(out, "saved", verdict->saved);
    buf_text(out, ", \"timestamp\": \"");
    text_time(out, op->guard->now());
    buf_text(out, "\"}\n");
}

enum plumb_code guard_log_failure(const struct plumb_guard_op *op,
                                  const struct plumb_guard_case *about,
                                  const struct plumb_guard_verdict *verdict,
                                  struct plumb_error *err)
{
    struct buf line = {0};
    if (op->guard->format == PLUMB_GUARD_JSONL)
        json_line(&line, op, about, verdict);
    else
        text_line(&line, op, about, verdict);
    enum plumb_code code = PLUMB_OK;
    if (line.failed) {
        code = plumb_no_memory(err);
    } else {
        ssize_t wrote;
        do {
            wrote = write(op->guard->log, line.data, line.size);
        } while (wrote < 0 && errno == EINTR);
        if (wrote < 0 || (size_t)wrote != line.size) {
            code = plumb_fail(err, PLUMB_E_IO, "a line of the log was not written: %s",
                              wrote < 0 ? strerror(errno) : "no room is left");
            plumb_error_in_file(err, op->guard->path);
        }
    }
    buf_free(&line);
    return code;
}
