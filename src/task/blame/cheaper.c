/* Calls of cheaper arithmetic in the answer for people: by kind, with operators and the worst. */
#include "task/blame/parts.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_OPERATORS = 6 };

/* "Functional.linear" of "Functional.linear.3.forward". */
static size_t operator_length(const char *call)
{
    const char *dot = strchr(call, '.');
    while (dot && !(dot[1] >= '0' && dot[1] <= '9'))
        dot = strchr(dot + 1, '.');
    return dot ? (size_t)(dot - call) : strlen(call);
}

static bool is_of_kind(const struct plumb_suspect *is, const char *arithmetic)
{
    return is->word == PLUMB_WORD_CHEAPER && is->standing != PLUMB_STANDING_ACCEPTED &&
           (!arithmetic || strcmp(is->arithmetic, arithmetic) == 0);
}

struct operator_count {
    const char *name;
    size_t length, count;
};

static int compare_operators(const void *a, const void *b)
{
    const struct operator_count *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->name, y->name);
}

/* "Functional.layer_norm (18), Functional.softmax (3)". */
static void put_operators(struct buf *out, const struct plumb_suspect *list, size_t n,
                          const char *arithmetic)
{
    struct operator_count *all = calloc(n + 1, sizeof *all);
    size_t count = 0;
    out->failed |= !all;
    for (size_t k = 0; all && k < n; k++) {
        if (!is_of_kind(&list[k], arithmetic))
            continue;
        const size_t length = operator_length(list[k].call);
        size_t at = 0;
        while (at < count &&
               (all[at].length != length || strncmp(all[at].name, list[k].call, length) != 0))
            at++;
        if (at == count)
            all[count++] = (struct operator_count){list[k].call, length, 0};
        all[at].count++;
    }
    if (all)
        qsort(all, count, sizeof *all, compare_operators);
    for (size_t k = 0; all && k < count && k < SHOWN_OPERATORS; k++)
        buf_printf(out, "%s%.*s (%zu)", k ? ", " : " ", (int)all[k].length, all[k].name,
                   all[k].count);
    if (count > SHOWN_OPERATORS)
        buf_printf(out, " and %zu other operators", count - SHOWN_OPERATORS);
    free(all);
}

/* One kind; worst is the first of it. */
static void put_kind(struct buf *out, const struct plumb_suspect *list, size_t n,
                     const struct plumb_suspect *worst, const char *target, unsigned width)
{
    const char *kind = worst->arithmetic, *word = plumb_arithmetic_word(kind);
    struct buf line = {0};
    size_t count = 0;
    for (size_t k = 0; k < n; k++)
        count += is_of_kind(&list[k], kind);
    buf_printf(&line, "%zu: %s%s%s%s:", count, kind, *word ? " (--arithmetic " : "", word,
               *word ? " allows it)" : "");
    put_operators(&line, list, n, kind);
    buf_text(out, "  ");
    text_put(out, line.data ? line.data : "", width - 2, 5);
    line.size = 0;
    const bool led = strncmp(worst->why, kind, strlen(kind)) == 0;
    buf_printf(&line, "the worst is %s", worst->call);
    text_place(&line, worst);
    buf_printf(&line, ": %s",
               worst->why + (led ? strlen(kind) + strspn(worst->why + strlen(kind), "; ") : 0));
    buf_text(out, "     ");
    text_put(out, line.data ? line.data : "", width - 5, 5);
    if (target && !worst->module) {
        buf_text(out, "     ");
        replay_put(out, target, worst);
        buf_text(out, "\n");
    }
    out->failed |= line.failed;
    buf_free(&line);
}

void cheaper_put(struct buf *out, const struct plumb_suspect *list, size_t n, const char *target,
                 unsigned width)
{
    size_t count = 0, accepted = 0;
    for (size_t k = 0; k < n; k++) {
        count += list[k].word == PLUMB_WORD_CHEAPER;
        accepted += list[k].word == PLUMB_WORD_CHEAPER && !is_of_kind(&list[k], NULL);
    }
    if (!count)
        return;
    buf_printf(out, "%zu suspicious call%s of cheaper arithmetic", count, count == 1 ? "" : "s");
    if (accepted)
        buf_printf(out, ", %zu accepted", accepted);
    buf_text(out, accepted == count ? "\n" : ":\n");
    for (size_t k = 0; k < n; k++) {
        bool first = is_of_kind(&list[k], NULL);
        for (size_t j = 0; j < k && first; j++)
            first = !is_of_kind(&list[j], list[k].arithmetic);
        if (first)
            put_kind(out, list, n, &list[k], target, width);
    }
}
