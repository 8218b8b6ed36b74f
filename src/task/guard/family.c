/* Processes that were forked while a guard was open, workers of a data loader say: what they count
 * is theirs alone, so they write it, check by check, into a file without a name that all of them
 * have open, and the account of the process that opened the guard takes it from there. A process
 * may end at any moment; what it wrote stays. */
#define _GNU_SOURCE
#include "base/json_put.h"
#include "task/guard/guard.h"

#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

void guard_family_open(struct plumb_guard *guard)
{
    guard->family = memfd_create("plumb-guard", MFD_CLOEXEC);
    if (guard->family >= 0 && fcntl(guard->family, F_SETFL, O_APPEND) != 0) {
        close(guard->family);
        guard->family = -1;
    }
}

void guard_family_close(struct plumb_guard *guard)
{
    if (guard->family >= 0)
        close(guard->family);
}

void plumb_guard_forked(struct plumb_guard *guard)
{
    guard->is_child = true;
    /* Another thread of the parent may have held it, and is not here to let it go. */
    pthread_mutex_init(&guard->lock, NULL);
    for (size_t k = 0; k < guard->n_ops; k++)
        guard->ops[k]->told = atomic_load(&guard->ops[k]->calls);
}

/* ---- In a child ------------------------------------------------------------------------------ */

static void field(struct buf *out, const char *name, double value)
{
    buf_printf(out, ", \"%s\": ", name);
    spell_json_number(out, value);
}

static void text_field(struct buf *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    buf_printf(out, ", \"%s\": ", name);
    json_put_string(out, value);
}

void guard_family_tell(struct plumb_guard_op *op, const struct guard_family_news *news)
{
    struct plumb_guard *guard = op->guard;
    if (!guard->is_child || guard->family < 0)
        return;
    const uint64_t calls = atomic_load(&op->calls);
    struct buf line = {0};
    buf_text(&line, "{\"op\": ");
    json_put_string(&line, op->full);
    field(&line, "calls", (double)(calls - op->told));
    field(&line, "checked", (double)news->checked);
    field(&line, "failed", (double)news->failed);
    field(&line, "max_abs", news->max_abs);
    field(&line, "max_rel", news->max_rel);
    field(&line, "max_ulp", news->max_ulp);
    text_field(&line, "verdict", news->verdict);
    text_field(&line, "failure", news->failure);
    text_field(&line, "where", news->where);
    text_field(&line, "saved", news->saved);
    text_field(&line, "trouble", news->trouble);
    text_field(&line, "skipped", news->skipped);
    buf_text(&line, "}\n");
    /* One write, so that lines of several processes do not mix. */
    if (!line.failed && write(guard->family, line.data, line.size) == (ssize_t)line.size)
        op->told = calls;
    buf_free(&line);
}

/* ---- In the process that opened the guard ---------------------------------------------------- */

struct heard {
    const char *op;
    double calls;
    struct guard_family_news news;
};

static bool read_member(struct json *json, struct arena *arena, struct heard *out)
{
    double checked = -1, failed = -1;
    const struct {
        const char *name;
        double *number;
        const char **text;
    } members[] = {
        {"op", NULL, &out->op},
        {"calls", &out->calls, NULL},
        {"checked", &checked, NULL},
        {"failed", &failed, NULL},
        {"max_abs", &out->news.max_abs, NULL},
        {"max_rel", &out->news.max_rel, NULL},
        {"max_ulp", &out->news.max_ulp, NULL},
        {"verdict", NULL, &out->news.verdict},
        {"failure", NULL, &out->news.failure},
        {"where", NULL, &out->news.where},
        {"saved", NULL, &out->news.saved},
        {"trouble", NULL, &out->news.trouble},
        {"skipped", NULL, &out->news.skipped},
    };
    size_t k = 0, length;
    while (k < sizeof members / sizeof *members && !json_is(json, members[k].name))
        k++;
    const enum json_event e = json_next(json);
    if (k == sizeof members / sizeof *members)
        return json_skip(json, e);
    if (members[k].number) /* what is not finite is a string */
        *members[k].number = e == JSON_NUMBER       ? json_double(json)
                             : json_is(json, "inf") ? (double)INFINITY
                                                    : (double)NAN;
    else if (e != JSON_STRING || !(*members[k].text = json_copy(json, arena, &length)))
        return false;
    out->news.checked = checked >= 0 ? (uint64_t)checked : out->news.checked;
    out->news.failed = failed >= 0 ? (uint64_t)failed : out->news.failed;
    return true;
}

static void take_news(struct plumb_guard *guard, const struct heard *heard)
{
    struct plumb_guard_op *op = guard_find(guard, heard->op);
    const struct guard_family_news *news = &heard->news;
    if (!op)
        return;
    atomic_fetch_add(&op->calls, (uint64_t)heard->calls);
    if (news->failed && !op->failed) {
        op->first_failure = news->failure;
        op->where = news->where;
        op->saved = news->saved;
    }
    op->checked += news->checked;
    op->failed += news->failed;
    op->max_abs = fmax(op->max_abs, news->max_abs);
    op->max_rel = fmax(op->max_rel, news->max_rel);
    op->max_ulp = fmax(op->max_ulp, news->max_ulp);
    for (int k = 0; k < PLUMB_WORDS && news->verdict; k++)
        if (strcmp(news->verdict, plumb_word_text((enum plumb_word)k)) == 0)
            guard_take_word(op, (enum plumb_word)k, "in a forked process; the log has the numbers");
    if (news->skipped && !op->skipped)
        op->skipped = news->skipped;
    if (news->trouble) {
        op->troubles++;
        guard->troubles++;
        if (!guard->first_trouble)
            guard->first_trouble = arena_printf(&guard->arena, "%s: %s", op->name, news->trouble);
    }
}

static void take_line(struct plumb_guard *guard, const char *line, size_t size)
{
    struct json json;
    struct heard heard = {.news.max_ulp = NAN};
    json_init(&json, line, size);
    for (enum json_event e; (e = json_next(&json)) > JSON_END;)
        if (e == JSON_KEY && !read_member(&json, &guard->arena, &heard))
            return;
    if (!json.error && heard.op)
        take_news(guard, &heard);
}

void guard_family_hear(struct plumb_guard *guard)
{
    struct stat st;
    if (guard->is_child || guard->family < 0 || fstat(guard->family, &st) != 0 ||
        (uint64_t)st.st_size <= guard->heard)
        return;
    size_t room = (size_t)st.st_size - (size_t)guard->heard;
    char *text = malloc(room);
    const ssize_t got = text ? pread(guard->family, text, room, (off_t)guard->heard) : -1;
    size_t left = got > 0 ? (size_t)got : 0;
    const char *line = text;
    for (const char *end; left && (end = memchr(line, '\n', left)); line = end + 1) {
        const size_t size = (size_t)(end - line) + 1;
        take_line(guard, line, size);
        guard->heard += size;
        left -= size;
    }
    free(text);
}
