/* A row is read, normalised and written while it is in the cache. */
#include "exec/op/norm.h"
#include "exec/op/rows.h"
#include "exec/op/sum.h"

#include <string.h>

struct work {
    struct op *o;
    struct norm norm;
    const real *weight, *bias;
    int64_t run;                    /* elements that share a weight */
    real *a, *b;                    /* a row each */
    real *weight_sum, *weight_lost; /* of each weight's gradient over the rows: see sum.h */
    real *bias_sum, *bias_lost;
};

/* What the mean, which is rounded, leaves of the mean of the row. */
static real rest_of_mean(const struct work *w, const real *away, struct tally sum, real mean,
                         int64_t n)
{
    if (w->o->call->noise)
        return 0;
#if OP_REAL == 128
    (void)sum, (void)mean;
    return real_sum(away, n, 1) / (real)n;
#else
    (void)away;
    const real product = mean * (real)n, error = fma(mean, (real)n, -product);
    const real rest = (((sum.sum - product) - error) + sum.lost) / (real)n;
    return isfinite(rest) ? rest : 0;
#endif
}

/* Two passes; what the mean was off by is put right afterwards. Leaves x - mean in w->a. */
static void row_statistics(const struct work *w, const struct row *row)
{
    const struct norm *norm = &w->norm;
    const int64_t n = row->n;
    const real *x = row->in[0];
    real *restrict away = w->a;
    if (norm->given || !norm->centred) {
        const real mean = norm->given && norm->centred ? norm->mean[row->at] : 0;
        for (int64_t k = 0; k < n; k++)
            away[k] = x[k] - mean;
    } else {
        op_terms(n);
        const struct tally sum = tally_of(x, n, 1);
        const real mean = op_between_one(w->o, tally_value(sum.sum, sum.lost) / (real)n);
        for (int64_t k = 0; OP_REAL == 128 && k < n; k++)
            away[k] = x[k] - mean;
        const real off = rest_of_mean(w, away, sum, mean, n);
        for (int64_t k = 0; k < n; k++)
            away[k] = (x[k] - mean) - off;
        norm->mean[row->at] = mean + off;
    }
    op_between(w->o, away, n);
    if (!norm->given)
        norm->rstd[row->at] = op_between_one(
            w->o, 1 / sqrt(op_between_one(w->o, real_dot(away, away, n) / (real)n) + norm->eps));
}

/* y = away rstd weight + bias, one for each element, in steps that a device may round. */
static void scale_in_steps(const struct work *w, int64_t n, real rstd, int64_t base, real *y)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = w->a[k] * rstd;
    op_between(w->o, y, n);
    for (int64_t k = 0; w->weight && k < n; k++)
        y[k] *= w->weight[base + k];
    if (w->weight && w->bias)
        op_between(w->o, y, n);
    for (int64_t k = 0; w->bias && k < n; k++)
        y[k] += w->bias[base + k];
}

/* The same at once. */
static void scale_row(const real *restrict away, int64_t n, real rstd, const real *restrict weight,
                      const real *restrict bias, real *restrict y)
{
    if (weight && bias)
        for (int64_t k = 0; k < n; k++)
            y[k] = away[k] * rstd * weight[k] + bias[k];
    else if (weight)
        for (int64_t k = 0; k < n; k++)
            y[k] = away[k] * rstd * weight[k];
    else if (bias)
        for (int64_t k = 0; k < n; k++)
            y[k] = away[k] * rstd + bias[k];
    else
        for (int64_t k = 0; k < n; k++)
            y[k] = away[k] * rstd;
}

static void forward_row(const struct row *row, void *context)
{
    const struct work *w = context;
    const struct norm_layout *layout = &w->norm.layout;
    real *y = row->out[0];
    row_statistics(w, row);
    const real rstd = w->norm.rstd[row->at];
    const int64_t base = row->at % layout->period * layout->per_row;
    if (w->run == 1 && w->o->call->noise)
        scale_in_steps(w, row->n, rstd, base, y);
    else if (w->run == 1)
        scale_row(w->a, row->n, rstd, w->weight ? w->weight + base : NULL,
                  w->bias ? w->bias + base : NULL, y);
    for (int64_t j = 0; w->run != 1 && j < layout->per_row; j++) {
        const real weight = w->weight ? w->weight[base + j] : 1;
        const real bias = w->bias ? w->bias[base + j] : 0;
        for (int64_t k = j * w->run; k < (j + 1) * w->run; k++)
            y[k] = w->a[k] * rstd * weight + bias;
    }
}

static void tallies_add(real *restrict sum, real *restrict lost, const real *x, const real *factor,
                        int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        const real v = factor ? x[k] * factor[k] : x[k];
        sum_add(&sum[k], &lost[k], v);
    }
}

/* What a device may keep of the sums so far. */
static void tallies_keep(struct op *o, real *sum, real *lost, int64_t n)
{
    if (!o->call->noise || o->call->noise->store == PLUMB_DTYPE_COUNT)
        return;
    for (int64_t k = 0; k < n; k++) {
        sum[k] = tally_value(sum[k], lost[k]);
        lost[k] = 0;
    }
    op_accumulated(o, sum, n);
}

static void weight_gradients(const struct work *w, const real *g, const real *normed, int64_t base,
                             int64_t n)
{
    if (w->run == 1) {
        if (w->weight_sum)
            tallies_add(w->weight_sum + base, w->weight_lost + base, g, normed, n);
        if (w->bias_sum)
            tallies_add(w->bias_sum + base, w->bias_lost + base, g, NULL, n);
        return;
    }
    for (int64_t j = 0; j < w->norm.layout.per_row; j++) {
        if (w->weight_sum) {
            real v = real_dot(g + j * w->run, normed + j * w->run, w->run);
            tallies_add(w->weight_sum + base + j, w->weight_lost + base + j, &v, NULL, 1);
        }
        if (w->bias_sum) {
            real v = real_sum(g + j * w->run, w->run, 1);
            tallies_add(w->bias_sum + base + j, w->bias_lost + base + j, &v, NULL, 1);
        }
    }
}

/* With n = (x - mean) rstd and h = g weight: gx = rstd (h - mean(h) - n mean(h n)). */
static void backward_row(const struct row *row, void *context)
{
    const struct work *w = context;
    const struct norm *norm = &w->norm;
    const int64_t n = row->n, base = row->at % norm->layout.period * norm->layout.per_row;
    const real *x = row->in[0], *g = row->in[1];
    const real mean = norm->centred ? norm->mean[row->at] : 0, rstd = norm->rstd[row->at];
    for (int64_t k = 0; k < n; k++)
        w->a[k] = (x[k] - mean) * rstd;
    op_between(w->o, w->a, n);
    weight_gradients(w, g, w->a, base, n);
    if (w->weight_sum)
        tallies_keep(w->o, w->weight_sum + base, w->weight_lost + base, norm->layout.per_row);
    if (w->bias_sum)
        tallies_keep(w->o, w->bias_sum + base, w->bias_lost + base, norm->layout.per_row);
    if (!row->out[0])
        return;
    if (!w->weight)
        for (int64_t k = 0; k < n; k++)
            w->b[k] = g[k];
    else if (w->run == 1)
        for (int64_t k = 0; k < n; k++)
            w->b[k] = g[k] * w->weight[base + k];
    else
        for (int64_t j = 0; j < norm->layout.per_row; j++)
            for (int64_t k = j * w->run; k < (j + 1) * w->run; k++)
                w->b[k] = g[k] * w->weight[base + j];
    op_between(w->o, w->b, n);
    real level = 0, slope = 0;
    if (!norm->given) {
        level = norm->centred ? op_between_one(w->o, real_sum(w->b, n, 1) / (real)n) : 0;
        slope = op_between_one(w->o, real_dot(w->b, w->a, n) / (real)n);
    }
    if (row->fresh)
        memset(row->out[0], 0, (size_t)n * sizeof(real));
    for (int64_t k = 0; k < n; k++)
        row->out[0][k] += rstd * (w->b[k] - level - w->a[k] * slope);
}

static bool work_begin(struct op *o, struct work *w, const struct norm *norm)
{
    const struct norm_layout *layout = &norm->layout;
    const int64_t n = layout->batch * layout->place;
    w->norm = *norm;
    w->run = layout->per_row > 0 ? n / layout->per_row : 1;
    w->a = op_room(o, n, sizeof(real));
    w->b = op_room(o, n, sizeof(real));
    return !o->failed;
}

bool norm_forward(struct op *o, const struct norm *norm, struct val *x, const real *weight,
                  const real *bias, real *y)
{
    struct work w = {.o = o, .weight = weight, .bias = bias};
    const struct norm_layout *l = &norm->layout;
    return work_begin(o, &w, norm) &&
           each_channel(o, l->batch, l->rows, l->place,
                        &(struct row){.x = x, .out = {y}, .fresh = true}, forward_row, &w);
}

bool norm_gradient(struct op *o, const struct norm *norm, struct val *x, const real *weight,
                   const real *grad, struct norm_grads to)
{
    struct work w = {.o = o, .weight = weight};
    const struct norm_layout *l = &norm->layout;
    const int64_t weights = l->period * l->per_row;
    if (!work_begin(o, &w, norm))
        return false;
    if (to.weight) {
        w.weight_sum = op_alloc(o, weights, sizeof(real));
        w.weight_lost = op_alloc(o, weights, sizeof(real));
    }
    if (to.bias) {
        w.bias_sum = op_alloc(o, weights, sizeof(real));
        w.bias_lost = op_alloc(o, weights, sizeof(real));
    }
    if (to.weight || to.bias)
        op_terms(l->period ? l->rows / l->period * w.run : 1);
    if (!each_channel(o, l->batch, l->rows, l->place,
                      &(struct row){.x = x, .in = {NULL, grad}, .out = {to.x}, .fresh = to.fresh_x},
                      backward_row, &w))
        return false;
    for (int64_t k = 0; to.weight && k < weights; k++)
        to.weight[k] += tally_value(w.weight_sum[k], w.weight_lost[k]);
    for (int64_t k = 0; to.bias && k < weights; k++)
        to.bias[k] += tally_value(w.bias_sum[k], w.bias_lost[k]);
    return true;
}

static void norm_back(struct op *o, struct val *out)
{
    struct val *x = out->in[0], *weight = out->in[1], *bias = out->in[2];
    struct norm_grads to = {.weight = val_grad(o, weight), .bias = val_grad(o, bias)};
    to.x = val_grad_room(o, x, &to.fresh_x);
    norm_gradient(o, out->saved, x, weight ? weight->f : NULL, out->grad, to);
}

struct val *v_norm_rows(struct op *o, struct norm *norm, struct val *x, struct val *weight,
                        struct val *bias)
{
    struct norm *saved = op_alloc(o, 1, sizeof *saved);
    struct val *out = x ? val_room_like(o, x, x->dtype) : NULL;
    if (!saved || !out)
        return NULL;
    if (!norm->mean)
        norm->mean = op_alloc(o, norm->layout.rows, sizeof(real));
    if (!norm->rstd)
        norm->rstd = op_alloc(o, norm->layout.rows, sizeof(real));
    *saved = *norm;
    if (o->failed ||
        !norm_forward(o, norm, x, weight ? weight->f : NULL, bias ? bias->f : NULL, out->f))
        return NULL;
    return val_node(o, out, norm_back, x, weight, bias, saved);
}
