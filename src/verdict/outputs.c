/* Outputs of a call against those of the reference: lists opened, one output after the other. */
#include "verdict/outputs.h"

#include "verdict/spell.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

void outputs_say(struct plumb_outputs_verdict *out, enum plumb_fault fault, struct buf *text)
{
    out->fault = fault;
    snprintf(out->message, sizeof out->message, "%s", text->data ? text->data : "");
    buf_free(text);
}

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

static enum plumb_code compare_output(struct outputs_pair *p, const struct plumb_arg *a,
                                      const struct plumb_arg *b, const struct noise *noise,
                                      struct plumb_error *err)
{
    struct plumb_tensor rooms[2];
    const bool has_a = as_tensor(a, &rooms[0], &p->a), has_b = as_tensor(b, &rooms[1], &p->b);
    enum plumb_code code = PLUMB_OK;
    if (has_a && has_b) {
        const size_t k = p->out->output;
        p->noise = noise && k < noise->n && noise->counts[k] == p->a->count ? noise->of[k] : NULL;
        code = outputs_pair_compare(p, err);
    } else if (has_a != has_b) {
        struct buf text = {0};
        spell_arg(&text, a);
        buf_text(&text, " instead of ");
        spell_arg(&text, b);
        outputs_say(p->out, PLUMB_FAULT_MISSING, &text);
    }
    p->a = p->b = NULL;
    return code;
}

/* As many on both sides: pair by pair, up to the first that fails. */
static enum plumb_code compare_flat(const struct outputs_sides *sides,
                                    const struct plumb_arg *const *a,
                                    const struct plumb_arg *const *b, size_t n,
                                    const struct noise *noise, struct plumb_outputs_verdict *out,
                                    struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    for (size_t k = 0; k < n && !code && out->fault == PLUMB_FAULT_NONE; k++) {
        struct plumb_outputs_verdict one = {
            .rtol = sides->rtol, .atol = sides->atol, .max_ulp = NAN, .output = k};
        struct outputs_pair p = {.raised = sides->raised,
                                 .limits = {.rtol = sides->rtol, .atol = sides->atol},
                                 .out = &one};
        code = compare_output(&p, a[k], b[k], noise, err);
        if (one.fault == PLUMB_FAULT_NONE) {
            out->max_abs = fmax(out->max_abs, one.max_abs);
            out->max_rel = fmax(out->max_rel, one.max_rel);
            out->max_ulp = fmax(out->max_ulp, one.max_ulp);
        } else {
            *out = one;
        }
    }
    return code;
}

enum plumb_code outputs_compare(const struct outputs_sides *sides, const struct noise *noise,
                                struct plumb_outputs_verdict *out, struct plumb_error *err)
{
    *out = (struct plumb_outputs_verdict){.rtol = sides->rtol, .atol = sides->atol, .max_ulp = NAN};
    const size_t n = flatten(sides->outputs, sides->n_outputs, NULL, 0, 0);
    const size_t wanted = flatten(sides->reference, sides->n_reference, NULL, 0, 0);
    if (n != wanted) {
        struct buf text = {0};
        buf_printf(&text, "%zu outputs instead of %zu", n, wanted);
        out->output = n < wanted ? n : wanted;
        outputs_say(out, PLUMB_FAULT_COUNT, &text);
        return PLUMB_OK;
    }
    const struct plumb_arg **flat = calloc(n ? 2 * n : 1, sizeof *flat);
    if (!flat)
        return plumb_no_memory(err);
    flatten(sides->outputs, sides->n_outputs, flat, 0, n);
    flatten(sides->reference, sides->n_reference, flat + n, 0, n);
    enum plumb_code code = compare_flat(sides, flat, flat + n, n, noise, out, err);
    free(flat);
    return code;
}

enum plumb_code plumb_outputs_compare(const struct plumb_arg *outputs, size_t n_outputs,
                                      const struct plumb_arg *reference, size_t n_reference,
                                      bool raised, double rtol, double atol,
                                      struct plumb_outputs_verdict *out, struct plumb_error *err)
{
    const struct outputs_sides sides = {.outputs = outputs,
                                        .n_outputs = n_outputs,
                                        .reference = reference,
                                        .n_reference = n_reference,
                                        .raised = raised,
                                        .rtol = rtol,
                                        .atol = atol};
    return outputs_compare(&sides, NULL, out, err);
}

enum plumb_code outputs_compare_call(const struct outputs_sides *sides,
                                     const struct plumb_call *call, size_t n_own,
                                     struct plumb_outputs_verdict *out, struct plumb_error *err)
{
    enum plumb_code code = outputs_compare(sides, NULL, out, err);
    if (code || out->fault != PLUMB_FAULT_NOT_CLOSE)
        return code;
    struct arena arena = {0};
    struct noise noise;
    const struct plumb_outputs_verdict before = *out;
    if (noise_run(call, sides->outputs, n_own, &arena, &noise))
        code = outputs_compare(sides, &noise, out, err);
    if (!code && out->fault == PLUMB_FAULT_NOT_CLOSE && out->output == before.output)
        *out = before;
    arena_free(&arena);
    return code;
}
