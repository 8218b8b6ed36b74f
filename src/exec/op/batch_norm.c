/* Batch normalisation: each channel over all samples and places, by its own or the running
 * statistics. */
#include "exec/op/fold.h"
#include "exec/op/norm.h"

static bool batch_layout(struct op *o, const struct val *x, struct norm_layout *layout)
{
    if (!x)
        return false;
    if (!x->f || x->rank < 2) {
        op_fail(o, PLUMB_E_ARG, "%s takes floating-point numbers of 2 or more dimensions",
                o->call->name);
        return false;
    }
    int64_t place = 1;
    for (unsigned d = 2; d < x->rank; d++)
        place = size_times(place, x->shape[d]);
    *layout = (struct norm_layout){.batch = x->shape[0],
                                   .rows = x->shape[1],
                                   .place = place,
                                   .period = x->shape[1],
                                   .per_row = 1};
    return true;
}

/* A tensor argument with a number for each channel, or NULL. */
static struct val *channel_arg(struct op *o, const char *name, const struct val *x)
{
    struct val *v = arg_tensor(o, name);
    if (v && x && x->rank > 1 && (!v->f || v->count != x->shape[1]))
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' holds %lld numbers for %lld channels",
                       o->call->name, name, (long long)v->count, (long long)x->shape[1]);
    return v;
}

static struct val *per_channel(struct op *o, const struct val *x, const real *from)
{
    struct val *v = val_new(o, x->dtype, 1, &x->shape[1]);
    for (int64_t k = 0; v && k < v->count; k++)
        v->f[k] = from[k];
    return v;
}

struct batch {
    struct val *x, *weight, *bias, *mean, *var; /* mean and var: the running ones */
    struct norm norm;
    bool training;
};

static bool batch_begin(struct op *o, struct batch *b, const char *eps)
{
    struct val *x = arg_tensor(o, "input");
    *b = (struct batch){.x = x,
                        .weight = channel_arg(o, "weight", x),
                        .bias = channel_arg(o, "bias", x),
                        .mean = channel_arg(o, "running_mean", x),
                        .var = channel_arg(o, "running_var", x),
                        .training = arg_bool(o, "training")};
    b->norm = (struct norm){.eps = (real)arg_number(o, eps), .centred = true};
    return batch_layout(o, x, &b->norm.layout) && !o->failed;
}

/* Constant statistics: mean and variance plus eps under the root, or the inverse root itself. */
static void take_statistics(struct op *o, struct norm *norm, const struct val *mean,
                            const struct val *var, bool inverse)
{
    norm->given = true;
    norm->mean = op_alloc(o, norm->layout.rows, sizeof(real));
    norm->rstd = op_alloc(o, norm->layout.rows, sizeof(real));
    for (int64_t k = 0; !o->failed && k < norm->layout.rows; k++) {
        norm->mean[k] = mean->f[k];
        norm->rstd[k] = inverse ? var->f[k] : 1 / sqrt(var->f[k] + norm->eps);
    }
}

static struct val *batch_apply(struct op *o, struct batch *b)
{
    if (!b->training) {
        if (!b->mean || !b->var)
            return op_fail(o, PLUMB_E_ARG,
                           "%s: without training it needs running_mean and "
                           "running_var",
                           o->call->name);
        take_statistics(o, &b->norm, b->mean, b->var, false);
    }
    return v_norm_rows(o, &b->norm, b->x, b->weight, b->bias);
}

static void move_running(struct op *o, const struct batch *b, const char *momentum)
{
    if (b->training)
        norm_write_running(o, &b->norm, b->x, arg_number(o, momentum));
}

static void run_batch_norm(struct op *o)
{
    struct batch b;
    if (!batch_begin(o, &b, "eps"))
        return;
    if (b.training && b.norm.layout.batch == 1 && b.norm.layout.place == 1)
        op_fail(o, PLUMB_E_ARG, "batch_norm: a channel of one element cannot be trained on");
    op_return(o, batch_apply(o, &b));
    move_running(o, &b, "momentum");
}

/* The statistics that were saved for a backward; in evaluation torch gives none. */
static void return_saved(struct op *o, const struct batch *b)
{
    const int64_t none = 0;
    if (o->failed)
        return;
    if (b->training) {
        op_return(o, per_channel(o, b->x, b->norm.mean));
        op_return(o, per_channel(o, b->x, b->norm.rstd));
    } else {
        op_return(o, val_new(o, b->x->dtype, 1, &none));
        op_return(o, val_new(o, b->x->dtype, 1, &none));
    }
}

static void run_native_batch_norm(struct op *o)
{
    struct batch b;
    if (!batch_begin(o, &b, "eps"))
        return;
    op_return(o, batch_apply(o, &b));
    return_saved(o, &b);
    move_running(o, &b, "momentum");
}

static void run_cudnn_batch_norm(struct op *o)
{
    struct batch b;
    const int64_t none = 0;
    if (!batch_begin(o, &b, "epsilon"))
        return;
    op_return(o, batch_apply(o, &b));
    return_saved(o, &b);
    op_return(o, val_new(o, PLUMB_U8, 1, &none));
    move_running(o, &b, "exponential_average_factor");
}

/* torch's dispatcher: the result, what was saved, a reserve, and which implementation. */
static void run_batch_norm_impl(struct op *o)
{
    struct batch b;
    const int64_t none = 0;
    if (!batch_begin(o, &b, "eps"))
        return;
    op_return(o, batch_apply(o, &b));
    return_saved(o, &b);
    op_return(o, val_new(o, PLUMB_U8, 1, &none));
    op_return_int(o, 0);
    move_running(o, &b, "momentum");
}

/* running = (1 - momentum) running + momentum now */
static struct val *moved(struct op *o, struct val *running, struct val *now, double momentum)
{
    return v_add(o, v_scale(o, running, 1 - momentum), v_scale(o, now, momentum));
}

/* Numbers for each channel in a shape that broadcasts to x. */
static struct val *along_channels(struct op *o, struct val *v, const struct val *x)
{
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d + 1 < x->rank; d++)
        shape[d] = d == 0 ? x->shape[1] : 1;
    return v_reshape(o, v, x->rank - 1, shape);
}

static uint64_t all_but_channels(const struct val *x)
{
    return fold_mask(x, 0) & ~(uint64_t)2;
}

static struct val *channel_variance(struct op *o, struct val *x, struct val *mean)
{
    struct val *away = v_sub(o, x, along_channels(o, mean, x));
    return v_mean(o, v_square(o, away), all_but_channels(x), false);
}

/* The result and, instead of changing them, the new running statistics. */
static void run_functional_batch_norm(struct op *o)
{
    struct batch b;
    if (!batch_begin(o, &b, "eps"))
        return;
    op_return(o, batch_apply(o, &b));
    return_saved(o, &b);
    if (b.training && b.mean && b.var) {
        const double momentum = arg_number(o, "momentum");
        const double n = (double)b.norm.layout.batch * (double)b.norm.layout.place;
        struct val *mean = v_mean(o, b.x, all_but_channels(b.x), false);
        struct val *var = v_scale(o, channel_variance(o, b.x, mean), n / (n - 1));
        b.mean = moved(o, b.mean, mean, momentum);
        b.var = moved(o, b.var, var, momentum);
    }
    op_return(o, v_detach(o, b.mean));
    op_return(o, v_detach(o, b.var));
}

/* ---- The pieces that synchronised batch normalisation is made of ----------------------------- */

static void return_statistics(struct op *o, bool inverse)
{
    struct val *x = arg_tensor(o, "input");
    struct norm_layout layout;
    if (!batch_layout(o, x, &layout))
        return;
    struct val *mean = v_mean(o, x, all_but_channels(x), false);
    struct val *var = channel_variance(o, x, mean);
    op_return(o, mean);
    op_return(o, inverse ? v_rsqrt(o, v_offset(o, var, arg_number(o, "eps"))) : var);
}

static void run_stats(struct op *o)
{
    return_statistics(o, true);
}

static void run_update_stats(struct op *o)
{
    return_statistics(o, false);
}

static void run_elemt(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct val *weight = channel_arg(o, "weight", x), *bias = channel_arg(o, "bias", x);
    struct val *mean = channel_arg(o, "mean", x), *invstd = channel_arg(o, "invstd", x);
    struct norm norm = {.centred = true};
    if (!mean || !invstd || !batch_layout(o, x, &norm.layout))
        return;
    take_statistics(o, &norm, mean, invstd, true);
    op_return(o, v_norm_rows(o, &norm, x, weight, bias));
}

/* Joins the statistics of several devices, [device][channel], that saw counts of elements each. */
static void gather_stats(struct op *o, struct val *counts)
{
    struct val *means = arg_tensor(o, "mean"), *invstds = arg_tensor(o, "invstd");
    if (!means || !invstds || !counts)
        return;
    if (means->rank != 2 || !same_shape(means, invstds) ||
        (counts->count != 1 && counts->count != means->shape[0])) {
        op_fail(o, PLUMB_E_ARG,
                "%s: mean and invstd must be [devices][channels], with a count for "
                "each device",
                o->call->name);
        return;
    }
    const double eps = arg_number(o, "eps");
    int64_t column[2] = {counts->count, 1}, full[2] = {means->shape[0], 1};
    counts = v_broadcast(o, v_reshape(o, v_cast(o, counts, means->dtype), 2, column), 2, full);
    struct val *total = v_sum(o, counts, 0, false);
    struct val *vars = v_offset(o, v_reciprocal(o, v_square(o, invstds)), -eps);
    struct val *mean = v_div(o, v_sum(o, v_mul(o, means, counts), 1, false), total);
    struct val *spread = v_add(o, vars, v_square(o, v_sub(o, means, mean)));
    struct val *var = v_div(o, v_sum(o, v_mul(o, spread, counts), 1, false), total);
    op_return(o, mean);
    op_return(o, v_rsqrt(o, v_offset(o, var, eps)));
}

static void run_gather_stats(struct op *o)
{
    gather_stats(o, v_int(o, arg_int(o, "count")));
}

static void run_gather_stats_with_counts(struct op *o)
{
    gather_stats(o, arg_tensor(o, "counts"));
}

/* sum(g), sum(g (x - mean)), and the gradients of weight and bias */
static void run_backward_reduce(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_out"), *x = arg_tensor(o, "input");
    struct val *mean = channel_arg(o, "mean", x), *invstd = channel_arg(o, "invstd", x);
    struct norm_layout layout;
    if (!g || !mean || !invstd || !batch_layout(o, x, &layout))
        return;
    struct val *away = v_sub(o, x, along_channels(o, mean, x));
    struct val *sum = v_sum(o, g, all_but_channels(x), false);
    struct val *sum_away = v_sum(o, v_mul(o, g, away), all_but_channels(x), false);
    struct val *outputs[4] = {sum, sum_away, v_mul(o, sum_away, invstd), sum};
    const bool wanted[4] = {arg_bool(o, "input_g"), arg_bool(o, "input_g"), arg_bool(o, "weight_g"),
                            arg_bool(o, "bias_g")};
    for (size_t k = 0; k < 4; k++) {
        if (wanted[k])
            op_return(o, outputs[k]);
        else
            op_return_none(o);
    }
}

/* (g - sum_dy / n - (x - mean) invstd^2 sum_dy_xmu / n) invstd weight */
static void run_backward_elemt(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_out"), *x = arg_tensor(o, "input");
    struct val *mean = channel_arg(o, "mean", x), *invstd = channel_arg(o, "invstd", x);
    struct val *weight = channel_arg(o, "weight", x), *sum = channel_arg(o, "sum_dy", x);
    struct val *sum_away = channel_arg(o, "sum_dy_xmu", x), *count = arg_tensor(o, "count");
    struct norm_layout layout;
    if (!g || !mean || !invstd || !sum || !sum_away || !count || !batch_layout(o, x, &layout))
        return;
    struct val *n = v_sum(o, count, 0, false);
    struct val *away = v_sub(o, x, along_channels(o, mean, x));
    struct val *slope = v_div(o, v_mul(o, v_square(o, invstd), sum_away), n);
    struct val *rest = v_sub(o, g, along_channels(o, v_div(o, sum, n), x));
    rest = v_sub(o, rest, v_mul(o, away, along_channels(o, slope, x)));
    struct val *factor = weight ? v_mul(o, invstd, weight) : invstd;
    op_return(o, v_mul(o, rest, along_channels(o, factor, x)));
}

/* ---- Gradients as operators ------------------------------------------------------------------ */

static void return_gradients(struct op *o, const char *gradient, bool train, double eps,
                             const char *save_invstd, const bool wanted[3])
{
    struct val *g = arg_tensor(o, gradient), *x = arg_tensor(o, "input");
    struct val *weight = channel_arg(o, "weight", x);
    struct val *mean = channel_arg(o, train ? "save_mean" : "running_mean", x);
    struct val *spread = channel_arg(o, train ? save_invstd : "running_var", x);
    struct norm norm = {.eps = (real)eps, .centred = true};
    if (!g || !batch_layout(o, x, &norm.layout))
        return;
    if (!mean || !spread || !same_shape(g, x)) {
        op_fail(o, PLUMB_E_ARG,
                "%s: the statistics are missing, or the gradient has another shape "
                "than the input",
                o->call->name);
        return;
    }
    take_statistics(o, &norm, mean, spread, train);
    norm.given = !train;
    struct val *grads[3] = {0};
    for (size_t k = 0; k < 3; k++)
        if (wanted[k])
            grads[k] = k == 0 ? val_like(o, x, x->dtype) : val_new(o, x->dtype, 1, &x->shape[1]);
    if (o->failed)
        return;
    const struct norm_grads to = {.x = grads[0] ? grads[0]->f : NULL,
                                  .weight = grads[1] ? grads[1]->f : NULL,
                                  .bias = grads[2] ? grads[2]->f : NULL};
    norm_gradient(o, &norm, x, weight ? weight->f : NULL, g->f, to);
    for (size_t k = 0; k < 3; k++) {
        if (grads[k])
            op_return(o, grads[k]);
        else
            op_return_none(o);
    }
}

static void run_native_backward(struct op *o)
{
    size_t n;
    const int64_t *mask = arg_ints(o, "output_mask", &n);
    const bool wanted[3] = {n > 0 && mask[0], n > 1 && mask[1], n > 2 && mask[2]};
    return_gradients(o, "grad_out", arg_bool(o, "train"), arg_number(o, "eps"), "save_invstd",
                     wanted);
}

static void run_cudnn_backward(struct op *o)
{
    return_gradients(o, "grad_output", true, arg_number(o, "epsilon"), "save_var",
                     (const bool[3]){true, true, true});
}

const struct op_def op_batch_norm[] = {
    {"batch_norm",
     "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)\n"
     "batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
     "Tensor? bias=None, bool training=False, float? momentum=0.1, float eps=1e-5)",
     run_batch_norm, 0, "(x - mean) / sqrt(var + eps) * weight + bias for each channel"},
    {"native_batch_norm _native_batch_norm_legit",
     "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float momentum, float eps)\n"
     "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, bool training, "
     "float momentum, float eps)",
     run_native_batch_norm, 0, "batch_norm, mean, 1 / sqrt(var + eps)"},
    {"_native_batch_norm_legit_no_training",
     "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
     "Tensor running_mean, Tensor running_var, float momentum, float eps)",
     run_native_batch_norm, 0, NULL},
    {"_native_batch_norm_legit_functional",
     "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
     "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps)",
     run_functional_batch_norm, 0, "native_batch_norm and the new running statistics"},
    {"_batch_norm_with_update",
     "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
     "Tensor running_var, float momentum, float eps, bool training=True)",
     run_native_batch_norm, 0, "batch_norm of training, mean, 1 / sqrt(var + eps)"},
    {"cudnn_batch_norm",
     "cudnn_batch_norm(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float exponential_average_factor, float epsilon)",
     run_cudnn_batch_norm, 0, NULL},
    {"_batch_norm_impl_index",
     "_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled)",
     run_batch_norm_impl, 0, NULL},
    {"batch_norm_stats", "batch_norm_stats(Tensor input, float eps)", run_stats, OP_NO_GRAD,
     "mean, 1 / sqrt(var + eps)"},
    {"batch_norm_update_stats",
     "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, "
     "float momentum)",
     run_update_stats, OP_NO_GRAD, "mean, biased variance"},
    {"batch_norm_elemt",
     "batch_norm_elemt(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd, "
     "float eps)",
     run_elemt, OP_NO_GRAD, "(x - mean) * invstd * weight + bias"},
    {"batch_norm_gather_stats",
     "batch_norm_gather_stats(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, "
     "Tensor? running_var, float momentum, float eps, int count)",
     run_gather_stats, OP_NO_GRAD, "statistics of several devices as one"},
    {"batch_norm_gather_stats_with_counts",
     "batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, "
     "Tensor? running_mean, Tensor? running_var, float momentum, float eps, Tensor counts)",
     run_gather_stats_with_counts, OP_NO_GRAD, "statistics of several devices as one"},
    {"batch_norm_backward_reduce",
     "batch_norm_backward_reduce(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, "
     "Tensor? weight, bool input_g, bool weight_g, bool bias_g)",
     run_backward_reduce, OP_NO_GRAD, NULL},
    {"batch_norm_backward_elemt",
     "batch_norm_backward_elemt(Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, "
     "Tensor? weight, Tensor sum_dy|mean_dy, Tensor sum_dy_xmu|mean_dy_xmu, Tensor count)",
     run_backward_elemt, OP_NO_GRAD, NULL},
    {"native_batch_norm_backward",
     "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, "
     "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, "
     "bool train, float eps, int[] output_mask)",
     run_native_backward, OP_NO_GRAD, NULL},
    {"batch_norm_backward",
     "batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
     "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd|save_var, bool train|update, "
     "float eps, int[] output_mask, any reserve=None)",
     run_native_backward, OP_NO_GRAD, NULL},
    {"cudnn_batch_norm_backward",
     "cudnn_batch_norm_backward(Tensor input, Tensor grad_output, Tensor weight, "
     "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, "
     "float epsilon, Tensor? reserveSpace)",
     run_cudnn_backward, OP_NO_GRAD, NULL},
    {0},
};
