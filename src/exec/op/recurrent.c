/* Recurrent layers and their cells: lstm, gru, rnn_tanh, rnn_relu.
 *
 * Layers take [steps, batch, features] (or batch first), or sequences of different lengths packed
 * into rows, longest first, with the number of rows of each step in batch_sizes. */
#include "exec/op/matmul.h"

#include <string.h>

enum kind { RNN_TANH, RNN_RELU, LSTM, GRU };

/* The weights of one direction of one layer; biases may be NULL. */
struct weights {
    struct val *in, *hidden, *in_bias, *hidden_bias, *projection;
};

struct state {
    struct val *h, *c; /* c: LSTM only */
};

static enum kind kind_of(const char *name)
{
    return strstr(name, "lstm")   ? LSTM
           : strstr(name, "gru")  ? GRU
           : strstr(name, "relu") ? RNN_RELU
                                  : RNN_TANH;
}

/* ---- One step -------------------------------------------------------------------------------- */

static struct val *affine(struct op *o, struct val *x, struct val *weight, struct val *bias)
{
    struct val *y = x && weight ? v_matmul_t(o, x, weight) : NULL;
    return y && bias ? v_add(o, y, bias) : y;
}

/* Part k of the gates, which lie side by side in the last dimension. */
static struct val *gate(struct op *o, struct val *gates, int64_t k, int64_t size)
{
    return gates ? v_narrow(o, gates, gates->rank - 1, k * size, size) : NULL;
}

/* i, f, g, o: c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c') */
static void step_lstm(struct op *o, struct val *gates, int64_t size, struct state *s)
{
    struct val *kept = v_mul(o, v_sigmoid(o, gate(o, gates, 1, size)), s->c);
    struct val *added =
        v_mul(o, v_sigmoid(o, gate(o, gates, 0, size)), v_tanh(o, gate(o, gates, 2, size)));
    s->c = v_add(o, kept, added);
    s->h = v_mul(o, v_sigmoid(o, gate(o, gates, 3, size)), v_tanh(o, s->c));
}

/* r, z, n: n = tanh(in_n + s(r) hidden_n), h' = n + s(z) (h - n) */
static void step_gru(struct op *o, struct val *in, struct val *hidden, int64_t size,
                     struct state *s)
{
    struct val *r = v_sigmoid(o, v_add(o, gate(o, in, 0, size), gate(o, hidden, 0, size)));
    struct val *z = v_sigmoid(o, v_add(o, gate(o, in, 1, size), gate(o, hidden, 1, size)));
    struct val *n =
        v_tanh(o, v_add(o, gate(o, in, 2, size), v_mul(o, r, gate(o, hidden, 2, size))));
    s->h = v_add(o, n, v_mul(o, z, v_sub(o, s->h, n)));
}

/* `in` is the input's share of the gates already. */
static void step(struct op *o, enum kind kind, struct val *in, const struct weights *w,
                 struct state *s)
{
    struct val *hidden = affine(o, s->h, w->hidden, w->hidden_bias);
    if (!in || !hidden)
        return;
    const int64_t gates = kind == LSTM ? 4 : kind == GRU ? 3 : 1;
    const int64_t size = hidden->shape[hidden->rank - 1] / gates;
    if (kind == GRU) {
        step_gru(o, in, hidden, size, s);
        return;
    }
    struct val *sum = v_add(o, in, hidden);
    if (kind == LSTM) {
        step_lstm(o, sum, size, s);
        if (w->projection)
            s->h = v_matmul_t(o, s->h, w->projection);
    } else {
        s->h = kind == RNN_TANH ? v_tanh(o, sum) : v_relu(o, sum);
    }
}

/* Whether the weights have the sizes of the input and the state. */
static bool weights_fit(struct op *o, enum kind kind, const struct val *x, const struct state *s,
                        const struct weights *w)
{
    const int64_t gates = kind == LSTM ? 4 : kind == GRU ? 3 : 1;
    if (o->failed || !x || !s->h || !w->in || !w->hidden || (kind == LSTM && !s->c))
        return op_fail(o, PLUMB_E_ARG, "%s: a state or a weight is missing", o->call->name) != NULL;
    const int64_t size = w->hidden->rank == 2 ? w->hidden->shape[0] / gates : 0;
    const int64_t out = w->projection && w->projection->rank == 2 ? w->projection->shape[0] : size;
    const struct val *biases[2] = {w->in_bias, w->hidden_bias};
    bool fits = x->f && s->h->f && x->rank >= 1 && s->h->rank >= 1 && w->in->rank == 2 &&
                w->hidden->rank == 2 && w->in->shape[0] == gates * size &&
                w->hidden->shape[0] == gates * size && w->hidden->shape[1] == out &&
                w->in->shape[1] == x->shape[x->rank - 1] && s->h->shape[s->h->rank - 1] == out &&
                (!s->c || s->c->shape[s->c->rank - 1] == size) &&
                (!w->projection || (w->projection->rank == 2 && w->projection->shape[1] == size));
    for (int k = 0; k < 2; k++)
        fits = fits && (!biases[k] || (biases[k]->rank == 1 && biases[k]->count == gates * size));
    if (!fits)
        op_fail(o, PLUMB_E_ARG, "%s: input, state and weights differ in their sizes",
                o->call->name);
    return fits;
}

static void run_cell(struct op *o)
{
    const enum kind kind = kind_of(o->call->name);
    struct val *x = arg_tensor(o, "input");
    struct state s = {.h = arg_tensor(o, "hx")};
    const struct weights w = {arg_tensor(o, "w_ih"), arg_tensor(o, "w_hh"), arg_tensor(o, "b_ih"),
                              arg_tensor(o, "b_hh"), NULL};
    if (kind == LSTM) {
        size_t n;
        struct val **both = arg_tensors(o, "hx", &n);
        if (n == 2)
            s = (struct state){both[0], both[1]};
    }
    if (!weights_fit(o, kind, x, &s, &w))
        return;
    step(o, kind, affine(o, x, w.in, w.in_bias), &w, &s);
    op_return(o, s.h);
    if (kind == LSTM)
        op_return(o, s.c);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

struct sequence {
    struct val *rows;     /* [all rows, features], step after step */
    const int64_t *sizes; /* rows of each step, not growing */
    int64_t steps;
};

/* The first `count` rows of x, which has the rows of dimension 0. */
static struct val *head(struct op *o, struct val *x, int64_t count)
{
    return x && x->shape[0] != count ? v_narrow(o, x, 0, 0, count) : x;
}

/* The first rows of `all` replaced by `part`. */
static struct val *replaced(struct op *o, struct val *all, struct val *part)
{
    if (!all || !part || part->shape[0] == all->shape[0])
        return part;
    struct val *rest = v_narrow(o, all, 0, part->shape[0], all->shape[0] - part->shape[0]);
    return v_cat(o, (struct val *const[]){part, rest}, 2, 0);
}

/* One direction of one layer: the rows of h, and the last state of every sequence in *s. A sequence
 * that has ended keeps its state; backwards, one that has not begun keeps the given one. */
static struct val *run_direction(struct op *o, enum kind kind, const struct sequence *in,
                                 const struct weights *w, bool backwards, struct state *s)
{
    struct val *gates = affine(o, in->rows, w->in, w->in_bias);
    struct val **parts = op_alloc(o, in->steps + 1, sizeof *parts);
    int64_t *start = op_alloc(o, in->steps + 1, sizeof *start);
    if (!gates || !parts || !start)
        return NULL;
    for (int64_t t = 0; t < in->steps; t++)
        start[t + 1] = start[t] + in->sizes[t];
    for (int64_t k = 0; k < in->steps && !o->failed; k++) {
        const int64_t t = backwards ? in->steps - 1 - k : k, count = in->sizes[t];
        struct state now = {head(o, s->h, count), head(o, s->c, count)};
        step(o, kind, v_narrow(o, gates, 0, start[t], count), w, &now);
        parts[t] = now.h;
        s->h = replaced(o, s->h, now.h);
        s->c = replaced(o, s->c, now.c);
    }
    return o->failed ? NULL : v_cat(o, parts, (size_t)in->steps, 0);
}

/* Layer after layer; hx and cx are [layers * directions, batch, size]. */
static void return_layers(struct op *o, enum kind kind, struct sequence *in, struct val *hx,
                          struct val *cx, const int64_t *shape, unsigned rank)
{
    size_t n;
    struct val **params = arg_tensors(o, "params", &n);
    const bool biases = arg_bool(o, "has_biases");
    const int64_t layers = arg_int(o, "num_layers"),
                  directions = arg_bool(o, "bidirectional") ? 2 : 1;
    const bool some = layers >= 1 && layers <= 4096;
    const int64_t plain = biases ? 4 : 2, count = some ? layers * directions : 0;
    const bool projected = kind == LSTM && (int64_t)n == count * (plain + 1);
    const int64_t each = plain + projected;
    if (!some || (int64_t)n != count * each || hx->rank != 3 || hx->shape[0] != count ||
        hx->shape[1] != in->sizes[0] || (cx && cx->shape[0] != count)) {
        op_fail(o, PLUMB_E_ARG,
                "%s: %zu weights and a state of %lld for %lld layers in %lld directions",
                o->call->name, n, (long long)hx->shape[0], (long long)layers,
                (long long)directions);
        return;
    }
    if (arg_number(o, "dropout") != 0 && arg_bool(o, "train") && layers > 1) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: with dropout between layers the result is random",
                o->call->name);
        return;
    }
    struct val **last_h = op_alloc(o, count, sizeof *last_h),
               **last_c = op_alloc(o, count, sizeof *last_c);
    for (int64_t l = 0; l < layers && !o->failed; l++) {
        struct val *sides[2] = {0};
        for (int64_t d = 0; d < directions && !o->failed; d++) {
            const int64_t k = l * directions + d;
            struct val **p = params + k * each;
            const struct weights w = {p[0], p[1], biases ? p[2] : NULL, biases ? p[3] : NULL,
                                      projected ? p[plain] : NULL};
            struct state s = {v_squeeze(o, v_narrow(o, hx, 0, k, 1), 0),
                              cx ? v_squeeze(o, v_narrow(o, cx, 0, k, 1), 0) : NULL};
            if (!weights_fit(o, kind, in->rows, &s, &w))
                return;
            sides[d] = run_direction(o, kind, in, &w, d == 1, &s);
            last_h[k] = s.h ? v_unsqueeze(o, s.h, 0) : NULL;
            last_c[k] = s.c ? v_unsqueeze(o, s.c, 0) : NULL;
        }
        in->rows = directions == 2 && sides[1] ? v_cat(o, sides, 2, 1) : sides[0];
    }
    if (o->failed)
        return;
    struct val *y = in->rows;
    if (rank == 3)
        y = v_reshape(o, y, 3, (const int64_t[]){shape[0], shape[1], y->shape[1]});
    if (rank == 3 && arg_bool(o, "batch_first"))
        y = v_transpose(o, y, 0, 1);
    op_return(o, y);
    op_return(o, v_cat(o, last_h, (size_t)count, 0));
    if (kind == LSTM)
        op_return(o, v_cat(o, last_c, (size_t)count, 0));
}

/* All steps have all rows. */
static bool equal_steps(struct op *o, struct val *x, struct sequence *in)
{
    int64_t *sizes = op_alloc(o, x->shape[0] + 1, sizeof *sizes);
    for (int64_t t = 0; sizes && t < x->shape[0]; t++)
        sizes[t] = x->shape[1];
    const int64_t shape[2] = {x->shape[0] * x->shape[1], x->shape[2]};
    *in = (struct sequence){v_reshape(o, x, 2, shape), sizes, x->shape[0]};
    if (x->shape[0] == 0)
        op_fail(o, PLUMB_E_ARG, "%s: a sequence of no steps", o->call->name);
    return !o->failed;
}

static bool packed_steps(struct op *o, struct val *x, const struct val *sizes, struct sequence *in)
{
    int64_t total = 0;
    bool fits = sizes && sizes->i && sizes->count > 0 && x->rank == 2;
    for (int64_t t = 0; fits && t < sizes->count; t++) {
        fits = sizes->i[t] > 0 && sizes->i[t] <= x->shape[0] - total &&
               (t == 0 || sizes->i[t] <= sizes->i[t - 1]);
        total += fits ? sizes->i[t] : 0;
    }
    if (!fits || total != x->shape[0])
        return op_fail(o, PLUMB_E_ARG, "%s: batch_sizes do not cut the rows into steps",
                       o->call->name) != NULL;
    *in = (struct sequence){x, sizes->i, sizes->count};
    return true;
}

static void run_layers(struct op *o)
{
    const enum kind kind = kind_of(o->call->name);
    const bool packed = arg_raw(o, "batch_sizes") != NULL;
    struct val *x = arg_tensor(o, "input"), *hx = arg_tensor(o, "hx"), *cx = NULL;
    struct sequence in = {0};
    if (kind == LSTM) {
        size_t n;
        struct val **both = arg_tensors(o, "hx", &n);
        if (n != 2)
            op_fail(o, PLUMB_E_ARG, "%s: a state of two tensors is needed", o->call->name);
        hx = n == 2 ? both[0] : NULL;
        cx = n == 2 ? both[1] : NULL;
    }
    if (!x || !hx || o->failed)
        return;
    if (!packed && x->rank != 3) {
        op_fail(o, PLUMB_E_ARG, "%s: an input of %u dimensions, not 3", o->call->name, x->rank);
        return;
    }
    if (!packed && arg_bool(o, "batch_first"))
        x = v_transpose(o, x, 0, 1);
    if (!x ||
        !(packed ? packed_steps(o, x, arg_tensor(o, "batch_sizes"), &in) : equal_steps(o, x, &in)))
        return;
    return_layers(o, kind, &in, hx, cx, x->shape, packed ? 2 : 3);
}

/* ---- The table ------------------------------------------------------------------------------- */

#define LAYERS(state)                                                                              \
    "layers(Tensor input, " state " hx, Tensor[] params, bool has_biases, int num_layers, float "  \
    "dropout, bool train, bool bidirectional, bool batch_first)\n"                                 \
    "layers(Tensor input|data, Tensor batch_sizes, " state " hx, Tensor[] params, bool "           \
    "has_biases, int num_layers, float dropout, bool train, bool bidirectional)"
#define CELL(state)                                                                                \
    "cell(Tensor input, " state " hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "       \
    "b_hh=None)"

const struct op_def op_recurrent[] = {
    {"lstm", LAYERS("Tensor[]"), run_layers, 0, "all h, the last h and c of each layer"},
    {"gru", LAYERS("Tensor"), run_layers, 0, "all h, the last h of each layer"},
    {"rnn_tanh", LAYERS("Tensor"), run_layers, 0, "all h, the last h of each layer"},
    {"rnn_relu", LAYERS("Tensor"), run_layers, 0, "all h, the last h of each layer"},
    {"lstm_cell", CELL("Tensor[]"), run_cell, 0,
     "c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'); returns h' and c'"},
    {"gru_cell", CELL("Tensor"), run_cell, 0, "n + s(z) (h - n), n = tanh(in + s(r) hidden)"},
    {"rnn_tanh_cell", CELL("Tensor"), run_cell, 0, "tanh(input w_ih^T + b_ih + hx w_hh^T + b_hh)"},
    {"rnn_relu_cell", CELL("Tensor"), run_cell, 0, "relu(input w_ih^T + b_ih + hx w_hh^T + b_hh)"},
    {0},
};
