/* Other resolutions: interpolate and upsample_... One dimension after the other, each element of
 * the result a weighted sum of a few of the input. */
#include "op/place.h"

#include <string.h>

/* ---- Weighted sums along a dimension --------------------------------------------------------- */

/* Element j of the result is the sum of weight[k] * x[index[k]] for k in [begin[j], begin[j +
 * 1]). */
struct blend {
    struct span3 from;
    int64_t length;
    int64_t *begin, *index;
    real *weight;
};

static void blend_backward(struct op *o, struct val *out)
{
    const struct blend *b = out->saved;
    real *g = val_grad(o, out->in[0]);
    const int64_t inner = b->from.inner;
    for (int64_t p = 0; g && p < b->from.outer; p++)
        for (int64_t j = 0; j < b->length; j++)
            for (int64_t k = b->begin[j]; k < b->begin[j + 1]; k++) {
                real *to = g + (p * b->from.length + b->index[k]) * inner;
                const real *grad = out->grad + (p * b->length + j) * inner;
                const real w = b->weight[k];
                for (int64_t i = 0; i < inner; i++)
                    to[i] += w * grad[i];
            }
}

static struct val *v_blend(struct op *o, struct val *x, unsigned dim, struct blend *b)
{
    if (!x || !b)
        return NULL;
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[dim] = b->length;
    struct val *out = val_new(o, x->dtype, x->rank, shape);
    if (!out)
        return NULL;
    b->from = val_span(x, dim);
    const int64_t inner = b->from.inner;
    for (int64_t p = 0; p < b->from.outer; p++)
        for (int64_t j = 0; j < b->length; j++)
            for (int64_t k = b->begin[j]; k < b->begin[j + 1]; k++) {
                const real *from = x->f + (p * b->from.length + b->index[k]) * inner;
                real *to = out->f + (p * b->length + j) * inner;
                const real w = b->weight[k];
                for (int64_t i = 0; i < inner; i++)
                    to[i] += w * from[i];
            }
    return val_node(o, out, blend_backward, x, NULL, NULL, b);
}

static struct blend *blend_new(struct op *o, int64_t length, int64_t taps)
{
    struct blend *b = op_alloc(o, 1, sizeof *b);
    int64_t total;
    if (!b || __builtin_mul_overflow(length, taps, &total))
        return b ? op_fail(o, PLUMB_E_ARG, "%s: a size of %lld", o->call->name, (long long)length)
                 : NULL;
    b->length = length;
    b->begin = op_alloc(o, length + 1, sizeof *b->begin);
    b->index = op_alloc(o, total + 1, sizeof *b->index);
    b->weight = op_alloc(o, total + 1, sizeof *b->weight);
    return b->begin && b->index && b->weight ? b : NULL;
}

/* ---- The modes ------------------------------------------------------------------------------- */

enum mode { MODE_NEAREST, MODE_NEAREST_EXACT, MODE_LINEAR, MODE_CUBIC, MODE_AREA };

/* How one dimension changes. scale: given by the caller, 0 if the sizes decide. */
struct axis {
    int64_t from, to;
    double scale;
    bool align_corners;
};

/* Input steps for one step of the output. */
static real step_of(const struct axis *a)
{
    if (a->align_corners)
        return a->to > 1 ? (real)(a->from - 1) / (real)(a->to - 1) : 0;
    return a->scale > 0 ? (real)(1 / a->scale) : (real)a->from / (real)a->to;
}

static real position_of(const struct axis *a, int64_t j, bool cubic)
{
    const real step = step_of(a);
    if (a->align_corners)
        return step * (real)j;
    const real at = step * ((real)j + R(0.5)) - R(0.5);
    return at < 0 && !cubic ? 0 : at;
}

static struct blend *linear_blend(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, 2);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        const real at = position_of(a, j, false);
        int64_t low = at >= (real)(a->from - 1) ? a->from - 1 : (int64_t)at;
        const real part = low == a->from - 1 ? 0 : at - (real)low;
        b->index[k] = low;
        b->weight[k++] = 1 - part;
        b->index[k] = low + (low < a->from - 1);
        b->weight[k++] = part;
        b->begin[j + 1] = k;
    }
    return b;
}

/* Keys' cubic convolution with a = -0.75; t: distance from the tap, 0 to 2. */
static real cubic_weight(real t)
{
    const real a = R(-0.75);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

static struct blend *cubic_blend(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, 4);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        const real at = position_of(a, j, true), low = floor(at), part = at - low;
        for (int tap = -1; tap <= 2; tap++, k++) {
            real place = low + (real)tap;
            place = place < 0 ? 0 : place > (real)(a->from - 1) ? (real)(a->from - 1) : place;
            b->index[k] = (int64_t)place;
            b->weight[k] = cubic_weight(fabs((real)tap - part));
        }
        b->begin[j + 1] = k;
    }
    return b;
}

/* Element j is the mean of the inputs that it covers, at least in part. */
static struct blend *area_blend(struct op *o, const struct axis *a)
{
    struct blend *b = blend_new(o, a->to, a->from / a->to + 2);
    for (int64_t j = 0, k = 0; b && j < a->to; j++) {
        /* j * from / to without overflow */
        const int64_t whole = a->from / a->to, rest = a->from % a->to;
        const int64_t first = j * whole + j * rest / a->to;
        const int64_t last = (j + 1) * whole + ((j + 1) * rest + a->to - 1) / a->to;
        for (int64_t i = first; i < last; i++, k++) {
            b->index[k] = i;
            b->weight[k] = 1 / (real)(last - first);
        }
        b->begin[j + 1] = k;
    }
    return b;
}

/* The input element nearest to each of the output. In float whatever the number type: a place is
 * right or wrong, and all devices find it in float. */
static int64_t *nearest(struct op *o, const struct axis *a, bool exact)
{
    int64_t *at = op_alloc(o, a->to + 1, sizeof *at);
    const float step = a->scale > 0 ? (float)(1 / a->scale) : (float)a->from / (float)a->to;
    for (int64_t j = 0; at && j < a->to; j++) {
        const float place = floorf(((float)j + (exact ? 0.5F : 0)) * step);
        at[j] = place >= (float)(a->from - 1) ? a->from - 1 : (int64_t)place;
    }
    return at;
}

static struct val *resampled(struct op *o, struct val *x, enum mode mode, const struct axis *axes)
{
    if (!x || o->failed)
        return NULL;
    unsigned n = x->rank - 2;
    for (unsigned d = 0; d < n; d++)
        if (axes[d].to <= 0 || axes[d].from <= 0 || axes[d].to > INT64_C(1) << 40)
            return op_fail(o, PLUMB_E_ARG, "%s: size %lld to %lld", o->call->name,
                           (long long)axes[d].from, (long long)axes[d].to);
    if (mode == MODE_NEAREST || mode == MODE_NEAREST_EXACT) {
        const int64_t *index[OP_RANK] = {0};
        int64_t shape[OP_RANK];
        for (unsigned d = 0; d < n; d++) {
            shape[d + 2] = axes[d].to;
            index[d + 2] = nearest(o, &axes[d], mode == MODE_NEAREST_EXACT);
        }
        return o->failed ? NULL : v_pick(o, x, shape, index);
    }
    if (!x->f)
        return op_fail(o, PLUMB_E_ARG, "%s of %s", o->call->name, plumb_dtype_info(x->dtype)->name);
    for (unsigned d = 0; d < n && x; d++) {
        struct blend *b = mode == MODE_LINEAR  ? linear_blend(o, &axes[d])
                          : mode == MODE_CUBIC ? cubic_blend(o, &axes[d])
                                               : area_blend(o, &axes[d]);
        x = v_blend(o, x, d + 2, b);
    }
    return x;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static bool spatial(struct op *o, const struct val *x)
{
    if (!x || o->failed)
        return false;
    if (x->rank < 3 || x->rank > 5)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions (3 to 5)", o->call->name, x->rank);
    return !o->failed;
}

/* The sizes from size or scale_factor; one number stands for all dimensions. */
static bool fill_axes(struct op *o, const struct val *x, const char *size_name,
                      const char *scale_name, bool recompute, bool align, struct axis *axes)
{
    size_t n_sizes, n_scales;
    const int64_t *sizes = arg_ints(o, size_name, &n_sizes);
    const double *scales = arg_numbers(o, scale_name, &n_scales);
    const unsigned n = x->rank - 2;
    if (o->failed)
        return false;
    if ((n_sizes == 0) == (n_scales == 0) || (n_sizes > 1 && n_sizes != n) ||
        (n_scales > 1 && n_scales != n)) {
        op_fail(o, PLUMB_E_ARG, "%s: give either sizes or scales, one or %u of them", o->call->name,
                n);
        return false;
    }
    for (unsigned d = 0; d < n; d++) {
        axes[d] = (struct axis){.from = x->shape[d + 2], .align_corners = align};
        if (n_sizes) {
            axes[d].to = sizes[n_sizes == 1 ? 0 : d];
            continue;
        }
        const double scale = scales[n_scales == 1 ? 0 : d];
        const double to = floor((double)axes[d].from * scale);
        axes[d].to = to >= 1 && to < 0x1p40 ? (int64_t)to : 0;
        axes[d].scale = recompute ? 0 : scale;
    }
    return true;
}

static bool mode_named(struct op *o, const char *name, unsigned rank, enum mode *mode)
{
    static const struct {
        const char *name;
        enum mode mode;
        unsigned rank; /* 0: any */
    } modes[] = {{"nearest", MODE_NEAREST, 0}, {"nearest-exact", MODE_NEAREST_EXACT, 0},
                 {"area", MODE_AREA, 0},       {"linear", MODE_LINEAR, 3},
                 {"bilinear", MODE_LINEAR, 4}, {"bicubic", MODE_CUBIC, 4},
                 {"trilinear", MODE_LINEAR, 5}};
    for (size_t k = 0; name && k < sizeof modes / sizeof *modes; k++)
        if (strcmp(name, modes[k].name) == 0 && (!modes[k].rank || modes[k].rank == rank)) {
            *mode = modes[k].mode;
            return true;
        }
    op_fail(o, PLUMB_E_ARG, "interpolate: no mode '%s' for a tensor of %u dimensions",
            name ? name : "None", rank);
    return false;
}

static void run_interpolate(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    enum mode mode;
    struct axis axes[OP_RANK];
    if (!spatial(o, x) || !mode_named(o, arg_text(o, "mode"), x->rank, &mode))
        return;
    const bool align = arg_given(o, "align_corners") && arg_bool(o, "align_corners");
    if (align && mode != MODE_LINEAR && mode != MODE_CUBIC)
        op_fail(o, PLUMB_E_ARG, "interpolate: align_corners is for the linear and cubic modes");
    if (arg_raw(o, "antialias") && arg_bool(o, "antialias"))
        op_fail(o, PLUMB_E_UNSUPPORTED, "interpolate with antialias");
    const bool recompute =
        arg_given(o, "recompute_scale_factor") && arg_bool(o, "recompute_scale_factor");
    if (!o->failed && fill_axes(o, x, "size", "scale_factor", recompute, align, axes))
        op_return(o, resampled(o, x, mode, axes));
}

static void run_upsample_nearest(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct axis axes[OP_RANK];
    if (spatial(o, x) && fill_axes(o, x, "size", "scale_factor", false, false, axes))
        op_return(o, resampled(o, x, MODE_NEAREST, axes));
}

static void run_upsample_bilinear(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct axis axes[OP_RANK];
    if (spatial(o, x) && fill_axes(o, x, "size", "scale_factor", false, true, axes))
        op_return(o, resampled(o, x, MODE_LINEAR, axes));
}

/* aten's upsample_MODEnd(input, output_size, [align_corners,] scales...) */
static void aten_upsample(struct op *o, enum mode mode, unsigned rank)
{
    struct val *x = arg_tensor(o, "input");
    struct axis axes[OP_RANK];
    static const char *const names[3] = {"scales_d", "scales_h", "scales_w"};
    if (x && x->rank != rank)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions, not %u", o->call->name, x->rank,
                rank);
    const bool align = arg_raw(o, "align_corners") && arg_bool(o, "align_corners");
    if (!x || o->failed || !fill_axes(o, x, "output_size", "scale_factors", false, align, axes))
        return;
    for (unsigned d = 0; d < rank - 2; d++)
        if (arg_given(o, names[d + 5 - rank]))
            axes[d].scale = arg_number(o, names[d + 5 - rank]);
    op_return(o, resampled(o, x, mode, axes));
}

static void run_aten_nearest(struct op *o)
{
    const char *name = o->call->name;
    aten_upsample(o, strstr(name, "exact") ? MODE_NEAREST_EXACT : MODE_NEAREST,
                  strstr(name, "1d")   ? 3
                  : strstr(name, "2d") ? 4
                                       : 5);
}

static void run_aten_linear(struct op *o)
{
    const char *name = o->call->name;
    aten_upsample(o, strstr(name, "cubic") ? MODE_CUBIC : MODE_LINEAR,
                  strstr(name, "1d")   ? 3
                  : strstr(name, "2d") ? 4
                                       : 5);
}

static void run_nearest_backward(struct op *o)
{
    struct val *grad = arg_tensor(o, "grad");
    size_t n;
    const int64_t *sizes = arg_ints(o, "input_size", &n);
    static const char *const names[3] = {"scales_d", "scales_h", "scales_w"};
    if (!grad || o->failed || shape_count(o, (unsigned)n, sizes) < 0)
        return;
    if (grad->rank != n || n < 3 || n > 5 || grad->count == 0 || grad->shape[0] != sizes[0] ||
        grad->shape[1] != sizes[1]) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient does not fit the input", o->call->name);
        return;
    }
    struct val *zeros = v_full(o, grad->dtype, (unsigned)n, sizes, 0);
    const int64_t *index[OP_RANK] = {0};
    int64_t shape[OP_RANK];
    for (unsigned d = 2; d < n; d++) {
        struct axis a = {.from = sizes[d], .to = grad->shape[d]};
        const char *name = names[d + 3 - n];
        a.scale = arg_given(o, name) ? arg_number(o, name) : 0;
        shape[d] = a.to;
        index[d] = a.from > 0 ? nearest(o, &a, strstr(o->call->name, "exact") != NULL) : NULL;
    }
    const int64_t *map = o->failed ? NULL : pick_map(o, zeros, shape, index);
    op_return(o, v_place_add(o, zeros, grad, map));
}

const struct op_def op_resample[] = {
    {"interpolate upsample",
     "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', "
     "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False)",
     run_interpolate, 0, "linear and cubic (a = -0.75) sums, nearest elements, or means of areas"},
    {"upsample_nearest",
     "upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None)",
     run_upsample_nearest, 0, NULL},
    {"upsample_bilinear",
     "upsample_bilinear(Tensor input, int[]? size=None, float[]? scale_factor=None)",
     run_upsample_bilinear, 0, "with aligned corners"},
    {"upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
     "_upsample_nearest_exact2d _upsample_nearest_exact3d",
     "upsample_nearest1d(Tensor input|self, int[1] output_size, float? scales_w|scales=None)\n"
     "upsample_nearest2d(Tensor input|self, int[] output_size, float? scales_h=None, float? "
     "scales_w=None)\n"
     "upsample_nearest3d(Tensor input|self, int[] output_size, float? scales_d=None, float? "
     "scales_h=None, float? scales_w=None)\n"
     "upsample_nearest2d(Tensor input|self, int[]? output_size, float[]? scale_factors)",
     run_aten_nearest, 0, NULL},
    {"upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d",
     "upsample_linear1d(Tensor input|self, int[1] output_size, bool align_corners, float? "
     "scales_w|scales=None)\n"
     "upsample_bilinear2d(Tensor input|self, int[] output_size, bool align_corners, float? "
     "scales_h=None, float? scales_w=None)\n"
     "upsample_trilinear3d(Tensor input|self, int[] output_size, bool align_corners, float? "
     "scales_d=None, float? scales_h=None, float? scales_w=None)\n"
     "upsample_bilinear2d(Tensor input|self, int[]? output_size, bool align_corners, float[]? "
     "scale_factors)",
     run_aten_linear, 0, NULL},
    {"upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward",
     "upsample_nearest1d_backward(Tensor grad|grad_output, int[1] output_size, int[] input_size, "
     "float? scales_w|scales=None)\n"
     "upsample_nearest2d_backward(Tensor grad|grad_output, int[] output_size, int[] input_size, "
     "float? scales_h=None, float? scales_w=None)\n"
     "upsample_nearest3d_backward(Tensor grad|grad_output, int[] output_size, int[] input_size, "
     "float? scales_d=None, float? scales_h=None, float? scales_w=None)",
     run_nearest_backward, 0, NULL},
    {0},
};
