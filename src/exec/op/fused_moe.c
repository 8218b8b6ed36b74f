/* Mixtures of experts: tokens sorted by expert and brought back, and products by groups of rows. */
#include "exec/op/fused.h"
#include "exec/op/matmul.h"
#include "exec/op/place.h"

#include <string.h>

/* ---- Sorting --------------------------------------------------------------------------------- */

/* The places of keys in ascending order, equal ones in theirs. */
static int64_t *stable_order(struct op *o, const int64_t *keys, int64_t n)
{
    int64_t *order = op_alloc(o, n + 1, sizeof *order), *spare = op_alloc(o, n + 1, sizeof *spare);
    if (!order || !spare)
        return NULL;
    for (int64_t k = 0; k < n; k++)
        order[k] = k;
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t at = 0; at < n; at += 2 * width) {
            int64_t a = at, b = at + width < n ? at + width : n;
            const int64_t a_end = b, b_end = at + 2 * width < n ? at + 2 * width : n;
            for (int64_t k = at; k < b_end; k++)
                spare[k] = a < a_end && (b >= b_end || keys[order[a]] <= keys[order[b]])
                               ? order[a++]
                               : order[b++];
        }
        int64_t *t = order;
        order = spare;
        spare = t;
    }
    return order;
}

/* Rows of x by index; a negative index gives a row of zeros. */
static struct val *rows_of(struct op *o, struct val *x, const int64_t *index, int64_t n)
{
    return x && index ? v_pick_dim(o, x, 0, n, index) : NULL;
}

static bool is_rows(struct op *o, const struct val *x)
{
    if (takes_floats(o, x) && x->rank != 2)
        op_fail(o, PLUMB_E_ARG, "%s: tokens are [rows, features], not of %u dimensions",
                o->call->name, x->rank);
    return x && !o->failed;
}

/* ---- Permuting tokens ------------------------------------------------------------------------ */

/* Tokens repeated for each of their experts and sorted by expert, and where each one went. */
static void run_permute(struct op *o)
{
    struct val *x = arg_tensor(o, "tokens"), *indices = arg_index(o, "indices");
    if (!is_rows(o, x) || !indices)
        return;
    const int64_t per_token = indices->rank > 1 ? indices->shape[1] : 1, n = indices->count;
    if (arg_bool(o, "padded_mode")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the padded mode is not known", o->call->name);
        return;
    }
    if (indices->rank < 1 || indices->rank > 2 || indices->shape[0] != x->shape[0]) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld rows of experts for %lld tokens", o->call->name,
                (long long)(indices->rank ? indices->shape[0] : 0), (long long)x->shape[0]);
        return;
    }
    int64_t out = arg_given(o, "num_out_tokens") ? arg_int(o, "num_out_tokens") : 0;
    out = out <= 0 ? out + n : out;
    if (out < 0 || out > n)
        out = n;
    int64_t *order = stable_order(o, indices->i, n), *from = op_alloc(o, n + 1, sizeof *from);
    struct val *where = val_new(o, PLUMB_I32, 1, &n);
    if (!order || !from || !where)
        return;
    for (int64_t k = 0; k < n; k++) {
        from[k] = order[k] / per_token;
        where->i[order[k]] = k;
    }
    op_return(o, rows_of(o, x, from, out));
    op_return(o, where);
}

/* Back to the order of tokens: the sum over its experts of a token's rows, weighed by probs. */
static void run_unpermute(struct op *o)
{
    struct val *x = arg_tensor(o, "permuted_tokens"), *where = arg_index(o, "sorted_indices"),
               *probs = arg_tensor(o, "probs");
    if (!is_rows(o, x) || !where)
        return;
    if (arg_bool(o, "padded_mode")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the padded mode is not known", o->call->name);
        return;
    }
    const int64_t n = where->count, per_token = probs && probs->rank == 2 ? probs->shape[1] : 1;
    int64_t *index = op_alloc(o, n + 1, sizeof *index);
    if (!index)
        return;
    if (where->rank != 1 || (probs && (!probs->f || probs->rank != 2 || probs->count != n))) {
        op_fail(o, PLUMB_E_ARG, "%s: the indices do not fit the probabilities", o->call->name);
        return;
    }
    for (int64_t k = 0; k < n; k++) { /* behind the end: dropped by the permutation */
        if (where->i[k] < 0) {
            op_fail(o, PLUMB_E_ARG, "%s: index %lld", o->call->name, (long long)where->i[k]);
            return;
        }
        index[k] = where->i[k] < x->shape[0] ? where->i[k] : -1;
    }
    struct val *rows = rows_of(o, x, index, n);
    if (!probs || !rows) {
        op_return(o, rows);
        return;
    }
    const int64_t shape[3] = {probs->shape[0], per_token, x->shape[1]};
    struct val *weighed =
        v_mul(o, v_reshape(o, rows, 3, shape), v_unsqueeze(o, v_cast(o, probs, x->dtype), 2));
    op_return(o, v_sum(o, weighed, 1 << 1, false));
}

/* ---- Routing --------------------------------------------------------------------------------- */

/* Pairs of expert and row, sorted by expert; row r stands for token r % tokens. */
static void run_init_routing(struct op *o)
{
    struct val *x = arg_tensor(o, "x"), *row = arg_index(o, "row_idx"),
               *expert = arg_index(o, "expert_idx");
    const int64_t active = arg_int(o, "active_num");
    if (!is_rows(o, x) || !row || !expert)
        return;
    const int64_t tokens = x->shape[0], n = expert->count;
    if (expert->rank != 2 || expert->shape[0] != tokens || row->count != n || active < 0) {
        op_fail(o, PLUMB_E_ARG, "%s: rows and experts do not fit the tokens", o->call->name);
        return;
    }
    const int64_t kept = (active < tokens ? active : tokens) * expert->shape[1];
    int64_t *order = stable_order(o, expert->i, n), *from = op_alloc(o, n + 1, sizeof *from);
    struct val *to = val_new(o, PLUMB_I32, 1, &n), *sorted = val_new(o, PLUMB_I32, 1, &n);
    if (!order || !from || !to || !sorted)
        return;
    for (int64_t k = 0; k < n; k++) {
        const int64_t r = row->i[order[k]];
        if (r < 0 || r >= n) {
            op_fail(o, PLUMB_E_ARG, "%s: row %lld of %lld", o->call->name, (long long)r,
                    (long long)n);
            return;
        }
        from[k] = r % tokens;
        to->i[r] = k;
        sorted->i[k] = expert->i[order[k]];
    }
    op_return(o, rows_of(o, x, from, kept));
    op_return(o, to);
    op_return(o, sorted);
}

/* How many rows belong to each expert or one before it. */
static void run_expert_tokens(struct op *o)
{
    struct val *sorted = arg_index(o, "sorted_experts");
    const int64_t experts = arg_int(o, "num_expert");
    struct val *out = sorted && experts >= 0 ? val_new(o, PLUMB_I32, 1, &experts) : NULL;
    for (int64_t k = 0; out && k < sorted->count; k++)
        for (int64_t e = sorted->i[k] < 0 ? 0 : sorted->i[k]; e < experts; e++)
            out->i[e]++;
    op_return(o, out);
}

/* skip1 + skip2 + the sum over k of scales[i, k] (rows[to[k * tokens + i]] + bias[expert]) */
static void run_finalize(struct op *o)
{
    struct val *x = arg_tensor(o, "rows"), *skip1 = arg_tensor(o, "skip1"),
               *skip2 = arg_tensor(o, "skip2"), *bias = arg_tensor(o, "bias"),
               *scales = arg_tensor(o, "scales"), *to = arg_index(o, "expanded_src_to_dst_row"),
               *expert = arg_given(o, "export_for_source_row")
                             ? arg_index(o, "export_for_source_row")
                             : NULL;
    if (!is_rows(o, x) || !to)
        return;
    if (arg_given(o, "drop_pad_mode") && arg_int(o, "drop_pad_mode") != 0) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: drop_pad_mode %lld is not known", o->call->name,
                (long long)arg_int(o, "drop_pad_mode"));
        return;
    }
    const struct val *count = scales ? scales : skip1;
    const int64_t tokens = count && count->rank == 2 ? count->shape[0] : to->count;
    const int64_t k = tokens ? to->count / tokens : 0, n = to->count;
    int64_t *row = op_alloc(o, n + 1, sizeof *row), *which = op_alloc(o, n + 1, sizeof *which);
    bool fits = row && which && k * tokens == n && (!scales || scales->count == n) &&
                (!bias || (bias->rank == 2 && bias->shape[1] == x->shape[1] && expert &&
                           expert->count == n));
    for (int64_t e = 0; fits && e < n; e++) { /* element e is token e / k, its choice e % k */
        row[e] = to->i[e % k * tokens + e / k];
        which[e] = bias ? expert->i[e] : 0;
        fits = row[e] >= 0 && row[e] < x->shape[0] &&
               (!bias || (which[e] >= 0 && which[e] < bias->shape[0]));
    }
    if (!fits) {
        op_fail(o, PLUMB_E_ARG, "%s: rows, scales, experts and bias do not fit each other",
                o->call->name);
        return;
    }
    struct val *y = rows_of(o, x, row, n);
    if (bias)
        y = v_add(o, y, rows_of(o, bias, which, n));
    y = y ? v_reshape(o, y, 3, (const int64_t[]){tokens, k, x->shape[1]}) : NULL;
    if (scales)
        y = v_mul(o, y, v_reshape(o, scales, 3, (const int64_t[]){tokens, k, 1}));
    y = y ? v_sum(o, y, 1 << 1, false) : NULL;
    if (skip1)
        y = v_add(o, y, skip1);
    op_return(o, skip2 ? v_add(o, y, skip2) : y);
}

/* ---- Products by groups ---------------------------------------------------------------------- */

/* The rows of each group; counts, or where each group ends. */
static int64_t *group_sizes(struct op *o, bool counts, int64_t rows, size_t *groups)
{
    const int64_t *given = arg_many_ints(o, "group_list", groups);
    int64_t *sizes = op_alloc(o, (int64_t)*groups + 1, sizeof *sizes), at = 0;
    for (size_t k = 0; sizes && k < *groups; k++) {
        sizes[k] = counts ? given[k] : given[k] - at;
        if (sizes[k] < 0 || sizes[k] > rows - at)
            return op_fail(o, PLUMB_E_ARG, "%s: group %zu takes %lld of %lld rows", o->call->name,
                           k, (long long)sizes[k], (long long)(rows - at));
        at += sizes[k];
    }
    return sizes;
}

static struct val *member(struct op *o, struct val *const *list, size_t n, size_t k)
{
    if (n == 0)
        return NULL;
    if (n > 1 || list[0]->rank < 1)
        return k < n ? list[k]
                     : op_fail(o, PLUMB_E_ARG, "%s: no tensor for group %zu", o->call->name, k);
    if ((int64_t)k >= list[0]->shape[0])
        return op_fail(o, PLUMB_E_ARG, "%s: no matrix for group %zu", o->call->name, k);
    return v_squeeze(o, v_narrow(o, list[0], 0, (int64_t)k, 1), 0);
}

/* Rows of x, group after group, each times its own matrix. */
static struct val *by_groups(struct op *o, struct val *x, struct val *const *weights, size_t n,
                             struct val *const *biases, size_t n_biases, bool counts)
{
    size_t groups = 0;
    int64_t *sizes = is_rows(o, x) ? group_sizes(o, counts, x->shape[0], &groups) : NULL;
    struct val **parts = op_alloc(o, (int64_t)groups + 1, sizeof *parts);
    int64_t at = 0;
    if (!sizes || !parts)
        return NULL;
    for (size_t k = 0; k < groups && !o->failed; k++) {
        struct val *y = v_matmul(o, v_narrow(o, x, 0, at, sizes[k]), member(o, weights, n, k));
        struct val *bias = member(o, biases, n_biases, k);
        parts[k] = y && bias ? v_add(o, y, bias) : y;
        at += sizes[k];
    }
    if (!o->failed && (groups == 0 || at != x->shape[0]))
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: the groups cover %lld of %lld rows",
                       o->call->name, (long long)at, (long long)x->shape[0]);
    return o->failed ? NULL : v_cat(o, parts, groups, 0);
}

static bool without(struct op *o, const char *const *names)
{
    for (; *names; names++)
        if (arg_given(o, *names))
            return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: '%s' is not known", o->call->name,
                           *names) != NULL;
    return true;
}

static void run_grouped_matmul(struct op *o)
{
    static const char *const unknown[] = {"scale",
                                          "offset",
                                          "antiquant_scale",
                                          "antiquant_offset",
                                          "per_token_scale",
                                          "activation_input",
                                          NULL};
    size_t n, n_weights, n_biases;
    struct val **xs = arg_tensors(o, "x", &n), **weights = arg_tensors(o, "weight", &n_weights),
               **biases = arg_tensors(o, "bias", &n_biases);
    if (!without(o, unknown) || !xs || !weights)
        return;
    if (arg_given(o, "act_type") && arg_int(o, "act_type") != 0)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: act_type is not known", o->call->name);
    const int64_t type = arg_given(o, "group_type") ? arg_int(o, "group_type") : -1;
    op_return_tuple(o);
    if (n == 1 && arg_given(o, "group_list")) {
        if (type == 2)
            op_fail(o, PLUMB_E_UNSUPPORTED, "%s: groups of columns are not known", o->call->name);
        op_return(o, by_groups(o, xs[0], weights, n_weights, biases, n_biases,
                               arg_int(o, "group_list_type") == 1));
        return;
    }
    if (n != n_weights || (n_biases && n_biases != n) || arg_given(o, "group_list")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: %zu inputs, %zu weights and %zu biases", o->call->name,
                n, n_weights, n_biases);
        return;
    }
    for (size_t k = 0; k < n && !o->failed; k++) {
        struct val *y = v_matmul(o, xs[k], weights[k]);
        op_return(o, y && n_biases && biases[k] ? v_add(o, y, biases[k]) : y);
    }
}

static void run_gmm(struct op *o)
{
    struct val *weight = arg_tensor(o, "weight"), *bias = arg_tensor(o, "bias");
    if (!weight)
        return;
    if (weight->rank != 3 || (arg_given(o, "group_type") && arg_int(o, "group_type") != 0)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: groups of rows and a batch of matrices are known",
                o->call->name);
        return;
    }
    op_return(o, by_groups(o, arg_tensor(o, "x"), &weight, 1, &bias, bias ? 1 : 0,
                           strstr(o->call->name, "v2") != NULL));
}

#define GMM                                                                                        \
    "(Tensor x, Tensor weight, *, Tensor? bias=None, any group_list, any group_type=0, "           \
    "any gemm_fusion=False, any original_weight=None)"

const struct op_def op_fused_moe[] = {
    {"npu_moe_token_permute npu_moe_token_permute.npu_moe_token_permute",
     "npu_moe_token_permute(Tensor tokens, Tensor indices, int? num_out_tokens=None, bool "
     "padded_mode=False)",
     run_permute, 0, "tokens sorted by expert, and where each one went"},
    {"npu_moe_token_unpermute npu_moe_token_unpermute.npu_moe_token_unpermute",
     "npu_moe_token_unpermute(Tensor permuted_tokens, Tensor sorted_indices, Tensor? probs=None, "
     "bool padded_mode=False, any restore_shape=None)",
     run_unpermute, 0, "the sum over its experts of a token's rows, weighed by probs"},
    {"npu_moe_init_routing",
     "npu_moe_init_routing(Tensor x, Tensor row_idx, Tensor expert_idx, int active_num)",
     run_init_routing, 0, "rows sorted by expert, where each went, the sorted experts"},
    {"npu_moe_compute_expert_tokens",
     "npu_moe_compute_expert_tokens(Tensor sorted_experts|sorted_expert_for_source_row, int "
     "num_expert|num_experts)",
     run_expert_tokens, OP_NO_GRAD, "the number of rows up to each expert"},
    {"npu_moe_finalize_routing",
     "npu_moe_finalize_routing(Tensor rows|expanded_permuted_rows, Tensor? skip1, Tensor? skip2, "
     "Tensor? bias, Tensor? scales, Tensor expanded_src_to_dst_row, Tensor? "
     "export_for_source_row|expert_for_source_row, int? drop_pad_mode=0)",
     run_finalize, 0, "skip1 + skip2 + sum over k of scales (rows + bias)"},
    {"npu_grouped_matmul npu_grouped_matmu",
     "npu_grouped_matmul(Tensor[] x, Tensor[] weight, *, Tensor?[]? bias=None, any scale=None, any "
     "offset=None, any antiquant_scale=None, any antiquant_offset=None, any per_token_scale=None, "
     "any group_list=None, any activation_input=None, any activation_quant_scale=None, any "
     "activation_quant_offset=None, int? split_item=0, int? group_type=None, int? "
     "group_list_type=0, int? act_type=0, any tuning_config=None, any output_dtype=None)",
     run_grouped_matmul, 0, "x weight + bias for each pair, or each group of rows"},
    {"npu_gmm gmm.npu_gmm npu_gmm_v2 gmm.npu_gmm_v2", "npu_gmm" GMM, run_gmm, 0,
     "each group of rows times its own matrix"},
    {0},
};
