/* Activations, norms, rotary embeddings and softmax in the fused forms of vLLM, Megatron,
 * Transformers and flash-attn. Forms that write into an argument return what stands there then. */
#include "exec/op/fused.h"
#include "exec/op/norm.h"

/* ---- Gated activations ----------------------------------------------------------------------- */

enum gate { GATE_SILU, GATE_GELU, GATE_TANH_GELU };

static struct val *active(struct op *o, struct val *x, enum gate gate)
{
    return gate == GATE_SILU ? v_silu(o, x) : fused_gelu(o, x, gate == GATE_TANH_GELU);
}

/* The input, with a bias where one is given. */
static struct val *biased(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    return arg_given(o, "bias") ? v_add(o, x, arg_tensor(o, "bias")) : x;
}

static void gated(struct op *o, enum gate gate, bool second)
{
    struct val *a, *b, *weights = arg_raw(o, "weights") ? arg_tensor(o, "weights") : NULL;
    if (!fused_halves(o, biased(o), -1, &a, &b))
        return;
    struct val *y = second ? v_mul(o, a, active(o, b, gate)) : v_mul(o, active(o, a, gate), b);
    op_return(o, weights ? v_mul(o, y, weights) : y);
}

static void run_silu_and_mul(struct op *o)
{
    gated(o, GATE_SILU, false);
}

static void run_mul_and_silu(struct op *o)
{
    gated(o, GATE_SILU, true);
}

static void run_gelu_and_mul(struct op *o)
{
    gated(o, GATE_GELU, false);
}

static void run_gelu_tanh_and_mul(struct op *o)
{
    gated(o, GATE_TANH_GELU, false);
}

/* a b where a is above the threshold, else 0 */
static void run_fatrelu_and_mul(struct op *o)
{
    struct val *a, *b;
    if (!fused_halves(o, arg_tensor(o, "input"), -1, &a, &b))
        return;
    struct val *above = v_compare(o, CMP_GT, a, v_number(o, arg_number(o, "threshold")));
    op_return(o, v_mul(o, v_where(o, above, a, v_number(o, 0)), b));
}

/* Every second number of the last dimension, from `first`. */
static struct val *alternate(struct op *o, struct val *x, int64_t first)
{
    int64_t shape[OP_RANK];
    if (!takes_floats(o, x))
        return NULL;
    if (x->rank == 0 || x->shape[x->rank - 1] % 2)
        return op_fail(o, PLUMB_E_ARG, "%s: the last dimension has no pairs", o->call->name);
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = x->shape[d];
    shape[x->rank - 1] /= 2;
    int64_t *map = op_alloc(o, x->count / 2 + 1, sizeof *map);
    for (int64_t k = 0; map && k < x->count / 2; k++)
        map[k] = 2 * k + first;
    return map ? v_map(o, x, x->rank, shape, map) : NULL;
}

/* (up + 1) gate sigmoid(alpha gate), of neighbours gate <= limit and |up| <= limit */
static void run_swigluoai(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const double limit = arg_number(o, "limit");
    struct val *gate = v_clamp(o, alternate(o, x, 0), -INFINITY, limit),
               *up = v_clamp(o, alternate(o, x, 1), -limit, limit);
    struct val *swish = v_mul(o, gate, v_sigmoid(o, v_scale(o, gate, arg_number(o, "alpha"))));
    op_return(o, v_mul(o, v_offset(o, up, 1), swish));
}

static void run_gelu_tanh(struct op *o)
{
    op_return(o, fused_gelu(o, biased(o), true));
}

static void run_gelu_quick(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    op_return(o, v_mul(o, x, v_sigmoid(o, v_scale(o, x, 1.702))));
}

/* ---- Norms ----------------------------------------------------------------------------------- */

static struct val *rms(struct op *o, struct val *x, struct val *weight)
{
    if (!takes_floats(o, x) || !takes_floats(o, weight))
        return NULL;
    const int64_t n = x->rank ? x->shape[x->rank - 1] : 1;
    if (weight->count != n)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld weights for rows of %lld", o->call->name,
                       (long long)weight->count, (long long)n);
    struct norm norm = {.layout = {1, n ? x->count / n : 0, n, 1, n},
                        .eps = (real)arg_number(o, "eps")};
    return v_norm_rows(o, &norm, x, weight, NULL);
}

static void run_rms_norm(struct op *o)
{
    op_return(o, rms(o, arg_tensor(o, "input"), arg_tensor(o, "weight")));
}

/* The norm of the sum, and the sum. */
static void run_fused_add_rms_norm(struct op *o)
{
    struct val *sum = v_add(o, arg_tensor(o, "input"), arg_tensor(o, "residual"));
    op_return(o, rms(o, sum, arg_tensor(o, "weight")));
    op_return(o, sum);
    op_return_tuple(o);
}

/* ---- Rotary embeddings ----------------------------------------------------------------------- */

/* The first `width` of the last dimension turned, the rest as it is. */
static struct val *turn_first(struct op *o, struct val *x, struct val *cosine, struct val *sine,
                              int64_t width, bool interleave)
{
    if (!x)
        return NULL;
    const unsigned last = x->rank - 1;
    if (x->shape[last] == width)
        return fused_rotate(o, x, cosine, sine, interleave);
    if (x->shape[last] < width)
        return op_fail(o, PLUMB_E_ARG, "%s: heads of %lld are turned by %lld", o->call->name,
                       (long long)x->shape[last], (long long)width);
    struct val *parts[2] = {
        fused_rotate(o, v_narrow(o, x, last, 0, width), cosine, sine, interleave),
        v_narrow(o, x, last, width, x->shape[last] - width)};
    return parts[0] && parts[1] ? v_cat(o, parts, 2, last) : NULL;
}

/* Half a table as a whole one: each number twice, side by side or half by half. */
static struct val *twice(struct op *o, struct val *half, bool interleave)
{
    if (!half)
        return NULL;
    int64_t shape[OP_RANK];
    const int64_t n = half->shape[half->rank - 1];
    for (unsigned d = 0; d < half->rank; d++)
        shape[d] = half->shape[d];
    shape[half->rank - 1] = 2 * n;
    int64_t *map = op_alloc(o, 2 * half->count + 1, sizeof *map);
    for (int64_t k = 0; map && k < 2 * half->count; k++) {
        const int64_t j = k % (2 * n);
        map[k] = k / (2 * n) * n + (interleave ? j / 2 : j % n);
    }
    return map ? v_map(o, half, half->rank, shape, map) : NULL;
}

/* Rows of the table at the positions: [tokens, 1, width]. */
static struct val *rows_at(struct op *o, struct val *table, const struct val *positions,
                           int64_t from, int64_t width)
{
    const int64_t n = table->shape[1];
    int64_t *map = op_alloc(o, positions->count * width + 1, sizeof *map);
    for (int64_t k = 0; map && k < positions->count * width; k++) {
        const int64_t row = positions->i[k / width];
        if (row < 0 || row >= table->shape[0])
            return op_fail(o, PLUMB_E_ARG, "%s: position %lld of a table of %lld", o->call->name,
                           (long long)row, (long long)table->shape[0]);
        map[k] = row * n + from + k % width;
    }
    return map ? v_map(o, table, 3, (const int64_t[]){positions->count, 1, width}, map) : NULL;
}

/* x, [tokens, heads * size] or [tokens, heads, size], by heads. */
static struct val *turned_heads(struct op *o, struct val *x, int64_t tokens, int64_t size,
                                struct val *cosine, struct val *sine, bool interleave)
{
    if (!takes_floats(o, x))
        return NULL;
    if (size < 1 || !cosine || (tokens ? x->count % (tokens * size) : x->count))
        return op_fail(o, PLUMB_E_ARG, "%s: %lld numbers are not heads of %lld for %lld positions",
                       o->call->name, (long long)x->count, (long long)size, (long long)tokens);
    const int64_t heads = tokens ? x->count / (tokens * size) : 0;
    struct val *y = v_reshape(o, x, 3, (const int64_t[]){tokens, heads, size});
    y = turn_first(o, y, cosine, sine, cosine->shape[2], interleave);
    return y ? v_reshape(o, y, x->rank, x->shape) : NULL;
}

/* cos_sin_cache [positions, width]: cosines, then sines, of half the width each. */
static void run_rotary_embedding(struct op *o)
{
    struct val *positions = arg_tensor(o, "positions"), *table = arg_tensor(o, "cos_sin_cache");
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key");
    const bool interleave = !arg_bool(o, "is_neox");
    const int64_t size = arg_int(o, "head_size");
    if (!positions || !takes_floats(o, table) || !takes_floats(o, q))
        return;
    if (!positions->i || table->rank != 2 || table->shape[1] % 2) {
        op_fail(o, PLUMB_E_ARG, "%s: positions are integers, the table is [positions, 2 halves]",
                o->call->name);
        return;
    }
    const int64_t half = table->shape[1] / 2;
    struct val *cosine = twice(o, rows_at(o, table, positions, 0, half), interleave),
               *sine = twice(o, rows_at(o, table, positions, half, half), interleave);
    op_return(o, turned_heads(o, q, positions->count, size, cosine, sine, interleave));
    if (k)
        op_return(o, turned_heads(o, k, positions->count, size, cosine, sine, interleave));
    op_return_tuple(o);
}

/* Transformers: cos and sin get a dimension for the heads. */
static void run_apply_rotary_pos_emb(struct op *o)
{
    struct val *q = arg_tensor(o, "q"), *k = arg_tensor(o, "k");
    struct val *cosine = arg_tensor(o, "cos"), *sine = arg_tensor(o, "sin");
    if (!takes_floats(o, q) || !takes_floats(o, k) || !cosine || !sine)
        return;
    if (arg_given(o, "position_ids")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: position_ids are not known", o->call->name);
        return;
    }
    int64_t dim = arg_int(o, "unsqueeze_dim");
    dim += dim < 0 ? (int64_t)cosine->rank + 1 : 0;
    if (dim < 0 || dim > (int64_t)cosine->rank || cosine->rank + 1 > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "%s: unsqueeze_dim %lld", o->call->name, (long long)dim);
        return;
    }
    cosine = v_unsqueeze(o, cosine, (unsigned)dim);
    sine = v_unsqueeze(o, sine, (unsigned)dim);
    op_return(o, fused_rotate(o, q, cosine, sine, false));
    op_return(o, fused_rotate(o, k, cosine, sine, false));
}

/* Megatron: angles, [S, 1, 1, width]. */
static void run_apply_rotary_angles(struct op *o)
{
    struct val *x = arg_tensor(o, "t"), *angles = arg_tensor(o, "freqs");
    if (!takes_floats(o, x) || !takes_floats(o, angles))
        return;
    if (angles->rank == 0 || x->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "%s: angles of each position are needed", o->call->name);
        return;
    }
    const double scale = arg_number(o, "mscale");
    struct val *cosine = v_cast(o, v_scale(o, v_cos(o, angles), scale), x->dtype),
               *sine = v_cast(o, v_scale(o, v_sin(o, angles), scale), x->dtype);
    op_return(o, turn_first(o, x, cosine, sine, angles->shape[angles->rank - 1],
                            arg_bool(o, "rotary_interleaved")));
}

/* flash-attn: x [B, S, heads, size], cos and sin [S, width / 2]. */
static void run_apply_rotary_emb(struct op *o)
{
    struct val *x = arg_tensor(o, "x"), *cosine = arg_tensor(o, "cos"),
               *sine = arg_tensor(o, "sin");
    const bool interleave = arg_bool(o, "interleaved");
    if (!takes_floats(o, x) || !takes_floats(o, cosine) || !takes_floats(o, sine))
        return;
    if (x->rank != 4 || cosine->rank != 2 || !same_shape(cosine, sine) ||
        cosine->shape[0] < x->shape[1]) {
        op_fail(o, PLUMB_E_ARG, "%s: x is [B, S, heads, size], cos and sin are [S, width / 2]",
                o->call->name);
        return;
    }
    cosine = v_narrow(o, cosine, 0, 0, x->shape[1]);
    sine = v_narrow(o, sine, 0, 0, x->shape[1]);
    cosine = cosine ? v_unsqueeze(o, twice(o, cosine, interleave), 1) : NULL;
    sine = sine ? v_unsqueeze(o, twice(o, sine, interleave), 1) : NULL;
    if (cosine && sine)
        op_return(o, turn_first(o, x, cosine, sine, cosine->shape[2], interleave));
}

/* ---- Softmax of scaled scores ---------------------------------------------------------------- */

static void run_upper_triang_softmax(struct op *o)
{
    struct val *x = v_scale(o, arg_tensor(o, "input"), arg_number(o, "scale"));
    if (!takes_floats(o, x))
        return;
    if (x->rank < 2) {
        op_fail(o, PLUMB_E_ARG, "%s: the triangle needs two dimensions", o->call->name);
        return;
    }
    const int64_t shape[2] = {x->shape[x->rank - 2], x->shape[x->rank - 1]};
    struct val *seen = val_new(o, PLUMB_BOOL, 2, shape);
    for (int64_t k = 0; seen && k < seen->count; k++)
        seen->i[k] = k % shape[1] <= k / shape[1];
    x = v_where(o, seen, x, v_number(o, -INFINITY));
    op_return(o, x ? v_softmax(o, x, x->rank - 1) : NULL);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define ONE(name, more)                                                                            \
    name "(Tensor input|x" more ")\n" name "(Tensor out|result, Tensor input|x" more ")"

const struct op_def op_serving[] = {
    {"silu_and_mul", ONE("silu_and_mul", ""), run_silu_and_mul, 0,
     "silu(a) b of the halves a and b"},
    {"mul_and_silu", ONE("mul_and_silu", ""), run_mul_and_silu, 0,
     "a silu(b) of the halves a and b"},
    {"gelu_and_mul", ONE("gelu_and_mul", ""), run_gelu_and_mul, 0,
     "gelu(a) b of the halves a and b"},
    {"gelu_tanh_and_mul", ONE("gelu_tanh_and_mul", ""), run_gelu_tanh_and_mul, 0,
     "gelu(a) b of the halves a and b, by tanh"},
    {"fatrelu_and_mul", ONE("fatrelu_and_mul", ", float threshold"), run_fatrelu_and_mul, 0,
     "a b where a > threshold, else 0, of the halves a and b"},
    {"swigluoai_and_mul", ONE("swigluoai_and_mul", ", float alpha=1.702, float limit=7.0"),
     run_swigluoai, 0, "(up + 1) gate sigmoid(alpha gate) of neighbours gate and up, limited"},
    {"gelu_new gelu_fast", ONE("gelu_new", ""), run_gelu_tanh, OP_ELEMENTWISE, "gelu by tanh"},
    {"gelu_quick quick_gelu", ONE("gelu_quick", ""), run_gelu_quick, OP_ELEMENTWISE,
     "x sigmoid(1.702 x)"},
    {"swiglu", "swiglu(Tensor input|y|x)", run_silu_and_mul, 0, "silu(a) b of the halves a and b"},
    {"bias_swiglu bias_swiglu_impl", "bias_swiglu(Tensor input|y, Tensor? bias)", run_silu_and_mul,
     0, "silu(a) b of the halves a and b of y + bias"},
    {"weighted_swiglu", "weighted_swiglu(Tensor input|y, Tensor weights)", run_silu_and_mul, 0,
     "silu(a) b weights of the halves a and b"},
    {"geglu", "geglu(Tensor input|y)", run_gelu_tanh_and_mul, 0,
     "gelu(a) b of the halves a and b, by tanh"},
    {"bias_geglu", "bias_geglu(Tensor bias, Tensor input|y)", run_gelu_tanh_and_mul, 0,
     "gelu(a) b of the halves a and b of y + bias, by tanh"},
    {"bias_gelu", "bias_gelu(Tensor bias, Tensor input|y)", run_gelu_tanh, OP_ELEMENTWISE,
     "gelu(y + bias) by tanh"},
    {"_C.rms_norm",
     "_C.rms_norm(Tensor out|result, Tensor input, Tensor weight, float "
     "eps|epsilon)",
     run_rms_norm, 0, "x / sqrt(mean(x^2) + eps) * weight"},
    {"fused_add_rms_norm",
     "fused_add_rms_norm(Tensor input|x, Tensor residual, Tensor weight, float eps|epsilon=1e-6)",
     run_fused_add_rms_norm, 0, "rms_norm(input + residual), and input + residual"},
    {"rotary_embedding",
     "rotary_embedding(Tensor positions, Tensor query, Tensor? key, int head_size, Tensor "
     "cos_sin_cache, bool is_neox=True)",
     run_rotary_embedding, 0, "query and key, turned by the angles of their positions"},
    {"apply_rotary_pos_emb",
     "apply_rotary_pos_emb(Tensor q, Tensor k, Tensor cos, Tensor sin, any position_ids=None, int "
     "unsqueeze_dim=1)",
     run_apply_rotary_pos_emb, 0, "cos x + sin (-x2, x1) of q and of k"},
    {"_apply_rotary_pos_emb_bshd",
     "_apply_rotary_pos_emb_bshd(Tensor t, Tensor freqs, bool rotary_interleaved=False, bool "
     "multi_latent_attention=False, float mscale=1.0)",
     run_apply_rotary_angles, 0, "cos(freqs) t + sin(freqs) (-t2, t1)"},
    {"apply_rotary_emb",
     "apply_rotary_emb(Tensor x, Tensor cos, Tensor sin, bool interleaved=False, bool "
     "inplace=False)",
     run_apply_rotary_emb, 0, "cos x + sin (-x2, x1) of the halves, or of neighbours"},
    {"scaled_upper_triang_masked_softmax",
     "scaled_upper_triang_masked_softmax(Tensor input, any scale=1)", run_upper_triang_softmax, 0,
     "softmax(scale x) of what is not above the diagonal"},
    {0},
};
