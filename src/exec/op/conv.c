/* Convolutions and transposed convolutions in one to three dimensions: windows spread out as
 * columns (window.h), then one matrix product a group.
 *
 * A transposed convolution is the gradient of a convolution, and the other way round. So three
 * loops do all there is: apply (input to output), scatter (output to input), and weigh (both to
 * weight), where "input" is the side that windows slide over. */
#include "exec/op/matmul.h"
#include "exec/op/sum.h"
#include "exec/op/window.h"

#include <limits.h>
#include <string.h>

struct conv {
    struct window w;
    int64_t batch, groups, in_channels, out_channels; /* channels of one group */
    bool transposed; /* the operator's input is the side called output here */
    bool pointwise;  /* a 1 x 1 kernel and nothing else: the input is the matrix already */
};

/* Windows are taken in tiles whose columns fit a near cache. */
enum { TILE_ELEMENTS = 1 << 17, TILE_LEAST = 32 };

static int64_t tile_size(const struct conv *c)
{
    const int64_t rows = c->in_channels * c->w.kernel_count;
    int64_t tile = rows > 0 ? TILE_ELEMENTS / rows : c->w.out_count;
    if (tile < TILE_LEAST)
        tile = TILE_LEAST;
    return tile < c->w.out_count ? tile : c->w.out_count;
}

static real *tile_memory(struct op *o, const struct conv *c)
{
    int64_t count;
    if (c->pointwise)
        return op_alloc(o, 1, sizeof(real));
    if (__builtin_mul_overflow(c->in_channels * c->w.kernel_count, tile_size(c), &count))
        return op_fail(o, PLUMB_E_ARG, "%s: the kernel is absurdly large", o->call->name);
    return op_alloc(o, count + 1, sizeof(real));
}

/* What one step of the three loops works on. */
struct tile {
    const struct conv *c;
    int64_t image, group, first, count;
};

static bool tile_begin(const struct conv *c, struct tile *t)
{
    *t = (struct tile){.c = c, .count = tile_size(c)};
    return c->batch > 0 && c->groups > 0 && c->w.out_count > 0;
}

static bool tile_next(struct tile *t)
{
    const struct conv *c = t->c;
    t->first += t->count;
    if (t->first >= c->w.out_count) {
        t->first = 0;
        if (++t->group == c->groups) {
            t->group = 0;
            t->image++;
        }
    }
    t->count = tile_size(c);
    if (t->count > c->w.out_count - t->first)
        t->count = c->w.out_count - t->first;
    return t->image < c->batch;
}

static int64_t in_place(const struct tile *t)
{
    const struct conv *c = t->c;
    return (t->image * c->groups + t->group) * c->in_channels * c->w.in_count;
}

static int64_t out_place(const struct tile *t)
{
    const struct conv *c = t->c;
    return (t->image * c->groups + t->group) * c->out_channels * c->w.out_count + t->first;
}

static int64_t weight_place(const struct tile *t)
{
    const struct conv *c = t->c;
    return t->group * c->out_channels * c->in_channels * c->w.kernel_count;
}

/* columns(in) of a tile, a row of *ld elements for each weight: in itself where a window is one
 * element. */
static const real *unfold(const struct tile *t, const real *in, real *columns, int64_t *ld)
{
    const struct conv *c = t->c;
    *ld = c->pointwise ? c->w.in_count : t->count;
    if (c->pointwise)
        return in + in_place(t) + t->first;
    window_gather(&c->w, in + in_place(t), c->in_channels, t->first, t->count, columns);
    return columns;
}

/* out += weight * columns(in) */
static void apply(const struct conv *c, const real *in, const real *weight, real *out,
                  real *columns)
{
    const int64_t rows = c->in_channels * c->w.kernel_count;
    struct tile t;
    for (bool more = tile_begin(c, &t); more; more = tile_next(&t)) {
        int64_t ld;
        const real *from = unfold(&t, in, columns, &ld);
        gemm(false, false, c->out_channels, t.count, rows, 1, weight + weight_place(&t), rows, from,
             ld, 1, out + out_place(&t), c->w.out_count);
    }
}

/* in += the windows of (weight^T * out), put back */
static void scatter(const struct conv *c, const real *out, const real *weight, real *in,
                    real *columns)
{
    const int64_t rows = c->in_channels * c->w.kernel_count;
    struct tile t;
    op_terms(c->out_channels * window_overlap(&c->w));
    for (bool more = tile_begin(c, &t); more; more = tile_next(&t)) {
        const real *w = weight + weight_place(&t), *from = out + out_place(&t);
        if (c->pointwise) {
            gemm(true, false, rows, t.count, c->out_channels, 1, w, rows, from, c->w.out_count, 1,
                 in + in_place(&t) + t.first, c->w.in_count);
            continue;
        }
        gemm(true, false, rows, t.count, c->out_channels, 1, w, rows, from, c->w.out_count, 0,
             columns, t.count);
        window_scatter(&c->w, columns, c->in_channels, t.first, t.count, in + in_place(&t));
    }
}

/* weight += out * columns(in)^T */
static void weigh(const struct conv *c, const real *in, const real *out, real *weight,
                  real *columns)
{
    const int64_t rows = c->in_channels * c->w.kernel_count;
    struct tile t;
    op_terms(c->batch * c->w.out_count);
    for (bool more = tile_begin(c, &t); more; more = tile_next(&t)) {
        int64_t ld;
        const real *from = unfold(&t, in, columns, &ld);
        gemm(false, true, c->out_channels, rows, t.count, 1, out + out_place(&t), c->w.out_count,
             from, ld, 1, weight + weight_place(&t), rows);
    }
}

/* The channels and elements of the operator's result. */
static void result_size(const struct conv *c, int64_t *channels, int64_t *count)
{
    *channels = c->groups * (c->transposed ? c->in_channels : c->out_channels);
    *count = c->transposed ? c->w.in_count : c->w.out_count;
}

/* Adds to those of dx, dw and db that are not NULL what the gradient g of the result is worth. */
static void add_gradients(const struct conv *c, const real *x, const real *w, const real *g,
                          real *dx, real *dw, real *db, real *columns)
{
    if (dx && c->transposed)
        apply(c, g, w, dx, columns);
    else if (dx)
        scatter(c, g, w, dx, columns);
    if (dw)
        weigh(c, c->transposed ? g : x, c->transposed ? x : g, dw, columns);
    int64_t channels, count;
    result_size(c, &channels, &count);
    /* Before a batch norm the sum is zero but for rounding: nothing of it may be lost on the
     * way. */
    for (int64_t k = 0; db && k < channels; k++) {
        struct tally sum = {db[k], 0};
        for (int64_t b = 0; b < c->batch; b++) {
            const struct tally t = tally_of(g + (b * channels + k) * count, count, 1);
            tally_add(&sum, t.sum);
            sum.lost += t.lost;
        }
        db[k] = tally_value(sum.sum, sum.lost);
    }
}

static void backward(struct op *o, struct val *out)
{
    const struct conv *c = out->saved;
    real *dx = val_grad(o, out->in[0]), *dw = val_grad(o, out->in[1]),
         *db = val_grad(o, out->in[2]), *columns = tile_memory(o, c);
    if (columns)
        add_gradients(c, out->in[0]->f, out->in[1]->f, out->grad, dx, dw, db, columns);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

/* Padding that keeps the size: the odd one goes behind. */
static bool pad_same(struct op *o, struct window *w)
{
    for (unsigned d = 0; d < WINDOW_DIMS; d++) {
        if (w->stride[d] != 1)
            return op_fail(o, PLUMB_E_ARG, "%s: padding 'same' needs a stride of 1",
                           o->call->name) != NULL;
        w->pad[d] = w->dilation[d] * (w->kernel[d] - 1) / 2;
        w->out[d] = w->in[d];
    }
    return true;
}

static bool read_padding(struct op *o, unsigned nd, bool transposed, struct window *w, bool *same)
{
    const char *word = arg_text(o, "padding");
    *same = word && strcmp(word, "same") == 0;
    if (!word)
        return window_arg(o, "padding", nd, 0, 0, w->pad);
    if (transposed || (!*same && strcmp(word, "valid") != 0))
        return op_fail(o, PLUMB_E_ARG, "%s: padding '%.20s' ('same' or 'valid' is possible)",
                       o->call->name, word) != NULL;
    return true;
}

/* The size of the operator's result in dimension d; the other side's is known. */
static bool slide(struct op *o, struct window *w, unsigned d, bool transposed, int64_t extra)
{
    const int64_t reach = w->dilation[d] * (w->kernel[d] - 1) + 1;
    if (!transposed) {
        const int64_t padded = w->in[d] + 2 * w->pad[d], room = padded - reach;
        if (room < 0)
            return op_fail(o, PLUMB_E_ARG,
                           "%s: a kernel of %lld (dilated) over an input of %lld (padded)",
                           o->call->name, (long long)reach, (long long)padded) != NULL;
        w->out[d] = room / w->stride[d] + 1;
        return true;
    }
    if (extra >= w->stride[d] && extra >= w->dilation[d])
        return op_fail(o, PLUMB_E_ARG,
                       "%s: output_padding %lld must be less than stride or dilation",
                       o->call->name, (long long)extra) != NULL;
    int64_t size;
    if (w->out[d] == 0 || __builtin_mul_overflow(w->out[d] - 1, w->stride[d], &size) ||
        size > INT64_MAX / 2)
        return op_fail(o, PLUMB_E_ARG, "%s: an input of %lld elements in a dimension",
                       o->call->name, (long long)w->out[d]) != NULL;
    w->in[d] = size - 2 * w->pad[d] + reach + extra;
    if (w->in[d] < 1)
        return op_fail(o, PLUMB_E_ARG, "%s: the output would have %lld elements in a dimension",
                       o->call->name, (long long)w->in[d]) != NULL;
    return true;
}

static bool read_channels(struct op *o, const struct val *x, const struct val *weight,
                          const struct val *bias, struct conv *c)
{
    c->groups = arg_int(o, "groups");
    const int64_t first = weight->shape[0], second = weight->shape[1];
    if (c->groups < 1 || first % c->groups || x->shape[1] % c->groups)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld channels in %lld groups", o->call->name,
                       (long long)x->shape[1], (long long)c->groups) != NULL;
    c->in_channels = second;
    c->out_channels = first / c->groups;
    const int64_t wanted = c->transposed ? first : second * c->groups;
    if (x->shape[1] != wanted)
        return op_fail(o, PLUMB_E_ARG, "%s: the input has %lld channels, the weight takes %lld",
                       o->call->name, (long long)x->shape[1], (long long)wanted) != NULL;
    const int64_t made = c->transposed ? second * c->groups : first;
    if (bias && (bias->rank != 1 || bias->shape[0] != made))
        return op_fail(o, PLUMB_E_ARG, "%s: a bias of %lld numbers for %lld channels",
                       o->call->name, (long long)bias->count, (long long)made) != NULL;
    return true;
}

static bool read_geometry(struct op *o, const struct val *x, const struct val *weight, unsigned nd,
                          struct conv *c)
{
    struct window *w = &c->w;
    int64_t extra[WINDOW_DIMS] = {0};
    bool same = false;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        w->in[d] = w->out[d] = w->kernel[d] = w->stride[d] = w->dilation[d] = 1;
    for (unsigned d = 0; d < nd; d++) {
        const unsigned at = WINDOW_DIMS - nd + d;
        w->kernel[at] = weight->shape[2 + d];
        *(c->transposed ? &w->out[at] : &w->in[at]) = x->shape[2 + d];
        if (w->kernel[at] < 1 || w->kernel[at] > INT_MAX || x->shape[2 + d] > INT64_MAX / 4)
            return op_fail(o, PLUMB_E_ARG, "%s: a kernel of %lld elements", o->call->name,
                           (long long)w->kernel[at]) != NULL;
    }
    if (!window_arg(o, "stride", nd, 1, 1, w->stride) ||
        !window_arg(o, "dilation", nd, 1, 1, w->dilation) ||
        !read_padding(o, nd, c->transposed, w, &same) ||
        (c->transposed && !window_arg(o, "output_padding", nd, 0, 0, extra)))
        return false;
    if (same) {
        if (!pad_same(o, w))
            return false;
    } else {
        for (unsigned d = WINDOW_DIMS - nd; d < WINDOW_DIMS; d++)
            if (!slide(o, w, d, c->transposed, extra[d]))
                return false;
    }
    if (!window_finish(o, w))
        return false;
    c->pointwise = w->kernel_count == 1;
    for (unsigned d = 0; d < WINDOW_DIMS; d++)
        c->pointwise &= w->stride[d] == 1 && w->pad[d] == 0 && w->in[d] == w->out[d];
    return true;
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* x is [batch, channels, ...nd sizes]. */
static struct val *convolve(struct op *o, struct val *x, struct val *weight, struct val *bias,
                            unsigned nd, bool transposed)
{
    struct conv *c = op_alloc(o, 1, sizeof *c);
    if (!c || !x || !weight)
        return NULL;
    enum plumb_dtype dtype = matmul_dtype(x, weight);
    if (!dtype_is_float(dtype))
        return op_fail(o, PLUMB_E_ARG, "%s: not defined for %s", o->call->name,
                       plumb_dtype_info(dtype)->name);
    x = matmul_operand(o, x, dtype);
    weight = matmul_operand(o, weight, dtype);
    bias = matmul_operand(o, bias, dtype);
    if (o->failed)
        return NULL;
    c->transposed = transposed;
    c->batch = x->shape[0];
    if (!read_channels(o, x, weight, bias, c) || !read_geometry(o, x, weight, nd, c))
        return NULL;

    int64_t channels, count, shape[2 + WINDOW_DIMS];
    result_size(c, &channels, &count);
    shape[0] = c->batch;
    shape[1] = channels;
    memcpy(shape + 2, (transposed ? c->w.in : c->w.out) + WINDOW_DIMS - nd, nd * sizeof *shape);
    struct val *y = val_new(o, dtype, 2 + nd, shape);
    real *columns = tile_memory(o, c);
    if (!y || !columns)
        return NULL;
    for (int64_t k = 0; bias && k < c->batch * channels; k++)
        for (int64_t i = 0; i < count; i++)
            y->f[k * count + i] = bias->f[k % channels];
    if (transposed)
        scatter(c, x->f, weight->f, y->f, columns);
    else
        apply(c, x->f, weight->f, y->f, columns);
    return val_node(o, y, backward, x, weight, bias, c);
}

static void run(struct op *o, unsigned nd, bool transposed)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight");
    if (!x || !weight)
        return;
    if (nd == 0) /* not said by the name */
        nd = weight->rank >= 3 && weight->rank <= 5 ? weight->rank - 2 : 0;
    if (nd == 0 || weight->rank != nd + 2 || (x->rank != nd + 1 && x->rank != nd + 2)) {
        op_fail(o, PLUMB_E_ARG, "%s: an input of %u and a weight of %u dimensions", o->call->name,
                x->rank, weight->rank);
        return;
    }
    const bool single = x->rank == nd + 1;
    if (single)
        x = v_unsqueeze(o, x, 0);
    struct val *y = convolve(o, x, weight, arg_tensor(o, "bias"), nd, transposed);
    op_return(o, single ? v_squeeze(o, y, 0) : y);
}

static void run_conv(struct op *o)
{
    run(o, window_rank(o), false);
}

static void run_conv_transpose(struct op *o)
{
    run(o, window_rank(o), true);
}

/* torch_npu's has its arguments in another order; the weight tells the dimensions. */
static void run_npu_transpose(struct op *o)
{
    run(o, 0, true);
}

static void run_convolution(struct op *o)
{
    run(o, 0, arg_bool(o, "transposed"));
}

/* The three gradients by themselves, as one operator; output_mask says which. */
static void run_convolution_backward(struct op *o)
{
    struct val *g = arg_tensor(o, "grad_output"), *x = arg_tensor(o, "input"),
               *weight = arg_tensor(o, "weight");
    const struct plumb_arg *wanted = arg_raw(o, "output_mask");
    struct conv *c = op_alloc(o, 1, sizeof *c);
    if (!g || !x || !weight || !c)
        return;
    const unsigned nd = weight->rank >= 3 && weight->rank <= 5 ? weight->rank - 2 : 0;
    if (nd == 0 || x->rank != nd + 2 || g->rank != nd + 2 || !x->f || !weight->f || !g->f ||
        wanted->kind != PLUMB_ARG_LIST || wanted->n_items != 3) {
        op_fail(o, PLUMB_E_ARG, "%s: gradient, input and weight do not fit each other",
                o->call->name);
        return;
    }
    c->transposed = arg_bool(o, "transposed");
    c->batch = x->shape[0];
    if (!read_channels(o, x, weight, NULL, c) || !read_geometry(o, x, weight, nd, c))
        return;
    int64_t channels, count;
    result_size(c, &channels, &count);
    const int64_t *sizes = (c->transposed ? c->w.in : c->w.out) + WINDOW_DIMS - nd;
    if (g->shape[0] != c->batch || g->shape[1] != channels ||
        memcmp(g->shape + 2, sizes, nd * sizeof *sizes) != 0) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient has not the shape of the output", o->call->name);
        return;
    }
    struct val *dx = val_like(o, x, x->dtype), *dw = val_like(o, weight, weight->dtype),
               *db = val_new(o, g->dtype, 1, &channels);
    real *columns = tile_memory(o, c);
    if (!dx || !dw || !db || !columns)
        return;
    add_gradients(c, x->f, weight->f, g->f, wanted->items[0].integer ? dx->f : NULL,
                  wanted->items[1].integer ? dw->f : NULL, wanted->items[2].integer ? db->f : NULL,
                  columns);
    struct val *const all[3] = {dx, dw, db};
    for (int k = 0; k < 3; k++)
        if (wanted->items[k].integer)
            op_return(o, all[k]);
        else
            op_return_none(o);
}

/* Time, batch, channels; the weight is [kernel, in, out]. */
static void run_conv_tbc(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *weight = arg_tensor(o, "weight");
    if (!x || !weight)
        return;
    if (x->rank != 3 || weight->rank != 3) {
        op_fail(o, PLUMB_E_ARG, "conv_tbc: input and weight must have 3 dimensions");
        return;
    }
    x = v_permute(o, x, (const unsigned[]){1, 2, 0});
    weight = v_permute(o, weight, (const unsigned[]){2, 1, 0});
    struct val *y = convolve(o, x, weight, arg_tensor(o, "bias"), 1, false);
    op_return(o, v_permute(o, y, (const unsigned[]){2, 0, 1}));
}

const struct op_def op_conv[] = {
    {"conv1d conv2d conv3d",
     "conv(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, any padding=0, int[] "
     "dilation=1, int groups=1)",
     run_conv, 0, NULL},
    {"conv_transpose1d conv_transpose2d conv_transpose3d",
     "conv_transpose(Tensor input, Tensor weight, Tensor? bias=None, int[] stride=1, int[] "
     "padding=0, int[] output_padding=0, int groups=1, int[] dilation=1)",
     run_conv_transpose, 0, NULL},
    {"convolution _convolution convolution_overrideable",
     "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, any padding, int[] "
     "dilation, bool transposed, int[] output_padding, int groups, any benchmark=None, any "
     "deterministic=None, any cudnn_enabled=None, any allow_tf32=None)",
     run_convolution, 0, NULL},
    {"npu_conv2d npu_conv3d npu_convolution",
     "npu_conv2d(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] "
     "dilation, int groups)",
     run_convolution, 0, NULL},
    {"npu_conv_transpose2d npu_convolution_transpose",
     "npu_conv_transpose2d(Tensor input, Tensor weight, Tensor? bias, int[] padding, int[] "
     "output_padding, int[] stride, int[] dilation, int groups)",
     run_npu_transpose, 0, NULL},
    {"conv_tbc",
     "conv_tbc(Tensor input|self, Tensor weight, Tensor bias, int[] padding|pad=0, *, int[] "
     "stride=1, int[] dilation=1, int groups=1)",
     run_conv_tbc, 0, NULL},
    {"convolution_backward",
     "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, "
     "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int "
     "groups, any output_mask)",
     run_convolution_backward, OP_NO_GRAD, NULL},
    {0},
};
