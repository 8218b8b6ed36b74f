/* Arguments of the running call, by the names of its signature. */
#include "exec/op/bind.h"
#include "exec/op/parts.h"

#include <string.h>

static struct op_bound *bound_for(struct op *o, const char *name)
{
    if (o->failed)
        return NULL;
    size_t p = op_param_index(o, name);
    return p < o->signature->n ? &o->bound[p] : NULL;
}

const struct plumb_arg *arg_raw(struct op *o, const char *name)
{
    struct op_bound *bound = bound_for(o, name);
    return bound ? bound->value : NULL;
}

bool arg_given(struct op *o, const char *name)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    return arg && arg->kind != PLUMB_ARG_NONE;
}

struct val *arg_value(struct op *o, const struct plumb_arg *tensor)
{
    return tensor && tensor->kind == PLUMB_ARG_TENSOR ? op_load(o, tensor) : NULL;
}

struct val *arg_tensor(struct op *o, const char *name)
{
    return arg_value(o, arg_raw(o, name));
}

struct val *arg_unread(struct op *o, const char *name)
{
    const struct plumb_arg *tensor = arg_raw(o, name);
    return tensor && tensor->kind == PLUMB_ARG_TENSOR ? op_load_unread(o, tensor) : NULL;
}

/* Of a number that is real. */
static bool is_absent(enum op_part part)
{
    return part == PART_IMAGINARY || part == PART_ZERO;
}

static double as_part(struct op *o, const struct plumb_arg *arg, enum op_part part)
{
    if (arg->kind != PLUMB_ARG_COMPLEX)
        return is_absent(part) ? 0 : arg->number;
    if (part == PART_WHOLE)
        op_fail(o, PLUMB_E_UNSUPPORTED, "%s: not with the complex number %g%+gj", o->call->name,
                arg->number, arg->imaginary);
    return part == PART_REAL        ? arg->number
           : part == PART_IMAGINARY ? arg->imaginary
           : part == PART_SIZE      ? hypot(arg->number, arg->imaginary)
                                    : 0;
}

struct val *arg_operand(struct op *o, const char *name)
{
    struct op_bound *bound = bound_for(o, name);
    if (!bound)
        return NULL;
    const struct plumb_arg *arg = bound->value;
    const enum op_part part = bound->part;
    switch (arg->kind) {
    case PLUMB_ARG_TENSOR:
        return arg_value(o, arg);
    case PLUMB_ARG_FLOAT:
    case PLUMB_ARG_COMPLEX:
        return v_number(o, as_part(o, arg, part));
    case PLUMB_ARG_INT:
        return v_int(o, is_absent(part) ? 0 : arg->integer);
    case PLUMB_ARG_BOOL: {
        struct val *x = v_int(o, is_absent(part) ? 0 : arg->integer);
        if (x)
            x->dtype = PLUMB_BOOL;
        return x;
    }
    default:
        return NULL;
    }
}

struct val **arg_tensors(struct op *o, const char *name, size_t *n)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    *n = 0;
    if (!arg || arg->kind != PLUMB_ARG_LIST)
        return NULL;
    struct val **list = op_alloc(o, (int64_t)arg->n_items + 1, sizeof *list);
    if (!list)
        return NULL;
    for (size_t k = 0; k < arg->n_items; k++)
        list[k] = arg_value(o, &arg->items[k]);
    if (o->failed)
        return NULL;
    *n = arg->n_items;
    return list;
}

/* A number, or the one element of a tensor. Conversions that do not fit give the nearest end. */
static double as_number(const struct plumb_arg *arg)
{
    double value[2] = {0}; /* a complex tensor, which no signature lets through, has two */
    if (arg->kind == PLUMB_ARG_TENSOR && arg->tensor->count == 1)
        plumb_tensor_to_f64(arg->tensor, 0, 1, value);
    else if (arg->kind == PLUMB_ARG_FLOAT)
        value[0] = arg->number;
    else
        value[0] = (double)arg->integer;
    return value[0];
}

static int64_t as_int(const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_BOOL)
        return arg->integer;
    double value = as_number(arg);
    return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

int64_t arg_int(struct op *o, const char *name)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    return arg ? as_int(arg) : 0;
}

double arg_number(struct op *o, const char *name)
{
    struct op_bound *bound = bound_for(o, name);
    if (!bound)
        return 0;
    if (bound->value->kind == PLUMB_ARG_COMPLEX)
        return as_part(o, bound->value, bound->part);
    return is_absent(bound->part) ? 0 : as_number(bound->value);
}

bool arg_bool(struct op *o, const char *name)
{
    return arg_int(o, name) != 0;
}

const char *arg_text(struct op *o, const char *name)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    return arg && arg->kind == PLUMB_ARG_TEXT ? arg->text : NULL;
}

enum plumb_dtype arg_dtype(struct op *o, const char *name)
{
    const struct plumb_arg *arg = arg_raw(o, name);
    const enum plumb_dtype dtype =
        arg && arg->kind == PLUMB_ARG_DTYPE ? arg->dtype : PLUMB_DTYPE_COUNT;
    return o->in_parts ? part_dtype(dtype) : dtype;
}

const int64_t *arg_ints(struct op *o, const char *name, size_t *n)
{
    static const int64_t none[1];
    *n = 0;
    struct op_bound *bound = bound_for(o, name);
    if (!bound || bound->value->kind == PLUMB_ARG_NONE)
        return none;
    const struct plumb_arg *arg = bound->value;
    const unsigned expand = o->signature->params[bound - o->bound].expand;
    const bool lone = arg->kind != PLUMB_ARG_LIST || (arg->n_items == 1 && expand > 1);
    const struct plumb_arg *items = arg->kind == PLUMB_ARG_LIST ? arg->items : arg;
    size_t count = lone ? (expand ? expand : 1) : arg->n_items;
    if (count > OP_RANK) {
        op_fail(o, PLUMB_E_ARG, "%s: '%s' lists %zu numbers", o->call->name, name, count);
        return none;
    }
    int64_t *out = op_alloc(o, OP_RANK, sizeof *out);
    if (!out)
        return none;
    for (size_t k = 0; k < count; k++)
        out[k] = as_int(&items[lone ? 0 : k]);
    *n = count;
    return out;
}

const double *arg_numbers(struct op *o, const char *name, size_t *n)
{
    static const double none[1];
    *n = 0;
    const struct plumb_arg *arg = arg_raw(o, name);
    if (!arg || arg->kind == PLUMB_ARG_NONE)
        return none;
    const bool list = arg->kind == PLUMB_ARG_LIST;
    size_t count = list ? arg->n_items : 1;
    double *out = op_alloc(o, (int64_t)count + 1, sizeof *out);
    if (!out)
        return none;
    for (size_t k = 0; k < count; k++)
        out[k] = as_number(list ? &arg->items[k] : arg);
    *n = count;
    return out;
}
