/* scaled_dot_product_attention, and the kernels of PyTorch that stand behind it, forward and
 * backward. */
#include "exec/op/attention.h"

#include "exec/op/matmul.h"

#include <string.h>

/* ---- scaled_dot_product_attention ------------------------------------------------------------ */

/* x as [B, N, S, D] with the leading dimensions given; heads of its own where they are grouped. */
static struct val *four(struct op *o, struct val *x, unsigned rank, const int64_t *lead,
                        bool grouped)
{
    int64_t shape[OP_RANK], batch = 1;
    if (!x)
        return NULL;
    memcpy(shape, lead, (rank - 2) * sizeof *shape);
    memcpy(shape + rank - 2, x->shape + x->rank - 2, 2 * sizeof *shape);
    if (grouped && x->rank >= 3)
        shape[rank - 3] = x->shape[x->rank - 3];
    x = v_broadcast(o, x, rank, shape);
    for (unsigned d = 0; d + 3 < rank; d++)
        batch *= shape[d];
    return v_reshape(
        o, x, 4,
        (const int64_t[]){batch, rank > 2 ? shape[rank - 3] : 1, shape[rank - 2], shape[rank - 1]});
}

/* The leading dimensions of q, k and v together. */
static bool common_lead(struct op *o, struct val *const *xs, bool grouped, unsigned *rank,
                        int64_t *lead)
{
    *rank = 2;
    for (int i = 0; i < 3; i++) {
        if (xs[i]->rank < 2)
            return op_fail(o, PLUMB_E_ARG, "%s: query, key and value need two dimensions",
                           o->call->name) != NULL;
        if (xs[i]->rank > *rank)
            *rank = xs[i]->rank;
    }
    for (unsigned d = 0; d + 2 < *rank; d++) {
        lead[d] = 1;
        for (int i = 0; i < 3; i++) {
            if (d + xs[i]->rank < *rank || (grouped && d + 3 == *rank && i > 0))
                continue;
            const int64_t size = xs[i]->shape[d + xs[i]->rank - *rank];
            if (size != lead[d] && size != 1 && lead[d] != 1)
                return op_fail(o, PLUMB_E_ARG, "%s: batches of %lld and %lld", o->call->name,
                               (long long)size, (long long)lead[d]) != NULL;
            if (lead[d] == 1)
                lead[d] = size;
        }
    }
    return true;
}

/* A mask over more than four dimensions, with the leading ones brought together. */
static struct val *four_mask(struct op *o, struct val *mask, unsigned rank, const int64_t *lead,
                             int64_t s, int64_t t)
{
    if (!mask || rank <= 4)
        return mask;
    int64_t shape[OP_RANK], batch = 1;
    memcpy(shape, lead, (rank - 2) * sizeof *shape);
    shape[rank - 2] = s;
    shape[rank - 1] = t;
    for (unsigned d = 0; d + 3 < rank; d++)
        batch *= shape[d];
    mask = v_broadcast(o, mask, rank, shape);
    return v_reshape(o, mask, 4, (const int64_t[]){batch, lead[rank - 3], s, t});
}

static void run_attention(struct op *o)
{
    struct val *xs[3] = {arg_tensor(o, "query"), arg_tensor(o, "key"), arg_tensor(o, "value")};
    struct val *mask = arg_tensor(o, "attn_mask");
    const bool grouped = arg_bool(o, "enable_gqa"), causal = arg_bool(o, "is_causal");
    unsigned rank;
    int64_t lead[OP_RANK];
    if (!xs[0] || !xs[1] || !xs[2] || !attention_no_dropout(o, arg_number(o, "dropout_p")) ||
        !common_lead(o, xs, grouped, &rank, lead))
        return;
    if (causal && mask) {
        op_fail(o, PLUMB_E_ARG, "%s: attn_mask and is_causal exclude each other", o->call->name);
        return;
    }
    enum plumb_dtype dtype = matmul_dtype(xs[0], xs[1]);
    const int64_t s = xs[0]->shape[xs[0]->rank - 2], t = xs[1]->shape[xs[1]->rank - 2],
                  d = xs[0]->shape[xs[0]->rank - 1];
    for (int i = 0; i < 3; i++)
        xs[i] = four(o, matmul_operand(o, xs[i], dtype), rank, lead, grouped && i > 0);
    const struct attention how = {.scale = attention_scale(o, d), .causal = causal};
    mask = four_mask(o, mask, rank, lead, s, t);
    struct val *y = v_attention(o, xs[0], xs[1], xs[2], mask, &how, NULL);
    if (!y)
        return;
    int64_t shape[OP_RANK];
    memcpy(shape, lead, (rank - 2) * sizeof *shape);
    shape[rank - 2] = s;
    shape[rank - 1] = y->shape[3];
    op_return(o, v_reshape(o, y, rank, shape));
}

/* ---- The kernels behind it ------------------------------------------------------------------- */

/* The output and the weights. */
static void run_math(struct op *o)
{
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key"), *v = arg_tensor(o, "value");
    if (!q || !k || !v || !attention_no_dropout(o, arg_number(o, "dropout_p")))
        return;
    if (arg_bool(o, "enable_gqa") || q->rank < 2 || k->rank < 2) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: grouped heads, and fewer than two dimensions, are not "
                "known",
                o->call->name);
        return;
    }
    const double scale = attention_scale(o, q->shape[q->rank - 1]);
    struct val *mask = arg_tensor(o, "attn_mask");
    if (mask && !mask->f) /* a number like any other: it is added */
        mask = v_cast(o, mask, q->dtype);
    struct val *weights = v_attention_weights(o, q, k, mask, scale, arg_bool(o, "is_causal"), true);
    op_return(o, v_matmul(o, weights, v));
    op_return(o, weights);
}

/* How the logarithms of the sums are returned. */
enum lse_form { LSE_PLAIN, LSE_COLUMN, LSE_PADDED };

/* [B, N, S] with +inf behind, up to a multiple of 32; nothing at all where they are not asked for.
 */
static struct val *padded(struct op *o, const struct val *lse, bool wanted)
{
    enum { ALIGN = 32 };
    if (!lse)
        return NULL;
    const int64_t s = lse->shape[2], to = wanted ? (s + ALIGN - 1) / ALIGN * ALIGN : 0;
    struct val *out =
        val_new(o, lse->dtype, 3, (const int64_t[]){lse->shape[0], lse->shape[1], to});
    for (int64_t k = 0; out && k < out->count; k++)
        out->f[k] = k % to < s ? lse->f[k / to * s + k % to] : R(INFINITY);
    return out;
}

static struct val *kernel_mask(struct op *o)
{
    return arg_raw(o, "attn_mask") ? arg_tensor(o, "attn_mask") : NULL;
}

/* The output and logsumexp; what comes behind (seeds, lengths) is not computed. */
static void run_kernel(struct op *o, enum lse_form form, double unseen)
{
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key"), *v = arg_tensor(o, "value");
    struct val *lse = NULL;
    if (!q || !attention_no_dropout(o, arg_number(o, "dropout_p")))
        return;
    const struct attention how = {.scale = attention_scale(o, q->rank ? q->shape[q->rank - 1] : 1),
                                  .causal = arg_bool(o, "is_causal"),
                                  .unseen_lse = unseen};
    op_return(o, v_attention(o, q, k, v, kernel_mask(o), &how, &lse));
    if (form == LSE_PADDED)
        lse = padded(o, lse, arg_bool(o, "compute_log_sumexp"));
    op_return(o, form == LSE_COLUMN && lse ? v_unsqueeze(o, lse, 3) : lse);
    op_return_tuple(o);
}

static void run_for_cpu(struct op *o)
{
    run_kernel(o, LSE_PLAIN, 0);
}

static void run_flash(struct op *o)
{
    run_kernel(o, LSE_PLAIN, INFINITY);
}

static void run_efficient(struct op *o)
{
    run_kernel(o, LSE_PADDED, -INFINITY);
}

static void run_cudnn(struct op *o)
{
    run_kernel(o, LSE_COLUMN, -INFINITY);
}

/* ---- Their gradients as operators ------------------------------------------------------------ */

/* Gradients of query, key, value and, in the form with four, mask, by out and logsumexp. */
static void kernel_back(struct op *o, bool four_results)
{
    struct val *in[4] = {arg_tensor(o, "query"), arg_tensor(o, "key"), arg_tensor(o, "value"),
                         kernel_mask(o)};
    struct val *to[4] = {0};
    unsigned want = 7;
    if (!in[0] || !attention_no_dropout(o, arg_number(o, "dropout_p")))
        return;
    if (four_results) {
        size_t n;
        const int64_t *mask = arg_ints(o, "grad_input_mask", &n);
        want = 0;
        for (size_t k = 0; k < n && k < 4; k++)
            want |= mask[k] ? 1U << k : 0;
    }
    /* An empty tensor stands for no mask where the kernel demands one. */
    if (in[3] && in[3]->count == 0 && in[0]->count != 0)
        in[3] = NULL;
    const struct attention how = {
        .scale = attention_scale(o, in[0]->rank ? in[0]->shape[in[0]->rank - 1] : 1),
        .causal = arg_bool(o, "is_causal")};
    if (!v_attention_given(o, in, &how, arg_tensor(o, "out"), arg_tensor(o, "logsumexp"),
                           arg_tensor(o, "grad_out"), want, to))
        return;
    for (unsigned k = 0; k < (four_results ? 4 : 3); k++)
        to[k] ? op_return(o, to[k]) : op_return_none(o);
    op_return_tuple(o);
}

static void run_back(struct op *o)
{
    kernel_back(o, false);
}

static void run_back_with_mask(struct op *o)
{
    kernel_back(o, true);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define QKV "(Tensor query, Tensor key, Tensor value, "
#define GRAD "(Tensor grad_out|grad_out_, Tensor query, Tensor key, Tensor value, "
#define SCALE "*, float? scale=None"
#define SEEDS "any philox_seed=None, any philox_offset=None"
#define LENGTHS "any cum_seq_q=None, any cum_seq_k=None, any max_q=None, any max_k=None"

const struct op_def op_attention[] = {
    {"scaled_dot_product_attention",
     "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
     "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
     run_attention, 0, "softmax(scale * query key^T + mask) value"},
    {"_scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps",
     "_scaled_dot_product_attention_math" QKV "Tensor? attn_mask=None, float dropout_p=0.0, bool "
     "is_causal=False, any dropout_mask=None, " SCALE ", bool enable_gqa=False)",
     run_math, 0, "softmax(scale * query key^T + mask) value, and the softmax"},
    {"_scaled_dot_product_flash_attention_for_cpu",
     "_scaled_dot_product_flash_attention_for_cpu" QKV "float dropout_p=0.0, bool "
     "is_causal=False, *, Tensor? attn_mask=None, float? scale=None)",
     run_for_cpu, 0, "softmax(scale * query key^T + mask) value, and logsumexp of the scores"},
    {"_scaled_dot_product_flash_attention",
     "_scaled_dot_product_flash_attention" QKV "float dropout_p=0.0, bool is_causal=False, bool "
     "return_debug_mask=False, " SCALE ")",
     run_flash, 0, "softmax(scale * query key^T) value, and logsumexp of the scores"},
    {"_scaled_dot_product_efficient_attention",
     "_scaled_dot_product_efficient_attention" QKV "Tensor? attn_mask|attn_bias, bool "
     "compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, " SCALE ")",
     run_efficient, 0,
     "softmax(scale * query key^T + bias) value, and logsumexp, padded to 32 with +inf"},
    {"_scaled_dot_product_cudnn_attention",
     "_scaled_dot_product_cudnn_attention" QKV "Tensor? attn_mask|attn_bias, bool "
     "compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, bool "
     "return_debug_mask=False, " SCALE ")",
     run_cudnn, 0, "softmax(scale * query key^T + bias) value, and logsumexp, [B, N, S, 1]"},
    {"_scaled_dot_product_fused_attention_overrideable",
     "_scaled_dot_product_fused_attention_overrideable" QKV "Tensor? attn_mask|attn_bias=None, "
     "float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, " SCALE ")",
     run_flash, 0, "softmax(scale * query key^T + bias) value, and logsumexp of the scores"},
    {"_scaled_dot_product_flash_attention_for_cpu_backward",
     "_scaled_dot_product_flash_attention_for_cpu_backward" GRAD "Tensor out, Tensor logsumexp, "
     "float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None)",
     run_back, OP_NO_GRAD, "gradients of query, key and value, by out and logsumexp"},
    {"_scaled_dot_product_flash_attention_backward",
     "_scaled_dot_product_flash_attention_backward" GRAD "Tensor out, Tensor logsumexp, " LENGTHS
     ", float dropout_p=0.0, bool is_causal=False, " SEEDS ", " SCALE ")",
     run_back, OP_NO_GRAD, "gradients of query, key and value, by out and logsumexp"},
    {"_scaled_dot_product_cudnn_attention_backward",
     "_scaled_dot_product_cudnn_attention_backward" GRAD "Tensor out, Tensor logsumexp, " SEEDS
     ", Tensor? attn_mask|attn_bias=None, " LENGTHS
     ", float dropout_p=0.0, bool is_causal=False, " SCALE ")",
     run_back, OP_NO_GRAD, "gradients of query, key and value, by out and logsumexp"},
    {"_scaled_dot_product_efficient_attention_backward",
     "_scaled_dot_product_efficient_attention_backward" GRAD "Tensor? attn_mask|attn_bias, Tensor "
     "out, Tensor logsumexp, " SEEDS ", float dropout_p=0.0, int[] grad_input_mask=[1,1,1,1], bool "
     "is_causal=False, " SCALE ")",
     run_back_with_mask, OP_NO_GRAD,
     "gradients of query, key, value and bias, by out and logsumexp"},
    {"_scaled_dot_product_fused_attention_overrideable_backward",
     "_scaled_dot_product_fused_attention_overrideable_backward" GRAD "Tensor? "
     "attn_mask|attn_bias, int[] grad_input_mask, Tensor out, Tensor logsumexp, " LENGTHS
     ", float dropout_p=0.0, bool is_causal=False, " SEEDS ", " SCALE ")",
     run_back_with_mask, OP_NO_GRAD,
     "gradients of query, key, value and bias, by out and logsumexp"},
    {0},
};
