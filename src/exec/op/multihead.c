/* multi_head_attention_forward: projections, attention by heads, and the projection of the result.
 * Sequences come first: [length, batch, embedding]. */
#include "exec/op/attention.h"
#include "exec/op/matmul.h"

#include <string.h>

static struct val *project(struct op *o, struct val *x, struct val *weight, struct val *bias)
{
    struct val *y = v_matmul_t(o, x, weight);
    return y && bias ? v_add(o, y, matmul_operand(o, bias, y->dtype)) : y;
}

/* Rows [part * size, ...) of a packed weight or bias; NULL stays NULL. */
static struct val *part_of(struct op *o, struct val *packed, int64_t part, int64_t size)
{
    return packed ? v_narrow(o, packed, 0, part * size, size) : NULL;
}

/* q, k and v from three weights, or from one that holds all three. */
static bool project_inputs(struct op *o, struct val **xs, int64_t embed)
{
    static const char *const names[3] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    struct val *packed = arg_tensor(o, "in_proj_weight"), *bias = arg_tensor(o, "in_proj_bias");
    const bool separate = arg_bool(o, "use_separate_proj_weight");
    const long long all = 3 * (long long)embed;
    if (bias && (bias->rank != 1 || bias->shape[0] != all))
        return op_fail(o, PLUMB_E_ARG, "%s: in_proj_bias must have %lld numbers", o->call->name,
                       all) != NULL;
    if (!separate && (!packed || packed->rank != 2 || packed->shape[0] != all))
        return op_fail(o, PLUMB_E_ARG, "%s: in_proj_weight must have %lld rows", o->call->name,
                       all) != NULL;
    for (int64_t i = 0; i < 3; i++) {
        struct val *weight = separate ? arg_tensor(o, names[i]) : part_of(o, packed, i, embed);
        if (!weight || weight->rank != 2 || weight->shape[0] != embed)
            return op_fail(o, PLUMB_E_ARG, "%s: a projection must have %lld rows", o->call->name,
                           (long long)embed) != NULL;
        xs[i] = project(o, xs[i], weight, part_of(o, bias, i, embed));
    }
    return xs[0] && xs[1] && xs[2];
}

/* [length, batch, heads * d] to [batch, heads, length, d] */
static struct val *split_heads(struct op *o, struct val *x, int64_t heads)
{
    if (!x)
        return NULL;
    const int64_t shape[4] = {x->shape[0], x->shape[1], heads, x->shape[2] / heads};
    return v_permute(o, v_reshape(o, x, 4, shape), (const unsigned[]){1, 2, 0, 3});
}

/* A bool mask says what is not seen; as numbers that are added. */
static struct val *additive(struct op *o, struct val *mask, enum plumb_dtype dtype)
{
    if (!mask || mask->f)
        return mask;
    struct val *y = val_like(o, mask, dtype);
    for (int64_t k = 0; y && k < y->count; k++)
        y->f[k] = mask->i[k] ? -R(INFINITY) : 0;
    return y;
}

/* `extra` more keys at the end, seen by all. */
static struct val *widen(struct op *o, struct val *mask, int64_t extra)
{
    if (!mask || !extra)
        return mask;
    int64_t shape[OP_RANK];
    memcpy(shape, mask->shape, mask->rank * sizeof *shape);
    shape[mask->rank - 1] = extra;
    struct val *const parts[2] = {mask, v_full(o, mask->dtype, mask->rank, shape, 0)};
    return parts[1] ? v_cat(o, parts, 2, mask->rank - 1) : NULL;
}

/* attn_mask and key_padding_mask as one, of up to four dimensions. */
static struct val *masks(struct op *o, enum plumb_dtype dtype, int64_t batch, int64_t heads,
                         int64_t extra)
{
    struct val *mask = widen(o, additive(o, arg_tensor(o, "attn_mask"), dtype), extra);
    struct val *padding = widen(o, additive(o, arg_tensor(o, "key_padding_mask"), dtype), extra);
    if (mask && mask->rank == 3)
        mask =
            v_reshape(o, mask, 4, (const int64_t[]){batch, heads, mask->shape[1], mask->shape[2]});
    if (padding && padding->rank == 1)
        padding = v_unsqueeze(o, padding, 0);
    if (padding && padding->rank == 2)
        padding =
            v_reshape(o, padding, 4, (const int64_t[]){padding->shape[0], 1, 1, padding->shape[1]});
    return !mask ? padding : !padding ? mask : v_add(o, mask, padding);
}

static struct val *append(struct op *o, struct val *x, struct val *more, unsigned dim)
{
    struct val *const parts[2] = {x, more};
    return x && more ? v_cat(o, parts, 2, dim) : NULL;
}

/* One more key (or value) from a learned bias [1, 1, embed]. */
static struct val *append_bias(struct op *o, struct val *x, const char *name)
{
    struct val *bias = arg_tensor(o, name);
    if (!bias || !x)
        return x;
    const int64_t shape[3] = {1, x->shape[1], x->shape[2]};
    return append(o, x, v_broadcast(o, bias, 3, shape), 0);
}

/* One more key (or value) of zeros, [batch, heads, 1, d]. */
static struct val *append_zero(struct op *o, struct val *x)
{
    if (!x)
        return NULL;
    const int64_t shape[4] = {x->shape[0], x->shape[1], 1, x->shape[3]};
    return append(o, x, val_new(o, x->dtype, 4, shape), 2);
}

/* Projected beforehand, [batch * heads, length, d]. */
static struct val *fixed_heads(struct op *o, const char *name, int64_t batch, int64_t heads)
{
    struct val *x = arg_tensor(o, name);
    if (!x)
        return NULL;
    if (x->rank != 3 || x->shape[0] != batch * heads)
        return op_fail(o, PLUMB_E_ARG, "%s: '%s' does not fit %lld heads", o->call->name, name,
                       (long long)heads);
    return v_reshape(o, x, 4, (const int64_t[]){batch, heads, x->shape[1], x->shape[2]});
}

static void return_result(struct op *o, struct val *y, struct val *weights, bool single)
{
    if (!y)
        return;
    const int64_t shape[3] = {y->shape[2], y->shape[0], y->shape[1] * y->shape[3]};
    y = v_reshape(o, v_permute(o, y, (const unsigned[]){2, 0, 1, 3}), 3, shape);
    y = project(o, y, arg_tensor(o, "out_proj_weight"), arg_tensor(o, "out_proj_bias"));
    op_return(o, single ? v_squeeze(o, y, 1) : y);
    if (!arg_bool(o, "need_weights")) {
        op_return_none(o);
        return;
    }
    if (arg_bool(o, "average_attn_weights"))
        weights = v_mean(o, weights, (uint64_t)1 << 1, false);
    op_return(o, single ? v_squeeze(o, weights, 0) : weights);
}

static void run_multihead(struct op *o)
{
    struct val *xs[3] = {arg_tensor(o, "query"), arg_tensor(o, "key"), arg_tensor(o, "value")};
    const int64_t heads = arg_int(o, "num_heads"), embed = arg_int(o, "embed_dim_to_check");
    if (!xs[0] || !xs[1] || !xs[2])
        return;
    if (arg_bool(o, "training") && arg_number(o, "dropout_p") != 0) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: with dropout the result is random and cannot be compared", o->call->name);
        return;
    }
    const bool single = xs[0]->rank == 2;
    for (int i = 0; i < 3; i++) {
        if (xs[i]->rank != (single ? 2u : 3u)) {
            op_fail(o, PLUMB_E_ARG,
                    "%s: query, key and value must all be [length, batch, size] or "
                    "[length, size]",
                    o->call->name);
            return;
        }
        if (single)
            xs[i] = v_unsqueeze(o, xs[i], 1);
    }
    if (!xs[0] || heads < 1 || embed < 1 || embed % heads || xs[0]->shape[2] != embed) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld heads for an embedding of %lld", o->call->name,
                (long long)heads, (long long)embed);
        return;
    }
    if (embed > INT64_MAX / 4 || !project_inputs(o, xs, embed))
        return;
    const int64_t batch = xs[0]->shape[1];
    int64_t extra = 0;
    if (arg_given(o, "bias_k") && arg_given(o, "bias_v")) {
        xs[1] = append_bias(o, xs[1], "bias_k");
        xs[2] = append_bias(o, xs[2], "bias_v");
        extra++;
    }
    struct val *q = split_heads(o, xs[0], heads);
    struct val *k = arg_given(o, "static_k") ? fixed_heads(o, "static_k", batch, heads)
                                             : split_heads(o, xs[1], heads);
    struct val *v = arg_given(o, "static_v") ? fixed_heads(o, "static_v", batch, heads)
                                             : split_heads(o, xs[2], heads);
    if (arg_bool(o, "add_zero_attn")) {
        k = append_zero(o, k);
        v = append_zero(o, v);
        extra++;
    }
    struct val *mask = q ? masks(o, q->dtype, batch, heads, extra) : NULL;
    if (o->failed)
        return;
    const int64_t width = embed / heads;
    const double scale = 1 / sqrt((double)width);
    struct val *weights = NULL, *y;
    if (arg_bool(o, "need_weights")) {
        weights = v_attention_weights(o, q, k, mask, scale, false, false);
        y = v_matmul(o, weights, v);
    } else {
        y = v_attention(o, q, k, v, mask, &(struct attention){.scale = scale}, NULL);
    }
    return_result(o, y, weights, single);
}

const struct op_def op_multihead[] = {
    {"multi_head_attention_forward",
     "multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check, "
     "int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor? bias_v, "
     "bool add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor? out_proj_bias, bool "
     "training=True, Tensor? key_padding_mask=None, bool need_weights=True, Tensor? "
     "attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None, Tensor? "
     "k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor? "
     "static_v=None, bool average_attn_weights=True, bool is_causal=False)",
     run_multihead, 0, NULL},
    {0},
};
