/* Attention kernels that take [B, S, N, D], or sequences of different lengths one after the other:
 * flash-attn's, and those of PyTorch beneath scaled_dot_product_attention. */
#include "exec/op/attention.h"

/* One call: tensors as they were given. */
struct flash {
    struct val *q, *k, *v, *mask;
    const struct val *q_ends, *k_ends; /* where sequences begin and end: [n + 1]; NULL: dense */
    struct attention how;
};

/* Sequence b of [T, N, D] as [1, N, s, D]; all of [B, S, N, D] as [B, N, S, D]. */
static struct val *by_heads(struct op *o, struct val *x, const struct val *ends, int64_t b)
{
    if (!x)
        return NULL;
    if (x->rank != (ends ? 3 : 4) || !x->f)
        return op_fail(o, PLUMB_E_ARG, "%s: query, key and value must be floats of %d dimensions",
                       o->call->name, ends ? 3 : 4);
    if (!ends)
        return v_transpose(o, x, 1, 2);
    x = v_narrow(o, x, 0, ends->i[b], ends->i[b + 1] - ends->i[b]);
    return v_unsqueeze(o, v_transpose(o, x, 0, 1), 0);
}

static bool ends_fit(struct op *o, const struct val *ends, const struct val *x)
{
    bool fits = ends->i && ends->rank == 1 && ends->count > 1 && ends->i[0] == 0 && x->rank == 3 &&
                ends->i[ends->count - 1] == x->shape[0];
    for (int64_t k = 1; fits && k < ends->count; k++)
        fits = ends->i[k] >= ends->i[k - 1];
    if (!fits)
        op_fail(o, PLUMB_E_ARG,
                "%s: lengths of sequences must add up from 0 to the first of three dimensions",
                o->call->name);
    return fits;
}

static bool read_flash(struct op *o, struct flash *f)
{
    f->q = arg_tensor(o, "query");
    f->k = arg_tensor(o, "key");
    f->v = arg_tensor(o, "value");
    f->mask = arg_raw(o, "bias") ? arg_tensor(o, "bias") : NULL;
    f->q_ends = arg_raw(o, "cum_seq_q") ? arg_tensor(o, "cum_seq_q") : NULL;
    f->k_ends = arg_raw(o, "cum_seq_k") ? arg_tensor(o, "cum_seq_k") : NULL;
    if (!f->q || !f->k || !f->v || !attention_no_dropout(o, arg_number(o, "dropout_p")))
        return false;
    if (arg_given(o, "seqused_k") || arg_given(o, "block_table")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: paged keys and used lengths are not known",
                o->call->name);
        return false;
    }
    f->how.scale = attention_scale(o, f->q->rank ? f->q->shape[f->q->rank - 1] : 1);
    if (!f->q_ends != !f->k_ends || (f->q_ends && f->mask)) {
        op_fail(o, PLUMB_E_ARG, "%s: lengths of queries and keys come together, without a bias",
                o->call->name);
        return false;
    }
    if (f->q_ends && f->q_ends->count != f->k_ends->count) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld sequences of queries and %lld of keys", o->call->name,
                (long long)f->q_ends->count - 1, (long long)f->k_ends->count - 1);
        return false;
    }
    return !f->q_ends || (ends_fit(o, f->q_ends, f->q) && ends_fit(o, f->k_ends, f->k) &&
                          ends_fit(o, f->k_ends, f->v));
}

/* flash-attn: diagonals from the last query and key; what a window leaves out. */
static void read_window(struct op *o, struct flash *f)
{
    size_t n = 0;
    const int64_t *window = arg_raw(o, "window_size") ? arg_ints(o, "window_size", &n) : NULL;
    f->how.causal = arg_bool(o, "is_causal");
    f->how.from_end = true;
    f->how.unseen_lse = INFINITY;
    f->how.softcap = arg_number(o, "softcap");
    f->how.slopes = arg_raw(o, "alibi_slopes") ? arg_tensor(o, "alibi_slopes") : NULL;
    f->how.window = true;
    f->how.left = n == 2 ? window[0] : arg_given(o, "left") ? arg_int(o, "left") : -1;
    f->how.right = n == 2 ? window[1] : arg_given(o, "right") ? arg_int(o, "right") : -1;
}

/* xFormers: mask type 1 counts from the first query and key, 2 from the last. */
static bool read_mask_type(struct op *o, struct flash *f)
{
    const int64_t type = arg_int(o, "custom_mask_type");
    if (type < 0 || type > 2 || arg_given(o, "seqlen_k")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: mask types 0 to 2, without seqlen_k, are known",
                o->call->name);
        return false;
    }
    f->how.causal = type != 0;
    f->how.from_end = type == 2;
    f->how.unseen_lse = -INFINITY;
    if (arg_given(o, "window_size")) { /* so many keys, the query's own included */
        f->how.window = true;
        f->how.left = arg_int(o, "window_size") - 1;
        f->how.right = -1;
    }
    return true;
}

static int64_t sequences(const struct flash *f)
{
    return f->q_ends ? f->q_ends->count - 1 : 1;
}

/* [B, N, S, E] back to [B, S, N, E], or [1, N, s, E] to [s, N, E]. */
static struct val *back(struct op *o, struct val *y, bool varied)
{
    if (!y)
        return NULL;
    return varied ? v_transpose(o, v_squeeze(o, y, 0), 0, 1) : v_transpose(o, y, 1, 2);
}

/* The output; lse receives [B, N, S], or [N, T] of sequences. */
static struct val *attend(struct op *o, const struct flash *f, struct val **lse)
{
    const int64_t n = sequences(f);
    const bool varied = f->q_ends;
    struct val **parts = op_alloc(o, n, sizeof *parts), **sums = op_alloc(o, n, sizeof *sums);
    for (int64_t b = 0; parts && sums && b < n && !o->failed; b++) {
        struct val *q = by_heads(o, f->q, f->q_ends, b), *k = by_heads(o, f->k, f->k_ends, b),
                   *v = by_heads(o, f->v, f->k_ends, b);
        struct val *y = v_attention(o, q, k, v, f->mask, &f->how, &sums[b]);
        parts[b] = back(o, y, varied);
        if (varied && y)
            sums[b] = v_squeeze(o, sums[b], 0);
    }
    if (o->failed)
        return NULL;
    *lse = varied ? v_cat(o, sums, (size_t)n, 1) : sums[0];
    return varied ? v_cat(o, parts, (size_t)n, 0) : parts[0];
}

/* ---- Forward --------------------------------------------------------------------------------- */

static void run_flash_forward(struct op *o)
{
    struct flash f = {0};
    struct val *lse = NULL;
    if (!read_flash(o, &f))
        return;
    read_window(o, &f);
    op_return(o, attend(o, &f, &lse));
    op_return(o, lse);
    op_return_tuple(o);
}

static void run_flash_attn(struct op *o)
{
    struct flash f = {0};
    struct val *lse;
    if (!read_flash(o, &f))
        return;
    read_window(o, &f);
    op_return(o, attend(o, &f, &lse));
}

/* The lse of this kernel is padded in ways of its own, and is not computed. */
static void run_efficient_forward(struct op *o)
{
    struct flash f = {0};
    struct val *lse, *q = arg_tensor(o, "query");
    if (q && q->rank == 4 && arg_given(o, "cum_seq_q")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: sequences of different lengths are not known",
                o->call->name);
        return;
    }
    if (read_flash(o, &f) && read_mask_type(o, &f))
        op_return(o, attend(o, &f, &lse));
    op_return_tuple(o);
}

/* ---- Backward -------------------------------------------------------------------------------- */

static struct val *rows_of(struct op *o, struct val *lse, const struct val *ends, int64_t b)
{
    return ends && lse ? v_narrow(o, lse, 1, ends->i[b], ends->i[b + 1] - ends->i[b]) : lse;
}

static void run_flash_backward(struct op *o)
{
    struct flash f = {0};
    if (!read_flash(o, &f))
        return;
    read_window(o, &f);
    struct val *y = arg_tensor(o, "out"), *g = arg_tensor(o, "grad_out"),
               *lse = arg_tensor(o, "logsumexp");
    const int64_t n = sequences(&f);
    const bool varied = f.q_ends;
    struct val **parts[3];
    for (int i = 0; i < 3; i++)
        parts[i] = op_alloc(o, n, sizeof *parts[i]);
    if (varied && lse && lse->rank != 2)
        op_fail(o, PLUMB_E_ARG, "%s: logsumexp of sequences is [N, T]", o->call->name);
    for (int64_t b = 0; b < n && !o->failed; b++) {
        struct val *in[4] = {by_heads(o, f.q, f.q_ends, b), by_heads(o, f.k, f.k_ends, b),
                             by_heads(o, f.v, f.k_ends, b), NULL};
        struct val *to[4] = {0}, *own_y = by_heads(o, y, f.q_ends, b),
                   *own_g = by_heads(o, g, f.q_ends, b), *own_lse = rows_of(o, lse, f.q_ends, b);
        if (!v_attention_given(o, in, &f.how, own_y, own_lse, own_g, 7, to))
            return;
        for (int i = 0; i < 3; i++)
            parts[i][b] = back(o, to[i], varied);
    }
    for (int i = 0; i < 3 && !o->failed; i++)
        op_return(o, varied ? v_cat(o, parts[i], (size_t)n, 0) : parts[i][0]);
    op_return_tuple(o);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define QKV "(Tensor query|q, Tensor key|k, Tensor value|v, "
#define WINDOW "int? left|window_size_left=None, int? right|window_size_right=None"
#define PACKAGE                                                                                    \
    "float dropout_p=0.0, float? scale|softmax_scale=None, bool is_causal|causal=False, int[] "    \
    "window_size=[-1,-1], float softcap=0.0, Tensor? alibi_slopes=None, bool "                     \
    "deterministic=False"

const struct op_def op_flash[] = {
    {"_flash_attention_forward",
     "_flash_attention_forward" QKV "Tensor? cum_seq_q, Tensor? cum_seq_k, any max_q, any max_k, "
     "float dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None, " WINDOW
     ", Tensor? seqused_k=None, Tensor? alibi_slopes=None, any block_table=None, any "
     "num_splits=None)",
     run_flash_forward, 0, "softmax(scale * query key^T) value, and logsumexp of the scores"},
    {"_flash_attention_backward",
     "_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor "
     "out, Tensor logsumexp, Tensor? cum_seq_q, Tensor? cum_seq_k, any max_q, any max_k, float "
     "dropout_p, bool is_causal, any rng_state=None, any unused=None, *, float? scale=None, " WINDOW
     ")",
     run_flash_backward, OP_NO_GRAD, "gradients of query, key and value, by out and logsumexp"},
    {"_efficient_attention_forward",
     "_efficient_attention_forward" QKV "Tensor? bias, Tensor? cum_seq_q|cu_seqlens_q, Tensor? "
     "cum_seq_k|cu_seqlens_k, any max_seqlen_q, any max_seqlen_k, float dropout_p, int "
     "custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None, Tensor? "
     "seqlen_k=None, int? window_size=None)",
     run_efficient_forward, 0, "softmax(scale * query key^T + bias) value"},
    {"flash_attn_func", "flash_attn_func" QKV PACKAGE ", any return_attn_probs=False)",
     run_flash_attn, 0, "softmax(scale * query key^T) value, [B, S, N, D]"},
    {"flash_attn_varlen_func",
     "flash_attn_varlen_func" QKV "Tensor? cum_seq_q|cu_seqlens_q, Tensor? "
     "cum_seq_k|cu_seqlens_k, any max_seqlen_q, any max_seqlen_k, " PACKAGE
     ", any return_attn_probs=False, any block_table=None)",
     run_flash_attn, 0, "the same of sequences one after the other, [T, N, D]"},
    {0},
};
