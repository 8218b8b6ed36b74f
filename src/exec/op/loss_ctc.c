/* ctc_loss: the likelihood of a target over all its alignments with the input, by the recursion
 * over the target with blanks between: l' = blank, y1, blank, y2, ..., blank. */
#include "exec/op/fold.h"
#include "exec/op/loss.h"
#include "exec/op/pullback.h"

struct ctc {
    int64_t steps, batch, classes; /* log_probs is [steps][batch][classes] */
    int64_t blank;
    bool zero_infinity;
    const int64_t *inputs, *lengths, *starts; /* of each sample; where its target begins */
    const int64_t *targets;
    int64_t most; /* the longest target */
};

/* One sample. */
struct alignment {
    const real *logp; /* of step 0; steps are `stride` apart */
    int64_t stride, steps, length, blank;
    const int64_t *target;
};

static real add_logs(real a, real b)
{
    const real top = a > b ? a : b, low = a > b ? b : a;
    return top == -R(INFINITY) ? top : top + log1p(exp(low - top));
}

/* Class s of the target with blanks between. */
static int64_t class_at(const struct alignment *a, int64_t s)
{
    return s % 2 ? a->target[s / 2] : a->blank;
}

static struct alignment alignment_of(const struct ctc *c, const real *logp, int64_t n)
{
    return (struct alignment){.logp = logp + n * c->classes,
                              .stride = c->batch * c->classes,
                              .steps = c->inputs[n],
                              .length = c->lengths[n],
                              .blank = c->blank,
                              .target = c->targets + c->starts[n]};
}

/* The logarithm of all ways to be at place s of l' after step t, in alpha[t][s]; or, backwards, to
 * go on from there to the end. Both count step t itself. */
static void walk(const struct alignment *a, bool backwards, real *alpha)
{
    const int64_t places = 2 * a->length + 1;
    op_terms(a->steps + places); /* logarithms of sums of sums */
    for (int64_t step = 0; step < a->steps; step++) {
        const int64_t t = backwards ? a->steps - 1 - step : step;
        const real *before = alpha + (backwards ? t + 1 : t - 1) * places;
        for (int64_t k = 0; k < places; k++) {
            const int64_t s = backwards ? places - 1 - k : k, back = backwards ? 1 : -1;
            real sum = k < 2 ? 0 : -R(INFINITY);
            if (step > 0) {
                sum = before[s];
                if (k > 0)
                    sum = add_logs(sum, before[s + back]);
                if (k > 1 && class_at(a, s) != class_at(a, s + 2 * back))
                    sum = add_logs(sum, before[s + 2 * back]);
            }
            alpha[t * places + s] = sum + a->logp[t * a->stride + class_at(a, s)];
        }
    }
}

static real likelihood(const struct alignment *a, const real *alpha)
{
    const int64_t places = 2 * a->length + 1;
    if (a->steps == 0)
        return a->length == 0 ? 0 : -R(INFINITY);
    const real *last = alpha + (a->steps - 1) * places;
    return places == 1 ? last[0] : add_logs(last[places - 1], last[places - 2]);
}

/* PyTorch's gradient, exp(log_probs) - the share of alignments that have the class at the step:
 * that of log_softmax's input, which the sum of exp(log_probs) being 1 makes the same behind it. */
static void gradient(const struct alignment *a, real loss, real g, const real *alpha,
                     const real *beta, real *share, int64_t classes, real *to)
{
    const int64_t places = 2 * a->length + 1;
    for (int64_t t = 0; t < a->steps; t++) {
        const real *logp = a->logp + t * a->stride;
        for (int64_t c = 0; c < classes; c++)
            share[c] = -R(INFINITY);
        for (int64_t s = 0; s < places; s++) {
            real *at = &share[class_at(a, s)];
            *at = add_logs(*at, alpha[t * places + s] + beta[t * places + s]);
        }
        for (int64_t c = 0; c < classes; c++)
            to[t * a->stride + c] += g * (exp(logp[c]) - exp(share[c] + loss - logp[c]));
    }
}

static int64_t table_size(const struct ctc *c)
{
    return size_times(c->steps, size_times(c->most, 2) + 1);
}

static void ctc_backward(struct op *o, struct val *out)
{
    const struct ctc *c = out->saved;
    real *dx = val_grad(o, out->in[0]);
    real *alpha = op_alloc(o, table_size(c), sizeof *alpha),
         *beta = op_alloc(o, table_size(c), sizeof *beta),
         *share = op_alloc(o, c->classes, sizeof *share);
    if (!dx || !alpha || !beta || !share)
        return;
    for (int64_t n = 0; n < c->batch; n++) {
        const struct alignment a = alignment_of(c, out->in[0]->f, n);
        walk(&a, false, alpha);
        walk(&a, true, beta);
        const real loss = -likelihood(&a, alpha);
        if (!(c->zero_infinity && loss == R(INFINITY)))
            gradient(&a, loss, out->grad[n], alpha, beta, share, c->classes, dx + n * c->classes);
    }
}

/* Lengths come as a tensor, a list, or one number. */
static const int64_t *read_lengths(struct op *o, const char *name, int64_t batch, int64_t most)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    struct val *given = arg && arg->kind == PLUMB_ARG_TENSOR ? arg_value(o, arg) : NULL;
    const bool list = arg && arg->kind == PLUMB_ARG_LIST;
    const int64_t n = given ? given->count : list ? (int64_t)arg->n_items : 1;
    int64_t *lengths = op_alloc(o, batch, sizeof *lengths);
    if (!lengths || !arg)
        return NULL;
    if (n != batch || (given && !given->i))
        return op_fail(o, PLUMB_E_ARG, "ctc_loss: '%s' holds %lld lengths for a batch of %lld",
                       name, (long long)n, (long long)batch);
    for (int64_t k = 0; k < batch; k++) {
        lengths[k] = given ? given->i[k] : list ? arg->items[k].integer : arg->integer;
        if (lengths[k] < 0 || lengths[k] > most)
            return op_fail(o, PLUMB_E_ARG, "ctc_loss: '%s' of sample %lld is %lld, at most %lld",
                           name, (long long)k, (long long)lengths[k], (long long)most);
    }
    return lengths;
}

/* Targets are rows of a matrix, or one after the other. */
static bool read_targets(struct op *o, struct ctc *c, const struct val *targets)
{
    int64_t *starts = op_alloc(o, c->batch, sizeof *starts), at = 0;
    if (!targets->i || targets->rank > 2 || (targets->rank == 2 && targets->shape[0] != c->batch)) {
        op_fail(o, PLUMB_E_ARG,
                "ctc_loss: targets must be class numbers, one row for each of %lld "
                "samples or all in one",
                (long long)c->batch);
        return false;
    }
    const bool matrix = targets->rank == 2;
    c->lengths =
        read_lengths(o, "target_lengths", c->batch, matrix ? targets->shape[1] : targets->count);
    if (!c->lengths || !starts)
        return false;
    for (int64_t n = 0; n < c->batch; n++) {
        starts[n] = matrix ? n * targets->shape[1] : at;
        at += c->lengths[n];
        if (!matrix && at > targets->count) {
            op_fail(o, PLUMB_E_ARG, "ctc_loss: the targets end within sample %lld", (long long)n);
            return false;
        }
        c->most = c->lengths[n] > c->most ? c->lengths[n] : c->most;
        for (int64_t k = starts[n]; k < starts[n] + c->lengths[n]; k++)
            if (targets->i[k] < 0 || targets->i[k] >= c->classes) {
                op_fail(o, PLUMB_E_ARG, "ctc_loss: target %lld is class %lld of %lld", (long long)k,
                        (long long)targets->i[k], (long long)c->classes);
                return false;
            }
    }
    c->starts = starts;
    c->targets = targets->i;
    return true;
}

static struct val *ctc(struct op *o, struct val *x, struct ctc *c, bool single)
{
    struct val *loss = val_new(o, x->dtype, single ? 0 : 1, &c->batch);
    real *alpha = op_alloc(o, table_size(c), sizeof *alpha);
    if (!loss || !alpha)
        return NULL;
    for (int64_t n = 0; n < c->batch; n++) {
        const struct alignment a = alignment_of(c, x->f, n);
        walk(&a, false, alpha);
        const real value = -likelihood(&a, alpha);
        loss->f[n] = c->zero_infinity && value == R(INFINITY) ? 0 : value;
    }
    return val_node(o, loss, ctc_backward, x, NULL, NULL, c);
}

/* Reads the arguments; NULL (and failed) when they do not fit. */
static struct ctc *read_ctc(struct op *o, const struct val *x, const struct val *targets)
{
    struct ctc *c = op_alloc(o, 1, sizeof *c);
    if (!x || !targets || !c)
        return NULL;
    const bool single = x->rank == 2;
    *c = (struct ctc){.steps = x->rank ? x->shape[0] : 0,
                      .batch = single || x->rank < 2 ? 1 : x->shape[1],
                      .classes = x->rank ? x->shape[x->rank - 1] : 0,
                      .blank = arg_int(o, "blank"),
                      .zero_infinity = arg_bool(o, "zero_infinity")};
    if (!x->f || (x->rank != 3 && !single) || c->blank < 0 || c->blank >= c->classes)
        return op_fail(o, PLUMB_E_ARG,
                       "ctc_loss: log_probs must be floats [steps, batch, classes], and blank %lld "
                       "one of its %lld classes",
                       (long long)c->blank, (long long)c->classes);
    c->inputs = read_lengths(o, "input_lengths", c->batch, c->steps);
    return c->inputs && read_targets(o, c, targets) ? c : NULL;
}

/* The mean is over samples, of the loss by class of the target. */
static void run_ctc(struct op *o)
{
    struct val *x = arg_tensor(o, "log_probs");
    const enum reduction how = loss_reduction(o);
    struct ctc *c = read_ctc(o, x, arg_tensor(o, "targets"));
    struct val *loss = c ? ctc(o, x, c, x->rank == 2) : NULL;
    if (loss && how == REDUCE_MEAN) {
        struct val *by = val_like(o, loss, loss->dtype);
        for (int64_t n = 0; by && n < c->batch; n++)
            by->f[n] = c->lengths[n] > 1 ? (real)c->lengths[n] : 1;
        loss = v_div(o, loss, by);
    }
    op_return(o, loss_reduce(o, loss, how));
}

/* The table of each sample: [batch][steps][places]. PyTorch leaves unset what lies behind a
 * sample's end; here it is minus infinity. */
static struct val *log_alpha(struct op *o, const struct val *x, const struct ctc *c)
{
    const int64_t places = 2 * c->most + 1, shape[3] = {c->batch, c->steps, places};
    struct val *out = val_new(o, x->dtype, 3, shape);
    real *alpha = op_alloc(o, table_size(c), sizeof *alpha);
    for (int64_t n = 0; out && alpha && n < c->batch; n++) {
        const struct alignment a = alignment_of(c, x->f, n);
        const int64_t own = 2 * a.length + 1;
        walk(&a, false, alpha);
        for (int64_t t = 0; t < c->steps; t++)
            for (int64_t s = 0; s < places; s++)
                out->f[(n * c->steps + t) * places + s] =
                    t < a.steps && s < own ? alpha[t * own + s] : -R(INFINITY);
    }
    return out;
}

static void run_aten_ctc(struct op *o)
{
    struct val *x = arg_tensor(o, "log_probs");
    struct ctc *c = read_ctc(o, x, arg_tensor(o, "targets"));
    if (!c)
        return;
    op_return(o, ctc(o, x, c, x->rank == 2));
    op_return(o, log_alpha(o, x, c));
}

static void run_aten_ctc_backward(struct op *o)
{
    struct val *x = arg_tensor(o, "log_probs"), *grad = arg_tensor(o, "grad_output"), *to = NULL;
    struct ctc *c = read_ctc(o, x, arg_tensor(o, "targets"));
    struct pullback p;
    if (!c || !pull_begin(o, &p, 1, &x))
        return;
    struct val *loss = ctc(o, x, c, x->rank == 2);
    if (loss && pull_end(o, &p, 1, &loss, &grad, &to))
        op_return(o, to);
}

#define CTC "Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, "

const struct op_def op_loss_ctc[] = {
    {"ctc_loss", "ctc_loss(" CTC "int blank=0, any reduction='mean', bool zero_infinity=False)",
     run_ctc, 0, "-log of the sum over alignments; gradient as of log_softmax's input"},
    {"_ctc_loss", "_ctc_loss(" CTC "int blank=0, bool zero_infinity=False)", run_aten_ctc, 0,
     "the loss of each sample, and the table of its alignments"},
    {"_ctc_loss_backward",
     "_ctc_loss_backward(Tensor grad_output|grad, " CTC
     "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False)",
     run_aten_ctc_backward, OP_NO_GRAD, NULL},
    {0},
};
