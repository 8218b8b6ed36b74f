/* Transforms of short stretches of a signal, and back. */
#include "exec/op/complex_math.h"
#include "exec/op/fourier.h"
#include "exec/op/place.h"

#include <string.h>

struct frames {
    int64_t size, hop;  /* of a frame, and from one to the next */
    struct val *window; /* of that size */
    bool center, normalized, onesided;
};

/* The window, in the middle of a frame. */
static struct val *frame_window(struct op *o, const struct frames *f, enum plumb_dtype dtype)
{
    struct val *given = arg_tensor(o, "window");
    const int64_t n = arg_given(o, "win_length") ? arg_int(o, "win_length") : f->size;
    if (o->failed)
        return NULL;
    if (given && given->is_complex)
        return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: a complex window", o->call->name);
    if (n < 1 || n > f->size || (given && (given->rank != 1 || given->shape[0] != n)))
        return op_fail(o, PLUMB_E_ARG, "%s: a window of %lld numbers for frames of %lld",
                       o->call->name, (long long)n, (long long)f->size);
    if (!given)
        given = v_full(o, dtype, 1, &n, 1);
    int64_t *places = op_alloc(o, f->size, sizeof *places);
    for (int64_t k = 0; places && k < f->size; k++) {
        const int64_t at = k - (f->size - n) / 2;
        places[k] = at >= 0 && at < n ? at : -1;
    }
    return v_pick_dim(o, given, 0, f->size, places);
}

static bool take_frames(struct op *o, struct frames *f, enum plumb_dtype dtype)
{
    f->size = arg_int(o, "n_fft");
    f->hop = arg_given(o, "hop_length") ? arg_int(o, "hop_length") : f->size / 4;
    if (f->size < 1 || f->hop < 1) {
        op_fail(o, PLUMB_E_ARG, "%s: frames of %lld numbers, %lld apart", o->call->name,
                (long long)f->size, (long long)f->hop);
        return false;
    }
    f->window = frame_window(o, f, dtype);
    f->normalized = arg_bool(o, "normalized");
    return f->window != NULL;
}

/* ---- Forward --------------------------------------------------------------------------------- */

/* Half a frame more on either side, as the mode of padding makes it. */
static struct val *centered(struct op *o, struct val *x, unsigned dim, int64_t half,
                            const char *mode)
{
    const int64_t n = x->shape[dim], length = n + 2 * half;
    const bool reflect = strcmp(mode, "reflect") == 0, circular = strcmp(mode, "circular") == 0;
    const bool replicate = strcmp(mode, "replicate") == 0;
    if (!reflect && !circular && !replicate && strcmp(mode, "constant") != 0)
        return op_fail(o, PLUMB_E_ARG, "%s: no padding '%s'", o->call->name, mode);
    if ((reflect && half >= n) || (circular && half > n) || n < 1)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld numbers cannot be padded by %lld", o->call->name,
                       (long long)n, (long long)half);
    int64_t *places = op_alloc(o, length, sizeof *places);
    for (int64_t k = 0; places && k < length; k++) {
        const int64_t at = k - half;
        places[k] = at >= 0 && at < n ? at
                    : reflect         ? (at < 0 ? -at : 2 * (n - 1) - at)
                    : circular        ? (at + n) % n
                    : replicate       ? (at < 0 ? 0 : n - 1)
                                      : -1;
    }
    return v_pick_dim(o, x, dim, length, places);
}

/* [batch, frames, size] of real x, or with parts behind. */
static struct val *cut(struct op *o, struct val *x, const struct frames *f, bool is_complex)
{
    const int64_t n = x->shape[1], parts = is_complex ? 2 : 1;
    if (n < f->size)
        return op_fail(o, PLUMB_E_ARG, "%s: %lld numbers are no frame of %lld", o->call->name,
                       (long long)n, (long long)f->size);
    const int64_t shape[4] = {x->shape[0], 1 + (n - f->size) / f->hop, f->size, 2};
    const int64_t stride[4] = {n * parts, f->hop * parts, parts, 1};
    return v_strided(o, x, is_complex ? 4 : 3, shape, stride, 0);
}

static bool arg_flag(struct op *o, const char *name, bool otherwise)
{
    return arg_given(o, name) ? arg_bool(o, name) : otherwise;
}

static void run_stft(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    struct frames f;
    if (!x || (!x->is_complex && !(x = v_float(o, x))) || !take_frames(o, &f, x->dtype))
        return;
    const bool is_complex = x->is_complex, single = x->rank == 1u + is_complex;
    if (!single && x->rank != 2u + is_complex) {
        op_fail(o, PLUMB_E_ARG, "%s: a signal of %u dimensions", o->call->name,
                x->rank - is_complex);
        return;
    }
    if (single)
        x = v_unsqueeze(o, x, 0);
    if (x && arg_flag(o, "center", false))
        x = centered(o, x, 1, f.size / 2, arg_text(o, "pad_mode"));
    struct val *z = x ? cut(o, x, &f, is_complex) : NULL;
    const int64_t row[2] = {f.size, 1};
    z = v_mul(o, z, v_reshape(o, f.window, is_complex ? 2 : 1, row));
    const real scale = f.normalized ? 1 / sqrt((real)f.size) : 1;
    if (is_complex || !arg_flag(o, "onesided", true))
        z = v_fourier(o, is_complex ? z : v_complex(o, z), 2, true, scale);
    else
        z = v_fourier_half(o, z, 2, scale);
    z = z ? v_transpose(o, z, 1, 2) : NULL;
    z = single ? v_squeeze(o, z, 0) : z;
    if (arg_flag(o, "return_complex", is_complex))
        op_return_complex(o, z);
    else
        op_return(o, z);
}

/* ---- Back ------------------------------------------------------------------------------------ */

/* The sum of [batch, frames, size] where frames overlap. */
static struct val *overlapped(struct op *o, struct val *frames, const struct frames *f)
{
    if (!frames)
        return NULL;
    const int64_t batch = frames->shape[0], n = frames->shape[1];
    const int64_t length = f->size + (n - 1) * f->hop;
    const int64_t shape[2] = {batch, length};
    int64_t *map = op_alloc(o, frames->count + 1, sizeof *map);
    struct val *sum = val_new(o, frames->dtype, 2, shape);
    for (int64_t k = 0; map && k < frames->count; k++)
        map[k] = k / (n * f->size) * length + k / f->size % n * f->hop + k % f->size;
    if (!map || !sum)
        return NULL;
    op_terms((f->size + f->hop - 1) / f->hop * fourier_steps(f->size));
    return v_place_add(o, sum, frames, map);
}

/* The same for all frames: how much of the squared window there is at each place. */
static struct val *envelope(struct op *o, const struct frames *f, int64_t n)
{
    struct val *square = v_mul(o, f->window, f->window);
    const int64_t one[3] = {1, 1, f->size}, all[3] = {1, n, f->size};
    square = v_broadcast(o, v_reshape(o, square, 3, one), 3, all);
    return overlapped(o, square, f);
}

/* The signal without the halves of frames that centering put there, or as long as asked for. */
static struct val *trimmed(struct op *o, struct val *x, const struct frames *f)
{
    if (!x)
        return NULL;
    const int64_t start = f->center ? f->size / 2 : 0;
    const int64_t wanted = arg_given(o, "length") ? arg_int(o, "length") : x->shape[1] - 2 * start;
    if (wanted < 1)
        return op_fail(o, PLUMB_E_ARG, "%s: a signal of %lld numbers", o->call->name,
                       (long long)wanted);
    int64_t *places = op_alloc(o, wanted, sizeof *places);
    for (int64_t k = 0; places && k < wanted; k++)
        places[k] = start + k < x->shape[1] ? start + k : -1;
    return v_pick_dim(o, x, 1, wanted, places);
}

static void run_istft(struct op *o)
{
    struct val *z = arg_tensor(o, "input");
    struct frames f;
    if (!z || !take_frames(o, &f, z->dtype))
        return;
    if (arg_flag(o, "return_complex", false)) {
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: complex signals", o->call->name);
        return;
    }
    f.center = arg_flag(o, "center", true);
    const bool single = z->rank == 3;
    if (single)
        z = v_unsqueeze(o, z, 0);
    if (!z || z->rank != 4 || z->shape[3] != 2) {
        op_fail(o, PLUMB_E_ARG, "%s: frequencies by frames of complex numbers are wanted",
                o->call->name);
        return;
    }
    const bool whole = z->shape[1] == f.size;
    f.onesided = arg_flag(o, "onesided", !whole || f.size == 1);
    if (z->shape[1] != (f.onesided ? f.size / 2 + 1 : f.size)) {
        op_fail(o, PLUMB_E_ARG, "%s: %lld frequencies of frames of %lld", o->call->name,
                (long long)z->shape[1], (long long)f.size);
        return;
    }
    const real scale = f.normalized ? 1 / sqrt((real)f.size) : 1 / (real)f.size;
    z = v_transpose(o, z, 1, 2);
    if (z && !f.onesided) /* the other half says the same of a real signal */
        z = v_narrow(o, z, 2, 0, f.size / 2 + 1);
    struct val *x = v_fourier_real(o, z, 2, f.size, scale);
    x = overlapped(o, v_mul(o, x, f.window), &f);
    x = v_div(o, trimmed(o, x, &f), trimmed(o, envelope(o, &f, z ? z->shape[1] : 1), &f));
    op_return(o, single ? v_squeeze(o, x, 0) : x);
}

#define FRAMES                                                                                     \
    "(Tensor input|self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "          \
    "window=None, "
#define STFT_CENTER                                                                                \
    "bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, "       \
    "bool? return_complex=None, bool? align_to_window=None)"
#define STFT_PLAIN                                                                                 \
    "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "                \
    "align_to_window=None)"

const struct op_def op_stft[] = {
    {"stft",
     "Aten.stft" FRAMES STFT_PLAIN "\nVF.stft" FRAMES STFT_PLAIN "\nstft" FRAMES STFT_CENTER,
     run_stft, OP_COMPLEX, "the transform of each frame of n_fft numbers, times the window"},
    {"istft",
     "istft" FRAMES
     "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
     "return_complex=False)",
     run_istft, OP_COMPLEX, "frames back, times the window, over its squares where they overlap"},
    {0},
};
