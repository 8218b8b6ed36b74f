/* npu_fusion_attention: softmax(mask(scale * (query key^T + pse))) value, by blocks of queries,
 * with the maximum and the sum of each row of scores.
 *
 * Whatever the layout, the rows of a head lie one after the other: [B, N, S, D], or [N, T, D]
 * with sequences of different lengths in T. */
#include "exec/op/fused.h"
#include "exec/op/matmul.h"

#include <string.h>

/* Blocked keys beside a mask: query i sees keys i + low to i + high. */
struct band {
    int64_t low, high;
};

struct sequence {
    int64_t q, k;  /* its first row in a head of query and output, of key and value */
    int64_t batch; /* which part of mask and pse is its own */
    int64_t s, t;  /* queries, keys */
    struct band band;
};

/* A tensor that broadcasts to the scores [B, N, S, T]. */
struct cover {
    struct val *val; /* or NULL */
    int64_t step[4]; /* 0 where it is broadcast */
};

struct fusion {
    int64_t n, m, d, e;     /* heads of query, of key; head sizes of query and key, of value */
    int64_t q_head, k_head; /* rows from one head to the next */
    struct sequence *sequences;
    int64_t n_sequences;
    int64_t most_s, most_t;
    real scale;
    bool pse_first; /* scale * (q k^T + pse), else scale * q k^T + pse */
    struct cover mask, pse;
    int64_t rows; /* queries in a block */
    struct val *q, *k, *v, *max, *sum;
};

/* Queries [first, first + count) of one head of one sequence. */
struct block {
    const struct sequence *sequence;
    int64_t head, first, count;
    int64_t q, k; /* rows where queries (and outputs) and keys (and values) begin */
};

enum { BLOCK_ELEMENTS = 1 << 17, BLOCK_LEAST = 16, COMPRESSED = 2048, REPEATED = 8 };

/* ---- One block ------------------------------------------------------------------------------- */

static int64_t cover_at(const struct cover *c, const struct block *b, int64_t i)
{
    return b->sequence->batch * c->step[0] + b->head * c->step[1] + (b->first + i) * c->step[2];
}

/* Row i of scores, from q k^T to what softmax takes. */
static void finish_scores(const struct fusion *f, const struct block *b, int64_t i, real *score)
{
    const struct sequence *s = b->sequence;
    const int64_t query = b->first + i;
    if (f->pse.val) {
        const real *pse = f->pse.val->f + cover_at(&f->pse, b, i);
        const int64_t step = f->pse.step[3];
        const real factor = f->pse_first ? f->scale : 1;
        for (int64_t j = 0; j < s->t; j++)
            score[j] += factor * pse[j * step];
    }
    if (f->mask.val) {
        const int64_t *mask = f->mask.val->i + cover_at(&f->mask, b, i);
        const int64_t step = f->mask.step[3];
        for (int64_t j = 0; j < s->t; j++)
            if (mask[j * step])
                score[j] = -R(INFINITY);
    }
    for (int64_t j = 0; j < s->t && j < query + s->band.low; j++)
        score[j] = -R(INFINITY);
    for (int64_t j = query + s->band.high + 1 > 0 ? query + s->band.high + 1 : 0; j < s->t; j++)
        score[j] = -R(INFINITY);
}

/* x becomes weights; a row without any key gets zeros. */
static void softmax_row(int64_t n, real *x, real *max_out, real *sum_out)
{
    real max = -R(INFINITY), sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (x[j] > max || isnan(x[j]))
            max = x[j];
    if (max == -R(INFINITY)) {
        memset(x, 0, (size_t)n * sizeof *x);
    } else {
        for (int64_t j = 0; j < n; j++)
            x[j] = exp(x[j] - max);
        sum = real_sum(x, n, 1);
        for (int64_t j = 0; j < n; j++)
            x[j] /= sum;
    }
    *max_out = max;
    *sum_out = sum;
}

static void weigh(const struct fusion *f, const struct block *b, const real *q, const real *k,
                  real *p)
{
    const int64_t t = b->sequence->t;
    gemm(false, true, b->count, t, f->d, f->scale, q + b->q * f->d, f->d, k + b->k * f->d, f->d, 0,
         p, t);
    for (int64_t i = 0; i < b->count; i++) {
        finish_scores(f, b, i, p + i * t);
        softmax_row(t, p + i * t, &f->max->f[b->q + i], &f->sum->f[b->q + i]);
    }
}

/* To the next block; false after the last. Starts from a block of zeros. */
static bool next_block(const struct fusion *f, struct block *b)
{
    if (!b->sequence)
        *b = (struct block){.sequence = f->sequences};
    else
        b->first += b->count;
    while (b->sequence < f->sequences + f->n_sequences) {
        const struct sequence *s = b->sequence;
        if (b->head < f->n && b->first < s->s) {
            b->count = s->s - b->first < f->rows ? s->s - b->first : f->rows;
            b->q = s->q + b->head * f->q_head + b->first;
            b->k = s->k + b->head / (f->n / f->m) * f->k_head;
            return true;
        }
        b->first = 0;
        if (++b->head >= f->n) {
            b->head = 0;
            b->sequence++;
        }
    }
    return false;
}

/* ---- Backward -------------------------------------------------------------------------------- */

static void add_to_pse(const struct fusion *f, const struct block *b, const real *dp, real *dpse)
{
    const int64_t t = b->sequence->t, step = f->pse.step[3];
    const real factor = f->pse_first ? f->scale : 1;
    for (int64_t i = 0; i < b->count; i++) {
        real *to = dpse + cover_at(&f->pse, b, i);
        for (int64_t j = 0; j < t; j++)
            to[j * step] += factor * dp[i * t + j];
    }
}

/* With p the weights and g the output's gradient: dv = p^T g, and of the scores p * (g v^T - row
 * sums of p * g v^T), which goes on to q, k and pse. */
static void backward(struct op *o, struct val *out)
{
    const struct fusion *f = out->saved;
    const struct val *q = f->q, *k = f->k, *v = f->v;
    real *dq = val_grad(o, f->q), *dk = val_grad(o, f->k), *dv = val_grad(o, f->v);
    real *dpse = f->pse.val ? val_grad(o, f->pse.val) : NULL;
    real *p = op_alloc(o, f->rows * f->most_t + 1, sizeof *p),
         *dp = op_alloc(o, f->rows * f->most_t + 1, sizeof *dp);
    if (!p || !dp)
        return;
    for (struct block b = {0}; next_block(f, &b);) {
        const int64_t t = b.sequence->t;
        const real *g = out->grad + b.q * f->e;
        weigh(f, &b, q->f, k->f, p);
        if (dv)
            gemm(true, false, t, f->e, b.count, 1, p, t, g, f->e, 1, dv + b.k * f->e, f->e);
        gemm(false, true, b.count, t, f->e, 1, g, f->e, v->f + b.k * f->e, f->e, 0, dp, t);
        for (int64_t i = 0; i < b.count; i++) {
            const real dot = real_dot(p + i * t, dp + i * t, t);
            for (int64_t j = i * t; j < (i + 1) * t; j++)
                dp[j] = p[j] * (dp[j] - dot);
        }
        if (dpse)
            add_to_pse(f, &b, dp, dpse);
        if (dq)
            gemm(false, false, b.count, f->d, t, f->scale, dp, t, k->f + b.k * f->d, f->d, 1,
                 dq + b.q * f->d, f->d);
        if (dk)
            gemm(true, false, t, f->d, b.count, f->scale, dp, t, q->f + b.q * f->d, f->d, 1,
                 dk + b.k * f->d, f->d);
    }
}

/* ---- Layouts --------------------------------------------------------------------------------- */

struct layout {
    const char *name;
    unsigned rank;
    bool split;          /* the last dimension holds the heads */
    unsigned to_rows[4]; /* from [.., N, D] to head after head */
    unsigned back[4];
};

static const struct layout layouts[] = {
    {"BSH", 3, true, {0, 2, 1, 3}, {0, 2, 1, 3}},   {"SBH", 3, true, {1, 2, 0, 3}, {2, 0, 1, 3}},
    {"BSND", 4, false, {0, 2, 1, 3}, {0, 2, 1, 3}}, {"BNSD", 4, false, {0, 1, 2, 3}, {0, 1, 2, 3}},
    {"TND", 3, false, {1, 0, 2}, {1, 0, 2}},
};

static const struct layout *find_layout(struct op *o)
{
    const char *name = arg_text(o, "input_layout");
    for (size_t k = 0; name && k < sizeof layouts / sizeof *layouts; k++)
        if (strcmp(name, layouts[k].name) == 0)
            return &layouts[k];
    return op_fail(o, PLUMB_E_ARG, "%s: input_layout '%s' is none of BSH, SBH, BSND, BNSD and TND",
                   o->call->name, name ? name : "");
}

/* x by heads, of which the layouts that end in H do not tell how many. */
static struct val *by_heads(struct op *o, struct val *x, const struct layout *layout, int64_t heads)
{
    if (!x)
        return NULL;
    if (x->rank != layout->rank || !x->f)
        return op_fail(o, PLUMB_E_ARG,
                       "%s: query, key and value must be floats of %u dimensions in layout %s",
                       o->call->name, layout->rank, layout->name);
    if (layout->split) {
        if (heads < 1 || x->shape[2] % heads)
            return op_fail(o, PLUMB_E_ARG, "%s: %lld heads do not share %lld numbers evenly",
                           o->call->name, (long long)heads, (long long)x->shape[2]);
        const int64_t shape[4] = {x->shape[0], x->shape[1], heads, x->shape[2] / heads};
        x = v_reshape(o, x, 4, shape);
    }
    return v_permute(o, x, layout->to_rows);
}

static struct val *back_to_layout(struct op *o, struct val *y, const struct layout *layout)
{
    y = v_permute(o, y, layout->back);
    if (!y || !layout->split)
        return y;
    const int64_t shape[3] = {y->shape[0], y->shape[1], y->shape[2] * y->shape[3]};
    return v_reshape(o, y, 3, shape);
}

/* ---- Masks ----------------------------------------------------------------------------------- */

static bool cover_set(struct op *o, struct cover *c, const char *name, struct val *x,
                      const int64_t *sizes)
{
    int64_t step = 1;
    c->val = x;
    for (unsigned d = 4; d-- > 0;) {
        const int64_t size = d + x->rank < 4 ? 1 : x->shape[d + x->rank - 4];
        if (x->rank > 4 || (size != 1 && size != sizes[d])) {
            op_fail(o, PLUMB_E_ARG,
                    "%s: '%s' does not broadcast to scores [%lld, %lld, %lld, %lld]", o->call->name,
                    name, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                    (long long)sizes[3]);
            return false;
        }
        c->step[d] = size == 1 ? 0 : step;
        step *= size;
    }
    return true;
}

/* The mask of 2048 x 2048 that stands for one of any size: 1 above the diagonal. */
static bool is_compressed(const struct val *mask)
{
    if (mask->count != (int64_t)COMPRESSED * COMPRESSED || mask->rank < 2 ||
        mask->shape[mask->rank - 1] != COMPRESSED || mask->shape[mask->rank - 2] != COMPRESSED)
        return false;
    for (int64_t i = 0; i < COMPRESSED; i++)
        for (int64_t j = 0; j < COMPRESSED; j++)
            if ((mask->i[i * COMPRESSED + j] != 0) != (j > i))
                return false;
    return true;
}

static int64_t bounded(int64_t v)
{
    const int64_t most = INT64_C(1) << 40;
    return v > most ? most : v < -most ? -most : v;
}

/* What a sparse mode lets query 0 see of s queries and t keys. Diagonals count from the upper left
 * corner in modes 0 and 2, from the lower right one in modes 3 and 4; but mode 4 of the origin's
 * benchmark, which `legacy` asks for, counts from the upper left too. */
static struct band band_of(struct op *o, int64_t mode, int64_t s, int64_t t)
{
    const int64_t low = -bounded(arg_int(o, "pre_tockens")),
                  high = bounded(arg_int(o, "next_tockens")), all = bounded(INT64_MAX);
    const int64_t corner = mode == 4 && o->call->benchmark_forms ? 0 : t - s;
    switch (mode) {
    case 0:
        return (struct band){low, high};
    case 2:
        return (struct band){-all, 0};
    case 3:
        return (struct band){-all, t - s};
    case 4:
        return (struct band){corner + low, corner + high};
    default:
        return (struct band){-all, all};
    }
}

/* A mask that is given counts as it is, unless it is the compressed one. Without one the operator
 * sees everything, whatever the mode; the origin's benchmark makes the mode's own mask then. */
static bool set_masks(struct op *o, struct fusion *f, const int64_t *sizes, bool varied)
{
    const int64_t mode = arg_int(o, "sparse_mode"), pse_type = arg_int(o, "pse_type");
    struct val *mask = arg_tensor(o, "atten_mask"), *pse = arg_tensor(o, "pse");
    if (mode < 0 || mode > 4) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: sparse_mode %lld; modes 0 to 4 are known",
                o->call->name, (long long)mode);
        return false;
    }
    if (pse && (pse_type < 0 || pse_type > 1 || varied || !pse->f)) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: pse is known as floats in layouts other than TND and with pse_type 0 and 1",
                o->call->name);
        return false;
    }
    mask = mask && mask->f ? v_compare(o, CMP_NE, mask, v_number(o, 0)) : mask;
    const bool compressed = mask && mode >= 2 && is_compressed(mask);
    const bool banded = compressed || (!mask && o->call->benchmark_forms);
    for (int64_t b = 0; b < f->n_sequences; b++)
        f->sequences[b].band = band_of(o, banded ? mode : 1, f->sequences[b].s, f->sequences[b].t);
    f->pse_first = pse_type == 1;
    return !o->failed &&
           (!mask || compressed || cover_set(o, &f->mask, "atten_mask", mask, sizes)) &&
           (!pse || cover_set(o, &f->pse, "pse", pse, sizes));
}

/* ---- Sequences ------------------------------------------------------------------------------- */

/* Sums of lengths so far; zeros at the end stand for sequences that are left out. */
static int64_t read_end(const double *ends, size_t b, int64_t before, int64_t total)
{
    const double end = ends[b];
    if (end == 0)
        return before;
    return end >= (double)before && end <= (double)total ? (int64_t)end : -1;
}

static bool varied_sequences(struct op *o, struct fusion *f)
{
    size_t nq, nk;
    const double *q = arg_numbers(o, "actual_seq_qlen", &nq),
                 *k = arg_numbers(o, "actual_seq_kvlen", &nk);
    int64_t q_at = 0, k_at = 0;
    if (nq == 0 || nq != nk) {
        op_fail(o, PLUMB_E_ARG,
                "%s: layout TND needs actual_seq_qlen and actual_seq_kvlen of equal length, not "
                "%zu and %zu",
                o->call->name, nq, nk);
        return false;
    }
    f->sequences = op_alloc(o, (int64_t)nq, sizeof *f->sequences);
    for (size_t b = 0; f->sequences && b < nq; b++) {
        const int64_t q_end = read_end(q, b, q_at, f->q_head),
                      k_end = read_end(k, b, k_at, f->k_head);
        if (q_end < 0 || k_end < 0) {
            op_fail(o, PLUMB_E_ARG,
                    "%s: sequence %zu ends at %g and %g, which is before its start "
                    "or behind the end of query or key",
                    o->call->name, b, q[b], k[b]);
            return false;
        }
        f->sequences[f->n_sequences++] =
            (struct sequence){.q = q_at, .k = k_at, .s = q_end - q_at, .t = k_end - k_at};
        if (q_end - q_at > f->most_s)
            f->most_s = q_end - q_at;
        if (k_end - k_at > f->most_t)
            f->most_t = k_end - k_at;
        q_at = q_end;
        k_at = k_end;
    }
    return !o->failed;
}

static bool equal_sequences(struct op *o, struct fusion *f, int64_t batch)
{
    if (arg_given(o, "actual_seq_qlen") || arg_given(o, "actual_seq_kvlen")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: lengths of sequences are known in layout TND only",
                o->call->name);
        return false;
    }
    f->most_s = f->q_head;
    f->most_t = f->k_head;
    f->sequences = op_alloc(o, batch, sizeof *f->sequences);
    for (int64_t b = 0; f->sequences && b < batch; b++)
        f->sequences[f->n_sequences++] = (struct sequence){.q = b * f->n * f->q_head,
                                                           .k = b * f->m * f->k_head,
                                                           .batch = b,
                                                           .s = f->q_head,
                                                           .t = f->k_head};
    return !o->failed;
}

static bool read_sizes(struct op *o, struct fusion *f, const struct val *q, const struct val *k,
                       const struct val *v)
{
    const unsigned lead = q->rank - 3;
    const int64_t *qs = q->shape + lead, *ks = k->shape + lead, *vs = v->shape + lead;
    f->n = qs[0];
    f->m = ks[0];
    f->d = qs[2];
    f->e = vs[2];
    f->q_head = qs[1];
    f->k_head = ks[1];
    const bool fits = f->n == arg_int(o, "head_num") && f->m > 0 && f->n % f->m == 0 &&
                      vs[0] == f->m && vs[1] == f->k_head && ks[2] == f->d &&
                      (!lead || (q->shape[0] == k->shape[0] && q->shape[0] == v->shape[0]));
    if (!fits)
        op_fail(o, PLUMB_E_ARG,
                "%s: query of %lld heads of %lld, key of %lld of %lld and value of %lld of %lld do "
                "not fit each other, head_num %lld, or their batches and lengths differ",
                o->call->name, (long long)f->n, (long long)f->d, (long long)f->m, (long long)ks[2],
                (long long)vs[0], (long long)f->e, (long long)arg_int(o, "head_num"));
    return fits;
}

/* ---- The operator ---------------------------------------------------------------------------- */

static struct val *v_fusion(struct op *o, struct fusion *f)
{
    struct val *q = f->q, *k = f->k, *v = f->v;
    int64_t shape[4];
    memcpy(shape, q->shape, q->rank * sizeof *shape);
    f->max = val_new(o, PLUMB_F32, q->rank - 1, shape);
    f->sum = val_new(o, PLUMB_F32, q->rank - 1, shape);
    shape[q->rank - 1] = f->e;
    struct val *y = val_new(o, matmul_dtype(q, v), q->rank, shape);
    f->rows = f->most_t ? BLOCK_ELEMENTS / f->most_t : f->most_s;
    f->rows = f->rows < BLOCK_LEAST ? BLOCK_LEAST : f->rows;
    f->rows = f->rows > f->most_s ? f->most_s : f->rows;
    real *p = op_alloc(o, f->rows * f->most_t + 1, sizeof *p);
    if (!y || !p || !f->max || !f->sum)
        return NULL;
    for (struct block b = {0}; next_block(f, &b);) {
        weigh(f, &b, q->f, k->f, p);
        gemm(false, false, b.count, f->e, b.sequence->t, 1, p, b.sequence->t, v->f + b.k * f->e,
             f->e, 0, y->f + b.q * f->e, f->e);
    }
    /* A node names three inputs; the fourth takes the place of the query if it needs a gradient. */
    struct val *first = f->pse.val && f->pse.val->needs_grad ? f->pse.val : q;
    return val_node(o, y, backward, first, k, v, f);
}

/* The statistic of each row eight times; [B, N, S, 8], or [T, N, 8]. */
static struct val *repeated(struct op *o, struct val *x, bool varied)
{
    if (!x)
        return NULL;
    int64_t shape[4];
    if (varied)
        x = v_transpose(o, x, 0, 1);
    x = x ? v_unsqueeze(o, x, x->rank) : NULL;
    if (!x)
        return NULL;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 1] = REPEATED;
    return v_broadcast(o, x, x->rank, shape);
}

void fused_attention(struct op *o)
{
    const struct layout *layout = find_layout(o);
    struct val *q = arg_tensor(o, "query"), *k = arg_tensor(o, "key"), *v = arg_tensor(o, "value");
    struct fusion *f = op_alloc(o, 1, sizeof *f);
    const int64_t heads = arg_int(o, "head_num");
    if (!layout || !q || !k || !v || !f)
        return;
    if (arg_number(o, "keep_prob") != 1) {
        op_fail(o, PLUMB_E_UNSUPPORTED,
                "%s: with keep_prob %g the result is random and cannot be compared", o->call->name,
                arg_number(o, "keep_prob"));
        return;
    }
    if (arg_given(o, "padding_mask") || arg_given(o, "prefix")) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: padding_mask and prefix are not known", o->call->name);
        return;
    }
    q = by_heads(o, q, layout, heads);
    if (!q)
        return;
    const bool varied = layout->rank == 3 && !layout->split;
    const int64_t size = q->shape[q->rank - 1];
    /* Keys have the heads of queries or fewer; how many, their size tells. */
    const int64_t fewer = layout->split && size && k->rank ? k->shape[k->rank - 1] / size : heads;
    k = by_heads(o, k, layout, fewer);
    v = by_heads(o, v, layout, fewer);
    if (!k || !v || !read_sizes(o, f, q, k, v))
        return;
    const enum plumb_dtype dtype = q->dtype;
    f->scale = (real)(arg_given(o, "scale")      ? arg_number(o, "scale")
                      : o->call->benchmark_forms ? 1 / sqrt((double)(size ? size : 1))
                                                 : 1.0);
    if (!(varied ? varied_sequences(o, f) : equal_sequences(o, f, q->shape[0])))
        return;
    const int64_t sizes[4] = {varied ? 1 : q->shape[0], f->n, f->most_s, f->most_t};
    if (!set_masks(o, f, sizes, varied))
        return;
    f->q = q;
    f->k = k;
    f->v = v;
    struct val *y = v_fusion(o, f);
    op_return(o, v_cast(o, back_to_layout(o, y, layout), dtype));
    op_return(o, repeated(o, f->max, varied));
    op_return(o, repeated(o, f->sum, varied));
}

#define FUSION                                                                                     \
    "float? scale=None, float keep_prob=1.0, int pre_tockens|pre_tokens=2147483647, int "          \
    "next_tockens|next_tokens=2147483647, int inner_precise=0, int[]? prefix=None, float[]? "      \
    "actual_seq_qlen=None, float[]? actual_seq_kvlen=None, int sparse_mode=0, bool "               \
    "gen_mask_parallel=True, bool sync=False, int pse_type=1, any q_start_idx=None, any "          \
    "kv_start_idx=None, str softmax_layout='')"

const struct op_def op_fused_attention[] = {
    {"npu_fusion_attention npu_fusion_attention_v2 fusion_attention_v2.npu_fusion_attention",
     "npu_fusion_attention(Tensor query, Tensor key, Tensor value, int head_num, str input_layout, "
     "Tensor? pse=None, Tensor? padding_mask=None, Tensor? atten_mask=None, " FUSION,
     fused_attention, 0,
     "softmax(mask(scale * (query key^T + pse))) value, and the maximum and sum of each row"},
    {0},
};
