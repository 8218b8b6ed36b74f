/* Sampling images at given places: grid_sample, and the grids of affine maps. */
#include "exec/op/place.h"

#include <string.h>

enum method { SAMPLE_LINEAR, SAMPLE_NEAREST, SAMPLE_CUBIC };
enum beyond { BEYOND_ZEROS, BEYOND_BORDER, BEYOND_REFLECTION };

/* x is [n][c][spatial...], the grid [n][places...][dims]; spatial sizes innermost first, as the
 * grid names its coordinates. */
struct sampler {
    enum method method;
    enum beyond beyond;
    bool align_corners;
    unsigned dims;
    int64_t size[3], stride[3];
    int64_t n, channels, plane, places;
};

/* The input elements of one dimension that count at a place, and how. */
struct taps {
    int n;
    int64_t at[4]; /* -1: outside, counts as 0 */
    real weight[4];
    real slope[4]; /* of the weight, by the grid's coordinate */
};

/* ---- Coordinates ----------------------------------------------------------------------------- */

static real clip(real at, int64_t size, real *slope)
{
    const real last = (real)(size - 1);
    if (at > 0 && at < last)
        return at;
    *slope = 0;
    return at <= 0 ? 0 : at >= last ? last : at;
}

/* Mirrored at low and high until it lies between. */
static real reflect(real at, real low, real high, real *slope)
{
    const real span = high - low;
    if (span <= 0) {
        *slope = 0;
        return 0;
    }
    at -= low;
    if (at < 0) {
        at = -at;
        *slope = -*slope;
    }
    const real over = fmod(at, span);
    if (fmod(floor(at / span), R(2)) == 0)
        return over + low;
    *slope = -*slope;
    return span - over + low;
}

/* A place of the dimension brought inside as the padding mode says. */
static real bring_inside(const struct sampler *s, real at, int64_t size, real *slope)
{
    if (s->beyond == BEYOND_REFLECTION)
        at = s->align_corners ? reflect(at, 0, (real)(size - 1), slope)
                              : reflect(at, R(-0.5), (real)size - R(0.5), slope);
    return s->beyond == BEYOND_ZEROS ? at : clip(at, size, slope);
}

static int64_t element(real at, int64_t size)
{
    return at >= 0 && at <= (real)(size - 1) ? (int64_t)at : -1;
}

/* Keys' cubic with a = -0.75 at distance t of a tap, and its derivative by t. */
static real cubic(real t, real *slope)
{
    const real a = R(-0.75);
    if (t <= 1) {
        *slope = (3 * (a + 2) * t - 2 * (a + 3)) * t;
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    }
    *slope = (3 * a * t - 10 * a) * t + 8 * a;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

/* grid: the coordinate, -1 to 1 across the image. */
static struct taps find_taps(const struct sampler *s, real grid, int64_t size)
{
    struct taps t = {0};
    real slope = s->align_corners ? (real)(size - 1) / 2 : (real)size / 2;
    real at =
        s->align_corners ? (grid + 1) / 2 * (real)(size - 1) : ((grid + 1) * (real)size - 1) / 2;
    if (s->method == SAMPLE_CUBIC) {
        const real low = floor(at), part = at - low;
        t.n = 4;
        for (int k = 0; k < 4; k++) {
            real ignored = 0, by;
            const real away = (real)(k - 1) - part;
            t.at[k] = element(bring_inside(s, low + (real)(k - 1), size, &ignored), size);
            t.weight[k] = cubic(fabs(away), &by);
            t.slope[k] = (away > 0 ? -by : by) * slope;
        }
        return t;
    }
    at = bring_inside(s, at, size, &slope);
    if (s->method == SAMPLE_NEAREST) {
        t.n = 1;
        t.at[0] = element(rint(at), size);
        t.weight[0] = 1;
        return t;
    }
    const real low = floor(at);
    t.n = 2;
    t.at[0] = element(low, size);
    t.at[1] = element(low + 1, size);
    t.weight[0] = low + 1 - at;
    t.weight[1] = at - low;
    t.slope[0] = -slope;
    t.slope[1] = slope;
    return t;
}

/* ---- Sampling -------------------------------------------------------------------------------- */

/* All combinations of the taps of the dimensions. */
struct stencil {
    int n;
    int64_t at[16];
    real weight[16];
    real slope[16][3];
};

static struct stencil find_stencil(const struct sampler *s, const real *grid)
{
    struct stencil out = {.n = 1, .weight = {1}};
    for (unsigned d = 0; d < s->dims; d++) {
        const struct taps t = find_taps(s, grid[d], s->size[d]);
        struct stencil next = {0};
        for (int a = 0; a < out.n; a++)
            for (int b = 0; b < t.n; b++) {
                const int k = next.n++;
                next.at[k] = out.at[a] < 0 || t.at[b] < 0 ? -1 : out.at[a] + t.at[b] * s->stride[d];
                next.weight[k] = out.weight[a] * t.weight[b];
                for (unsigned e = 0; e < d; e++)
                    next.slope[k][e] = out.slope[a][e] * t.weight[b];
                next.slope[k][d] = out.weight[a] * t.slope[b];
            }
        out = next;
    }
    return out;
}

/* Elements that one sample is a sum of. */
static int64_t taps_of(const struct sampler *s)
{
    return s->method == SAMPLE_CUBIC ? 16 : s->method == SAMPLE_LINEAR ? INT64_C(1) << s->dims : 1;
}

/* Adds to gx and gg, where they are not NULL, what the gradient of the samples is worth to them. */
static void sample_back(const struct sampler *s, const real *x, const real *grid, const real *grad,
                        real *gx, real *gg)
{
    if (s->plane)
        op_terms((s->places + s->plane - 1) / s->plane * taps_of(s));
    if (gg)
        op_terms(s->channels * taps_of(s));
    for (int64_t p = 0; p < s->n * s->places; p++) {
        const struct stencil t = find_stencil(s, grid + p * s->dims);
        for (int64_t c = 0; c < s->channels; c++) {
            const int64_t plane = p / s->places * s->channels + c, image = plane * s->plane;
            const real g = grad[plane * s->places + p % s->places];
            for (int k = 0; k < t.n; k++) {
                if (t.at[k] < 0)
                    continue;
                if (gx)
                    gx[image + t.at[k]] += g * t.weight[k];
                for (unsigned d = 0; gg && d < s->dims; d++)
                    gg[p * s->dims + d] += g * x[image + t.at[k]] * t.slope[k][d];
            }
        }
    }
}

static void sample_backward(struct op *o, struct val *out)
{
    struct val *x = out->in[0], *grid = out->in[1];
    real *gx = val_grad(o, x), *gg = val_grad(o, grid);
    if (!o->failed)
        sample_back(out->saved, x->f, grid->f, out->grad, gx, gg);
}

/* How x is sampled by the grid; NULL (and failed) when they do not go together. */
static struct sampler *prepare(struct op *o, const struct val *x, const struct val *grid,
                               enum method method, enum beyond beyond, int64_t *shape)
{
    if (!x || !grid || o->failed)
        return NULL;
    const unsigned dims = x->rank - 2;
    bool fits = (x->rank == 4 || x->rank == 5) && grid->rank == x->rank && x->f && grid->f &&
                x->dtype == grid->dtype && grid->shape[0] == x->shape[0] &&
                grid->shape[grid->rank - 1] == dims;
    for (unsigned d = 2; fits && d < x->rank; d++)
        fits = x->shape[d] > 0;
    if (!fits || (method == SAMPLE_CUBIC && dims != 2))
        return op_fail(o, PLUMB_E_ARG,
                       "%s: the input (%u dimensions, %s) and the grid (%u, %s) do not go together",
                       o->call->name, x->rank, plumb_dtype_info(x->dtype)->name, grid->rank,
                       plumb_dtype_info(grid->dtype)->name);
    struct sampler *s = op_alloc(o, 1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct sampler){.method = method,
                          .beyond = beyond,
                          .align_corners = arg_bool(o, "align_corners"),
                          .dims = dims,
                          .n = x->shape[0],
                          .channels = x->shape[1],
                          .plane = 1,
                          .places = 1};
    shape[0] = x->shape[0];
    shape[1] = x->shape[1];
    for (unsigned d = 0; d < dims; d++) {
        shape[d + 2] = grid->shape[d + 1];
        s->size[d] = x->shape[x->rank - 1 - d];
        s->stride[d] = s->plane;
        s->plane *= s->size[d];
        s->places *= shape[d + 2];
    }
    return s;
}

static struct val *sampled(struct op *o, struct val *x, struct val *grid, enum method method,
                           enum beyond beyond)
{
    int64_t shape[5];
    struct sampler *s = prepare(o, x, grid, method, beyond, shape);
    struct val *out = s ? val_new(o, x->dtype, x->rank, shape) : NULL;
    if (!out)
        return NULL;
    op_terms(taps_of(s));
    for (int64_t p = 0; p < s->n * s->places; p++) {
        const struct stencil t = find_stencil(s, grid->f + p * s->dims);
        for (int64_t c = 0; c < s->channels; c++) {
            const int64_t plane = p / s->places * s->channels + c;
            const real *image = x->f + plane * s->plane;
            real sum = 0;
            for (int k = 0; k < t.n; k++)
                sum += t.at[k] < 0 ? 0 : image[t.at[k]] * t.weight[k];
            out->f[plane * s->places + p % s->places] = sum;
        }
    }
    return val_node(o, out, sample_backward, x, grid, NULL, s);
}

/* The place of an argument among the names, or the number that it is. */
static int choice(struct op *o, const char *argument, const char *const names[3])
{
    const char *text = arg_text(o, argument);
    const int64_t number = text ? -1 : arg_int(o, argument);
    for (int k = 0; k < 3; k++)
        if (text ? strcmp(text, names[k]) == 0 : number == k)
            return k;
    op_fail(o, PLUMB_E_ARG, "grid_sample: there is no %s '%s'", argument, text ? text : "number");
    return 0;
}

static void run_grid_sample(struct op *o)
{
    static const char *const methods[3] = {"bilinear", "nearest", "bicubic"};
    static const char *const beyonds[3] = {"zeros", "border", "reflection"};
    struct val *x = arg_tensor(o, "input"), *grid = arg_tensor(o, "grid");
    const enum method method = (enum method)choice(o, "mode", methods);
    const enum beyond beyond = (enum beyond)choice(o, "padding_mode", beyonds);
    op_return(o, sampled(o, x, grid, method, beyond));
}

static void run_grid_sampler_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *grid = arg_tensor(o, "grid");
    struct val *grad = arg_tensor(o, "grad");
    static const char *const none[3] = {"", "", ""};
    const enum method method = (enum method)choice(o, "mode", none);
    const enum beyond beyond = (enum beyond)choice(o, "padding_mode", none);
    int64_t shape[5];
    struct sampler *s = prepare(o, x, grid, method, beyond, shape);
    if (!s || !grad)
        return;
    if (grad->rank != x->rank || memcmp(grad->shape, shape, x->rank * sizeof *shape) != 0 ||
        !grad->f) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient does not have the shape of the samples",
                o->call->name);
        return;
    }
    struct val *gx = val_like(o, x, x->dtype), *gg = val_like(o, grid, grid->dtype);
    if (!gx || !gg)
        return;
    sample_back(s, x->f, grid->f, grad->f, gx->f, gg->f);
    op_return(o, gx);
    op_return(o, gg);
}

/* ---- Affine grids ---------------------------------------------------------------------------- */

static void run_affine_grid(struct op *o)
{
    struct val *theta = arg_tensor(o, "theta");
    size_t n;
    const int64_t *size = arg_ints(o, "size", &n);
    if (!theta || o->failed)
        return;
    const int64_t dims = (int64_t)n - 2;
    if ((n != 4 && n != 5) || theta->rank != 3 || theta->shape[0] != size[0] ||
        theta->shape[1] != dims || theta->shape[2] != dims + 1 || !theta->f) {
        op_fail(o, PLUMB_E_ARG, "affine_grid: theta does not fit a size of %zu numbers", n);
        return;
    }
    const bool align = arg_given(o, "align_corners") && arg_bool(o, "align_corners");
    int64_t places = shape_count(o, (unsigned)dims, size + 2);
    int64_t flat[2] = {places, dims + 1};
    struct val *base = places < 0 ? NULL : val_new(o, theta->dtype, 2, flat);
    if (!base)
        return;
    for (int64_t p = 0; p < places; p++) {
        int64_t left = p;
        for (int64_t d = 0; d < dims; d++) {
            const int64_t length = size[n - 1 - (size_t)d], j = left % length;
            left /= length;
            const real steps = (real)(align ? length - 1 : length);
            const real at = length == 1 ? 0 : ((real)(2 * j + !align) - steps) / steps;
            base->f[p * (dims + 1) + d] = at;
        }
        base->f[p * (dims + 1) + dims] = 1;
    }
    struct val *grid = v_matmul(o, base, v_transpose(o, theta, 1, 2));
    int64_t shape[5] = {size[0]};
    memcpy(shape + 1, size + 2, (size_t)dims * sizeof *shape);
    shape[dims + 1] = dims;
    op_return(o, v_reshape(o, grid, (unsigned)n, shape));
}

const struct op_def op_sample[] = {
    {"grid_sample",
     "grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? "
     "align_corners=None)",
     run_grid_sample, 0, "input at the places of the grid, -1 to 1 across the image"},
    {"grid_sampler grid_sampler_2d grid_sampler_3d",
     "grid_sampler(Tensor input, Tensor grid, int mode|interpolation_mode, int padding_mode, bool "
     "align_corners)",
     run_grid_sample, 0, NULL},
    {"grid_sampler_2d_backward grid_sampler_3d_backward",
     "grid_sampler_2d_backward(Tensor grad|grad_output, Tensor input, Tensor grid, int "
     "mode|interpolation_mode, int padding_mode, bool align_corners, any output_mask=None)",
     run_grid_sampler_backward, OP_NO_GRAD, NULL},
    {"affine_grid affine_grid_generator",
     "affine_grid(Tensor theta, int[] size, bool? align_corners=None)", run_affine_grid, 0,
     "(x, y, 1) theta^T over the places of an image"},
    {0},
};
