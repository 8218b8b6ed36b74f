/* The core is computed for blocks of queries of one head at a time; the backward computes the
 * weights of a block once more instead of keeping them. */
#include "exec/op/attention.h"
#include "exec/op/fast.h"

#include "exec/op/matmul.h"

#include <string.h>

struct heads {
    int64_t batch, n, m, s, t, d, e; /* sizes as in attention.h */
    real scale;
    bool causal;
    const struct val *mask;
    int64_t mask_step[4]; /* of B, N, S and T; 0 where the mask is broadcast */
    int64_t rows;         /* queries in a block */
};

/* One block of queries. */
struct block {
    const real *q, *k, *v;
    int64_t mask;         /* where its mask begins */
    int64_t first, count; /* queries */
};

enum { BLOCK_ELEMENTS = 1 << 17, BLOCK_LEAST = 16 };

/* ---- Scores and weights ---------------------------------------------------------------------- */

static void mask_row(const struct heads *h, int64_t at, int64_t query, real *score)
{
    if (h->causal)
        for (int64_t j = query + 1; j < h->t; j++)
            score[j] = -R(INFINITY);
    if (!h->mask)
        return;
    const int64_t step = h->mask_step[3];
    if (h->mask->f)
        for (int64_t j = 0; j < h->t; j++)
            score[j] += h->mask->f[at + j * step];
    else
        for (int64_t j = 0; j < h->t; j++)
            if (!h->mask->i[at + j * step])
                score[j] = -R(INFINITY);
}

/* The largest number, NaN aside, in lanes that the compiler can make a vector of. */
static real row_max(const real *x, int64_t n)
{
    enum { LANES = 8 };
    real lanes[LANES], most = -R(INFINITY);
    int64_t j = 0;
    for (int l = 0; l < LANES; l++)
        lanes[l] = most;
    for (; j + LANES <= n; j += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] = x[j + l] > lanes[l] ? x[j + l] : lanes[l];
    for (int l = 0; l < LANES; l++)
        most = lanes[l] > most ? lanes[l] : most;
    for (; j < n; j++)
        most = x[j] > most ? x[j] : most;
    return most;
}

/* Tensors between operators in a narrow type: a fused kernel of such a type hands weights to its
 * second product before they are divided by their sum, and on the way back its output. */
static bool hands_on(const struct op *o)
{
    const struct plumb_noise *noise = o->call->noise;
    return noise && noise->store != PLUMB_DTYPE_COUNT && noise->stored == PLUMB_STORED_NODES;
}

static void hand_on(const struct op *o, real *x, int64_t n)
{
    for (int64_t j = 0; j < n && hands_on(o); j++)
        x[j] = (real)plumb_round_to(o->call->noise->store, (double)x[j]);
}

/* NaN anywhere makes the sum NaN, and with it the row. A row of nothing but -inf is one of
 * zeros. */
static void softmax_row(struct op *o, int64_t n, real *x, bool back)
{
    const real most = row_max(x, n);
    if (most == -R(INFINITY)) {
        for (int64_t j = 0; j < n; j++)
            x[j] = isnan(x[j]) ? x[j] : 0;
        return;
    }
    for (int64_t j = 0; j < n; j++)
        x[j] = fast_exp(x[j] - most);
    op_between(o, x, n);
    const real sum = op_between_one(o, real_sum(x, n, 1));
    if (!back)
        hand_on(o, x, n);
    for (int64_t j = 0; j < n; j++)
        x[j] /= sum;
}

/* p (count x t) becomes the weights of the block. */
static void weigh(struct op *o, const struct heads *h, const struct block *b, real *p, bool back)
{
    gemm(false, true, b->count, h->t, h->d, h->scale, b->q, h->d, b->k, h->d, 0, p, h->t);
    op_between(o, p, b->count * h->t);
    for (int64_t i = 0; i < b->count; i++) {
        mask_row(h, b->mask + i * h->mask_step[2], b->first + i, p + i * h->t);
        softmax_row(o, h->t, p + i * h->t, back);
    }
    op_between(o, p, b->count * h->t);
}

static struct block block_at(const struct heads *h, const struct val *q, const struct val *k,
                             const struct val *v, int64_t head, int64_t first)
{
    const int64_t batch = head / h->n, n = head % h->n;
    const int64_t shared = batch * h->m + n / (h->n / h->m);
    return (struct block){
        .q = q->f + (head * h->s + first) * h->d,
        .k = k->f + shared * h->t * h->d,
        .v = v->f + shared * h->t * h->e,
        .mask = batch * h->mask_step[0] + n * h->mask_step[1] + first * h->mask_step[2],
        .first = first,
        .count = h->s - first < h->rows ? h->s - first : h->rows,
    };
}

/* The rows' sums of p * g v^T are those of g * y, y the output. Fused kernels take them there, and
 * round otherwise than in g v^T, from which they are subtracted: where one weight is all, nothing
 * but that is left. */
static real dot_of_output(struct op *o, int64_t n, const real *g, const real *y, real *part)
{
    memcpy(part, y, (size_t)n * sizeof *part);
    hand_on(o, part, n);
    for (int64_t j = 0; j < n; j++)
        part[j] *= g[j];
    op_between(o, part, n);
    return real_sum(part, n, 1);
}

/* With p the weights and g the gradient of p v: dv = p^T g, and of the scores p * (g v^T - rows'
 * sums of p * g v^T). */
static void backward(struct op *o, struct val *out)
{
    const struct heads *h = out->saved;
    struct val *q = out->in[0], *k = out->in[1], *v = out->in[2];
    real *dq = val_grad(o, q), *dk = val_grad(o, k), *dv = val_grad(o, v);
    real *p = op_alloc(o, h->rows * h->t + 1, sizeof *p),
         *dp = op_alloc(o, h->rows * h->t + 1, sizeof *dp);
    const struct plumb_noise *noise = o->call->noise;
    const bool by_output = noise && (noise->relative > 0 || hands_on(o));
    real *part = by_output ? op_alloc(o, h->e + 1, sizeof *part) : NULL;
    if (!p || !dp)
        return;
    for (int64_t head = 0; head < h->batch * h->n; head++)
        for (int64_t first = 0; first < h->s; first += h->rows) {
            const struct block b = block_at(h, q, k, v, head, first);
            const real *g = out->grad + (head * h->s + first) * h->e;
            weigh(o, h, &b, p, true);
            memcpy(dp, p, (size_t)(b.count * h->t) * sizeof *dp);
            hand_on(o, dp, b.count * h->t);
            if (dv)
                gemm(true, false, h->t, h->e, b.count, 1, dp, h->t, g, h->e, 1, dv + (b.v - v->f),
                     h->e);
            gemm(false, true, b.count, h->t, h->e, 1, g, h->e, b.v, h->e, 0, dp, h->t);
            op_between(o, dp, b.count * h->t);
            for (int64_t i = 0; i < b.count; i++) {
                const int64_t at = (head * h->s + first + i) * h->e;
                real dot = part ? dot_of_output(o, h->e, out->grad + at, out->f + at, part)
                                : real_dot(p + i * h->t, dp + i * h->t, h->t);
                dot = op_between_one(o, dot);
                for (int64_t j = i * h->t; j < (i + 1) * h->t; j++)
                    dp[j] = p[j] * (dp[j] - dot);
            }
            op_between(o, dp, b.count * h->t);
            hand_on(o, dp, b.count * h->t);
            if (dq)
                gemm(false, false, b.count, h->d, h->t, h->scale, dp, h->t, b.k, h->d, 1,
                     dq + (b.q - q->f), h->d);
            if (dk)
                gemm(true, false, h->t, h->d, b.count, h->scale, dp, h->t, b.q, h->d, 1,
                     dk + (b.k - k->f), h->d);
        }
}

/* ---- The building blocks --------------------------------------------------------------------- */

static bool mask_steps(struct op *o, struct heads *h, const struct val *mask)
{
    const int64_t sizes[4] = {h->batch, h->n, h->s, h->t};
    int64_t step = 1;
    h->mask = mask;
    for (unsigned d = 4; mask && d-- > 0;) {
        const int64_t size = d + mask->rank < 4 ? 1 : mask->shape[d + mask->rank - 4];
        if (mask->rank > 4 || (size != 1 && size != sizes[d]))
            return op_fail(o, PLUMB_E_ARG,
                           "%s: a mask of %lld does not broadcast to scores of %lld", o->call->name,
                           (long long)size, (long long)sizes[d]) != NULL;
        h->mask_step[d] = size == 1 ? 0 : step;
        step *= size;
    }
    return true;
}

static struct heads *read_heads(struct op *o, const struct val *q, const struct val *k,
                                const struct val *v, const struct val *mask)
{
    struct heads *h = op_alloc(o, 1, sizeof *h);
    if (!h)
        return NULL;
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || !q->f || !k->f || !v->f)
        return op_fail(o, PLUMB_E_ARG, "%s: query, key and value must be floats of 4 dimensions",
                       o->call->name);
    *h = (struct heads){.batch = q->shape[0],
                        .n = q->shape[1],
                        .m = k->shape[1],
                        .s = q->shape[2],
                        .t = k->shape[2],
                        .d = q->shape[3],
                        .e = v->shape[3]};
    if (k->shape[0] != h->batch || v->shape[0] != h->batch || v->shape[1] != h->m ||
        v->shape[2] != h->t || k->shape[3] != h->d || (h->m ? h->n % h->m : h->n) != 0)
        return op_fail(o, PLUMB_E_ARG,
                       "%s: query [%lld, %lld, %lld, %lld], key [%lld, %lld, %lld, %lld] and value "
                       "[%lld, %lld, %lld, %lld] do not fit each other",
                       o->call->name, (long long)q->shape[0], (long long)q->shape[1],
                       (long long)q->shape[2], (long long)q->shape[3], (long long)k->shape[0],
                       (long long)k->shape[1], (long long)k->shape[2], (long long)k->shape[3],
                       (long long)v->shape[0], (long long)v->shape[1], (long long)v->shape[2],
                       (long long)v->shape[3]);
    h->rows = h->t ? BLOCK_ELEMENTS / h->t : h->s;
    if (h->rows < BLOCK_LEAST)
        h->rows = BLOCK_LEAST;
    if (h->rows > h->s)
        h->rows = h->s;
    return mask_steps(o, h, mask) ? h : NULL;
}

struct val *v_attention_weights(struct op *o, struct val *q, struct val *k, struct val *mask,
                                double scale, bool causal)
{
    struct val *score = v_scale(o, v_matmul_t(o, q, k), scale);
    if (!score)
        return NULL;
    const unsigned last = score->rank - 1;
    if (causal) {
        const int64_t shape[2] = {score->shape[last - 1], score->shape[last]};
        struct val *seen = val_new(o, PLUMB_BOOL, 2, shape);
        for (int64_t i = 0; seen && i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++)
                seen->i[i * shape[1] + j] = j <= i;
        score = v_where(o, seen, score, v_number(o, -INFINITY));
    }
    if (mask && mask->f)
        score = v_add(o, score, matmul_operand(o, mask, score ? score->dtype : mask->dtype));
    else if (mask)
        score = v_where(o, mask, score, v_number(o, -INFINITY));
    return v_softmax(o, score, last);
}

/* [B, M, T, D] with every head as often as it is shared: [B, n, T, D]. */
static struct val *repeat_heads(struct op *o, struct val *x, int64_t n)
{
    const int64_t *s = x->shape, m = s[1] ? s[1] : 1;
    x = v_unsqueeze(o, x, 2);
    if (!x)
        return NULL;
    x = v_broadcast(o, x, 5, (const int64_t[]){s[0], s[1], n / m, s[2], s[3]});
    return v_reshape(o, x, 4, (const int64_t[]){s[0], n, s[2], s[3]});
}

struct val *v_attention(struct op *o, struct val *q, struct val *k, struct val *v, struct val *mask,
                        double scale, bool causal)
{
    if (!q || !k || !v)
        return NULL;
    struct heads *h = read_heads(o, q, k, v, mask);
    if (!h)
        return NULL;
    if (mask && mask->needs_grad) { /* rare: a learned bias */
        k = repeat_heads(o, k, h->n);
        v = repeat_heads(o, v, h->n);
        return v_matmul(o, v_attention_weights(o, q, k, mask, scale, causal), v);
    }
    h->scale = (real)scale;
    h->causal = causal;
    const int64_t shape[4] = {h->batch, h->n, h->s, h->e};
    struct val *y = val_new(o, matmul_dtype(q, v), 4, shape);
    real *p = op_alloc(o, h->rows * h->t + 1, sizeof *p);
    if (!y || !p)
        return NULL;
    for (int64_t head = 0; head < h->batch * h->n; head++)
        for (int64_t first = 0; first < h->s; first += h->rows) {
            const struct block b = block_at(h, q, k, v, head, first);
            weigh(o, h, &b, p, false);
            gemm(false, false, b.count, h->e, h->t, 1, p, h->t, b.v, h->e, 0,
                 y->f + (head * h->s + first) * h->e, h->e);
        }
    return val_node(o, y, backward, q, k, v, h);
}

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

static bool no_dropout(struct op *o, double p)
{
    return p == 0 || op_fail(o, PLUMB_E_UNSUPPORTED,
                             "%s: with dropout (%g) the result is random and cannot be compared",
                             o->call->name, p) != NULL;
}

static void run_attention(struct op *o)
{
    struct val *xs[3] = {arg_tensor(o, "query"), arg_tensor(o, "key"), arg_tensor(o, "value")};
    struct val *mask = arg_tensor(o, "attn_mask");
    const bool grouped = arg_bool(o, "enable_gqa"), causal = arg_bool(o, "is_causal");
    unsigned rank;
    int64_t lead[OP_RANK];
    if (!xs[0] || !xs[1] || !xs[2] || !no_dropout(o, arg_number(o, "dropout_p")) ||
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
    const double scale =
        arg_given(o, "scale") ? arg_number(o, "scale") : 1 / sqrt((double)(d ? d : 1));
    mask = four_mask(o, mask, rank, lead, s, t);
    struct val *y = v_attention(o, xs[0], xs[1], xs[2], mask, scale, causal);
    if (!y)
        return;
    int64_t shape[OP_RANK];
    memcpy(shape, lead, (rank - 2) * sizeof *shape);
    shape[rank - 2] = s;
    shape[rank - 1] = y->shape[3];
    op_return(o, v_reshape(o, y, rank, shape));
}

const struct op_def op_attention[] = {
    {"scaled_dot_product_attention",
     "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
     "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
     run_attention, 0, "softmax(scale * query @ key^T + mask) @ value; zeros where all is masked"},
    {0},
};
