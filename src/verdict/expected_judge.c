/* From numbers to a word. */
#include "verdict/expected_parts.h"

#include "base/buf.h"
#include "base/number.h"
#include "base/plain.h"
#include "verdict/spell.h"
#include "verdict/ties.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *plumb_word_text(enum plumb_word word)
{
    static const char *const texts[] = {
        "same", "rounding", "tie", "inherited", "cheaper arithmetic", "fault", "not judged"};
    _Static_assert(sizeof texts / sizeof *texts == PLUMB_WORDS, "a text for each word");
    return word < PLUMB_WORDS ? texts[word] : "";
}

unsigned plumb_word_severity(enum plumb_word word)
{
    static const unsigned severity[PLUMB_WORDS] = {
        [PLUMB_WORD_SAME] = 0,      [PLUMB_WORD_ROUNDING] = 1,   [PLUMB_WORD_TIE] = 2,
        [PLUMB_WORD_INHERITED] = 3, [PLUMB_WORD_NOT_JUDGED] = 4, [PLUMB_WORD_CHEAPER] = 5,
        [PLUMB_WORD_FAULT] = 6,
    };
    return severity[word];
}

static void say(struct plumb_opinion *o, enum plumb_word word, const char *why)
{
    o->word = word;
    snprintf(o->why, sizeof o->why, "%s", why);
}

/* ---- What is no floating-point tensor -------------------------------------------------------- */

static enum plumb_code judge_other(const struct plumb_arg *reference, const struct plumb_arg *got,
                                   struct plumb_opinion *o)
{
    if (reference->kind != got->kind)
        say(o, PLUMB_WORD_FAULT, "a result of another kind than the reference's");
    else if (got->kind == PLUMB_ARG_NONE)
        say(o, PLUMB_WORD_NOT_JUDGED, "no result, as in the reference");
    else if ((got->kind == PLUMB_ARG_INT || got->kind == PLUMB_ARG_BOOL) &&
             got->integer == reference->integer)
        say(o, PLUMB_WORD_SAME, "the same number");
    else if (got->kind == PLUMB_ARG_INT || got->kind == PLUMB_ARG_BOOL)
        say(o, PLUMB_WORD_FAULT, "another number than the reference's");
    else
        say(o, PLUMB_WORD_NOT_JUDGED, "neither a tensor nor a whole number");
    return PLUMB_OK;
}

/* A whole number, little end first, with all its digits. */
static void whole_text(enum plumb_dtype dtype, const unsigned char *bytes, char *text, size_t room)
{
    const size_t size = plumb_dtype_info(dtype)->bits / 8;
    const bool sign = plumb_dtype_info(dtype)->kind == PLUMB_KIND_INT;
    uint64_t value = sign && size && size <= 8 && bytes[size - 1] & 0x80 ? UINT64_MAX : 0;
    memcpy(&value, bytes, size < 8 ? size : 8);
    if (sign)
        snprintf(text, room, "%" PRId64, (int64_t)value);
    else
        snprintf(text, room, "%" PRIu64, value);
}

/* Bit for bit, as float64 where that holds them, and as stored where it does not. */
static void judge_integers(struct plumb_expected *e, enum plumb_expected_part part, size_t k,
                           const struct plumb_tensor *y, const struct plumb_tensor *got,
                           struct plumb_opinion *o)
{
    const size_t size = plumb_dtype_info(got->dtype)->bits / 8;
    char numbers[2][24];
    uint64_t differing = 0;
    bool large = false;
    for (uint64_t i = 0; i < got->count; i++) {
        unsigned char a[16] = {0}, b[16] = {0};
        double x, z;
        plumb_tensor_gather(y, i, 1, a);
        plumb_tensor_gather(got, i, 1, b);
        plumb_tensor_to_f64(y, i, 1, &x);
        plumb_tensor_to_f64(got, i, 1, &z);
        const bool same = x == z && (y->dtype != got->dtype || memcmp(a, b, size) == 0);
        large |= fabs(x) > 0x1p53 || fabs(z) > 0x1p53;
        if (!same && !differing++) {
            o->at = i;
            o->got = z;
            o->expected = x;
            whole_text(got->dtype, b, numbers[0], sizeof numbers[0]);
            whole_text(y->dtype, a, numbers[1], sizeof numbers[1]);
        }
    }
    o->differing = got->count ? (double)differing / (double)got->count : 0;
    if (!differing) {
        say(o, PLUMB_WORD_SAME, "all numbers are the reference's");
        return;
    }
    o->worst = INFINITY;
    o->word = PLUMB_WORD_FAULT;
    if (!large) /* patterns are looked for in float64 */
        pattern_whole(e, part, k, y, got, o);
    plain_print(o->why, sizeof o->why,
                "%s%s%llu of %llu whole numbers differ, the first at element %llu: %s instead of "
                "%s",
                o->pattern, o->pattern[0] ? "; " : "", (unsigned long long)differing,
                (unsigned long long)got->count, (unsigned long long)o->at, numbers[0], numbers[1]);
}

/* ---- NaN and infinities ---------------------------------------------------------------------- */

/* Whether the type's largest number is so near that noise decides on which side of it the result
 * is. */
static bool near_overflow(const struct sample *s, uint64_t i)
{
    const double most = plumb_dtype_info(s->dtype)->max_finite,
                 edge = most + sample_ulp(s->dtype, most) / 2;
    return isfinite(s->y[i]) && fabs(fabs(s->y[i]) - edge) <= 8 * s->sigma[i];
}

/* Whether an element is what the type makes of the reference. */
static bool is_stored(const struct sample *s, uint64_t i)
{
    const double stored = plumb_round_to(s->dtype, s->y[i]);
    return s->got[i] == stored || (isnan(s->got[i]) && isnan(stored));
}

/* The first element where one side only is not finite, or the infinities are others. */
static bool find_special(const struct sample *s, uint64_t *at, uint64_t *n)
{
    const bool overflows_to_nan = isnan(plumb_round_to(s->dtype, INFINITY));
    *n = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double y = s->y[i], got = s->got[i];
        if ((isfinite(y) && isfinite(got)) || is_stored(s, i) || (isinf(y) && got == y))
            continue;
        const bool near =
            near_overflow(s, i) && (isnan(got) ? overflows_to_nan : signbit(y) == signbit(got));
        if (!near && !(*n)++)
            *at = i;
    }
    return *n > 0;
}

static void say_special(const struct plumb_expected *e, const struct sample *s,
                        const struct plumb_tensor *got, uint64_t at, uint64_t n,
                        struct plumb_opinion *o)
{
    struct buf place = {0};
    spell_place(&place, got, at);
    o->word = PLUMB_WORD_FAULT;
    o->worst = INFINITY;
    o->at = at;
    o->got = s->got[at];
    o->expected = s->y[at];
    snprintf(o->pattern, sizeof o->pattern, "%s where the reference has %s",
             isnan(o->got)   ? "NaN"
             : isinf(o->got) ? "an infinity"
                             : "a number",
             isnan(o->expected)   ? "NaN"
             : isinf(o->expected) ? "an infinity"
                                  : "a number");
    pattern_special(e, got, s, o);
    plain_print(o->why, sizeof o->why, "%s, %llu of %llu, the first at %.*s: %.9g instead of %.9g",
                o->pattern, (unsigned long long)n, (unsigned long long)s->n, (int)place.size,
                place.data ? place.data : "", o->got, o->expected);
    buf_free(&place);
}

/* ---- Floating-point tensors ------------------------------------------------------------------ */

static uint64_t count_differing(const struct sample *s)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->n; i++)
        n += !is_stored(s, i);
    return n;
}

static void say_where(const struct plumb_tensor *got, struct plumb_opinion *o, char *text,
                      size_t size)
{
    struct buf place = {0};
    spell_place(&place, got, o->at);
    plain_print(text, size, "worst at %.*s: %.9g instead of %.9g", (int)place.size,
                place.data ? place.data : "", o->got, o->expected);
    buf_free(&place);
}

static void say_numbers(const struct plumb_tensor *got, struct plumb_opinion *o, const char *lead)
{
    char where[200];
    say_where(got, o, where, sizeof where);
    plain_print(
        o->why, sizeof o->why,
        "%s; %.3g %% of the elements are not the correctly rounded ones, the largest excess is "
        "%.3g sigma (limit %.3g), %s",
        lead, 100 * o->differing, o->worst, o->limit, where);
}

/* Whether repeats of the program differ as much; where they do not, what they show of the worst
 * element is added to the sentence by say_repeats. False when out of memory. */
static bool judge_repeats(const struct expected_tensor *t, const struct plumb_tensor *got,
                          const struct sample *s, struct plumb_opinion *o)
{
    const double *sigma = repeat_sigma(t, s);
    if (!sigma)
        return false;
    const struct excess x = sample_excess(s, s->y, sigma, o->limit);
    if (x.worst > o->limit || system_find(s, s->y, sigma, false).found)
        return true;
    char lead[160], apart[NUMBER_BYTES], times[NUMBER_BYTES];
    snprintf(
        lead, sizeof lead,
        "differs between repeats of the same program by as much (by %s there, %s times what "
        "rounding leaves)",
        number_brief(sigma[o->at], 3, apart),
        number_brief(s->sigma[o->at] > 0 ? sigma[o->at] / s->sigma[o->at] : INFINITY, 3, times));
    o->word = PLUMB_WORD_ROUNDING;
    o->unsteady = true;
    say_numbers(got, o, lead);
    o->worst = x.worst;
    return true;
}

static void say_repeats(const struct expected_tensor *t, const struct sample *s,
                        struct plumb_opinion *o)
{
    const unsigned n = repeat_count(t);
    const size_t used = strlen(o->why);
    if (!n) {
        snprintf(o->why + used, sizeof o->why - used, "; the repeats have other inputs");
        return;
    }
    const double apart = repeat_apart(t, s, o->at), off = fabs(o->got - o->expected);
    snprintf(o->why + used, sizeof o->why - used, "; %s %s",
             4 * apart < off ? "the same in" : "not reproducible: otherwise in",
             n == 1 ? "the repeat" : "the repeats");
}

/* *again: it is not even, and more could be measured to be sure. */
static enum plumb_code judge_sample(struct plumb_expected *e, enum plumb_expected_part part,
                                    size_t k, const struct plumb_tensor *got,
                                    const struct sample *s, bool *again, struct plumb_opinion *o,
                                    struct plumb_error *err)
{
    const uint64_t differing = count_differing(s);
    uint64_t special = 0, n_special;
    o->limit = sample_limit(s->counted, s->terms);
    o->differing = s->counted ? (double)differing / (double)s->counted : 0;
    if (find_special(s, &special, &n_special)) {
        say_special(e, s, got, special, n_special, o);
        return PLUMB_OK;
    }
    if (!s->counted) {
        say(o, PLUMB_WORD_NOT_JUDGED, "no finite number, as in the reference");
        return PLUMB_OK;
    }
    if (!differing) {
        say(o, PLUMB_WORD_SAME, "the correctly rounded reference, bit for bit");
        return PLUMB_OK;
    }
    const struct excess x = sample_excess(s, s->y, s->sigma, o->limit);
    o->worst = x.worst;
    o->at = x.at;
    o->got = s->got[x.at];
    o->expected = s->y[x.at];
    const bool exact = expected_is_exact(e, part);
    struct system_part system = {0};
    if (!exact)
        system = system_find(s, s->y, s->sigma, false);
    const bool even = x.worst <= o->limit && !system.found;
    if (!even && !exact && !e->whole) {
        *again = true;
        return PLUMB_OK;
    }
    const struct expected_tensor *t = &e->parts[part][k];
    const bool repeated = !even && !exact && (repeat_count(t) || repeat_strangers(t));
    if (repeated && repeat_count(t) && !judge_repeats(t, got, s, o))
        return plumb_no_memory(err);
    if (o->unsteady)
        return PLUMB_OK;
    bool found = false, coarse = false;
    const enum plumb_code code = arithmetic_find(e, part, k, s, even, &found, &coarse, o, err);
    if (code)
        return code;
    if (found && coarse && pattern_explains(e, part, k, got, s, &system, o)) {
        found = false;
        o->arithmetic[0] = '\0';
    }
    if (found) {
        o->word = PLUMB_WORD_CHEAPER;
        o->allowed = arithmetic_allowed(e->options.arithmetic, o->arithmetic);
        say_numbers(got, o, o->arithmetic);
        if (repeated)
            say_repeats(t, s, o);
        return PLUMB_OK;
    }
    if (even) {
        o->word = PLUMB_WORD_ROUNDING;
        say_numbers(got, o, "what right arithmetic shows");
        return PLUMB_OK;
    }
    o->word = PLUMB_WORD_FAULT;
    if (!o->pattern[0])
        pattern_find(e, part, k, got, s, &system, o);
    say_numbers(got, o, o->pattern[0] ? o->pattern : "no simple pattern");
    if (repeated)
        say_repeats(t, s, o);
    return PLUMB_OK;
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    bool same = a->rank == b->rank;
    for (unsigned d = 0; same && d < a->rank; d++)
        same = a->shape[d] == b->shape[d];
    return same;
}

static bool is_whole(const struct plumb_tensor *t)
{
    const enum plumb_kind kind = plumb_dtype_info(t->dtype)->kind;
    return kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX;
}

static enum plumb_code judge_tensor(struct plumb_expected *e, enum plumb_expected_part part,
                                    size_t k, const struct plumb_tensor *y,
                                    const struct plumb_tensor *got, struct plumb_opinion *o,
                                    struct plumb_error *err)
{
    if (!same_shape(y, got)) {
        char a[160], b[160];
        o->word = PLUMB_WORD_FAULT;
        o->worst = INFINITY;
        snprintf(o->pattern, sizeof o->pattern, "another shape");
        snprintf(o->why, sizeof o->why, "a result of shape %s instead of %s",
                 plumb_shape_text(got, a, sizeof a), plumb_shape_text(y, b, sizeof b));
        return PLUMB_OK;
    }
    if (is_whole(y) != is_whole(got) ||
        plumb_dtype_parts(y->dtype) != plumb_dtype_parts(got->dtype)) {
        say(o, PLUMB_WORD_FAULT, "a result of another kind of numbers than the reference's");
        return PLUMB_OK;
    }
    if (plumb_dtype_info(got->dtype)->bits < 8) {
        say(o, PLUMB_WORD_NOT_JUDGED, "packed 4-bit numbers are not judged");
        return PLUMB_OK;
    }
    if (is_whole(y)) {
        judge_integers(e, part, k, y, got, o);
        return PLUMB_OK;
    }
    if (!y->count) {
        say(o, PLUMB_WORD_NOT_JUDGED, "an empty tensor");
        return PLUMB_OK;
    }
    if (expected_is_same(y, got)) {
        o->limit = sample_limit(got->count * plumb_dtype_parts(got->dtype), 1);
        say(o, PLUMB_WORD_SAME, "the correctly rounded reference, bit for bit");
        return PLUMB_OK;
    }
    struct arena arena = {0};
    struct sample s;
    const bool exact = expected_is_exact(e, part);
    enum plumb_code code = PLUMB_OK;
    bool whole = false, again = true;
    while (again && !code) {
        again = false;
        code = exact ? PLUMB_OK : expected_measure(e, whole, err);
        if (!code)
            code = sample_load(e, part, k, got, &arena, &s, err);
        if (!code)
            code = judge_sample(e, part, k, got, &s, &again, o, err);
        arena_free(&arena);
        whole = true;
    }
    return code;
}

static const struct plumb_arg nothing = {.kind = PLUMB_ARG_NONE};

static const struct plumb_arg *reference_of(const struct plumb_expected *e,
                                            enum plumb_expected_part part, size_t k)
{
    const struct plumb_result *r = e->reference;
    const struct plumb_arg *list = part == PLUMB_PART_OUTPUT     ? r->outputs
                                   : part == PLUMB_PART_GRADIENT ? r->grads
                                                                 : r->written;
    return k < e->n_parts[part] ? &list[k] : &nothing;
}

/* What was decided, as far as one part shows it. */
static enum plumb_code settle_alone(struct plumb_expected *e, enum plumb_expected_part part,
                                    size_t k, const struct plumb_arg *got, struct plumb_error *err)
{
    if (e->given || part == PLUMB_PART_WRITTEN || got->kind != PLUMB_ARG_TENSOR)
        return PLUMB_OK;
    struct plumb_arg *list = arena_array(&e->arena, k + 1, sizeof *list);
    if (!list)
        return plumb_no_memory(err);
    memset(list, 0, (k + 1) * sizeof *list);
    list[k] = *got;
    const enum plumb_code code = part == PLUMB_PART_OUTPUT
                                     ? plumb_expected_given(e, list, k + 1, NULL, 0, err)
                                     : plumb_expected_given(e, NULL, 0, list, k + 1, err);
    e->given = false;
    return code;
}

enum plumb_code plumb_expected_judge(struct plumb_expected *expected, enum plumb_expected_part part,
                                     size_t k, const struct plumb_arg *got,
                                     struct plumb_opinion *opinion, struct plumb_error *err)
{
    *opinion = (struct plumb_opinion){0};
    if (!got)
        got = &nothing;
    if (expected_is_random(expected)) {
        say(opinion, PLUMB_WORD_NOT_JUDGED, "the results are random");
        return PLUMB_OK;
    }
    enum plumb_code code = settle_alone(expected, part, k, got, err);
    if (!code && got->kind == PLUMB_ARG_TENSOR)
        code = decision_by_noise(expected, part, k, got->tensor, err);
    if (code)
        return code;
    const struct plumb_arg *y = reference_of(expected, part, k);
    if (y->kind == PLUMB_ARG_NONE && got->kind != PLUMB_ARG_NONE) {
        say(opinion, PLUMB_WORD_NOT_JUDGED, "plumb's operator does not determine this result");
        return PLUMB_OK;
    }
    if (y->kind != PLUMB_ARG_TENSOR || got->kind != PLUMB_ARG_TENSOR)
        return judge_other(y, got, opinion);
    code = judge_tensor(expected, part, k, y->tensor, got->tensor, opinion, err);
    if (!code && expected->dropout)
        dropout_tell(expected, part, k, opinion);
    else if (!code)
        decision_tell(expected, part, k, opinion);
    return code;
}
