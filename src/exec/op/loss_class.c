/* Losses over classes: input is [N, C, ...] (or [C]), the target names a class for each place. */
#include "exec/op/elem.h"
#include "exec/op/loss.h"

#include <string.h>

/* The target's places in the input: x is [outer][classes][inner], target [outer][inner]. */
struct classes {
    int64_t outer, n, inner;
    int64_t ignore;
    const struct val *target;
    const struct val *weight; /* [classes], or NULL */
};

static bool find_classes(struct op *o, const struct val *x, const struct val *target,
                         struct classes *c)
{
    if (!x || !target)
        return false;
    if (x->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "%s: the input has no dimension of classes", o->call->name);
        return false;
    }
    const unsigned dim = x->rank == 1 ? 0 : 1;
    const struct span3 s = val_span(x, dim);
    *c = (struct classes){s.outer, s.length, s.inner, -100, target, NULL};
    const int64_t places = s.outer * s.inner;
    if (!target->i || target->count != places) {
        op_fail(o, PLUMB_E_ARG, "%s: the target has %lld elements instead of %lld class numbers",
                o->call->name, (long long)target->count, (long long)places);
        return false;
    }
    return true;
}

static bool take_weight(struct op *o, struct classes *c, const struct val *weight)
{
    c->weight = weight;
    if (weight && (weight->count != c->n || !weight->f)) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld weights for %lld classes", o->call->name,
                (long long)weight->count, (long long)c->n);
        return false;
    }
    return true;
}

/* Where x holds the value of the class that place k names; -1 for an ignored one. */
static int64_t *class_map(struct op *o, const struct classes *c)
{
    int64_t *map = op_alloc(o, c->target->count, sizeof *map);
    for (int64_t k = 0; map && k < c->target->count; k++) {
        const int64_t class = c->target->i[k];
        map[k] = -1;
        if (class == c->ignore)
            continue;
        if (class < 0 || class >= c->n)
            return op_fail(o, PLUMB_E_ARG, "%s: target %lld is class %lld of %lld", o->call->name,
                           (long long)k, (long long)class, (long long)c->n);
        map[k] = (k / c->inner * c->n + class) * c->inner + k % c->inner;
    }
    return map;
}

/* The weight of each place: that of its class, 0 where it is ignored. */
static struct val *place_weights(struct op *o, const struct classes *c, enum plumb_dtype dtype)
{
    struct val *w = val_like(o, c->target, dtype);
    for (int64_t k = 0; w && k < w->count; k++) {
        const int64_t class = c->target->i[k];
        w->f[k] = class == c->ignore ? 0 : c->weight ? c->weight->f[class] : 1;
    }
    return w;
}

/* -w[y] x[y]; the mean is over the weights */
static struct val *nll(struct op *o, struct val *x, const struct classes *c, enum reduction how)
{
    int64_t *map = class_map(o, c);
    struct val *w = map ? place_weights(o, c, x->dtype) : NULL;
    struct val *picked = w ? v_map(o, x, c->target->rank, c->target->shape, map) : NULL;
    struct val *loss = v_neg(o, v_mul(o, picked, w));
    if (how != REDUCE_MEAN)
        return loss_reduce(o, loss, how);
    /* A gradient by itself is told the sum of the weights that the forward found. */
    struct val *total = arg_tensor(o, "total_weight");
    return v_div(o, v_sum(o, loss, 0, false), total ? total : v_sum(o, w, 0, false));
}

static void run_nll(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *target = arg_tensor(o, "target");
    struct classes c;
    if (!find_classes(o, x, target, &c) || !take_weight(o, &c, arg_tensor(o, "weight")))
        return;
    c.ignore = arg_int(o, "ignore_index");
    const enum reduction how = loss_reduction(o);
    x = v_float(o, x);
    op_return(o, x ? nll(o, x, &c, how) : NULL);
    if (!x || o->failed || !strstr(o->call->name, "_forward"))
        return;
    struct val *total = v_sum(o, place_weights(o, &c, x->dtype), 0, false);
    op_return(o, how == REDUCE_NONE ? v_full(o, x->dtype, 0, NULL, 0) : total);
}

/* The weights of the classes, shaped to be multiplied with [N, C, ...]. */
static struct val *class_weights(struct op *o, const struct val *x, struct val *weight)
{
    int64_t shape[OP_RANK];
    for (unsigned d = 0; d < x->rank; d++)
        shape[d] = d == (x->rank == 1 ? 0 : 1) ? weight->count : 1;
    return v_reshape(o, weight, x->rank, shape);
}

/* Targets that are probabilities: -sum over classes of t w log p. */
static struct val *soft_targets(struct op *o, struct val *logp, struct val *target,
                                struct val *weight, double smoothing, enum reduction how)
{
    const unsigned dim = logp->rank == 1 ? 0 : 1;
    const double classes = (double)logp->shape[dim];
    if (smoothing > 0)
        target = v_offset(o, v_scale(o, target, 1 - smoothing), smoothing / classes);
    struct val *terms = v_mul(o, logp, target);
    if (weight)
        terms = v_mul(o, terms, class_weights(o, logp, weight));
    if (how == REDUCE_NONE)
        return v_neg(o, v_sum(o, terms, UINT64_C(1) << dim, false));
    struct val *sum = v_neg(o, v_sum(o, terms, 0, false));
    return how == REDUCE_SUM ? sum : v_scale(o, sum, classes / (double)logp->count);
}

/* The share of the loss that smoothing spreads over all classes: -sum over classes of w log p. */
static struct val *spread(struct op *o, struct val *logp, struct val *weight,
                          const struct classes *c, enum reduction how)
{
    const unsigned dim = logp->rank == 1 ? 0 : 1;
    struct val *terms = weight ? v_mul(o, logp, class_weights(o, logp, weight)) : logp;
    struct val *loss = v_neg(o, v_sum(o, terms, UINT64_C(1) << dim, false));
    const struct classes unweighted = {c->outer, c->n, c->inner, c->ignore, c->target, NULL};
    struct val *counted = place_weights(o, &unweighted, logp->dtype);
    if (!loss || !counted)
        return NULL;
    counted = v_reshape(o, counted, loss->rank, loss->shape);
    /* Chosen, not multiplied: without any place that counts the gradient is 0 and not 0 * inf. */
    struct val *zero = v_number(o, 0);
    loss = v_where(o, v_compare(o, CMP_NE, counted, zero), loss, zero);
    if (how != REDUCE_MEAN)
        return loss_reduce(o, loss, how);
    struct val *total = weight ? place_weights(o, c, logp->dtype) : counted;
    return v_div(o, v_sum(o, loss, 0, false), v_sum(o, total, 0, false));
}

struct val *loss_cross_entropy(struct op *o, struct val *logp)
{
    struct val *target = arg_tensor(o, "target"), *weight = arg_tensor(o, "weight");
    const double smoothing = arg_number(o, "label_smoothing");
    const enum reduction how = loss_reduction(o);
    if (!logp || !target)
        return NULL;
    if (!(smoothing >= 0 && smoothing <= 1))
        return op_fail(o, PLUMB_E_ARG, "cross_entropy: label_smoothing is %g, not within 0 and 1",
                       smoothing);
    if (target->f && same_shape(logp, target)) {
        const int64_t classes = logp->shape[logp->rank == 1 ? 0 : 1];
        if (weight && weight->count != classes)
            return op_fail(o, PLUMB_E_ARG, "cross_entropy: %lld weights for %lld classes",
                           (long long)weight->count, (long long)classes);
        return soft_targets(o, logp, target, weight, smoothing, how);
    }
    struct classes c;
    if (!find_classes(o, logp, target, &c) || !take_weight(o, &c, weight))
        return NULL;
    c.ignore = arg_int(o, "ignore_index");
    struct val *loss = nll(o, logp, &c, how);
    if (smoothing == 0)
        return loss;
    return v_add(o, v_scale(o, loss, 1 - smoothing),
                 v_scale(o, spread(o, logp, weight, &c, how), smoothing / (double)c.n));
}

static void run_cross_entropy(struct op *o)
{
    struct val *x = v_float(o, arg_tensor(o, "input"));
    if (x && x->rank == 0)
        op_fail(o, PLUMB_E_ARG, "cross_entropy: the input has no dimension of classes");
    if (x && !o->failed)
        op_return(o, loss_cross_entropy(o, v_log_softmax(o, x, x->rank == 1 ? 0 : 1)));
}

/* ---- Margins over classes -------------------------------------------------------------------- */

struct margin {
    int64_t rows, n;
    int power;
    real margin;
    const int64_t *target; /* [rows] */
    const real *weight;    /* [n], or NULL */
};

static real margin_of(const struct margin *m, const real *x, int64_t row, int64_t j)
{
    return j == m->target[row] ? 0 : m->margin - x[m->target[row]] + x[j];
}

static void multi_margin_backward(struct op *o, struct val *out)
{
    const struct margin *m = out->saved;
    real *dx = val_grad(o, out->in[0]);
    op_terms(m->n);
    for (int64_t row = 0; dx && row < m->rows; row++) {
        const real *x = out->in[0]->f + row * m->n;
        real *to = dx + row * m->n;
        const real w = m->weight ? m->weight[m->target[row]] : 1;
        real own = 0;
        for (int64_t j = 0; j < m->n; j++) {
            const real z = margin_of(m, x, row, j);
            if (z <= 0)
                continue;
            const real g = out->grad[row] * w * (m->power == 1 ? 1 : 2 * z) / (real)m->n;
            to[j] += g;
            own += g;
        }
        to[m->target[row]] -= own;
    }
}

/* sum over j != y of w[y] max(0, margin - x[y] + x[j])^p / C */
static void run_multi_margin(struct op *o)
{
    struct val *x = v_float(o, arg_tensor(o, "input")), *target = arg_tensor(o, "target");
    struct val *weight = arg_tensor(o, "weight");
    struct margin *m = op_alloc(o, 1, sizeof *m);
    if (!x || !target || !m)
        return;
    const int64_t p = arg_int(o, "p");
    const int64_t n = x->rank ? x->shape[x->rank - 1] : 1;
    const int64_t rows = n ? x->count / n : 0;
    if (x->rank > 2 || !target->i || target->count != rows || (p != 1 && p != 2) ||
        (weight && weight->count != n)) {
        op_fail(o, PLUMB_E_ARG,
                "multi_margin_loss: shapes of input, target and weight do not fit, "
                "or p is neither 1 nor 2");
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        if (target->i[r] < 0 || target->i[r] >= n) {
            op_fail(o, PLUMB_E_ARG, "multi_margin_loss: target %lld is class %lld of %lld",
                    (long long)r, (long long)target->i[r], (long long)n);
            return;
        }
    *m = (struct margin){
        rows, n, (int)p, R(arg_number(o, "margin")), target->i, weight ? weight->f : NULL};
    struct val *loss = val_new(o, x->dtype, target->rank, target->shape);
    op_terms(n);
    for (int64_t r = 0; loss && r < rows; r++) {
        real sum = 0;
        for (int64_t j = 0; j < n; j++) {
            const real z = fmax(margin_of(m, x->f + r * n, r, j), R(0));
            sum += p == 1 ? z : z * z;
        }
        loss->f[r] = (m->weight ? m->weight[target->i[r]] : 1) * sum / (real)n;
    }
    loss = val_node(o, loss, multi_margin_backward, x, NULL, NULL, m);
    op_return(o, loss_reduce(o, loss, loss_reduction(o)));
}

/* The target's classes of a row end at the first negative number. */
static int64_t target_length(const int64_t *target, int64_t n)
{
    int64_t length = 0;
    while (length < n && target[length] >= 0)
        length++;
    return length;
}

struct multilabel {
    int64_t rows, n;
    const int64_t *target; /* [rows][n] */
    const int64_t *named;  /* [rows][n]: 1 where the class is in the target */
};

static void multilabel_backward(struct op *o, struct val *out)
{
    const struct multilabel *m = out->saved;
    real *dx = val_grad(o, out->in[0]);
    op_terms(m->n);
    for (int64_t r = 0; dx && r < m->rows; r++) {
        const real *x = out->in[0]->f + r * m->n;
        const int64_t *target = m->target + r * m->n, *named = m->named + r * m->n;
        const int64_t length = target_length(target, m->n);
        const real g = out->grad[r] / (real)m->n;
        for (int64_t k = 0; k < length; k++)
            for (int64_t j = 0; j < m->n; j++)
                if (!named[j] && 1 - x[target[k]] + x[j] > 0) {
                    dx[r * m->n + j] += g;
                    dx[r * m->n + target[k]] -= g;
                }
    }
}

/* sum over named y and other j of max(0, 1 - x[y] + x[j]) / C */
static void run_multilabel_margin(struct op *o)
{
    struct val *x = v_float(o, arg_tensor(o, "input")), *target = arg_tensor(o, "target");
    struct multilabel *m = op_alloc(o, 1, sizeof *m);
    if (!x || !target || !m)
        return;
    const int64_t n = x->rank ? x->shape[x->rank - 1] : 1, rows = n ? x->count / n : 0;
    int64_t *named = op_alloc(o, x->count, sizeof *named);
    if (!named)
        return;
    if (x->rank > 2 || !target->i || target->count != x->count) {
        op_fail(o, PLUMB_E_ARG, "multilabel_margin_loss: input and target differ in shape");
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < target_length(target->i + r * n, n); k++) {
            const int64_t class = target->i[r * n + k];
            if (class >= n) {
                op_fail(o, PLUMB_E_ARG, "multilabel_margin_loss: class %lld of %lld",
                        (long long)class, (long long)n);
                return;
            }
            named[r * n + class] = 1;
        }
    *m = (struct multilabel){rows, n, target->i, named};
    struct val *loss = val_new(o, x->dtype, x->rank == 2 ? 1 : 0, x->shape);
    op_terms(n);
    for (int64_t r = 0; loss && r < rows; r++) {
        const int64_t *y = target->i + r * n, length = target_length(y, n);
        real sum = 0;
        for (int64_t k = 0; k < length; k++)
            for (int64_t j = 0; j < n; j++)
                if (!named[r * n + j])
                    sum += fmax(1 - x->f[r * n + y[k]] + x->f[r * n + j], R(0));
        loss->f[r] = sum / (real)n;
    }
    loss = val_node(o, loss, multilabel_backward, x, NULL, NULL, m);
    op_return(o, loss_reduce(o, loss, loss_reduction(o)));
    if (!strstr(o->call->name, "_forward"))
        return;
    struct val *is_target = val_like(o, target, x->dtype);
    for (int64_t k = 0; is_target && k < x->count; k++)
        is_target->f[k] = (real)named[k];
    op_return(o, is_target);
}

/* the mean over classes of -(t log s(x) + (1-t) log s(-x)) */
static void run_multilabel_soft_margin(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *t = arg_tensor(o, "target");
    struct val *yes = v_mul(o, t, v_logsigmoid(o, x));
    struct val *no = v_mul(o, v_offset(o, v_neg(o, t), 1), v_logsigmoid(o, v_neg(o, x)));
    struct val *loss = v_neg(o, v_add(o, yes, no));
    if (arg_given(o, "weight"))
        loss = v_mul(o, loss, arg_tensor(o, "weight"));
    if (!loss || loss->rank == 0) {
        op_fail(o, PLUMB_E_ARG, "multilabel_soft_margin_loss: a dimension of classes is needed");
        return;
    }
    loss = v_mean(o, loss, UINT64_C(1) << (loss->rank - 1), false);
    op_return(o, loss_reduce(o, loss, loss_reduction(o)));
}

/* ---- Gradients as operators ------------------------------------------------------------------ */

static const char *const only_input[] = {"input", NULL};

static void run_nll_backward(struct op *o)
{
    elem_pullback(o, run_nll, only_input);
}

static void run_multi_margin_backward(struct op *o)
{
    elem_pullback(o, run_multi_margin, only_input);
}

static void run_multilabel_margin_backward(struct op *o)
{
    elem_pullback(o, run_multilabel_margin, only_input);
}

#define BACK "(Tensor grad_output, Tensor input|self, Tensor target, "

/* ---- The table ------------------------------------------------------------------------------- */

#define OLD "bool? size_average=None, bool? reduce=None, any reduction='mean'"

const struct op_def op_loss_class[] = {
    {"cross_entropy cross_entropy_loss",
     "Functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? "
     "size_average=None, int ignore_index=-100, bool? reduce=None, any reduction='mean', number "
     "label_smoothing=0.0)\n"
     "cross_entropy_loss(Tensor input|self, Tensor target, Tensor? weight=None, any "
     "reduction='mean', int ignore_index=-100, number label_smoothing=0.0)",
     run_cross_entropy, 0, "-w[y] log softmax(x)[y]"},
    {"nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward",
     "Functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? "
     "size_average=None, int ignore_index=-100, bool? reduce=None, any reduction='mean')\n"
     "nll_loss(Tensor input|self, Tensor target, Tensor? weight=None, any reduction='mean', int "
     "ignore_index=-100)",
     run_nll, 0, "-w[y] x[y]"},
    {"multi_margin_loss",
     "Functional.multi_margin_loss(Tensor input, Tensor target, int p=1, number margin=1.0, "
     "Tensor? weight=None, " OLD ")\n"
     "multi_margin_loss(Tensor input|self, Tensor target, int p=1, number margin=1.0, Tensor? "
     "weight=None, any reduction='mean')",
     run_multi_margin, 0, "sum over j != y of w[y] max(0, margin - x[y] + x[j])^p / C"},
    {"multilabel_margin_loss multilabel_margin_loss_forward",
     "Functional.multilabel_margin_loss(Tensor input, Tensor target, " OLD ")\n"
     "multilabel_margin_loss(Tensor input|self, Tensor target, any reduction='mean')",
     run_multilabel_margin, 0, "sum over named y and other j of max(0, 1 - x[y] + x[j]) / C"},
    {"multilabel_soft_margin_loss",
     "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, " OLD ")",
     run_multilabel_soft_margin, 0, "mean over classes of -(t log s(x) + (1-t) log s(-x))"},
    {"nll_loss_backward nll_loss2d_backward",
     "nll_loss_backward" BACK "Tensor? weight, int reduction, int ignore_index, Tensor? "
     "total_weight=None)",
     run_nll_backward, OP_NO_GRAD, NULL},
    {"multi_margin_loss_backward",
     "multi_margin_loss_backward" BACK "int p, number margin, Tensor? weight=None, int "
     "reduction=1)",
     run_multi_margin_backward, OP_NO_GRAD, NULL},
    {"multilabel_margin_loss_backward",
     "multilabel_margin_loss_backward" BACK "int reduction, Tensor? is_target=None)",
     run_multilabel_margin_backward, OP_NO_GRAD, NULL},
    {0},
};
