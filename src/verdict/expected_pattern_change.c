/* Numbers that became others: zero, of the other sign, cut off at a limit, rounded, scaled,
 * shifted; and a scale or an offset for each row or column. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"

#include <inttypes.h>
#include <math.h>

/* ---- Certain ones ---------------------------------------------------------------------------- */

struct change {
    const struct off *f;
    double low, high;         /* the smallest and the largest number of the result */
    double low_off, high_off; /* the same of what is off */
    enum plumb_dtype narrow;
    bool cut;
};

static bool is_zero(const struct change *c, uint64_t i)
{
    return c->f->s->got[i] == 0;
}

static bool is_negated(const struct change *c, uint64_t i)
{
    return off_fits(c->f, i, -c->f->s->y[i]);
}

static bool lost_sign(const struct change *c, uint64_t i)
{
    return c->f->s->y[i] < 0 && is_negated(c, i);
}

static bool is_saturated(const struct change *c, uint64_t i)
{
    const double got = c->f->s->got[i], y = c->f->s->y[i];
    return (got == c->high && y > got) || (got == c->low && y < got);
}

static bool is_constant(const struct change *c, uint64_t i)
{
    (void)i;
    return c->low_off == c->high_off;
}

/* A number of the narrower type, and as close as that has one; cut: the next toward zero. */
static bool is_rounded(const struct change *c, uint64_t i)
{
    const struct sample *s = c->f->s;
    const double unit = sample_ulp(c->narrow, s->y[i]);
    const double noise = 2 * c->f->limit * s->sigma[i];
    return plumb_round_to(c->narrow, s->got[i]) == s->got[i] &&
           fabs(s->got[i] - s->y[i]) <= unit * (c->cut ? 1 : 0.501) + noise &&
           (!c->cut || fabs(s->got[i]) <= fabs(s->y[i]) + noise);
}

/* Every error leads toward zero, and none is a whole unit. */
static bool are_truncated(const struct off *f)
{
    const struct sample *s = f->s;
    for (uint64_t i = 0; i < s->n; i++) {
        const double noise = f->limit * s->sigma[i];
        const double e = (s->got[i] - s->y[i]) * (s->y[i] < 0 ? -1 : 1);
        if (!s->out[i] && (e > noise || e < -s->ulp[i] - noise))
            return false;
    }
    return f->n >= 4 && s->counted >= 16;
}

static bool all_off(const struct change *c, bool (*fits)(const struct change *, uint64_t))
{
    for (uint64_t i = 0; i < c->f->s->n; i++)
        if (c->f->is[i] && !fits(c, i))
            return false;
    return true;
}

static void measure(struct change *c)
{
    const struct sample *s = c->f->s;
    c->low = c->low_off = INFINITY;
    c->high = c->high_off = -INFINITY;
    for (uint64_t i = 0; i < s->n; i++) {
        if (s->out[i])
            continue;
        c->low = fmin(c->low, s->got[i]);
        c->high = fmax(c->high, s->got[i]);
        if (c->f->is[i]) {
            c->low_off = fmin(c->low_off, s->got[i]);
            c->high_off = fmax(c->high_off, s->got[i]);
        }
    }
}

/* The largest number that became zero, when every smaller one did and none of the larger. */
static double flushed_below(const struct off *f)
{
    double largest = 0, least = INFINITY;
    for (uint64_t i = 0; i < f->s->n; i++)
        if (f->is[i])
            largest = fmax(largest, fabs(f->s->y[i]));
        else if (!f->s->out[i] && f->s->got[i] != 0)
            least = fmin(least, fabs(f->s->y[i]));
    return f->n > 1 && largest < least && isfinite(least) ? largest : 0;
}

static void say_saturated(const struct change *c, char *text, size_t size)
{
    static const enum plumb_dtype types[] = {PLUMB_F16, PLUMB_BF16, PLUMB_F8_E4M3FN, PLUMB_F8_E5M2};
    const double limit = fmax(fabs(c->low_off), fabs(c->high_off));
    const char *name = NULL;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (limit == plumb_dtype_info(types[k])->max_finite)
            name = plumb_dtype_info(types[k])->name;
    int used =
        plain_print(text, size, "cut off at %.6g", c->high_off > 0 ? c->high_off : c->low_off);
    if (c->low_off < 0 && c->high_off > 0)
        used = plain_print(text, size, "cut off at %.6g and %.6g", c->low_off, c->high_off);
    if (name && used > 0 && (size_t)used < size)
        plain_print(text + used, size - (size_t)used, " (saturated: the largest number of %s)",
                    name);
    else if (used > 0 && (size_t)used < size)
        plain_print(text + used, size - (size_t)used, " (saturated)");
}

/* Rounded to a narrower type; those that nearly every number of the type itself is do not count. */
static bool find_rounded(struct change *c)
{
    static const enum plumb_dtype types[] = {PLUMB_F32, PLUMB_F16, PLUMB_BF16, PLUMB_F8_E4M3FN,
                                             PLUMB_F8_E5M2};
    const int precision = plumb_dtype_info(c->f->s->dtype)->precision;
    for (c->cut = false;; c->cut = true) {
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            c->narrow = types[k];
            if (plumb_dtype_info(types[k])->precision + 2 < precision && c->f->n >= 4 &&
                all_off(c, is_rounded))
                return true;
        }
        if (c->cut)
            return false;
    }
}

bool pattern_replaced(const struct off *f, char *text)
{
    struct change c = {.f = f};
    char subject[160], where[120], tile[60], what[100] = "";
    if (!f->n)
        return false;
    measure(&c);
    if (all_off(&c, is_zero)) {
        off_say_place(f, where, sizeof where);
        const double below = *where ? 0 : flushed_below(f);
        plain_print(what, sizeof what, "zero");
        if (below > 0)
            plain_print(what, sizeof what, "zero: all up to %.4g are flushed", below);
    } else if (f->n > 1 && all_off(&c, lost_sign)) {
        plain_print(what, sizeof what, "of the other sign: all of them should be negative");
    } else if (all_off(&c, is_negated)) {
        plain_print(what, sizeof what, "of the other sign");
    } else if (f->n > 2 && all_off(&c, is_saturated)) {
        say_saturated(&c, what, sizeof what);
    } else if (f->n > 2 && all_off(&c, is_constant)) {
        plain_print(what, sizeof what, "all %.6g", c.low_off);
    } else if (are_truncated(f)) {
        plain_print(text, PATTERN_TEXT,
                    "truncated: all %" PRIu64 " errors lead toward zero, none is a whole unit",
                    f->s->counted);
        return true;
    } else if (find_rounded(&c)) {
        plain_print(what, sizeof what, "%s to %s", c.cut ? "truncated" : "rounded",
                    plumb_dtype_info(c.narrow)->name);
    } else {
        return false;
    }
    off_say_subject(f, subject, sizeof subject);
    off_say_tile(f, tile, sizeof tile);
    plain_print(text, PATTERN_TEXT, "%s %s%s", subject, what, tile);
    return true;
}

/* ---- A scale or an offset -------------------------------------------------------------------- */

/* One scale, or one offset, for some elements: what describes them best, and between which two all
 * of them fit. What was scaled or shifted may have been rounded before. */
struct map {
    double ee, ex, xx; /* weighted sums of errors e; x is the number itself, or 1 */
    double low, high;  /* of a factor less one, or of an offset */
    uint64_t n;
};

static const struct map any_map = {.low = -INFINITY, .high = INFINITY};

static void map_add(struct map *map, const struct off *f, uint64_t i, bool scale)
{
    const struct sample *s = f->s;
    const double weight = 1 / (s->ulp[i] * s->ulp[i] + s->sigma[i] * s->sigma[i]);
    const double e = s->got[i] - s->y[i], x = scale ? s->y[i] : 1;
    const double ratio = scale && s->y[i] != 0 ? fabs(s->got[i] / s->y[i]) : 1;
    const double noise = s->sigma[i] * fmin(fmax(1, ratio), 4096); /* scaled as well */
    const double room = 0.51 * (sample_ulp(s->dtype, s->got[i]) + s->ulp[i] * fmax(1, ratio)) +
                        2 * f->limit * fmax(noise, s->u * fabs(s->got[i]));
    map->ee += weight * e * e;
    map->ex += weight * e * x;
    map->xx += weight * x * x;
    map->n++;
    if (x != 0) {
        map->low = fmax(map->low, fmin((e - room) / x, (e + room) / x));
        map->high = fmin(map->high, fmax((e - room) / x, (e + room) / x));
    } else if (fabs(e) > room) {
        map->low = INFINITY;
    }
}

static bool map_fits(const struct map *map)
{
    return map->low <= map->high;
}

static double map_best(const struct map *map)
{
    const double best = map->xx > 0 ? map->ex / map->xx : 0;
    return fmin(fmax(best, map->low), map->high);
}

/* The number with the fewest digits among those that all fit, near the best; of a scale, the
 * factor. */
static double map_brief(const struct map *map, double best, bool scale)
{
    best = fmin(fmax(best, map->low), map->high) + scale;
    for (int digits = 1; digits < 6; digits++) {
        char text[40];
        plain_print(text, sizeof text, "%.*g", digits, best);
        const double brief = plain_number(text, NULL);
        if (brief - scale >= map->low && brief - scale <= map->high && brief != scale)
            return brief;
    }
    return best;
}

/* The squares that are left beside it. */
static double map_rest(const struct map *map)
{
    return map->xx > 0 ? fmax(map->ee - map->ex * map->ex / map->xx, 0) : map->ee;
}

/* Errors that a map explains are mostly gone beside it. */
static const double EXPLAINED = 0.25;

static struct map map_of(const struct off *f, bool all, bool scale)
{
    struct map map = any_map;
    for (uint64_t i = 0; i < f->s->n; i++)
        if (all ? !f->s->out[i] : f->is[i])
            map_add(&map, f, i, scale);
    return map;
}

bool pattern_system(const struct off *f, const struct system_part *system, char *text)
{
    if (!system->found || !(system->scale || system->offset))
        return false;
    /* Numbers of one size may be scaled as well as off: what leaves less is the better word. */
    const struct map factor = map_of(f, true, true), offset = map_of(f, true, false);
    if (!map_fits(&factor) && !map_fits(&offset))
        return false;
    const bool scale =
        map_fits(&factor) && (!map_fits(&offset) || map_rest(&factor) <= map_rest(&offset));
    const double known =
        scale == system->scale ? system->size : map_best(scale ? &factor : &offset);
    const struct map *map = scale ? &factor : &offset;
    plain_print(text, PATTERN_TEXT, "everything is %s by %.6g (%.0f sigma)",
                scale ? "scaled" : "off", map_brief(map, known, scale), fabs(system->z));
    return true;
}

bool pattern_scaled(const struct off *f, char *text)
{
    char subject[160], tile[60];
    off_say_subject(f, subject, sizeof subject);
    off_say_tile(f, tile, sizeof tile);
    for (int scale = 1; f->n > 1 && scale >= 0; scale--) {
        const struct map map = map_of(f, false, scale);
        if (!map_fits(&map) || map_rest(&map) > EXPLAINED * map.ee)
            continue;
        plain_print(text, PATTERN_TEXT, "%s %s by %.6g%s", subject, scale ? "scaled" : "off",
                    map_brief(&map, map_best(&map), scale), tile);
        return true;
    }
    return false;
}

/* ---- One for each index of an axis ----------------------------------------------------------- */

struct groups {
    const struct off *f;
    unsigned axis; /* the rank: rows, whatever the number of axes */
    uint64_t n, stride, size;
    struct map *at;
};

static uint64_t group_of(const struct groups *g, uint64_t i)
{
    return g->axis == g->f->rank ? i / g->size : i / g->stride % g->size;
}

static bool groups_make(struct groups *g)
{
    const struct sample *s = g->f->s;
    const bool rows = g->axis == g->f->rank;
    if (!g->f->rank)
        return false;
    g->size = g->f->axis[rows ? g->f->rank - 1 : g->axis].size;
    if (rows && g->f->parts && g->f->rank > 1)
        g->size *= g->f->axis[g->f->rank - 2].size;
    g->stride = rows ? 1 : off_stride(g->f, g->axis);
    g->n = rows ? s->n / g->size : g->size;
    if (g->n < 2 || s->n / g->n < 4)
        return false;
    g->at = arena_array(s->arena, (size_t)g->n, sizeof *g->at);
    return g->at;
}

static bool groups_fit(struct groups *g, bool scale, double *least, double *most)
{
    double rest = 0, all = 0;
    bool fits = true;
    *least = INFINITY;
    *most = -INFINITY;
    for (uint64_t k = 0; k < g->n; k++)
        g->at[k] = any_map;
    for (uint64_t i = 0; i < g->f->s->n; i++)
        if (!g->f->s->out[i])
            map_add(&g->at[group_of(g, i)], g->f, i, scale);
    for (uint64_t k = 0; k < g->n; k++) {
        const double by = map_best(&g->at[k]) + scale;
        *least = fmin(*least, by);
        *most = fmax(*most, by);
        rest += map_rest(&g->at[k]);
        all += g->at[k].ee;
        fits = fits && map_fits(&g->at[k]);
    }
    return fits && rest < EXPLAINED * all;
}

bool pattern_groups(const struct off *f, char *text)
{
    struct groups g = {.f = f};
    if (!f->n)
        return false;
    for (unsigned k = 0; k <= f->rank; k++) {
        g.axis = f->rank - k; /* rows first */
        if ((g.axis == 0 && f->rank == 2) || !groups_make(&g))
            continue; /* the same as rows */
        for (int scale = 1; scale >= 0; scale--) {
            double least, most;
            char word[40] = "row";
            if (!groups_fit(&g, scale, &least, &most))
                continue;
            if (g.axis < f->rank)
                off_axis_word(f, g.axis, word, sizeof word);
            plain_print(text, PATTERN_TEXT, "each %s is %s of its own, %.4g to %.4g", word,
                        scale ? "scaled by a factor" : "off by a number", least, most);
            return true;
        }
    }
    return false;
}

/* ---- Missing terms --------------------------------------------------------------------------- */

/* The error as a matrix, of which one direction after the other is taken away. */
struct errors {
    uint64_t rows, cols;
    double *d, *left, *right;
};

/* The strongest direction: left times right, as power iteration finds it. */
static void find_direction(struct errors *m)
{
    enum { PASSES = 6 };
    for (uint64_t c = 0; c < m->cols; c++)
        m->right[c] = c % 3 ? 1 : -0.5;
    for (int pass = 0; pass < PASSES; pass++) {
        double norm = 0;
        for (uint64_t r = 0; r < m->rows; r++) {
            m->left[r] = 0;
            for (uint64_t c = 0; c < m->cols; c++)
                m->left[r] += m->d[r * m->cols + c] * m->right[c];
            norm += m->left[r] * m->left[r];
        }
        for (uint64_t c = 0; c < m->cols; c++)
            m->right[c] = 0;
        for (uint64_t r = 0; r < m->rows && norm > 0; r++)
            for (uint64_t c = 0; c < m->cols; c++)
                m->right[c] += m->d[r * m->cols + c] * m->left[r] / norm;
    }
}

/* Takes it away; returns the squares that are left. */
static double take_away(struct errors *m)
{
    double rest = 0;
    for (uint64_t i = 0; i < m->rows * m->cols; i++) {
        m->d[i] -= m->left[i / m->cols] * m->right[i % m->cols];
        rest += m->d[i] * m->d[i];
    }
    return rest;
}

bool pattern_rank(const struct off *f, char *text)
{
    enum { MOST = 4, SIDE = 16 };
    const struct sample *s = f->s;
    struct errors m = {.rows = s->rows, .cols = s->row};
    double all = 0;
    /* A few elements, or one block, are of low rank by themselves. */
    if (m.rows < SIDE || m.cols < SIDE || m.rows * m.cols != s->n || s->terms < 2 ||
        f->n * 4 < s->n)
        return false;
    m.d = arena_array(s->arena, (size_t)s->n, sizeof *m.d);
    m.left = arena_array(s->arena, (size_t)m.rows, sizeof *m.left);
    m.right = arena_array(s->arena, (size_t)m.cols, sizeof *m.right);
    if (!m.d || !m.left || !m.right)
        return false;
    for (uint64_t i = 0; i < s->n; i++) {
        m.d[i] = s->out[i] ? 0 : s->got[i] - s->y[i];
        all += m.d[i] * m.d[i];
    }
    for (int rank = 1; rank <= MOST; rank++) {
        find_direction(&m);
        const double rest = take_away(&m);
        if (rest < 0.05 * all) {
            plain_print(text, PATTERN_TEXT,
                        "%.3g %% of the error is a matrix of rank %d, as %d missing or wrong "
                        "term%s of the sums",
                        100 * (1 - rest / all), rank, rank, rank == 1 ? "" : "s");
            return true;
        }
    }
    return false;
}
