/* Errors that go together: each may be small, but right arithmetic errs in no direction. The
 * difference from the correctly rounded reference is held against a scale, an offset, and those of
 * rows and columns. */
#include "verdict/expected_parts.h"

#include "base/plain.h"

#include <math.h>

/* A normal deviate above this has p < 1e-9, a few hypotheses counted. */
static const double SIGNIFICANT = 6.5;
/* Where the question is which of two explanations is better, less will do. */
static const double SIGNIFICANT_STRICT = 5.5, SIGNIFICANT_AMONG_FEW = 3.6;

/* Weighted sums for a regression of d on one regressor. */
struct fit {
    double dx, xx;
};

static double fit_slope(const struct fit *f)
{
    return f->xx > 0 ? f->dx / f->xx : 0;
}

static double fit_z(const struct fit *f)
{
    return f->xx > 0 ? f->dx / sqrt(f->xx) : 0;
}

struct system_work {
    const struct sample *s;
    const double *y, *sigma;
    double *d, *weight;          /* of each element; a weight of 0: it is of no use */
    double mean_y2, mean_sigma2; /* over what counts */
};

/* The difference from the correctly rounded reference. Results of a narrow type show it only where
 * a number lies close to the middle between two of the type; where noise is enough to carry it
 * across, it says nothing, and grids of numbers may lie there all on one side. Overflow to an
 * infinity, or to NaN, is no number to go by. */
static bool usable(const struct sample *s, const double *y, uint64_t i, double *d)
{
    if (s->out[i] || !isfinite(y[i]))
        return false;
    *d = s->got[i] - plumb_round_to(s->dtype, y[i]);
    const double over = fabs(s->got[i] - y[i]) - s->ulp[i] / 2;
    if (plumb_dtype_info(s->dtype)->bits < 32 && over <= 3 * s->sigma[i])
        *d = 0;
    return isfinite(*d);
}

/* False when out of memory. */
static bool weigh(struct system_work *w)
{
    const struct sample *s = w->s;
    w->d = arena_room(s->arena, (size_t)s->n + 1, sizeof *w->d);
    w->weight = arena_room(s->arena, (size_t)s->n + 1, sizeof *w->weight);
    if (!w->d || !w->weight)
        return false;
    for (uint64_t i = 0; i < s->n; i++) {
        w->d[i] = w->weight[i] = 0;
        if (usable(s, w->y, i, &w->d[i]))
            w->weight[i] = 1 / (s->ulp[i] * s->ulp[i] / 12 + w->sigma[i] * w->sigma[i]);
    }
    return true;
}

static void add(struct fit *f, double weight, double d, double x)
{
    f->dx += weight * d * x;
    f->xx += weight * x * x;
}

/* How sure a sum of errors is, by their own spread around their mean. Elements of a row may err
 * together for one reason, the row's own: then rows count, not elements. */
struct spread {
    double sum, squares; /* of weight * d * x */
    uint64_t n;
    double rows_squares, rows_cross,
        rows_n2; /* of a row's sum, that times its length, its length */
    uint64_t rows;
    double pieces; /* the variance by larger pieces than rows; 0: not looked at */
};

/* Groups of rows may err together as well, such as those of a group of channels. */
enum { PIECES = 64, FEWEST_PIECES = 8 };

struct pieces {
    double sums[PIECES];
    uint64_t n[PIECES];
};

/* The largest variance of the sum by 64, 32, 16 or 8 pieces of the tensor. */
static double pieces_variance(struct pieces *p, double mean)
{
    double most = 0;
    for (unsigned count = PIECES; count >= FEWEST_PIECES; count /= 2) {
        double variance = 0;
        for (unsigned k = 0; k < count; k++) {
            const double off = p->sums[k] - mean * (double)p->n[k];
            variance += off * off;
        }
        most = fmax(most, variance * count / (count - 1));
        for (unsigned k = 0; k < count / 2; k++) {
            p->sums[k] = p->sums[2 * k] + p->sums[2 * k + 1];
            p->n[k] = p->n[2 * k] + p->n[2 * k + 1];
        }
    }
    return most;
}

static void spread_row(struct spread *p, double sum, double squares, uint64_t n)
{
    p->sum += sum;
    p->squares += squares;
    p->n += n;
    p->rows_squares += sum * sum;
    p->rows_cross += sum * (double)n;
    p->rows_n2 += (double)n * (double)n;
    p->rows += n > 0;
}

static double spread_z(const struct spread *p)
{
    if (p->n < 2)
        return 0;
    const double mean = p->sum / (double)p->n;
    double variance = p->squares - (double)p->n * mean * mean;
    if (p->rows >= 8) {
        const double of_rows =
            p->rows_squares - 2 * mean * p->rows_cross + mean * mean * p->rows_n2;
        variance = fmax(variance, of_rows * (double)p->rows / (double)(p->rows - 1));
    }
    variance = fmax(variance, p->pieces);
    return variance > 0 ? p->sum / sqrt(variance) : p->sum > 0 ? INFINITY : -INFINITY;
}

static struct system_part report(const char *what, double size, double shown, double z)
{
    struct system_part part = {.found = true, .size = size, .z = z};
    plain_print(part.text, sizeof part.text, "%s %.6g (%.0f sigma)", what, shown, fabs(z));
    return part;
}

/* Elements that may err for one reason lie together: those of a row, or, where an operator works on
 * single elements, those with nearly the same input. */
static void measure(struct system_work *w, struct fit *scale, struct fit *offset,
                    struct spread *of_scale, struct spread *of_offset)
{
    const struct sample *s = w->s;
    const uint64_t length = s->order ? 64 : s->row;
    for (uint64_t first = 0; length && first < s->n; first += length) {
        double by_y = 0, by_y2 = 0, by_one = 0, by_one2 = 0;
        uint64_t n = 0;
        for (uint64_t at = first; at < first + length && at < s->n; at++) {
            const uint64_t i = s->order ? s->order[at] : at;
            const double weight = w->weight[i], d = w->d[i];
            if (weight == 0)
                continue;
            const double one = weight * d, both = one * w->y[i];
            add(scale, weight, d, w->y[i]);
            add(offset, weight, d, 1);
            by_y += both;
            by_y2 += both * both;
            by_one += one;
            by_one2 += one * one;
            w->mean_y2 += w->y[i] * w->y[i];
            w->mean_sigma2 += w->sigma[i] * w->sigma[i];
            n++;
        }
        spread_row(of_scale, by_y, by_y2, n);
        spread_row(of_offset, by_one, by_one2, n);
    }
    if (of_scale->n) {
        w->mean_y2 /= (double)of_scale->n;
        w->mean_sigma2 /= (double)of_scale->n;
    }
}

/* The same by larger pieces, which single numbers of a cheaper arithmetic may have in common. */
static void measure_pieces(const struct system_work *w, struct spread *of_scale,
                           struct spread *of_offset)
{
    const struct sample *s = w->s;
    struct pieces scale = {0}, offset = {0};
    if (s->order || s->n < PIECES || !of_scale->n)
        return;
    for (uint64_t i = 0; i < s->n; i++) {
        if (w->weight[i] == 0)
            continue;
        const unsigned k = (unsigned)((double)i * PIECES / (double)s->n);
        const double one = w->weight[i] * w->d[i];
        scale.sums[k] += one * w->y[i];
        offset.sums[k] += one;
        scale.n[k]++;
        offset.n[k]++;
    }
    of_scale->pieces = pieces_variance(&scale, of_scale->sum / (double)of_scale->n);
    of_offset->pieces = pieces_variance(&offset, of_offset->sum / (double)of_offset->n);
}

/* The row whose scale is the largest beside what its noise allows. */
static struct system_part rows_find(const struct system_work *w)
{
    const struct sample *s = w->s;
    struct system_part worst = {0};
    const double limit = SIGNIFICANT + sqrt(2 * log((double)(s->rows ? s->rows : 1)));
    for (uint64_t r = 0; s->row >= 16 && r < s->rows; r++) {
        struct fit f = {0};
        double y2 = 0, sigma2 = 0;
        for (uint64_t i = r * s->row; i < (r + 1) * s->row; i++) {
            if (w->weight[i] == 0)
                continue;
            add(&f, w->weight[i], w->d[i], w->y[i]);
            y2 += w->y[i] * w->y[i];
            sigma2 += w->sigma[i] * w->sigma[i];
        }
        const double b = fit_slope(&f), z = fit_z(&f);
        if (fabs(z) > limit && b * b * y2 > 9 * sigma2 && fabs(z) > fabs(worst.z)) {
            worst = report("row scaled by", b, 1 + b, z);
            plain_print(worst.text, sizeof worst.text, "row %llu is scaled by %.6g (%.0f sigma)",
                        (unsigned long long)r, 1 + b, fabs(z));
        }
    }
    return worst;
}

/* The same for an offset of a column: a bias that is wrong or missing. */
static struct system_part columns_find(const struct system_work *w)
{
    const struct sample *s = w->s;
    struct system_part worst = {0};
    struct column {
        struct fit f;
        double sigma2;
        uint64_t n;
    } *columns = s->rows >= 16 ? arena_array(s->arena, (size_t)s->row, sizeof *columns) : NULL;
    if (!columns)
        return worst;
    for (uint64_t i = 0, c = 0; i < s->n; i++, c = c + 1 < s->row ? c + 1 : 0) {
        if (w->weight[i] == 0)
            continue;
        add(&columns[c].f, w->weight[i], w->d[i], 1);
        columns[c].sigma2 += w->sigma[i] * w->sigma[i];
        columns[c].n++;
    }
    const double limit = SIGNIFICANT + sqrt(2 * log((double)s->row));
    for (uint64_t c = 0; c < s->row; c++) {
        const double a = fit_slope(&columns[c].f), z = fit_z(&columns[c].f);
        if (fabs(z) > limit && a * a * (double)columns[c].n > 9 * columns[c].sigma2 &&
            fabs(z) > fabs(worst.z)) {
            worst = report("column is off by", a, a, z);
            plain_print(worst.text, sizeof worst.text, "column %llu is off by %.3g (%.0f sigma)",
                        (unsigned long long)c, a, fabs(z));
        }
    }
    return worst;
}

/* Equal numbers are rounded alike, and go together for that reason alone. */
static bool is_of_few_numbers(const struct sample *s, const double *y)
{
    enum { ENOUGH = 16 };
    unsigned changes = 0;
    for (uint64_t i = 1; i < s->n; i++)
        if (y[i] != y[i - 1] && ++changes >= ENOUGH)
            return false;
    return true;
}

struct system_part system_find(const struct sample *s, const double *y, const double *sigma,
                               bool strict)
{
    struct system_part none = {0};
    const bool few = s->counted < SYSTEM_LEAST;
    if (s->counted < 2 || (!strict && (few || is_of_few_numbers(s, y))))
        return none;
    struct system_work w = {.s = s, .y = y, .sigma = sigma};
    if (!weigh(&w))
        return none;
    struct fit scale = {0}, offset = {0};
    struct spread of_scale = {0}, of_offset = {0};
    measure(&w, &scale, &offset, &of_scale, &of_offset);
    if (strict)
        measure_pieces(&w, &of_scale, &of_offset);
    const double b = fit_slope(&scale), a = fit_slope(&offset);
    const double z_scale = spread_z(&of_scale), z_offset = spread_z(&of_offset);
    const double enough = few ? SIGNIFICANT_AMONG_FEW : strict ? SIGNIFICANT_STRICT : SIGNIFICANT;
    const double floor2 = strict ? 0 : 4 * w.mean_sigma2;
    const bool is_scale =
        fabs(z_scale) > enough && fabs(b) > 4 * s->u && b * b * w.mean_y2 > floor2;
    const bool is_offset =
        fabs(z_offset) > enough && a * a > floor2 && a * a > 16 * s->u * s->u * w.mean_y2;
    if (is_scale && (!is_offset || fabs(z_scale) >= fabs(z_offset))) {
        struct system_part part = report("everything is scaled by", b, 1 + b, z_scale);
        part.scale = true;
        return part;
    }
    if (is_offset) {
        struct system_part part = report("everything is off by", a, a, z_offset);
        part.offset = true;
        return part;
    }
    if (strict)
        return none;
    const struct system_part row = rows_find(&w);
    return row.found ? row : columns_find(&w);
}

/* ---- Beside noise that is said to explain them ------------------------------------------------
 */

/* How much better a scale, or an offset, and rounding describe the errors than that noise does, and
 * than rounding alone: the logarithm of the ratio of likelihoods. What is left beside a scale
 * should be noise, not rounding alone. */
static double advantage(const struct sample *s, const double *sigma, bool scale)
{
    double xe = 0, xx = 0, by_noise = 0, by_rest = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double r2 = s->ulp[i] * s->ulp[i] / 12 + s->sigma[i] * s->sigma[i];
        const double x = scale ? s->y[i] : 1;
        if (s->out[i] || !(r2 > 0))
            continue;
        xe += x * (s->got[i] - s->y[i]) / r2;
        xx += x * x / r2;
    }
    const double b = xx > 0 ? xe / xx : 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const double e = s->got[i] - s->y[i], rest = e - b * (scale ? s->y[i] : 1);
        const double r2 = s->ulp[i] * s->ulp[i] / 12 + s->sigma[i] * s->sigma[i];
        const double n2 = s->ulp[i] * s->ulp[i] / 12 + sigma[i] * sigma[i];
        if (s->out[i] || !(r2 > 0))
            continue;
        by_noise -= e * e / n2 / 2 + log(n2 / r2) / 2;
        by_rest -= rest * rest / r2 / 2;
    }
    return xx > 0 ? fmin(by_rest - by_noise, xe * xe / xx / 2) : 0;
}

bool system_goes_with_results(const struct sample *s, const double *sigma)
{
    const double enough = 6;
    double ee = 0, ye = 0, yy = 0, e1 = 0, y1 = 0, w1 = 0;
    if (s->counted > 3 &&
        (advantage(s, sigma, true) > enough || advantage(s, sigma, false) > enough))
        return true;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        const double weight = 1 / (s->ulp[i] * s->ulp[i] + sigma[i] * sigma[i]);
        const double e = s->got[i] - s->y[i];
        ee += weight * e * e;
        ye += weight * e * s->y[i];
        yy += weight * s->y[i] * s->y[i];
        e1 += weight * e;
        y1 += weight * s->y[i];
        w1 += weight;
    }
    const double cov = ye - e1 * y1 / w1, var_y = yy - y1 * y1 / w1, var_e = ee - e1 * e1 / w1;
    const double r2 = var_y > 0 && var_e > 0 ? cov * cov / var_y / var_e : 0;
    return s->counted >= 32 && cov < 0 && -cov / var_y > 0.25 &&
           r2 * ((double)s->counted - 2) > 30 * (1 - r2);
}

bool system_goes_with_inputs(const struct sample *s, const double *sigma)
{
    double products[2] = {0}, squares = 0, before[2] = {NAN, NAN};
    uint64_t n = 0;
    if (!s->order || plumb_dtype_info(s->dtype)->bits < 32)
        return false;
    for (uint64_t at = 0; at < s->n; at++) {
        const uint64_t i = s->order[at];
        if (s->out[i] || !(sigma[i] > 0) || (at && s->key[i] == s->key[s->order[at - 1]]))
            continue;
        const double e = (s->got[i] - s->y[i]) / sigma[i], in_proportion = s->y[i] < 0 ? -e : e;
        if (!isnan(before[0])) {
            products[0] += e * before[0];
            products[1] += in_proportion * before[1];
            squares += e * e;
            n++;
        }
        before[0] = e;
        before[1] = in_proportion;
    }
    return n >= 16 && fmax(products[0], products[1]) > 0.6 * squares;
}

/* The mean square of what rounding to the type leaves in a row. */
static double row_rounding(const struct sample *s, uint64_t row)
{
    double sum = 0;
    for (uint64_t i = row * s->row; i < (row + 1) * s->row; i++)
        sum += s->ulp[i] * s->ulp[i] / 12;
    return sum / (double)s->row;
}

/* Beside the rounding of the row: where a sum cancels, a step of any other order is many units of
 * what is left, and would say more than all others. */
double system_together(const struct sample *s, const double *values)
{
    double together = 0;
    uint64_t n = 0;
    for (uint64_t r = 0; r < s->rows; r++) {
        const double rounding = row_rounding(s, r);
        double sum = 0, in_proportion = 0;
        for (uint64_t i = r * s->row; i < (r + 1) * s->row; i++) {
            const double sd = sqrt(s->sigma[i] * s->sigma[i] + rounding);
            const double e = plumb_round_to(s->dtype, values[i]) - s->y[i];
            if (s->out[i] || !(sd > 0) || !isfinite(e))
                continue;
            sum += e / sd;
            in_proportion += s->y[i] < 0 ? -e / sd : e / sd;
            n++;
        }
        together += sum * sum + in_proportion * in_proportion;
    }
    return n ? together / (double)n / 2 : 0;
}

double system_low_rank(const struct sample *s)
{
    double *left = arena_array(s->arena, (size_t)s->rows + 1, sizeof *left);
    double *right = arena_array(s->arena, (size_t)s->row + 1, sizeof *right);
    const double *y = s->y;
    if (s->rows < 16 || s->row < 16 || !left || !right)
        return 0;
    double all = 0, top = 0;
    for (uint64_t c = 0; c < s->row; c++)
        right[c] = c % 3 ? 1 : -0.5;
    for (int pass = 0; pass < 4; pass++) {
        double norm = 0;
        for (uint64_t c = 0; c < s->row; c++)
            norm += right[c] * right[c];
        norm = norm > 0 ? 1 / sqrt(norm) : 0;
        all = top = 0;
        for (uint64_t r = 0; r < s->rows; r++) {
            left[r] = 0;
            for (uint64_t c = 0; c < s->row; c++) {
                const uint64_t i = r * s->row + c;
                const double d = s->out[i] ? 0 : s->got[i] - y[i];
                left[r] += d * right[c] * norm;
                all += d * d;
            }
            top += left[r] * left[r];
        }
        for (uint64_t c = 0; c < s->row; c++)
            right[c] = 0;
        for (uint64_t r = 0; r < s->rows; r++)
            for (uint64_t c = 0; c < s->row; c++) {
                const uint64_t i = r * s->row + c;
                right[c] += s->out[i] ? 0 : (s->got[i] - y[i]) * left[r];
            }
    }
    const double noise = 1 / sqrt((double)s->rows) + 1 / sqrt((double)s->row);
    return all > 0 ? top / all / (noise * noise) : 0;
}

/* ---- Truncation ------------------------------------------------------------------------------ */

/* Weighted sums for e = a unit sign(y) + b y: numbers within a binade tell the two apart. */
struct toward_zero {
    double aa, ab, bb, ae, be, ee;
    uint64_t n;
    double a, b, determinant;
};

static double unit_toward_zero(const struct sample *s, uint64_t i)
{
    return s->y[i] < 0 ? -s->ulp[i] : s->ulp[i];
}

static double weight_at(const struct sample *s, uint64_t i)
{
    const bool counts = !s->out[i] && s->y[i] != 0;
    return counts ? 1 / (s->ulp[i] * s->ulp[i] / 12 + s->sigma[i] * s->sigma[i]) : 0;
}

static bool fit_toward_zero(const struct sample *s, struct toward_zero *f)
{
    for (uint64_t i = 0; i < s->n; i++) {
        const double weight = weight_at(s, i), x = unit_toward_zero(s, i), y = s->y[i];
        if (weight == 0)
            continue;
        const double e = s->got[i] - y;
        f->aa += weight * x * x;
        f->ab += weight * x * y;
        f->bb += weight * y * y;
        f->ae += weight * x * e;
        f->be += weight * y * e;
        f->ee += weight * e * e;
        f->n++;
    }
    f->determinant = f->aa * f->bb - f->ab * f->ab;
    if (f->n < SYSTEM_LEAST || !(f->determinant > 1e-6 * f->aa * f->bb))
        return false;
    f->a = (f->ae * f->bb - f->be * f->ab) / f->determinant;
    f->b = (f->be * f->aa - f->ae * f->ab) / f->determinant;
    return true;
}

/* How far a may be off where the elements of a row err together: by what each row adds to it. */
static double error_by_rows(const struct sample *s, const struct toward_zero *f)
{
    double squares = 0;
    for (uint64_t r = 0; r < s->rows; r++) {
        double sum = 0;
        for (uint64_t i = r * s->row; i < (r + 1) * s->row; i++) {
            const double weight = weight_at(s, i), x = unit_toward_zero(s, i);
            if (weight > 0)
                sum += weight * (x * f->bb - s->y[i] * f->ab) *
                       (s->got[i] - s->y[i] - f->a * x - f->b * s->y[i]);
        }
        squares += sum * sum;
    }
    return sqrt(squares) / f->determinant;
}

bool system_toward_zero(const struct sample *s, bool alone)
{
    struct toward_zero f = {0};
    if (!fit_toward_zero(s, &f) || (!alone && s->rows < 8))
        return false;
    const double rest = fmax(f.ee - f.a * f.ae - f.b * f.be, 0) / (double)(f.n - 2);
    double error = sqrt(rest * f.bb / f.determinant);
    if (!alone)
        error = fmax(error, error_by_rows(s, &f));
    return f.a < -0.25 && f.a > -0.75 && error > 0 && -f.a / error > 8;
}
