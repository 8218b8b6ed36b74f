/* Which elements are off, and where they lie: rows, columns, tiles, what is behind the last tile.
 * */
#include "verdict/expected_pattern.h"

#include "base/buf.h"
#include "base/plain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TILE_LEAST = 8, TILE_MOST = 256 };

/* ---- Finding them ---------------------------------------------------------------------------- */

static bool set_axes(struct off *f)
{
    f->parts = plumb_dtype_parts(f->got->dtype) == 2;
    f->rank = f->got->rank + f->parts;
    for (unsigned d = 0; d < f->rank; d++) {
        f->axis[d].size = d < f->got->rank ? (uint64_t)f->got->shape[d] : 2;
        f->axis[d].at = arena_array(f->s->arena, (size_t)f->axis[d].size + 1, sizeof(bool));
        if (!f->axis[d].at)
            return false;
    }
    return true;
}

static void measure_axis(struct off_axis *axis)
{
    uint64_t before = 0;
    axis->step = 1;
    for (uint64_t k = 0; k < axis->size; k++) {
        if (!axis->at[k])
            continue;
        if (axis->n == 0)
            axis->first = k;
        else if (axis->n == 1)
            axis->step = k - before;
        else if (k - before != axis->step)
            axis->step = 0;
        axis->last = before = k;
        axis->n++;
    }
}

/* All of them, or so many without an order that it makes no difference. */
static bool is_all(const struct off_axis *axis)
{
    const bool uneven = axis->step == 0 && axis->n > 3;
    return axis->n == axis->size || (uneven && axis->n * 4 >= axis->size);
}

static bool is_beyond(const struct off *f, uint64_t i)
{
    const struct sample *s = f->s;
    return !s->out[i] && fabs(s->got[i] - s->y[i]) > s->ulp[i] / 2 + f->limit * s->sigma[i];
}

/* Not finite on one side only, or another infinity. */
static bool is_special(const struct off *f, uint64_t i)
{
    const double y = f->s->y[i], got = f->s->got[i];
    return f->s->out[i] && !(isnan(y) && isnan(got)) && got != y &&
           got != plumb_round_to(f->s->dtype, y);
}

static bool find(struct off *f, bool (*is_off)(const struct off *, uint64_t))
{
    const struct sample *s = f->s;
    f->is = arena_array(s->arena, (size_t)s->n + 1, sizeof *f->is);
    if (!f->is || s->n != f->got->count * plumb_dtype_parts(f->got->dtype) || !set_axes(f))
        return false;
    for (uint64_t i = 0; i < s->n; i++) {
        f->is[i] = is_off(f, i);
        if (!f->is[i])
            continue;
        f->n++;
        uint64_t left = i;
        for (unsigned d = f->rank; d-- > 0; left /= f->axis[d].size)
            f->axis[d].at[left % f->axis[d].size] = true;
    }
    for (unsigned d = 0; d < f->rank; d++) {
        measure_axis(&f->axis[d]);
        f->of *= is_all(&f->axis[d]) ? f->axis[d].size : f->axis[d].n;
    }
    return true;
}

bool off_find(struct off *f, const struct plumb_tensor *got, const struct sample *s, double limit)
{
    *f = (struct off){.got = got, .s = s, .limit = limit, .of = 1};
    return find(f, is_beyond);
}

bool off_find_special(struct off *f, const struct plumb_tensor *got, const struct sample *s)
{
    *f = (struct off){.got = got, .s = s, .of = 1};
    return find(f, is_special);
}

double off_room(const struct off *f, uint64_t i, double expected)
{
    const struct sample *s = f->s;
    const double noise = 2 * f->limit * fmax(s->sigma[i], s->u * fabs(expected));
    return 0.501 * sample_ulp(s->dtype, expected) + noise;
}

bool off_fits(const struct off *f, uint64_t i, double expected)
{
    return isfinite(expected) && fabs(f->s->got[i] - expected) <= off_room(f, i, expected);
}

bool off_fits_from(const struct off *f, uint64_t i, uint64_t from)
{
    const struct sample *s = f->s;
    const double noise = 2 * f->limit * fmax(s->sigma[i], s->sigma[from]);
    return fabs(s->got[i] - s->y[from]) <= 0.501 * s->ulp[from] + noise;
}

uint64_t off_stride(const struct off *f, unsigned axis)
{
    uint64_t stride = 1;
    for (unsigned d = f->rank; d-- > axis + 1;)
        stride *= f->axis[d].size;
    return stride;
}

/* ---- One axis in words ----------------------------------------------------------------------- */

static bool is_range(const struct off_axis *axis)
{
    return axis->n && axis->n == axis->last - axis->first + 1;
}

/* Real and imaginary. */
static bool is_of_parts(const struct off *f, unsigned axis)
{
    return f->parts && axis + 1 == f->rank;
}

/* "row", "column", "element" where these have a meaning, else NULL. */
static const char *noun_of(const struct off *f, unsigned axis)
{
    const unsigned rank = f->got->rank;
    if (is_of_parts(f, axis))
        return "part";
    return axis + 1 == rank ? rank == 1 ? "place" : "column" : rank == 2 ? "row" : NULL;
}

void off_axis_word(const struct off *f, unsigned axis, char *text, size_t size)
{
    const char *noun = noun_of(f, axis);
    if (noun)
        plain_print(text, size, "%s", noun);
    else
        plain_print(text, size, "index of axis %u", axis);
}

static const char *ordinal(uint64_t n)
{
    const uint64_t tail = n % 100;
    return tail >= 11 && tail <= 13 ? "th"
           : n % 10 == 1            ? "st"
           : n % 10 == 2            ? "nd"
           : n % 10 == 3            ? "rd"
                                    : "th";
}

void off_say_axis(const struct off *f, unsigned axis, char *text, size_t size)
{
    const struct off_axis *a = &f->axis[axis];
    const char *noun = noun_of(f, axis);
    const char *one = noun ? noun : "index", *many = noun ? "s" : "";
    char of[32] = "";
    text[0] = '\0';
    if (is_all(a) || !a->n)
        return;
    if (is_of_parts(f, axis)) {
        plain_print(text, size, "the %s parts", a->first ? "imaginary" : "real");
        return;
    }
    if (!noun) {
        plain_print(of, sizeof of, " of axis %u", axis);
        many = a->n > 1 ? "es" : "";
    }
    if (a->n == 1)
        plain_print(text, size, "%s %" PRIu64 "%s", one, a->first, of);
    else if (is_range(a))
        plain_print(text, size, "%s%s %" PRIu64 " to %" PRIu64 "%s", one, many, a->first, a->last,
                    of);
    else if (a->step > 1 && a->n > 2)
        plain_print(text, size, "every %" PRIu64 "%s %s%s from %" PRIu64, a->step, ordinal(a->step),
                    one, of, a->first);
    else
        plain_print(text, size, "%" PRIu64 " of %" PRIu64 " %s%s%s from %" PRIu64 " to %" PRIu64,
                    a->n, a->size, one, many, of, a->first, a->last);
}

/* ---- All together ---------------------------------------------------------------------------- */

/* The tile that the range is, or the rest of one at the end: its size, or 0. */
static uint64_t tile_of(const struct off_axis *a)
{
    for (uint64_t size = TILE_LEAST; size <= TILE_MOST && is_range(a); size *= 2)
        if (a->first % size == 0 && a->n == size)
            return size;
    return 0;
}

/* What is behind the last full tile of that size; 0 when it is not. */
static uint64_t tail_of(const struct off_axis *a)
{
    uint64_t tile = 0;
    for (uint64_t size = TILE_LEAST; size <= TILE_MOST; size *= 2)
        if (is_range(a) && a->last + 1 == a->size && a->first && a->first % size == 0 &&
            a->n < size)
            tile = size;
    return tile;
}

/* "[0, 8:16, :]" */
static void put_slices(struct buf *out, const struct off *f)
{
    buf_text(out, "[");
    for (unsigned d = 0; d < f->got->rank; d++) {
        const struct off_axis *a = &f->axis[d];
        buf_text(out, d ? ", " : "");
        if (is_all(a) && a->n > 1)
            buf_text(out, ":");
        else if (a->n == 1)
            buf_printf(out, "%" PRIu64, a->first);
        else
            buf_printf(out, "%" PRIu64 ":%" PRIu64, a->first, a->last + 1);
        if (a->step > 1)
            buf_printf(out, ":%" PRIu64, a->step);
    }
    buf_text(out, "]");
}

/* "row [0, 3]": one row of a tensor with more than two axes. */
static bool put_row(struct buf *out, const struct off *f)
{
    const unsigned last = f->got->rank - 1;
    for (unsigned d = 0; d < last; d++)
        if (f->axis[d].n != 1)
            return false;
    if (f->axis[last].n * 2 < f->axis[last].size)
        return false;
    buf_text(out, "row [");
    for (unsigned d = 0; d < last; d++)
        buf_printf(out, "%s%" PRIu64, d ? ", " : "", f->axis[d].first);
    buf_text(out, "]");
    return true;
}

/* Coordinates in words. */
static void put_place(struct buf *out, const struct off *f, unsigned partial)
{
    char text[100];
    bool first = true;
    if (f->got->rank > 2 && (put_row(out, f) || partial > 1)) {
        if (out->size == 0)
            put_slices(out, f);
        off_say_axis(f, f->rank - 1, text, sizeof text);
        if (f->parts && *text)
            buf_printf(out, ", %s", text);
        return;
    }
    for (unsigned d = 0; d < f->rank; d++) {
        off_say_axis(f, d, text, sizeof text);
        buf_printf(out, "%s%s", *text && !first ? ", " : "", text);
        first &= !*text;
    }
}

/* "8 x 16" */
static void put_sizes(struct buf *out, const struct off *f)
{
    bool first = true;
    for (unsigned d = 0; d < f->rank; d++)
        if (!is_all(&f->axis[d]) && f->axis[d].n > 1) {
            buf_printf(out, "%s%" PRIu64, first ? "" : " x ", f->axis[d].n);
            first = false;
        }
}

void off_say_place(const struct off *f, char *text, size_t size)
{
    struct buf place = {0};
    unsigned partial = 0;
    for (unsigned d = 0; d < f->rank; d++)
        partial += !is_all(&f->axis[d]);
    text[0] = '\0';
    put_place(&place, f, partial);
    if (place.size && !place.failed)
        plain_print(text, size, " in %s", place.data);
    buf_free(&place);
}

void off_say_tile(const struct off *f, char *text, size_t size)
{
    struct buf out = {0};
    unsigned partial = 0, ranges = 0, tiles = 0; /* axes of which some are off, or several */
    uint64_t tail = 0;
    for (unsigned d = 0; d < f->rank; d++) {
        const struct off_axis *axis = &f->axis[d];
        if (is_all(axis))
            continue;
        partial++;
        ranges += axis->n > 1;
        tiles += tile_of(axis) > 0;
        tail = tail_of(axis);
    }
    text[0] = '\0';
    if (partial == 1 && tail) {
        plain_print(text, size, " (behind the last full tile of %" PRIu64 ")", tail);
    } else if (ranges && tiles == ranges) {
        put_sizes(&out, f);
        if (!out.failed)
            plain_print(text, size, " (a tile of %s)", out.data);
    }
    buf_free(&out);
}

void off_say_subject(const struct off *f, char *text, size_t size)
{
    char where[120];
    off_say_place(f, where, sizeof where);
    if (f->n < f->of)
        plain_print(text, size, "%" PRIu64 " of the %" PRIu64 " elements%s %s", f->n, f->of, where,
                    f->n == 1 ? "is" : "are");
    else
        plain_print(text, size, "%" PRIu64 " element%s%s %s", f->n, f->n == 1 ? "" : "s", where,
                    f->n == 1 ? "is" : "are");
}
