/* One call from its arguments to its result: forward, back along the tape, and stored. */
#include "exec/op/run.h"

#include "exec/op/bind.h"
#include "exec/op/families.h"
#include "exec/op/noise.h"
#include "exec/op/parts.h"
#include "exec/op/squares.h"

#include <string.h>

#define DECLARE(name, class) extern const struct op_def op_##name[];
OP_FAMILIES(DECLARE)
#undef DECLARE

/* Declared by hand: def.h knows it under its full name only. */
op_family_fn op_family;

const struct op_def *op_family(size_t family)
{
#define ENTRY(name, class) op_##name,
    static const struct op_def *const families[] = {OP_FAMILIES(ENTRY)};
#undef ENTRY
    return family < sizeof families / sizeof *families ? families[family] : NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

static struct plumb_arg *next_output(struct op *o, struct val *x)
{
    struct plumb_result *result = o->result;
    if (o->failed)
        return NULL;
    if (result->n_outputs == o->max_outputs) {
        const size_t room = o->max_outputs ? o->max_outputs * 2 : 4;
        struct plumb_arg *outputs = op_alloc(o, (int64_t)room, sizeof *outputs);
        struct val **vals = op_alloc(o, (int64_t)room, sizeof *vals);
        if (!outputs || !vals)
            return NULL;
        if (o->max_outputs) {
            memcpy(outputs, result->outputs, o->max_outputs * sizeof *outputs);
            memcpy(vals, o->outputs, o->max_outputs * sizeof *vals);
        }
        result->outputs = outputs;
        o->outputs = vals;
        o->max_outputs = room;
    }
    o->outputs[result->n_outputs] = x;
    if (result->n_outputs == 1)
        result->tuple = true;
    return &result->outputs[result->n_outputs++];
}

void op_return(struct op *o, struct val *x)
{
    if (!x && !o->failed)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no result", o->call->name);
    struct plumb_arg *out = next_output(o, x);
    if (out)
        out->kind = PLUMB_ARG_TENSOR;
}

void op_return_none(struct op *o)
{
    next_output(o, NULL);
}

void op_return_bool(struct op *o, bool value)
{
    struct plumb_arg *out = next_output(o, NULL);
    if (out)
        *out = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = value};
}

void op_return_int(struct op *o, int64_t value)
{
    struct plumb_arg *out = next_output(o, NULL);
    if (out)
        *out = (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = value};
}

void op_return_tuple(struct op *o)
{
    o->result->tuple = true;
}

void op_write(struct op *o, const char *name, struct val *x)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    for (size_t k = 0; k < o->n_leaves && x; k++)
        if (o->leaves[k].arg == arg)
            o->leaves[k].written = x;
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool on_squares(const struct op *o)
{
    return o->call->noise && o->call->noise->squares;
}

/* Puts the given gradient into output k. */
static void start_grad(struct op *o, size_t k)
{
    const struct plumb_tensor *given = o->call->grads[k];
    struct val *out = k < o->result->n_outputs ? o->outputs[k] : NULL;
    if (!given || !out || !out->needs_grad)
        return;
    struct val *grad = op_load_plain(o, given);
    if (!grad)
        return;
    if (grad->f && o->call->noise)
        noise_input(o, grad->f, grad->count);
    if (!grad->f) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient of output %zu is of type %s", o->call->name, k,
                plumb_dtype_info(grad->dtype)->name);
        return;
    }
    if (grad->count != out->count) {
        op_fail(o, PLUMB_E_ARG, "%s: the gradient of output %zu has %lld elements instead of %lld",
                o->call->name, k, (long long)grad->count, (long long)out->count);
        return;
    }
    if (on_squares(o))
        squares_grad(o, grad);
    if (!out->grad && grad->f != given->data) { /* a copy already: it may be added to */
        out->grad = grad->f;
        return;
    }
    real *start = val_grad(o, out);
    for (int64_t e = 0; start && e < out->count; e++)
        start[e] += grad->f[e];
}

/* The gradient of an output was given, and disturbed as an input already. */
static bool is_output(const struct op *o, const struct val *x)
{
    bool found = false;
    for (size_t k = 0; k < o->result->n_outputs; k++)
        found |= o->outputs[k] == x;
    return found;
}

static void walk_back(struct op *o)
{
    for (size_t k = 0; k < o->call->n_grads; k++)
        start_grad(o, k);
    for (struct val *x = o->tape; x && !o->failed; x = x->earlier)
        if (x->grad) {
            if (!x->moved)
                (is_output(o, x) ? op_accumulated : op_between_nodes)(o, x->grad, x->count);
            x->backward(o, x);
        }
}

bool op_execute(struct op *o, size_t family, size_t def)
{
    const struct op_def *d = &op_family(family)[def];
    if (!op_find_leaves(o) || !op_bind(o, d->schema))
        return false;
    if (on_squares(o) && op_call_is_complex(o->call))
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no closed form for complex numbers", o->call->name);
    if (on_squares(o) && !squares_begin(o, op_form(d)))
        return false;
    noise_take_terms();
    noise_set_sum_bits(o->call->noise ? o->call->noise->sum_bits : 0);
    if (parts_wanted(o, d))
        parts_run(o, d);
    else
        d->run(o);
    o->result->terms = noise_take_terms();
    if (!o->failed && o->result->n_outputs == 0 && !o->result->tuple)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: no result", o->call->name);
    noise_set_back(true);
    if (!o->failed && o->call->n_grads)
        walk_back(o);
    noise_set_back(false);
    o->result->grad_terms = noise_take_terms();
    noise_set_sum_bits(0);
    return !o->failed;
}

static size_t note_used(const struct plumb_arg *args, size_t n, const void **used)
{
    size_t count = 0;
    used[count++] = args;
    for (size_t k = 0; k < n; k++)
        if (args[k].kind == PLUMB_ARG_TENSOR) {
            used[count++] = args[k].tensor;
            used[count++] = args[k].tensor->data;
        }
    return count;
}

/* Lets go of all that the result does not need: it may be kept for long beside another one. */
static void drop_scratch(struct op *o)
{
    const struct plumb_result *result = o->result;
    const size_t room = 2 * (result->n_outputs + 2 * result->n_grads) + 4;
    const void **used = op_alloc(o, (int64_t)room, sizeof *used);
    if (!used)
        return;
    size_t n = note_used(result->outputs, result->n_outputs, used);
    n += note_used(result->grads, result->n_grads, used + n);
    n += note_used(result->written, result->written ? result->n_grads : 0, used + n);
    used[n++] = used;
    arena_keep(o->arena, used, n);
}

static void store_written(struct op *o)
{
    struct plumb_result *result = o->result;
    for (size_t k = 0; k < o->n_leaves && !o->failed; k++) {
        struct val *x = o->leaves[k].written;
        if (x && !result->written)
            result->written = op_alloc(o, (int64_t)o->n_leaves, sizeof *result->written);
        if (x && result->written)
            result->written[k] =
                (struct plumb_arg){.kind = PLUMB_ARG_TENSOR, .tensor = op_store(o, x, x->f)};
    }
}

static const real *elements_of(struct op *o, const struct val *x)
{
    return x->f && on_squares(o) ? squares_output(o, x) : x->f;
}

bool op_finish(struct op *o)
{
    struct plumb_result *result = o->result;
    for (size_t k = 0; k < result->n_outputs && !o->failed; k++)
        if (o->outputs[k] && o->outputs[k]->f)
            noise_take_back(o, o->outputs[k]);
    for (size_t k = 0; k < result->n_outputs && !o->failed; k++)
        if (o->outputs[k])
            result->outputs[k].tensor = op_store(o, o->outputs[k], elements_of(o, o->outputs[k]));
    result->n_grads = o->n_leaves;
    result->n_arg_grads = o->n_arg_leaves;
    result->grads = op_alloc(o, (int64_t)o->n_leaves + 1, sizeof *result->grads);
    for (size_t k = 0; k < o->n_leaves && !o->failed; k++) {
        struct val *x = o->leaves[k].val;
        if (x && x->grad)
            result->grads[k] = (struct plumb_arg){
                .kind = PLUMB_ARG_TENSOR,
                .tensor = op_store(o, x, on_squares(o) ? squares_leaf(o, k) : x->grad)};
    }
    store_written(o);
    if (!o->failed)
        drop_scratch(o);
    return !o->failed;
}

op_call_fn OP_SYM(op_call);

enum plumb_code OP_SYM(op_call)(size_t family, size_t def, const struct plumb_call *call,
                                bool raised, struct arena *arena, struct plumb_result *result,
                                struct plumb_error *err)
{
    struct plumb_error own = {0};
    struct op o;
    op_begin(&o, call, raised, arena, result, err ? err : &own);
    if (op_execute(&o, family, def) && op_finish(&o))
        return PLUMB_OK;
    return o.err->code ? o.err->code : PLUMB_E_ARG;
}
