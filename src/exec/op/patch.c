/* Channels into pixels and back. */
#include "exec/op/op.h"

#include <string.h>

/* x's shape with the last three dimensions replaced. */
static struct val *with_image(struct op *o, struct val *from, const struct val *x, int64_t channels,
                              int64_t height, int64_t width)
{
    int64_t shape[OP_RANK];
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[x->rank - 3] = channels;
    shape[x->rank - 2] = height;
    shape[x->rank - 1] = width;
    return v_reshape(o, from, x->rank, shape);
}

static bool is_image(struct op *o, const struct val *x, int64_t factor)
{
    if (!x || o->failed)
        return false;
    if (x->rank < 3 || factor <= 0 || factor > INT32_MAX)
        op_fail(o, PLUMB_E_ARG, "%s by %lld of a tensor with %u dimensions", o->call->name,
                (long long)factor, x->rank);
    return !o->failed;
}

static int64_t leading(const struct val *x)
{
    int64_t n = 1;
    for (unsigned d = 0; d + 3 < x->rank; d++)
        n *= x->shape[d];
    return n;
}

static void run_pixel_shuffle(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t r = arg_int(o, "upscale_factor");
    if (!is_image(o, x, r))
        return;
    int64_t c = x->shape[x->rank - 3], h = x->shape[x->rank - 2], w = x->shape[x->rank - 1];
    if (c % (r * r) != 0) {
        op_fail(o, PLUMB_E_ARG, "pixel_shuffle: %lld channels by a factor of %lld", (long long)c,
                (long long)r);
        return;
    }
    c /= r * r;
    const int64_t apart[6] = {leading(x), c, r, r, h, w};
    const unsigned order[6] = {0, 1, 4, 2, 5, 3};
    op_return(o, with_image(o, v_permute(o, v_reshape(o, x, 6, apart), order), x, c, h * r, w * r));
}

static void run_pixel_unshuffle(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t r = arg_int(o, "downscale_factor");
    if (!is_image(o, x, r))
        return;
    int64_t c = x->shape[x->rank - 3], h = x->shape[x->rank - 2], w = x->shape[x->rank - 1];
    if (h % r != 0 || w % r != 0) {
        op_fail(o, PLUMB_E_ARG, "pixel_unshuffle: %lld x %lld by a factor of %lld", (long long)h,
                (long long)w, (long long)r);
        return;
    }
    h /= r;
    w /= r;
    const int64_t apart[6] = {leading(x), c, h, r, w, r};
    const unsigned order[6] = {0, 1, 3, 5, 2, 4};
    if (c > 0 && r * r > INT64_MAX / 64 / c)
        op_fail(o, PLUMB_E_ARG, "pixel_unshuffle by a factor of %lld", (long long)r);
    else
        op_return(
            o, with_image(o, v_permute(o, v_reshape(o, x, 6, apart), order), x, c * r * r, h, w));
}

static void run_channel_shuffle(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    int64_t groups = arg_int(o, "groups");
    if (!x || o->failed)
        return;
    if (x->rank < 3 || groups <= 0 || x->shape[1] % groups != 0) {
        op_fail(o, PLUMB_E_ARG, "channel_shuffle of a tensor with %u dimensions in %lld groups",
                x->rank, (long long)groups);
        return;
    }
    const struct span3 s = val_span(x, 1);
    const int64_t apart[4] = {s.outer, groups, s.length / groups, s.inner};
    struct val *turned = v_transpose(o, v_reshape(o, x, 4, apart), 1, 2);
    op_return(o, v_reshape(o, turned, x->rank, x->shape));
}

const struct op_def op_patch[] = {
    {"pixel_shuffle", "pixel_shuffle(Tensor input|self, int upscale_factor)", run_pixel_shuffle, 0,
     "[c r r][h][w] as [c][h r][w r]"},
    {"pixel_unshuffle", "pixel_unshuffle(Tensor input|self, int downscale_factor)",
     run_pixel_unshuffle, 0, "[c][h r][w r] as [c r r][h][w]"},
    {"channel_shuffle native_channel_shuffle", "channel_shuffle(Tensor input|self, int groups)",
     run_channel_shuffle, 0, "[g][c / g] as [c / g][g]"},
    {0},
};
