/* Layer, group, instance, RMS and local response normalisation. */
#include "exec/op/norm.h"
#include "exec/op/fold.h"
#include "exec/op/sum.h"

#include <string.h>

static bool check_float(struct op *o, const struct val *x)
{
    if (x && !val_is_float(x))
        op_fail(o, PLUMB_E_ARG, "%s of %s: it takes floating-point numbers", o->call->name,
                plumb_dtype_info(x->dtype)->name);
    return x && !o->failed;
}

static bool check_count(struct op *o, const char *name, const struct val *v, int64_t count)
{
    if (!v)
        return !o->failed;
    if (v->count != count || !v->f)
        op_fail(o, PLUMB_E_ARG, "%s: '%s' holds %lld numbers, %lld are wanted", o->call->name, name,
                (long long)v->count, (long long)count);
    return !o->failed;
}

/* Statistics as a value with one element for each row. */
static struct val *statistics(struct op *o, const real *from, enum plumb_dtype dtype, unsigned rank,
                              const int64_t *shape)
{
    struct val *v = val_new(o, dtype, rank, shape);
    for (int64_t k = 0; v && k < v->count; k++)
        v->f[k] = from[k];
    return v;
}

/* ---- Layer normalisation: a row is the last dimensions --------------------------------------- */

/* Rows of the dimensions that normalized_shape names; false when it does not end x's shape. */
static bool layer_layout(struct op *o, const struct val *x, struct norm_layout *layout,
                         unsigned *first)
{
    size_t n;
    const int64_t *shape = arg_ints(o, "normalized_shape", &n);
    if (!check_float(o, x))
        return false;
    bool fits = n > 0 && n <= x->rank;
    *layout = (struct norm_layout){1, 1, 1, 1, 1};
    *first = fits ? x->rank - (unsigned)n : 0;
    for (unsigned d = 0; fits && d < x->rank; d++) {
        int64_t *part = d < *first ? &layout->rows : &layout->place;
        *part = size_times(*part, x->shape[d]);
        fits = d < *first || shape[d - *first] == x->shape[d];
    }
    layout->per_row = layout->place;
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: the normalized shape is not how the input's shape ends",
                o->call->name);
    return fits;
}

static void layer_norm(struct op *o, bool native)
{
    struct val *x = arg_unread(o, "input");
    struct val *weight = arg_tensor(o, "weight"), *bias = arg_tensor(o, "bias");
    struct norm norm = {.eps = (real)arg_number(o, "eps"), .centred = true};
    unsigned first;
    if (!layer_layout(o, x, &norm.layout, &first) ||
        !check_count(o, "weight", weight, norm.layout.per_row) ||
        !check_count(o, "bias", bias, norm.layout.per_row))
        return;
    op_return(o, v_norm_rows(o, &norm, x, weight, bias));
    if (!native || o->failed)
        return;
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = d < first ? x->shape[d] : 1;
    op_return(o, statistics(o, norm.mean, x->dtype, x->rank, shape));
    op_return(o, statistics(o, norm.rstd, x->dtype, x->rank, shape));
}

static void run_layer_norm(struct op *o)
{
    layer_norm(o, false);
}

static void run_native_layer_norm(struct op *o)
{
    layer_norm(o, true);
}

/* Without eps, torch takes the resolution of the input's type. fused: 1 / sqrt(mean + eps) of each
 * row is returned too, in the type that it is computed in. */
static void rms_norm(struct op *o, bool fused)
{
    struct val *x = arg_unread(o, "input"), *weight = arg_tensor(o, "weight");
    struct norm norm = {.centred = false};
    unsigned first;
    if (!layer_layout(o, x, &norm.layout, &first) ||
        !check_count(o, "weight", weight, norm.layout.per_row))
        return;
    norm.eps = arg_given(o, "eps") ? (real)arg_number(o, "eps")
                                   : ldexp(R(1), -plumb_dtype_info(x->dtype)->precision);
    op_return(o, v_norm_rows(o, &norm, x, weight, NULL));
    if (!fused || o->failed)
        return;
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = d < first ? x->shape[d] : 1;
    op_return(
        o, statistics(o, norm.rstd, x->dtype == PLUMB_F64 ? PLUMB_F64 : PLUMB_F32, x->rank, shape));
}

static void run_rms_norm(struct op *o)
{
    rms_norm(o, false);
}

static void run_fused_rms_norm(struct op *o)
{
    rms_norm(o, true);
}

/* ---- Group and instance normalisation -------------------------------------------------------- */

static bool group_layout(struct op *o, const struct val *x, int64_t groups,
                         struct norm_layout *layout)
{
    if (!check_float(o, x))
        return false;
    if (x->rank < 2 || groups <= 0 || groups > x->shape[1] || x->shape[1] % groups != 0) {
        op_fail(o, PLUMB_E_ARG, "%s: the channels do not divide into %lld groups", o->call->name,
                (long long)groups);
        return false;
    }
    int64_t place = 1;
    for (unsigned d = 2; d < x->rank; d++)
        place = size_times(place, x->shape[d]);
    const int64_t each = x->shape[1] / groups;
    *layout = (struct norm_layout){.batch = 1,
                                   .rows = size_times(x->shape[0], groups),
                                   .place = size_times(each, place),
                                   .period = groups,
                                   .per_row = each};
    return true;
}

static void group_norm(struct op *o, int64_t groups, bool native)
{
    struct val *x = arg_unread(o, "input");
    struct val *weight = arg_tensor(o, "weight"), *bias = arg_tensor(o, "bias");
    struct norm norm = {.eps = (real)arg_number(o, "eps"), .centred = true};
    if (!group_layout(o, x, groups, &norm.layout) ||
        !check_count(o, "weight", weight, x->shape[1]) ||
        !check_count(o, "bias", bias, x->shape[1]))
        return;
    op_return(o, v_norm_rows(o, &norm, x, weight, bias));
    if (!native || o->failed)
        return;
    int64_t shape[2] = {x->shape[0], groups};
    op_return(o, statistics(o, norm.mean, x->dtype, 2, shape));
    op_return(o, statistics(o, norm.rstd, x->dtype, 2, shape));
}

static void run_group_norm(struct op *o)
{
    group_norm(o, arg_int(o, "num_groups"), false);
}

static void run_native_group_norm(struct op *o)
{
    group_norm(o, arg_int(o, "group"), true);
}

/* ---- Running statistics ---------------------------------------------------------------------- */

static real row_variance(const struct norm *norm, const struct val *x, int64_t row)
{
    const struct norm_layout *l = &norm->layout;
    struct tally sum = {0};
    for (int64_t b = 0; b < l->batch; b++)
        for (int64_t p = 0; p < l->place; p++) {
            const real away = x->f[(b * l->rows + row) * l->place + p] - norm->mean[row];
            tally_add(&sum, away * away);
        }
    return tally_value(sum.sum, sum.lost) / (real)(l->batch * l->place - 1);
}

static void write_moved(struct op *o, const char *name, const struct norm *norm,
                        const struct val *x, real momentum)
{
    const struct norm_layout *l = &norm->layout;
    const bool mean = strcmp(name, "running_mean") == 0;
    const struct val *running = arg_tensor(o, name);
    struct val *now = running ? val_like(o, running, running->dtype) : NULL;
    if (!now)
        return;
    for (int64_t row = 0; row < l->rows; row++)
        now->f[row % l->period] += mean ? norm->mean[row] : row_variance(norm, x, row);
    const int64_t samples = l->rows / l->period; /* whole ones: rows are samples of channels */
    for (int64_t k = 0; k < now->count; k++)
        now->f[k] = (1 - momentum) * running->f[k] + momentum * now->f[k] / (real)samples;
    op_write(o, name, now);
}

void norm_write_running(struct op *o, const struct norm *norm, const struct val *x, double momentum)
{
    if (o->failed || x->count == 0)
        return;
    write_moved(o, "running_mean", norm, x, (real)momentum);
    write_moved(o, "running_var", norm, x, (real)momentum);
}

/* Each channel of each sample by itself, or by the running statistics. */
static void run_instance_norm(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *weight = arg_tensor(o, "weight"), *bias = arg_tensor(o, "bias");
    struct val *mean = arg_tensor(o, "running_mean"), *var = arg_tensor(o, "running_var");
    struct norm norm = {.eps = (real)arg_number(o, "eps"), .centred = true};
    if (!x || !group_layout(o, x, x->rank > 1 ? x->shape[1] : 0, &norm.layout) ||
        !check_count(o, "weight", weight, x->shape[1]) ||
        !check_count(o, "bias", bias, x->shape[1]) ||
        !check_count(o, "running_mean", mean, x->shape[1]) ||
        !check_count(o, "running_var", var, x->shape[1]))
        return;
    if (!arg_bool(o, "use_input_stats")) {
        if (!mean || !var) {
            op_fail(o, PLUMB_E_ARG,
                    "instance_norm: without the input's statistics it needs "
                    "running_mean and running_var");
            return;
        }
        norm.given = true;
        norm.mean = op_alloc(o, norm.layout.rows, sizeof(real));
        norm.rstd = op_alloc(o, norm.layout.rows, sizeof(real));
        for (int64_t k = 0; !o->failed && k < norm.layout.rows; k++) {
            norm.mean[k] = mean->f[k % x->shape[1]];
            norm.rstd[k] = 1 / sqrt(var->f[k % x->shape[1]] + norm.eps);
        }
    }
    op_return(o, v_norm_rows(o, &norm, x, weight, bias));
    if (!norm.given)
        norm_write_running(o, &norm, x, arg_number(o, "momentum"));
}

/* ---- Their gradients as operators ------------------------------------------------------------ */

/* The gradients that output_mask asks for; None for the others. */
static void return_gradients(struct op *o, struct norm *norm, struct val *weight, unsigned w_rank,
                             const int64_t *w_shape)
{
    struct val *g = arg_tensor(o, "grad_out"), *x = arg_tensor(o, "input");
    struct val *mean = arg_tensor(o, "mean"), *rstd = arg_tensor(o, "rstd");
    size_t n;
    const int64_t *mask = arg_ints(o, "output_mask", &n);
    if (!g || !mean || !rstd || !check_count(o, "grad_out", g, x->count) ||
        !check_count(o, "mean", mean, norm->layout.rows) ||
        !check_count(o, "rstd", rstd, norm->layout.rows) ||
        !check_count(o, "weight", weight, norm->layout.period * norm->layout.per_row))
        return;
    norm->mean = mean->f;
    norm->rstd = rstd->f;
    struct val *grads[3] = {0};
    for (size_t k = 0; k < 3; k++)
        if (k < n && mask[k])
            grads[k] = k == 0 ? val_like(o, x, x->dtype) : val_new(o, x->dtype, w_rank, w_shape);
    if (o->failed)
        return;
    const struct norm_grads to = {.x = grads[0] ? grads[0]->f : NULL,
                                  .weight = grads[1] ? grads[1]->f : NULL,
                                  .bias = grads[2] ? grads[2]->f : NULL};
    norm_gradient(o, norm, x, weight ? weight->f : NULL, g->f, to);
    for (size_t k = 0; k < 3; k++) {
        if (grads[k])
            op_return(o, grads[k]);
        else
            op_return_none(o);
    }
}

static void run_layer_norm_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct norm norm = {.centred = true};
    unsigned first;
    if (layer_layout(o, x, &norm.layout, &first))
        return_gradients(o, &norm, arg_tensor(o, "weight"), x->rank - first, x->shape + first);
}

/* Gradients of input and weight, by rstd. */
static void run_fused_rms_norm_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_out"), *x = arg_tensor(o, "input");
    struct val *rstd = arg_tensor(o, "rstd"), *weight = arg_tensor(o, "weight");
    struct norm norm = {.centred = false};
    unsigned first;
    size_t n;
    const int64_t *mask = arg_ints(o, "output_mask", &n);
    if (!layer_layout(o, x, &norm.layout, &first) || !g || !rstd ||
        !check_count(o, "grad_out", g, x->count) ||
        !check_count(o, "rstd", rstd, norm.layout.rows) ||
        !check_count(o, "weight", weight, norm.layout.per_row))
        return;
    norm.rstd = rstd->f;
    struct val *dx = n > 0 && mask[0] ? val_like(o, x, x->dtype) : NULL;
    struct val *dw = n > 1 && mask[1] && weight ? val_like(o, weight, weight->dtype) : NULL;
    if (o->failed)
        return;
    norm_gradient(o, &norm, x, weight ? weight->f : NULL, g->f,
                  (struct norm_grads){.x = dx ? dx->f : NULL, .weight = dw ? dw->f : NULL});
    dx ? op_return(o, dx) : op_return_none(o);
    dw ? op_return(o, dw) : op_return_none(o);
    op_return_tuple(o);
}

static void run_group_norm_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct norm norm = {.centred = true};
    if (group_layout(o, x, arg_int(o, "group"), &norm.layout))
        return_gradients(o, &norm, arg_tensor(o, "weight"), 1, x->shape + 1);
}

/* ---- Local response normalisation ------------------------------------------------------------ */

struct window {
    struct span3 span;
    int64_t before, after; /* neighbours on each side */
    real size;
};

/* Adds to each channel the mean over its window of channels; forwards, or transposed. */
static void window_add(const struct window *w, const real *from, real *to, bool transposed)
{
    const int64_t before = transposed ? w->after : w->before;
    const int64_t after = transposed ? w->before : w->after;
    const int64_t channels = w->span.length, inner = w->span.inner;
    for (int64_t k = 0; k < w->span.outer; k++)
        for (int64_t c = 0; c < channels; c++) {
            const int64_t low = c > before ? c - before : 0;
            const int64_t high = after < channels - 1 - c ? c + after : channels - 1;
            for (int64_t j = low; j <= high; j++)
                for (int64_t p = 0; p < inner; p++)
                    to[(k * channels + c) * inner + p] +=
                        from[(k * channels + j) * inner + p] / w->size;
        }
}

static void window_back(struct op *o, struct val *out)
{
    real *g = val_grad(o, out->in[0]);
    if (g)
        window_add(out->saved, out->grad, g, true);
}

static struct val *window_mean(struct op *o, struct val *x, int64_t size)
{
    struct val *out = x ? val_like(o, x, x->dtype) : NULL;
    struct window *w = op_alloc(o, 1, sizeof *w);
    if (!out || !w)
        return NULL;
    *w = (struct window){val_span(x, 1), size / 2, (size - 1) / 2, (real)size};
    if (x->count == 0)
        w->span.outer = 0;
    window_add(w, x->f, out->f, false);
    return val_node(o, out, window_back, x, NULL, NULL, w);
}

static void run_local_response_norm(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const int64_t size = arg_int(o, "size");
    if (!check_float(o, x))
        return;
    if (x->rank < 3 || size < 1) {
        op_fail(o, PLUMB_E_ARG,
                "local_response_norm takes 3 or more dimensions and a size of at least 1, "
                "not %u and %lld",
                x->rank, (long long)size);
        return;
    }
    op_terms(size);
    struct val *mean = window_mean(o, v_square(o, x), size);
    struct val *base = v_offset(o, v_scale(o, mean, arg_number(o, "alpha")), arg_number(o, "k"));
    op_return(o, v_div(o, x, v_pow(o, base, v_number(o, arg_number(o, "beta")))));
}

const struct op_def op_norm[] = {
    {"layer_norm",
     "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-5, bool cudnn_enable=True)",
     run_layer_norm, 0, "(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"},
    {"native_layer_norm",
     "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
     "float eps)",
     run_native_layer_norm, 0, "layer_norm, mean, 1 / sqrt(var + eps)"},
    {"rms_norm",
     "rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
     run_rms_norm, 0, "x / sqrt(mean(x^2) + eps) * weight over the last dimensions"},
    {"_fused_rms_norm",
     "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps)",
     run_fused_rms_norm, 0, "rms_norm, 1 / sqrt(mean(x^2) + eps)"},
    {"_fused_rms_norm_backward",
     "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, "
     "Tensor? weight, int[] output_mask)",
     run_fused_rms_norm_backward, OP_NO_GRAD, "gradients of input and weight, by rstd"},
    {"group_norm",
     "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-5, bool cudnn_enabled=True)",
     run_group_norm, 0,
     "(x - mean) / sqrt(var + eps) * weight + bias within each group of channels"},
    {"native_group_norm",
     "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
     "int group, float eps)",
     run_native_group_norm, 0, "group_norm, mean, 1 / sqrt(var + eps)"},
    {"instance_norm",
     "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled)\n"
     "instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, "
     "Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, "
     "float eps=1e-5)",
     run_instance_norm, 0, "(x - mean) / sqrt(var + eps) * weight + bias within each channel"},
    {"native_layer_norm_backward",
     "native_layer_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
     "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, int[] output_mask)",
     run_layer_norm_backward, OP_NO_GRAD, NULL},
    {"native_group_norm_backward",
     "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
     "Tensor? weight, int N, int C, int HxW, int group, int[] output_mask)",
     run_group_norm_backward, OP_NO_GRAD, NULL},
    {"local_response_norm",
     "local_response_norm(Tensor input, int size, float alpha=1e-4, float beta=0.75, float k=1.0)",
     run_local_response_norm, 0, "x / (k + alpha * mean of x^2 over `size` channels)^beta"},
    {0},
};
