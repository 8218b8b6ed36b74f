/* Normalisation as torch_npu has it: with statistics, sums and activations in one operator. */
#include "exec/op/fold.h"
#include "exec/op/fused.h"
#include "exec/op/norm.h"

static bool has_count(struct op *o, const char *name, const struct val *v, int64_t count)
{
    if (v && (v->count != count || !v->f))
        op_fail(o, PLUMB_E_ARG, "%s: '%s' holds %lld numbers, %lld are wanted", o->call->name, name,
                (long long)v->count, (long long)count);
    return !o->failed;
}

static struct val *statistics(struct op *o, const real *from, unsigned rank, const int64_t *shape,
                              enum plumb_dtype dtype)
{
    struct val *v = from ? val_new(o, dtype, rank, shape) : NULL;
    for (int64_t k = 0; v && k < v->count; k++)
        v->f[k] = from[k];
    return v;
}

/* Rows of the dimensions that gamma has. Returns y, and 1 / sqrt(mean(x^2) + eps) as *rstd. */
static struct val *rms_norm(struct op *o, struct val *x, struct val *gamma, double eps,
                            struct val **rstd)
{
    if (!takes_floats(o, x) || !takes_floats(o, gamma))
        return NULL;
    bool fits = gamma->rank >= 1 && gamma->rank <= x->rank;
    int64_t shape[OP_RANK], rows = 1;
    for (unsigned d = 0; fits && d < x->rank; d++) {
        const bool in_row = d + gamma->rank >= x->rank;
        shape[d] = in_row ? 1 : x->shape[d];
        rows = size_times(rows, shape[d]);
        fits = !in_row || gamma->shape[d + gamma->rank - x->rank] == x->shape[d];
    }
    if (!fits)
        return op_fail(o, PLUMB_E_ARG, "%s: the shape of gamma is not how the input's shape ends",
                       o->call->name);
    struct norm norm = {.layout = {1, rows, gamma->count, 1, gamma->count}, .eps = (real)eps};
    struct val *y = v_norm_rows(o, &norm, x, gamma, NULL);
    *rstd = y ? statistics(o, norm.rstd, x->rank, shape, PLUMB_F32) : NULL;
    return y;
}

/* The origin's benchmark takes another default than the operator. */
static double rms_epsilon(struct op *o)
{
    return arg_given(o, "epsilon")    ? arg_number(o, "epsilon")
           : o->call->benchmark_forms ? 1e-5
                                      : 1e-6;
}

static void run_rms_norm(struct op *o)
{
    struct val *rstd = NULL;
    op_return(o,
              rms_norm(o, arg_tensor(o, "input"), arg_tensor(o, "gamma"), rms_epsilon(o), &rstd));
    op_return(o, rstd);
}

static void run_add_rms_norm(struct op *o)
{
    struct val *sum = v_add(o, arg_tensor(o, "x1"), arg_tensor(o, "x2")), *rstd = NULL;
    op_return(o, rms_norm(o, sum, arg_tensor(o, "gamma"), arg_number(o, "epsilon"), &rstd));
    op_return(o, rstd);
    op_return(o, sum);
}

static void run_layer_norm_eval(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight"),
               *bias = arg_tensor(o, "bias");
    size_t n;
    const int64_t *shape = arg_ints(o, "normalized_shape", &n);
    if (!takes_floats(o, x))
        return;
    int64_t rows = 1, place = 1;
    bool fits = n >= 1 && n <= x->rank;
    for (unsigned d = 0; fits && d < x->rank; d++) {
        const bool in_row = d + n >= x->rank;
        int64_t *part = in_row ? &place : &rows;
        *part = size_times(*part, x->shape[d]);
        fits = !in_row || shape[d + n - x->rank] == x->shape[d];
    }
    if (!fits) {
        op_fail(o, PLUMB_E_ARG, "%s: the normalized shape is not how the input's shape ends",
                o->call->name);
        return;
    }
    struct norm norm = {
        .layout = {1, rows, place, 1, place}, .eps = (real)arg_number(o, "eps"), .centred = true};
    if (has_count(o, "weight", weight, place) && has_count(o, "bias", bias, place))
        op_return(o, v_norm_rows(o, &norm, x, weight, bias));
}

/* Group normalisation, then y sigmoid(swish y); with the mean and 1 / sqrt(var + eps) of a
 * group. */
static void group_norm(struct op *o, int64_t groups, double swish)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight"),
               *bias = arg_tensor(o, "bias");
    if (!takes_floats(o, x))
        return;
    if (x->rank < 2 || groups < 1 || x->shape[1] % groups) {
        op_fail(o, PLUMB_E_ARG, "%s: the channels do not divide into %lld groups", o->call->name,
                (long long)groups);
        return;
    }
    const int64_t channels = x->shape[1], shape[2] = {x->shape[0], groups};
    if (!has_count(o, "weight", weight, channels) || !has_count(o, "bias", bias, channels))
        return;
    int64_t place = channels / groups;
    for (unsigned d = 2; d < x->rank; d++)
        place = size_times(place, x->shape[d]);
    struct norm norm = {
        .layout = {1, size_times(shape[0], groups), place, groups, channels / groups},
        .eps = (real)arg_number(o, "eps"),
        .centred = true};
    struct val *y = v_norm_rows(o, &norm, x, weight, bias);
    op_return(o, v_mul(o, y, v_sigmoid(o, v_scale(o, y, swish))));
    op_return(o, y ? statistics(o, norm.mean, 2, shape, x->dtype) : NULL);
    op_return(o, y ? statistics(o, norm.rstd, 2, shape, x->dtype) : NULL);
}

static void run_group_norm_silu(struct op *o)
{
    group_norm(o, arg_int(o, "group"), 1);
}

static void run_group_norm_swish(struct op *o)
{
    group_norm(o, arg_int(o, "num_groups"), arg_number(o, "swish_scale"));
}

/* ---- The table ------------------------------------------------------------------------------- */

#define X "(Tensor input|self|x"

const struct op_def op_fused_norm[] = {
    {"npu_rms_norm", "npu_rms_norm" X ", Tensor gamma, float? epsilon=None)", run_rms_norm, 0,
     "x r gamma and r = 1 / sqrt(mean(x^2) + epsilon)"},
    {"npu_add_rms_norm", "npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-6)",
     run_add_rms_norm, 0, "rms_norm(x1 + x2), 1 / sqrt(mean + epsilon), x1 + x2"},
    {"npu_layer_norm_eval",
     "npu_layer_norm_eval" X ", int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-5)",
     run_layer_norm_eval, 0, "(x - mean) / sqrt(var + eps) * weight + bias"},
    {"npu_group_norm_silu",
     "npu_group_norm_silu" X ", Tensor? weight|gamma, Tensor? bias|beta, int group, float "
     "eps=1e-5)",
     run_group_norm_silu, 0, "silu(group_norm(x)), mean, 1 / sqrt(var + eps)"},
    {"npu_group_norm_swish",
     "npu_group_norm_swish" X ", int num_groups, Tensor? weight, Tensor? bias, float eps=1e-5, "
     "float swish_scale=1.0)",
     run_group_norm_swish, 0, "y sigmoid(swish_scale y) of y = group_norm(x), mean, rstd"},
    {0},
};
