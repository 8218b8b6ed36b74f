/* Other element types, and what Python gets told about a tensor. */
#include "exec/op/op.h"

#include <string.h>

static void run_to(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *other = arg_tensor(o, "other");
    enum plumb_dtype dtype = other ? other->dtype : arg_dtype(o, "dtype");
    op_return(o, dtype == PLUMB_DTYPE_COUNT ? x : v_cast(o, x, dtype));
}

/* "torch.FloatTensor", "torch.cuda.HalfTensor", or a dtype's own name. */
static enum plumb_dtype type_named(const char *text)
{
    static const struct {
        const char *name;
        enum plumb_dtype dtype;
    } names[] = {
        {"FloatTensor", PLUMB_F32},     {"DoubleTensor", PLUMB_F64}, {"HalfTensor", PLUMB_F16},
        {"BFloat16Tensor", PLUMB_BF16}, {"ByteTensor", PLUMB_U8},    {"CharTensor", PLUMB_I8},
        {"ShortTensor", PLUMB_I16},     {"IntTensor", PLUMB_I32},    {"LongTensor", PLUMB_I64},
        {"BoolTensor", PLUMB_BOOL},
    };
    const char *dot = strrchr(text, '.'), *last = dot ? dot + 1 : text;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(last, names[k].name) == 0)
            return names[k].dtype;
    return plumb_dtype_from_name(text);
}

static void run_type(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    const char *text = arg_text(o, "dtype");
    enum plumb_dtype dtype = text ? type_named(text) : arg_dtype(o, "dtype");
    if (dtype == PLUMB_DTYPE_COUNT)
        op_fail(o, PLUMB_E_ARG, "type: there is no '%s'", text ? text : "None");
    else
        op_return(o, v_cast(o, x, dtype));
}

static void run_named_type(struct op *o)
{
    static const struct {
        const char *name;
        enum plumb_dtype dtype;
    } names[] = {
        {"float", PLUMB_F32}, {"double", PLUMB_F64}, {"half", PLUMB_F16},  {"bfloat16", PLUMB_BF16},
        {"byte", PLUMB_U8},   {"char", PLUMB_I8},    {"short", PLUMB_I16}, {"int", PLUMB_I32},
        {"long", PLUMB_I64},  {"bool", PLUMB_BOOL},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (strcmp(o->call->name, names[k].name) == 0)
            op_return(o, v_cast(o, arg_tensor(o, "input"), names[k].dtype));
}

/* ---- Facts about a tensor -------------------------------------------------------------------- */

/* One of x's sizes or strides, or all of them. */
static void return_sizes(struct op *o, const int64_t *sizes)
{
    struct val *x = arg_tensor(o, "input");
    if (!x)
        return;
    if (arg_given(o, "dim")) {
        unsigned dim = val_dim(o, x, arg_int(o, "dim"));
        if (x->rank == 0)
            op_fail(o, PLUMB_E_ARG, "%s of a tensor without dimensions", o->call->name);
        op_return_int(o, sizes[dim]);
        return;
    }
    op_return_tuple(o);
    for (unsigned d = 0; d < x->rank; d++)
        op_return_int(o, sizes[d]);
}

static void run_size(struct op *o)
{
    const struct plumb_arg *raw = arg_raw(o, "input");
    if (raw)
        return_sizes(o, raw->tensor->shape);
}

static void run_stride(struct op *o)
{
    const struct plumb_arg *raw = arg_raw(o, "input");
    if (!raw)
        return;
    int64_t dense[OP_RANK] = {0}, step = 1;
    for (unsigned d = raw->tensor->rank; d-- > 0;) {
        dense[d] = step;
        step *= raw->tensor->shape[d] ? raw->tensor->shape[d] : 1;
    }
    return_sizes(o, raw->tensor->dense ? dense : raw->tensor->stride);
}

static void run_numel(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x)
        op_return_int(o, x->count);
}

static void run_dim(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x)
        op_return_int(o, x->rank);
}

static void run_len(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->rank == 0)
        op_fail(o, PLUMB_E_ARG, "the length of a tensor without dimensions");
    else if (x)
        op_return_int(o, x->shape[0]);
}

static struct val *one_element(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x && x->count != 1)
        return op_fail(o, PLUMB_E_ARG, "%s of a tensor with %lld elements", o->call->name,
                       (long long)x->count);
    return x;
}

static void run_bool(struct op *o)
{
    struct val *x = one_element(o);
    if (x)
        op_return_bool(o, x->f ? x->f[0] != 0 : x->i[0] != 0);
}

static void run_item(struct op *o)
{
    struct val *x = one_element(o);
    if (x && x->f)
        op_return(o, v_reshape(o, v_detach(o, x), 0, NULL));
    else if (x && x->dtype == PLUMB_BOOL)
        op_return_bool(o, x->i[0] != 0);
    else if (x)
        op_return_int(o, x->i[0]);
}

static void run_is_floating_point(struct op *o)
{
    struct val *x = arg_tensor(o, "input");
    if (x)
        op_return_bool(o, val_is_float(x));
}

static void run_is_complex(struct op *o)
{
    if (arg_tensor(o, "input"))
        op_return_bool(o, false);
}

static void run_is_same_size(struct op *o)
{
    struct val *x = arg_tensor(o, "input"), *other = arg_tensor(o, "other");
    if (x && other)
        op_return_bool(o, same_shape(x, other));
}

const struct op_def op_convert[] = {
    {"to _to_copy",
     "to(Tensor input|self, dtype dtype, bool non_blocking=False, bool copy=False)\n"
     "to(Tensor input|self, Tensor other, bool non_blocking=False, bool copy=False)\n"
     "to(Tensor input|self, any device=None, dtype? dtype=None, bool non_blocking=False, bool "
     "copy=False)",
     run_to, 0, "floats are cut to integers towards 0"},
    {"type_as", "type_as(Tensor input|self, Tensor other)", run_to, 0, NULL},
    {"type",
     "type(Tensor input|self, dtype dtype, bool non_blocking=False)\n"
     "type(Tensor input|self, str dtype, bool non_blocking=False)",
     run_type, 0, NULL},
    {"float double half bfloat16 byte char short int long bool", "float(Tensor input|self)",
     run_named_type, 0, NULL},
    {"size", "size(Tensor input|self, int? dim=None)", run_size, OP_NO_GRAD, NULL},
    {"stride", "stride(Tensor input|self, int? dim=None)", run_stride, OP_NO_GRAD, NULL},
    {"numel nelement", "numel(Tensor input|self)", run_numel, OP_NO_GRAD, NULL},
    {"dim ndimension", "dim(Tensor input|self)", run_dim, OP_NO_GRAD, NULL},
    {"__len__", "__len__(Tensor input|self)", run_len, OP_NO_GRAD, NULL},
    {"__bool__ __nonzero__ is_nonzero", "__bool__(Tensor input|self)", run_bool, OP_NO_GRAD, NULL},
    {"item _local_scalar_dense", "item(Tensor input|self)", run_item, OP_NO_GRAD, NULL},
    {"is_floating_point", "is_floating_point(Tensor input|self)", run_is_floating_point, OP_NO_GRAD,
     NULL},
    {"is_complex", "is_complex(Tensor input|self)", run_is_complex, OP_NO_GRAD, NULL},
    {"is_same_size", "is_same_size(Tensor input|self, Tensor other)", run_is_same_size, OP_NO_GRAD,
     NULL},
    {0},
};
