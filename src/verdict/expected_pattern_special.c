/* NaN and infinities that should not be there: in which rows, whether nothing of these was left
 * unmasked, whether a narrower type overflowed. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"
#include "verdict/vary.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- Rows of which nothing is left ----------------------------------------------------------- */

/* Where a row of the result is in a mask whose axes, but the last, are those before the last of the
 * result, or of size 1. False when they are not. */
static bool row_of_mask(const struct plumb_tensor *mask, const struct plumb_tensor *got,
                        uint64_t row, uint64_t *at)
{
    uint64_t stride = 1;
    *at = 0;
    if (mask->rank < 1 || mask->rank > got->rank)
        return false;
    for (unsigned d = 2; d <= got->rank; d++) {
        const uint64_t size = (uint64_t)got->shape[got->rank - d], index = row % size;
        row /= size;
        if (d > mask->rank)
            continue;
        const uint64_t own = (uint64_t)mask->shape[mask->rank - d];
        if (own != 1 && own != size)
            return false;
        *at += own == 1 ? 0 : index * stride;
        stride *= own;
    }
    return true;
}

/* Whether that row of a mask lets nothing through: False, or -inf, everywhere. */
static bool is_closed(const struct plumb_tensor *mask, uint64_t row)
{
    const uint64_t width = (uint64_t)mask->shape[mask->rank - 1];
    for (uint64_t c = 0; c < width; c++) {
        double x;
        plumb_tensor_to_f64(mask, row * width + c, 1, &x);
        if (mask->dtype == PLUMB_BOOL ? x != 0 : x != -INFINITY)
            return false;
    }
    return width > 0;
}

/* Whether each row with such an element is closed in this argument. */
static bool explains_rows(const struct off *f, const struct plumb_tensor *mask, uint64_t *rows)
{
    const uint64_t width = f->got->rank ? (uint64_t)f->got->shape[f->got->rank - 1] : 0;
    *rows = 0;
    if (!width || plumb_dtype_parts(f->got->dtype) > 1 || plumb_dtype_info(mask->dtype)->bits < 8)
        return false;
    for (uint64_t r = 0; r < f->s->n / width; r++) {
        bool here = false;
        uint64_t at;
        for (uint64_t c = 0; c < width && !here; c++)
            here = f->is[r * width + c];
        if (here && (!row_of_mask(mask, f->got, r, &at) || !is_closed(mask, at)))
            return false;
        *rows += here;
    }
    return *rows > 0;
}

static bool say_masked(const struct plumb_expected *e, const struct off *f, char *text, size_t size)
{
    struct vary_list list;
    vary_read(e->op, &e->call, &list);
    for (size_t k = 0; k < list.n; k++) {
        const struct vary_parameter *p = &list.parameter[k];
        uint64_t rows;
        if (p->now.kind != PLUMB_ARG_TENSOR || !explains_rows(f, p->now.tensor, &rows))
            continue;
        plain_print(text, size, ": in %" PRIu64 " row%s, of which %.*s leaves nothing", rows,
                    rows == 1 ? "" : "s", (int)p->length, p->name);
        return true;
    }
    return false;
}

/* ---- A narrower type on the way -------------------------------------------------------------- */

/* All that is infinite, or NaN, is beyond the largest number of that type, and nothing else is. */
static bool is_overflow_of(const struct off *f, enum plumb_dtype narrow)
{
    const struct sample *s = f->s;
    const double most = plumb_dtype_info(narrow)->max_finite;
    if (plumb_dtype_info(s->dtype)->max_finite <= most)
        return false;
    for (uint64_t i = 0; i < s->n; i++)
        if (isfinite(s->y[i]) && f->is[i] != (fabs(s->y[i]) > most))
            return false;
    return true;
}

static bool say_overflow(const struct off *f, char *text, size_t size)
{
    static const enum plumb_dtype types[] = {PLUMB_F16, PLUMB_F8_E5M2, PLUMB_F8_E4M3FN, PLUMB_F32};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (is_overflow_of(f, types[k])) {
            plain_print(text, size, ": all %" PRIu64 " beyond %.6g, the largest number of %s", f->n,
                        plumb_dtype_info(types[k])->max_finite, plumb_dtype_info(types[k])->name);
            return true;
        }
    return false;
}

void pattern_special(const struct plumb_expected *e, const struct plumb_tensor *got,
                     const struct sample *s, struct plumb_opinion *opinion)
{
    struct off f;
    char why[160] = "";
    if (!off_find_special(&f, got, s) || !f.n)
        return;
    if (!(isnan(opinion->got) && say_masked(e, &f, why, sizeof why)) &&
        !(isfinite(opinion->expected) && say_overflow(&f, why, sizeof why)))
        off_say_place(&f, why, sizeof why);
    const size_t used = strlen(opinion->pattern);
    plain_print(opinion->pattern + used, sizeof opinion->pattern - used, "%s%s",
                *why && *why != ':' ? "," : "", why);
}
