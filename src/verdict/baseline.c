/* Accepted deviations, and how what was found compares with them. */
#include "verdict/baseline_parts.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An excess that grew by less is the same on another machine. */
#define WORSE_EXCESS 2.0

bool baseline_is_deviation(const struct plumb_deviation *is)
{
    return is->word == PLUMB_WORD_FAULT || is->word == PLUMB_WORD_CHEAPER;
}

int baseline_order(const struct plumb_deviation *a, const struct plumb_deviation *b)
{
    int order = strcmp(a->call, b->call);
    if (!order)
        order = strcmp(a->result, b->result);
    if (!order)
        order = (a->step > b->step) - (a->step < b->step);
    return order ? order : (a->rank > b->rank) - (a->rank < b->rank);
}

/* ---- The object ------------------------------------------------------------------------------ */

enum plumb_code plumb_baseline_new(const struct plumb_baseline_options *options,
                                   struct plumb_baseline **out, struct plumb_error *err)
{
    *out = NULL;
    struct plumb_baseline *b = calloc(1, sizeof *b);
    if (!b)
        return plumb_no_memory(err);
    const char *allowed = options->arithmetic ? options->arithmetic : "";
    b->options.seed = options->seed;
    b->options.arithmetic = arena_copy(&b->arena, allowed, strlen(allowed));
    if (!b->options.arithmetic) {
        plumb_baseline_free(b);
        return plumb_no_memory(err);
    }
    *out = b;
    return PLUMB_OK;
}

void plumb_baseline_free(struct plumb_baseline *baseline)
{
    if (!baseline)
        return;
    free(baseline->list);
    map_free(&baseline->index);
    arena_free(&baseline->arena);
    free(baseline);
}

/* The length of the name keeps "a" + "b c" apart from "a b" + "c". */
static char *key_of(struct arena *arena, const struct plumb_deviation *is)
{
    return arena_printf(arena, "%zu %s %s %" PRId64 " %" PRId64, strlen(is->call), is->call,
                        is->result, is->step, is->rank);
}

const struct plumb_deviation *baseline_find(const struct plumb_baseline *baseline,
                                            const struct plumb_deviation *key)
{
    struct arena arena = {0};
    const char *text = key_of(&arena, key);
    const uint64_t *place = text ? map_get(&baseline->index, text, strlen(text)) : NULL;
    const struct plumb_deviation *found = place ? &baseline->list[*place - 1] : NULL;
    arena_free(&arena);
    return found;
}

static const char *keep(struct arena *arena, const char *text)
{
    return arena_copy(arena, text ? text : "", text ? strlen(text) : 0);
}

static bool grow(struct plumb_baseline *b)
{
    if (b->count < b->capacity)
        return true;
    const size_t capacity = b->capacity ? 2 * b->capacity : 64;
    struct plumb_deviation *list = realloc(b->list, capacity * sizeof *list);
    if (!list)
        return false;
    b->list = list;
    b->capacity = capacity;
    return true;
}

static bool is_worse_of_two(const struct plumb_deviation *a, const struct plumb_deviation *b)
{
    const unsigned x = plumb_word_severity(a->word), y = plumb_word_severity(b->word);
    return x != y ? x > y : a->worst > b->worst;
}

enum plumb_code plumb_baseline_add(struct plumb_baseline *baseline,
                                   const struct plumb_deviation *deviation, struct plumb_error *err)
{
    struct arena *arena = &baseline->arena;
    struct plumb_deviation is = *deviation;
    is.call = keep(arena, is.call);
    is.result = keep(arena, is.result);
    is.arithmetic = keep(arena, is.arithmetic);
    is.pattern = keep(arena, is.pattern);
    const char *key =
        is.call && is.result && is.arithmetic && is.pattern ? key_of(arena, &is) : NULL;
    bool added = false;
    uint64_t *place =
        key && grow(baseline) ? map_put(&baseline->index, key, strlen(key), &added) : NULL;
    if (!place)
        return plumb_no_memory(err);
    if (added) {
        baseline->list[baseline->count++] = is;
        *place = baseline->count;
    } else if (is_worse_of_two(&is, &baseline->list[*place - 1])) {
        baseline->list[*place - 1] = is;
    }
    return PLUMB_OK;
}

size_t plumb_baseline_count(const struct plumb_baseline *baseline)
{
    size_t n = 0;
    for (size_t k = 0; k < baseline->count; k++)
        n += baseline_is_deviation(&baseline->list[k]);
    return n;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

const char *plumb_standing_text(enum plumb_standing standing)
{
    static const char *const texts[] = {"fine", "accepted", "new", "worse", "gone"};
    _Static_assert(sizeof texts / sizeof *texts == PLUMB_STANDINGS, "a text for each");
    return standing < PLUMB_STANDINGS ? texts[standing] : "";
}

/* The next word of a pattern without its numbers: "rows 3 to 5 are" reads as "row 3 is". Numbers
 * are a '#'; false at the end. */
static bool next_word(const char **at, char out[64])
{
    static const char *const alike[][2] = {
        {"are", "is"}, {"elements", "element"}, {"rows", "row"}, {"columns", "column"}};
    *at += strspn(*at, " ");
    const size_t length = strcspn(*at, " ");
    const char first = (*at)[strspn(*at, "([+-")]; /* "TF32" is no number */
    const bool number = first >= '0' && first <= '9';
    snprintf(out, 64, "%.*s", number ? 1 : (int)(length < 63 ? length : 63), number ? "#" : *at);
    *at += length;
    if (strcmp(out, "#") == 0 && strncmp(*at, " to ", 4) == 0) { /* a range counts as its start */
        *at += 4;
        *at += strcspn(*at, " ");
    }
    for (size_t k = 0; k < sizeof alike / sizeof *alike; k++)
        if (strcmp(out, alike[k][0]) == 0)
            snprintf(out, 64, "%s", alike[k][1]);
    return length > 0;
}

static bool is_same_kind(const char *a, const char *b)
{
    char x[64], y[64];
    bool more;
    do {
        more = next_word(&a, x);
        if (next_word(&b, y) != more || strcmp(x, y) != 0)
            return false;
    } while (more);
    return true;
}

/* What makes it worse than before; false: nothing. */
static bool say_worse(const struct plumb_deviation *before, const struct plumb_deviation *now,
                      char *why, size_t size)
{
    const unsigned x = plumb_word_severity(now->word), y = plumb_word_severity(before->word);
    char a[NUMBER_BYTES], b[NUMBER_BYTES];
    if (x < y)
        return false;
    if (x > y)
        snprintf(why, size, "%s before", plumb_word_text(before->word));
    else if (now->worst > WORSE_EXCESS * fmax(before->worst, 1))
        snprintf(why, size, "an excess of %s sigma, %s before", number_brief(now->worst, 2, a),
                 number_brief(before->worst, 2, b));
    else if (!is_same_kind(before->arithmetic, now->arithmetic))
        snprintf(why, size, "%.80s; before: %.80s",
                 *now->arithmetic ? now->arithmetic : "no named arithmetic",
                 *before->arithmetic ? before->arithmetic : "no named arithmetic");
    else if (!is_same_kind(before->pattern, now->pattern))
        snprintf(why, size, "%.100s; before: %.100s",
                 *now->pattern ? now->pattern : "no simple pattern",
                 *before->pattern ? before->pattern : "no simple pattern");
    else
        return false;
    return true;
}

static enum plumb_standing stand(const struct plumb_baseline *accepted,
                                 const struct plumb_deviation *now, char *why, size_t size)
{
    why[0] = '\0';
    if (!baseline_is_deviation(now))
        return PLUMB_STANDING_FINE;
    const struct plumb_deviation *before = baseline_find(accepted, now);
    if (!before || !baseline_is_deviation(before))
        return PLUMB_STANDING_NEW;
    return say_worse(before, now, why, size) ? PLUMB_STANDING_WORSE : PLUMB_STANDING_ACCEPTED;
}

enum plumb_standing plumb_baseline_ask(const struct plumb_baseline *accepted,
                                       const struct plumb_deviation *now)
{
    struct plumb_deviation key = *now;
    char why[256];
    key.result = key.result ? key.result : "";
    key.arithmetic = key.arithmetic ? key.arithmetic : "";
    key.pattern = key.pattern ? key.pattern : "";
    return stand(accepted, &key, why, sizeof why);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static int compare_changes(const void *a, const void *b)
{
    const struct plumb_baseline_change *x = a, *y = b;
    return x->standing != y->standing ? (x->standing < y->standing ? -1 : 1)
                                      : baseline_order(&x->is, &y->is);
}

/* Whether a deviation that was accepted is none any more, and what it is. */
static bool say_gone(const struct plumb_baseline *found, const struct plumb_deviation *before,
                     char *why, size_t size)
{
    const struct plumb_deviation *now = baseline_find(found, before);
    struct plumb_deviation call = *before;
    call.result = "";
    if (!now) /* of a call that was not judged there are no results */
        now = baseline_find(found, &call);
    if (!baseline_is_deviation(before) || (now && baseline_is_deviation(now)))
        return false;
    snprintf(why, size, "%s%s", now ? "now " : "not there now",
             now ? plumb_word_text(now->word) : "");
    return true;
}

enum plumb_code plumb_baseline_compare(const struct plumb_baseline *accepted,
                                       const struct plumb_baseline *found,
                                       struct plumb_baseline_diff **out, struct plumb_error *err)
{
    *out = NULL;
    struct plumb_baseline_diff *diff = calloc(1, sizeof *diff);
    struct plumb_baseline_change *changes =
        calloc(accepted->count + found->count + 1, sizeof *changes);
    if (!diff || !changes) {
        free(diff);
        free(changes);
        return plumb_no_memory(err);
    }
    size_t n = 0;
    for (size_t k = 0; k < found->count; k++) {
        struct plumb_baseline_change *c = &changes[n];
        c->is = found->list[k];
        c->standing = stand(accepted, &c->is, c->why, sizeof c->why);
        diff->count[c->standing]++;
        n += c->standing == PLUMB_STANDING_NEW || c->standing == PLUMB_STANDING_WORSE;
    }
    for (size_t k = 0; k < accepted->count; k++) {
        struct plumb_baseline_change *c = &changes[n];
        c->is = accepted->list[k];
        c->standing = PLUMB_STANDING_GONE;
        if (!say_gone(found, &c->is, c->why, sizeof c->why))
            continue;
        diff->count[PLUMB_STANDING_GONE]++;
        n++;
    }
    qsort(changes, n, sizeof *changes, compare_changes);
    diff->changes = diff->memory = changes;
    diff->n_changes = n;
    *out = diff;
    return PLUMB_OK;
}

void plumb_baseline_diff_free(struct plumb_baseline_diff *diff)
{
    if (!diff)
        return;
    free(diff->memory);
    free(diff);
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_change(struct buf *out, const struct plumb_baseline_change *c)
{
    struct buf line = {0};
    const struct plumb_deviation *is = &c->is;
    buf_printf(&line, "  %s: %s", plumb_standing_text(c->standing), is->call);
    if (*is->result)
        buf_printf(&line, ", %s", is->result);
    if (is->step >= 0)
        buf_printf(&line, ", step %" PRId64, is->step);
    if (is->rank >= 0)
        buf_printf(&line, ", rank %" PRId64, is->rank);
    if (c->standing != PLUMB_STANDING_GONE)
        buf_printf(&line, ": %s", plumb_word_text(is->word));
    if (*c->why)
        buf_printf(&line, "%s%s", c->standing == PLUMB_STANDING_GONE ? ": " : ", ", c->why);
    utf8_put_clean(out, line.data ? line.data : "");
    buf_text(out, "\n");
    out->failed |= line.failed;
    buf_free(&line);
}

char *plumb_baseline_diff_text(const struct plumb_baseline_diff *diff, size_t most)
{
    struct buf out = {0};
    size_t said[PLUMB_STANDINGS] = {0};
    buf_printf(&out,
               "baseline: accepted: %" PRIu64 ", new: %" PRIu64 ", worse: %" PRIu64
               ", gone: %" PRIu64 "\n",
               diff->count[PLUMB_STANDING_ACCEPTED], diff->count[PLUMB_STANDING_NEW],
               diff->count[PLUMB_STANDING_WORSE], diff->count[PLUMB_STANDING_GONE]);
    for (size_t k = 0; k < diff->n_changes; k++) {
        const struct plumb_baseline_change *c = &diff->changes[k];
        const size_t n = ++said[c->standing];
        if (!most || n <= most)
            put_change(&out, c);
        else if (n == diff->count[c->standing])
            buf_printf(&out, "  %s: %zu more\n", plumb_standing_text(c->standing), n - most);
    }
    if (out.failed) {
        buf_free(&out);
        return NULL;
    }
    return out.data;
}
