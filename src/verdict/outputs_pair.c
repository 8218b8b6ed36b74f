/* One output of a kernel against that of the reference: the definition, number by number. */
#include "verdict/outputs.h"

#include "plumb/metric.h"
#include "verdict/spell.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024 };

/* ---- Numbers --------------------------------------------------------------------------------- */

/* "[0, 3]", with "real" or "imaginary" for complex. */
static void say_place(struct buf *out, const struct plumb_tensor *tensor, uint64_t number)
{
    spell_place(out, tensor, number);
    if (plumb_dtype_parts(tensor->dtype) == 2)
        buf_text(out, number % 2 ? " (imaginary part)" : " (real part)");
}

static void note_special(struct outputs_pair *p, uint64_t number, double a, double b)
{
    struct plumb_outputs_verdict *out = p->out;
    if (out->fault == PLUMB_FAULT_SPECIAL)
        return;
    struct buf text = {0};
    spell_number(&text, a);
    buf_text(&text, " instead of ");
    spell_number(&text, b);
    buf_text(&text, " at ");
    say_place(&text, p->a, number);
    out->index = number;
    out->actual = a;
    out->expected = b;
    outputs_say(out, PLUMB_FAULT_SPECIAL, &text);
}

/* The reference as the output's type would hold it; only infinities matter. */
static double as_stored(const struct outputs_pair *p, double b)
{
    const enum plumb_dtype dtype = p->a->dtype;
    const struct plumb_dtype_info *info = plumb_dtype_info(dtype);
    if (!p->raised || info->kind != PLUMB_KIND_FLOAT)
        return b;
    return plumb_round_to(dtype, b);
}

static bool same_special(double a, double b)
{
    return (isnan(a) && isnan(b)) || (isinf(a) && a == b);
}

static void compare_number(struct outputs_pair *p, uint64_t number, double a, double b,
                           double noise)
{
    if (isfinite(a) && isfinite(b)) {
        const double error = fabs(a - b), relative = error / (fabs(b) + 1e-12);
        p->close &= error <= close_room(&p->limits, b) + noise;
        if (error > p->out->max_abs)
            p->out->max_abs = error;
        if (relative > p->out->max_rel)
            p->out->max_rel = relative;
    } else if (!same_special(a, b) && !same_special(a, as_stored(p, b))) {
        note_special(p, number, a, b);
    }
}

static void compare_reals(struct outputs_pair *p)
{
    double a[2 * BLOCK], b[2 * BLOCK];
    const unsigned parts = plumb_dtype_parts(p->a->dtype);
    for (uint64_t first = 0; first < p->a->count; first += BLOCK) {
        const uint64_t left = p->a->count - first;
        const size_t n = left < BLOCK ? (size_t)left : BLOCK;
        plumb_tensor_to_f64(p->a, first, n, a);
        plumb_tensor_to_f64(p->b, first, n, b);
        for (size_t k = 0; k < n * parts; k++)
            compare_number(p, first * parts + k, a[k], b[k],
                           p->noise ? p->noise[first + k / parts] : 0);
    }
}

/* ---- Integers -------------------------------------------------------------------------------- */

/* Elements as 64 bits each: sign-extended, or not for types without a sign. */
static void load_integers(const struct plumb_tensor *tensor, uint64_t first, size_t n,
                          uint64_t *out)
{
    unsigned char bytes[BLOCK * 8];
    const struct plumb_dtype_info *info = plumb_dtype_info(tensor->dtype);
    const size_t size = info->bits / 8u;
    plumb_tensor_gather(tensor, first, n, bytes);
    for (size_t k = 0; k < n; k++) {
        uint64_t value = 0;
        for (size_t j = 0; j < size; j++) {
            const size_t from = tensor->swap ? j : size - 1 - j;
            value = value << 8 | bytes[k * size + from];
        }
        const unsigned unused = 64u - info->bits;
        if (info->kind == PLUMB_KIND_INT)
            value = (uint64_t)((int64_t)(value << unused) >> unused);
        else if (info->kind == PLUMB_KIND_BOOL)
            value = value != 0;
        out[k] = value;
    }
}

static double distance(uint64_t a, uint64_t b, bool is_signed)
{
    const bool larger = is_signed ? (int64_t)a > (int64_t)b : a > b;
    return (double)(larger ? a - b : b - a);
}

/* Integers are compared exactly: float64 does not tell neighbours beyond 2^53 apart, and one more
 * or less is no rounding. */
static void compare_integers(struct outputs_pair *p)
{
    uint64_t a[BLOCK], b[BLOCK];
    const bool is_signed = plumb_dtype_info(p->a->dtype)->kind == PLUMB_KIND_INT;
    for (uint64_t first = 0; first < p->a->count; first += BLOCK) {
        const uint64_t left = p->a->count - first;
        const size_t n = left < BLOCK ? (size_t)left : BLOCK;
        load_integers(p->a, first, n, a);
        load_integers(p->b, first, n, b);
        for (size_t k = 0; k < n; k++) {
            if (a[k] == b[k])
                continue;
            const double error = distance(a[k], b[k], is_signed);
            const double size = fabs(is_signed ? (double)(int64_t)b[k] : (double)b[k]);
            p->close = false;
            p->out->max_abs = fmax(p->out->max_abs, error);
            p->out->max_rel = fmax(p->out->max_rel, error / (size + 1e-12));
        }
    }
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static bool is_integer(enum plumb_kind kind)
{
    return kind == PLUMB_KIND_INT || kind == PLUMB_KIND_UINT;
}

/* A raised reference has lost the width of its type, but not its kind. */
static bool same_type(const struct outputs_pair *p)
{
    const enum plumb_kind a = plumb_dtype_info(p->a->dtype)->kind;
    const enum plumb_kind b = plumb_dtype_info(p->b->dtype)->kind;
    return p->raised ? a == b || (is_integer(a) && is_integer(b)) : p->a->dtype == p->b->dtype;
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static void say_shapes(struct outputs_pair *p)
{
    struct buf text = {0};
    spell_shape(&text, p->a);
    buf_text(&text, " instead of ");
    spell_shape(&text, p->b);
    outputs_say(p->out, PLUMB_FAULT_SHAPE, &text);
}

static void say_types(struct outputs_pair *p)
{
    struct buf text = {0};
    buf_printf(&text, "torch.%s instead of torch.%s", plumb_dtype_info(p->a->dtype)->name,
               plumb_dtype_info(p->b->dtype)->name);
    if (p->raised)
        buf_text(&text, " or another type of that kind");
    outputs_say(p->out, PLUMB_FAULT_DTYPE, &text);
}

static enum plumb_code measure_ulps(struct outputs_pair *p, struct plumb_error *err)
{
    struct plumb_metric_spec spec;
    struct plumb_metrics metrics;
    plumb_metric_spec_init(&spec);
    spec.groups |= PLUMB_G_ULP;
    enum plumb_code code = plumb_metric_pair(&spec, p->a, p->b, &metrics, err);
    /* An infinity that the type forced is no error here, but is one to the engine. */
    if (!code && (isfinite(metrics.max_ulp) || p->out->fault != PLUMB_FAULT_NONE))
        p->out->max_ulp = metrics.max_ulp;
    return code;
}

enum plumb_code outputs_pair_compare(struct outputs_pair *p, struct plumb_error *err)
{
    if (!same_shape(p->a, p->b)) {
        say_shapes(p);
        return PLUMB_OK;
    }
    if (!same_type(p)) {
        say_types(p);
        return PLUMB_OK;
    }
    const enum plumb_kind kind = plumb_dtype_info(p->a->dtype)->kind;
    if (plumb_dtype_info(p->a->dtype)->bits < 8)
        return plumb_fail(err, PLUMB_E_UNSUPPORTED, "outputs of packed 4-bit types");
    p->close = true;
    if (kind == PLUMB_KIND_FLOAT || kind == PLUMB_KIND_COMPLEX) {
        compare_reals(p);
        if (p->a->count) {
            enum plumb_code code = measure_ulps(p, err);
            if (code)
                return code;
        }
    } else {
        compare_integers(p);
    }
    if (!p->close && p->out->fault == PLUMB_FAULT_NONE) {
        struct buf text = {0};
        /* fabs: a NaN without its sign */
        buf_printf(&text, "max_abs: %e, max_rel: %e", fabs(p->out->max_abs), fabs(p->out->max_rel));
        outputs_say(p->out, PLUMB_FAULT_NOT_CLOSE, &text);
    }
    return PLUMB_OK;
}
