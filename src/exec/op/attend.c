/* The core of attention is computed for blocks of queries of one head at a time; the backward
 * computes the weights of a block once more instead of keeping them. */
#include "exec/op/attention.h"
#include "exec/op/exp_row.h"
#include "exec/op/fast.h"
#include "exec/op/matmul.h"
#include "exec/op/noise.h"

#include <stdlib.h>
#include <string.h>

/* A run over all heads. */
struct heads {
    struct val *q, *k, *v, *mask;
    int64_t batch, n, m, s, t, d, e; /* sizes as in attention.h */
    struct attention how;
    int64_t low, high;    /* query i sees keys i + low to i + high */
    int64_t corner;       /* the key that query 0 stands at */
    int64_t mask_step[4]; /* of B, N, S and T; 0 where the mask is broadcast */
    int64_t slope_step;   /* of B; that of N is 1 */
    int64_t rows;         /* queries in a block */
    real *lse;            /* [B, N, S], or NULL */
    const struct val *given_y, *given_lse;
};

/* One block of queries. */
struct block {
    int64_t batch, n;      /* of which head */
    int64_t first, count;  /* queries */
    int64_t q, k, v, mask; /* where each begins; outputs begin at y */
    int64_t y, row;
};

/* Scores of a block, and how much a score changes with what it was before the softcap. */
struct room {
    real *p, *dp, *slope;
    real *part;    /* of one row of the output */
    real *sum;     /* what the rows of p are still to be divided by; NULL: nothing */
    const real *y; /* the output; NULL: not at hand */
};

enum { BLOCK_ELEMENTS = 1 << 17, BLOCK_LEAST = 16 };

/* ---- Scores and weights ---------------------------------------------------------------------- */

static void cap_scores(struct op *o, const struct heads *h, int64_t n, real *score, real *slope)
{
    const real cap = (real)h->how.softcap;
    for (int64_t j = 0; j < n; j++) {
        const real y = tanh(score[j] / cap);
        score[j] = cap * y;
        slope[j] = 1 - y * y;
    }
    op_between_function(o, score, n);
}

static void mask_row(const struct heads *h, const struct block *b, int64_t i, real *score)
{
    const int64_t query = b->first + i, low = query + h->low, high = query + h->high;
    if (h->how.slopes) {
        const real slope = h->how.slopes->f[b->batch * h->slope_step + b->n];
        for (int64_t j = 0; j < h->t; j++)
            score[j] -= slope * (real)llabs(query + h->corner - j);
    }
    for (int64_t j = 0; j < low && j < h->t; j++)
        score[j] = -R(INFINITY);
    for (int64_t j = high + 1 > 0 ? high + 1 : 0; j < h->t; j++)
        score[j] = -R(INFINITY);
    if (!h->mask)
        return;
    const int64_t at = b->mask + i * h->mask_step[2], step = h->mask_step[3];
    if (h->mask->f)
        for (int64_t j = 0; j < h->t; j++)
            score[j] += h->mask->f[at + j * step];
    else
        for (int64_t j = 0; j < h->t; j++)
            if (!h->mask->i[at + j * step])
                score[j] = -R(INFINITY);
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

/* Returns the logarithm of the sum. NaN anywhere makes the sum NaN, and with it the row. A row of
 * nothing but -inf is one of zeros. left: gets the sum, and x is not divided by it; may be NULL. */
static real softmax_row(struct op *o, const struct heads *h, real *x, bool back, real *left)
{
    const real most = row_max(x, h->t);
    if (most == -R(INFINITY)) {
        if (left)
            *left = 1;
        for (int64_t j = 0; j < h->t; j++)
            x[j] = isnan(x[j]) ? x[j] : 0;
        return (real)h->how.unseen_lse;
    }
    exp_row(x, h->t, most, x);
    op_between(o, x, h->t);
    real sum = op_between_one(o, real_sum(x, h->t, 1));
    if (plumb_dtype_info(h->q->dtype)->precision < 16)
        sum = noise_rough(o, sum);
    if (!back)
        hand_on(o, x, h->t);
    for (int64_t j = 0; j < h->t && !left; j++)
        x[j] /= sum;
    if (left)
        *left = sum;
    return h->lse ? most + log(sum) : 0;
}

/* By the lse that the forward gave, which is 0 or +inf where there is no key. */
static void given_row(const struct heads *h, real lse, real *x)
{
    for (int64_t j = 0; j < h->t; j++)
        x[j] = x[j] == -R(INFINITY) ? 0 : fast_exp(x[j] - lse);
}

/* p (count x t) becomes the weights of the block, but for room->sum. */
static void weigh(struct op *o, const struct heads *h, const struct block *b,
                  const struct room *room)
{
    gemm(false, true, b->count, h->t, h->d, (real)h->how.scale, h->q->f + b->q, h->d,
         h->k->f + b->k, h->d, 0, room->p, h->t);
    op_between(o, room->p, b->count * h->t);
    if (room->slope)
        cap_scores(o, h, b->count * h->t, room->p, room->slope);
    for (int64_t i = 0; i < b->count; i++) {
        real *row = room->p + i * h->t;
        mask_row(h, b, i, row);
        if (h->given_lse) {
            const int64_t per_head = h->given_lse->count / (h->batch * h->n);
            given_row(h, h->given_lse->f[(b->batch * h->n + b->n) * per_head + b->first + i], row);
            continue;
        }
        const real lse = softmax_row(o, h, row, room->dp != NULL, room->sum ? &room->sum[i] : NULL);
        if (h->lse)
            h->lse[b->row + i] = lse;
    }
    op_between(o, room->p, b->count * h->t);
}

/* To the next block; false after the last. Starts from a block of zeros. */
static bool next_block(const struct heads *h, struct block *b)
{
    int64_t head = b->batch * h->n + b->n, first = b->first + b->count;
    if (b->count && first >= h->s) {
        head++;
        first = 0;
    }
    if (head >= h->batch * h->n || first >= h->s)
        return false;
    const int64_t batch = head / h->n, n = head % h->n;
    const int64_t shared = batch * h->m + n / (h->n / h->m), row = head * h->s + first;
    *b = (struct block){
        .batch = batch,
        .n = n,
        .first = first,
        .count = h->s - first < h->rows ? h->s - first : h->rows,
        .q = row * h->d,
        .k = shared * h->t * h->d,
        .v = shared * h->t * h->e,
        .mask = batch * h->mask_step[0] + n * h->mask_step[1] + first * h->mask_step[2],
        .y = row * h->e,
        .row = row,
    };
    return true;
}

static bool make_room(struct op *o, const struct heads *h, bool back, struct room *room)
{
    const int64_t n = h->rows * h->t + 1;
    *room = (struct room){.p = op_room(o, n, sizeof(real))};
    if (back) {
        room->dp = op_room(o, n, sizeof(real));
        room->part = op_alloc(o, h->e + 1, sizeof(real));
    }
    if (h->how.softcap != 0)
        room->slope = op_alloc(o, n, sizeof(real));
    /* Dividing the output instead of the weights is less work. In float, sums of values that are
     * large themselves could overflow before. */
    if (!back && sizeof(real) > sizeof(float) && !o->call->noise)
        room->sum = op_alloc(o, h->rows + 1, sizeof(real));
    return !o->failed;
}

/* ---- Backward -------------------------------------------------------------------------------- */

/* Where gradients go; NULL: not wanted. */
struct sinks {
    real *q, *k, *v, *mask;
};

static void add_to_mask(const struct heads *h, const struct block *b, const real *dp, real *to)
{
    for (int64_t i = 0; i < b->count; i++)
        for (int64_t j = 0; j < h->t; j++)
            to[b->mask + i * h->mask_step[2] + j * h->mask_step[3]] += dp[i * h->t + j];
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

static bool takes_output(const struct op *o)
{
    return o->call->noise && (o->call->noise->relative > 0 || hands_on(o));
}

/* With p the weights and g the gradient of p v: of the scores p * (g v^T - rows' sums of
 * p * g v^T), which are sums of g * y as well. */
static void score_gradients(struct op *o, const struct heads *h, const struct block *b,
                            const real *g, const struct room *room)
{
    real *p = room->p, *dp = room->dp;
    gemm(false, true, b->count, h->t, h->e, 1, g, h->e, h->v->f + b->v, h->e, 0, dp, h->t);
    op_between(o, dp, b->count * h->t);
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t at = i * h->e;
        const real dot = h->given_y ? real_dot(g + at, h->given_y->f + b->y + at, h->e)
                         : room->y && takes_output(o)
                             ? dot_of_output(o, h->e, g + at, room->y + b->y + at, room->part)
                             : real_dot(p + i * h->t, dp + i * h->t, h->t);
        const real kept = op_between_one(o, dot);
        for (int64_t j = i * h->t; j < (i + 1) * h->t; j++)
            dp[j] = p[j] * (dp[j] - kept);
    }
    op_between(o, dp, b->count * h->t);
}

/* y: the output; NULL where it is not at hand. */
static void add_gradients(struct op *o, const struct heads *h, const real *grad, const real *y,
                          struct sinks to)
{
    const real scale = (real)h->how.scale;
    struct room room;
    if (!make_room(o, h, true, &room))
        return;
    room.y = y;
    if (to.mask)
        op_terms(h->mask->count ? h->batch * h->n * h->s * h->t / h->mask->count : 1);
    for (struct block b = {0}; next_block(h, &b);) {
        const real *g = grad + b.y;
        real *dp = room.dp;
        weigh(o, h, &b, &room);
        memcpy(dp, room.p, (size_t)(b.count * h->t) * sizeof *dp);
        hand_on(o, dp, b.count * h->t);
        if (to.v)
            gemm(true, false, h->t, h->e, b.count, 1, dp, h->t, g, h->e, 1, to.v + b.v, h->e);
        score_gradients(o, h, &b, g, &room);
        if (to.mask)
            add_to_mask(h, &b, dp, to.mask);
        for (int64_t j = 0; room.slope && j < b.count * h->t; j++)
            dp[j] *= room.slope[j];
        hand_on(o, dp, b.count * h->t);
        if (to.q)
            gemm(false, false, b.count, h->d, h->t, scale, dp, h->t, h->k->f + b.k, h->d, 1,
                 to.q + b.q, h->d);
        if (to.k)
            gemm(true, false, h->t, h->d, b.count, scale, dp, h->t, h->q->f + b.q, h->d, 1,
                 to.k + b.k, h->d);
    }
}

static void backward(struct op *o, struct val *out)
{
    const struct heads *h = out->saved;
    add_gradients(o, h, out->grad, out->f,
                  (struct sinks){val_grad(o, h->q), val_grad(o, h->k), val_grad(o, h->v),
                                 h->mask && h->mask->f ? val_grad(o, h->mask) : NULL});
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static bool mask_steps(struct op *o, struct heads *h)
{
    const int64_t sizes[4] = {h->batch, h->n, h->s, h->t};
    const struct val *mask = h->mask;
    int64_t step = 1;
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

static bool read_slopes(struct op *o, struct heads *h)
{
    const struct val *slopes = h->how.slopes;
    if (!slopes)
        return true;
    h->slope_step = slopes->rank == 2 ? h->n : 0;
    if (!slopes->f || slopes->rank > 2 ||
        slopes->count != (slopes->rank == 2 ? h->batch * h->n : h->n))
        op_fail(o, PLUMB_E_ARG, "%s: %lld slopes for %lld heads", o->call->name,
                (long long)slopes->count, (long long)h->n);
    return !o->failed;
}

/* Which keys a query sees, whatever the mask says. */
static void read_band(struct heads *h)
{
    const struct attention *how = &h->how;
    const int64_t all = INT64_C(1) << 40;
    h->corner = how->from_end ? h->t - h->s : 0;
    h->low = how->window && how->left >= 0 && how->left < all ? h->corner - how->left : -all;
    h->high = how->window && how->right >= 0 && how->right < all ? h->corner + how->right : all;
    if (how->causal && h->high > h->corner)
        h->high = h->corner;
}

static struct heads *read_heads(struct op *o, struct val *const *in, const struct attention *how)
{
    const struct val *q = in[0], *k = in[1], *v = in[2];
    struct heads *h = op_alloc(o, 1, sizeof *h);
    if (!h)
        return NULL;
    if (q->rank != 4 || k->rank != 4 || v->rank != 4 || !q->f || !k->f || !v->f)
        return op_fail(o, PLUMB_E_ARG, "%s: query, key and value must be floats of 4 dimensions",
                       o->call->name);
    *h = (struct heads){.q = in[0],
                        .k = in[1],
                        .v = in[2],
                        .mask = in[3],
                        .batch = q->shape[0],
                        .n = q->shape[1],
                        .m = k->shape[1],
                        .s = q->shape[2],
                        .t = k->shape[2],
                        .d = q->shape[3],
                        .e = v->shape[3],
                        .how = *how};
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
    read_band(h);
    return mask_steps(o, h) && read_slopes(o, h) ? h : NULL;
}

/* ---- The building blocks --------------------------------------------------------------------- */

struct val *v_attention(struct op *o, struct val *q, struct val *k, struct val *v, struct val *mask,
                        const struct attention *how, struct val **lse)
{
    struct val *const in[4] = {q, k, v, mask};
    struct heads *h = q && k && v ? read_heads(o, in, how) : NULL;
    struct room room;
    if (!h)
        return NULL;
    const int64_t shape[4] = {h->batch, h->n, h->s, h->e};
    struct val *y = val_room(o, matmul_dtype(q, v), 4, shape);
    if (lse)
        *lse = val_new(o, q->dtype == PLUMB_F64 ? PLUMB_F64 : PLUMB_F32, 3, shape);
    if (!make_room(o, h, false, &room) || !y)
        return NULL;
    h->lse = lse ? (*lse)->f : NULL;
    for (struct block b = {0}; next_block(h, &b);) {
        weigh(o, h, &b, &room);
        gemm(false, false, b.count, h->e, h->t, 1, room.p, h->t, v->f + b.v, h->e, 0, y->f + b.y,
             h->e);
        for (int64_t i = 0; room.sum && i < b.count; i++)
            for (int64_t j = 0; j < h->e; j++)
                y->f[b.y + i * h->e + j] /= room.sum[i];
    }
    h->lse = NULL;
    /* A node names three inputs; the fourth takes the place of the query if it needs a gradient. */
    return val_node(o, y, backward, mask && mask->needs_grad ? mask : q, k, v, h);
}

bool v_attention_given(struct op *o, struct val *const *in, const struct attention *how,
                       const struct val *y, const struct val *lse, const struct val *grad,
                       unsigned want, struct val **to)
{
    struct heads *h = in[0] && in[1] && in[2] ? read_heads(o, in, how) : NULL;
    if (!h || !y || !lse || !grad)
        return false;
    const int64_t rows = h->batch * h->n, count = rows * h->s * h->e;
    if (!y->f || !lse->f || !grad->f || y->count != count || grad->count != count ||
        (rows ? lse->count % rows || lse->count / rows < h->s : 0)) {
        op_fail(o, PLUMB_E_ARG,
                "%s: the output, its gradient and logsumexp are not those of such a call",
                o->call->name);
        return false;
    }
    real *sinks[4] = {0};
    for (unsigned k = 0; k < 4; k++) {
        const bool wanted = want >> k & 1 && in[k] && in[k]->f;
        to[k] = wanted ? val_like(o, in[k], in[k]->dtype) : NULL;
        sinks[k] = to[k] ? to[k]->f : NULL;
    }
    if (o->failed)
        return false;
    h->given_y = y;
    h->given_lse = lse;
    add_gradients(o, h, grad->f, NULL, (struct sinks){sinks[0], sinks[1], sinks[2], sinks[3]});
    return !o->failed;
}

struct val *v_attention_weights(struct op *o, struct val *q, struct val *k, struct val *mask,
                                double scale, bool causal, bool safe)
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
    return safe ? v_safe_softmax(o, score, last) : v_softmax(o, score, last);
}

bool attention_no_dropout(struct op *o, double p)
{
    return p == 0 || op_fail(o, PLUMB_E_UNSUPPORTED,
                             "%s: with dropout (%g) the result is random and cannot be compared",
                             o->call->name, p) != NULL;
}

double attention_scale(struct op *o, int64_t d)
{
    return arg_given(o, "scale") ? arg_number(o, "scale") : 1 / sqrt((double)(d ? d : 1));
}
