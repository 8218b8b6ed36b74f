/* Two weights compared piece by piece, joined from their parts on the way. */
#include "task/checkpoint/values.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16 * PLUMB_METRIC_BLOCK }; /* numbers that are joined at a time */

/* A run of elements that the joined tensor takes from one part: of each of its rows of `row`
 * elements, those from start on. */
struct span {
    size_t part;
    uint64_t row, start, length;
};

/* One weight, opened. A row of the joined tensor is all spans, one after the other. */
struct side {
    struct plumb_payload *payloads;
    struct plumb_file_guard *guards;
    size_t count; /* of both */
    struct span *spans;
    size_t span_count;
    uint64_t row, elements; /* of the joined tensor */
    enum plumb_dtype dtype; /* in which it is compared */
    bool direct;            /* the one part is compared as it lies */
    void *joined;           /* room for a piece: float, or double where dtype is PLUMB_F64 */
    size_t at_span;
    uint64_t at_row, at; /* where the next piece begins: row, and element of the span */
};

/* Types that float32 holds exactly, and so may be compared without a copy. */
static bool is_exact(enum plumb_dtype dtype)
{
    return dtype == PLUMB_F32 || dtype == PLUMB_F16 || dtype == PLUMB_BF16;
}

/* Types that float32 does not hold: rounded to it, what differs may be the same. */
static bool is_wide(const struct checkpoint_weight *weight)
{
    const struct checkpoint_part *part = &weight->parts[0];
    enum plumb_dtype dtype = plumb_run_record(part->run, part->record)->dtype;
    enum plumb_kind kind = plumb_dtype_info(dtype)->kind;
    return dtype == PLUMB_F64 ||
           ((kind == PLUMB_KIND_INT || kind == PLUMB_KIND_UINT) && dtype != PLUMB_I4);
}

static void add_span(struct side *side, size_t part, uint64_t row, uint64_t start, uint64_t length)
{
    side->spans[side->span_count++] =
        (struct span){.part = part, .row = row, .start = start, .length = length};
    side->row += length;
}

/* Which elements of which part a row of the joined tensor is made of. */
static void lay_out(struct side *side, const struct checkpoint_weight *weight)
{
    if (weight->join == CKPT_GATED) {
        for (unsigned half = 0; half < 2; half++)
            for (size_t i = 0; i < side->count; i++) {
                uint64_t count = side->payloads[i].tensor.count;
                add_span(side, i, count, half * (count / 2), count / 2);
            }
        return;
    }
    for (size_t i = 0; i < side->count; i++) {
        const struct plumb_tensor *tensor = &side->payloads[i].tensor;
        uint64_t rows = weight->join == CKPT_AXIS1 ? (uint64_t)tensor->shape[0] : 1;
        uint64_t row = rows ? tensor->count / rows : 0;
        add_span(side, i, row, 0, row);
    }
}

static void side_close(struct side *side)
{
    for (size_t i = 0; i < side->count; i++)
        plumb_payload_release(&side->payloads[i]);
    free(side->payloads);
    free(side->guards);
    free(side->spans);
    free(side->joined);
}

/* How the values are read: as they lie, or joined. */
static bool choose_form(struct side *side, bool wide)
{
    const struct plumb_tensor *tensor = &side->payloads[0].tensor;
    side->direct =
        side->count == 1 && tensor->dense && !tensor->swap && (wide || is_exact(tensor->dtype));
    side->dtype = side->direct ? tensor->dtype : wide ? PLUMB_F64 : PLUMB_F32;
    side->joined = side->direct ? NULL : malloc(PIECE * sizeof(double));
    return side->direct || side->joined;
}

static enum plumb_code side_open(struct side *side, const struct checkpoint_weight *weight,
                                 bool wide, struct plumb_error *err)
{
    *side = (struct side){.dtype = PLUMB_F32, .elements = weight->elements};
    side->payloads = calloc(weight->count, sizeof *side->payloads);
    side->guards = calloc(weight->count, sizeof *side->guards);
    side->spans = calloc(2 * weight->count, sizeof *side->spans);
    if (!side->payloads || !side->guards || !side->spans) {
        side_close(side);
        return plumb_no_memory(err);
    }
    enum plumb_code code = PLUMB_OK;
    while (!code && side->count < weight->count) {
        const struct checkpoint_part *part = &weight->parts[side->count];
        code = plumb_run_load(part->run, part->record, &side->payloads[side->count], err);
        if (!code)
            side->count++;
    }
    for (size_t i = 0; i < side->count && !code; i++)
        if (plumb_dtype_parts(side->payloads[i].tensor.dtype) != 1)
            code = plumb_fail(err, PLUMB_E_UNSUPPORTED,
                              "complex numbers are no weights; plumb compare takes them");
    if (!code) {
        lay_out(side, weight);
        if (!choose_form(side, wide))
            code = plumb_no_memory(err);
    }
    if (code)
        side_close(side);
    return code;
}

static void side_enter(struct side *side)
{
    for (size_t i = 0; i < side->count; i++)
        plumb_file_guard_enter(&side->guards[i], &side->payloads[i].file);
}

/* True when a file shrank meanwhile. */
static bool side_leave(struct side *side)
{
    bool hit = false;
    for (size_t i = side->count; i-- > 0;)
        hit |= plumb_file_guard_leave(&side->guards[i]);
    return hit;
}

static void to_float(const struct plumb_tensor *tensor, uint64_t first, size_t count, float *out)
{
    if (tensor->dtype == PLUMB_F32 && !tensor->swap) {
        plumb_tensor_gather(tensor, first, count, out);
        return;
    }
    double wide[PLUMB_METRIC_BLOCK];
    for (size_t done = 0; done < count;) {
        size_t n = count - done < PLUMB_METRIC_BLOCK ? count - done : PLUMB_METRIC_BLOCK;
        plumb_tensor_to_f64(tensor, first + done, n, wide);
        for (size_t i = 0; i < n; i++)
            out[done + i] = (float)wide[i];
        done += n;
    }
}

/* Elements of a part, into the room for joined ones from at on. */
static void join(struct side *side, const struct plumb_tensor *tensor, uint64_t first, size_t count,
                 size_t at)
{
    if (side->dtype == PLUMB_F64)
        plumb_tensor_to_f64(tensor, first, count, (double *)side->joined + at);
    else
        to_float(tensor, first, count, (float *)side->joined + at);
}

/* The next count elements, as a tensor that is valid until the call after. */
static void next_piece(struct side *side, uint64_t at, size_t count, struct plumb_tensor *out)
{
    int64_t shape[1] = {(int64_t)count};
    plumb_tensor_init(out, side->dtype, 1, shape, NULL);
    if (side->direct) {
        uint64_t skip = 0;
        plumb_dtype_bytes(side->dtype, at, &skip);
        out->data = (const unsigned char *)side->payloads[0].tensor.data + skip;
        return;
    }
    for (size_t done = 0; done < count;) {
        const struct span *span = &side->spans[side->at_span];
        uint64_t left = span->length - side->at;
        size_t n = left < count - done ? (size_t)left : count - done;
        if (n)
            join(side, &side->payloads[span->part].tensor,
                 side->at_row * span->row + span->start + side->at, n, done);
        done += n;
        side->at += n;
        if (side->at == span->length) {
            side->at = 0;
            if (++side->at_span == side->span_count) {
                side->at_span = 0;
                side->at_row++;
            }
        }
    }
    out->data = side->joined;
}

static enum plumb_code shrank(const struct checkpoint_weight *weight, struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_IO, "a file of %s shrank while it was read",
                      weight->parts[0].where);
}

enum plumb_code values_compare(const struct checkpoint_weight *a, const struct checkpoint_weight *b,
                               const struct plumb_metric_spec *spec,
                               const struct checkpoint_profile *rules, struct plumb_metrics *out,
                               struct plumb_error *err)
{
    struct side left, right;
    /* A copy in float32 is as good as it can be. */
    bool wide = !rules->as_float32 && is_wide(a) && is_wide(b);
    enum plumb_code code = side_open(&left, a, wide, err);
    if (code)
        return code;
    code = side_open(&right, b, wide, err);
    if (code) {
        side_close(&left);
        return code;
    }
    struct plumb_metric_state *state =
        plumb_metric_new(spec, left.dtype, right.dtype, left.elements);
    if (!state) {
        code = plumb_no_memory(err);
        goto out;
    }
    side_enter(&left);
    side_enter(&right);
    for (uint64_t at = 0; at < left.elements; at += PIECE) {
        struct plumb_tensor t, g;
        uint64_t rest = left.elements - at;
        size_t n = rest < PIECE ? (size_t)rest : PIECE;
        next_piece(&left, at, n, &t);
        next_piece(&right, at, n, &g);
        plumb_metric_update(state, &t, &g, 0, n);
    }
    bool right_shrank = side_leave(&right), left_shrank = side_leave(&left);
    if (left_shrank || right_shrank)
        code = shrank(left_shrank ? a : b, err);
    else
        plumb_metric_finish(state, out);
out:
    plumb_metric_free(state);
    side_close(&right);
    side_close(&left);
    return code;
}

enum plumb_code values_are_zero(const struct checkpoint_weight *weight,
                                const struct checkpoint_profile *rules, bool *zero,
                                struct plumb_error *err)
{
    struct side side;
    enum plumb_code code = side_open(&side, weight, false, err);
    if (code)
        return code;
    *zero = true;
    side_enter(&side);
    for (size_t i = 0; i < side.count && *zero; i++) {
        const struct plumb_tensor *tensor = &side.payloads[i].tensor;
        double wide[PLUMB_METRIC_BLOCK];
        for (uint64_t at = 0; at < tensor->count && *zero; at += PLUMB_METRIC_BLOCK) {
            uint64_t rest = tensor->count - at;
            size_t n = rest < PLUMB_METRIC_BLOCK ? (size_t)rest : PLUMB_METRIC_BLOCK;
            plumb_tensor_to_f64(tensor, at, n, wide);
            for (size_t k = 0; k < n && *zero; k++)
                *zero = (rules->as_float32 ? (double)(float)wide[k] : wide[k]) == 0;
        }
    }
    if (side_leave(&side))
        code = shrank(weight, err);
    side_close(&side);
    return code;
}
