/* Right numbers in wrong places: exchanged axes, numbers rolled or reversed along one, rows of
 * other rows, or merely another order. A move counts when every element that is off fits, and
 * numbers from elsewhere would not. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"
#include "verdict/stale.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { EVERY_SHIFT = 4096, MOST_SLICES = 2048, MOST_AXES = 6 };

/* How numbers move along an axis; the number at `at` of `size` should have come from. */
enum along { ROLL, SHIFT, REVERSE, PAIRS, DEAL, GATHER };

static bool along_from(enum along kind, uint64_t at, uint64_t size, int64_t by, uint64_t *from)
{
    const int64_t n = (int64_t)size, moved = (int64_t)at - by;
    switch (kind) {
    case ROLL:
        *from = (uint64_t)((moved % n + n) % n);
        return true;
    case SHIFT: /* what comes in at the end is zero */
        *from = (uint64_t)moved;
        return moved >= 0 && moved < n;
    case REVERSE:
        *from = size - 1 - at;
        return true;
    case PAIRS:
        *from = (at ^ 1) < size ? at ^ 1 : at;
        return true;
    case DEAL: /* the second half stands between the first */
        *from = at % 2 * ((size + 1) / 2) + at / 2;
        return true;
    case GATHER: /* the reverse of it */
        *from = at < (size + 1) / 2 ? 2 * at : 2 * (at - (size + 1) / 2) + 1;
        return true;
    }
    return false;
}

struct move {
    const struct off *f;
    bool transposed;
    unsigned axis, other; /* of two that are exchanged */
    uint64_t stride;      /* of the axis */
    uint64_t
        strides[PLUMB_MAX_RANK]; /* of exchanged axes: of the source, in the order of the result */
    uint64_t sizes[PLUMB_MAX_RANK]; /* and their sizes */
    enum along kind;
    int64_t by;
};

/* Whether what stands at i is what stands there when the numbers moved so. */
static bool moved_fits(const struct move *m, uint64_t i)
{
    uint64_t from = 0;
    if (m->transposed) {
        uint64_t left = i;
        for (unsigned d = m->f->rank; d-- > 0; left /= m->sizes[d])
            from += left % m->sizes[d] * m->strides[d];
        return off_fits_from(m->f, i, from);
    }
    const uint64_t size = m->f->axis[m->axis].size, at = i / m->stride % size;
    if (!along_from(m->kind, at, size, m->by, &from))
        return m->f->s->got[i] == 0;
    return off_fits_from(m->f, i, i - at * m->stride + from * m->stride);
}

/* Whether all that is off fits. */
static bool move_fits(const struct move *m)
{
    const struct off *f = m->f;
    for (uint64_t i = 0; i < f->s->n; i++)
        if (f->is[i] && !moved_fits(m, i))
            return false;
    return true;
}

/* And whether all the others do. */
static bool move_is_everywhere(const struct move *m)
{
    const struct off *f = m->f;
    for (uint64_t i = 0; i < f->s->n; i++)
        if (!f->is[i] && !f->s->out[i] && !moved_fits(m, i))
            return false;
    return true;
}

/* Whether a move that fits can be chance: how often do numbers from anywhere fit? */
static bool is_telling(const struct off *f, double candidates)
{
    enum { TRIES = 2048 };
    uint64_t hits = 0, tries = 0, at = 0;
    const uint64_t pairs = f->s->n < TRIES ? f->n * (f->s->n - 1) : TRIES;
    for (uint64_t k = 0; k < TRIES && k < pairs; k++) {
        do
            at = at + 1 < f->s->n ? at + 1 : 0;
        while (!f->is[at]);
        const uint64_t far = k * UINT64_C(0x9E3779B97F4A7C15) % (f->s->n - 1);
        hits += off_fits_from(f, at, (at + 1 + far) % f->s->n);
        tries++;
    }
    return tries && chance_log(f->n, hits, tries) < -14 - log(candidates);
}

/* ---- In words -------------------------------------------------------------------------------- */

static void say_along(const struct move *m, char *text, size_t size)
{
    const struct off_axis *axis = &m->f->axis[m->axis];
    char along[40];
    if (m->f->parts && m->axis + 1 == m->f->rank) {
        plain_print(text, size, "real and imaginary parts are exchanged");
        return;
    }
    if (m->axis + 1 == m->f->got->rank)
        plain_print(along, sizeof along, "the last dimension");
    else
        plain_print(along, sizeof along, "axis %u", m->axis);
    if (m->kind == ROLL && m->by * 2 == (int64_t)axis->size && axis->size > 2)
        plain_print(text, size, "the two halves of %s are exchanged: rolled by %" PRId64, along,
                    m->by);
    else if (m->kind == ROLL)
        plain_print(text, size, "rolled by %" PRId64 " along %s", m->by, along);
    else if (m->kind == SHIFT)
        plain_print(text, size, "off by %s along %s: shifted by %" PRId64 ", with zeros at the end",
                    m->by == 1 || m->by == -1 ? "one" : "some", along, m->by);
    else
        plain_print(text, size, "%s along %s",
                    m->kind == REVERSE ? "reversed"
                    : m->kind == PAIRS ? "neighbours are exchanged"
                    : m->kind == DEAL  ? "the two halves are interleaved"
                                       : "even and odd places are taken apart",
                    along);
}

static void say_move(const struct move *m, char *text)
{
    char what[120], subject[160];
    const bool last = m->other + 1 == m->f->rank && m->axis + 2 == m->f->rank;
    if (m->transposed && last)
        plain_print(what, sizeof what, "transposed: the last two dimensions are exchanged");
    else if (m->transposed)
        plain_print(what, sizeof what, "transposed: axes %u and %u are exchanged", m->axis,
                    m->other);
    else
        say_along(m, what, sizeof what);
    if (move_is_everywhere(m)) {
        plain_print(text, PATTERN_TEXT, "%s; all %" PRIu64 " elements fit", what, m->f->s->counted);
        return;
    }
    off_say_subject(m->f, subject, sizeof subject);
    plain_print(text, PATTERN_TEXT, "%s right numbers of other places: %s", subject, what);
}

/* ---- Axes ------------------------------------------------------------------------------------ */

/* What was written with two axes exchanged, and is read in the order of the shape. */
static bool find_transposed(struct move *m)
{
    const struct off *f = m->f;
    const unsigned rank = f->rank < MOST_AXES ? f->rank : MOST_AXES;
    m->transposed = true;
    for (unsigned b = rank; b-- > 1;)
        for (unsigned a = b; a-- > 0;) {
            if (f->axis[a].size < 2 || f->axis[b].size < 2)
                continue;
            for (unsigned d = 0; d < f->rank; d++) {
                const unsigned from = d == a ? b : d == b ? a : d;
                m->strides[d] = off_stride(f, from);
                m->sizes[d] = f->axis[from].size;
            }
            m->axis = a;
            m->other = b;
            if (move_fits(m))
                return true;
        }
    m->transposed = false;
    return false;
}

/* Near shifts first: they are the likely ones. */
static bool find_shift(struct move *m, enum along kind)
{
    const int64_t size = (int64_t)m->f->axis[m->axis].size;
    const int64_t most = kind == SHIFT ? 8 : size / 2 < EVERY_SHIFT ? size / 2 : EVERY_SHIFT;
    m->kind = kind;
    for (int64_t by = 1; by <= most && by < size; by++)
        for (int back = 0; back < 2; back++) {
            m->by = back ? -by : by;
            if (move_fits(m))
                return true;
        }
    m->by = size / 2;
    return kind == ROLL && size > 1 && move_fits(m);
}

static bool find_along(struct move *m)
{
    static const enum along fixed[] = {REVERSE, PAIRS, DEAL, GATHER};
    for (m->axis = m->f->rank; m->axis-- > 0;) {
        if (m->f->axis[m->axis].size < 2)
            continue;
        m->stride = off_stride(m->f, m->axis);
        if (find_shift(m, ROLL) || find_shift(m, SHIFT))
            return true;
        for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++) {
            m->kind = fixed[k];
            if (m->f->axis[m->axis].size > 2 && move_fits(m))
                return true;
        }
    }
    return false;
}

/* ---- Slices of other slices ------------------------------------------------------------------ */

/* Whether what is off at index `to` of the axis is what belongs at index `from`. */
static bool slice_fits(const struct off *f, unsigned axis, uint64_t to, uint64_t from)
{
    const uint64_t stride = off_stride(f, axis), size = f->axis[axis].size;
    for (uint64_t outer = 0; outer < f->s->n; outer += stride * size)
        for (uint64_t k = 0; k < stride; k++) {
            const uint64_t i = outer + to * stride + k;
            if (f->is[i] && !off_fits_from(f, i, outer + from * stride + k))
                return false;
        }
    return true;
}

/* Each index that is off holds what belongs to another one. *first, *source: an example;
 * *permuted: no two the same. */
static bool find_slices(const struct off *f, unsigned axis, uint64_t *first, uint64_t *source,
                        bool *permuted)
{
    const struct off_axis *a = &f->axis[axis];
    bool *used = arena_array(f->s->arena, (size_t)a->size + 1, sizeof *used);
    if (!used || a->size > MOST_SLICES || a->size < 3 || f->s->n / a->size < 2)
        return false;
    *permuted = true;
    for (uint64_t to = 0; to < a->size; to++) {
        uint64_t from = 0;
        if (!a->at[to])
            continue;
        while (from < a->size && (from == to || !slice_fits(f, axis, to, from)))
            from++;
        if (from == a->size)
            return false;
        if (to == a->first) {
            *first = to;
            *source = from;
        }
        *permuted &= a->at[from] && !used[from];
        used[from] = true;
    }
    return true;
}

static bool say_slices(const struct off *f, char *text)
{
    for (unsigned axis = 0; axis < f->rank; axis++) {
        uint64_t to = 0, from = 0;
        bool permuted;
        char word[40];
        if (!find_slices(f, axis, &to, &from, &permuted))
            continue;
        off_axis_word(f, axis, word, sizeof word);
        plain_print(text, PATTERN_TEXT,
                    "%s along axis %u: %" PRIu64 " of %" PRIu64
                    " hold what belongs to another %s, %" PRIu64 " that of %" PRIu64,
                    permuted ? "permuted" : "repeated", axis, f->axis[axis].n, f->axis[axis].size,
                    word, to, from);
        return true;
    }
    return false;
}

/* ---- Any order ------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What is off are the same numbers in another order, and far from where they belong: numbers that
 * lie close together look like each other anyway. */
static bool is_permuted(const struct off *f)
{
    const struct sample *s = f->s;
    double *a = arena_array(s->arena, (size_t)f->n + 1, sizeof *a);
    double *b = arena_array(s->arena, (size_t)f->n + 1, sizeof *b);
    if (!a || !b || s->counted != s->n || f->n < 4)
        return false;
    uint64_t n = 0, moved = 0, far = 0;
    double noise = 0;
    for (uint64_t i = 0; i < s->n; i++)
        if (f->is[i]) {
            noise += 2 * f->limit * s->sigma[i] / (double)f->n;
            a[n] = s->got[i];
            b[n++] = plumb_round_to(s->dtype, s->y[i]);
            moved += fabs(s->got[i] - s->y[i]) > 16 * s->ulp[i];
        }
    qsort(a, (size_t)n, sizeof *a, by_value);
    qsort(b, (size_t)n, sizeof *b, by_value);
    for (uint64_t i = 0; i < n; i++)
        far += fabs(a[i] - b[i]) > 2 * sample_ulp(s->dtype, b[i]) + noise;
    return far * 100 <= n && moved * 2 > n;
}

bool pattern_moved(const struct off *f, char *text)
{
    struct move m = {.f = f};
    if (!f->n)
        return false;
    if (is_telling(f, 1e4)) {
        if (find_transposed(&m) || find_along(&m)) {
            say_move(&m, text);
            return true;
        }
        if (say_slices(f, text))
            return true;
    }
    if (!is_permuted(f))
        return false;
    plain_print(text, PATTERN_TEXT, "permuted: %" PRIu64 " right numbers in other places", f->n);
    return true;
}
