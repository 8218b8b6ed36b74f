/* Other resolutions: interpolate and upsample_... One dimension after the other, each element of
 * the result a weighted sum of a few of the input. */
#include "exec/op/blend.h"
#include "exec/op/place.h"
#include "exec/op/pullback.h"

#include <string.h>

/* ---- The modes ------------------------------------------------------------------------------- */

enum mode {
    MODE_NEAREST,
    MODE_NEAREST_EXACT,
    MODE_LINEAR,
    MODE_CUBIC,
    MODE_AREA,
    MODE_SMOOTH,
    MODE_SMOOTH_CUBIC
};

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

static struct blend *blend_for(struct op *o, enum mode mode, const struct axis *a)
{
    switch (mode) {
    case MODE_LINEAR:
        return blend_linear(o, a);
    case MODE_CUBIC:
        return blend_cubic(o, a);
    case MODE_SMOOTH:
    case MODE_SMOOTH_CUBIC:
        return blend_smooth(o, a, mode == MODE_SMOOTH_CUBIC);
    default:
        return blend_area(o, a);
    }
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
        struct blend *b = blend_for(o, mode, &axes[d]);
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
    if (arg_raw(o, "antialias") && arg_bool(o, "antialias")) {
        if (x->rank != 4 || (mode != MODE_LINEAR && mode != MODE_CUBIC))
            op_fail(o, PLUMB_E_ARG, "interpolate: antialias is for the modes bilinear and bicubic");
        mode = mode == MODE_LINEAR ? MODE_SMOOTH : MODE_SMOOTH_CUBIC;
    }
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

/* The mode and the rank that aten's upsample_MODEnd says. */
static enum mode mode_of_name(const char *name, unsigned *rank)
{
    *rank = strstr(name, "1d") ? 3 : strstr(name, "2d") ? 4 : 5;
    const bool cubic = strstr(name, "cubic"), smooth = strstr(name, "_aa");
    if (strstr(name, "nearest"))
        return strstr(name, "exact") ? MODE_NEAREST_EXACT : MODE_NEAREST;
    return smooth ? (cubic ? MODE_SMOOTH_CUBIC : MODE_SMOOTH) : cubic ? MODE_CUBIC : MODE_LINEAR;
}

/* By (output_size, [align_corners,] scales...) */
static struct val *aten_upsample(struct op *o, struct val *x)
{
    unsigned rank;
    const enum mode mode = mode_of_name(o->call->name, &rank);
    struct axis axes[OP_RANK];
    static const char *const names[3] = {"scales_d", "scales_h", "scales_w"};
    if (x && x->rank != rank)
        op_fail(o, PLUMB_E_ARG, "%s: a tensor of %u dimensions, not %u", o->call->name, x->rank,
                rank);
    const bool align = arg_raw(o, "align_corners") && arg_bool(o, "align_corners");
    if (!x || o->failed || !fill_axes(o, x, "output_size", "scale_factors", false, align, axes))
        return NULL;
    for (unsigned d = 0; d < rank - 2; d++)
        if (arg_given(o, names[d + 5 - rank]))
            axes[d].scale = arg_number(o, names[d + 5 - rank]);
    return resampled(o, x, mode, axes);
}

static void run_aten_upsample(struct op *o)
{
    op_return(o, aten_upsample(o, arg_tensor(o, "input")));
}

/* The gradient does not depend on the input: any of its size will do. */
static void run_aten_backward(struct op *o)
{
    struct val *grad = arg_tensor(o, "grad"), *x = NULL, *to = NULL;
    size_t n;
    const int64_t *sizes = arg_ints(o, "input_size", &n);
    struct pullback p;
    if (grad)
        x = v_full(o, grad->dtype, (unsigned)n, sizes, 0);
    if (!x || !pull_begin(o, &p, 1, &x))
        return;
    struct val *y = aten_upsample(o, x);
    if (y && pull_end(o, &p, 1, &y, &grad, &to))
        op_return(o, to);
}

#define GRAD "Tensor grad|grad_output, "

const struct op_def op_resample[] = {
    {"interpolate upsample",
     "interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest', "
     "bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False)",
     run_interpolate, 0, "linear and cubic (a = -0.75) sums, nearest elements, or means of areas"},
    {"upsample_nearest",
     "upsample_nearest(Tensor input, int[]? size=None, float[]? scale_factor=None)",
     run_upsample_nearest, OP_EXACT, NULL},
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
     run_aten_upsample, OP_EXACT, NULL},
    {"upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
     "_upsample_bilinear2d_aa _upsample_bicubic2d_aa",
     "upsample_linear1d(Tensor input|self, int[1] output_size, bool align_corners, float? "
     "scales_w|scales=None)\n"
     "upsample_bilinear2d(Tensor input|self, int[] output_size, bool align_corners, float? "
     "scales_h=None, float? scales_w=None)\n"
     "upsample_trilinear3d(Tensor input|self, int[] output_size, bool align_corners, float? "
     "scales_d=None, float? scales_h=None, float? scales_w=None)\n"
     "upsample_bilinear2d(Tensor input|self, int[]? output_size, bool align_corners, float[]? "
     "scale_factors)",
     run_aten_upsample, 0, NULL},
    {"upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward "
     "_upsample_nearest_exact1d_backward _upsample_nearest_exact2d_backward "
     "_upsample_nearest_exact3d_backward",
     "upsample_nearest1d_backward(" GRAD "int[1] output_size, int[] input_size, "
     "float? scales_w|scales=None)\n"
     "upsample_nearest2d_backward(" GRAD "int[] output_size, int[] input_size, "
     "float? scales_h=None, float? scales_w=None)\n"
     "upsample_nearest3d_backward(" GRAD "int[] output_size, int[] input_size, "
     "float? scales_d=None, float? scales_h=None, float? scales_w=None)\n"
     "upsample_nearest2d_backward(" GRAD "int[]? output_size, int[] input_size, "
     "float[]? scale_factors)",
     run_aten_backward, OP_NO_GRAD, NULL},
    {"upsample_linear1d_backward upsample_bilinear2d_backward upsample_trilinear3d_backward "
     "upsample_bicubic2d_backward _upsample_bilinear2d_aa_backward "
     "_upsample_bicubic2d_aa_backward",
     "upsample_linear1d_backward(" GRAD "int[1] output_size, int[] input_size, bool "
     "align_corners, float? scales_w|scales=None)\n"
     "upsample_bilinear2d_backward(" GRAD "int[] output_size, int[] input_size, bool "
     "align_corners, float? scales_h=None, float? scales_w=None)\n"
     "upsample_trilinear3d_backward(" GRAD "int[] output_size, int[] input_size, bool "
     "align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None)\n"
     "upsample_bilinear2d_backward(" GRAD "int[]? output_size, int[] input_size, bool "
     "align_corners, float[]? scale_factors)",
     run_aten_backward, OP_NO_GRAD, NULL},
    {0},
};
