/* The fft family: lengths, dimensions and normalisations around fourier.c. */
#include "exec/op/complex_math.h"
#include "exec/op/fourier.h"
#include "exec/op/place.h"

#include <string.h>

/* ---- One transform of several dimensions ----------------------------------------------------- */

enum scaling { SCALE_NONE, SCALE_ROOT, SCALE_LENGTH };

struct transform {
    struct val *x; /* as it is given: real or complex */
    size_t n;
    unsigned dims[OP_RANK];
    int64_t sizes[OP_RANK]; /* of the side that is no half */
    enum scaling scaling;
};

static real scale_of(const struct transform *t, size_t k)
{
    return t->scaling == SCALE_NONE   ? 1
           : t->scaling == SCALE_ROOT ? 1 / sqrt((real)t->sizes[k])
                                      : 1 / (real)t->sizes[k];
}

static void tell_steps(const struct transform *t)
{
    int64_t steps = 0;
    for (size_t k = 0; k < t->n; k++)
        steps += fourier_steps(t->sizes[k]);
    op_terms(steps);
}

/* The first `length` along a dimension, with zeros behind what is there. */
static struct val *fitted(struct op *o, struct val *x, unsigned dim, int64_t length)
{
    if (!x || x->shape[dim] == length)
        return x;
    if (length < x->shape[dim])
        return v_narrow(o, x, dim, 0, length);
    int64_t *places = op_alloc(o, length, sizeof *places);
    for (int64_t k = 0; places && k < length; k++)
        places[k] = k < x->shape[dim] ? k : -1;
    return v_pick_dim(o, x, dim, length, places);
}

/* Of complex numbers, over dimensions first to n - 1; the last first. */
static struct val *over(struct op *o, const struct transform *t, struct val *z, size_t n,
                        bool forward)
{
    for (size_t k = n; k-- > 0;)
        z = v_fourier(o, fitted(o, z, t->dims[k], t->sizes[k]), t->dims[k], forward,
                      scale_of(t, k));
    return z;
}

static struct val *complex_to_complex(struct op *o, const struct transform *t, bool forward)
{
    tell_steps(t);
    return over(o, t, v_complex(o, t->x), t->n, forward);
}

static struct val *real_to_complex(struct op *o, const struct transform *t)
{
    const size_t last = t->n - 1;
    if (t->x->is_complex)
        return op_fail(o, PLUMB_E_ARG, "%s: not of complex numbers", o->call->name);
    tell_steps(t);
    struct val *x = fitted(o, v_float(o, t->x), t->dims[last], t->sizes[last]);
    return over(o, t, v_fourier_half(o, x, t->dims[last], scale_of(t, last)), last, true);
}

static struct val *complex_to_real(struct op *o, const struct transform *t, struct val *z)
{
    const size_t last = t->n - 1;
    const int64_t n = t->sizes[last];
    tell_steps(t);
    z = over(o, t, z, last, false);
    z = fitted(o, z, t->dims[last], n / 2 + 1);
    return v_fourier_real(o, z, t->dims[last], n, scale_of(t, last));
}

static struct val *conjugate(struct op *o, struct val *z)
{
    return v_join(o, v_part(o, z, 0), v_neg(o, v_part(o, z, 1)));
}

/* ---- Arguments of torch.fft ------------------------------------------------------------------ */

static bool find_scaling(struct op *o, bool forward, struct transform *t)
{
    const char *norm = arg_text(o, "norm");
    const bool by_forward = norm && strcmp(norm, "forward") == 0;
    if (norm && strcmp(norm, "ortho") == 0)
        t->scaling = SCALE_ROOT;
    else if (!norm || by_forward || strcmp(norm, "backward") == 0)
        t->scaling = by_forward == forward ? SCALE_LENGTH : SCALE_NONE;
    else
        op_fail(o, PLUMB_E_ARG, "%s: no norm '%s'", o->call->name, norm);
    return !o->failed;
}

static unsigned own_rank(const struct val *x)
{
    return x->rank - x->is_complex;
}

/* Which of `rank` dimensions; half of the last may be given, of n numbers 1 + n / 2. */
static bool add_dim(struct op *o, struct transform *t, int64_t dim, int64_t size, bool half)
{
    const int64_t rank = own_rank(t->x);
    if (dim < -rank || dim >= rank || t->n == OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "%s: dimension %lld of a tensor with %lld", o->call->name,
                (long long)dim, (long long)rank);
        return false;
    }
    const unsigned at = (unsigned)(dim < 0 ? dim + rank : dim);
    for (size_t k = 0; k < t->n; k++)
        if (t->dims[k] == at) {
            op_fail(o, PLUMB_E_ARG, "%s: dimension %u twice", o->call->name, at);
            return false;
        }
    if (size == -1)
        size = half ? 2 * (t->x->shape[at] - 1) : t->x->shape[at];
    if (size < 1) {
        op_fail(o, PLUMB_E_ARG, "%s: a transform of %lld numbers", o->call->name, (long long)size);
        return false;
    }
    t->dims[t->n] = at;
    t->sizes[t->n++] = size;
    return true;
}

static bool take_input(struct op *o, struct transform *t)
{
    *t = (struct transform){.x = arg_tensor(o, "input")};
    if (t->x && t->x->f && t->x->dtype != PLUMB_F32 && t->x->dtype != PLUMB_F64)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: not of %s", o->call->name,
                plumb_dtype_info(t->x->dtype)->name);
    return t->x && !o->failed;
}

/* n, dim, norm. */
static bool take_one(struct op *o, bool forward, bool half, struct transform *t)
{
    return take_input(o, t) && find_scaling(o, forward, t) &&
           add_dim(o, t, arg_int(o, "dim"), arg_given(o, "n") ? arg_int(o, "n") : -1, half);
}

/* s, dim, norm. */
static bool take_several(struct op *o, bool forward, bool half, struct transform *t)
{
    size_t n_sizes, n_dims;
    const int64_t *sizes = arg_ints(o, "s", &n_sizes), *dims = arg_ints(o, "dim", &n_dims);
    if (!take_input(o, t) || !find_scaling(o, forward, t))
        return false;
    const bool any = arg_given(o, "dim");
    const size_t n = any ? n_dims : arg_given(o, "s") ? n_sizes : own_rank(t->x);
    if (arg_given(o, "s") && n_sizes != n)
        op_fail(o, PLUMB_E_ARG, "%s: %zu sizes for %zu dimensions", o->call->name, n_sizes, n);
    for (size_t k = 0; k < n && !o->failed; k++)
        add_dim(o, t, any ? dims[k] : (int64_t)k - (int64_t)n, arg_given(o, "s") ? sizes[k] : -1,
                half && k + 1 == n);
    if (!t->n && !o->failed)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: over no dimension", o->call->name);
    return !o->failed;
}

typedef bool take_fn(struct op *o, bool forward, bool half, struct transform *t);

static void run_c2c(struct op *o, take_fn *take, bool forward)
{
    struct transform t;
    if (take(o, forward, false, &t))
        op_return_complex(o, complex_to_complex(o, &t, forward));
}

static void run_fft(struct op *o)
{
    run_c2c(o, take_one, true);
}

static void run_ifft(struct op *o)
{
    run_c2c(o, take_one, false);
}

static void run_fftn(struct op *o)
{
    run_c2c(o, take_several, true);
}

static void run_ifftn(struct op *o)
{
    run_c2c(o, take_several, false);
}

/* inverse: ihfft, the conjugate with the scale of the way back. */
static void run_r2c(struct op *o, take_fn *take, bool inverse)
{
    struct transform t;
    if (!take(o, !inverse, false, &t))
        return;
    struct val *z = real_to_complex(o, &t);
    op_return_complex(o, inverse ? conjugate(o, z) : z);
}

static void run_rfft(struct op *o)
{
    run_r2c(o, take_one, false);
}

static void run_ihfft(struct op *o)
{
    run_r2c(o, take_one, true);
}

static void run_rfftn(struct op *o)
{
    run_r2c(o, take_several, false);
}

static void run_ihfftn(struct op *o)
{
    run_r2c(o, take_several, true);
}

/* forward: hfft, of the conjugate. */
static void run_c2r(struct op *o, take_fn *take, bool forward)
{
    struct transform t;
    if (!take(o, forward, true, &t))
        return;
    struct val *z = v_complex(o, t.x);
    op_return(o, complex_to_real(o, &t, forward ? conjugate(o, z) : z));
}

static void run_irfft(struct op *o)
{
    run_c2r(o, take_one, false);
}

static void run_hfft(struct op *o)
{
    run_c2r(o, take_one, true);
}

static void run_irfftn(struct op *o)
{
    run_c2r(o, take_several, false);
}

static void run_hfftn(struct op *o)
{
    run_c2r(o, take_several, true);
}

/* ---- Arguments of aten ----------------------------------------------------------------------- */

/* The last dimension has `last` numbers; -1: as many as there are. */
static bool take_aten(struct op *o, int64_t last, struct transform *t)
{
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n), by = arg_int(o, "normalization");
    if (!take_input(o, t))
        return false;
    t->scaling = by == 1 ? SCALE_ROOT : by == 2 ? SCALE_LENGTH : SCALE_NONE;
    for (size_t k = 0; k < n && !o->failed; k++)
        add_dim(o, t, dims[k], k + 1 == n ? last : -1, false);
    if (!t->n && !o->failed)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: over no dimension", o->call->name);
    return !o->failed;
}

static void run_aten_c2c(struct op *o)
{
    struct transform t;
    if (take_aten(o, -1, &t))
        op_return_complex(o, complex_to_complex(o, &t, arg_bool(o, "forward")));
}

static void run_aten_r2c(struct op *o)
{
    struct transform t;
    if (take_aten(o, -1, &t))
        op_return_complex(o, arg_bool(o, "onesided") ? real_to_complex(o, &t)
                                                     : complex_to_complex(o, &t, true));
}

static void run_aten_c2r(struct op *o)
{
    struct transform t;
    if (take_aten(o, arg_int(o, "last_dim_size"), &t))
        op_return(o, complex_to_real(o, &t, v_complex(o, t.x)));
}

/* ---- Orders and frequencies ------------------------------------------------------------------ */

/* Frequency 0 to the middle, or back. */
static void shift(struct op *o, bool back)
{
    struct val *x = arg_tensor(o, "input");
    size_t n;
    const int64_t *dims = arg_ints(o, "dim", &n);
    const bool all = !arg_given(o, "dim");
    const size_t count = x ? (all ? x->rank : n) : 0;
    for (size_t k = 0; k < count && x && !o->failed; k++) {
        const unsigned dim = all ? (unsigned)k : val_dim(o, x, dims[k]);
        const int64_t size = x->shape[dim], by = back ? size / 2 : size - size / 2;
        int64_t *places = op_alloc(o, size + 1, sizeof *places);
        for (int64_t j = 0; places && j < size; j++)
            places[j] = (j + by) % size;
        x = v_pick_dim(o, x, dim, size, places);
    }
    op_return(o, x);
}

static void run_fftshift(struct op *o)
{
    shift(o, false);
}

static void run_ifftshift(struct op *o)
{
    shift(o, true);
}

static void frequencies(struct op *o, bool half)
{
    const int64_t n = arg_int(o, "n"), count = half ? n / 2 + 1 : n;
    enum plumb_dtype dtype = arg_dtype(o, "dtype");
    dtype = dtype == PLUMB_DTYPE_COUNT ? PLUMB_F32 : dtype;
    if (n < 1 || !dtype_is_float(dtype)) {
        op_fail(o, PLUMB_E_ARG, "%s of %lld in %s", o->call->name, (long long)n,
                plumb_dtype_info(dtype)->name);
        return;
    }
    struct val *out = val_new(o, dtype, 1, &count);
    for (int64_t k = 0; out && k < count; k++)
        out->f[k] =
            (real)(half || k < (n + 1) / 2 ? k : k - n) / ((real)n * (real)arg_number(o, "d"));
    if (out)
        op_between(o, out->f, count); /* many multiply by what they divided 1 by */
    op_return(o, out);
}

static void run_fftfreq(struct op *o)
{
    frequencies(o, false);
}

static void run_rfftfreq(struct op *o)
{
    frequencies(o, true);
}

#define ONE "(Tensor input|self, int? n=None, int dim=-1, str? norm=None)"
#define TWO "(Tensor input|self, int[]? s=None, int[] dim=[-2, -1], str? norm=None)"
#define SEVERAL "(Tensor input|self, int[]? s=None, int[]? dim=None, str? norm=None)"
#define FREQUENCIES "(int n, float d=1.0, *, dtype? dtype=None)"
#define FAMILY(name, run, about)                                                                   \
    {"fft." #name " fft_" #name, "fft." #name ONE, run_##run, OP_COMPLEX, about},                  \
        {"fft." #name "2 fft_" #name "2", "fft." #name "2" TWO, run_##run##n, OP_COMPLEX, NULL},   \
    {                                                                                              \
        "fft." #name "n fft_" #name "n", "fft." #name "n" SEVERAL, run_##run##n, OP_COMPLEX, NULL  \
    }

const struct op_def op_fft[] = {
    FAMILY(fft, fft, "sum over j of input[j] exp(-2 pi i j k / n)"),
    FAMILY(ifft, ifft, "1 / n sum over j of input[j] exp(2 pi i j k / n)"),
    FAMILY(rfft, rfft, "fft of real numbers, the first n / 2 + 1"),
    FAMILY(irfft, irfft, "ifft of numbers whose other half is conjugate; real"),
    FAMILY(hfft, hfft, "fft of numbers whose other half is conjugate; real"),
    FAMILY(ihfft, ihfft, "ifft of real numbers, the first n / 2 + 1"),
    {"_fft_c2c", "_fft_c2c(Tensor input|self, int[] dim, int normalization, bool forward)",
     run_aten_c2c, OP_COMPLEX, "fft or ifft; normalization 1: by the root of n, 2: by n"},
    {"_fft_r2c", "_fft_r2c(Tensor input|self, int[] dim, int normalization, bool onesided)",
     run_aten_r2c, OP_COMPLEX, "fft of real numbers, all of it or the first half"},
    {"_fft_c2r", "_fft_c2r(Tensor input|self, int[] dim, int normalization, int last_dim_size)",
     run_aten_c2r, OP_COMPLEX, "ifft of numbers whose other half is conjugate"},
    {"fft.fftshift fft_fftshift", "fft.fftshift(Tensor input|self, int[]? dim=None)", run_fftshift,
     OP_EXACT, "frequency 0 in the middle"},
    {"fft.ifftshift fft_ifftshift", "fft.ifftshift(Tensor input|self, int[]? dim=None)",
     run_ifftshift, OP_EXACT, "frequency 0 at the beginning again"},
    {"fft.fftfreq fft_fftfreq", "fft.fftfreq" FREQUENCIES, run_fftfreq, OP_NO_GRAD,
     "k / (n d), negative from the middle on"},
    {"fft.rfftfreq fft_rfftfreq", "fft.rfftfreq" FREQUENCIES, run_rfftfreq, OP_NO_GRAD,
     "k / (n d) for k up to n / 2"},
    {0},
};
