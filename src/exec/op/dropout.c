/* Dropout. Elements are kept as PyTorch's CPU generator decides: two 32-bit draws each. */
#include "exec/op/op.h"

#include <string.h>

/* ---- Draws ----------------------------------------------------------------------------------- */

struct splitmix {
    uint64_t state;
};

static uint32_t splitmix_next(void *state)
{
    uint64_t z = ((struct splitmix *)state)->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

/* 1 with probability keep, else 0, for each element of a new value. */
static struct val *bernoulli(struct op *o, enum plumb_dtype dtype, unsigned rank,
                             const int64_t *shape, double keep)
{
    struct splitmix own = {1234};
    const struct plumb_draws fallback = {splitmix_next, &own};
    const struct plumb_draws *draws = o->call->draws ? o->call->draws : &fallback;
    struct val *out = val_new(o, dtype, rank, shape);
    for (int64_t k = 0; out && k < out->count; k++) {
        const uint64_t high = draws->next(draws->state), low = draws->next(draws->state);
        const uint64_t bits = (high << 32 | low) & ((UINT64_C(1) << 53) - 1);
        const bool kept = (double)bits * 0x1p-53 < keep;
        if (out->f)
            out->f[k] = kept;
        else
            out->i[k] = kept;
    }
    return out;
}

/* ---- Forms ----------------------------------------------------------------------------------- */

/* The share to drop; -1 (and failed) when it is none. */
static double share(struct op *o)
{
    const double p = arg_number(o, "p");
    if (p >= 0 && p <= 1)
        return p;
    op_fail(o, PLUMB_E_ARG, "%s: a probability of %g", o->call->name, p);
    return -1;
}

/* Whole channels share one draw: [n][c][1]... */
static unsigned channel_shape(const struct val *x, int64_t *shape)
{
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = d < 2 ? x->shape[d] : 1;
    return x->rank;
}

static void drop(struct op *o, struct val *x, bool channels, bool alpha)
{
    const double p = share(o);
    const bool training = arg_bool(o, "training");
    if (!x || o->failed)
        return;
    if (!x->f) {
        op_fail(o, PLUMB_E_ARG, "%s of %s", o->call->name, plumb_dtype_info(x->dtype)->name);
        return;
    }
    if (p == 0 || !training || x->count == 0) {
        op_return(o, x);
        return;
    }
    if (channels && x->rank < 2) {
        op_fail(o, PLUMB_E_ARG, "%s of a tensor with %u dimensions", o->call->name, x->rank);
        return;
    }
    if (p == 1) {
        op_return(o, v_mul(o, x, v_full(o, x->dtype, 0, NULL, 0)));
        return;
    }
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, sizeof shape);
    const unsigned rank = channels ? channel_shape(x, shape) : x->rank;
    struct val *noise = bernoulli(o, x->dtype, rank, shape, 1 - p);
    if (!alpha) {
        op_return(o, v_mul(o, x, v_scale(o, noise, 1 / (1 - p))));
        return;
    }
    /* Dropped elements become -alpha'; then a x + b keeps mean and variance. */
    const double saturated = 1.7580993408473766;
    const double a = 1 / sqrt((saturated * saturated * p + 1) * (1 - p));
    struct val *shift =
        v_offset(o, v_scale(o, v_offset(o, noise, -1), saturated * a), saturated * a * p);
    op_return(o, v_add(o, v_mul(o, x, v_scale(o, noise, a)), shift));
}

static void run_dropout(struct op *o)
{
    drop(o, arg_tensor(o, "input"), false, false);
}

static void run_alpha_dropout(struct op *o)
{
    drop(o, arg_tensor(o, "input"), false, true);
}

static void run_feature_dropout(struct op *o)
{
    drop(o, arg_tensor(o, "input"), true, false);
}

static void run_feature_alpha_dropout(struct op *o)
{
    drop(o, arg_tensor(o, "input"), true, true);
}

/* dropout1d and dropout3d: a tensor without batch gets one for the while. */
static void drop_batched(struct op *o, unsigned rank)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank != rank && x->rank + 1 != rank) {
        op_fail(o, PLUMB_E_ARG, "%s of a tensor with %u dimensions", o->call->name, x->rank);
        return;
    }
    if (!x || x->rank == rank) {
        drop(o, x, true, false);
        return;
    }
    drop(o, v_unsqueeze(o, x, 0), true, false);
    if (!o->failed)
        o->outputs[0] = v_squeeze(o, o->outputs[0], 0);
}

static void run_dropout1d(struct op *o)
{
    drop_batched(o, 3);
}

static void run_dropout3d(struct op *o)
{
    drop_batched(o, 5);
}

/* Also tells which elements were kept. */
static void run_native_dropout(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const double p = share(o);
    const bool training = !arg_given(o, "training") || arg_bool(o, "training");
    if (!x || o->failed)
        return;
    if (!training) {
        op_return(o, x);
        op_return(o, v_full(o, PLUMB_BOOL, x->rank, x->shape, 1));
        return;
    }
    struct val *mask = bernoulli(o, PLUMB_BOOL, x->rank, x->shape, 1 - p);
    const double scale = p == 1 ? 0 : 1 / (1 - p);
    op_return(o, v_mul(o, x, v_scale(o, v_cast(o, mask, x->dtype), scale)));
    op_return(o, mask);
}

static void run_native_dropout_backward(struct op *o)
{
    struct val *grad = arg_tensor(o, "grad"), *mask = arg_tensor(o, "mask");
    if (grad && mask)
        op_return(o,
                  v_mul(o, grad, v_scale(o, v_cast(o, mask, grad->dtype), arg_number(o, "scale"))));
}

#define FORMS "(Tensor input|self, float p=0.5, bool training|train=True, bool inplace=False)"

const struct op_def op_dropout[] = {
    {"dropout dropout_", "dropout" FORMS, run_dropout, OP_RANDOM,
     "input * kept / (1 - p); two 32-bit draws an element"},
    {"dropout1d", "dropout1d" FORMS, run_dropout1d, OP_RANDOM, "whole channels"},
    {"dropout2d feature_dropout feature_dropout_", "dropout2d" FORMS, run_feature_dropout,
     OP_RANDOM, "whole channels"},
    {"dropout3d", "dropout3d" FORMS, run_dropout3d, OP_RANDOM, "whole channels"},
    {"alpha_dropout alpha_dropout_",
     "Functional.alpha_dropout(Tensor input, float p=0.5, bool training=False, bool "
     "inplace=False)\n"
     "alpha_dropout" FORMS,
     run_alpha_dropout, OP_RANDOM, "keeps mean and variance of what selu gives"},
    {"feature_alpha_dropout feature_alpha_dropout_",
     "Functional.feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, bool "
     "inplace=False)\n"
     "feature_alpha_dropout" FORMS,
     run_feature_alpha_dropout, OP_RANDOM, "alpha_dropout of whole channels"},
    {"native_dropout", "native_dropout(Tensor input, float p, bool? training|train)",
     run_native_dropout, OP_RANDOM, NULL},
    {"native_dropout_backward",
     "native_dropout_backward(Tensor grad|grad_output, Tensor mask, float scale)",
     run_native_dropout_backward, OP_ELEMENTWISE, "grad * mask * scale"},
    {0},
};
