/* A pair of tensors looked at closely, in two passes: its metrics, and where its errors are. */
#include "plumb/detail.h"

#include "base/arena.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one pass fills. */
struct look {
    struct plumb_detail *out;
    struct arena *arena;
    const struct plumb_tensor *side[2];
    unsigned parts;                             /* numbers per element */
    int64_t at[PLUMB_MAX_RANK + 1];             /* of the next number */
    uint16_t *last_cell[PLUMB_DETAIL_MAPS + 1]; /* along the last axis: of each map, the profile */
    double *sums[PLUMB_DETAIL_AXES];
    uint64_t *counts[PLUMB_DETAIL_AXES];
    double unit, scale; /* of the values, and bins per unit of them */
};

static unsigned cell_of(int64_t at, int64_t extent, unsigned size)
{
    return (unsigned)((uint64_t)at * size / (uint64_t)extent);
}

/* ---- Room ------------------------------------------------------------------------------------ */

static void *zeroed(struct look *l, size_t count, size_t size)
{
    void *memory = arena_array(l->arena, count ? count : 1, size);
    return memory ? memset(memory, 0, (count ? count : 1) * size) : NULL;
}

static unsigned at_most(int64_t extent, unsigned most)
{
    return extent < most ? (unsigned)extent : most;
}

static bool add_map(struct look *l, int down, int across)
{
    struct plumb_detail *out = l->out;
    struct plumb_error_map *map = &out->maps[out->n_maps++];
    const int axes[2] = {down, across};
    for (int k = 0; k < 2; k++) {
        map->axes[k] = axes[k];
        map->extent[k] = axes[k] < 0 ? 1 : out->shape[axes[k]];
        map->size[k] = at_most(map->extent[k], PLUMB_DETAIL_CELLS);
    }
    map->largest = zeroed(l, (size_t)map->size[0] * map->size[1], sizeof *map->largest);
    return map->largest;
}

/* The axes that are longer than one, the last ones first. */
static size_t long_axes(const struct plumb_detail *out, int *axes, size_t most)
{
    size_t n = 0;
    for (int axis = (int)out->rank - 1; axis >= 0 && n < most; axis--)
        if (out->shape[axis] > 1)
            axes[n++] = axis;
    return n;
}

static bool make_maps(struct look *l)
{
    int axes[PLUMB_DETAIL_AXES];
    const size_t n = long_axes(l->out, axes, PLUMB_DETAIL_AXES);
    if (n < 2)
        return add_map(l, -1, n ? axes[0] : -1);
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++)
            if (l->out->n_maps < PLUMB_DETAIL_MAPS && !add_map(l, axes[b], axes[a]))
                return false;
    return true;
}

static bool make_profiles(struct look *l)
{
    int axes[PLUMB_DETAIL_AXES];
    struct plumb_detail *out = l->out;
    out->n_profiles = long_axes(out, axes, PLUMB_DETAIL_AXES);
    for (size_t k = 0; k < out->n_profiles; k++) {
        struct plumb_error_profile *p = &out->profiles[k];
        *p = (struct plumb_error_profile){.axis = axes[k], .extent = out->shape[axes[k]]};
        p->size = at_most(p->extent, PLUMB_DETAIL_PROFILE);
        p->largest = zeroed(l, p->size, sizeof *p->largest);
        p->mean = zeroed(l, p->size, sizeof *p->mean);
        l->sums[k] = zeroed(l, p->size, sizeof *l->sums[k]);
        l->counts[k] = zeroed(l, p->size, sizeof *l->counts[k]);
        if (!p->largest || !p->mean || !l->sums[k] || !l->counts[k])
            return false;
    }
    return true;
}

/* The cells of the last axis, looked up once for all rows. */
static bool make_cells(struct look *l)
{
    const struct plumb_detail *out = l->out;
    const int last = (int)out->rank - 1;
    if (last < 0)
        return true;
    const int64_t extent = out->shape[last];
    for (size_t m = 0; m <= out->n_maps; m++) {
        const bool of_map = m < out->n_maps;
        const unsigned size = of_map            ? out->maps[m].size[1]
                              : out->n_profiles ? out->profiles[0].size
                                                : 1;
        const int axis = of_map            ? out->maps[m].axes[1]
                         : out->n_profiles ? out->profiles[0].axis
                                           : -1;
        uint16_t **cells = &l->last_cell[of_map ? m : PLUMB_DETAIL_MAPS];
        if (axis != last)
            continue;
        *cells = arena_array(l->arena, (size_t)extent + 1, sizeof **cells);
        for (int64_t i = 0; *cells && i < extent; i++)
            (*cells)[i] = (uint16_t)cell_of(i, extent, size);
        if (!*cells)
            return false;
    }
    return true;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* Equal infinities and two NaNs are no error, as in all metrics. */
static double error_of(double t, double g)
{
    if (t == g || (isnan(t) && isnan(g)))
        return 0;
    const double e = fabs(t - g);
    return isnan(e) ? INFINITY : e;
}

static bool is_worse(const struct plumb_worst_element *a, const struct plumb_worst_element *b)
{
    return a->error > b->error || (a->error == b->error && a->index < b->index);
}

static void keep_worst(struct plumb_detail *out, uint64_t index, double t, double g, double e)
{
    const struct plumb_worst_element is = {
        .index = index, .target = t, .golden = g, .error = e, .ulps = NAN};
    size_t place = out->n_worst;
    if (place == PLUMB_DETAIL_WORST && !is_worse(&is, &out->worst[place - 1]))
        return;
    if (place == PLUMB_DETAIL_WORST)
        place--;
    else
        out->n_worst++;
    for (; place && is_worse(&is, &out->worst[place - 1]); place--)
        out->worst[place] = out->worst[place - 1];
    out->worst[place] = is;
}

static void count_value(struct look *l, int side, double value)
{
    if (!isfinite(value))
        return;
    const double bin = (value * l->unit - l->out->low * l->unit) * l->scale;
    const int k = bin >= PLUMB_DETAIL_BINS ? PLUMB_DETAIL_BINS - 1 : bin > 0 ? (int)bin : 0;
    l->out->values[side][k]++;
}

/* A stretch of one row: all coordinates but the last are l->at. */
static void add_row(struct look *l, const double *e, size_t n, int64_t first)
{
    struct plumb_detail *out = l->out;
    const int last = (int)out->rank - 1;
    double largest = 0, sum = 0;
    uint64_t finite = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, e[i]);
        sum += isfinite(e[i]) ? e[i] : 0;
        finite += isfinite(e[i]);
    }
    for (size_t k = 0; k < out->n_profiles; k++) {
        struct plumb_error_profile *p = &out->profiles[k];
        const uint16_t *cells = p->axis == last ? l->last_cell[PLUMB_DETAIL_MAPS] + first : NULL;
        if (!cells) {
            const unsigned cell = cell_of(l->at[p->axis], p->extent, p->size);
            p->largest[cell] = fmax(p->largest[cell], largest);
            l->sums[k][cell] += sum;
            l->counts[k][cell] += finite;
        }
        for (size_t i = 0; cells && i < n; i++) {
            p->largest[cells[i]] = fmax(p->largest[cells[i]], e[i]);
            l->sums[k][cells[i]] += isfinite(e[i]) ? e[i] : 0;
            l->counts[k][cells[i]] += isfinite(e[i]);
        }
    }
    for (size_t m = 0; m < out->n_maps && largest > 0; m++) {
        struct plumb_error_map *map = &out->maps[m];
        const unsigned down =
            map->axes[0] < 0 ? 0 : cell_of(l->at[map->axes[0]], map->extent[0], map->size[0]);
        double *row = map->largest + (size_t)down * map->size[1];
        const uint16_t *cells = l->last_cell[m] ? l->last_cell[m] + first : NULL;
        if (!cells) {
            const unsigned across =
                map->axes[1] < 0 ? 0 : cell_of(l->at[map->axes[1]], map->extent[1], map->size[1]);
            row[across] = fmax(row[across], largest);
        }
        for (size_t i = 0; cells && i < n; i++)
            row[cells[i]] = fmax(row[cells[i]], e[i]);
    }
}

/* To the first number of the next row. */
static void next_row(struct look *l)
{
    const struct plumb_detail *out = l->out;
    if (out->rank)
        l->at[out->rank - 1] = 0;
    for (int axis = (int)out->rank - 2; axis >= 0; axis--) {
        if (++l->at[axis] < out->shape[axis])
            return;
        l->at[axis] = 0;
    }
}

static void add_block(struct look *l, const double *t, const double *g, size_t n, uint64_t first)
{
    double e[PLUMB_METRIC_BLOCK];
    struct plumb_detail *out = l->out;
    const int64_t extent = out->rank ? out->shape[out->rank - 1] : 1;
    int64_t *at = &l->at[out->rank ? out->rank - 1 : 0];
    for (size_t i = 0; i < n; i++) {
        e[i] = error_of(t[i], g[i]);
        count_value(l, 0, t[i]);
        count_value(l, 1, g[i]);
        if (e[i] > 0 &&
            (out->n_worst < PLUMB_DETAIL_WORST || e[i] > out->worst[PLUMB_DETAIL_WORST - 1].error))
            keep_worst(out, first + i, t[i], g[i], e[i]);
    }
    for (size_t i = 0; i < n;) {
        const size_t left = (size_t)(extent - *at), some = left < n - i ? left : n - i;
        add_row(l, e + i, some, *at);
        *at += (int64_t)some;
        i += some;
        if (*at == extent)
            next_row(l);
    }
}

static void add_all(struct look *l)
{
    double t[PLUMB_METRIC_BLOCK], g[PLUMB_METRIC_BLOCK];
    const uint64_t block = PLUMB_METRIC_BLOCK / l->parts, count = l->side[0]->count;
    for (uint64_t first = 0; first < count; first += block) {
        const size_t n = (size_t)(count - first < block ? count - first : block);
        plumb_tensor_to_f64(l->side[0], first, n, t);
        plumb_tensor_to_f64(l->side[1], first, n, g);
        add_block(l, t, g, n * l->parts, first * l->parts);
    }
    for (size_t k = 0; k < l->out->n_profiles; k++)
        for (unsigned c = 0; c < l->out->profiles[k].size; c++)
            l->out->profiles[k].mean[c] =
                l->counts[k][c] ? l->sums[k][c] / (double)l->counts[k][c] : NAN;
}

/* ---- Single elements ------------------------------------------------------------------------- */

void plumb_detail_place(const struct plumb_detail *detail, uint64_t index, int64_t *place)
{
    for (int axis = (int)detail->rank - 1; axis >= 0; axis--) {
        const uint64_t extent = (uint64_t)detail->shape[axis];
        place[axis] = (int64_t)(index % extent);
        index /= extent;
    }
}

static void count_ulps(struct look *l)
{
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups |= PLUMB_G_ULP;
    for (size_t k = 0; k < l->out->n_worst && l->parts == 1; k++) {
        unsigned char bytes[2][16];
        struct plumb_tensor one[2];
        struct plumb_metrics metrics;
        const uint64_t index = l->out->worst[k].index;
        bool fine = true;
        for (int side = 0; side < 2; side++) {
            const enum plumb_dtype dtype = l->side[side]->dtype;
            fine &= plumb_dtype_info(dtype)->bits >= 8 &&
                    !plumb_tensor_init(&one[side], dtype, 0, NULL, NULL);
            if (fine)
                plumb_tensor_gather(l->side[side], index, 1, bytes[side]);
            one[side].swap = l->side[side]->swap;
            one[side].data = bytes[side];
        }
        if (fine && !plumb_metric_pair(&spec, &one[0], &one[1], &metrics, NULL))
            l->out->worst[k].ulps = metrics.max_ulp;
    }
}

static int64_t window_start(int64_t at, int64_t extent)
{
    const int64_t size = PLUMB_DETAIL_WINDOW, most = extent > size ? extent - size : 0;
    const int64_t start = at - size / 2;
    return start < 0 ? 0 : start > most ? most : start;
}

/* One element of a side, by its number. */
static double number_at(const struct look *l, int side, uint64_t index)
{
    double parts[2];
    plumb_tensor_to_f64(l->side[side], index / l->parts, 1, parts);
    return parts[index % l->parts];
}

/* The elements round the worst one, along the axes of the first map. */
static bool fill_window(struct look *l)
{
    struct plumb_detail *out = l->out;
    struct plumb_error_window *w = &out->window;
    if (!out->n_worst)
        return true;
    int64_t place[PLUMB_MAX_RANK + 1], step[2] = {0, 0};
    plumb_detail_place(out, out->worst[0].index, place);
    for (int k = 0; k < 2; k++) {
        const int axis = w->axes[k] = out->maps[0].axes[k];
        w->origin[k] = axis < 0 ? 0 : window_start(place[axis], out->shape[axis]);
        w->size[k] = axis < 0 ? 1 : at_most(out->shape[axis], PLUMB_DETAIL_WINDOW);
        step[k] = 1;
        for (unsigned d = axis < 0 ? out->rank : (unsigned)axis + 1; d < out->rank; d++)
            step[k] *= out->shape[d];
        if (axis >= 0)
            place[axis] = w->origin[k];
    }
    const size_t n = (size_t)w->size[0] * w->size[1];
    double **sides[2] = {&w->target, &w->golden};
    int64_t start = 0;
    for (unsigned d = 0; d < out->rank; d++)
        start = start * out->shape[d] + place[d];
    for (int side = 0; side < 2; side++) {
        double *values = *sides[side] = zeroed(l, n, sizeof *values);
        for (size_t i = 0; values && i < n; i++)
            values[i] = number_at(l, side,
                                  (uint64_t)(start + (int64_t)(i / w->size[1]) * step[0] +
                                             (int64_t)(i % w->size[1]) * step[1]));
        if (!values)
            return false;
    }
    return true;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void take_shape(struct look *l)
{
    struct plumb_detail *out = l->out;
    out->rank = l->side[0]->rank;
    memcpy(out->shape, l->side[0]->shape, out->rank * sizeof *out->shape);
    if (l->parts > 1)
        out->shape[out->rank++] = l->parts;
}

static void take_range(struct look *l)
{
    const struct plumb_stats *sides[] = {&l->out->metrics.target, &l->out->metrics.golden};
    double low = NAN, high = NAN;
    for (int k = 0; k < 2; k++) {
        low = fmin(low, sides[k]->finite_min); /* NaN gives way */
        high = fmax(high, sides[k]->finite_max);
    }
    l->out->low = isnan(low) ? 0 : low;
    l->out->high = isnan(high) ? 0 : high;
    const double range = l->out->high - l->out->low;
    l->unit = isinf(range) ? 0x1p-1 : range < 0x1p-1000 ? 0x1p600 : 1; /* neither end of float64 */
    const double scale = PLUMB_DETAIL_BINS / (l->out->high * l->unit - l->out->low * l->unit);
    l->scale = isfinite(scale) ? scale : 0;
}

enum plumb_code plumb_detail_measure(struct plumb_detail *out, const struct plumb_tensor *target,
                                     const struct plumb_tensor *golden, struct plumb_error *err)
{
    *out = (struct plumb_detail){0};
    if (!plumb_shape_equivalent(target, golden) ||
        plumb_dtype_parts(target->dtype) != plumb_dtype_parts(golden->dtype))
        return plumb_fail(err, PLUMB_E_ARG, "the two are not of one shape");
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return plumb_no_memory(err);
    out->memory = arena;
    struct look l = {.out = out,
                     .arena = arena,
                     .side = {target, golden},
                     .parts = plumb_dtype_parts(target->dtype)};
    struct plumb_metric_spec spec;
    plumb_metric_spec_init(&spec);
    spec.groups |= PLUMB_G_HISTOGRAM | PLUMB_G_STATS;
    enum plumb_code code = plumb_metric_pair(&spec, target, golden, &out->metrics, err);
    take_shape(&l);
    take_range(&l);
    if (!code && !(make_maps(&l) && make_profiles(&l) && make_cells(&l)))
        code = plumb_no_memory(err);
    if (!code && target->count) {
        add_all(&l);
        count_ulps(&l);
        if (!fill_window(&l))
            code = plumb_no_memory(err);
    }
    if (code)
        plumb_detail_free(out);
    return code;
}

void plumb_detail_free(struct plumb_detail *detail)
{
    if (detail->memory)
        arena_free(detail->memory);
    free(detail->memory);
    *detail = (struct plumb_detail){0};
}
