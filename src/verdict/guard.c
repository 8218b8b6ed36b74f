/* Outputs of a kernel against those of the reference: the definition, number by number. */
#include "task/guard/guard.h"

#include "plumb/metric.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024 };

static const char *const fault_names[] = {
    [PLUMB_FAULT_NONE] = "",
    [PLUMB_FAULT_NOT_CLOSE] = "not_close",
    [PLUMB_FAULT_SPECIAL] = "special_value_mismatch",
    [PLUMB_FAULT_SHAPE] = "shape_mismatch",
    [PLUMB_FAULT_DTYPE] = "dtype_mismatch",
    [PLUMB_FAULT_MISSING] = "missing_output",
    [PLUMB_FAULT_COUNT] = "output_count_mismatch",
    [PLUMB_FAULT_INPUT] = "input_changed",
};
_Static_assert(sizeof fault_names / sizeof *fault_names == PLUMB_FAULTS, "a name for each fault");

const char *plumb_fault_name(enum plumb_fault fault)
{
    return fault_names[fault];
}

/* A pair of tensors under comparison. */
struct pair {
    const struct plumb_tensor *a, *b;
    const double *noise; /* NULL, or by how much each element may be off besides */
    bool raised;
    double rtol, atol;
    struct plumb_guard_verdict *out;
    bool close;
};

static void say(struct plumb_guard_verdict *out, enum plumb_fault fault, struct buf *text)
{
    out->fault = fault;
    snprintf(out->message, sizeof out->message, "%s", text->data ? text->data : "");
    buf_free(text);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* "[0, 3]", with "real" or "imaginary" for complex. */
static void text_place(struct buf *out, const struct plumb_tensor *tensor, uint64_t number)
{
    const unsigned parts = plumb_dtype_parts(tensor->dtype);
    uint64_t element = number / parts, left = tensor->count;
    buf_text(out, "[");
    for (unsigned k = 0; k < tensor->rank; k++) {
        left /= (uint64_t)tensor->shape[k];
        buf_printf(out, "%s%" PRIu64, k ? ", " : "", element / left);
        element %= left;
    }
    buf_text(out, "]");
    if (parts == 2)
        buf_text(out, number % 2 ? " (imaginary part)" : " (real part)");
}

static void note_special(struct pair *p, uint64_t number, double a, double b)
{
    struct plumb_guard_verdict *out = p->out;
    if (out->fault == PLUMB_FAULT_SPECIAL)
        return;
    struct buf text = {0};
    spell_number(&text, a);
    buf_text(&text, " instead of ");
    spell_number(&text, b);
    buf_text(&text, " at ");
    text_place(&text, p->a, number);
    out->index = number;
    out->actual = a;
    out->expected = b;
    say(out, PLUMB_FAULT_SPECIAL, &text);
}

/* The reference as the output's type would hold it; only infinities matter. */
static double as_stored(const struct pair *p, double b)
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

static void compare_number(struct pair *p, uint64_t number, double a, double b, double noise)
{
    if (isfinite(a) && isfinite(b)) {
        const double error = fabs(a - b), relative = error / (fabs(b) + 1e-12);
        p->close &= error <= p->atol + p->rtol * fabs(b) + noise;
        if (error > p->out->max_abs)
            p->out->max_abs = error;
        if (relative > p->out->max_rel)
            p->out->max_rel = relative;
    } else if (!same_special(a, b) && !same_special(a, as_stored(p, b))) {
        note_special(p, number, a, b);
    }
}

static void compare_reals(struct pair *p)
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
static void compare_integers(struct pair *p)
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
static bool same_type(const struct pair *p)
{
    const enum plumb_kind a = plumb_dtype_info(p->a->dtype)->kind;
    const enum plumb_kind b = plumb_dtype_info(p->b->dtype)->kind;
    return p->raised ? a == b || (is_integer(a) && is_integer(b)) : p->a->dtype == p->b->dtype;
}

static bool same_shape(const struct plumb_tensor *a, const struct plumb_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

static void say_shapes(struct pair *p)
{
    struct buf text = {0};
    spell_shape(&text, p->a);
    buf_text(&text, " instead of ");
    spell_shape(&text, p->b);
    say(p->out, PLUMB_FAULT_SHAPE, &text);
}

static void say_types(struct pair *p)
{
    struct buf text = {0};
    buf_printf(&text, "torch.%s instead of torch.%s", plumb_dtype_info(p->a->dtype)->name,
               plumb_dtype_info(p->b->dtype)->name);
    if (p->raised)
        buf_text(&text, " or another type of that kind");
    say(p->out, PLUMB_FAULT_DTYPE, &text);
}

static enum plumb_code measure_ulps(struct pair *p, struct plumb_error *err)
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

static enum plumb_code compare_tensors(struct pair *p, struct plumb_error *err)
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
        say(p->out, PLUMB_FAULT_NOT_CLOSE, &text);
    }
    return PLUMB_OK;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

/* Tensors and numbers of outputs, lists opened; the number of all, of which the first `room` are
 * stored. */
static size_t flatten(const struct plumb_arg *args, size_t n, const struct plumb_arg **out,
                      size_t at, size_t room)
{
    for (size_t k = 0; k < n; k++) {
        if (args[k].kind == PLUMB_ARG_LIST) {
            at = flatten(args[k].items, args[k].n_items, out, at, room);
            continue;
        }
        if (at < room)
            out[at] = &args[k];
        at++;
    }
    return at;
}

/* A plain number as a tensor of one element; false for what is neither. */
static bool as_tensor(const struct plumb_arg *arg, struct plumb_tensor *room,
                      const struct plumb_tensor **out)
{
    *out = room;
    switch (arg->kind) {
    case PLUMB_ARG_TENSOR:
        *out = arg->tensor;
        return true;
    case PLUMB_ARG_BOOL:
    case PLUMB_ARG_INT:
        plumb_tensor_init(room, PLUMB_I64, 0, NULL, NULL);
        room->data = &arg->integer;
        return true;
    case PLUMB_ARG_FLOAT:
        plumb_tensor_init(room, PLUMB_F64, 0, NULL, NULL);
        room->data = &arg->number;
        return true;
    default:
        return false;
    }
}

static enum plumb_code compare_output(struct pair *p, const struct plumb_arg *a,
                                      const struct plumb_arg *b, const struct noise *noise,
                                      struct plumb_error *err)
{
    struct plumb_tensor rooms[2];
    const bool has_a = as_tensor(a, &rooms[0], &p->a), has_b = as_tensor(b, &rooms[1], &p->b);
    enum plumb_code code = PLUMB_OK;
    if (has_a && has_b) {
        const size_t k = p->out->output;
        p->noise = noise && k < noise->n && noise->counts[k] == p->a->count ? noise->of[k] : NULL;
        code = compare_tensors(p, err);
    } else if (has_a != has_b) {
        struct buf text = {0};
        spell_arg(&text, a);
        buf_text(&text, " instead of ");
        spell_arg(&text, b);
        say(p->out, PLUMB_FAULT_MISSING, &text);
    }
    p->a = p->b = NULL;
    return code;
}

enum plumb_code plumb_outputs_compare(const struct plumb_arg *outputs, size_t n_outputs,
                                      const struct plumb_arg *reference, size_t n_reference,
                                      bool raised, double rtol, double atol,
                                      struct plumb_guard_verdict *out, struct plumb_error *err)
{
    return outputs_compare(outputs, n_outputs, reference, n_reference, raised, rtol, atol, NULL,
                           out, err);
}

enum plumb_code outputs_compare(const struct plumb_arg *outputs, size_t n_outputs,
                                const struct plumb_arg *reference, size_t n_reference, bool raised,
                                double rtol, double atol, const struct noise *noise,
                                struct plumb_guard_verdict *out, struct plumb_error *err)
{
    *out = (struct plumb_guard_verdict){.rtol = rtol, .atol = atol, .max_ulp = NAN};
    const size_t n = flatten(outputs, n_outputs, NULL, 0, 0);
    const size_t wanted = flatten(reference, n_reference, NULL, 0, 0);
    if (n != wanted) {
        struct buf text = {0};
        buf_printf(&text, "%zu outputs instead of %zu", n, wanted);
        out->output = n < wanted ? n : wanted;
        say(out, PLUMB_FAULT_COUNT, &text);
        return PLUMB_OK;
    }
    const struct plumb_arg **flat = calloc(n ? 2 * n : 1, sizeof *flat);
    if (!flat)
        return plumb_no_memory(err);
    flatten(outputs, n_outputs, flat, 0, n);
    flatten(reference, n_reference, flat + n, 0, n);
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code && out->fault == PLUMB_FAULT_NONE; k++) {
        struct plumb_guard_verdict one = {.rtol = rtol, .atol = atol, .max_ulp = NAN, .output = k};
        struct pair p = {.raised = raised, .rtol = rtol, .atol = atol, .out = &one};
        code = compare_output(&p, flat[k], flat[n + k], noise, err);
        if (one.fault == PLUMB_FAULT_NONE) {
            out->max_abs = fmax(out->max_abs, one.max_abs);
            out->max_rel = fmax(out->max_rel, one.max_rel);
            out->max_ulp = fmax(out->max_ulp, one.max_ulp);
        } else {
            *out = one;
        }
    }
    free(flat);
    return code;
}
