/* What a fault looks like: moved, negated, zeroed, scaled or shifted numbers, and where they
 * are. */
#include "verdict/expected_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The elements that are off, beyond what rounding and noise allow. */
struct off {
    const struct sample *s;
    double limit;
    uint64_t n;
    uint64_t width;                      /* of a row: the last dimension */
    uint64_t row_0, row_1, col_0, col_1; /* the smallest block that holds them */
};

static bool close_to(const struct off *f, uint64_t i, double expected)
{
    const struct sample *s = f->s;
    return fabs(s->got[i] - expected) <=
           sample_ulp(s->dtype, expected) + 2 * f->limit * fmax(s->sigma[i], s->u * fabs(expected));
}

static bool is_off(const struct off *f, uint64_t i)
{
    const struct sample *s = f->s;
    return !s->out[i] && fabs(s->got[i] - s->y[i]) > s->ulp[i] / 2 + f->limit * s->sigma[i];
}

static void find_block(struct off *f)
{
    f->row_0 = f->col_0 = UINT64_MAX;
    for (uint64_t i = 0; i < f->s->n; i++) {
        if (!is_off(f, i))
            continue;
        const uint64_t row = i / f->width, col = i % f->width;
        f->row_0 = row < f->row_0 ? row : f->row_0;
        f->row_1 = row > f->row_1 ? row : f->row_1;
        f->col_0 = col < f->col_0 ? col : f->col_0;
        f->col_1 = col > f->col_1 ? col : f->col_1;
        f->n++;
    }
}

/* Where they are, as " in row 3", " in columns 8 to 15"; empty when they are everywhere. */
static void say_block(const struct off *f, char *text, size_t size)
{
    const uint64_t rows = f->s->n / f->width;
    const bool all_rows = f->row_0 == 0 && f->row_1 + 1 >= rows;
    const bool all_cols = f->col_0 == 0 && f->col_1 + 1 >= f->width;
    char row[64] = "", col[64] = "";
    if (!all_rows && f->row_0 == f->row_1)
        snprintf(row, sizeof row, "row %" PRIu64, f->row_0);
    else if (!all_rows)
        snprintf(row, sizeof row, "rows %" PRIu64 " to %" PRIu64, f->row_0, f->row_1);
    if (!all_cols && f->col_0 == f->col_1)
        snprintf(col, sizeof col, "column %" PRIu64, f->col_0);
    else if (!all_cols)
        snprintf(col, sizeof col, "columns %" PRIu64 " to %" PRIu64, f->col_0, f->col_1);
    snprintf(text, size, "%s%s%s%s", *row || *col ? " in " : "", row, *row && *col ? ", " : "",
             col);
}

/* ---- Numbers in other places ----------------------------------------------------------------- */

/* Where the number at i should have come from, for each kind of move. */
static uint64_t rolled(const struct off *f, uint64_t i, uint64_t by)
{
    const uint64_t col = i % f->width;
    return i - col + (col + f->width - by) % f->width;
}

static bool all_rolled(const struct off *f, uint64_t by)
{
    for (uint64_t i = 0; i < f->s->n; i++)
        if (!f->s->out[i] && !close_to(f, i, f->s->y[rolled(f, i, by)]))
            return false;
    return true;
}

/* Matrices of height x width that were written as width x height. */
static bool all_transposed(const struct off *f, uint64_t height)
{
    const uint64_t size = height * f->width;
    for (uint64_t i = 0; i < f->s->n; i++) {
        const uint64_t at = i % size, from = i - at + at % height * f->width + at / height;
        if (!f->s->out[i] && !close_to(f, i, f->s->y[from]))
            return false;
    }
    return height > 1 && f->width > 1;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What is off are the same numbers in another order, and far from where they belong: numbers
 * that lie close together look like each other anyway. */
static bool all_permuted(const struct off *f, struct arena *arena)
{
    const struct sample *s = f->s;
    double *a = arena_array(arena, (size_t)f->n + 1, sizeof *a);
    double *b = arena_array(arena, (size_t)f->n + 1, sizeof *b);
    if (!a || !b || s->counted != s->n || f->n < 4)
        return false;
    uint64_t n = 0, moved = 0, far = 0;
    for (uint64_t i = 0; i < s->n; i++)
        if (is_off(f, i)) {
            a[n] = s->got[i];
            b[n++] = plumb_round_to(s->dtype, s->y[i]);
            moved += fabs(s->got[i] - s->y[i]) > 16 * s->ulp[i];
        }
    qsort(a, (size_t)n, sizeof *a, by_value);
    qsort(b, (size_t)n, sizeof *b, by_value);
    for (uint64_t i = 0; i < n; i++)
        far += fabs(a[i] - b[i]) > 2 * sample_ulp(s->dtype, b[i]) + 8 * s->u * fabs(b[i]);
    return far * 100 <= n && moved * 2 > n;
}

static bool say_moved(const struct off *f, const struct plumb_tensor *got, struct plumb_opinion *o)
{
    const uint64_t height = got->rank > 1 && plumb_dtype_parts(got->dtype) == 1
                                ? (uint64_t)got->shape[got->rank - 2]
                                : 0;
    if (height && all_transposed(f, height)) {
        snprintf(o->pattern, sizeof o->pattern,
                 "transposed: the last two dimensions are exchanged");
        return true;
    }
    for (uint64_t by = 1; by < f->width; by++) {
        const bool near = by <= 8 || by + 8 >= f->width, half = by == f->width - f->width / 2;
        if ((near || half) && all_rolled(f, by)) {
            const bool back = by > f->width / 2 && !half;
            snprintf(o->pattern, sizeof o->pattern,
                     "rolled by %s%" PRIu64 " along the last dimension", back ? "-" : "",
                     back ? f->width - by : by);
            return true;
        }
    }
    if (all_permuted(f, f->s->arena)) {
        snprintf(o->pattern, sizeof o->pattern, "permuted: the right numbers in other places");
        return true;
    }
    return false;
}

/* ---- Numbers that changed -------------------------------------------------------------------- */

enum change { ZERO, NEGATED, SCALED, SHIFTED };

/* The middle one of ratios or differences of what is off. */
static double middle(const struct off *f, bool ratio, double *values)
{
    size_t n = 0;
    for (uint64_t i = 0; i < f->s->n; i++)
        if (is_off(f, i) && (!ratio || f->s->y[i] != 0))
            values[n++] = ratio ? f->s->got[i] / f->s->y[i] : f->s->got[i] - f->s->y[i];
    qsort(values, n, sizeof *values, by_value);
    return n ? values[n / 2] : 0;
}

static bool all_changed(const struct off *f, enum change change, double by)
{
    for (uint64_t i = 0; i < f->s->n; i++) {
        if (!is_off(f, i))
            continue;
        const double y = f->s->y[i];
        const double now = change == ZERO      ? 0
                           : change == NEGATED ? -y
                           : change == SCALED  ? y * by
                                               : y + by;
        if (!close_to(f, i, now))
            return false;
    }
    return true;
}

/* system: what is known of all of them. Of a narrow type only those are off that a scale carries to
 * another number, and they tell less about it than all together. */
static bool say_changed(const struct off *f, const struct system_part *system,
                        struct plumb_opinion *o)
{
    double *values = arena_array(f->s->arena, (size_t)f->n + 1, sizeof *values);
    char where[100], what[40] = "";
    if (!values)
        return false;
    say_block(f, where, sizeof where);
    const double ratio = middle(f, true, values), difference = middle(f, false, values);
    if (all_changed(f, ZERO, 0))
        snprintf(what, sizeof what, "zero");
    else if (all_changed(f, NEGATED, 0))
        snprintf(what, sizeof what, "of the other sign");
    else if (system->found && !*where && f->n < f->s->n)
        return false;
    else if (f->n > 1 && all_changed(f, SCALED, ratio))
        snprintf(what, sizeof what, "scaled by %.6g", ratio);
    else if (f->n > 1 && all_changed(f, SHIFTED, difference))
        snprintf(what, sizeof what, "off by %.4g", difference);
    if (!*what)
        return false;
    snprintf(o->pattern, sizeof o->pattern, "%" PRIu64 " element%s%s %s %s", f->n,
             f->n == 1 ? "" : "s", where, f->n == 1 ? "is" : "are", what);
    return true;
}

void pattern_find(const struct plumb_tensor *got, const struct sample *s,
                  const struct system_part *system, struct plumb_opinion *opinion)
{
    const unsigned parts = plumb_dtype_parts(got->dtype);
    struct off f = {.s = s,
                    .limit = opinion->limit,
                    .width = got->rank ? (uint64_t)got->shape[got->rank - 1] * parts : parts};
    if (!f.width || !s->n)
        return;
    find_block(&f);
    if (say_moved(&f, got, opinion) || (f.n && say_changed(&f, system, opinion)))
        return;
    char where[100];
    say_block(&f, where, sizeof where);
    if (system->found)
        snprintf(opinion->pattern, sizeof opinion->pattern, "%s", system->text);
    else if (*where && f.n)
        snprintf(opinion->pattern, sizeof opinion->pattern, "%" PRIu64 " element%s%s %s wrong", f.n,
                 f.n == 1 ? "" : "s", where, f.n == 1 ? "is" : "are");
}
