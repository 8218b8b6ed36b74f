/* Results of whole graphs: a formula is judged by two runs in float64, a stored result by how far
 * errors of the size of the types move it. */
#define _GNU_SOURCE
#include "verdict/whole.h"

#include "base/buf.h"
#include "base/plain.h"
#include "verdict/expected_parts.h"
#include "verdict/spell.h"
#include "verdict/whole_scale.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the largest of n elements reaches in a run with errors, judged by the other runs, a right
 * result may reach twice. */
static const double BEYOND_RUNS = 2;
/* A scale or an offset that a run with errors has too, a third as large or a third as sure, is no
 * fault. */
static const double LIKE_RUNS = 3;

struct whole {
    const struct whole_item *item;
    const struct plumb_tensor *got;
    struct arena arena;
    struct plumb_opinion *o;
    double *scratch, *squares;
};

static void say(struct plumb_opinion *o, enum plumb_word word, const char *why)
{
    o->word = word;
    plain_print(o->why, sizeof o->why, "%s", why);
}

/* ---- Noise ----------------------------------------------------------------------------------- */

/* Adds the moves of these runs to those that are there, run by run. */
static bool add_moves(struct whole *w, const struct whole_runs *runs, const double *from,
                      uint64_t n, struct moves *m)
{
    for (unsigned r = 0; r < runs->n; r++) {
        if (r >= m->n) {
            m->by[r] = arena_array(&w->arena, (size_t)n + 1, sizeof **m->by);
            m->n = r + 1;
        }
        if (!m->by[r])
            return false;
        for (uint64_t i = 0; i < n; i++)
            m->by[r][i] += runs->run[r][i] - from[i];
    }
    return true;
}

/* Standard deviations from all runs but one; skip = n: from all. own: what is the least, or
 * NULL. */
static void set_sigma(struct whole *w, struct sample *s, const struct moves *m, unsigned skip,
                      const double *own)
{
    const unsigned used = skip < m->n ? m->n - 1 : m->n;
    memset(w->squares, 0, (size_t)s->n * sizeof *w->squares);
    for (unsigned r = 0; r < m->n; r++)
        for (uint64_t i = 0; r != skip && i < s->n; i++)
            if (isfinite(m->by[r][i]))
                w->squares[i] += m->by[r][i] * m->by[r][i] / used;
    sample_smooth(s, w->squares, used, false, w->scratch);
    for (uint64_t i = 0; i < s->n; i++)
        s->sigma[i] = sqrt(fmax(w->scratch[i], own ? own[i] : 0));
}

/* What the worst element of a run reaches, judged by the others. */
static double reach_of_runs(struct whole *w, struct sample *s, const struct moves *m)
{
    double reach = 0;
    for (unsigned skip = 0; m->n >= 3 && skip < m->n; skip++) {
        set_sigma(w, s, m, skip, NULL);
        for (uint64_t i = 0; i < s->n; i++) {
            const double t = s->sigma[i] > 0 ? fabs(m->by[skip][i]) / s->sigma[i] : 0;
            if (!s->out[i] && isfinite(t))
                reach = fmax(reach, t);
        }
    }
    return reach;
}

/* Sets sigma, and the limit that belongs to it. */
static double measure(struct whole *w, struct sample *s, const struct moves *m, const double *own)
{
    const double reach = reach_of_runs(w, s, m);
    set_sigma(w, s, m, m->n, own);
    return fmax(sample_limit(s->counted, s->terms), BEYOND_RUNS * reach);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static enum plumb_dtype part_type(enum plumb_dtype dtype)
{
    return dtype == PLUMB_C64 ? PLUMB_F32 : dtype == PLUMB_C128 ? PLUMB_F64 : dtype;
}

/* got: NULL, then s->got is to be filled. */
static bool make_sample(struct whole *w, enum plumb_dtype dtype, const double *got,
                        struct sample *s)
{
    const unsigned parts = plumb_dtype_parts(w->got->dtype);
    *s = (struct sample){.arena = &w->arena,
                         .dtype = dtype,
                         .u = dtype == PLUMB_F64 ? 0x1p-53 : 0x1p-24,
                         .terms = 16,
                         .n = w->got->count * parts};
    sample_set_rows(s, w->got);
    const size_t n = (size_t)s->n + 1;
    s->y = arena_array(&w->arena, n, sizeof(double));
    s->got = arena_array(&w->arena, n, sizeof(double));
    s->sigma = arena_array(&w->arena, n, sizeof(double));
    s->ulp = arena_array(&w->arena, n, sizeof(double));
    s->out = arena_array(&w->arena, n, sizeof(bool));
    if (!s->y || !s->got || !s->sigma || !s->ulp || !s->out)
        return false;
    memcpy(s->y, w->item->y, (size_t)s->n * sizeof *s->y);
    if (got)
        memcpy(s->got, got, (size_t)s->n * sizeof *s->got);
    else
        plumb_tensor_to_f64(w->got, 0, (size_t)w->got->count, s->got);
    for (uint64_t i = 0; i < s->n; i++) {
        s->out[i] = !isfinite(s->y[i]) || !isfinite(s->got[i]);
        s->counted += !s->out[i];
        s->ulp[i] = sample_ulp(dtype, s->y[i]);
    }
    return true;
}

/* ---- What is said ---------------------------------------------------------------------------- */

static void say_numbers(const struct whole *w, const struct sample *s, const char *lead,
                        const char *of)
{
    struct plumb_opinion *o = w->o;
    struct buf place = {0};
    spell_place(&place, w->got, o->at);
    o->got = s->got[o->at];
    o->expected = s->y[o->at];
    plain_print(o->why, sizeof o->why,
                "%.240s; %s is %.3g sigma (limit %.3g), worst at %.*s: %.9g instead of %.9g", lead,
                of, o->worst, o->limit, (int)place.size, place.data ? place.data : "", o->got,
                o->expected);
    buf_free(&place);
}

static const char *name_of_before(const struct whole *w)
{
    return w->item->called ? w->item->called : "the graph before";
}

/* NaN or an infinity on one side only; what the graph before stores there, is none. */
static bool find_special(struct whole *w, const struct sample *s, const double *before)
{
    for (uint64_t i = 0; i < s->n; i++) {
        const double y = s->y[i], got = s->got[i], stored = plumb_round_to(s->dtype, y);
        const bool same = got == y || got == stored || (isnan(y) && isnan(got)) ||
                          (before && (got == before[i] || (isnan(got) && isnan(before[i]))));
        if ((isfinite(y) && isfinite(got)) || same)
            continue;
        w->o->word = PLUMB_WORD_FAULT;
        w->o->worst = INFINITY;
        w->o->at = i;
        plain_print(w->o->pattern, sizeof w->o->pattern, "%s where %s has %s",
                    isnan(got)   ? "NaN"
                    : isinf(got) ? "an infinity"
                                 : "a number",
                    name_of_before(w),
                    isnan(y)   ? "NaN"
                    : isinf(y) ? "an infinity"
                               : "a number");
        say_numbers(w, s, w->o->pattern, "the largest difference");
        return true;
    }
    return false;
}

static void take_worst(struct whole *w, const struct sample *s, struct excess x, double limit)
{
    w->o->worst = x.worst;
    w->o->limit = limit;
    w->o->at = x.at;
    w->o->got = s->got[x.at];
    w->o->expected = s->y[x.at];
}

/* There is no call to compute again; a scale or an offset of all is the most that can be said then.
 */
static void find_pattern(const struct whole *w, const struct sample *s,
                         const struct system_part *system)
{
    pattern_find(NULL, PLUMB_PART_OUTPUT, 0, w->got, s, system, w->o);
    if (!w->o->pattern[0] && system->found)
        plain_print(w->o->pattern, sizeof w->o->pattern, "%s", system->text);
}

/* ---- The formula ----------------------------------------------------------------------------- */

/* Both sides in float64: nothing but constants, and numbers in the program, may be rounded to
 * float32 or to the type that they are kept in. */
static enum plumb_code judge_formula(struct whole *w, bool *fault, struct plumb_error *err)
{
    const struct whole_item *item = w->item;
    struct moves moves = {0};
    struct sample s;
    if (!make_sample(w, PLUMB_F64, item->formula, &s) ||
        !add_moves(w, item->fine.n ? &item->fine : &item->noise, item->y, s.n, &moves) ||
        !add_moves(w, &item->constants, item->formula, s.n, &moves))
        return plumb_no_memory(err);
    *fault = find_special(w, &s, NULL);
    if (*fault || !s.counted)
        return PLUMB_OK;
    const double limit = measure(w, &s, &moves, NULL);
    const struct excess x = sample_excess(&s, s.y, s.sigma, limit);
    if (x.worst <= limit)
        return PLUMB_OK;
    *fault = true;
    take_worst(w, &s, x, limit);
    w->o->word = PLUMB_WORD_FAULT;
    s.u = 0x1p-24; /* patterns are as good as float32 */
    const struct system_part system = system_find(&s, s.y, s.sigma, false);
    find_pattern(w, &s, &system);
    char lead[sizeof w->o->pattern + 40];
    plain_print(lead, sizeof lead, "%s, in float64 too: another formula",
                w->o->pattern[0] ? w->o->pattern : "no simple pattern");
    say_numbers(w, &s, lead, "the largest difference");
    return PLUMB_OK;
}

/* ---- What is stored -------------------------------------------------------------------------- */

static bool is_like(const struct sample *s, const struct system_part *found)
{
    const struct system_part right = system_find(s, s->y, s->sigma, false);
    return right.found && (LIKE_RUNS * fabs(right.size) >= fabs(found->size) ||
                           LIKE_RUNS * fabs(right.z) >= fabs(found->z));
}

/* Whether one of these runs has such a part, each judged by the others. */
static bool runs_have(struct whole *w, struct sample *s, const struct moves *m, const double *own,
                      const struct system_part *found)
{
    bool like = false;
    for (unsigned r = 0; r < m->n && !like; r++) {
        set_sigma(w, s, m, m->n >= 3 ? r : m->n, own);
        for (uint64_t i = 0; i < s->n; i++)
            s->got[i] = plumb_round_to(s->dtype, s->y[i] + m->by[r][i]);
        like = is_like(s, found);
    }
    return like;
}

/* A systematic part that neither the graph before has nor runs of either graph with errors. */
static struct system_part find_system(struct whole *w, struct sample *s, const struct moves *noise,
                                      const struct moves *changed, const double *own,
                                      const double *before)
{
    const struct system_part found = system_find(s, s->y, s->sigma, false), none = {0};
    double *const got = s->got, *other = arena_array(&w->arena, (size_t)s->n + 1, sizeof *other);
    if (!found.found || !other)
        return found;
    memcpy(other, before, (size_t)s->n * sizeof *other);
    s->got = other;
    const bool like = is_like(s, &found) || runs_have(w, s, noise, own, &found) ||
                      runs_have(w, s, changed, own, &found);
    s->got = got;
    set_sigma(w, s, noise, noise->n, own);
    return like ? none : found;
}

/* Squares of what the graph before itself is off, beyond rounding once. */
static double *own_squares(struct whole *w, const struct sample *s, const double *before)
{
    double *own = arena_array(&w->arena, (size_t)s->n + 1, sizeof *own);
    if (!own)
        return NULL;
    for (uint64_t i = 0; before && i < s->n; i++) {
        const double over = fabs(before[i] - s->y[i]) - s->ulp[i] / 2;
        w->squares[i] = over > 0 && isfinite(over) ? over * over : 0;
    }
    if (before)
        sample_smooth(s, w->squares, 1, false, own);
    return own;
}

static bool all_same(const struct sample *s, const double *other, bool round)
{
    for (uint64_t i = 0; other && i < s->n; i++) {
        const double x = round ? plumb_round_to(s->dtype, other[i]) : other[i];
        if (!(s->got[i] == x || (isnan(s->got[i]) && isnan(x))))
            return false;
    }
    return other != NULL;
}

static const char *arithmetic_of(const struct whole_item *item, enum plumb_dtype got)
{
    const enum plumb_dtype type = item->narrowest < PLUMB_DTYPE_COUNT ? item->narrowest : got;
    return type == PLUMB_BF16                      ? "results on the way rounded to bfloat16"
           : type == PLUMB_F16                     ? "results on the way rounded to float16"
           : type == PLUMB_F32 && got == PLUMB_F64 ? "results on the way rounded to float32"
                                                   : "more rounding on the way than before";
}

/* Errors that the graph after makes of itself: its formula is right, its steps round more. least:
 * squares of the sigma that stands. */
static bool rounds_more(struct whole *w, struct sample *s, const struct moves *changed,
                        const double *least)
{
    if (!changed->n)
        return false;
    /* It is to say which arithmetic, not whether it is right: the formula is. */
    const double limit = 2 * measure(w, s, changed, least);
    const struct excess x = sample_excess(s, s->y, s->sigma, limit);
    if (x.worst > limit)
        return false;
    take_worst(w, s, x, limit);
    w->o->word = PLUMB_WORD_CHEAPER;
    plain_print(w->o->arithmetic, sizeof w->o->arithmetic, "%s", arithmetic_of(w->item, s->dtype));
    w->o->allowed = arithmetic_allowed(w->item->arithmetic, w->o->arithmetic);
    say_numbers(w, s, w->o->arithmetic, "the largest excess over rounding once");
    return true;
}

/* What is not the same as before, nor the correctly rounded reference. */
static enum plumb_code judge_numbers(struct whole *w, struct sample *s, const double *before,
                                     struct plumb_error *err)
{
    const struct whole_item *item = w->item;
    struct moves noise = {0}, changed = {0};
    double *own = own_squares(w, s, before);
    if (!own || !add_moves(w, &item->noise, item->y, s->n, &noise) ||
        (item->formula && !add_moves(w, &item->changed, item->formula, s->n, &changed)))
        return plumb_no_memory(err);
    const double limit = measure(w, s, &noise, own);
    const struct excess x = sample_excess(s, s->y, s->sigma, limit);
    const struct system_part scale = whole_scale(s, before, &noise, &changed),
                             system = scale.found
                                          ? scale
                                          : find_system(w, s, &noise, &changed, own, before);
    take_worst(w, s, x, limit);
    if (x.worst <= limit && !system.found) {
        w->o->word = PLUMB_WORD_ROUNDING;
        say_numbers(w, s, "what right arithmetic shows", "the largest excess over rounding once");
        return PLUMB_OK;
    }
    for (uint64_t i = 0; i < s->n; i++)
        own[i] = s->sigma[i] * s->sigma[i];
    if (x.worst > limit && !scale.found && rounds_more(w, s, &changed, own))
        return PLUMB_OK;
    for (uint64_t i = 0; i < s->n; i++)
        s->sigma[i] = sqrt(own[i]);
    take_worst(w, s, x, limit);
    w->o->word = PLUMB_WORD_FAULT;
    find_pattern(w, s, &system);
    say_numbers(w, s, w->o->pattern[0] ? w->o->pattern : "no simple pattern",
                "the largest excess over rounding once");
    return PLUMB_OK;
}

static enum plumb_code judge_stored(struct whole *w, const double *before, struct plumb_error *err)
{
    struct sample s;
    if (!make_sample(w, part_type(w->got->dtype), NULL, &s))
        return plumb_no_memory(err);
    uint64_t differing = 0;
    for (uint64_t i = 0; i < s.n; i++)
        differing += !s.out[i] && s.got[i] != plumb_round_to(s.dtype, s.y[i]);
    w->o->differing = s.counted ? (double)differing / (double)s.counted : 0;
    w->o->limit = sample_limit(s.counted, s.terms);
    if (find_special(w, &s, before))
        return PLUMB_OK;
    char same[120];
    plain_print(same, sizeof same, "what %.80s gives, bit for bit", name_of_before(w));
    if (all_same(&s, before, false))
        say(w->o, PLUMB_WORD_SAME, same);
    else if (all_same(&s, s.y, true))
        say(w->o, PLUMB_WORD_SAME, "the correctly rounded reference, bit for bit");
    else if (!s.counted)
        say(w->o, PLUMB_WORD_NOT_JUDGED, "no finite number, as before");
    else
        return judge_numbers(w, &s, before, err);
    return PLUMB_OK;
}

/* ---- One item -------------------------------------------------------------------------------- */

static bool is_real(const struct plumb_tensor *t)
{
    const enum plumb_kind kind = plumb_dtype_info(t->dtype)->kind;
    return kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX;
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    bool same = a->rank == b->rank;
    for (unsigned d = 0; same && d < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

/* Kind, shape and type: true when there are numbers to judge. */
static bool comparable(const struct whole_item *item, struct plumb_opinion *o)
{
    const struct plumb_arg *a = item->before, *b = item->after;
    char x[160], y[160];
    if (!a || !b || a->kind != b->kind) {
        say(o, PLUMB_WORD_FAULT,
            !a   ? "only after"
            : !b ? "only before"
                 : "a result of another kind than before");
        return false;
    }
    if (a->kind != PLUMB_ARG_TENSOR) {
        const bool whole = a->kind == PLUMB_ARG_INT || a->kind == PLUMB_ARG_BOOL;
        say(o,
            !whole                     ? PLUMB_WORD_NOT_JUDGED
            : a->integer == b->integer ? PLUMB_WORD_SAME
                                       : PLUMB_WORD_FAULT,
            !whole                     ? "neither a tensor nor a whole number"
            : a->integer == b->integer ? "the same number"
                                       : "another number than before");
        return false;
    }
    if (!same_shape(a->tensor, b->tensor)) {
        o->word = PLUMB_WORD_FAULT;
        plain_print(o->pattern, sizeof o->pattern, "another shape");
        plain_print(o->why, sizeof o->why, "a result of shape %s instead of %s",
                    plumb_shape_text(b->tensor, x, sizeof x),
                    plumb_shape_text(a->tensor, y, sizeof y));
        return false;
    }
    if (a->tensor->dtype != b->tensor->dtype) {
        o->word = PLUMB_WORD_FAULT;
        plain_print(o->pattern, sizeof o->pattern, "another type");
        plain_print(o->why, sizeof o->why, "a result of type %s instead of %s",
                    plumb_dtype_info(b->tensor->dtype)->name,
                    plumb_dtype_info(a->tensor->dtype)->name);
        return false;
    }
    if (!b->tensor->count) {
        say(o, PLUMB_WORD_SAME, "an empty tensor, as before");
        return false;
    }
    if (plumb_dtype_info(b->tensor->dtype)->bits < 8 || !item->y) {
        say(o, PLUMB_WORD_NOT_JUDGED,
            !item->y ? "the reference has no such result" : "packed 4-bit numbers are not judged");
        return false;
    }
    return true;
}

static enum plumb_code judge_tensor(const struct whole_item *item, struct plumb_opinion *opinion,
                                    struct plumb_error *err)
{
    struct whole w = {.item = item, .got = item->after->tensor, .o = opinion};
    const size_t n = (size_t)w.got->count * plumb_dtype_parts(w.got->dtype);
    double *before = arena_array(&w.arena, n + 1, sizeof *before);
    w.scratch = arena_array(&w.arena, n + 1, sizeof *w.scratch);
    w.squares = arena_array(&w.arena, n + 1, sizeof *w.squares);
    enum plumb_code code = before && w.scratch && w.squares ? PLUMB_OK : plumb_no_memory(err);
    bool fault = false;
    if (!code && !is_real(w.got)) {
        plumb_tensor_to_f64(w.got, 0, (size_t)w.got->count, w.scratch);
        plumb_tensor_to_f64(item->before->tensor, 0, (size_t)w.got->count, before);
        whole_decide(item, w.scratch, before, n, opinion);
    } else if (!code) {
        plumb_tensor_to_f64(item->before->tensor, 0, (size_t)w.got->count, before);
        if (item->formula)
            code = judge_formula(&w, &fault, err);
        if (!code && !fault)
            code = judge_stored(&w, before, err);
    }
    arena_free(&w.arena);
    return code;
}

enum plumb_code whole_judge(const struct whole_item *item, struct plumb_opinion *opinion,
                            struct plumb_error *err)
{
    *opinion = (struct plumb_opinion){0};
    if (!comparable(item, opinion))
        return PLUMB_OK;
    /* Numbers have points, whatever the program's locale says. */
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    locale_t before = c ? uselocale(c) : (locale_t)0;
    const enum plumb_code code = judge_tensor(item, opinion, err);
    if (c) {
        uselocale(before);
        freelocale(c);
    }
    return code;
}
